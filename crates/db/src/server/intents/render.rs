//! Turns config intents into options for one server. If that is impossible, it explains why in
//! sentences. [`ConfigServer`] is the server, and [`Rendered`] holds its options.

use std::path::{Path, PathBuf};

use dbdyno_products::{EMBEDDED, Product, Release};

use super::data::{Intent, IntentData, IntentSettings, Limit, OptionState, RenderRule};
use super::value::{RequestedValue, same_value};
use super::{Intents, RequestedIntent, data, value};
use crate::server::{Base, Error};

/// Number of redo files if the server lets dbdyno choose the number and the config does not set it.
const REDO_FILES: u64 = 2;

/// Bytes in one MiB. dbdyno rounds the size of each redo file down to a whole number of MiB,
/// because old versions round it down as well.
const MIB: u64 = 1 << 20;

/// The result for one intent on one server.
enum IntentOutcome<'a> {
    Rules(Vec<&'a RenderRule>),
    /// The server lacks the feature and the config requests its absence, so no option is needed.
    Fulfilled,
    /// The server cannot fulfil the intent. The text completes a sentence that begins with the
    /// intent.
    Impossible(String),
}

/// The options that `intents` mean for `server`, in the data's order.
pub fn render(server: &ConfigServer, intents: &Intents) -> Result<Rendered, Error> {
    let mut rendered = Rendered::of(server);
    rendered.asked = Some(intents.pairs());
    let mut wrong = Vec::new();
    for intent in &IntentData::get().intents {
        let Some(requested) = intents.get(&intent.name) else { continue };
        let request = format!("{} = {}", requested.name, requested.value);
        match outcome(server, intent, requested) {
            IntentOutcome::Rules(rules) => {
                for rule in rules {
                    add_rule(&mut rendered, rule, &request, requested, intents);
                }
            }
            IntentOutcome::Fulfilled => {}
            IntentOutcome::Impossible(why) if requested.where_possible => {
                rendered.notes.push(format!("{request} is left out, as where_possible allows: {why}"));
            }
            IntentOutcome::Impossible(why) => wrong.push(format!("{request}: {why}")),
        }
    }
    if wrong.is_empty() {
        return Ok(rendered);
    }
    let (these, it) = if wrong.len() == 1 { ("this", "it") } else { ("these", "them") };
    wrong.push(format!(
        "{} cannot do {these}: leave {it} out, or put {it} under [where_possible] to have {it} on the servers that can",
        server.title
    ));
    Err(Error::Config { why: wrong.join("\n") })
}

/// Finds the rules that fulfil the request on this server. If there are none, the result says why.
fn outcome<'a>(server: &ConfigServer, intent: &'a Intent, requested: &RequestedIntent) -> IntentOutcome<'a> {
    let fits = |rule: &&RenderRule| fits_version(server, rule, &requested.value);
    let candidates: Vec<&RenderRule> = intent.way.iter().filter(fits).collect();
    if let Some(rule) = candidates.iter().find(|rule| lacks(server, rule).is_none()) {
        if let Some(why) =
            intent.limit.iter().find_map(|limit| exceeded_limit(server, intent, limit, &requested.value))
        {
            return IntentOutcome::Impossible(why);
        }
        let also = intent.also.iter().filter(fits).filter(|rule| lacks(server, rule).is_none());
        return IntentOutcome::Rules(std::iter::once(*rule).chain(also).collect());
    }
    if let Some(why) = candidates.first().and_then(|rule| lacks(server, rule)) {
        return IntentOutcome::Impossible(why);
    }
    let there = accepted_words(server, intent);
    if there.is_none() && is_absent_as_requested(server, intent, &requested.value) {
        return IntentOutcome::Fulfilled;
    }
    let value = requested.value.to_string();
    let where_else = data::described(intent, |rule| rule.set.is_some() || rule.values.contains_key(&value));
    let here = match there {
        Some(words) if !words.is_empty() => format!("{} takes {} here", server.title, words.join(", ")),
        _ => format!("{} has none", server.title),
    };
    IntentOutcome::Impossible(match where_else.is_empty() {
        true => here,
        false => format!("{here}; it exists in {where_else}"),
    })
}

