//! Turns config intents into options for one server, or into sentences that say why the server
//! cannot have them.

use super::config::{Intents, RequestedIntent};
use super::data::{Intent, IntentData, Limit, OptionState, RenderRule, Settings};
use super::possible;
use super::rendered::{Rendered, Setting};
use super::server::ConfigServer;
use super::value::{self, Value};
use crate::server::Error;

/// Number of redo files when the server lets dbdyno choose and the config does not.
const REDO_FILES: u64 = 2;

/// Old versions round each redo file down to a whole number of MiB.
const MIB: u64 = 1 << 20;

/// The result for one intent on one server.
enum Outcome<'a> {
    Rules(Vec<&'a RenderRule>),
    /// The server lacks the feature, and that is what the config asked for.
    Fulfilled,
    /// The text completes a sentence that begins with the intent.
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
            Outcome::Rules(rules) => {
                for rule in rules {
                    add(&mut rendered, rule, &request, requested, intents);
                }
            }
            Outcome::Fulfilled => {}
            Outcome::Impossible(why) if requested.where_possible => {
                rendered.notes.push(format!("{request} is left out, as where_possible allows: {why}"));
            }
            Outcome::Impossible(why) => wrong.push(format!("{request}: {why}")),
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

fn outcome<'a>(server: &ConfigServer, intent: &'a Intent, requested: &RequestedIntent) -> Outcome<'a> {
    let fits = |rule: &&RenderRule| fits_version(server, rule, &requested.value);
    let candidates: Vec<&RenderRule> = intent.way.iter().filter(fits).collect();
    if let Some(rule) = candidates.iter().find(|rule| lacks(server, rule).is_none()) {
        if let Some(why) =
            intent.limit.iter().find_map(|limit| beyond(server, intent, limit, &requested.value))
        {
            return Outcome::Impossible(why);
        }
        let also = intent.also.iter().filter(fits).filter(|rule| lacks(server, rule).is_none());
        return Outcome::Rules(std::iter::once(*rule).chain(also).collect());
    }
    if let Some(why) = candidates.first().and_then(|rule| lacks(server, rule)) {
        return Outcome::Impossible(why);
    }
    let there = takes(server, intent);
    if there.is_none() && is_absent_as_requested(server, intent, &requested.value) {
        return Outcome::Fulfilled;
    }
    let value = requested.value.to_string();
    let where_else =
        possible::described(intent, |rule| rule.set.is_some() || rule.values.contains_key(&value));
    let here = match there {
        Some(words) if !words.is_empty() => format!("{} takes {} here", server.title, words.join(", ")),
        _ => format!("{} has none", server.title),
    };
    Outcome::Impossible(match where_else.is_empty() {
        true => here,
        false => format!("{here}; it exists in {where_else}"),
    })
}

/// Whether product and version have the options that `rule` sets for `value`.
fn fits_version(server: &ConfigServer, rule: &RenderRule, value: &Value) -> bool {
    let Some(set) = settings(rule, value) else { return false };
    rule.on.iter().any(|on| on.covers(server.product))
        && rule.span.holds(server.version)
        && set.keys().all(|option| works(server, option))
}

/// The rule's options for `value`: those for that value, otherwise those for any value.
fn settings<'a>(rule: &'a RenderRule, value: &Value) -> Option<&'a Settings> {
    let of_value = rule.values.iter().find(|(word, _)| value.is(word)).map(|(_, set)| set);
    // A word such as `off` has options only under its own name. The options for any value need a
    // number, which a word lacks.
    let is_word = matches!(value, Value::Word(_)) && !rule.values.is_empty();
    of_value.or_else(|| rule.set.as_ref().filter(|_| !is_word))
}

fn works(server: &ConfigServer, option: &str) -> bool {
    let option = option.strip_prefix("skip_").unwrap_or(option);
    IntentData::get()
        .option(server.product, server.version, option)
        .is_some_and(|range| range.state != OptionState::Ignored)
}

/// The engine or plugin that `rule` needs and this variant or build does not have.
fn lacks(server: &ConfigServer, rule: &RenderRule) -> Option<String> {
    if let Some(engine) = rule.engine.as_ref().filter(|engine| **engine != server.engine) {
        return Some(format!(
            "it applies only to {engine} tables: set options.engine = \"{engine}\" in the variant"
        ));
    }
    let plugin = rule.plugin.as_ref().filter(|plugin| !server.has_plugin(plugin))?;
    Some(format!("it needs the plugin {plugin}, which this build of {} does not have", server.title))
}

fn beyond(server: &ConfigServer, intent: &Intent, limit: &Limit, requested: &Value) -> Option<String> {
    if !limit.on.iter().any(|on| on.covers(server.product)) || !limit.span.holds(server.version) {
        return None;
    }
    let number = requested.number()?;
    let bound = |text: &Option<String>| text.as_deref().and_then(|text| value::limit(intent.kind, text));
    let said = |text: &Option<String>| text.clone().unwrap_or_default();
    if bound(&limit.least).is_some_and(|least| number < least) {
        return Some(format!("{} takes {} or more", server.title, said(&limit.least)));
    }
    if bound(&limit.most).is_some_and(|most| number > most) {
        return Some(format!("{} takes at most {}", server.title, said(&limit.most)));
    }
    None
}

/// Words that the server accepts for the intent. The result is `None` when it does not have the
/// feature at all.
fn takes<'a>(server: &ConfigServer, intent: &'a Intent) -> Option<Vec<&'a str>> {
    let mut is_there = false;
    let mut words = Vec::new();
    for rule in &intent.way {
        if !rule.on.iter().any(|on| on.covers(server.product)) || !rule.span.holds(server.version) {
            continue;
        }
        is_there |= rule.set.as_ref().is_some_and(|set| set.keys().all(|option| works(server, option)));
        let fit = rule.values.iter().filter(|(_, set)| set.keys().all(|option| works(server, option)));
        words.extend(fit.map(|(word, _)| word.as_str()));
    }
    words.sort_unstable();
    words.dedup();
    (is_there || !words.is_empty()).then_some(words)
}

fn is_absent_as_requested(server: &ConfigServer, intent: &Intent, requested: &Value) -> bool {
    intent.absent.iter().any(|absent| {
        let of_product = absent.on.is_empty() || absent.on.iter().any(|on| on.covers(server.product));
        of_product && absent.span.holds(server.version) && requested.is(&absent.value)
    })
}

fn add(
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
    if let Value::Size(bytes) = requested.value {
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

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
