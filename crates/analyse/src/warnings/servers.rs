//! Warns about servers:
//!
//! * The variants did not encrypt their connections in the same way.
//! * A binary log is synced without being counted.
//! * A server did not become idle before it was measured.
//! * A step that should begin with empty caches read nothing from storage, because something had
//!   filled the caches again.
//! * A cache answered queries in place of the engine. Times and rates are then the cache's, even
//!   where all variants have one.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_record::{CellEvent, CellRecord, ConnectionClass, OperationClass, Run, SETTLING, Settling};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::metrics::fsyncs::Binlog;
use crate::model::steps::{valid, valid_runs};
use crate::model::{Code, Execution, RestlessLevel, Warning, WorkloadFindings};
use crate::parity::keeps_answers;
use crate::servers::servers;
use crate::statistics::describe::median;
use crate::window::Hosting;
use crate::window::counters::{Counters, highest};

const PLAINTEXT: &str = "in plaintext";

/// How the connections of `variant` were encrypted: `TLSv1.3 TLS_AES_256_GCM_SHA384`, with the
/// classes of connections where they differ. `None` where TLS was not requested.
pub(crate) fn encryption(run: &Run, variant: &str) -> Option<String> {
    let mut classes: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for connection in connections(run, variant) {
        classes.entry(name(connection)).or_default().insert(&connection.class);
    }
    match classes.len() {
        0 => None,
        1 => classes.into_keys().next(),
        _ => {
            let with_classes = classes.into_iter().map(|(name, classes)| {
                format!("{name} ({})", classes.into_iter().collect::<Vec<_>>().join(", "))
            });
            Some(with_classes.collect::<Vec<_>>().join(" and "))
        }
    }
}

/// A warning where the variants' encryption differs, because it is then a part of every difference
/// between them.
pub(crate) fn encryption_warning(run: &Run) -> Option<Warning> {
    // A variant without connections has no encryption to compare.
    let compared = run.manifest.variants.iter().filter(|variant| {
        matches!(Hosting::of(variant), Hosting::Process | Hosting::External)
            && servers(run, &variant.name).next().is_some()
    });
    let reported: Vec<(&str, String)> = compared
        .map(|variant| {
            let found = encryption(run, &variant.name).unwrap_or_else(|| PLAINTEXT.to_owned());
            (variant.name.as_str(), found)
        })
        .collect();
    let (_, first) = reported.first()?;
    if reported.iter().all(|(_, other)| other == first) {
        return None;
    }
    let each: Vec<String> = reported.iter().map(|(variant, found)| format!("{variant}: {found}")).collect();
    Some(Warning::new(Code::Encryption).with("connections", each.join("; ")))
}

fn connections<'a>(run: &'a Run, variant: &str) -> impl Iterator<Item = &'a ConnectionClass> {
    let cells = run.cells.iter().filter(move |cell| cell.id.variant == variant);
    cells.flat_map(|cell| &cell.events).flat_map(|event| match event {
        CellEvent::Ended { connections, .. } => connections.as_slice(),
        _ => &[],
    })
}

fn name(connection: &ConnectionClass) -> String {
    match (&connection.tls_version, &connection.cipher) {
        (Some(version), Some(cipher)) => format!("{version} {cipher}"),
        (Some(version), None) => version.clone(),
        (None, _) => PLAINTEXT.to_owned(),
    }
}

/// The variants whose binary log is synced without being counted, so that there is no figure of
/// fsyncs.
pub(crate) fn uncounted_syncs_warning(run: &Run) -> Option<Warning> {
    let is_uncounted = |cell: &CellRecord| {
        let binlog = Binlog::of_cell(cell);
        let sampled = |counters: &Counters| highest(counters, "status", "Innodb_data_fsyncs").is_some();
        cell.steps.iter().any(|step| sampled(&step.counters) && !binlog.is_counted(&step.counters))
    };
    let variants = run.manifest.variants.iter().map(|variant| variant.name.as_str());
    let names: Vec<&str> = variants
        .filter(|name| run.cells.iter().any(|cell| cell.id.variant == *name && is_uncounted(cell)))
        .collect();
    (!names.is_empty()).then(|| Warning::new(Code::FsyncsUncounted).at_all(names))
}

