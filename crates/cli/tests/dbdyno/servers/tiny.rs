//! Makes a tiny version of a shipped plan: few rows, short steps, one block and little memory. The
//! nearest installed server replaces each server that is not installed.

use std::path::Path;

use toml::{Table, Value};

use crate::support::Desk;

/// A plan that differs from the shipped one only in sizes and servers.
pub(crate) struct Tiny {
    pub(crate) table: Table,
    /// The replacements for messages, such as `mariadb-10.2.11 by mariadb-10.1.23`.
    pub(crate) replaced: Vec<String>,
    /// Variants that differ from an earlier variant only in their name, because one server replaces
    /// the servers of both.
    pub(crate) lost: Vec<String>,
}

/// Sizes for each workload. Options of the plan that are not listed remain.
const SIZES: &[(&str, &str)] = &[
    (
        "insert-benchmark",
        "clients = 1\nload_rows = 1000\nwrite_rows = 200\nread_write_time = \"1s\"\nrates = [100]\nsettle_wait = \"0s\"\n\
         time_cap = 100.0",
    ),
    (
        "oltp",
        "tables = 2\ntable_size = 2000\nconnections = [2]\nevents = 300\nwarmup = \"0s\"\nsettle_wait = \"0s\"\n\
         time_cap = 100.0",
    ),
    ("pgbench", "scale = 1\nconnections = [2]\ntransactions = 50\nsettle = { by = \"none\" }"),
    ("dbt3", "scale_factor = 0.01\nsettle = { by = \"none\" }"),
    (
        "microbenchmarks",
        "tables = 2\ntable_size = 300\nconnections = [2]\noperations = 5\nwarm_scan_time = \"1s\"\nsettle_wait = \"0s\"\n\
         time_cap = 100.0",
    ),
];

/// The steps for a plan that names none. Other tests run all steps.
const STEPS: &[(&str, &str)] = &[
    ("microbenchmarks", "steps = [\"update-*\", \"read-write*\", \"point-query*\", \"scan\"]"),
    ("dbt3", "queries = [3, 6]"),
];

/// Options for a duration, which are removed because a number of operations replaces them.
const LENGTHS: &[&str] = &["time", "read_time", "write_time"];

/// Sizes for option files.
const MEMORY: &[(&str, &str)] =
    &[("innodb_buffer_pool_size", "64M"), ("innodb_log_file_size", "32M"), ("shared_buffers", "64MB")];

/// The tiny version of the plan at `path` for the installed `servers`. Each address is replaced
/// with `address`.
pub(crate) fn tiny(path: &Path, servers: &[String], address: &str) -> Tiny {
    let mut table: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
    table.insert("blocks".to_owned(), Value::Integer(1));
    // The table `host` is removed, because its CPUs depend on the machine.
    table.remove("host");
    let (mut replaced, mut lost) = (Vec::new(), Vec::new());
    let mut variants: Vec<Value> = Vec::new();
    for mut variant in table["variant"].as_array().unwrap().clone() {
        shrink_variant(variant.as_table_mut().unwrap(), servers, address, &mut replaced);
        if variants.iter().any(|known| nameless(known) == nameless(&variant)) {
            lost.push(variant["name"].as_str().unwrap().to_owned());
        }
        variants.push(variant);
    }
    table.insert("variant".to_owned(), Value::Array(variants));
    for (name, workload) in table["workload"].as_table_mut().unwrap() {
        let kind = name.split('@').next().unwrap();
        let (_, sizes) = SIZES.iter().find(|(known, _)| *known == kind).unwrap();
        let workload = workload.as_table_mut().unwrap();
        // A plan that was written with all its defaults names all steps.
        let all = [Value::Array((1..=22).map(Value::Integer).collect()), Value::Array(vec!["*".into()])];
        workload.retain(|key, value| key != "settle" && !LENGTHS.contains(&key) && !all.contains(value));
        workload.extend(sizes.parse::<Table>().unwrap());
        let steps = STEPS.iter().filter(|(known, _)| *known == kind);
        for (key, steps) in steps.flat_map(|(_, steps)| steps.parse::<Table>().unwrap()) {
            workload.entry(key).or_insert(steps);
        }
    }
    Tiny { table, replaced, lost }
}