/// Whether product and version have the options that `rule` sets for `value`.
fn fits_version(server: &ConfigServer, rule: &RenderRule, value: &RequestedValue) -> bool {
    let Some(set) = settings(rule, value) else { return false };
    rule.on.iter().any(|on| on.covers(server.product))
        && rule.span.contains(server.version)
        && set.keys().all(|option| has_option(server, option))
}

/// The rule's options for `value`: those for that value, otherwise those for any value.
fn settings<'a>(rule: &'a RenderRule, value: &RequestedValue) -> Option<&'a IntentSettings> {
    let of_value = rule.values.iter().find(|(word, _)| value.is(word)).map(|(_, set)| set);
    // A word such as `off` has options only under its own name. The options for any value need a
    // number, which a word lacks.
    let is_word = matches!(value, RequestedValue::Word(_)) && !rule.values.is_empty();
    of_value.or_else(|| rule.set.as_ref().filter(|_| !is_word))
}

/// Whether the server has the option and the option has an effect.
fn has_option(server: &ConfigServer, option: &str) -> bool {
    let option = option.strip_prefix("skip_").unwrap_or(option);
    IntentData::get()
        .option(server.product, server.version, option)
        .is_some_and(|range| range.state != OptionState::Ignored)
}

/// Names the engine or plugin that `rule` needs, if this variant or build does not have it.
fn lacks(server: &ConfigServer, rule: &RenderRule) -> Option<String> {
    if let Some(engine) = rule.engine.as_ref().filter(|engine| **engine != server.engine) {
        return Some(format!(
            "it applies only to {engine} tables: set options.engine = \"{engine}\" in the variant"
        ));
    }
    let plugin = rule.plugin.as_ref().filter(|plugin| !server.has_plugin(plugin))?;
    Some(format!("it needs the plugin {plugin}, which this build of {} does not have", server.title))
}

/// Names the limit that the requested value exceeds on this server.
fn exceeded_limit(
    server: &ConfigServer,
    intent: &Intent,
    limit: &Limit,
    requested: &RequestedValue,
) -> Option<String> {
    if !limit.on.iter().any(|on| on.covers(server.product)) || !limit.span.contains(server.version) {
        return None;
    }
    let number = requested.number()?;
    let bound = |text: &Option<String>| text.as_deref().and_then(|text| value::limit(intent.kind, text));
    let said = |text: &Option<String>| text.clone().unwrap_or_default();
    if bound(&limit.min).is_some_and(|min| number < min) {
        return Some(format!("{} takes {} or more", server.title, said(&limit.min)));
    }
    if bound(&limit.max).is_some_and(|max| number > max) {
        return Some(format!("{} takes at most {}", server.title, said(&limit.max)));
    }
    None
}

/// Words that the server accepts for the intent. The result is `None` when the server does not have
/// the feature at all.
fn accepted_words<'a>(server: &ConfigServer, intent: &'a Intent) -> Option<Vec<&'a str>> {
    let mut is_there = false;
    let mut words = Vec::new();
    for rule in &intent.way {
        if !rule.on.iter().any(|on| on.covers(server.product)) || !rule.span.contains(server.version) {
            continue;
        }
        is_there |= rule.set.as_ref().is_some_and(|set| set.keys().all(|option| has_option(server, option)));
        let fit = rule.values.iter().filter(|(_, set)| set.keys().all(|option| has_option(server, option)));
        words.extend(fit.map(|(word, _)| word.as_str()));
    }
    words.sort_unstable();
    words.dedup();
    (is_there || !words.is_empty()).then_some(words)
}

fn is_absent_as_requested(server: &ConfigServer, intent: &Intent, requested: &RequestedValue) -> bool {
    intent.absent.iter().any(|absent| {
        let of_product = absent.on.is_empty() || absent.on.iter().any(|on| on.covers(server.product));
        of_product && absent.span.contains(server.version) && requested.is(&absent.value)
    })
}

