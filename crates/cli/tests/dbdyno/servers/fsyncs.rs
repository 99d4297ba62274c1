//! Tests fsyncs per commit on real servers. One connection commits with every statement, so the
//! expected number is known.

use dbdyno_analyse::{Code, VariantStep, Warning};
use dbdyno_record::Run;

use crate::servers::{
    MARIADB_10_11, MARIADB_11_8, MY_CNF, MYSQL_5_5, MYSQL_5_6, MYSQL_8_0, POSTGRES_15, POSTGRES_18,
    POSTGRESQL_CONF, variant,
};
use crate::support::{Desk, faults, findings};

const WORKLOAD: &str = "[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"update-non-index\"]\ntable_size = 100\nconnections = [1]\n\
    create_secondary = false\n";

/// Tolerance in fsyncs per commit. Commits and fsyncs are not read at the same moment, and a delay
/// between the two readings shifts the quotient. The longer the step, the smaller the shift.
const TOLERANCE: f64 = 0.03;

/// A variant's fsyncs per commit.
struct FsyncsPerCommit {
    all: Option<f64>,
    /// Only the engines' fsyncs, from their own counters; 0 for PostgreSQL.
    engine: f64,
}

/// Measures each variant for `seconds` seconds. Returns their figures in the order of the variants,
/// and the warnings.
fn measured(desk: &Desk, variants: &str, seconds: u32) -> (Vec<FsyncsPerCommit>, Vec<Warning>) {
    desk.write("p.toml", &format!("name = \"p\"\n{variants}{WORKLOAD}time = \"{seconds}s\"\n"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let (findings, run) = (findings(&desk.run_dir()), Run::open(&desk.run_dir()).unwrap());
    assert_eq!(faults(&findings), [""; 0]);
    let of = |variant: &VariantStep| {
        let cell = run.cells.iter().find(|cell| cell.id.variant == variant.variant).unwrap();
        let step = cell.steps.last().unwrap();
        // These are the samples that the analysis uses. Between other samples the server's
        // background threads sync a few more times.
        let (from_us, to_us) = step.window().unwrap();
        let value = |key: &str, us: u64| {
            step.counters["status"].nearest(key, us.cast_signed()).map_or(0, |(_, value)| value)
        };
        let change = |key: &str| (value(key, to_us) - value(key, from_us)) as f64;
        let engines = change("Innodb_data_fsyncs") + change("Rocksdb_wal_synced");
        let engine = engines / change("Com_update").max(1.0);
        FsyncsPerCommit { all: variant.runs[0].cost.fsyncs_per_commit, engine }
    };
    let step = findings.workloads[0].steps.last().unwrap();
    (step.variants.iter().map(of).collect(), findings.warnings)
}

/// Name, further lines for the option file, the lowest number of engine fsyncs per commit, and the
/// binary log's fsyncs per commit. The engine may have more, because it also syncs pages that it
/// writes in the background.
type Expected = (&'static str, String, f64, f64);

/// Measures a server without a binary log, and with one that is synced at each commit, at each
/// tenth commit, and never. `with_log` is the number of redo log fsyncs per commit when there is a
/// binary log.
fn binary_log(prefix: &str, with_log: f64) {
    let log = "log_bin = binlog\nserver_id = 1\nsync_binlog = ";
    let expected = [
        ("none", "skip_log_bin\n".to_owned(), 1.0, 0.0),
        ("synced", format!("{log}1\n"), with_log, 1.0),
        ("tenth", format!("{log}10\n"), with_log, 0.1),
        ("unsynced", format!("{log}0\n"), with_log, 0.0),
    ];
    expect(prefix, "", &expected);
}

/// Measures the variants in longer and longer steps until all figures are as expected.
fn expect(prefix: &str, more: &str, expected: &[Expected]) {
    let desk = Desk::new();
    let variants = expected.iter().map(|(name, options, ..)| {
        desk.write(&format!("{name}.cnf"), &format!("{MY_CNF}{options}"));
        variant(name, prefix, &format!("own_config = \"{name}.cnf\"\n{more}"))
    });
    let variants: String = variants.collect();
    let mut faults = Vec::new();
    for seconds in [3, 10, 30] {
        let (found, _) = measured(&desk, &variants, seconds);
        faults = found.iter().zip(expected).filter_map(fault_of).collect();
        if faults.is_empty() {
            return;
        }
        std::fs::remove_dir_all(desk.run_dir()).unwrap();
    }
    panic!("{prefix}: {}", faults.join("; "));
}

fn fault_of(
    (FsyncsPerCommit { all, engine }, (name, _, redo, binlog)): (&FsyncsPerCommit, &Expected),
) -> Option<String> {
    let of_binlog = all.unwrap() - engine;
    let is_right = *engine > redo - TOLERANCE && (of_binlog - binlog).abs() < TOLERANCE;
    (!is_right).then(|| {
        format!("{name}: engine {engine}, expected {redo}, binary log {of_binlog}, expected {binlog}")
    })
}

#[test]
#[ignore = "in cargo xtask test --all: other versions, minutes"]
fn mariadb_syncs_its_redo_log_and_its_binary_log_at_each_commit() {
    binary_log(MARIADB_10_11, 1.0);
}

#[test]
#[ignore = "in cargo xtask test --all: other versions, minutes"]
fn mysql_syncs_its_binary_log_at_each_commit_as_well_as_its_redo_log() {
    binary_log(MYSQL_8_0, 1.0);
    binary_log(MYSQL_5_6, 1.0);
}

#[test]
#[ignore = "in cargo xtask test --all: other versions, minutes"]
fn mysql_5_5_syncs_its_redo_log_twice_with_a_binary_log() {
    binary_log(MYSQL_5_5, 2.0);
}

#[test]
#[ignore = "in cargo xtask test --all: other versions, minutes"]
fn syncs_of_a_binary_log_that_are_not_counted_leave_no_figure_and_are_reported() {
    let desk = Desk::new();
    desk.write(
        "blind.cnf",
        &format!("{MY_CNF}performance_schema = OFF\nlog_bin = binlog\nsync_binlog = 1\n"),
    );
    desk.write("none.cnf", &format!("{MY_CNF}performance_schema = OFF\nskip_log_bin\n"));
    let variants = variant("blind", MYSQL_8_0, "own_config = \"blind.cnf\"")
        + &variant("none", MYSQL_8_0, "own_config = \"none.cnf\"");
    let (found, warnings) = measured(&desk, &variants, 2);
    let [blind, none] = [0, 1].map(|at: usize| found[at].all);
    assert!(blind.is_none() && none.is_some(), "{blind:?} {none:?}");
    let is_of_blind =
        |warning: &Warning| warning.code == Code::FsyncsUncounted && warning.places == ["blind"];
    assert!(warnings.iter().any(is_of_blind), "{warnings:?}");
}

#[test]
#[ignore = "in cargo xtask test --all: other versions, minutes"]
fn myrocks_syncs_its_own_log_at_each_commit() {
    let options = "plugin_load_add = ha_rocksdb\nrocksdb_flush_log_at_trx_commit = 1\n".to_owned();
    expect(MARIADB_11_8, "options.engine = \"rocksdb\"", &[("rocks", options, 1.0, 0.0)]);
}

#[test]
#[ignore = "in cargo xtask test --all: other versions, minutes"]
fn postgres_syncs_its_log_at_each_commit_and_less_often_where_commits_do_not_wait() {
    let of = |name: &str, prefix| {
        ["wait", "later"]
            .map(|conf| variant(&format!("{name}-{conf}"), prefix, &format!("own_config = \"{conf}.conf\"")))
    };
    let variants = [of("pg-15", POSTGRES_15), of("pg-18", POSTGRES_18)].concat().concat();
    // Sessions report their statistics at most once per second. In a step of one second they hardly
    // report before they end.
    for seconds in [1, 3] {
        let desk = Desk::new();
        desk.write("wait.conf", &format!("{POSTGRESQL_CONF}synchronous_commit = on\n"));
        desk.write("later.conf", &format!("{POSTGRESQL_CONF}synchronous_commit = off\n"));
        let (found, warnings) = measured(&desk, &variants, seconds);
        let fsyncs: Vec<f64> = found.iter().map(|found| found.all.unwrap()).collect();
        for pair in fsyncs.chunks(2) {
            assert!(pair[0] > 1.0 - TOLERANCE && pair[1] < pair[0] / 2.0, "{fsyncs:?}");
        }
        assert!(!warnings.iter().any(|warning| warning.code == Code::FsyncsUncounted), "{warnings:?}");
    }
}
