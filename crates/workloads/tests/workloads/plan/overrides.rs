//! Tests the overrides of `--set KEY=VALUE`, and the errors for files that are missing or wrong.

use std::path::Path;
use std::time::Duration;

use dbdyno_model::CpuList;
use dbdyno_plan::Plan;
use dbdyno_workloads::insert_benchmark::options::InsertBenchmarkOptions;
use dbdyno_workloads::plans::{parse_with, read_with};

const PLAN: &str = r#"name = "p"
[[variant]]
name = "ma-10"
server = "mariadb-10.11"
[[variant]]
name = "ma-10.11"
server = "mariadb-10.11"
[[variant]]
name = "lite"
server = "sqlite"
[[variant]]
name = "there"
address = "mysql://u@h/d"
[workload.insert-benchmark]
clients = 2
"#;

fn with(pairs: &[(&str, &str)]) -> Plan {
    let pairs: Vec<(String, String)> =
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    parse_with(PLAN, "plan.toml", &pairs).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn values_are_toml_or_otherwise_text() {
    let plan = with(&[
        ("blocks", "7"),
        ("margin", "0.5"),
        ("name", "quick"),
        ("workload.insert-benchmark.rates", "[10, 20]"),
        ("workload.insert-benchmark.read_write_time", "5s"),
        ("workload.insert-benchmark.deletes", "false"),
        ("workload.insert-benchmark.rows_per_commit.load", "1000"),
    ]);
    assert_eq!((plan.blocks, plan.margin, plan.name.as_str()), (7, 0.5, "quick"));
    let benchmark = plan.workload.options::<InsertBenchmarkOptions>().expect("in the file");
    assert_eq!(benchmark.clients, 2);
    assert_eq!(benchmark.rates, [10, 20]);
    assert_eq!(benchmark.read_write_time.0, Duration::from_secs(5));
    assert!(!benchmark.deletes);
    assert_eq!((benchmark.rows_per_commit.load, benchmark.rows_per_commit.write_1), (1000, 50));
}

#[test]
fn missing_tables_are_created() {
    let plan = with(&[("host.server_cpus", "0-1"), ("host.client_cpus", "2")]);
    assert_eq!(plan.host.server_cpus, Some(CpuList(vec![0, 1])));
    assert_eq!(plan.host.client_cpus, Some(CpuList(vec![2])));
}

#[test]
fn a_variant_is_found_by_its_longest_name() {
    let plan = with(&[
        ("variant.ma-10.own_config", "a.cnf"),
        ("variant.ma-10.11.own_config", "b.cnf"),
        ("variant.lite.options.pragmas.journal_mode", "wal"),
        ("variant.lite.options.pragmas.cache_size", "\"-2000\""),
    ]);
    let own_config = |index: usize| plan.variants[index].own_config.as_deref();
    assert_eq!(own_config(0), Some(Path::new("a.cnf")));
    assert_eq!(own_config(1), Some(Path::new("b.cnf")));
    assert_eq!(plan.variants[2].options["pragmas"]["journal_mode"], "wal");
    assert_eq!(plan.variants[2].options["pragmas"]["cache_size"], "-2000");
}

#[test]
fn the_last_override_of_a_key_wins() {
    assert_eq!(with(&[("blocks", "2"), ("blocks", "3")]).blocks, 3);
}

#[test]
fn a_text_that_holds_more_than_one_toml_value_stays_a_text() {
    let key = [("name".to_owned(), "\"p\"\nblocks = 9".to_owned())];
    let message = parse_with(PLAN, "plan.toml", &key).expect_err("not a name").to_string();
    assert!(message.starts_with("--set name: the plan's name does not fit"), "{message}");
}

#[test]
fn relative_paths_of_overrides_count_from_the_plans_folder_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("plan.toml");
    std::fs::write(&path, PLAN).expect("a temporary file");
    let overrides = [
        ("variant.ma-10.own_config".to_owned(), "a.cnf".to_owned()),
        ("variant.ma-10.11.own_config".to_owned(), "/etc/b.cnf".to_owned()),
        ("variant.there.options.server_public_key".to_owned(), "key.pem".to_owned()),
        ("host.data_dir".to_owned(), "data".to_owned()),
    ];
    let plan = read_with(&path, &overrides).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.variants[0].own_config, Some(folder.path().join("a.cnf")));
    assert_eq!(plan.variants[1].own_config.as_deref(), Some(Path::new("/etc/b.cnf")));
    let key = folder.path().join("key.pem");
    assert_eq!(plan.variants[3].options["server_public_key"].as_str(), key.to_str());
    assert_eq!(plan.host.data_dir, Some(folder.path().join("data")));
}

#[test]
fn a_missing_plan_file_is_named() {
    let message = read_with(Path::new("no/such.toml"), &[]).expect_err("absent").to_string();
    assert!(message.starts_with("cannot read the plan no/such.toml: "), "{message}");
}

#[test]
fn a_mistake_in_a_read_file_is_shown_with_its_path() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("bad.toml");
    std::fs::write(&path, "name = \"p\"\nclient = 3\n").expect("a temporary file");
    let message = read_with(&path, &[]).expect_err("wrong").to_string();
    assert!(message.starts_with(&format!("{}:2:1: unknown key `client`", path.display())), "{message}");
}
