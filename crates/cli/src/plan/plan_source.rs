//! Finds the requested plan: a file, a plan that ships, a plan from command-line flags, or the
//! quickstart. The plans that ship with dbdyno, and the files that they refer to, are in the folder
//! `plans`.

use std::path::{Path, PathBuf};

use dbdyno_model::PlanDuration;
use dbdyno_plan::{Plan, QUICKSTART, closest};
use dbdyno_workloads::plans::{STEP_TIME, marked, parse, parse_with, read_with};
use serde::Serialize;
use toml::{Table, Value};

use crate::args::{PlanFlags, PlanSource};
use crate::exit::ExitError;
use crate::host::give_cpus;
use crate::plan::forecast::{self, Sizes};
use crate::{files, terminal};

pub(crate) fn plan(source: &PlanSource, overrides: &[(String, String)]) -> Result<Plan, ExitError> {
    let mut plan = read(source, overrides)?;
    give_cpus(&mut plan);
    Ok(plan)
}

/// Reads the plan as it is written.
pub(crate) fn read(source: &PlanSource, overrides: &[(String, String)]) -> Result<Plan, ExitError> {
    let size = source.size.iter().map(|name| ("size".to_owned(), name.clone()));
    let overrides: &[(String, String)] = &size.chain(overrides.iter().cloned()).collect::<Vec<_>>();
    if let Some(path) = &source.plan {
        let shipped = path.to_str().and_then(|path| path.strip_prefix('@'));
        let path = shipped.map_or(Ok(path.clone()), unpacked)?;
        return Ok(read_with(&path, overrides)?);
    }
    if source.spelt.workload.is_none() {
        return Ok(parse_with(QUICKSTART, "the built-in quickstart", overrides)?);
    }
    let mut table = table(&source.spelt)?;
    if let Some(time) = &source.spelt.time {
        say_sizes(&forecast::fit_sizes(&mut table, overrides)?, time);
    }
    let plan = parse_with(&text(&table)?, "the plan of the command line", overrides)?;
    if let Some(path) = &source.save {
        save(path, &text(&with_overrides(table, overrides)?)?)?;
    }
    Ok(plan)
}

/// Prints the sizes that were chosen for steps of this time.
pub(crate) fn say_sizes(sizes: &Sizes, time: &PlanDuration) {
    if !sizes.is_empty() {
        let words = forecast::sizes_in_words(sizes);
        terminal::note(&format!(
            "for steps of {time}: {words}; --set workload.NAME.OPTION=VALUE sets others"
        ));
    }
}

/// Writes a plan, but never over an existing file.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), ExitError> {
    let file = std::fs::File::create_new(path);
    file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes())).map_err(|error| {
        let advice = "name another file";
        ExitError::machine(format!("cannot write the plan to {}: {error}; {advice}", path.display()))
    })?;
    terminal::note(&format!("plan: {}", path.display()));
    Ok(())
}

/// Makes a plan from the flags.
pub(crate) fn table(spelt: &PlanFlags) -> Result<Table, ExitError> {
    let mut variants = variants(&spelt.servers, &spelt.configs, &spelt.addresses);
    if let Some(name) = &spelt.password_env {
        let at_addresses = variants.iter_mut().filter_map(Value::as_table_mut);
        for variant in at_addresses.filter(|variant| variant.contains_key("address")) {
            variant.insert("password_env".to_owned(), name.clone().into());
        }
    }
    if variants.is_empty() {
        let message = "--workload needs a server: --server NAME or --address URL";
        return Err(ExitError::usage(message.to_owned()));
    }
    let mut options = Table::new();
    if !spelt.tests.is_empty() {
        options.insert("tests".to_owned(), spelt.tests.clone().into());
    }
    if let Some(connections) = &spelt.connections {
        options.insert("connections".to_owned(), numbers(connections));
    }
    let workload = spelt.workload.as_deref().unwrap_or_default();
    if let Some(time) = &spelt.time {
        options.extend(times_of(workload).into_iter().map(|key| (key, time.to_string().into())));
    }
    Ok(plan_of(variants, workload, options))
}

/// Returns the options that `--time` sets. A workload without such an option gets `time`, which the
/// plan's check refuses.
fn times_of(workload: &str) -> Vec<String> {
    let times = marked(workload, STEP_TIME);
    if times.is_empty() { vec!["time".to_owned()] } else { times }
}

pub(crate) fn resolved(plan: &Table) -> Result<Table, ExitError> {
    let plan = parse(&text(plan)?, "the plan")?;
    text(&plan)?.parse().map_err(ExitError::ours)
}

