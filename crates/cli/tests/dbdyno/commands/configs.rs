//! Tests of config intents: what `dbdyno plan` shows of them, and the errors that are found before
//! anything runs.

use std::path::Path;

use crate::commands::plan;
use crate::support::Desk;

/// Returns the output of `dbdyno plan` with an empty servers folder, where dbdyno knows a server's
/// features only from its name.
fn shown(desk: &Desk, variants: &str, arguments: &[&str]) -> String {
    desk.write("p.toml", &plan(variants, ""));
    let mut command = desk.command(&[&["plan", "p.toml"], arguments].concat());
    let ended = desk.ended(command.env("DBDYNO_SERVERS", desk.path("servers")));
    if ended.out.is_empty() { desk.refusal(&ended) } else { desk.golden(&ended.out) }
}

fn variant(name: &str, server: &str, config: &str) -> String {
    format!("[[variant]]\nname = \"{name}\"\nserver = \"{server}\"\nconfig = {config}\n")
}

#[test]
fn a_plan_shows_each_variants_option_file_without_any_server() {
    let desk = Desk::new();
    desk.write(
        "base.toml",
        "buffer_pool = \"1 GiB\"\nredo = \"2 GiB\"\n[where_possible]\nchange_buffer = \"all\"\n",
    );
    let config = "[\"base.toml\", { redo = \"1 GiB\" }]";
    let variants = variant("old", "mysql-5.6.24", config) + &variant("new", "mariadb-11.8.6", config);
    insta::assert_snapshot!(shown(&desk, &variants, &["--configs"]), @r"
    ## variant old
    # note: MySQL 5.6.24 is not installed: product and version are taken from its name
    # For MySQL 5.6.24, from the config of the plan.
    [mysqld]
    # buffer_pool = 1 GiB
    innodb_buffer_pool_size = 1073741824
    # redo = 1 GiB
    innodb_log_file_size = 536870912
    innodb_log_files_in_group = 2
    # change_buffer = all
    innodb_change_buffering = all

    ## variant new
    # note: change_buffer = all is left out, as where_possible allows: MariaDB 11.8.6 has none; it exists in MySQL and Percona Server; MariaDB before 11.0
    # note: MariaDB 11.8.6 is not installed: product and version are taken from its name
    # For MariaDB 11.8.6, from the config of the plan.
    [mysqld]
    # buffer_pool = 1 GiB
    innodb_buffer_pool_size = 1073741824
    # redo = 1 GiB
    innodb_log_file_size = 1073741824
    ");
    let whole = shown(&desk, &variants, &[]);
    let section = whole.split("\n\n").find(|part| part.starts_with("configs")).unwrap();
    insta::assert_snapshot!(section, @r"
    configs (--configs shows the option files)
      old  4 options for MySQL 5.6.24
           MySQL 5.6.24 is not installed: product and version are taken from its name
      new  2 options for MariaDB 11.8.6
           change_buffer = all is left out, as where_possible allows: MariaDB 11.8.6 has none; it exists
           in MySQL and Percona Server; MariaDB before 11.0
           MariaDB 11.8.6 is not installed: product and version are taken from its name
    ");
}

#[test]
fn an_impossible_intent_names_the_variant_the_server_and_products_that_support_it() {
    let variants = variant("a", "mariadb-11.8.6", "{ change_buffer = \"all\", binlog_in_engine = true }")
        + &variant("b", "sqlite", "{ doublewrite = true }");
    insta::assert_snapshot!(shown(&Desk::new(), &variants, &[]), @r"
    exit 2: error: variant a: config:
      binlog_in_engine = true: MariaDB 11.8.6 has none; it exists in MariaDB from 12.3
      change_buffer = all: MariaDB 11.8.6 has none; it exists in MySQL and Percona Server; MariaDB before 11.0
      MariaDB 11.8.6 cannot do these: leave them out, or put them under [where_possible] to have them on the servers that can
    variant b: config:
      doublewrite = true: SQLite has none; it exists in MySQL and Percona Server; MariaDB; PostgreSQL
      SQLite cannot do this: leave it out, or put it under [where_possible] to have it on the servers that can
    ");
}

#[test]
fn an_unknown_intent_and_a_missing_file_are_refused_before_a_run() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(&variant("a", "sqlite", "{ bufer_pool = \"1 GiB\" }"), ""));
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["run", "p.toml"])), @"exit 2: error: variant a: config: `bufer_pool` is not an intent; did you mean `buffer_pool`?");
    desk.write("p.toml", &plan(&variant("a", "sqlite", "\"none.toml\""), ""));
    insta::assert_snapshot!(desk.refusal(&desk.dbdyno(&["run", "p.toml"])), @"exit 2: error: variant a: config file FOLDER/none.toml: No such file or directory (os error 2); `dbdyno plans show configs/small.toml` prints one that ships");
    assert!(desk.run_dirs().is_empty(), "a run was begun");
}

#[test]
fn sqlite_runs_with_the_pragmas_of_its_intents_and_its_own_win() {
    let desk = Desk::new();
    let config = "{ journal_mode = \"wal\", durability = \"off\", page_size = \"8 KiB\" }\noptions.pragmas = { synchronous = \"normal\" }";
    desk.write("p.toml", &plan(&variant("a", "sqlite", config), "read_write_time = \"1s\""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let run = dbdyno_record::Run::open(&desk.run_dir()).unwrap();
    let info = &run.manifest.variants[0];
    assert_eq!(
        info.config,
        "PRAGMA page_size = 8192\nPRAGMA journal_mode = wal\nPRAGMA synchronous = normal\n"
    );
    assert_eq!(info.intents["durability"], "off");
}

/// Every shipped plan can be rendered for the servers that it names, whether they are installed or
/// not.
#[test]
fn every_shipped_plan_can_be_rendered() {
    let desk = Desk::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plans");
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let mut command = desk.command(&["plan", path.to_str().unwrap(), "--configs"]);
            let ended = desk.ended(command.env("DBDYNO_SERVERS", desk.path("servers")));
            assert_eq!(ended.code, Some(0), "{}: {}", path.display(), ended.err);
        }
    }
}
