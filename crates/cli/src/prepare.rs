//! Prepares a plan's variants: it opens builds, renders configs, reads option files and tries
//! logins. All that can be refused is refused here, before anything runs and not after an hour.

use std::collections::BTreeMap;

use dbdyno_db::server::intents::{ConfigServer, Intents, Rendered, option_at, render};
use dbdyno_db::server::{Base, Certificates, servers_dir};
use dbdyno_db::{ConnectionSettings, DatabaseServer, Family};
use dbdyno_fetch::{answer_of, find_named};
use dbdyno_model::{Config, ConfigPart, Variant};
use dbdyno_plan::{Plan, options_problem};
use dbdyno_products::{FamilyFacts, VariantKind, engine_of};
use dbdyno_record::VariantInfo;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::exit::{ExitError, SERVER, USAGE};
use crate::limits::OTHER_CONNECTIONS;
use crate::{host, limits, login, terminal};

/// A variant whose server can be started or reached.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    /// What the record keeps of it. Its `config` is the text of the option file.
    pub(crate) info: VariantInfo,
    /// How connections to it are opened.
    pub(crate) connection_settings: ConnectionSettings,
    /// How intents that are no setting were applied, and what the variant's own settings change.
    pub(crate) notes: Vec<String>,
    pub(crate) source: Source,
}

/// Where a variant's database comes from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// There is no database, and every statement is answered at once.
    Null,
    /// The database works inside dbdyno, with these settings on every connection.
    Embedded(Vec<(String, String)>),
    /// dbdyno starts a server of this build.
    Started {
        base: Box<Base>,
        config: Box<Rendered>,
        /// Certificates for a server that has none of its own.
        certificates: Option<Certificates>,
    },
    /// Others run the server, at this address.
    Address(Box<DatabaseServer>),
}

impl Prepared {
    fn new(variant: &Variant, driver: &str, server: String, source: Source) -> Self {
        let info = VariantInfo {
            name: variant.name.clone(),
            driver: driver.to_owned(),
            server,
            factors: variant.factors.clone(),
            ..VariantInfo::default()
        };
        Self { info, connection_settings: ConnectionSettings::default(), notes: Vec::new(), source }
    }

    fn configured(mut self, config: &Rendered, text: String) -> Self {
        let asked = config.asked.clone().unwrap_or_default();
        self.info.intents = asked.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        self.info.config = text;
        self.notes.clone_from(&config.notes);
        self
    }

    /// Returns the build whose server dbdyno starts.
    pub(crate) fn base(&self) -> Option<&Base> {
        match &self.source {
            Source::Started { base, .. } => Some(base),
            _ => None,
        }
    }

    /// Returns the product of a started server that supports TLS over TCP only and runs here
    /// without TLS, on a unix socket.
    pub(crate) fn on_a_socket_for_lack_of_tls(&self) -> Option<String> {
        let base = self.base()?;
        let is_so = base.family.facts().has_no_tls_on_sockets && self.connection_settings.tls.is_none();
        is_so.then(|| base.product.to_string())
    }
}

/// Checks this machine's limits and all variants of a plan. It connects to each address, and takes
/// ownership of its database.
pub(crate) fn prepare(plan: &Plan, runtime: &Runtime) -> Result<Vec<Prepared>, ExitError> {
    limits::check(plan)?;
    host::check_life(plan)?;
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for variant in &plan.variants {
        match prepare_one(plan, variant, runtime) {
            Ok(prepared) => all.push(prepared),
            // The servers of other variants may be missing too. A mistake in the plan itself is
            // reported first.
            Err(ended) if ended.code == SERVER && !VariantKind::of(variant).is_address() => wrong.push(ended),
            Err(ended) => return Err(ended),
        }
    }
    if wrong.is_empty() { Ok(all) } else { Err(refusal(wrong)) }
}

