//! The plan that is asked for: a file, a plan that ships, what the command line spells out, or the quickstart.

use std::path::{Path, PathBuf};

use dbdyno_plan::{Plan, QUICKSTART};
use dbdyno_workloads::plans::{parse_with, read_with};
use toml::{Table, Value};

use crate::args::PlanSource;
use crate::exit::{Ended, MACHINE, OURS, USAGE};
use crate::{auto_time, cpus, shipped, terminal};

/// The plan, with its CPUs.
///
/// # Errors
/// A plan that cannot be read, or a name that there is none of.
pub(crate) fn plan(source: &PlanSource, overrides: &[(String, String)]) -> Result<Plan, Ended> {
    let mut plan = read(source, overrides)?;
    cpus::give(&mut plan);
    Ok(plan)
}

fn read(source: &PlanSource, overrides: &[(String, String)]) -> Result<Plan, Ended> {
    if let Some(path) = &source.plan {
        let shipped = path.to_str().and_then(|path| path.strip_prefix('@'));
        let path = shipped.map_or(Ok(path.clone()), shipped::unpacked)?;
        // A file that cannot be read is for the parser to complain of.
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        return auto_time::plan(&text, overrides, |overrides| Ok(read_with(&path, overrides)?));
    }
    if source.workload.is_none() {
        return Ok(parse_with(QUICKSTART, "the built-in quickstart", overrides)?);
    }
    let text = text(source)?;
    let parse =
        |overrides: &[(String, String)]| Ok(parse_with(&text, "the plan of the command line", overrides)?);
    let plan = auto_time::plan(&text, overrides, parse)?;
    if let Some(path) = &source.save {
        save(path, &text)?;
    }
    Ok(plan)
}

/// Never over a file that is there.
fn save(path: &Path, text: &str) -> Result<(), Ended> {
    let file = std::fs::File::create_new(path);
    file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes())).map_err(|error| {
        let advice = "name another file with --save";
        Ended::new(MACHINE, format!("cannot write the plan to {}: {error}; {advice}", path.display()))
    })?;
    terminal::note(&format!("plan: {}", path.display()));
    Ok(())
}

/// The plan that the flags stand for.
fn text(source: &PlanSource) -> Result<String, Ended> {
    let variants = variants(source);
    if variants.is_empty() {
        let message = "--workload needs what it is to run on: --server NAME or --address URL";
        return Err(Ended::new(USAGE, message.to_owned()));
    }
    let names: Vec<&str> = variants.iter().filter_map(|variant| variant["name"].as_str()).collect();
    let mut options = Table::new();
    if !source.tests.is_empty() {
        options.insert("tests".to_owned(), source.tests.clone().into());
    }
    if let Some(connections) = &source.connections {
        options.insert("connections".to_owned(), numbers(connections));
    }
    if let Some(time) = &source.time {
        options.insert("time".to_owned(), time.to_string().into());
    }
    let workload = source.workload.clone().unwrap_or_default();
    let mut plan = Table::new();
    plan.insert("name".to_owned(), folder_name(&names.join("-vs-")).into());
    plan.insert("variant".to_owned(), Value::Array(variants.clone()));
    plan.insert("workload".to_owned(), Table::from_iter([(workload, Value::Table(options))]).into());
    toml::to_string(&plan).map_err(|error| Ended::new(OURS, error))
}

/// A list of numbers as such; anything else is for the workload to read.
fn numbers(text: &str) -> Value {
    let numbers: Result<Vec<i64>, _> = text.split(',').map(|number| number.trim().parse()).collect();
    numbers.map_or_else(|_| text.into(), Value::from)
}

/// Each server with each config, then the addresses.
fn variants(source: &PlanSource) -> Vec<Value> {
    let configs: Vec<Option<&PathBuf>> = match source.configs.as_slice() {
        [] => vec![None],
        several => several.iter().map(Some).collect(),
    };
    let mut all = Vec::new();
    for server in &source.servers {
        for config in &configs {
            let stem = config.and_then(|path| path.file_stem()).filter(|_| configs.len() > 1);
            let suffix = stem.map_or_else(String::new, |stem| format!("-{}", stem.to_string_lossy()));
            let mut variant = Table::new();
            variant.insert("name".to_owned(), format!("{server}{suffix}").into());
            variant.insert("server".to_owned(), server.clone().into());
            if let Some(config) = config {
                // The plan may be saved elsewhere.
                let path = std::path::absolute(config).unwrap_or_else(|_| (*config).clone());
                variant.insert("config".to_owned(), path.display().to_string().into());
            }
            all.push(variant.into());
        }
    }
    for (number, address) in source.addresses.iter().enumerate() {
        let name = format!("address-{}", number + 1);
        let entries = [("name", name), ("address", address.clone())];
        all.push(Table::from_iter(entries.map(|(key, value)| (key.to_owned(), value.into()))).into());
    }
    all
}

/// What a run directory may be called, and not too long.
fn folder_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '-' };
    name.chars().map(allowed).take(60).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn text_of(flags: &[&str]) -> String {
        text(&PlanSource::parse_from([&["dbdyno"], flags].concat()))
            .unwrap_or_else(|ended| panic!("{ended:?}"))
    }

    #[test]
    fn flags_are_a_plan() {
        let flags = ["--server", "mysql-5.7.22", "--server", "mysql-8.0.31", "--workload", "oltp"];
        let more = ["--test", "point-select", "--connections", "1,16", "--time", "30s"];
        insta::assert_snapshot!(text_of(&[&flags[..], &more].concat()), @r#"
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
    fn each_server_has_each_config_and_addresses_follow() {
        let flags = ["--server", "a", "--config", "/x/one.toml", "--config", "/x/two.toml"];
        let more = ["--address", "mysql://u@h/d", "--workload", "oltp", "--connections", "1..64"];
        insta::assert_snapshot!(text_of(&[&flags[..], &more].concat()), @r#"
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

        [workload.oltp]
        connections = "1..64"
        "#);
    }
}
