//! Warnings about steps that should begin with empty caches and read nothing from storage:
//! something had filled the caches again.

use dbdyno_record::{OperationClass, Run};
use serde_json::Value;

use crate::model::runs::valid;
use crate::model::{Code, Warning, WorkloadFindings};

/// One warning per variant and step, with its blocks.
pub(crate) fn warnings(run: &Run, workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let mut found = Vec::new();
    for workload in workloads {
        let info = run.manifest.workloads.iter().find(|info| info.name == workload.name);
        let Some(cold) = info.and_then(|info| info.options.get("cold")) else { continue };
        // Steps that load or build read what they have just written.
        let steps = workload.steps.iter().filter(|step| step.headline_class == OperationClass::Query);
        for step in steps.filter(|step| holds(cold, &step.name)) {
            for variant in &step.variants {
                let blocks: Vec<u32> = valid(&variant.runs)
                    .filter(|run| run.cost.server_read_kib == Some(0.0))
                    .map(|run| run.block)
                    .collect();
                if !blocks.is_empty() {
                    let place = format!("{} {}", variant.variant, step.name);
                    found.push(Warning::new(Code::NotCold).at(place).with("blocks", blocks.as_slice()));
                }
            }
        }
    }
    found
}

/// Whether the workload's option `cold` includes the step. It stands for all measured steps, or for
/// those that it names.
fn holds(cold: &Value, step: &str) -> bool {
    match cold {
        Value::Bool(all) => *all,
        Value::Array(names) => names.iter().any(|name| name.as_str() == Some(step)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use crate::analyse;
    use crate::fixtures::{cell, query_seconds_step, run, series, texts};

    /// The warnings for a cold query of two seconds. `read_bytes` is what the server's process had
    /// read at its beginning and its end.
    fn reported(read_bytes: [i64; 2], cold: serde_json::Value) -> String {
        let mut step = query_seconds_step("q6", &[(2.0, false)]);
        step.intervals.push(crate::fixtures::interval(0, 1_000_000, 1, "query", 0, 0));
        step.intervals.push(crate::fixtures::interval(1_000_000, 2_000_000, 1, "query", 1, 1));
        let [first, last] = read_bytes;
        step.counters = series("server", &["read_bytes"], &[(0, vec![first]), (2_000_000, vec![last])]);
        let mut run = run(&["a"], 1, vec![cell(1, "a", vec![step])]);
        run.manifest.workloads[0].options.insert("cold".to_owned(), cold);
        let found = analyse(&run);
        texts(&found).into_iter().filter(|text| text.starts_with("not-cold")).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_cold_step_that_read_nothing_is_reported() {
        assert_snapshot!(reported([4_096, 4_096], json!(true)), @"not-cold [a q6] blocks: [1]");
        assert_eq!(reported([4_096, 8_192], json!(true)), "");
        assert_eq!(reported([4_096, 4_096], json!(["q7"])), "");
        assert_eq!(reported([4_096, 4_096], json!(false)), "");
    }
}