fn shrink_variant(variant: &mut Table, servers: &[String], address: &str, replaced: &mut Vec<String>) {
    if variant.contains_key("address") {
        variant.insert("address".to_owned(), Value::String(address.to_owned()));
    }
    let server = variant.get("server").and_then(Value::as_str).unwrap_or("sqlite").to_owned();
    if server == "sqlite" {
        return;
    }
    let here = nearest(&server, servers);
    if *here != server {
        replaced.push(format!("{server} by {here}"));
        variant.insert("server".to_owned(), Value::String(here.to_owned()));
    }
    if let Some(config) = variant.remove("config") {
        let mut parts = match config {
            Value::Array(parts) => parts,
            one => vec![one],
        };
        let mut sizes = "buffer_pool = \"64 MiB\"\nredo = \"64 MiB\"\n".to_owned();
        let engine = variant.get("options").and_then(|options| options.get("engine"));
        if engine.and_then(Value::as_str) == Some("rocksdb") {
            sizes += "rocksdb_block_cache = \"64 MiB\"\n";
        }
        parts.push(Value::Table(sizes.parse().unwrap()));
        variant.insert("config".to_owned(), Value::Array(parts));
    }
}

/// The variant without its name.
fn nameless(variant: &Value) -> Table {
    let mut table = variant.as_table().unwrap().clone();
    table.remove("name");
    table.remove("published");
    table
}

/// `wanted` if it is installed, otherwise the server of the same product with the nearest version.
fn nearest<'a>(wanted: &str, servers: &'a [String]) -> &'a str {
    let product = wanted.split('-').next().unwrap();
    let of_product = servers.iter().filter(|name| name.split('-').next() == Some(product));
    let found = of_product.min_by_key(|name| (*name != wanted, number(name).abs_diff(number(wanted))));
    found.unwrap_or_else(|| {
        panic!("no server of {product} here for {wanted}; `cargo xtask servers` gets some")
    })
}

/// The version as a number: 101105 for `mariadb-10.11.5`, and 90000 for `mysql-9-sid`.
fn number(name: &str) -> u64 {
    let version = name.split('-').nth(1).unwrap();
    let mut parts = version.split('.').map(|part| part.parse::<u64>().unwrap());
    [10_000, 100, 1].iter().map(|weight| weight * parts.next().unwrap_or(0)).sum()
}

/// Copies the plans' folder of configs to `desk`, and lowers the memory sizes.
pub(crate) fn write_configs(plans: &Path, desk: &Desk) {
    for entry in std::fs::read_dir(plans.join("configs")).unwrap().flatten() {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let line = |line: &str| {
            let size = MEMORY.iter().find(|(name, _)| line.starts_with(name));
            size.map_or_else(|| line.to_owned(), |(name, size)| format!("{name} = {size}")) + "\n"
        };
        let text: String = text.lines().map(line).collect();
        desk.write(&format!("configs/{}", entry.file_name().to_str().unwrap()), &text);
    }
}

#[test]
fn variants_that_one_server_stands_for_are_reported() {
    let desk = Desk::new();
    let variant =
        |name: &str, server: &str| format!("[[variant]]\nname = \"{name}\"\nserver = \"{server}\"\n");
    let variants = variant("old", "mariadb-10.1.23") + &variant("new", "mariadb-10.2.11");
    let path = desk.write("p.toml", &format!("name = \"p\"\n{variants}[workload.oltp]\n"));
    let lost = |servers: &[&str]| {
        let servers: Vec<String> = servers.iter().map(|name| (*name).to_owned()).collect();
        tiny(&path, &servers, "").lost
    };
    assert_eq!(lost(&["mariadb-10.1.23", "mariadb-10.2.44"]), [""; 0]);
    assert_eq!(lost(&["mariadb-10.1.23"]), ["new"]);
}

#[test]
fn the_nearest_server_is_of_the_same_product() {
    let servers = ["mariadb-10.1.23", "mariadb-11.8-debian", "mysql-8.0.31", "mysql-9-sid", "pg-9.6.24"];
    let servers = servers.map(str::to_owned);
    let found =
        ["mariadb-10.2.11", "mariadb-12.3.3", "mysql-8.0.31", "mysql-9.7.4", "mysql-5.6.24", "pg-18.6"]
            .map(|wanted| nearest(wanted, &servers));
    let expected = [
        "mariadb-10.1.23",
        "mariadb-11.8-debian",
        "mysql-8.0.31",
        "mysql-9-sid",
        "mysql-8.0.31",
        "pg-9.6.24",
    ];
    assert_eq!(found, expected);
}