pub(crate) fn options(plan: &Table, workload: &str) -> Table {
    let of = |table: &Table, key: &str| table.get(key).and_then(Value::as_table).cloned().unwrap_or_default();
    of(&of(plan, "workload"), workload)
}

pub(crate) fn plan_of(variants: Vec<Value>, workload: &str, options: Table) -> Table {
    let names: Vec<&str> = variants.iter().filter_map(|variant| variant["name"].as_str()).collect();
    let mut plan = Table::new();
    plan.insert("name".to_owned(), folder_name(&names.join("-vs-")).into());
    plan.insert("variant".to_owned(), Value::Array(variants));
    plan.insert("workload".to_owned(), Table::from_iter([(workload.to_owned(), options.into())]).into());
    plan
}

/// Applies `--set`, `--blocks` and similar flags to `table`, so that the saved plan is the plan
/// that ran.
fn with_overrides(mut table: Table, overrides: &[(String, String)]) -> Result<Table, ExitError> {
    for (key, text) in overrides {
        if key.starts_with("variant.") {
            let message = format!("--save writes no --set {key}; change the file after it is written");
            return Err(ExitError::usage(message));
        }
        let read = format!("value = {text}").parse::<Table>().ok();
        let value = read.and_then(|mut read| read.remove("value")).unwrap_or_else(|| text.as_str().into());
        let (folders, last) = key.rsplit_once('.').unwrap_or(("", key));
        let mut place = &mut table;
        for folder in folders.split('.').filter(|folder| !folder.is_empty()) {
            let inner = place.entry(folder).or_insert_with(|| Table::new().into());
            match inner {
                Value::Table(inner) => place = inner,
                // Parsing has already refused the plan for this key.
                _ => return Ok(table),
            }
        }
        place.insert(last.to_owned(), value);
    }
    Ok(table)
}

/// Reads a list of numbers as a list. The workload reads anything else.
fn numbers(text: &str) -> Value {
    let numbers: Result<Vec<i64>, _> = text.split(',').map(|number| number.trim().parse()).collect();
    numbers.map_or_else(|_| text.into(), Value::from)
}

/// Makes a variant of each server with each config, then one of each address.
pub(crate) fn variants(servers: &[String], configs: &[PathBuf], addresses: &[String]) -> Vec<Value> {
    let configs: Vec<Option<&PathBuf>> = match configs {
        [] => vec![None],
        several => several.iter().map(Some).collect(),
    };
    let mut all = Vec::new();
    for server in servers {
        for config in &configs {
            let stem = config.and_then(|path| path.file_stem()).filter(|_| configs.len() > 1);
            let suffix = stem.map_or_else(String::new, |stem| format!("-{}", stem.to_string_lossy()));
            let mut variant = Table::new();
            variant.insert("name".to_owned(), format!("{server}{suffix}").into());
            variant.insert("server".to_owned(), server.clone().into());
            if let Some(config) = config {
                // The path becomes absolute, because the plan may be saved elsewhere.
                let path = std::path::absolute(config).unwrap_or_else(|_| (*config).clone());
                variant.insert("config".to_owned(), path.display().to_string().into());
            }
            all.push(variant.into());
        }
    }
    for (number, address) in addresses.iter().enumerate() {
        let name = format!("address-{}", number + 1);
        let entries = [("name", name), ("address", address.clone())];
        all.push(Table::from_iter(entries.map(|(key, value)| (key.to_owned(), value.into()))).into());
    }
    all
}

pub(crate) fn text(plan: &impl Serialize) -> Result<String, ExitError> {
    toml::to_string(plan).map_err(ExitError::ours)
}

/// Returns a name that a run directory may have, and that is not too long.
fn folder_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '-' };
    name.chars().map(allowed).take(60).collect()
}

/// Path below the folder `plans`, and text of a file.
type ShippedFile = (&'static str, &'static str);

const SHIPPED_FILES: &[ShippedFile] = include!(concat!(env!("OUT_DIR"), "/plans.rs"));

pub(crate) fn shipped_file(name: &str) -> Result<ShippedFile, ExitError> {
    let is_asked = |(path, _): &&ShippedFile| *path == name || path.strip_suffix(".toml") == Some(name);
    SHIPPED_FILES.iter().find(is_asked).copied().ok_or_else(|| unknown_plan(name))
}

