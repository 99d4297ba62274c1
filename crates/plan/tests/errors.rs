//! What a wrong plan answers: one sentence with the file, the line and the column.

use dbdyno_plan::{parse, parse_with};

const GOOD: &str = r#"name = "p"
[[variant]]
name = "a"
server = "sqlite"
[[variant]]
name = "b"
server = "mariadb-10.11"
my_cnf = "b.cnf"
[workload.insert-benchmark]
clients = 2
"#;

/// The error of a plan.
fn error(text: &str) -> String {
    parse(text, "plan.toml").expect_err("the plan must be refused").to_string()
}

/// The error of [`GOOD`] with one text replaced.
fn broken(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from:?} is not in the good plan");
    error(&GOOD.replacen(from, to, 1))
}

/// The error of [`GOOD`] with one override.
fn overridden(key: &str, value: &str) -> String {
    let overrides = [(key.to_owned(), value.to_owned())];
    parse_with(GOOD, "plan.toml", &overrides).expect_err("the override must be refused").to_string()
}

#[test]
fn the_good_plan_is_good() {
    parse(GOOD, "plan.toml").expect("the plan that the others are made from");
}

#[test]
fn text_that_is_not_toml_is_shown_where_it_breaks() {
    insta::assert_snapshot!(broken("clients = 2", "clients = "), @"");
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p"), @"");
    insta::assert_snapshot!(broken("clients = 2", "clients = 2\nclients = 3"), @"");
    insta::assert_snapshot!(broken("[workload.insert-benchmark]", "[workload.insert-benchmark"), @"");
}

#[test]
fn an_unknown_key_names_the_known_ones_and_a_near_one() {
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p\"\nblock = 3"), @"");
    insta::assert_snapshot!(broken("my_cnf = ", "  mycnf = "), @"");
    insta::assert_snapshot!(broken("server = \"sqlite\"", "server = \"sqlite\"\npassword = \"hunter2\""), @"");
    insta::assert_snapshot!(broken("insert-benchmark", "insert_benchmark"), @"");
    insta::assert_snapshot!(broken("clients = 2", "rows_per_commit = { loads = 1 }"), @"");
    insta::assert_snapshot!(broken("[[variant]]", "[host]\nserver-cpus = \"0\"\n[[variant]]"), @"");
}

#[test]
fn a_wrong_type_says_what_is_wanted() {
    insta::assert_snapshot!(broken("clients = 2", "clients = \"two\""), @"");
    insta::assert_snapshot!(broken("clients = 2", "clients = -1"), @"");
    insta::assert_snapshot!(broken("clients = 2", "clients = 2.5"), @"");
    insta::assert_snapshot!(broken("clients = 2", "clients = 5000000000"), @"");
    insta::assert_snapshot!(broken("clients = 2", "rates = 100"), @"");
    insta::assert_snapshot!(broken("clients = 2", "deletes = \"yes\""), @"");
    insta::assert_snapshot!(broken("clients = 2", "pacing = \"bursts\""), @"");
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p\"\nmargin = \"2%\""), @"");
    insta::assert_snapshot!(broken("[workload.insert-benchmark]\nclients = 2", "[workload]\ninsert-benchmark = 1"), @"");
    insta::assert_snapshot!(broken("server = \"sqlite\"", "server = \"sqlite\"\npragmas = { cache_size = -2000 }"), @"");
}

#[test]
fn a_duration_without_its_unit_says_which_units_there_are() {
    insta::assert_snapshot!(broken("clients = 2", "read_write_time = 30"), @"");
    insta::assert_snapshot!(broken("clients = 2", "read_write_time = \"30\""), @"");
    insta::assert_snapshot!(broken("clients = 2", "settle_wait = \"30 seconds\""), @"");
    insta::assert_snapshot!(broken("clients = 2", "settle_wait = 30"), @"");
}

#[test]
fn missing_keys_are_named() {
    insta::assert_snapshot!(broken("name = \"p\"\n", ""), @"");
    insta::assert_snapshot!(error("name = \"p\"\n[workload.insert-benchmark]\n"), @"");
    insta::assert_snapshot!(broken("[workload.insert-benchmark]\nclients = 2\n", ""), @"");
    insta::assert_snapshot!(broken("[workload.insert-benchmark]\nclients = 2\n", "[workload]"), @"");
    insta::assert_snapshot!(broken("name = \"b\"\n", ""), @"");
    insta::assert_snapshot!(error("name = \"p\"\nvariant = []\n[workload.insert-benchmark]\n"), @"");
    insta::assert_snapshot!(error(""), @"");
}

