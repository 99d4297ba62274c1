//! Tests that the plans that come with dbdyno can be read and obey the JSON Schema, and that the
//! schema file is the one that the types give.

use std::path::{Path, PathBuf};

use dbdyno_model::{ConfigPart, Published, TlsMode, TlsSettings};
use dbdyno_plan::{QUICKSTART, cells, published_variants_not_in_plan, warnings};
use dbdyno_products::VariantKind;
use dbdyno_workloads::plans::{json_schema, parse, read_with};

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files in `plans/` at the repository's root.
fn plan_files() -> Vec<PathBuf> {
    let folder = crate_folder().join("../../plans");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder plans/ exists")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

/// Returns the errors that the schema finds in a plan's text, one per line.
fn schema_errors(text: &str) -> String {
    let value: toml::Value = toml::from_str(text).expect("TOML");
    let value = serde_json::to_value(value).expect("TOML without dates is JSON");
    let validator = jsonschema::validator_for(&json_schema()).expect("a valid schema");
    validator.iter_errors(&value).map(|error| format!("{}: {error}\n", error.instance_path())).collect()
}

#[test]
fn every_shipped_plan_parses_and_obeys_the_schema_without_a_warning() {
    let files = plan_files();
    assert!(files.len() >= 4, "only {} plans found", files.len());
    for path in files {
        let plan = read_with(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(plan.name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        assert_eq!(warnings(&plan), Vec::<String>::new(), "{}", path.display());
        let text = std::fs::read_to_string(&path).expect("just read");
        assert_eq!(schema_errors(&text), "", "{}", path.display());
    }
}

#[test]
fn plans_that_follow_a_published_report_have_a_small_size_and_figures_for_each_variant() {
    let mut found = Vec::new();
    for path in plan_files() {
        let plan = read_with(&path, &[]).expect("a shipped plan");
        for (name, size) in &plan.sizes {
            assert!(!size.about.is_empty(), "{} {name}", path.display());
            let sized = read_with(&path, &[("size".to_owned(), name.clone())])
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(warnings(&sized), Vec::<String>::new(), "{} {name}", path.display());
            assert!(!sized.variants.is_empty() && sized.report.size.is_some());
        }
        if plan.report.author.is_some() {
            assert!(plan.sizes.contains_key("small"), "{}", path.display());
            assert!(matches!(plan.report.published, Some(Published::Figures(_))), "{}", path.display());
            assert_eq!(published_variants_not_in_plan(&plan), Vec::<String>::new(), "{}", path.display());
            found.push(plan.name);
        }
    }
    assert_eq!(
        found,
        [
            "dbt3-2012",
            "insert-benchmark-2024",
            "insert-benchmark-2026",
            "microbenchmarks-2024",
            "oltp-2012",
            "sysbench-io-bound-2021",
            "thread-pool-2012"
        ]
    );
}

#[test]
fn a_mistake_in_published_figures_is_shown_with_its_position() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = "name = \"p\"\n[report]\npublished = \"f.toml\"\n[[variant]]\nname = \"a\"\nserver = \"null\"\n[workload.oltp]\n";
    std::fs::write(folder.path().join("p.toml"), plan).expect("written");
    let error = |figures: &str| {
        let text = format!("title = \"T\"\nauthor = \"A\"\nyear = 2024\nmachine = \"M\"\n{figures}");
        std::fs::write(folder.path().join("f.toml"), text).expect("written");
        let error = read_with(&folder.path().join("p.toml"), &[]).expect_err("a mistake").to_string();
        error.replace(&format!("{}/", folder.path().display()), "")
    };
    insta::assert_snapshot!(error("[[figures]]\nbase = \"a\"\nvariant = \"b\"\nvalue = { x = 1.0 }\n"), @"f.toml:8:1: unknown key `value` (did you mean `values`?)");
    insta::assert_snapshot!(error("[[figures]]\nbase = \"a\"\nvariant = \"b\"\nvalues = { x = -1.0 }\n"), @"f.toml:1:1: the figure -1 of b in x is no ratio: write a number above 0");
}

#[test]
fn paths_of_a_read_plan_count_from_its_folder() {
    let path = crate_folder().join("../../plans/mariadb-vs-mysql.toml");
    let plan = read_with(&path, &[]).expect("a shipped plan");
    for variant in &plan.variants {
        let config = variant.config.as_ref().expect("both variants have one");
        let [ConfigPart::File(path)] = config.parts() else { panic!("{config:?} is no file") };
        assert!(path.is_absolute() && path.is_file(), "{}", path.display());
    }
}

#[test]
fn option_files_of_shipped_plans_exist() {
    for path in plan_files() {
        let plan = read_with(&path, &[]).expect("a shipped plan");
        for variant in &plan.variants {
            let parts = variant.config.iter().flat_map(|config| config.parts());
            let configs = parts.filter_map(|part| match part {
                ConfigPart::File(file) => Some(file),
                ConfigPart::Intents(_) => None,
            });
            for file in configs.chain(&variant.own_config) {
                assert!(file.is_file(), "{} names {}", path.display(), file.display());
            }
        }
    }
}

#[test]
fn the_quickstart_is_two_sqlite_variants_and_obeys_the_schema() {
    let plan = parse(QUICKSTART, "quickstart").expect("the built-in plan");
    assert!(plan.variants.iter().all(|variant| VariantKind::of(variant).is_embedded()));
    assert_eq!(cells(&plan).len(), 2);
    assert_eq!(plan.base_name(), "rollback");
    assert_eq!(schema_errors(QUICKSTART), "");
}

#[test]
fn the_schema_refuses_what_the_types_refuse() {
    let changes = [
        ("blocks = 1", "block = 1"),
        ("\"3s\"", "\"3\""),
        ("\"1s\"", "\"soon\""),
        ("clients = 1", "clients = -1"),
        ("name = \"quickstart\"", ""),
    ];
    for (from, to) in changes {
        assert!(QUICKSTART.contains(from), "{from:?} is not in the quickstart");
        let changed = QUICKSTART.replace(from, to);
        assert_ne!(schema_errors(&changed), "", "the schema takes {to:?} for {from:?}");
        parse(&changed, "changed").expect_err("the types refuse it too");
    }
}

/// Returns a plan on the null database, with these lines at its top and in its workload's table.
fn null_plan(top: &str, workload: &str, options: &str) -> String {
    format!(
        "name = \"p\"\n{top}\n[[variant]]\nname = \"a\"\nserver = \"null\"\n[workload.{workload}]\n{options}\n"
    )
}

#[test]
fn the_schema_has_the_ranges_that_are_checked() {
    let insert = |options: &str| null_plan("", "insert-benchmark", options);
    let oltp = |options: &str| null_plan("", "oltp", options);
    let micro = |options: &str| null_plan("", "microbenchmarks", options);
    let top = |text: &str| null_plan(text, "oltp", "");
    let fine = [
        top("blocks = 10_000\nmargin = 0.5"),
        top("[load]\nconnect_rate_per_second = 0.1"),
        insert(
            "clients = 4096\nwrite_rows = 0\nsecondary_indexes = 3\nsla_share = 1.0\nmax_price = 2147483647",
        ),
        insert("rates = [1]\ntime_cap = 1.0\nfirst_id = 4611686018427387904\ndata_length_max = 4000"),
        insert(
            "rows_per_commit = { load = 100_000 }\nsettle = { dirty_share = 1.0, device_mb_per_second = 0.0 }",
        ),
        oltp("id = \"bigint\"\ntable_size = 10\nfirst_id = 999_999_999_991\nspecial_share = 0"),
        oltp("arrivals = \"poisson\"\nrates = [100_000_000]\nevents = 1").replace("events = 1", ""),
        oltp("point_selects = 0\nspecial_percent = 100\npareto_h = 0.99\nzipfian_exponent = 100.0"),
        micro("operations = 1\ntables = 10_000\nload_connections = 1024"),
    ];
    for text in fine {
        assert_eq!(schema_errors(&text), "", "{text}");
        parse(&text, "fine").unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
    let wrong = [
        top("blocks = 0"),
        top("blocks = 10_001"),
        top("margin = 5.0"),
        top("margin = 0.0"),
        top("[host]\nclient_threads = 0"),
        top("[load]\nconnect_rate_per_second = 0.0"),
        top("").replace("name = \"p\"", "name = \"a/b\""),
        top("").replace("name = \"a\"\n", ""),
        top("").replace("name = \"a\"", "name = \"-a\""),
        top("").replace("server = \"null\"\n", ""),
        top("").replace("server = \"null\"", "server = \"null\"\nbasedir = \"/x\""),
        top("").replace("[workload.oltp]", "[workload]"),
        insert("clients = 0"),
        insert("secondary_indexes = 9"),
        insert("sla_share = 7.0"),
        insert("sla_share = 0.0"),
        insert("rates = []"),
        insert("rates = [0]"),
        insert("rates = [5, 5]"),
        insert("rows_per_commit = { load = 0 }"),
        insert("data_length_max = 4001"),
        insert("settle = { redo_share = 1.5 }"),
        insert("time_cap = 0.5"),
        oltp("tables = 0"),
        oltp("pareto_h = 1.0"),
        oltp("special_share = 100"),
        oltp("arrivals = \"poisson\"\nrates = [0]"),
        oltp("tests = [\"insert\", \"insert\"]"),
        micro("operations = 0"),
        micro("zipfian_exponent = 101.0"),
    ];
    for text in wrong {
        assert_ne!(schema_errors(&text), "", "the schema takes\n{text}");
        parse(&text, "wrong").expect_err(&text);
    }
}

#[test]
fn a_plan_that_is_written_as_toml_reads_back_unchanged() {
    for path in plan_files() {
        let plan = read_with(&path, &[]).expect("a shipped plan");
        let text = toml::to_string(&plan).expect("plans are TOML");
        assert_eq!(parse(&text, "own output").expect("own output"), plan);
    }
}

#[test]
fn tls_is_verified_unless_configured_otherwise_and_its_paths_count_from_the_plans_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("p.toml");
    let text = |tls: &str| {
        format!(
            "name = \"p\"\n[[variant]]\nname = \"a\"\naddress = \"postgres://u@h/d\"\ntls = {tls}\n\
             [workload.insert-benchmark]\n"
        )
    };
    let read_tls = |tls: &str| {
        std::fs::write(&path, text(tls)).expect("a plan");
        read_with(&path, &[]).expect("a good plan").variants.remove(0).tls.expect("its tls")
    };
    assert_eq!(read_tls("{}"), TlsSettings { mode: TlsMode::Verify, ..TlsSettings::default() });
    let reported = read_tls("{ ca = \"ca.pem\", cert = \"/c.pem\", key = \"k/c.key\" }");
    let in_its_folder = |name: &str| Some(folder.path().join(name));
    assert_eq!(
        (reported.ca, reported.cert, reported.key),
        (in_its_folder("ca.pem"), Some("/c.pem".into()), in_its_folder("k/c.key"))
    );
}

/// Run the tests with `DBDYNO_UPDATE=1` to write the file again.
#[test]
fn the_schema_file_is_made_from_the_types() {
    let path = crate_folder().join("../plan/schema/plan.schema.json");
    let schema = serde_json::to_string_pretty(&json_schema()).expect("a schema is JSON") + "\n";
    if std::env::var_os("DBDYNO_UPDATE").is_some() {
        std::fs::write(&path, &schema).expect("the schema folder can be written");
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == schema,
        "{} is not what the types say: run `DBDYNO_UPDATE=1 cargo test -p dbdyno-workloads plan`",
        path.display()
    );
}