/// Returns name and text of each plan. Plans are in the folder itself, and the files that they
/// refer to are in folders below it.
pub(crate) fn shipped_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let plans = SHIPPED_FILES.iter().filter(|(path, _)| !path.contains('/'));
    plans.filter_map(|(path, text)| Some((path.strip_suffix(".toml")?, *text)))
}

fn unknown_plan(name: &str) -> ExitError {
    let known: Vec<&str> = shipped_names().map(|(name, _)| name).collect();
    let suggestion =
        closest(name, &known).map_or_else(String::new, |suggestion| format!("did you mean {suggestion}? "));
    ExitError::usage(format!("no plan that ships is called {name:?}; {suggestion}`dbdyno plans` lists all"))
}

/// Writes all plans and the files that they refer to into the user's cache folder, and returns the
/// path of the plan of this name.
pub(crate) fn unpacked(name: &str) -> Result<PathBuf, ExitError> {
    let (path, _) = shipped_file(name)?;
    let cache = files::user_folder("XDG_CACHE_HOME", ".cache");
    let folder = cache.unwrap_or_else(std::env::temp_dir).join("dbdyno/plans");
    let write = |(path, text): &ShippedFile| {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
        std::fs::write(file, text)
    };
    SHIPPED_FILES.iter().try_for_each(write).map_err(|error| {
        let advice = "set XDG_CACHE_HOME to a folder of yours, or use dbdyno plans show";
        ExitError::machine(format!("cannot write the plans to {}: {error}; {advice}", folder.display()))
    })?;
    Ok(folder.join(path))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn text_of(flags: &[&str]) -> String {
        let spelt = PlanFlags::parse_from([&["dbdyno"], flags].concat());
        table(&spelt).and_then(|table| text(&table)).unwrap_or_else(|ended| panic!("{ended:?}"))
    }

    #[test]
    fn flags_make_a_plan() {
        let flags = ["--server", "mysql-5.7.22", "--server", "mysql-8.0.31", "--workload", "oltp"];
        let more = ["--test", "point-select", "--connections", "1,16", "--time", "30s"];
        insta::assert_snapshot!(text_of(&[&flags[..], &more[..]].concat()), @r#"
        name = "mysql-5.7.22-vs-mysql-8.0.31"

        [[variant]]
        name = "mysql-5.7.22"
        server = "mysql-5.7.22"

        [[variant]]
        name = "mysql-8.0.31"
        server = "mysql-8.0.31"

        [workload.oltp]
        connections = [1, 16]
        tests = ["point-select"]
        time = "30s"
        "#);
    }

    #[test]
    fn the_time_is_that_of_all_kinds_of_steps_of_a_workload() {
        let of = ["oltp", "microbenchmarks", "insert-benchmark", "dbt3", "nonesuch"]
            .map(|workload| times_of(workload).join(" "));
        assert_eq!(of, ["time", "read_time write_time", "read_write_time", "time", "time"]);
    }

    #[test]
    fn a_saved_plan_has_the_values_of_other_flags() {
        let spelt = PlanFlags::parse_from(["dbdyno", "--server", "a", "--workload", "w"]);
        let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let overrides = [
            set("blocks", "5"),
            set("budget", "2h"),
            set("workload.w.sizes", "[1, 2]"),
            set("host.rest", "1s"),
        ];
        let plan = with_overrides(table(&spelt).unwrap(), &overrides).unwrap();
        assert_eq!((&plan["blocks"], &plan["budget"]), (&5.into(), &"2h".into()));
        assert_eq!(plan["workload"]["w"]["sizes"], Value::Array(vec![1.into(), 2.into()]));
        assert_eq!(plan["host"]["rest"], "1s".into());
        assert!(with_overrides(plan, &[set("variant.a.own_config", "x")]).is_err());
    }

    #[test]
    fn each_server_has_each_config_and_addresses_follow() {
        let flags = ["--server", "a", "--config", "/x/one.toml", "--config", "/x/two.toml"];
        let more = "--address mysql://u@h/d --password-env DB_PASSWORD --workload oltp --connections 1..64";
        let more: Vec<&str> = more.split(' ').collect();
        insta::assert_snapshot!(text_of(&[&flags[..], &more[..]].concat()), @r#"
        name = "a-one-vs-a-two-vs-address-1"

        [[variant]]
        config = "/x/one.toml"
        name = "a-one"
        server = "a"

        [[variant]]
        config = "/x/two.toml"
        name = "a-two"
        server = "a"

        [[variant]]
        address = "mysql://u@h/d"
        name = "address-1"
        password_env = "DB_PASSWORD"

        [workload.oltp]
        connections = "1..64"
        "#);
    }
}
