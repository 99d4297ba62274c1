//! Tests the errors of wrong plans. Each error is one sentence with the file, the line and the
//! column.

use dbdyno_workloads::plans::{parse, parse_with};

const GOOD: &str = r#"name = "p"
[[variant]]
name = "a"
server = "sqlite"
[[variant]]
name = "b"
server = "mariadb-10.11"
own_config = "b.cnf"
[workload.insert-benchmark]
clients = 2
"#;

/// Returns the error of a plan.
fn error(text: &str) -> String {
    parse(text, "plan.toml").expect_err("the plan must be refused").to_string()
}

/// Returns the error of [`GOOD`] with one text replaced.
fn broken(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from:?} is not in the good plan");
    error(&GOOD.replacen(from, to, 1))
}

/// Returns the error of [`GOOD`] with one override.
fn overridden(key: &str, value: &str) -> String {
    let overrides = [(key.to_owned(), value.to_owned())];
    parse_with(GOOD, "plan.toml", &overrides).expect_err("the override must be refused").to_string()
}

#[test]
fn the_plan_that_the_tests_change_is_valid() {
    parse(GOOD, "plan.toml").expect("the plan that the others are made from");
}

#[test]
fn text_that_is_not_toml_is_refused_with_its_position() {
    insta::assert_snapshot!(broken("clients = 2", "clients = "), @"plan.toml:10:11: this is not TOML: string values must be quoted, expected literal string");
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p"), @r#"plan.toml:1:10: this is not TOML: invalid basic string, expected `"`"#);
    insta::assert_snapshot!(broken("clients = 2", "clients = 2\nclients = 3"), @"plan.toml:11:1: this is not TOML: duplicate key");
    insta::assert_snapshot!(broken("[workload.insert-benchmark]", "[workload.insert-benchmark"), @"plan.toml:9:27: this is not TOML: unclosed table, expected `]`");
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_known_key() {
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p\"\nblock = 3"), @"plan.toml:2:1: unknown key `block` (did you mean `blocks`?)");
    insta::assert_snapshot!(broken("own_config = ", "  ownconfig = "), @"plan.toml:8:3: unknown key `ownconfig` (did you mean `own_config`?)");
    insta::assert_snapshot!(broken("server = \"sqlite\"", "server = \"sqlite\"\npassword = \"hunter2\""), @"plan.toml:5:1: unknown key `password` (did you mean `password_env`?)");
    insta::assert_snapshot!(broken("insert-benchmark", "insert_benchmark"), @"plan.toml:9:11: unknown key `insert_benchmark` (did you mean `insert-benchmark`?)");
    insta::assert_snapshot!(broken("clients = 2", "rows_per_commit = { loads = 1 }"), @"plan.toml:10:21: unknown key `loads` (did you mean `load`?)");
    insta::assert_snapshot!(broken("[[variant]]", "[host]\nserver-cpus = \"0\"\n[[variant]]"), @"plan.toml:3:1: unknown key `server-cpus` (did you mean `server_cpus`?)");
}

