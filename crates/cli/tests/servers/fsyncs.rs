//! fsyncs per commit on real servers: one connection whose every statement is a commit, so that how many it takes is known.

use crate::support::{Desk, faults, findings};
use crate::{
    MARIADB_10_11, MY_CNF, MYSQL_5_5, MYSQL_5_6, MYSQL_8_0, POSTGRES_15, POSTGRES_18, POSTGRESQL_CONF,
    variant,
};

const WORKLOAD: &str = "[workload.oltp]\ntests = [\"update-non-index\"]\ntable_size = 100\nconnections = [1]\ntime = \"2s\"\n\
    create_secondary = false\n";

/// Pages that the server writes meanwhile are synced as well: few, beside hundreds of commits.
const MEANWHILE: f64 = 0.15;

/// fsyncs per commit of the variants, in their order, and the warnings.
fn measured(desk: &Desk, variants: &str) -> (Vec<Option<f64>>, Vec<String>) {
    desk.write("p.toml", &format!("name = \"p\"\n{variants}{WORKLOAD}"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!(faults(&findings), [""; 0]);
    let step = findings.workloads[0].steps.iter().find(|step| step.name == "update-non-index.c1").unwrap();
    let fsyncs = step.variants.iter().map(|variant| variant.runs[0].cost.fsyncs_per_commit);
    (fsyncs.collect(), findings.warnings.clone())
}

/// Without a binary log, and with one that is synced at each commit, at each tenth, and not.
fn binary_log(prefix: &str, expected: [f64; 4]) {
    let desk = Desk::new();
    let log = "log_bin = binlog\nserver_id = 1\nsync_binlog = ";
    let options = [
        ("none", "skip_log_bin\n".to_owned()),
        ("synced", format!("{log}1\n")),
        ("tenth", format!("{log}10\n")),
        ("unsynced", format!("{log}0\n")),
    ];
    let variants = options.map(|(name, options)| {
        desk.write(&format!("{name}.cnf"), &format!("{MY_CNF}{options}"));
        variant(name, prefix, &format!("my_cnf = \"{name}.cnf\""))
    });
    let (found, _) = measured(&desk, &variants.concat());
    for ((found, expected), name) in found.iter().zip(expected).zip(["none", "synced", "tenth", "unsynced"]) {
        let found = found.unwrap();
        assert!(
            (expected - 0.02..expected + MEANWHILE).contains(&found),
            "{prefix} {name}: {found}, not {expected}"
        );
    }
}

#[test]
fn mariadb_syncs_its_redo_log_and_its_binary_log_once_a_commit() {
    binary_log(MARIADB_10_11, [1.0, 2.0, 1.1, 1.0]);
}

#[test]
fn mysql_syncs_its_redo_log_and_its_binary_log_once_a_commit() {
    binary_log(MYSQL_8_0, [1.0, 2.0, 1.1, 1.0]);
    binary_log(MYSQL_5_6, [1.0, 2.0, 1.1, 1.0]);
}

#[test]
fn mysql_5_5_syncs_its_redo_log_twice_beside_a_binary_log() {
    binary_log(MYSQL_5_5, [1.0, 3.0, 2.1, 2.0]);
}

#[test]
fn syncs_of_a_binary_log_that_nobody_counts_leave_no_figure_and_are_told() {
    let desk = Desk::new();
    desk.write(
        "blind.cnf",
        &format!("{MY_CNF}performance_schema = OFF\nlog_bin = binlog\nsync_binlog = 1\n"),
    );
    desk.write("none.cnf", &format!("{MY_CNF}performance_schema = OFF\nskip_log_bin\n"));
    let variants = variant("blind", MYSQL_8_0, "my_cnf = \"blind.cnf\"")
        + &variant("none", MYSQL_8_0, "my_cnf = \"none.cnf\"");
    let (found, warnings) = measured(&desk, &variants);
    assert!(found[0].is_none() && found[1].is_some_and(|found| (0.98..1.15).contains(&found)), "{found:?}");
    let told = warnings
        .iter()
        .any(|text| text.starts_with("blind: the binary log is synced and the server does not tell"));
    assert!(told, "{warnings:?}");
}

#[test]
fn postgres_syncs_its_log_once_a_commit_and_not_at_all_where_commits_do_not_wait() {
    let desk = Desk::new();
    desk.write("wait.conf", &format!("{POSTGRESQL_CONF}synchronous_commit = on\n"));
    desk.write("later.conf", &format!("{POSTGRESQL_CONF}synchronous_commit = off\n"));
    let of = |name: &str, prefix| {
        ["wait", "later"].map(|conf| {
            variant(&format!("{name}-{conf}"), prefix, &format!("postgresql_conf = \"{conf}.conf\""))
        })
    };
    let variants = [of("pg-15", POSTGRES_15), of("pg-18", POSTGRES_18)].concat().concat();
    let (found, _) = measured(&desk, &variants);
    for pair in found.chunks(2) {
        let [Some(wait), Some(later)] = *pair else { panic!("{found:?}") };
        assert!((0.98..1.0 + MEANWHILE).contains(&wait) && later < MEANWHILE, "{found:?}");
    }
}
