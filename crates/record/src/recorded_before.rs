//! What a record says of a step's operations and of a workload's size. Records from before these
//! fields say it by names: of kinds of operations, and of options.

use serde_json::{Map, Value};

use crate::{KindSpec, OperationClass, StepSpec, WorkloadInfo};

/// Of operations, by the name of their kind.
fn class_of(kind: &str) -> OperationClass {
    match kind {
        "query" => OperationClass::Query,
        "scan" => OperationClass::Scan,
        "insert" => OperationClass::Insert,
        "delete" => OperationClass::Delete,
        "index" => OperationClass::Index,
        _ => OperationClass::Other,
    }
}

impl KindSpec {
    /// What its operations do.
    pub fn class(&self) -> OperationClass {
        self.class.unwrap_or_else(|| class_of(&self.kind))
    }

    /// The next of a connection waits for the answer to the one before: it comes by no schedule.
    pub fn is_closed_loop(&self) -> bool {
        self.pace.starts_with("closed")
    }

    /// They write, so that each of them commits.
    pub fn writes(&self) -> bool {
        let changes_rows = matches!(self.class(), OperationClass::Insert | OperationClass::Delete);
        self.user_bytes_per_operation > 0.0 || changes_rows
    }
}

impl StepSpec {
    /// What the operations of `kind` do.
    pub fn class_of(&self, kind: &str) -> OperationClass {
        let known = self.kinds.iter().find(|known| known.kind == kind);
        known.map_or_else(|| class_of(kind), KindSpec::class)
    }

    /// What the operations do that the step's figure counts.
    pub fn headline_class(&self) -> OperationClass {
        self.class_of(&self.headline.kind)
    }
}

/// Options of which the product is the number of rows, and the bytes that a row takes with its
/// indexes: of the Insert Benchmark, and of the sbtest tables.
const SIZES: [(&str, &str, u64); 2] = [("clients", "load_rows", 225), ("tables", "table_size", 220)];

impl WorkloadInfo {
    /// About what its tables take on the disk after the load.
    pub fn data_bytes(&self) -> Option<u64> {
        let number = |key: &str| self.options.get(key).and_then(Value::as_u64);
        let of_options = |(groups, rows, bytes): &(&str, &str, u64)| {
            Some(number(groups)?.saturating_mul(number(rows)?).saturating_mul(*bytes))
        };
        self.data_bytes.or_else(|| SIZES.iter().filter_map(of_options).max())
    }

    /// Connections that its largest step has open at once.
    pub fn connections(&self) -> Option<u64> {
        self.connections.map(u64::from).or_else(|| most_of_ladder(&self.options))
    }
}

fn most_of_ladder(options: &Map<String, Value>) -> Option<u64> {
    options.get("connections")?.as_array()?.iter().filter_map(Value::as_u64).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StatementClass;

    fn workload(options: &str, more: &str) -> WorkloadInfo {
        let text = format!(
            r#"{{"name":"w","version":1,"follows":"","options":{options},"deviations":[],"steps":[]{more}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn what_a_record_says_of_a_workload_comes_before_its_options() {
        let of = |info: WorkloadInfo| (info.data_bytes(), info.connections());
        assert_eq!(of(workload(r#"{"clients":4,"load_rows":1000}"#, "")), (Some(900_000), None));
        let options = r#"{"tables":2,"table_size":1000,"connections":[1,16]}"#;
        assert_eq!(of(workload(options, "")), (Some(440_000), Some(16)));
        let recorded = r#","data_bytes":7,"connections":20"#;
        assert_eq!(of(workload(options, recorded)), (Some(7), Some(20)));
        assert_eq!(of(workload(r#"{"script":"x"}"#, "")), (None, None));
    }

    #[test]
    fn what_operations_do_is_recorded_or_known_by_the_kinds_name() {
        let kind = |name: &str, more: &str| -> KindSpec {
            let text = format!(
                r#"{{"kind":"{name}","connections_per_client":1,"pace":"closed","protocol":"text",
                     "rows_per_operation":1,"statement":""{more}}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        assert_eq!(kind("scan", "").class(), OperationClass::Scan);
        assert_eq!(kind("scan", r#","class":"other""#).class(), OperationClass::Other);
        assert!(kind("delete", "").writes() && !kind("transaction", "").writes());
        assert!(kind("transaction", r#","user_bytes_per_operation":1.5"#).writes());
        assert_eq!(StatementClass::of("point-select"), StatementClass::Other);
    }
}