/// Why the server was not quiet when its time to settle was over, from the `details` of a cell's
/// `work` event. `None` when the server was quiet, and for work that does not wait for a quiet
/// server.
pub fn unsettled_warning(details: &Map<String, Value>) -> Option<Warning> {
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

/// One warning per variant, with the first cell that did not settle and the number of such cells.
pub(crate) fn settling_warnings(run: &Run) -> Vec<Warning> {
    let mut by_variant: BTreeMap<&str, Vec<(&CellRecord, Warning)>> = BTreeMap::new();
    for cell in &run.cells {
        let works = cell.events.iter().filter_map(|event| match event {
            CellEvent::Work { details, .. } => unsettled_warning(details),
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

/// One warning per variant and step that should have been cold but read nothing from storage. It
/// lists the blocks in which this happened.
pub(crate) fn cold_warnings(run: &Run, workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let mut found = Vec::new();
    for workload in workloads {
        let info = run.manifest.workloads.iter().find(|info| info.name == workload.name);
        let Some(cold) = info.and_then(|info| info.options.get("cold")) else { continue };
        // Steps that load or build read what they have just written.
        let steps = workload.steps.iter().filter(|step| step.headline_class == OperationClass::Query);
        for step in steps.filter(|step| includes(cold, &step.name)) {
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

/// Whether the workload's option `cold` includes the step. The option stands for all measured
/// steps, or for those that it names.
fn includes(cold: &Value, step: &str) -> bool {
    match cold {
        Value::Bool(all) => *all,
        Value::Array(names) => names.iter().any(|name| name.as_str() == Some(step)),
        _ => false,
    }
}

/// A repeated query that is this many times faster than its first execution was answered by a
/// cache. Warm pages save reads, but not the work on the rows.
const TIMES_FASTER: f64 = 100.0;

/// Warnings about caches that answer queries, for the variants for which `is_compared` holds.
pub(crate) fn cache_warnings(
    run: &Run,
    workloads: &[WorkloadFindings],
    is_compared: impl Fn(&str) -> bool,
) -> Vec<Warning> {
    let names = run.manifest.variants.iter().map(|variant| variant.name.as_str());
    let cached: Vec<&str> = names.filter(|name| is_compared(name) && keeps_answers(run, name)).collect();
    let cached = (!cached.is_empty()).then(|| Warning::new(Code::QueryCache).at_all(cached));
    cached.into_iter().chain(repeated_queries(workloads, is_compared)).collect()
}

/// One warning for all runs with a query whose repetitions a cache answered. It names the clearest
/// case.
fn repeated_queries(workloads: &[WorkloadFindings], is_compared: impl Fn(&str) -> bool) -> Option<Warning> {
    let runs = valid_runs(workloads).filter(|found| is_compared(&found.variant.variant));
    let all: Vec<(f64, String)> =
        runs.filter_map(|found| Some((times_faster(&found.run.executions)?, found.place()))).collect();
    let (times, place) = all.iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let more = Some(all.len() - 1).filter(|more| *more > 0);
    Some(Warning::new(Code::AnsweredByCache).at(place).with("times", *times).with_some("more", more))
}

/// How many times faster a query's repetitions were than its first execution, for the query with
/// the largest factor. It is `None` where no query reaches [`TIMES_FASTER`].
fn times_faster(executions: &[Execution]) -> Option<f64> {
    let mut by_query: BTreeMap<(u32, &str), Vec<&Execution>> = BTreeMap::new();
    for execution in executions.iter().filter(|execution| !execution.cut_off) {
        by_query.entry((execution.client, &execution.name)).or_default().push(execution);
    }
    let of_query = |mut all: Vec<&Execution>| {
        all.sort_by_key(|execution| execution.repetition);
        let [first, others @ ..] = all.as_slice() else { return None };
        let others: Vec<f64> = others.iter().map(|execution| execution.seconds).collect();
        // The record's times are whole microseconds.
        let times = first.seconds / median(&others)?.max(1e-6);
        (times >= TIMES_FASTER).then_some(times)
    };
    by_query.into_values().filter_map(of_query).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{CellEvent, CellRecord, Run, SettlingSample};
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, query_seconds_step, read_write_step, run, series, shown, texts};

    const AES: Option<(&str, &str)> = Some(("TLSv1.3", "TLS_AES_256_GCM_SHA384"));
    const CHACHA: Option<(&str, &str)> = Some(("TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256"));

    fn connected(variant: &str, classes: &[(&str, Option<(&str, &str)>)]) -> CellRecord {
        let mut cell = cell(1, variant, Vec::new());
        let Some(CellEvent::Ended { connections, .. }) = cell.events.last_mut() else { panic!("no end") };
        connections.extend(classes.iter().map(|(class, agreed)| ConnectionClass {
            class: (*class).to_owned(),
            connections: 2,
            tls_version: agreed.map(|(version, _)| version.to_owned()),
            cipher: agreed.map(|(_, cipher)| cipher.to_owned()),
        }));
        cell
    }

    #[test]
    fn shared_encryption_is_named_once_and_different_encryption_by_class() {
        let cells = vec![
            connected("a", &[("insert", AES), ("query", AES)]),
            connected("b", &[("insert", AES), ("delete", AES), ("status", None)]),
            cell(1, "c", Vec::new()),
        ];
        let run = run(&["a", "b", "c"], 1, cells);
        assert_snapshot!(encryption(&run, "a").unwrap(), @"TLSv1.3 TLS_AES_256_GCM_SHA384");
        assert_snapshot!(encryption(&run, "b").unwrap(), @"TLSv1.3 TLS_AES_256_GCM_SHA384 (delete, insert) and in plaintext (status)");
        assert_eq!(encryption(&run, "c"), None);
    }

    #[test]
    fn variants_that_were_not_encrypted_alike_are_reported() {
        let cells = vec![
            connected("a", &[("insert", AES)]),
            connected("b", &[("insert", CHACHA)]),
            cell(1, "c", Vec::new()),
        ];
        let mut unreached = cell(1, "e", Vec::new());
        unreached.events.remove(1);
        let mut run = run(&["a", "b", "c", "d", "e"], 1, [cells, vec![unreached]].concat());
        assert_snapshot!(shown(&encryption_warning(&run).unwrap()), @"encryption connections: a: TLSv1.3 TLS_AES_256_GCM_SHA384; b: TLSv1.3 TLS_CHACHA20_POLY1305_SHA256; c: in plaintext");
        run.cells.remove(1);
        run.manifest.variants[2].embedded = true;
        assert_eq!(encryption_warning(&run), None, "neither a file nor what never ran is compared");
    }

    #[test]
    fn a_server_that_does_not_count_syncs_of_its_binary_log_is_named() {
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
            uncounted_syncs_warning(&run(&["a"], 1, vec![cell])).as_ref().map(shown)
        };
        assert_eq!(with("binlog.COUNT_MISC"), None);
        insta::assert_snapshot!(with("Binlog_cache_use").unwrap(), @"fsyncs-uncounted [a]");
    }

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
    fn a_server_that_is_not_quiet_at_the_cap_is_reported_with_its_remaining_work() {
        insta::assert_snapshot!(shown(&unsettled_warning(&details(false)).unwrap()), @r#"restless levels: [{"level":"dirty_bytes","value":120000000,"quiet_at":2600000},{"level":"device_written_bytes","value":9000000,"quiet_at":8000000}], seconds: 300.0"#);
        assert_eq!((unsettled_warning(&details(true)), unsettled_warning(&Map::new())), (None, None));
    }

    #[test]
    fn cells_of_a_variant_that_did_not_settle_are_reported_once_with_their_number() {
        let unsettled_warning = |block| {
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
        let run =
            run(&["a", "b"], 2, vec![unsettled_warning(1), unsettled_warning(2), cell(1, "b", Vec::new())]);
        let reported: Vec<String> = settling_warnings(&run).iter().map(shown).collect();
        assert_eq!(reported.len(), 1);
        let beginning = "unsettled [block 1 a insert-benchmark] times: 2, why: (restless levels: ";
        assert!(reported[0].starts_with(beginning), "{reported:?}");
    }

    /// The warnings for a cold query of two seconds. `read_bytes` holds the bytes that the server's
    /// process had read at the query's beginning and at its end.
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

    fn said(run: &Run) -> Vec<String> {
        let about = |text: &String| text.starts_with("query-cache") || text.starts_with("answered-by-cache");
        texts(&analyse(run)).into_iter().filter(about).collect()
    }

    /// A run with the first execution of a query and three more.
    fn run_of(first: f64, others: f64) -> Run {
        let seconds = [(first, false), (others, false), (others, false), (others, false)];
        let cells = ["a", "b"].map(|name| cell(1, name, vec![query_seconds_step("q1", &seconds)]));
        run(&["a", "b"], 1, cells.to_vec())
    }

    #[test]
    fn repetitions_a_hundred_times_faster_than_the_first_execution_are_named() {
        assert_eq!(said(&run_of(0.125, 0.000_5)), ["answered-by-cache [block 1 b q1] more: 1, times: 250.0"]);
        assert_eq!(said(&run_of(0.15, 0.002)), [""; 0], "warm pages");
    }

    #[test]
    fn a_query_cache_is_named_though_all_variants_have_it() {
        let set = |name: &str, kind: &str, bytes: &str| {
            let mut run = run_of(0.15, 0.14);
            let cells = run.cells.iter_mut().filter(|cell| cell.id.variant == name || name.is_empty());
            for event in cells.flat_map(|cell| &mut cell.events) {
                if let CellEvent::Server { server, .. } = event {
                    server.product = "MariaDB".to_owned();
                    for (key, value) in [("query_cache_type", kind), ("query_cache_size", bytes)] {
                        server.settings.insert(key.to_owned(), value.to_owned());
                    }
                }
            }
            said(&run)
        };
        assert_eq!(set("", "ON", "67108864"), ["query-cache [a, b]"]);
        assert_eq!(set("b", "ON", "67108864"), ["query-cache [b]"]);
        assert_eq!(set("", "ON", "0"), [""; 0], "it has no memory");
        assert_eq!(set("", "OFF", "67108864"), [""; 0]);
        assert_eq!(set("", "DEMAND", "67108864"), [""; 0], "no query of ours demands it");
    }
}
