//! Compares the plan's number of prepared statements with the statements that each step has.

use dbdyno_db::postgres;
use dbdyno_plan::{Plan, WorkloadOptions};
use dbdyno_workloads::microbenchmarks::{Microbenchmarks, options};
use dbdyno_workloads::oltp::Oltp;
use dbdyno_workloads::plans::parse;
use dbdyno_workloads::{AnyWorkload, Workload};

use crate::desk::Desk;

fn plan(workload: &str) -> Plan {
    let text = format!("name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n{workload}\n");
    parse(&text, "p.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the number of different statements in the plan's last step. Its specification lists each
/// of them once.
fn statements<W: Workload>(desk: &Desk<W>) -> u64 {
    let spec = desk.workload.spec(desk.workload.steps().len() - 1);
    assert_eq!(spec.kinds[0].protocol, "prepared", "{}", spec.name);
    spec.kinds[0].statement.split("; ").count() as u64
}

#[test]
fn the_plan_counts_the_statements_that_a_connection_prepares() {
    for test in ["point-select", "read-only", "read-write", "write-only", "update-index", "insert", "delete"]
    {
        for option in ["", "skip_trx = true", "range_selects = false", "delete_inserts = 0"] {
            let text = format!("[workload.oltp]\ntests = [\"{test}\"]\nprotocol = \"prepared\"\n{option}");
            let plan = plan(&text);
            let own = plan.workload.options().unwrap();
            let desk = Desk::of(|context| Oltp::new(own, context), postgres::capabilities());
            assert_eq!(plan.workload.most_prepared_statements(true), statements(&desk), "{text}");
        }
    }
}

#[test]
fn the_plan_counts_the_prepared_statements_of_every_microbenchmark() {
    for (sequence, lowest) in [("42", 40), ("32", 30)] {
        let table = format!("[workload.microbenchmarks]\nprotocol = \"prepared\"\nsequence = \"{sequence}\"");
        let mut steps =
            plan(&table).workload.options::<options::MicrobenchmarksOptions>().unwrap().step_names();
        steps.retain(|name| !["load", "index"].contains(&name.as_str()));
        assert!(steps.len() >= lowest, "{steps:?}");
        for step in steps {
            let plan = plan(&format!("{table}\nsteps = [\"{step}\"]"));
            let own = plan.workload.options().unwrap();
            let desk = Desk::of(|context| Microbenchmarks::new(own, context), postgres::capabilities());
            assert_eq!(plan.workload.most_prepared_statements(true), statements(&desk), "{step}");
        }
    }
}
