//! How open loops kept their schedules: asked and reached rate, what waited, and how late the client itself was.

use dbdyno_analyse::{KindResult, Schedule, StepFindings};

use super::{run_columns, run_labels, runs};
use crate::document::{Column, Table};
use crate::number::{NOT_AVAILABLE, count, duration_whole_us, rate};

/// No rows for steps of closed loops.
pub(super) fn grid(step: &StepFindings) -> Table {
    let note = "Operations sent on a schedule. Lag: from due to sent, for operations with a free \
                connection; it is caused by the client.";
    let mut labels = run_columns(step);
    labels.push(Column::new("kind", "", ""));
    labels.push(Column::new("process", "", "constant: at equal distances; poisson: after random gaps."));
    let figures = [
        ("asked", "1/s", "Operations due, all connections together."),
        ("reached", "1/s", "Operations answered without an error."),
        ("backlog", "at a second's end", "Operations due and not sent at the end of a second, the most of any second; within a second there may have been more."),
        ("dropped", "", "Operations that became due and were never sent."),
        ("lag p50", "", ""),
        ("lag p99", "", "Above 1 ms and 10 % of the response time's p99 the step is invalid."),
    ]
    .map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let mut grid = Table::new("Schedule", note, labels, figures);
    for (variant, run) in runs(step) {
        for kind in &run.kinds {
            if let Some(schedule) = &kind.schedule {
                let mut row = run_labels(step, variant, run);
                row.extend([kind.kind.clone(), schedule.process.clone()]);
                row.extend(figures_of(kind, schedule));
                grid.push(row);
            }
        }
    }
    grid
}

fn figures_of(kind: &KindResult, schedule: &Schedule) -> [String; 6] {
    let lag = |us| if schedule.lag.count == 0 { NOT_AVAILABLE.to_owned() } else { duration_whole_us(us) };
    [
        rate(Some(schedule.asked_per_second)),
        rate(Some(kind.operations_per_second)),
        count(schedule.backlog_max),
        count(kind.dropped),
        lag(schedule.lag.p50_us),
        lag(schedule.lag.p99_us),
    ]
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::Latency;

    use super::*;
    use crate::fixture;

    #[test]
    fn a_schedule_shows_what_was_asked_what_waited_and_how_late_the_client_was() {
        let mut step = fixture::findings().workloads[0].steps[4].clone();
        assert_eq!(grid(&step).rows.len(), 0, "closed loops have none");
        let lag = Latency { count: 900, p50_us: 41, p99_us: 1_230, ..Latency::default() };
        let schedule = Schedule {
            process: "poisson".to_owned(),
            asked_per_second: 500.0,
            due: 1_000,
            backlog_max: 17,
            queue_growth: 0,
            lag,
        };
        let kinds = &mut step.variants[0].runs[0].kinds;
        kinds[0].schedule = Some(schedule.clone());
        kinds[1].schedule = Some(Schedule { lag: Latency::default(), ..schedule });
        let rows: Vec<String> = grid(&step).rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @"
        rollback | query | poisson | 500 | 9,000 | 17 | 1 | 41 µs | 1.23 ms
        rollback | delete | poisson | 500 | 8.00 | 17 | 1 | NA | NA
        ");
    }
}