/// Adds the options that `rule` sets for the requested value.
fn add_rule(
    rendered: &mut Rendered,
    rule: &RenderRule,
    request: &str,
    requested: &RequestedIntent,
    intents: &Intents,
) {
    if let Some(plugin) = &rule.plugin {
        rendered.add_plugin(plugin, request);
    }
    let mut placeholders = requested.value.placeholders();
    if let RequestedValue::Size(bytes) = requested.value {
        let files =
            intents.get("redo_files").and_then(|files| files.value.number()).map_or(REDO_FILES, |n| n as u64);
        placeholders.push(("{redo_files}", files.to_string()));
        placeholders.push(("{redo_file_bytes}", ((bytes / files.max(1)) & !(MIB - 1)).to_string()));
    }
    let Some(set) = settings(rule, &requested.value) else { return };
    for (name, template) in set {
        let text =
            placeholders.iter().fold(template.clone(), |text, (mark, value)| text.replace(mark, value));
        let value = (!text.is_empty()).then_some(text);
        rendered.set(Setting { name: name.clone(), value, intent: request.to_owned() });
    }
}

/// One option, and the intent that set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    /// The value; `None` for a bare option.
    pub value: Option<String>,
    /// The intent as a plan writes it: `durability = commit`.
    pub intent: String,
}

/// A user's own option file, as a server reads it.
pub(crate) struct OwnConfig {
    /// Names with underscores, and values, in the file's order. Settings from included files are
    /// among them.
    pub(crate) settings: Vec<(String, Option<String>)>,
    pub(crate) text: String,
}

/// One server's rendered config: its option file's contents, and the options with which its data
/// directory is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub product: &'static Product,
    /// Product and version for people.
    pub title: String,
    /// Names and values of the intents, as a plan writes them; `None` if the plan has no intents.
    pub asked: Option<Vec<(String, String)>>,
    /// Options in the file's order, each once. For SQLite these are pragmas.
    pub settings: Vec<Setting>,
    /// Options for PostgreSQL's `initdb`.
    pub initdb: Vec<Setting>,
    /// Text of the variant's own option file, if it has one.
    own_text: Option<String>,
    /// The variant's own settings, which win over the intents. Names have underscores, and values
    /// are as the server reads them.
    own: Vec<(String, Option<String>)>,
    /// Sentences about intents that were not rendered to an option, or that the variant's own
    /// settings override.
    pub notes: Vec<String>,
    /// The engine for the benchmark's tables, in lower case.
    pub engine: String,
    /// The option file that the server reads; `None` without one.
    pub(crate) file: Option<PathBuf>,
}

impl Rendered {
    /// The config of a server without intents.
    pub fn of(server: &ConfigServer) -> Self {
        let (product, title, engine) = (server.product, server.title.clone(), server.engine.clone());
        let (settings, initdb, own, notes) = Default::default();
        Self { product, title, asked: None, settings, initdb, own_text: None, own, notes, engine, file: None }
    }

    /// Adds the user's own option file at `path`, as a `base` server reads it. Its settings win
    /// over the intents.
    pub fn with_own_config(self, base: &Base, path: &Path) -> Result<Self, Error> {
        let own = base.family.own_config(base, path)?;
        let text = Some(own.text);
        Ok(Self { own_text: text, ..self.with_own(own.settings) }.in_file(path.to_path_buf()))
    }

    /// Says that the server reads [`Rendered::text`] from the file at `path`.
    #[must_use]
    pub fn in_file(self, path: PathBuf) -> Self {
        Self { file: Some(std::path::absolute(&path).unwrap_or(path)), ..self }
    }

    /// Adds the variant's own settings, which win over the intents.
    #[must_use]
    pub fn with_own(mut self, own: Vec<(String, Option<String>)>) -> Self {
        let changed = self.overridden(&own);
        self.notes.extend(changed);
        Self { own, ..self }
    }

