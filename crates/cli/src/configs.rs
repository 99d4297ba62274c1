//! The configs of variants: intents read from the plan and its files, rendered for the variant's
//! server.

use std::collections::BTreeMap;

use dbdyno_db::Family;
use dbdyno_db::server::Base;
use dbdyno_db::server::intents::{ConfigServer, Intents, Rendered, render};
use dbdyno_fetch::find_named;
use dbdyno_model::{ConfigPart, Variant};
use dbdyno_plan::Plan;
use dbdyno_products::{VariantKind, engine_of};
use serde_json::{Map, Value};

/// Engine of the benchmark's tables when a plan does not say.
const DEFAULT_ENGINE: &str = "innodb";

#[derive(Debug, Clone)]
pub(crate) struct VariantConfig {
    intents: Intents,
    pub(crate) rendered: Rendered,
    /// The whole option file: what was rendered, then the variant's own settings; of SQLite the
    /// pragmas.
    pub(crate) text: String,
    /// What became of intents that are no option, and what the variant's own file changes.
    pub(crate) notes: Vec<String>,
}

impl VariantConfig {
    pub(crate) fn asked(&self) -> Map<String, Value> {
        self.intents.pairs().into_iter().map(|(name, value)| (name, Value::String(value))).collect()
    }

    /// `error`, and which intents the options come from that it names.
    pub(crate) fn blame(&self, error: String) -> String {
        let blamed = self.rendered.blamed(&error);
        if blamed.is_empty() { error } else { format!("{error}\n{}", blamed.join("\n")) }
    }
}

/// The option file that a variant names.
pub(crate) struct OwnFile {
    pub(crate) text: String,
    /// Names with underscores and values, as the server reads them.
    pub(crate) settings: Vec<(String, Option<String>)>,
}

/// The own option file of `variant`, whose server is `base`, if it names one.
pub(crate) fn own_file(variant: &Variant, base: &Base) -> Result<Option<OwnFile>, String> {
    let Some(path) = &variant.own_config else { return Ok(None) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read own_config {}: {error}", path.display()))?;
    let settings = base.family.native_settings(base, path).map_err(|error| error.to_string())?;
    Ok(Some(OwnFile { text, settings }))
}

/// The config of `variant` for the build `base`; `None` without one. What its own file sets wins.
pub(crate) fn for_base(
    variant: &Variant,
    base: &Base,
    own: Option<&OwnFile>,
) -> Result<Option<VariantConfig>, String> {
    let Some(intents) = intents(variant)? else { return Ok(None) };
    let rendered = rendered(&ConfigServer::of_base(base, &engine(variant)), &intents)?;
    let overridden = own.map(|own| rendered.overridden(&own.settings)).unwrap_or_default();
    Ok(Some(config(intents, rendered, own.map(|own| own.text.as_str()), overridden)))
}

/// The config of a variant on the embedded product; its own settings win.
pub(crate) fn for_embedded(variant: &Variant) -> Result<Option<VariantConfig>, String> {
    let Some(intents) = intents(variant)? else { return Ok(None) };
    let rendered = rendered(&ConfigServer::embedded(), &intents)?;
    let own = Family::EMBEDDED.own_settings(&variant.options).into_iter();
    let native: Vec<_> = own.map(|(name, value)| (name, Some(value))).collect();
    let overridden = rendered.overridden(&native);
    Ok(Some(config(intents, rendered, None, overridden)))
}

/// What is known of a variant's config before its server is asked.
pub(crate) enum Predicted {
    Config(VariantConfig),
    /// Why nothing is known of its server, in a sentence.
    UnknownServer(String),
}

/// The config of `variant` without starting anything, and without the server if only its name is
/// there; `None` for a variant without one.
pub(crate) fn predicted(variant: &Variant) -> Result<Option<Predicted>, String> {
    if VariantKind::of(variant).is_embedded() {
        return Ok(for_embedded(variant)?.map(Predicted::Config));
    }
    if !VariantKind::of(variant).is_started() {
        return Ok(None);
    }
    // Before the build is opened, which runs its program.
    let Some(intents) = intents(variant)? else { return Ok(None) };
    let Some(base) = base_of(variant) else { return Ok(None) };
    let error = match base {
        Ok(base) => {
            let own = own_file(variant, &base)?;
            return Ok(for_base(variant, &base, own.as_ref())?.map(Predicted::Config));
        }
        Err(error) => error.to_string(),
    };
    let Some(server) = server_by_name(variant) else { return Ok(Some(Predicted::UnknownServer(error))) };
    let rendered = rendered(&server, &intents)?;
    let note = format!("{} is not here: product and version are taken from its name", server.title);
    Ok(Some(Predicted::Config(config(intents, rendered, None, vec![note]))))
}

/// The build of a variant whose server dbdyno starts.
fn base_of(variant: &Variant) -> Option<Result<Base, dbdyno_fetch::Error>> {
    match VariantKind::of(variant) {
        VariantKind::BaseDir(path) => Some(Base::open(path).map_err(dbdyno_fetch::Error::from)),
        VariantKind::Named(name) => Some(find_named(&name)),
        VariantKind::Embedded | VariantKind::Null | VariantKind::Address(_) => None,
    }
}

/// What the name of a variant's server says of it.
fn server_by_name(variant: &Variant) -> Option<ConfigServer> {
    ConfigServer::named(variant.server.as_deref()?, &engine(variant))
}

/// By variant of the plan: the server's own cache of pages, where it is known to be the only one. A
/// forecast is made often, so that a server's program is run only where the name does not say what it
/// is.
pub(crate) fn only_cache_bytes(plan: &Plan) -> BTreeMap<String, u64> {
    let of = |variant: &Variant| {
        let intents = intents(variant).ok()??;
        let bytes = intents.bytes("buffer_pool")?;
        let of_build = || Some(ConfigServer::of_base(&base_of(variant)?.ok()?, &engine(variant)));
        let server = server_by_name(variant).or_else(of_build)?;
        let is_only = rendered(&server, &intents).ok()?.bypasses_page_cache();
        is_only.then(|| (variant.name.clone(), bytes))
    };
    plan.variants.iter().filter_map(of).collect()
}

fn config(intents: Intents, rendered: Rendered, native: Option<&str>, more: Vec<String>) -> VariantConfig {
    let text = rendered.text_with(native);
    let notes = rendered.notes.iter().cloned().chain(more).collect();
    VariantConfig { intents, rendered, text, notes }
}

/// Engine of the benchmark's tables, in small letters.
pub(crate) fn engine(variant: &Variant) -> String {
    engine_of(variant).unwrap_or_else(|| DEFAULT_ENGINE.to_owned())
}

/// The parts of a variant's config over each other.
fn intents(variant: &Variant) -> Result<Option<Intents>, String> {
    let Some(config) = &variant.config else { return Ok(None) };
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
    Ok(Some(all))
}

fn rendered(server: &ConfigServer, intents: &Intents) -> Result<Rendered, String> {
    render(server, intents).map_err(|error| indented("config", &error.to_string()))
}

/// One line after `title`, or several lines under it.
fn indented(title: &str, text: &str) -> String {
    match text.contains('\n') {
        true => format!("{title}:\n  {}", text.replace('\n', "\n  ")),
        false => format!("{title}: {text}"),
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