/// Joins the errors of several variants into one. Each reason comes once, with the variants that
/// have it.
pub(crate) fn refusal(wrong: Vec<ExitError>) -> ExitError {
    let code = wrong.first().map_or(USAGE, |first| first.code);
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for message in wrong.into_iter().filter_map(|ended| ended.message) {
        let of_variant = message.strip_prefix("variant ").and_then(|rest| rest.split_once(": "));
        let (variant, why) = of_variant.unwrap_or(("", &message));
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, variants)) => variants.push(variant.to_owned()),
            None => reasons.push((why.to_owned(), vec![variant.to_owned()])),
        }
    }
    let line = |(why, variants): (String, Vec<String>)| match &variants[..] {
        [one] if one.is_empty() => why,
        [one] => format!("variant {one}: {why}"),
        several => format!("variants {}: {why}", several.join(", ")),
    };
    ExitError::new(code, reasons.into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

pub(crate) fn prepare_one(plan: &Plan, variant: &Variant, runtime: &Runtime) -> Result<Prepared, ExitError> {
    let prepared = match VariantKind::of(variant) {
        VariantKind::Null => Ok(Prepared::new(variant, "null", "null".to_owned(), Source::Null)),
        VariantKind::Embedded => embedded(variant).map_err(ExitError::usage),
        VariantKind::BaseDir(_) | VariantKind::Named(_) => build(variant)
            .map_err(ExitError::server)
            .and_then(|base| started(plan, variant, base).map_err(ExitError::usage)),
        VariantKind::Address(text) => reached(plan, variant, text, runtime),
    };
    prepared.map_err(|ended| ended.of_variant(&variant.name))
}

fn embedded(variant: &Variant) -> Result<Prepared, String> {
    let config = embedded_config(variant)?;
    let settings = config.pragmas();
    let text = settings.iter().map(|(name, value)| format!("PRAGMA {name} = {value}\n")).collect();
    let title = format!("{} (embedded)", Family::EMBEDDED.facts().products[0]);
    let mut prepared = Prepared::new(variant, Family::EMBEDDED.name(), title, Source::Embedded(settings));
    prepared.info.embedded = true;
    Ok(prepared.configured(&config, text))
}

/// Prepares a variant whose server dbdyno starts from the build `base`.
fn started(plan: &Plan, variant: &Variant, base: Base) -> Result<Prepared, String> {
    check_options(variant, base.family)?;
    let config = config(variant, &base)?;
    check_connections(plan, variant, &base, &config)?;
    if let Some(doubt) = check_engine(variant, &base, &config)? {
        terminal::warning(&format!("variant {}: {doubt}", variant.name));
    }
    let text = config.text();
    let (tls, certificates) = login::tls_of_started(variant, &base, &config)?;
    // This is the plan's word for the server. The folder of that name may be a link to a folder
    // with another name.
    let folder = match VariantKind::of(variant) {
        VariantKind::Named(name) => name,
        _ => base.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    let (family, title) = (base.family, format!("{} ({folder})", base.title));
    let source = Source::Started { base: Box::new(base), config: Box::new(config.clone()), certificates };
    let mut prepared = Prepared::new(variant, family.name(), title, source).configured(&config, text);
    prepared.connection_settings = login::connection_settings(plan, variant, family, tls)?;
    Ok(prepared)
}

/// Prepares a variant whose server others run at the address `text`.
fn reached(plan: &Plan, variant: &Variant, text: String, runtime: &Runtime) -> Result<Prepared, ExitError> {
    let database_server = login::log_in(plan, variant, runtime)?;
    let driver = database_server.address.name();
    let connection_settings =
        database_server.address.login().map(|login| login.connection_settings.clone()).unwrap_or_default();
    let mut prepared = Prepared::new(variant, driver, text, Source::Address(Box::new(database_server)));
    prepared.info.external = true;
    Ok(Prepared { connection_settings, ..prepared })
}

/// Opens the build of a variant whose server dbdyno starts.
fn build(variant: &Variant) -> Result<Base, dbdyno_fetch::Error> {
    match &variant.basedir {
        Some(path) => Ok(Base::open(path)?),
        None => find_named(variant.server.as_deref().unwrap_or_default()),
    }
}

/// Renders the settings of a build's server from the variant's intents and from its own option
/// file, which wins.
fn config(variant: &Variant, base: &Base) -> Result<Rendered, String> {
    let family = base.family;
    let config = rendered(variant, &ConfigServer::of_base(base, &family.facts().engine_of(variant)))?;
    match &variant.own_config {
        Some(path) => config.with_own_config(base, path).map_err(|error| format!("own_config: {error}")),
        None => Ok(config),
    }
}

/// Renders the settings of a variant on the embedded product.
fn embedded_config(variant: &Variant) -> Result<Rendered, String> {
    let own = Family::EMBEDDED.own_settings(&variant.options).into_iter();
    let own = own.map(|(name, value)| (name, Some(value)));
    Ok(rendered(variant, &ConfigServer::embedded())?.with_own(own.collect()))
}

/// Renders the intents of a variant for `server`.
fn rendered(variant: &Variant, server: &ConfigServer) -> Result<Rendered, String> {
    match &variant.config {
        Some(config) => {
            render(server, &intents(config)?).map_err(|error| indented("config", &error.to_string()))
        }
        None => Ok(Rendered::of(server)),
    }
}

/// Lays the parts of a config over each other.
fn intents(config: &Config) -> Result<Intents, String> {
    let mut all = Intents::default();
    for part in config.parts() {
        let read = match part {
            ConfigPart::File(path) => Intents::read(path),
            ConfigPart::Intents(table) => {
                let table = toml::Table::try_from(table).map_err(|error| format!("config: {error}"))?;
                Intents::from_table(&table)
            }
        };
        all = all.overlaid(read.map_err(|error| match part {
            ConfigPart::File(path) if !path.exists() => {
                format!("{error}; `dbdyno plans show configs/small.toml` prints one that ships")
            }
            ConfigPart::File(_) => error.to_string(),
            ConfigPart::Intents(_) => indented("config", &error.to_string()),
        })?);
    }
    Ok(all)
}

/// Writes one line after `title`, or several lines under it.
fn indented(title: &str, text: &str) -> String {
    match text.contains('\n') {
        true => format!("{title}:\n  {}", text.replace('\n', "\n  ")),
        false => format!("{title}: {text}"),
    }
}

/// What is known of a variant's config before its server is asked.
pub(crate) enum Predicted {
    Config(Rendered),
    /// Nothing is known of the server, for this reason, which is a sentence.
    UnknownServer(String),
}

/// Predicts the config of `variant` without starting anything. Where the server is not installed,
/// its name is enough. The result is `None` for a variant without intents.
pub(crate) fn predicted(variant: &Variant) -> Result<Option<Predicted>, String> {
    let kind = VariantKind::of(variant);
    let predicted = match &variant.config {
        Some(_) if kind.is_embedded() => Predicted::Config(embedded_config(variant)?),
        Some(asked) if kind.is_started() => {
            // This comes before the build is opened, because opening runs its program.
            intents(asked)?;
            match (build(variant), server_by_name(variant)) {
                (Ok(base), _) => Predicted::Config(config(variant, &base)?),
                (Err(_), Some(server)) => Predicted::Config(by_name(variant, &server)?),
                (Err(error), None) => Predicted::UnknownServer(error.to_string()),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(predicted))
}

/// Renders the config for a server that is not installed.
fn by_name(variant: &Variant, server: &ConfigServer) -> Result<Rendered, String> {
    let mut config = rendered(variant, server)?;
    config
        .notes
        .push(format!("{} is not installed: product and version are taken from its name", server.title));
    Ok(config)
}

/// Returns what the name of a variant's server says of it.
fn server_by_name(variant: &Variant) -> Option<ConfigServer> {
    let family = FamilyFacts::of_variant(variant)?;
    ConfigServer::named(variant.server.as_deref()?, &family.engine_of(variant))
}

/// Returns the size of the server's own page cache by variant, where that is known to be the only
/// one. Forecasts are made often, so a server's program runs only where the name does not say what
/// it is.
pub(crate) fn only_cache_bytes(plan: &Plan) -> BTreeMap<String, u64> {
    let of = |variant: &Variant| {
        let bytes = intents(variant.config.as_ref()?).ok()?.bytes("buffer_pool")?;
        let of_build = || {
            let base = build(variant).ok()?;
            Some(ConfigServer::of_base(&base, &base.family.facts().engine_of(variant)))
        };
        let server = server_by_name(variant).or_else(of_build)?;
        let is_only = rendered(variant, &server).ok()?.bypasses_page_cache();
        is_only.then(|| (variant.name.clone(), bytes))
    };
    plan.variants.iter().filter(|variant| VariantKind::of(variant).is_started()).filter_map(of).collect()
}

/// Refuses options that the family of the variant's server does not have.
fn check_options(variant: &Variant, family: Family) -> Result<(), String> {
    let problem = options_problem(variant, family.facts());
    problem.map_or(Ok(()), |(_, message)| Err(format!("it {message}")))
}

/// Refuses a server that would take fewer connections than the plan opens. A value that is no
/// number is left to the server.
fn check_connections(plan: &Plan, variant: &Variant, base: &Base, config: &Rendered) -> Result<(), String> {
    const OPTION: &str = "max_connections";
    let said = config.value(OPTION).map(|(value, intent)| {
        let file = || variant.own_config.as_ref().map_or_else(String::new, |file| file.display().to_string());
        let who = intent.map_or_else(
            || format!("{OPTION} in {}", file()),
            |intent| format!("{OPTION}, by {intent} of its config"),
        );
        (value.to_owned(), who)
    });
    let default = || {
        let range = option_at(base.product, base.release, OPTION)?;
        Some((range.default.clone(), format!("{OPTION}, its default")))
    };
    let reserved = match base.family.facts().reserved_connections {
        None => Some(0),
        Some((option, default)) => {
            config.value(option).map_or(Some(default), |(value, _)| value.parse().ok())
        }
    };
    let most = said.or_else(default).and_then(|(most, who)| Some((most.parse::<u64>().ok()?, who)));
    let need = u64::from(plan.workload.most_connections()) + OTHER_CONNECTIONS;
    match most.zip(reserved) {
        Some(((most, who), reserved)) if need > most.saturating_sub(reserved) => {
            let kept = match reserved {
                0 => String::new(),
                _ => format!(", {reserved} of them kept for superusers"),
            };
            Err(format!(
                "the plan opens {need} connections, and the server would take {most}{kept} ({who}); raise it, or plan fewer connections"
            ))
        }
        _ => Ok(()),
    }
}

/// Refuses an engine that the build is known not to have. The answer from when the build was got or
/// added decides. It warns of an engine that the build is not known to have.
fn check_engine(variant: &Variant, base: &Base, config: &Rendered) -> Result<Option<String>, String> {
    let (Some(engine), Some(built_in)) = (engine_of(variant), base.family.built_in_engines(base)) else {
        return Ok(None);
    };
    let title = &base.title;
    let is_it = |known: &str| base.family.is_engine(&engine, known);
    let plugin = base.family.engine_plugin(&engine);
    let answer = match VariantKind::of(variant) {
        VariantKind::Named(name) => answer_of(&servers_dir(), &name),
        _ => None,
    };
    match answer.map(|answer| answer.abilities.engines) {
        _ if config.sets("plugin_dir") || config.loads_plugin(&engine) => Ok(None),
        Some(engines) if engines.iter().any(|known| is_it(known)) => Ok(None),
        Some(engines) => Err(format!("{title} has no engine {engine}; it has {}", engines.join(", "))),
        None if built_in.iter().any(|known| is_it(known)) || base.has_plugin(&plugin) => Ok(None),
        None => Ok(Some(format!(
            "engine {engine} is none of those that {title} is built with, and {plugin} is not among its plugins: its cells will fail \
             unless this build has it"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_pool_is_the_only_cache_where_the_files_bypass_the_page_cache() {
        let variant = |name: &str, server: &str, config: &str| {
            format!(
                "[[variant]]\nname = \"{name}\"\nserver = \"{server}\"\nconfig = {{ buffer_pool = \"64 MiB\"{config} }}\n"
            )
        };
        let direct = ", where_possible = { flush_method = \"o_direct\" }";
        let text = ["name = \"p\"\n".to_owned()]
            .into_iter()
            .chain([
                variant("direct", "mariadb-11.8.6", direct),
                variant("cached", "mariadb-11.8.6", ", flush_method = \"fsync\""),
                variant("postgres", "postgresql-18.1", direct),
                variant("embedded", "sqlite", direct),
            ])
            .chain(["[workload.oltp]\n".to_owned()]);
        let plan = dbdyno_workloads::plans::parse(&text.collect::<String>(), "p.toml")
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(only_cache_bytes(&plan), BTreeMap::from([("direct".to_owned(), 64 << 20)]));
    }
}