    /// Names and values as they are written in the file, in the file's order: first the options
    /// from intents, then the variant's own.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let of_intents = self.settings.iter().map(|setting| (&setting.name, &setting.value));
        let own = self.own.iter().map(|(name, value)| (name, value));
        of_intents.chain(own).map(|(name, value)| (name.as_str(), value.as_deref()))
    }

    /// Whether an option is set whose name starts with `prefix`. The prefixes `loose_` and `skip_`
    /// are ignored.
    pub fn sets(&self, prefix: &str) -> bool {
        self.all().any(|(name, _)| plain_name(name).starts_with(prefix))
    }

    /// Adds an option. It replaces the same option, or its opposite, from an earlier intent. If the
    /// two options have different meanings, a note says which intent won.
    pub(crate) fn set(&mut self, mut setting: Setting) {
        let list = if setting.name.starts_with("--") { &mut self.initdb } else { &mut self.settings };
        let earlier = list
            .iter()
            .position(|other| same_option(&other.name, &setting.name))
            .map(|index| list.remove(index));
        // Each intent sets different switches in `optimizer_switch`, so both lists are kept.
        if let Some(switches) = earlier.as_ref().filter(|_| setting.name == "optimizer_switch") {
            let both = [&switches.value, &setting.value].map(|value| value.clone().unwrap_or_default());
            setting.value = Some(both.join(","));
            setting.intent = format!("{}, {}", switches.intent, setting.intent);
            return list.push(setting);
        }
        let differs = |earlier: &Setting| {
            !means_the_same((&earlier.name, &earlier.value), (&setting.name, &setting.value))
        };
        if let Some(earlier) = earlier.filter(differs) {
            let (name, value) = (&setting.name, setting.value.as_deref().unwrap_or("set"));
            self.notes.push(format!("{name} is {value} by {}, not by {}", setting.intent, earlier.intent));
        }
        list.push(setting);
    }

    /// Loads a plugin at start.
    fn add_plugin(&mut self, plugin: &str, intent: &str) {
        let value = Some(plugin.to_owned());
        let setting = Setting { name: "plugin_load_add".to_owned(), value, intent: intent.to_owned() };
        // The option may appear more than once in a file, once for each plugin.
        if !self.settings.contains(&setting) {
            self.settings.push(setting);
        }
    }

    /// Whether the server's files bypass the page cache, so that only its own cache holds their
    /// pages.
    pub fn bypasses_page_cache(&self) -> bool {
        let methods =
            self.settings.iter().filter_map(|setting| setting.intent.strip_prefix("flush_method = "));
        methods.into_iter().any(|method| method.contains("o_direct"))
    }

    /// The options for `initdb` as words on its command line.
    pub fn initdb_options(&self) -> Vec<String> {
        let word = |setting: &Setting| match &setting.value {
            Some(value) => format!("{}={value}", setting.name),
            None => setting.name.clone(),
        };
        self.initdb.iter().map(word).collect()
    }

    /// Names and values of SQLite's pragmas. The variant's own pragmas come last.
    pub fn pragmas(&self) -> Vec<(String, String)> {
        let is_own = |name: &String| self.own.iter().any(|(own, _)| own == name);
        let of_intents = self.settings.iter().filter(|setting| !is_own(&setting.name));
        let of_intents = of_intents.map(|setting| (setting.name.clone(), setting.value.clone()));
        let all = of_intents.chain(self.own.iter().cloned());
        all.map(|(name, value)| (name, value.unwrap_or_default())).collect()
    }

    /// An option's value and the intent that set it. The intent is `None` if the variant's own
    /// settings have the option.
    pub fn value(&self, option: &str) -> Option<(&str, Option<&str>)> {
        let own = self.own.iter().rev().find(|(name, _)| name == option);
        let own = own.and_then(|(_, value)| Some((value.as_deref()?, None)));
        let of_intents = || {
            let setting = self.settings.iter().find(|setting| setting.name == option)?;
            Some((setting.value.as_deref()?, Some(setting.intent.as_str())))
        };
        own.or_else(of_intents)
    }

    /// Whether the variant's own settings have this option, including the `loose_` form that a
    /// server may ignore.
    pub fn sets_itself(&self, option: &str) -> bool {
        self.own.iter().any(|(name, _)| without_loose(name) == option)
    }

    /// Whether a plugin with `word` in its name is loaded.
    pub fn loads_plugin(&self, word: &str) -> bool {
        let names_it = |value: &str| value.to_lowercase().contains(word);
        self.all().any(|(name, value)| name.contains("plugin_load") && value.is_some_and(names_it))
    }

    /// Whether the server gets an option file.
    pub fn has_file(&self) -> bool {
        self.asked.is_some() || self.own_text.is_some()
    }

    /// The option file's text. It has each option under the intent that set it, then the variant's
    /// own file, which wins. For SQLite it lists the pragmas from the intents.
    pub fn text(&self) -> String {
        let head = "\n# The variant's own option file, which wins over the lines above.\n";
        match (&self.asked, &self.own_text) {
            (None, own) => own.clone().unwrap_or_default(),
            (Some(_), None) => self.text_of_intents(),
            (Some(_), Some(own)) => format!("{}{head}{own}", self.text_of_intents()),
        }
    }

    fn text_of_intents(&self) -> String {
        let mut text = format!("# For {}, from the config of the plan.\n", self.title);
        text.push_str(self.product.family().option_file_form.0);
        for setting in &self.initdb {
            let value = setting.value.as_ref().map_or_else(String::new, |value| format!("={value}"));
            text.push_str(&format!("# {} (initdb {}{value})\n", setting.intent, setting.name));
        }
        let mut intent = "";
        for setting in &self.settings {
            if setting.intent != intent {
                intent = &setting.intent;
                text.push_str(&format!("# {intent}\n"));
            }
            text.push_str(&self.line(setting));
        }
        text
    }

    fn line(&self, setting: &Setting) -> String {
        let (statement, name) = (self.product.family().option_file_form.1, &setting.name);
        match &setting.value {
            Some(value) => format!("{statement}{name} = {value}\n"),
            None => format!("{name}\n"),
        }
    }

    /// One sentence for each option that the variant's own settings set to a different value than
    /// the intents do.
    fn overridden(&self, own: &[(String, Option<String>)]) -> Vec<String> {
        let own = |setting: &Setting| own.iter().rev().find(|(name, _)| same_option(name, &setting.name));
        let say = |setting: &Setting| {
            let (name, value) = own(setting)?;
            if means_the_same((name, value), (&setting.name, &setting.value)) {
                return None;
            }
            let (value, intent) = (value.as_deref().unwrap_or("set"), &setting.intent);
            Some(format!("{name} is {value} by the variant's own option file, which wins over {intent}"))
        };
        self.settings.iter().filter_map(say).collect()
    }

    /// Lists the options that `log` names, with the intents that set them. One of these may be the
    /// reason why a server did not start.
    pub fn causes(&self, log: &str) -> Vec<String> {
        // The log may quote a command line, which has two dashes before a name and single dashes
        // inside it. The settings have underscores instead.
        let log = log.replace("--", "  ").replace('-', "_");
        let named = self.settings.iter().chain(&self.initdb);
        let plain = |setting: &Setting| setting.name.trim_start_matches('-').replace('-', "_");
        named
            .filter(|setting| has_word(&log, &plain(setting)))
            .map(|setting| format!("{} comes from the intent {}", setting.name, setting.intent))
            .collect()
    }
}

