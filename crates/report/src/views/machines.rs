//! Table of a fleet's machines, with what was measured of each.

use dbdyno_analyse::{Findings, RunSummary};

use crate::document::Table;
use crate::number::{fixed, rate};
use crate::words::table;

pub(super) fn tables(findings: &Findings) -> Vec<Table> {
    machines(&findings.run).into_iter().collect()
}

/// Makes the table. It is `None` for a run without a fleet.
pub(crate) fn machines(run: &RunSummary) -> Option<Table> {
    if run.calibrations.is_empty() {
        return None;
    }
    let has_client = run.calibrations.values().any(|found| found.client_statements_per_second.is_some());
    let mut table = table("machines").without(if has_client { &[] } else { &["client"] });
    for (name, found) in &run.calibrations {
        let blocks = run.machines.get(name).map_or(0, |blocks| blocks.len());
        let cells = [
            name.clone(),
            blocks.to_string(),
            rate(Some(found.cpu_operations_per_second / 1e6)),
            fixed(found.fsync_us.map(|us| us / 1e3), 3),
            rate(found.client_statements_per_second),
        ];
        let shown = table.columns.len();
        table.push(cells.into_iter().take(shown));
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dbdyno_record::HostCalibration;

    use super::*;
    use crate::fixture::of_steps;
    use crate::views::small::rows;

    #[test]
    fn a_row_a_machine_with_what_is_known_of_it() {
        let mut run = of_steps(Vec::new()).run;
        assert!(machines(&run).is_none());
        run.machines.insert("n1".to_owned(), BTreeSet::from([1, 3]));
        run.calibrations.insert(
            "n1".to_owned(),
            HostCalibration {
                cpu_operations_per_second: 2_512_345_678.0,
                fsync_us: Some(412.0),
                client_statements_per_second: None,
            },
        );
        assert_eq!(rows(&machines(&run).expect("one machine")), "n1 | 2 | 2,512 | 0.412");
    }
}
