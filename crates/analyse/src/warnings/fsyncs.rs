//! Warning about binary logs whose syncs are not counted.

use dbdyno_record::{CellRecord, Run};

use crate::metrics::fsyncs::Binlog;
use crate::model::{Code, Warning};
use crate::window::counters::{Counters, greatest};

/// The variants whose binary log is synced without being counted, so that there is no figure of
/// fsyncs.
pub(crate) fn warning(run: &Run) -> Option<Warning> {
    let is_uncounted = |cell: &CellRecord| {
        let binlog = Binlog::of_cell(cell);
        let sampled = |counters: &Counters| greatest(counters, "status", "Innodb_data_fsyncs").is_some();
        cell.steps.iter().any(|step| sampled(&step.counters) && !binlog.is_counted(&step.counters))
    };
    let variants = run.manifest.variants.iter().map(|variant| variant.name.as_str());
    let names: Vec<&str> = variants
        .filter(|name| run.cells.iter().any(|cell| cell.id.variant == *name && is_uncounted(cell)))
        .collect();
    (!names.is_empty()).then(|| Warning::new(Code::FsyncsUncounted).at_all(names))
}

#[cfg(test)]
mod tests {
    use dbdyno_record::CellEvent;

    use super::*;
    use crate::fixtures::{cell, read_write_step, run, series, shown};

    #[test]
    fn a_server_that_does_not_tell_is_named_with_what_to_do() {
        let with = |key: &str| {
            let mut step = read_write_step();
            let samples = [(0, vec![0, 1]), (2_500_000, vec![20, 21])];
            step.counters.extend(series("status", &["Innodb_data_fsyncs", key], &samples));
            let mut cell = cell(1, "a", vec![step]);
            for event in &mut cell.events {
                if let CellEvent::Server { server: known, .. } = event {
                    known.version = "8.0.31".to_owned();
                    let settings = [("log_bin", "ON"), ("sync_binlog", "1")];
                    known.settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
                }
            }
            warning(&run(&["a"], 1, vec![cell])).as_ref().map(shown)
        };
        assert_eq!(with("binlog.COUNT_MISC"), None);
        insta::assert_snapshot!(with("Binlog_cache_use").unwrap(), @"fsyncs-uncounted [a]");
    }
}