/// An option's name without the prefixes `loose_` and `skip_`, which only change how the server
/// treats it.
pub(crate) fn plain_name(name: &str) -> &str {
    let name = without_loose(name);
    name.strip_prefix("skip_").unwrap_or(name)
}

fn without_loose(name: &str) -> &str {
    name.strip_prefix("loose_").unwrap_or(name)
}

/// Options whose value is a name. Any value turns them on, even `0` or `off`.
const OPTIONS_WITH_NAMES: &[&str] = &["log_bin"];

/// Whether both names belong to one option, as `skip_log_bin` and `log_bin` do.
fn same_option(left: &str, right: &str) -> bool {
    positive(left).0 == positive(right).0
}

/// The name without the prefixes that the servers strip, and whether a prefix reverses the option's
/// meaning.
fn positive(name: &str) -> (&str, bool) {
    let name = without_loose(name);
    let prefixes = [("skip_", true), ("disable_", true), ("enable_", false)];
    let found = prefixes.iter().find_map(|(prefix, negates)| Some((name.strip_prefix(prefix)?, *negates)));
    found.unwrap_or((name, false))
}

/// Whether two lines about one option have the same meaning. A bare `skip_x` means `x = off`, which
/// is the opposite of a bare `x`.
fn means_the_same(left: (&str, &Option<String>), right: (&str, &Option<String>)) -> bool {
    let meant = |(name, value): (&str, &Option<String>)| match (positive(name), value.as_deref()) {
        ((_, false), None) => "1".to_owned(),
        ((_, true), None) => "0".to_owned(),
        // `skip_x = 0` means `x`.
        ((_, true), Some(value)) => if same_value(value, "0") { "1" } else { "0" }.to_owned(),
        ((name, false), Some(value)) if OPTIONS_WITH_NAMES.contains(&name) => format!("the name {value}"),
        ((_, false), Some(value)) => value.to_owned(),
    };
    let (left, right) = (meant(left), meant(right));
    left == right || same_value(&left, &right)
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

/// A build's loadable plugins, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plugins {
    /// The build is not installed on this machine. It is assumed to have every plugin.
    Unknown,
    /// The build's plugin folder; `None` for a build without plugins.
    In(Option<PathBuf>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigServer {
    pub product: &'static Product,
    pub version: Release,
    /// Product and version for people.
    pub title: String,
    /// Storage engine of the benchmark's tables, in lower case.
    pub engine: String,
    pub plugins: Plugins,
}

impl ConfigServer {
    /// A server build that is installed on this machine.
    pub fn of_base(base: &Base, engine: &str) -> Self {
        let plugins = Plugins::In(base.plugin_dir.clone());
        let (product, version) = (base.product, base.release);
        Self { product, version, title: base.title.clone(), engine: engine.to_lowercase(), plugins }
    }

    /// A server that is not installed on this machine, by its name in the catalogue:
    /// `mariadb-10.11.5`, `pg-18.6`. `mysql-9-sid` stands for the newest version 9. The result is
    /// `None` when the name has no product and version.
    pub fn named(name: &str, engine: &str) -> Option<Self> {
        let (product, rest) = Product::of_build(name)?;
        let mut version = Release::parse(rest)?;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let said = rest[..end].split('.').count();
        version.0.iter_mut().skip(said).for_each(|number| *number = u32::MAX);
        let title = format!("{product} {}", &rest[..end]);
        Some(Self { product, version, title, engine: engine.to_lowercase(), plugins: Plugins::Unknown })
    }

    pub fn embedded() -> Self {
        Self {
            product: EMBEDDED.products[0],
            version: Release([3, 0, 0]),
            title: EMBEDDED.products[0].to_string(),
            engine: String::new(),
            plugins: Plugins::In(None),
        }
    }

    /// Whether `plugin` (a file name) can be loaded, as far as is known.
    pub fn has_plugin(&self, plugin: &str) -> bool {
        match &self.plugins {
            Plugins::Unknown => true,
            Plugins::In(folder) => folder.as_ref().is_some_and(|folder| folder.join(plugin).is_file()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered() -> Rendered {
        let server = ConfigServer::named("mariadb-10.11.5", "innodb").unwrap();
        let mut rendered = Rendered { asked: Some(Vec::new()), ..Rendered::of(&server) };
        for (name, value, intent) in [
            ("innodb_flush_log_at_trx_commit", Some("1"), "durability = commit"),
            ("sync_binlog", Some("1"), "durability = commit"),
            ("log_bin", None, "binlog_in_engine = true"),
            ("sync_binlog", Some("0"), "sync_binlog = 0"),
        ] {
            rendered.set(Setting {
                name: name.to_owned(),
                value: value.map(str::to_owned),
                intent: intent.to_owned(),
            });
        }
        rendered
    }

    #[test]
    fn the_file_names_each_options_intent_and_the_own_file_comes_after() {
        let own = "[mysqld]\nsync_binlog = 7\n".to_owned();
        insta::assert_snapshot!(Rendered { own_text: Some(own), ..rendered() }.text(), @r"
        # For MariaDB 10.11.5, from the config of the plan.
        [mysqld]
        # durability = commit
        innodb_flush_log_at_trx_commit = 1
        # binlog_in_engine = true
        log_bin
        # sync_binlog = 0
        sync_binlog = 0

        # The variant's own option file, which wins over the lines above.
        [mysqld]
        sync_binlog = 7
        ");
        assert_eq!(rendered().notes, ["sync_binlog is 0 by sync_binlog = 0, not by durability = commit"]);
    }

    #[test]
    fn settings_that_the_own_file_overrides_are_noted() {
        let own = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        let said = rendered().overridden(&[own("sync_binlog", Some("0")), own("skip_log_bin", Some("1"))]);
        assert_eq!(
            said,
            ["skip_log_bin is 1 by the variant's own option file, which wins over binlog_in_engine = true"]
        );
    }

    #[test]
    fn an_option_and_its_opposite_are_distinguished_in_every_spelling() {
        let setting = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        let same = |left: (&str, Option<&str>), right: (&str, Option<&str>)| {
            let (left, right) = (setting(left.0, left.1), setting(right.0, right.1));
            assert!(same_option(&left.0, &right.0), "{left:?} {right:?}");
            means_the_same((&left.0, &left.1), (&right.0, &right.1))
        };
        for right in [
            ("log_bin", None),
            ("log_bin", Some("binlog")),
            ("log_bin", Some("0")),
            ("skip_log_bin", Some("0")),
        ] {
            assert!(!same(("skip_log_bin", None), right), "{right:?}");
        }
        assert!(same(("skip_log_bin", None), ("loose_skip_log_bin", Some("1"))));
        assert!(same(("log_bin", None), ("skip_log_bin", Some("0"))));
        let off = ("performance_schema", Some("0"));
        assert!(
            same(off, ("skip_performance_schema", None)) && same(off, ("performance_schema", Some("off")))
        );
        assert!(same(("performance_schema", Some("ON")), ("performance_schema", None)));
        assert!(!same(off, ("performance_schema", None)) && !same(off, ("enable_performance_schema", None)));
    }

    #[test]
    fn a_binlog_that_the_own_file_turns_on_against_the_plan_is_noted() {
        let asked = Intents::from_table(&toml::from_str("binlog = \"off\"").unwrap()).unwrap();
        for server in ["mariadb-10.1.23", "mariadb-11.8.6", "mysql-5.5.34", "mysql-5.7.22", "mysql-8.0.31"] {
            let rendered = render(&ConfigServer::named(server, "innodb").unwrap(), &asked).unwrap();
            let said = |name: &str, value: Option<&str>| {
                rendered.overridden(&[(name.to_owned(), value.map(str::to_owned))]).join("")
            };
            let reported = "log_bin is set by the variant's own option file, which wins over binlog = off";
            assert_eq!(
                (said("log_bin", None).as_str(), said("skip_log_bin", None).as_str()),
                (reported, ""),
                "{server}"
            );
        }
    }

    #[test]
    fn an_option_in_the_log_leads_to_its_intent() {
        let log = "mysqld --sync-binlog=0\n[ERROR] log_bin_index";
        assert_eq!(rendered().causes(log), ["sync_binlog comes from the intent sync_binlog = 0"]);
    }

    #[test]
    fn versions_are_read_as_far_as_they_are_numbers_and_compared_as_numbers() {
        let shown = |text: &str| Release::parse(text).map(|release| release.to_string());
        for (text, wanted) in [
            ("10.11.19-MariaDB-0+deb12u1", "10.11.19"),
            ("19rc1", "19"),
            ("9.6.24", "9.6.24"),
            ("5.6", "5.6"),
            ("9.0", "9.0"),
            ("11.8-debian", "11.8"),
            ("18.6", "18.6"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(wanted), "{text}");
        }
        assert_eq!(shown("sid"), None);
        assert!(Release::parse("10.2.11") > Release::parse("10.2.4"));
    }

    #[test]
    fn names_in_the_catalogue_determine_product_and_version() {
        let server = |name: &str| ConfigServer::named(name, "innodb").map(|server| server.title);
        assert_eq!(server("mariadb-10.11.5").as_deref(), Some("MariaDB 10.11.5"));
        assert_eq!(server("pg-19-debian").as_deref(), Some("PostgreSQL 19"));
        assert_eq!(server("my-build"), None);
        let newest = ConfigServer::named("mysql-9-sid", "innodb").unwrap();
        assert!(newest.title == "MySQL 9" && newest.version > Release([9, 7, 4]), "{newest:?}");
    }
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod render_tests;
