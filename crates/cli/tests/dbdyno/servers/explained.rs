//! Tests variants whose servers choose different plans for a statement. The explanation of the
//! difference names both plans.

use dbdyno_analyse::{PlanDifference, Verdict};

use crate::servers::postgres::{PASSWORD, number};
use crate::servers::shared::{self, POSTGRES};
use crate::servers::{MY_CNF, MYSQL_8_0, POSTGRES_15, POSTGRESQL_CONF, variant};
use crate::support::{Desk, faults, findings};

fn difference(statement: &str, base: &str, variant: &str) -> PlanDifference {
    let own = str::to_owned;
    PlanDifference { statement: own(statement), base: own(base), variant: own(variant) }
}

#[test]
fn statements_whose_plans_differ_are_named_with_both_plans() {
    let desk = Desk::new();
    let role = format!("CREATE ROLE without_index LOGIN CREATEDB PASSWORD '{PASSWORD}'");
    number(&POSTGRES.options(None), &role);
    for name in ["enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"] {
        number(&POSTGRES.options(None), &format!("ALTER ROLE without_index SET {name} = off"));
    }
    let variant = |name: &str, user: &str| {
        let address = shared::address(&POSTGRES, user, &shared::database());
        format!("[[variant]]\nname = \"{name}\"\naddress = \"{address}\"\npassword_env = \"PASSWORD\"\n")
    };
    let variants = variant("with", "bench") + &variant("without", "without_index");
    let workload = "[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"point-select\"]\ntable_size = 20_000\nevents = 50\n";
    desk.write("p.toml", &format!("name = \"p\"\n{variants}{workload}"));
    desk.ended(desk.command(&["run", "p.toml"]).env("PASSWORD", PASSWORD)).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!(faults(&findings), [""; 0]);
    let step = findings.workloads[0].steps.iter().find(|step| step.name == "point-select.c1").unwrap();
    let (base, variant) = ("Index Scan using sbtest1_pkey on sbtest1", "Seq Scan on sbtest1");
    assert_eq!(step.variants[1].context.query_plans, [difference("point-select", base, variant)]);
    let report = desk.dbdyno(&["report", desk.run_dir().to_str().unwrap(), "--format", "md"]);
    // The report names a cause only for variants that differ. Other tests may take as much time as
    // the other plan does.
    let ratio = step.variants[1].to_base.ratio.as_ref().map(|ratio| ratio.value);
    let is_apart = ratio.is_some_and(|ratio| (ratio - 1.0).abs() > 0.05);
    assert_eq!(report.out.contains("| other plan |"), is_apart, "{ratio:?}: {}", report.out);
}

#[test]
#[ignore = "in cargo xtask test --all: servers of its own"]
fn a_server_that_may_not_use_its_index_is_slower_and_the_report_names_statement_and_both_plans() {
    let desk = Desk::new();
    desk.write("with.conf", POSTGRESQL_CONF);
    let without = "enable_indexscan = off\nenable_indexonlyscan = off\nenable_bitmapscan = off\n";
    desk.write("without.conf", &format!("{POSTGRESQL_CONF}{without}"));
    let variants = variant("with", POSTGRES_15, "own_config = \"with.conf\"")
        + &variant("without", POSTGRES_15, "own_config = \"without.conf\"");
    let workload = "[workload.oltp]\nsettle_wait = \"0s\"\ntests = [\"point-select\"]\ntable_size = 20_000\nconnections = [1]\ntime = \"1s\"\n";
    desk.write("p.toml", &format!("name = \"p\"\nblocks = 5\n{variants}{workload}"));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!(faults(&findings), [""; 0]);
    let step = findings.workloads[0].steps.iter().find(|step| step.name == "point-select.c1").unwrap();
    let found = &step.variants[1];
    let expected =
        difference("point-select", "Index Scan using sbtest1_pkey on sbtest1", "Seq Scan on sbtest1");
    assert_eq!(found.context.query_plans, [expected]);
    assert!(found.to_base.ratio.as_ref().unwrap().value < 0.5, "{:?}", found.to_base.ratio);
    // Other tests run at the same time, and their load may leave the verdict undecided.
    let expected = if found.to_base.foreign_load.is_some() { Verdict::Undecided } else { Verdict::Slower };
    assert!([Verdict::Slower, expected].contains(&found.to_base.verdict.unwrap()), "{found:?}");
    let sentence =
        "Plan of point-select: Seq Scan on sbtest1 (base: Index Scan using sbtest1_pkey on sbtest1).";
    let report = desk.dbdyno(&["report", desk.run_dir().to_str().unwrap(), "--format", "md"]);
    // The report names causes only for a decided verdict.
    let is_named = report.out.contains(sentence) && report.out.contains("| other plan |");
    assert_eq!(is_named, found.to_base.verdict == Some(Verdict::Slower), "{}", report.out);
}

#[test]
#[ignore = "in cargo xtask test --all: servers of its own"]
fn a_switch_of_the_optimizer_shows_in_the_plans_of_the_statements_that_it_concerns_alone() {
    let desk = Desk::new();
    desk.write("on.cnf", MY_CNF);
    desk.write("off.cnf", &format!("{MY_CNF}optimizer_switch = index_condition_pushdown=off\n"));
    let variants = variant("on", MYSQL_8_0, "own_config = \"on.cnf\"")
        + &variant("off", MYSQL_8_0, "own_config = \"off.cnf\"");
    let workload = "[workload.microbenchmarks]\nsteps = [\"point-query\", \"range-notcovered-si\"]\ntable_size = 5_000\n\
        operations = 50\nsettle_wait = \"0s\"\n";
    desk.write("p.toml", &format!("name = \"p\"\n{variants}{workload}"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!(faults(&findings), [""; 0]);
    let of = |name: &str| {
        let step = findings.workloads[0].steps.iter().find(|step| step.name == name).unwrap();
        step.variants[1].context.query_plans.clone()
    };
    assert_eq!(of("point-query"), []);
    let (base, variant) = ("index k_1 range, index condition", "index k_1 range");
    assert_eq!(of("range-notcovered-si"), [difference("range", base, variant)]);
}
