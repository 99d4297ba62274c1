//! Applies `[size.NAME]`: a plan in another size, for a smaller machine or less time. The keys of
//! the size are laid over the plan.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::overrides;
use crate::setup::{lay_key, text};

/// The override's key that names a size.
pub(crate) const KEY: &str = "size";

/// Lays the size `name` over the plan `root`.
pub(crate) fn apply(root: &mut DeTable<'_>, name: &str) -> Result<(), String> {
    let sizes = root.get("size").and_then(|sizes| sizes.get_ref().as_table());
    let known: Vec<String> =
        sizes.into_iter().flatten().map(|(name, _)| name.get_ref().to_string()).collect();
    let found = sizes.and_then(|sizes| sizes.get(name)).map(|size| size.get_ref().clone());
    let Some(DeValue::Table(size)) = found else {
        let known =
            if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        return Err(format!("the plan has no size `{name}`; {known}"));
    };
    let about = text(&size, "about").unwrap_or_default().to_owned();
    for (key, value) in size {
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("about", _) => {}
            ("variants", DeValue::Array(names)) => {
                let names: Vec<String> =
                    names.iter().filter_map(|name| name.get_ref().as_str()).map(str::to_owned).collect();
                keep_variants(root, &names)?;
            }
            ("config", _) => each(root, "variant", |variant| add_config(variant, &value)),
            (list @ ("setup" | "variant"), DeValue::Table(named)) => {
                for (name, above) in named {
                    let mut found = false;
                    each(root, list, |table| {
                        if text(table, "name") == Some(name.get_ref()) {
                            lay_over_keys(table, above);
                            found = true;
                        }
                    });
                    if !found {
                        return Err(format!(
                            "the size names the {list} `{}`, which the plan lacks",
                            name.get_ref()
                        ));
                    }
                }
            }
            _ => lay_key(root, key, value),
        }
    }
    let said = format!("{name}: {about}");
    overrides::set(root, "report.size", 0..0, Spanned::new(0..0, DeValue::String(said.into())))
}

/// Calls `change` for every table of the list `[[list]]`.
fn each<'a>(root: &mut DeTable<'a>, list: &str, mut change: impl FnMut(&mut DeTable<'a>)) {
    if let Some(DeValue::Array(tables)) = root.get_mut(list).map(Spanned::get_mut) {
        for table in tables.iter_mut() {
            if let DeValue::Table(table) = table.get_mut() {
                change(table);
            }
        }
    }
}

/// Lays the keys of a size over a table. An empty text takes a key away.
fn lay_over_keys<'a>(below: &mut DeTable<'a>, above: &Spanned<DeValue<'a>>) {
    let DeValue::Table(above) = above.get_ref() else { return };
    for (key, value) in above.clone() {
        if value.get_ref().as_str() == Some("") {
            below.remove(&**key.get_ref());
            continue;
        }
        lay_key(below, key, value);
    }
}

/// Adds intents to a variant's config. A config with one part becomes a list, whose last part wins.
fn add_config<'a>(variant: &mut DeTable<'a>, intents: &Spanned<DeValue<'a>>) {
    let Some(config) = variant.get_mut("config") else { return };
    match config.get_mut() {
        DeValue::Array(parts) => parts.push(intents.clone()),
        _ => {
            let mut parts = DeArray::new();
            parts.push(config.clone());
            parts.push(intents.clone());
            *config = Spanned::new(config.span(), DeValue::Array(parts));
        }
    }
}

/// Takes all variants but these out of the plan, and also sections that are left with fewer than
/// two variants.
fn keep_variants(root: &mut DeTable<'_>, names: &[String]) -> Result<(), String> {
    let kept = |name: &str| names.iter().any(|kept| kept == name);
    let mut found = Vec::new();
    retain(root, "variant", |variant| {
        let name = text(variant, "name").unwrap_or_default().to_owned();
        let is_kept = kept(&name);
        found.push(name);
        is_kept
    });
    if let Some(unknown) = names.iter().find(|name| !found.contains(name)) {
        return Err(format!("the size names the variant `{unknown}`; the plan has {}", found.join(", ")));
    }
    if text(root, "base").is_some_and(|base| !kept(base)) {
        root.remove("base");
    }
    retain(root, "section", |section| {
        let Some(DeValue::Array(variants)) = section.get_mut("variants").map(Spanned::get_mut) else {
            return true;
        };
        let mut left = DeArray::new();
        for variant in variants.iter().filter(|name| name.get_ref().as_str().is_some_and(kept)) {
            left.push(variant.clone());
        }
        *variants = left;
        variants.len() > 1 && text(section, "base").is_none_or(kept)
    });
    Ok(())
}

fn retain<'a>(root: &mut DeTable<'a>, list: &str, mut keep: impl FnMut(&mut DeTable<'a>) -> bool) {
    let Some(DeValue::Array(tables)) = root.get_mut(list).map(Spanned::get_mut) else { return };
    let mut left = DeArray::new();
    for table in tables.iter() {
        let mut table = table.clone();
        let is_kept = match table.get_mut() {
            DeValue::Table(table) => keep(table),
            _ => true,
        };
        if is_kept {
            left.push(table);
        }
    }
    *tables = left;
}

#[cfg(test)]
mod tests {
    use crate::fake::parse_with;

    const PLAN: &str = r#"
name = "p"
base = "c"
[[variant]]
name = "a"
server = "mysql-8.0.36"
config = "a.toml"
[[variant]]
name = "b"
server = "mysql-8.0.36"
own_config = "b.cnf"
[[variant]]
name = "c"
server = "null"
[[setup]]
name = "big"
workload.fake = { rows = 100 }
[[section]]
title = "A and B"
variants = ["a", "b"]
[[section]]
title = "A and C"
variants = ["a", "c"]
[workload.fake]
rows = 10
[size.small]
about = "rows / 10"
variants = ["a", "b"]
blocks = 3
config = { redo = "1 MiB" }
workload.fake = { deep = { one = 1 } }
setup.big.workload.fake = { rows = 10 }
variant.b = { server = "mysql-8.0.31", own_config = "" }
"#;

    fn sized(name: &str) -> Result<crate::Plan, String> {
        let size = ("size".to_owned(), name.to_owned());
        let more = ("blocks".to_owned(), "4".to_owned());
        parse_with(PLAN, "p.toml", &[more, size]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_size_changes_what_it_names_and_an_override_goes_before_it() {
        let plan = sized("small").unwrap_or_else(|error| panic!("{error}"));
        let names: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!((names, plan.blocks, plan.base_name()), (vec!["a", "b"], 4, "a"));
        assert_eq!(plan.variants[0].config.as_ref().map(|config| config.parts().len()), Some(2));
        assert_eq!(plan.variants[1].server.as_deref(), Some("mysql-8.0.31"));
        assert_eq!(plan.variants[1].own_config, None, "an empty text takes a key away");
        let options = plan.workload.get("fake@big").map(|options| options.values());
        assert_eq!(options.map(|options| options["rows"].clone()), Some(10.into()));
        let titles: Vec<&str> = plan.sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["A and B"], "a section whose variants do not run is left out");
        assert_eq!(plan.report.size.as_deref(), Some("small: rows / 10"));
        let again = crate::fake::parse(&toml::to_string(&plan).expect("a text"), "own output");
        assert_eq!(again.unwrap_or_else(|error| panic!("{error}")), plan);
    }

    #[test]
    fn a_size_that_the_plan_lacks_is_refused_with_those_that_it_has() {
        insta::assert_snapshot!(sized("tiny").expect_err("no such size"), @"--set size: the plan has no size `tiny`; it has small");
    }
}