#[test]
fn a_wrong_type_says_what_is_wanted() {
    insta::assert_snapshot!(broken("clients = 2", "clients = \"two\""), @r#"plan.toml:10:11: found string "two" where a whole number from 0 to 4294967295 is wanted"#);
    insta::assert_snapshot!(broken("clients = 2", "clients = -1"), @"plan.toml:10:11: found integer `-1` where a whole number from 0 to 4294967295 is wanted");
    insta::assert_snapshot!(broken("clients = 2", "clients = 2.5"), @"plan.toml:10:11: found floating point `2.5` where a whole number from 0 to 4294967295 is wanted");
    insta::assert_snapshot!(broken("clients = 2", "clients = 5000000000"), @"plan.toml:10:11: found integer `5000000000` where a whole number from 0 to 4294967295 is wanted");
    insta::assert_snapshot!(broken("clients = 2", "rates = 100"), @"plan.toml:10:9: found integer `100` where a list such as [100, 500] is wanted");
    insta::assert_snapshot!(broken("clients = 2", "deletes = \"yes\""), @r#"plan.toml:10:11: found string "yes" where true or false is wanted"#);
    insta::assert_snapshot!(broken("clients = 2", "arrivals = \"bursts\""), @"plan.toml:10:12: `bursts` is not a value of this key (did you mean `burst`?); it takes even, poisson, burst");
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p\"\nmargin = \"2%\""), @r#"plan.toml:2:10: found string "2%" where a number is wanted"#);
    insta::assert_snapshot!(broken("[workload.insert-benchmark]\nclients = 2", "[workload]\ninsert-benchmark = 1"), @"plan.toml:10:20: found integer `1` where a table is wanted");
    insta::assert_snapshot!(broken("server = \"sqlite\"", "server = \"sqlite\"\noptions.pragmas = { cache_size = -2000 }"), @"plan.toml:5:19: variant `a` has an options.pragmas that does not fit: found integer `-2000` where a text in quotes is wanted");
}

#[test]
fn a_duration_without_its_unit_says_which_units_there_are() {
    insta::assert_snapshot!(broken("clients = 2", "read_write_time = 30"), @r#"plan.toml:10:19: the duration 30 has no unit: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
    insta::assert_snapshot!(broken("clients = 2", "read_write_time = \"30\""), @r#"plan.toml:10:19: the duration "30" has no unit: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
    insta::assert_snapshot!(broken("clients = 2", "settle_wait = \"30 seconds\""), @r#"plan.toml:10:15: "seconds" in "30 seconds" is not a unit of time: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
    insta::assert_snapshot!(broken("clients = 2", "settle_wait = 30"), @r#"plan.toml:10:15: the duration 30 has no unit: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
}

#[test]
fn missing_keys_are_named() {
    insta::assert_snapshot!(broken("name = \"p\"\n", ""), @r#"plan.toml:1:1: the key `name` is missing: every plan has a name, e.g. name = "first-try""#);
    insta::assert_snapshot!(error("name = \"p\"\n[workload.insert-benchmark]\n"), @"plan.toml:1:1: the key `variant` is missing: a plan compares [[variant]] tables, at least one");
    insta::assert_snapshot!(broken("[workload.insert-benchmark]\nclients = 2\n", ""), @"plan.toml:1:1: the key `workload` is missing: add what to run, e.g. [workload.insert-benchmark]");
    insta::assert_snapshot!(broken("[workload.insert-benchmark]\nclients = 2\n", "[workload]"), @"plan.toml:9:1: the plan has no workload: add a table [workload.insert-benchmark], [workload.microbenchmarks], [workload.oltp], [workload.sysbench], [workload.pgbench] or [workload.dbt3]");
    insta::assert_snapshot!(broken("name = \"b\"\n", ""), @r#"plan.toml:5:1: variant 2 has no name: add name = "...""#);
    insta::assert_snapshot!(error("name = \"p\"\nvariant = []\n[workload.insert-benchmark]\n"), @"plan.toml:2:11: the plan has no variant: add a [[variant]] with a name and a server");
    insta::assert_snapshot!(error(""), @r#"plan.toml:1:1: the key `name` is missing: every plan has a name, e.g. name = "first-try""#);
}

#[test]
fn a_variant_names_exactly_one_server_and_only_keys_that_apply_to_it() {
    insta::assert_snapshot!(broken("server = \"sqlite\"", ""), @"plan.toml:3:8: variant `a` has no server: set exactly one of server, basedir and address");
    insta::assert_snapshot!(broken("server = \"sqlite\"", "server = \"sqlite\"\naddress = \"mysql://h/d\""), @"plan.toml:5:11: variant `a` has server and address at once: set exactly one of server, basedir and address");
    insta::assert_snapshot!(broken("server = \"sqlite\"", "server = \"sqlite\"\nown_config = \"a.cnf\""), @"plan.toml:5:14: variant `a` has own_config, which is only for a server that dbdyno starts (server or basedir)");
    insta::assert_snapshot!(broken("own_config = \"b.cnf\"", "options.pragmas = { journal_mode = \"wal\" }"), @"plan.toml:8:19: variant `b` has options.pragmas, which a MariaDB or MySQL server does not have; its options: engine, client_charset, column_definitions, deprecate_eof, session_track, server_public_key, allow_public_key_retrieval");
    insta::assert_snapshot!(broken("own_config = \"b.cnf\"", "password_env = \"PW\""), @"plan.toml:8:16: variant `b` has password_env, which is only for an address");
    insta::assert_snapshot!(broken("\"sqlite\"", "\"../evil\""), @"plan.toml:4:10: variant `a` has a server that is neither sqlite, null nor a name in the servers folder; for a path set basedir");
    let key = "server = \"sqlite\"\noptions.pragmas = { key = \"hunter2;\" }";
    insta::assert_snapshot!(broken("server = \"sqlite\"", key), @"plan.toml:5:19: variant `a` has a pragma that is not a name and a plain value: key");
    insta::assert_snapshot!(broken("own_config = \"b.cnf\"", "options.engine = \"innodb; drop\""), @"plan.toml:8:18: variant `b` has an engine that is not a plain name such as innodb");
}

#[test]
fn names_are_unique_and_fit_a_directory() {
    insta::assert_snapshot!(broken("name = \"b\"", "name = \"a\""), @"plan.toml:6:8: two variants are named `a`: give each its own name");
    insta::assert_snapshot!(broken("name = \"b\"", "name = \"b/c\""), @"plan.toml:6:8: the variant name `b/c` does not fit: use 1 to 64 letters, digits, `-`, `_` and `.`, not beginning with `.` or `-`");
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"..\""), @"plan.toml:1:8: the plan's name does not fit: use 1 to 64 letters, digits, `-`, `_` and `.`, not beginning with `.` or `-`");
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p\"\nbase = \"c\""), @"plan.toml:2:8: base `c` is not the name of a variant; variants: a, b");
}

#[test]
fn more_than_1000_variants_are_refused() {
    let plan = |count: usize| {
        let variant = |number| format!("[[variant]]\nname = \"v{number}\"\nserver = \"sqlite\"\n");
        "name = \"p\"\n".to_owned() + &(0..count).map(variant).collect::<String>() + "[workload.oltp]\n"
    };
    parse(&plan(1_000), "plan.toml").expect("the greatest number");
    insta::assert_snapshot!(error(&plan(1_001)), @"plan.toml:3002:1: the plan has 1001 variants, and 1000 are allowed: split it into several plans");
}

#[test]
fn values_outside_their_range_are_refused_with_their_position() {
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p\"\nblocks = 0"), @"plan.toml:2:10: blocks must be 1 to 10000");
    insta::assert_snapshot!(broken("name = \"p\"", "name = \"p\"\nmargin = 2"), @"plan.toml:2:10: margin must be a fraction between 0 and 1, e.g. 0.02 for 2 %");
    insta::assert_snapshot!(broken("clients = 2", "clients = 4097"), @"plan.toml:10:11: clients is 4097, but must be 1 to 4096");
    insta::assert_snapshot!(broken("clients = 2", "rows_per_commit = { load = 0 }"), @"plan.toml:10:28: rows_per_commit.load is 0, but must be 1 to 100000");
    insta::assert_snapshot!(broken("clients = 2", "rates = []"), @"plan.toml:10:9: rates is empty: name at least one");
    insta::assert_snapshot!(broken("clients = 2", "rates = [100, 0]"), @"plan.toml:10:9: rates holds 0, but each must be at least 1");
    insta::assert_snapshot!(broken("clients = 2", "rates = [100, 500, 100]"), @"plan.toml:10:9: rates holds 100 twice");
    insta::assert_snapshot!(broken("clients = 2", "data_length_min = 30"), @"plan.toml:10:19: data_length_min is 30, which is more than data_length_max (20)");
    insta::assert_snapshot!(broken("clients = 2", "read_write_time = \"900ms\""), @"plan.toml:10:19: read_write_time is 900ms, but must be at least 1s");
    insta::assert_snapshot!(broken("clients = 2", "first_id = 4611686018427387905"), @"plan.toml:10:12: first_id is 4611686018427387905, but must be 1 to 4611686018427387904");
    insta::assert_snapshot!(broken("clients = 2", "time_cap = 0.5"), @"plan.toml:10:12: time_cap is 0.5, but must be at least 1");
    insta::assert_snapshot!(broken("clients = 2", "time_cap = nan"), @"plan.toml:10:12: time_cap must be a finite number");
    insta::assert_snapshot!(broken("clients = 2", "sla_share = 95"), @"plan.toml:10:13: sla_share is 95, but must be above 0 and at most 1");
    insta::assert_snapshot!(broken("clients = 2", "secondary_indexes = 4"), @"plan.toml:10:21: secondary_indexes is 4, but must be 1 to 3");
    insta::assert_snapshot!(broken("clients = 2", "create_table_options = \"ROW_FORMAT=DYNAMIC; DROP TABLE t\""), @"plan.toml:10:24: create_table_options holds `;`: it is part of one statement");
}

#[test]
fn a_password_in_an_address_is_refused_and_not_repeated() {
    let message = broken("server = \"sqlite\"", "address = \"mysql://root:hunter2@localhost/db\"");
    insta::assert_snapshot!(message, @r#"plan.toml:4:11: variant `a` has an address that holds a password: take it out and set password_env = "NAME" (an environment variable) or option_file = "PATH" (a MySQL option file, or a password file of PostgreSQL)"#);
    let external = GOOD.replacen("server = \"sqlite\"", "address = \"mysql://root@localhost/db\"", 1);
    let overrides = [("variant.a.address".to_owned(), "mysql://root:hunter2@localhost/db".to_owned())];
    let message = parse_with(&external, "plan.toml", &overrides).expect_err("a password").to_string();
    insta::assert_snapshot!(message, @r#"--set variant.a.address: variant `a` has an address that holds a password: take it out and set password_env = "NAME" (an environment variable) or option_file = "PATH" (a MySQL option file, or a password file of PostgreSQL)"#);
}

#[test]
fn columns_count_characters_not_bytes() {
    insta::assert_snapshot!(broken("clients = 2", "rates = [1] # äöü\n\"ä\" = 1"), @"plan.toml:11:1: unknown key `ä`; known keys here: clients, load_rows, write_rows, read_write_time, rates, rows_per_commit, deletes, resync_rounds, arrivals, time_cap, query_connections, rows_per_query, points_per_query, max_id_every, cashregisters, products, customers, max_price, data_length_min, data_length_max, data_random_percent, secondary_indexes, create_table_options, protocol, clock, settle, settle_wait, verify, data, cold, sla_share, first_id");
    insta::assert_snapshot!(broken("clients = 2", "\"äöü\".x = 2"), @"plan.toml:10:1: unknown key `äöü`; known keys here: clients, load_rows, write_rows, read_write_time, rates, rows_per_commit, deletes, resync_rounds, arrivals, time_cap, query_connections, rows_per_query, points_per_query, max_id_every, cashregisters, products, customers, max_price, data_length_min, data_length_max, data_random_percent, secondary_indexes, create_table_options, protocol, clock, settle, settle_wait, verify, data, cold, sla_share, first_id");
    insta::assert_snapshot!(broken("server = \"sqlite\"", "factors = { \"ä\" = \"ö\", x = 1 }"), @"plan.toml:4:28: found integer `1` where a text in quotes is wanted");
}

#[test]
fn an_override_is_checked_like_the_file_and_shown_as_an_override() {
    insta::assert_snapshot!(overridden("block", "3"), @"--set block: unknown key `block` (did you mean `blocks`?)");
    insta::assert_snapshot!(overridden("blocks", "many"), @r#"--set blocks: found string "many" where a whole number from 0 to 4294967295 is wanted"#);
    insta::assert_snapshot!(overridden("blocks", "0"), @"--set blocks: blocks must be 1 to 10000");
    insta::assert_snapshot!(overridden("workload.insert-benchmark.read_write_time", "30"), @r#"--set workload.insert-benchmark.read_write_time: the duration 30 has no unit: write a number and its unit (ms, s, m or h) in quotes, e.g. "30s""#);
    insta::assert_snapshot!(overridden("workload.insert-benchmark.rates", "[100, 0]"), @"--set workload.insert-benchmark.rates: rates holds 0, but each must be at least 1");
    insta::assert_snapshot!(overridden("workload.tpcc.clients", "3"), @"--set workload.tpcc.clients: unknown key `tpcc`; known keys here: insert-benchmark, microbenchmarks, oltp, sysbench, pgbench, dbt3");
    insta::assert_snapshot!(overridden("variant.c.own_config", "x.cnf"), @"--set variant.c.own_config: write variant.NAME.KEY with the name of a variant of the plan; it has `a`, `b`");
    insta::assert_snapshot!(overridden("variant.a", "x"), @"--set variant.a: write variant.NAME.KEY with the name of a variant of the plan; it has `a`, `b`");
    insta::assert_snapshot!(overridden("variant.a.own_config", "x"), @"--set variant.a.own_config: variant `a` has own_config, which is only for a server that dbdyno starts (server or basedir)");
    insta::assert_snapshot!(overridden("name.x", "1"), @"--set name.x: `name` in the plan is not a table, so it has no keys to set");
    insta::assert_snapshot!(overridden("host..x", "1"), @"--set host..x: the key must be a dotted path such as blocks or workload.NAME.KEY");
    insta::assert_snapshot!(overridden("", "1"), @"--set : the key must be a dotted path such as blocks or workload.NAME.KEY");
}

#[test]
fn a_client_charset_is_one_word_and_only_for_mysqls_family() {
    insta::assert_snapshot!(broken("server = \"sqlite\"", "server = \"sqlite\"\noptions.client_charset = \"latin1\""), @"plan.toml:5:26: variant `a` has options.client_charset, which SQLite does not have; its options: pragmas");
    let word = |text: &str| broken("own_config = \"b.cnf\"", &format!("options.client_charset = \"{text}\""));
    insta::assert_snapshot!(word("latin1; DROP"), @"plan.toml:8:26: variant `b` has a client_charset that is no name of a character set: write utf8mb4, latin1, or another of the server's SHOW CHARACTER SET");
    assert_eq!(word(""), word("é"));
}

#[test]
fn a_server_public_key_is_only_for_addresses_of_mysqls_family_and_given_once() {
    let started = |key: &str| broken("own_config = \"b.cnf\"", key);
    insta::assert_snapshot!(started("options.server_public_key = \"k.pem\""), @"plan.toml:8:29: variant `b` has options.server_public_key, which is only for the address of a MariaDB or MySQL server");
    insta::assert_snapshot!(started("options.allow_public_key_retrieval = true"), @"plan.toml:8:38: variant `b` has options.allow_public_key_retrieval, which is only for the address of a MariaDB or MySQL server");
    let at = |keys: &str| broken("server = \"sqlite\"", &format!("address = \"mysql://u@h/d\"\n{keys}"));
    insta::assert_snapshot!(at("options.allow_public_key_retrieval = true\noptions.server_public_key = \"k.pem\""), @"plan.toml:5:38: variant `a` has server_public_key and allow_public_key_retrieval at once: the given key is used; remove allow_public_key_retrieval");
}

#[test]
fn an_option_that_the_servers_product_does_not_have_is_refused_with_those_that_it_has() {
    let of = |server: &str, options: &str| {
        broken("server = \"sqlite\"", &format!("{server}\noptions = {{ {options} }}"))
    };
    insta::assert_snapshot!(of("server = \"mysql-8.0.31\"", "enigne = \"rocksdb\""), @"plan.toml:5:22: variant `a` has options.enigne, which a MariaDB or MySQL server does not have (did you mean `engine`?); its options: engine, client_charset, column_definitions, deprecate_eof, session_track, server_public_key, allow_public_key_retrieval");
    insta::assert_snapshot!(of("server = \"pg-18\"", "engine = \"innodb\""), @"plan.toml:5:22: variant `a` has options.engine, and a PostgreSQL server has no options");
    insta::assert_snapshot!(of("address = \"postgres://u@h/d\"", "session_track = true"), @"plan.toml:5:29: variant `a` has options.session_track, and a PostgreSQL server has no options");
    insta::assert_snapshot!(of("address = \"mysql://u@h/d\"", "session_track = \"no\""), @r#"plan.toml:5:29: variant `a` has an options.session_track that does not fit: found string "no" where true or false is wanted"#);
    insta::assert_snapshot!(of("server = \"mysql-8.0.31\"", "column_definitions = \"twice\""), @"plan.toml:5:34: variant `a` has an options.column_definitions that does not fit: `twice` is not a value of this key; it takes once, always");
    insta::assert_snapshot!(of("server = \"null\"", "engine = \"innodb\""), @"plan.toml:5:11: variant `a` has options, which is only for a MariaDB, MySQL or PostgreSQL server and for sqlite");
    let of_folder = GOOD.replacen("server = \"sqlite\"", "basedir = \"b\"\noptions.enigne = 1", 1);
    assert!(parse(&of_folder, "plan.toml").is_ok(), "its product is known when it is opened");
}

#[test]
fn tls_settings_that_do_not_go_together_are_refused() {
    let with = |tls: &str| broken("own_config = \"b.cnf\"", tls);
    insta::assert_snapshot!(broken("server = \"sqlite\"", "server = \"sqlite\"\ntls = {}"), @"plan.toml:5:7: variant `a` has tls, which is only for a MariaDB, MySQL or PostgreSQL server");
    insta::assert_snapshot!(broken("server = \"sqlite\"", "address = \"mysql://u@h/d?tls=off\"\ntls = {}"), @"plan.toml:5:7: variant `a` has TLS in its address and in tls: keep one");
    insta::assert_snapshot!(with("tls = { mode = \"require\", ca = \"ca.pem\" }"), @r#"plan.toml:8:7: variant `b` has tls with a ca, which only mode = "verify" uses: set mode = "verify", or leave ca out"#);
    insta::assert_snapshot!(with("tls = { cert = \"c.pem\" }"), @"plan.toml:8:7: variant `b` has tls with one of cert and key: a client certificate needs both files");
    insta::assert_snapshot!(with("tls = { mode = \"verified\" }"), @"plan.toml:8:16: `verified` is not a value of this key; it takes off, prefer, require, verify");
    insta::assert_snapshot!(overridden("variant.b.tls.keys", "k"), @"--set variant.b.tls.keys: unknown key `keys` (did you mean `key`?)");
}

/// Returns the error of a plan with one workload on one variant.
fn with(workload: &str, variant: &str, options: &str) -> String {
    error(&plan(workload, variant, options))
}

fn plan(workload: &str, variant: &str, options: &str) -> String {
    format!("name = \"p\"\n[[variant]]\nname = \"a\"\n{variant}\n[workload.{workload}]\n{options}\n")
}

fn oltp(variant: &str, options: &str) -> String {
    with("oltp", variant, options)
}

fn microbenchmarks(variant: &str, options: &str) -> String {
    with("microbenchmarks", variant, options)
}

#[test]
fn existing_tables_are_only_for_a_server_with_an_address() {
    insta::assert_snapshot!(oltp("server = \"sqlite\"", "use_existing = true"), @"plan.toml:6:16: use_existing is for tables on an external server; variant a has no address, so it begins with fresh data");
    let address = "address = \"mysql://root@localhost/sbtest\"";
    insta::assert_snapshot!(microbenchmarks("server = \"sqlite\"", "use_existing = true"), @"plan.toml:6:16: use_existing is for tables on an external server; variant a has no address, so it begins with fresh data");
    insta::assert_snapshot!(microbenchmarks(address, "use_existing = true\n[workload.oltp]"), @"plan.toml:6:16: use_existing makes nothing in the database, but workload oltp of the same plan would make its tables there");
    insta::assert_snapshot!(microbenchmarks(address, "use_existing = true\ndelete_refill = true"), @"plan.toml:7:17: delete_refill puts rows back as the load makes them, and with use_existing there is no load: leave it out");
    insta::assert_snapshot!(oltp(address, "use_existing = true\n[workload.insert-benchmark]"), @"plan.toml:6:16: use_existing makes nothing in the database, but workload insert-benchmark of the same plan would make its tables there");
}

#[test]
fn a_first_id_that_a_variant_would_ignore_is_refused() {
    insta::assert_snapshot!(broken("clients = 2", "first_id = 1000"), @"plan.toml:10:12: first_id is 1000, but variant `a` is SQLite, where ids begin with 1: leave it out");
    let elsewhere = GOOD.replacen("\"sqlite\"", "\"null\"", 1).replacen("clients = 2", "first_id = 1000", 1);
    assert!(parse(&elsewhere, "plan.toml").is_ok());
}

#[test]
fn a_test_without_a_statement_is_refused() {
    const NULL: &str = "server = \"null\"";
    let null = |options: &str| oltp(NULL, options);
    insta::assert_snapshot!(null("tests = [\"update-index\"]\nindex_updates = 0"), @"plan.toml:7:17: the test update-index has no statement, because index_updates is 0: ask for at least one, or leave the test out of tests");
    insta::assert_snapshot!(null("tests = [\"update-non-index\"]\nnon_index_updates = 0"), @"plan.toml:7:21: the test update-non-index has no statement, because non_index_updates is 0: ask for at least one, or leave the test out of tests");
    let no_reads = "point_selects = 0\nrange_selects = false";
    insta::assert_snapshot!(null(&format!("tests = [\"read-only\"]\n{no_reads}\nskip_trx = true")), @"plan.toml:9:12: the test read-only has no statement, because skip_trx leaves out BEGIN and COMMIT, and point selects and ranges are off: ask for at least one, or leave the test out of tests");
    let no_writes = "index_updates = 0\nnon_index_updates = 0\ndelete_inserts = 0";
    insta::assert_snapshot!(null(&format!("tests = [\"write-only\"]\n{no_writes}\nskip_trx = true")), @"plan.toml:10:12: the test write-only has no statement, because skip_trx leaves out BEGIN and COMMIT, and all writes are off: ask for at least one, or leave the test out of tests");
    insta::assert_snapshot!(null(&format!("tests = [\"read-write\"]\n{no_reads}\n{no_writes}\nskip_trx = true")), @"plan.toml:12:12: the test read-write has no statement, because skip_trx leaves out BEGIN and COMMIT, and all reads and writes are off: ask for at least one, or leave the test out of tests");
    let is_fine = |options: &str| parse(&plan("oltp", NULL, options), "plan.toml").is_ok();
    assert!(is_fine(&format!("tests = [\"read-only\"]\n{no_reads}")), "BEGIN and COMMIT are statements");
    assert!(is_fine(&format!("tests = [\"read-write\"]\n{no_reads}\nskip_trx = true")), "writes are left");
    assert!(
        is_fine("tests = [\"point-select\"]\npoint_selects = 0\nindex_updates = 0"),
        "these are for others"
    );
}

#[test]
fn options_of_oltp_tables_that_contradict_each_other_are_named() {
    let sqlite = "server = \"sqlite\"";
    insta::assert_snapshot!(oltp(sqlite, "create_secondary = false\nindex_before_load = true"), @"plan.toml:7:21: index_before_load wants an index on k, and create_secondary = false wants none");
    insta::assert_snapshot!(oltp(sqlite, "zipfian_scrambled = true"), @r#"plan.toml:6:21: zipfian_scrambled is for distribution = "zipfian""#);
    insta::assert_snapshot!(oltp(sqlite, "table_size = 3_000_000_000"), @r#"plan.toml:6:14: table_size is 3000000000, but must be 1 to 2147483647; with id = "bigint" it may be greater"#);
    insta::assert_snapshot!(oltp(sqlite, "first_id = 2_147_480_000"), @r#"plan.toml:6:12: first_id and table_size make 2147489999 the last id, but it must be at most 2147483647; with id = "bigint" it may be greater"#);
    insta::assert_snapshot!(oltp(sqlite, "first_id = 3_000_000_000"), @r#"plan.toml:6:12: first_id is 3000000000, but must be 1 to 2147483647; with id = "bigint" it may be greater"#);
    insta::assert_snapshot!(oltp(sqlite, "id = \"bigint\"\nfirst_id = 0"), @"plan.toml:7:12: first_id is 0, but must be 1 to 1000000000000");
    insta::assert_snapshot!(microbenchmarks(sqlite, "warm_scan_time = \"500ms\""), @"plan.toml:6:18: warm_scan_time is 500ms, but must be at least 1s");
    insta::assert_snapshot!(microbenchmarks(sqlite, "first_id = 3_000_000_000"), @r#"plan.toml:6:12: first_id is 3000000000, but must be 1 to 2147483647; with id = "bigint" it may be greater"#);
    insta::assert_snapshot!(microbenchmarks(sqlite, "data = \"restore-each-step\"\ndelete_refill = true"), @r#"plan.toml:7:17: delete_refill is for tables that go on; with data = "restore-each-step" each step begins on full ones: leave it out"#);
    insta::assert_snapshot!(microbenchmarks(sqlite, "load_method = \"copy\""), @"plan.toml:6:15: `copy` is not a value of this key; it takes insert, stream");
    insta::assert_snapshot!(oltp(sqlite, "profile = \"sysbench-0.4\""), @"plan.toml:6:11: `sysbench-0.4` is not a value of this key (did you mean `sysbench-0.5`?); it takes sysbench-1, sysbench-0.5");
}

#[test]
fn steps_are_listed_even_for_options_that_are_checked_later() {
    for (workload, options) in [
        ("dbt3", "parts = [\"power\", \"throughput\"]\nstreams = 4_000_000_000\nscale_factor = -1.0"),
        ("dbt3", "repetitions = 4_000_000_000\ntime_limit = \"100000h\""),
        ("insert-benchmark", "rates = [0]\nsecondary_indexes = 4_294_967_295\ntime_cap = nan"),
        ("insert-benchmark", "time_cap = 1e300\nrows_per_commit = { load = 0 }"),
        ("microbenchmarks", "tables = 0\ntime_cap = -1.0"),
        ("oltp", "tests = [\"read-write\"]\ntime_cap = 1e300"),
        ("pgbench", "scale = 4_294_967_295\ntime_cap = nan"),
    ] {
        // The design is checked before the options, and its check needs the list of steps.
        let text =
            plan(workload, "server = \"sqlite\"", options).replacen('\n', "\ndesign = \"alternate\"\n", 1);
        let error = error(&text);
        assert!(error.contains("changes the data that all later blocks read"), "{workload}: {error}");
    }
}
