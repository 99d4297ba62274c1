//! Tables of service and response times, and of how open loops kept their schedules.

use dbdyno_analyse::{Latency, StepFindings};

use super::{kinds, of_runs, runs};
use crate::document::{Column, Table};
use crate::number::{NOT_AVAILABLE, bucket_percent, count, duration_us, duration_whole_us, fixed, rate};
use crate::words::{TIMES_TABLE, table};

/// Makes the tables for each kind of operation. The original Insert Benchmark's buckets follow each
/// table of times.
pub(in crate::views) fn times(step: &StepFindings) -> Vec<Table> {
    kinds(step).into_iter().flat_map(|kind| [grid(step, kind), buckets(step, kind)]).collect()
}

fn grid(step: &StepFindings, kind: &str) -> Table {
    let table = Table { title: format!("{TIMES_TABLE}: {kind}"), ..table("times") };
    of_runs(step, table, |run| {
        let results = run.kinds.iter().filter(|found| found.kind == kind);
        let times = results.flat_map(|found| [("service", &found.service), ("response", &found.response)]);
        times.map(|(time, latency)| [vec![time.to_owned()], figures_of(latency)].concat()).collect::<Vec<_>>()
    })
}

/// Makes the table of the response-time buckets that the original Insert Benchmark prints.
fn buckets(step: &StepFindings, kind: &str) -> Table {
    let bounds = runs(step)
        .filter_map(|(_, run)| run.kind(kind))
        .map(|result| result.buckets.iter().map(|bucket| bucket.label.as_str()).collect::<Vec<_>>())
        .max_by_key(Vec::len)
        .unwrap_or_default();
    let mut table = table("buckets");
    table.title.push_str(&format!(": {kind}"));
    table.columns.splice(0..0, bounds.iter().map(|bound| Column::new(bound, "%", "")));
    of_runs(step, table, |run| {
        run.kind(kind).filter(|_| !bounds.is_empty()).map(|result| {
            let percents = bounds.iter().map(|bound| {
                let bucket = result.buckets.iter().find(|bucket| bucket.label == *bound);
                let text = bucket.map(|found| bucket_percent(found.count, found.percent));
                text.unwrap_or_else(|| NOT_AVAILABLE.to_owned())
            });
            let longest = result.service.max_us as f64 / 1e6;
            percents.chain([fixed((result.service.count > 0).then_some(longest), 3)]).collect()
        })
    })
}

/// Makes the table of how open loops kept their schedules: planned and reached rate, longest
/// backlog, dropped operations, and how late the client itself was. It has no rows for steps with
/// closed loops.
pub(in crate::views) fn schedule(step: &StepFindings) -> Table {
    of_runs(step, table("schedule"), |run| {
        let with_schedule = run.kinds.iter().filter_map(|kind| Some((kind, kind.schedule.as_ref()?)));
        let row = with_schedule.map(|(kind, schedule)| {
            let lag = &schedule.lag;
            let late = |us| if lag.count == 0 { NOT_AVAILABLE.to_owned() } else { duration_whole_us(us) };
            vec![
                kind.kind.clone(),
                schedule.process.clone(),
                rate(Some(schedule.asked_per_second)),
                rate(Some(kind.operations_per_second)),
                count(schedule.backlog_max),
                count(kind.dropped),
                late(lag.p50_us),
                late(lag.p99_us),
            ]
        });
        row.collect::<Vec<_>>()
    })
}

fn figures_of(latency: &Latency) -> Vec<String> {
    let mut row = vec![count(latency.count)];
    if latency.count == 0 {
        row.resize(8, NOT_AVAILABLE.to_owned());
        return row;
    }
    row.push(duration_us(latency.mean_us));
    let times = [
        Some(latency.p50_us),
        latency.known_p90_us(),
        latency.known_p95_us(),
        latency.known_p99_us(),
        latency.known_p999_us(),
        Some(latency.max_us),
    ];
    row.extend(times.map(|time| time.map_or(NOT_AVAILABLE.to_owned(), duration_whole_us)));
    row
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{KindResult, Schedule};

    use super::*;
    use crate::fixture::pair;
    use crate::views::testing::rows;

    #[test]
    fn an_empty_histogram_has_no_percentiles() {
        assert_eq!(figures_of(&Latency::default()), ["0", "NA", "NA", "NA", "NA", "NA", "NA", "NA"]);
    }

    #[test]
    fn each_value_chooses_its_own_unit() {
        let latency = Latency {
            count: 1_000,
            mean_us: 104.5,
            p50_us: 90,
            p90_us: 200,
            p95_us: 310,
            p99_us: 1_520,
            p999_us: 80_000,
            max_us: 2_310_000,
            curve: Vec::new(),
        };
        assert_eq!(
            figures_of(&latency),
            ["1,000", "104.5 µs", "90 µs", "200 µs", "310 µs", "1.52 ms", "80.0 ms", "2.31 s"]
        );
        let few = Latency { count: 9, ..latency };
        assert_eq!(figures_of(&few), ["9", "104.5 µs", "90 µs", "NA", "NA", "NA", "NA", "2.31 s"]);
    }

    #[test]
    fn a_schedule_shows_the_planned_rate_the_backlog_and_how_late_the_client_was() {
        let mut step = pair("l.i0", 1.0, 1);
        assert_eq!(schedule(&step).rows.len(), 0, "closed loops have none");
        let lag = Latency { count: 900, p50_us: 41, p99_us: 1_230, ..Latency::default() };
        let kept = Schedule {
            process: "poisson".to_owned(),
            asked_per_second: 500.0,
            due: 1_000,
            backlog_max: 17,
            queue_growth: 0,
            lag,
        };
        let kinds = &mut step.variants[0].runs[0].kinds;
        let second = KindResult { kind: "delete".to_owned(), operations_per_second: 8.0, ..kinds[0].clone() };
        kinds.push(second);
        kinds[0].schedule = Some(kept.clone());
        kinds[1].schedule = Some(Schedule { lag: Latency::default(), ..kept });
        insta::assert_snapshot!(rows(&schedule(&step)), @"
        rollback | insert | poisson | 500 | 20.0 | 17 | 1 | 41 µs | 1.23 ms
        rollback | delete | poisson | 500 | 8.00 | 17 | 1 | NA | NA
        ");
    }
}
