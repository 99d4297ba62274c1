//! What would fail in every cell of a server that dbdyno starts, seen before it is started: too few
//! connections, an engine that its build lacks.

use std::path::Path;

use dbdyno_db::server::intents::{ConfigServer, option_at};
use dbdyno_db::server::{Base, servers_dir};
use dbdyno_fetch::answer_of;
use dbdyno_model::Variant;
use dbdyno_plan::Plan;
use dbdyno_products::{VariantKind, engine_of};

use crate::configs::VariantConfig;
use crate::limits::OTHER_CONNECTIONS;

/// What the option file of a server says, the variant's own and what its intents became.
pub(crate) struct Configured<'a> {
    /// Names with underscores and values of the variant's own file, which wins.
    pub(crate) own: &'a [(String, Option<String>)],
    pub(crate) config: Option<&'a VariantConfig>,
}

impl Configured<'_> {
    /// The value of an option, and who says so.
    fn value(&self, option: &str, file: Option<&Path>) -> Option<(String, String)> {
        let own = self.own.iter().rev().find(|(name, _)| name == option);
        let own = own.and_then(|(_, value)| value.clone());
        let of_file = |value| (value, format!("{option} in {}", file.unwrap_or(Path::new("")).display()));
        let of_intents = || {
            let settings = &self.config?.rendered.settings;
            let setting = settings.iter().find(|setting| setting.name == option)?;
            Some((setting.value.clone()?, format!("{option}, by {} of its config", setting.intent)))
        };
        own.map(of_file).or_else(of_intents)
    }

    /// Whether a plugin with `word` in its name is loaded, or plugins lie elsewhere.
    fn brings_plugins(&self, word: &str) -> bool {
        let of_intents = self.config.map(|config| &config.rendered.settings[..]).unwrap_or_default();
        let of_intents = of_intents.iter().map(|setting| (&setting.name, &setting.value));
        let own = self.own.iter().map(|(name, value)| (name, value));
        own.chain(of_intents).any(|(name, value)| {
            let names_it = value.as_ref().is_some_and(|value| value.to_lowercase().contains(word));
            name == "plugin_dir" || (name.contains("plugin_load") && names_it)
        })
    }
}

/// Refuses a server that would take fewer connections than the plan opens. Values that are no
/// number are left to the server.
pub(crate) fn check_connections(
    plan: &Plan,
    variant: &Variant,
    base: &Base,
    configured: &Configured<'_>,
) -> Result<(), String> {
    let server = ConfigServer::of_base(base, "");
    let default =
        |option| option_at(server.product, server.version, option).map(|range| range.default.clone());
    let file = variant.own_config.as_deref();
    let option = "max_connections";
    let said = configured.value(option, file);
    let said = said.or_else(|| Some((default(option)?, format!("{option}, its default"))));
    let Some((most, who)) = said else { return Ok(()) };
    let reserved = match base.family.facts().reserved_connections {
        None => Some(0),
        Some((option, default)) => {
            configured.value(option, file).map_or(Some(default), |(value, _)| value.parse().ok())
        }
    };
    let (Ok(most), Some(reserved)) = (most.parse::<u64>(), reserved) else { return Ok(()) };
    let need = u64::from(plan.workload.most_connections()) + OTHER_CONNECTIONS;
    let room = most.saturating_sub(reserved);
    if need <= room {
        return Ok(());
    }
    let kept = if reserved > 0 { format!(", {reserved} of them kept for superusers") } else { String::new() };
    Err(format!(
        "the plan opens {need} connections, and the server would take {most}{kept} ({who}); raise it, or plan fewer connections"
    ))
}

/// Refuses an engine that the build is known not to have, by what it answered when it was got or
/// added, and gives a warning about one that it is not known to have.
pub(crate) fn check_engine(
    variant: &Variant,
    base: &Base,
    configured: &Configured<'_>,
) -> Result<Option<String>, String> {
    let (Some(engine), Some(built_in)) = (engine_of(variant), base.family.built_in_engines(base)) else {
        return Ok(None);
    };
    if configured.brings_plugins(&engine) {
        return Ok(None);
    }
    let answer = match VariantKind::of(variant) {
        VariantKind::Named(name) => answer_of(&servers_dir(), &name),
        _ => None,
    };
    let title = &base.title;
    if let Some(answer) = answer {
        let engines = &answer.abilities.engines;
        return match engines.iter().any(|known| known.to_lowercase() == engine) {
            true => Ok(None),
            false => Err(format!("{title} has no engine {engine}; it has {}", engines.join(", "))),
        };
    }
    let is_built_in = built_in.contains(&engine.as_str());
    let plugin = format!("ha_{engine}.so");
    let is_plugin = base.plugin_dir.as_ref().is_some_and(|folder| folder.join(&plugin).exists());
    match is_built_in || is_plugin {
        true => Ok(None),
        false => Ok(Some(format!(
            "engine {engine} is none of those that {title} is built with, and {plugin} is not among its plugins: its cells will fail \
             unless this build has it"
        ))),
    }
}