#[test]
fn variants_say_exactly_one_server_and_nothing_that_does_not_go_with_it() {
    insta::assert_snapshot!(broken("server = \"sqlite\"", ""), @"");
    insta::assert_snapshot!(broken("server = \"sqlite\"", "server = \"sqlite\"\naddress = \"mysql://h/d\""), @"");
    insta::assert_snapshot!(broken("server = \"sqlite\"", "server = \"sqlite\"\nmy_cnf = \"a.cnf\""), @"");
    insta::assert_snapshot!(broken("my_cnf = \"b.cnf\"", "pragmas = { journal_mode = \"wal\" }"), @"");
    insta::assert_snapshot!(broken("my_cnf = \"b.cnf\"", "password_env = \"PW\""), @"");
    insta::assert_snapshot!(broken("\"sqlite\"", "\"../evil\""), @"");
    insta::assert_snapshot!(broken("my_cnf = \"b.cnf\"", "engine = \"innodb; drop\""), @"");
}

#[test]
fn names_are_unique_and_fit_a_directory() {
    insta::assert_snapshot!(broken("name = \"b\"", "name = \"a\""), @"");
    insta::assert_snapshot!(broken("name = \"b\"", "name = \"b/c\""), @"");
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"..\""), @"");
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p\"\nbase = \"c\""), @"");
}

#[test]
fn numbers_outside_their_range_are_refused_where_they_stand() {
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p\"\nblocks = 0"), @"");
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p\"\nmargin = 2"), @"");
    insta::assert_snapshot!(broken("clients = 2", "clients = 4097"), @"");
    insta::assert_snapshot!(broken("clients = 2", "rows_per_commit = { load = 0 }"), @"");
    insta::assert_snapshot!(broken("clients = 2", "rates = []"), @"");
    insta::assert_snapshot!(broken("clients = 2", "rates = [100, 0]"), @"");
    insta::assert_snapshot!(broken("clients = 2", "rates = [100, 500, 100]"), @"");
    insta::assert_snapshot!(broken("clients = 2", "data_length_min = 30"), @"");
    insta::assert_snapshot!(broken("clients = 2", "read_write_time = \"900ms\""), @"");
    insta::assert_snapshot!(broken("clients = 2", "time_cap = 0.5"), @"");
    insta::assert_snapshot!(broken("clients = 2", "time_cap = nan"), @"");
    insta::assert_snapshot!(broken("clients = 2", "sla_share = 95"), @"");
    insta::assert_snapshot!(broken("clients = 2", "secondary_indexes = 4"), @"");
}

#[test]
fn a_password_in_an_address_is_refused_and_not_repeated() {
    let message = broken("server = \"sqlite\"", "address = \"mysql://root:hunter2@localhost/db\"");
    insta::assert_snapshot!(message, @"");
    let message = overridden("variant.a.address", "mysql://root:hunter2@localhost/db");
    insta::assert_snapshot!(message, @"");
}

#[test]
fn columns_count_characters_not_bytes() {
    insta::assert_snapshot!(broken("clients = 2", "rates = [1] # äöü\n\"ä\" = 1"), @"");
    insta::assert_snapshot!(broken("clients = 2", "\"äöü\".x = 2"), @"");
    insta::assert_snapshot!(broken("server = \"sqlite\"", "pragmas = { \"ä\" = \"ö\", x = 1 }"), @"");
}

#[test]
fn an_override_is_checked_like_the_file_and_shown_as_an_override() {
    insta::assert_snapshot!(overridden("block", "3"), @"");
    insta::assert_snapshot!(overridden("blocks", "many"), @"");
    insta::assert_snapshot!(overridden("blocks", "0"), @"");
    insta::assert_snapshot!(overridden("workload.insert-benchmark.read_write_time", "30"), @"");
    insta::assert_snapshot!(overridden("workload.insert-benchmark.rates", "[100, 0]"), @"");
    insta::assert_snapshot!(overridden("workload.tpcc.clients", "3"), @"");
    insta::assert_snapshot!(overridden("variant.c.my_cnf", "x.cnf"), @"");
    insta::assert_snapshot!(overridden("variant.a", "x"), @"");
    insta::assert_snapshot!(overridden("variant.a.my_cnf", "x"), @"");
    insta::assert_snapshot!(overridden("name.x", "1"), @"");
    insta::assert_snapshot!(overridden("host..x", "1"), @"");
    insta::assert_snapshot!(overridden("", "1"), @"");
}
