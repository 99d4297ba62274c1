//! Warnings about servers that did not come to rest before they were measured.

use std::collections::BTreeMap;

use dbdyno_record::{CellEvent, CellRecord, Run, SETTLING, Settling};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::{Code, RestlessLevel, Warning};

/// Why the server was not quiet when its time to settle was over, from the `details` of a cell's
/// `work` event. `None` when it was quiet, and for work that does not wait for it.
pub fn restless(details: &Map<String, Value>) -> Option<Warning> {
    let settling = settling(details).filter(|settling| !settling.quiet)?;
    let last = settling.samples.last();
    let level = |name: &String| RestlessLevel {
        level: name.clone(),
        value: last.and_then(|sample| sample.levels.get(name)).copied().unwrap_or(0),
        quiet_at: settling.bounds.get(name).copied().unwrap_or(0),
    };
    let missed: Vec<RestlessLevel> = settling.missed.iter().map(level).collect();
    Some(Warning::new(Code::Restless).with("seconds", settling.cap_us as f64 / 1e6).with("levels", missed))
}

fn settling(details: &Map<String, Value>) -> Option<Settling> {
    Settling::deserialize(details.get(SETTLING)?).ok()
}

/// One warning per variant: the first cell that did not settle, and how many there are.
pub(crate) fn warnings(run: &Run) -> Vec<Warning> {
    let mut by_variant: BTreeMap<&str, Vec<(&CellRecord, Warning)>> = BTreeMap::new();
    for cell in &run.cells {
        let works = cell.events.iter().filter_map(|event| match event {
            CellEvent::Work { details, .. } => restless(details),
            _ => None,
        });
        let found = by_variant.entry(&cell.id.variant).or_default();
        found.extend(works.map(|why| (cell, why)));
    }
    let warning = |found: Vec<(&CellRecord, Warning)>| {
        let times = found.len();
        let (cell, why) = found.into_iter().next()?;
        let warning = Warning::new(Code::Unsettled).at(cell.id.to_string()).with("why", vec![why]);
        Some(warning.with_some("times", Some(times).filter(|times| *times > 1)))
    };
    by_variant.into_values().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use dbdyno_record::SettlingSample;
    use serde_json::json;

    use super::*;
    use crate::fixtures::{cell, run, shown};

    fn details(quiet: bool) -> Map<String, Value> {
        let map = |pairs: &[(&str, i64)]| -> BTreeMap<String, i64> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let settling = Settling {
            quiet,
            took_us: 300_000_000,
            cap_us: 300_000_000,
            bounds: map(&[("dirty_bytes", 2_600_000), ("device_written_bytes", 8_000_000)]),
            missed: vec!["dirty_bytes".to_owned(), "device_written_bytes".to_owned()],
            samples: vec![SettlingSample {
                at_us: 300_000_000,
                levels: map(&[("dirty_bytes", 120_000_000), ("device_written_bytes", 9_000_000)]),
            }],
            ..Settling::default()
        };
        Map::from_iter([(SETTLING.to_owned(), json!(settling))])
    }

    #[test]
    fn a_server_that_is_not_quiet_at_the_cap_is_reported_with_what_it_still_did() {
        insta::assert_snapshot!(shown(&restless(&details(false)).unwrap()), @r#"restless levels: [{"level":"dirty_bytes","value":120000000,"quiet_at":2600000},{"level":"device_written_bytes","value":9000000,"quiet_at":8000000}], seconds: 300.0"#);
        assert_eq!((restless(&details(true)), restless(&Map::new())), (None, None));
    }

    #[test]
    fn cells_of_a_variant_that_did_not_settle_are_reported_once_with_their_number() {
        let restless = |block| {
            let mut cell = cell(block, "a", Vec::new());
            let work = CellEvent::Work {
                at: String::new(),
                name: "cleanup".to_owned(),
                duration_us: 1,
                details: details(false),
            };
            cell.events.insert(2, work);
            cell
        };
        let run = run(&["a", "b"], 2, vec![restless(1), restless(2), cell(1, "b", Vec::new())]);
        let reported: Vec<String> = warnings(&run).iter().map(shown).collect();
        assert_eq!(reported.len(), 1);
        let beginning = "unsettled [block 1 a insert-benchmark] times: 2, why: (restless levels: ";
        assert!(reported[0].starts_with(beginning), "{reported:?}");
    }
}
