//! The machines of a fleet, with what was measured of each.

use dbdyno_analyse::RunSummary;

use crate::document::{Cell, Column, Table};
use crate::number::{fixed, rate};

/// `None` for a run without a fleet, and for one of old, of whose machines nothing was measured.
pub(crate) fn machines(run: &RunSummary) -> Option<Table> {
    if run.calibrations.is_empty() {
        return None;
    }
    let note = "Before each block: integer operations of one thread, an fsync of 4 KiB where the data are, and the most that \
                the client reached where it was calibrated. Medians over the blocks.";
    let heads = [("blocks", ""), ("CPU", "M/s"), ("fsync", "ms"), ("client", "statements/s")];
    let has_client = run.calibrations.values().any(|found| found.client_statements_per_second.is_some());
    let shown = heads.len() - usize::from(!has_client);
    let heads = heads.into_iter().take(shown).map(|(name, unit)| Column::new(name, unit, ""));
    let mut table = Table::new("Machines", note, vec![Column::new("machine", "", "")], heads);
    for (name, found) in &run.calibrations {
        let blocks = run.machines.get(name).map_or(0, |blocks| blocks.len());
        let figures = [
            blocks.to_string(),
            rate(Some(found.cpu_operations_per_second / 1e6)),
            fixed(found.fsync_us.map(|us| us / 1e3), 3),
            rate(found.client_statements_per_second),
        ];
        table.push(std::iter::once(Cell::from(name.as_str())).chain(figures.map(Cell::from)).take(1 + shown));
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use dbdyno_record::HostCalibration;

    use super::*;
    use crate::fixture;

    #[test]
    fn a_row_a_machine_with_what_is_known_of_it() {
        let mut run = fixture::with_blocks(3).run;
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
        let table = machines(&run).expect("one machine");
        let texts: Vec<&str> = table.rows[0].iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(texts, ["n1", "2", "2,512", "0.412"]);
    }
}
