//! What the workloads' lists of deviations have in common: what a step finds, binary logs, what the whole plan decides.

use std::time::Duration;

use dbdyno_plan::{Cold, DataMode, PlanDuration};
use dbdyno_record::Deviation;

/// What a plan decides in addition to a workload's options, as far as the originals do otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// Rest between two cells.
    pub rest: Duration,
    /// A PostgreSQL that dbdyno starts is reached over a unix socket.
    pub has_postgres_socket: bool,
}

/// What is around the steps of an original, as far as a plan decides otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Original {
    /// Rest between two builds of servers, and in words.
    pub rest: (Duration, &'static str),
    /// How it reaches PostgreSQL.
    pub postgres_transport: &'static str,
}

/// Differences from `original` that come of what is around a workload.
pub(crate) fn of_surroundings(original: &Original, around: &Surroundings) -> Vec<Deviation> {
    let mut list = Vec::new();
    let (original_rest, rest) = original.rest;
    let is_original = around.rest == original_rest && !around.rest.is_zero();
    if !is_original {
        let here = match around.rest {
            Duration::ZERO => "none: the next cell begins at once".to_owned(),
            rest => format!("{} between cells", PlanDuration(rest)),
        };
        list.push(deviation("rest", rest, &here));
    }
    if around.has_postgres_socket {
        list.push(deviation(
            "transport",
            original.postgres_transport,
            "over a unix socket to a PostgreSQL that dbdyno started; with TLS over TCP",
        ));
    }
    list
}

/// What a step finds, where the original runs all steps in one server on what the step before has left.
pub(crate) fn of_state(data: DataMode, cold: &Cold) -> Vec<Deviation> {
    let data =
        state(data).map(|here| deviation("data", "one server and one set of tables, which ages", here));
    let here = match cold {
        Cold::All(true) => Some("each measured step begins in a fresh server with empty caches".to_owned()),
        Cold::Steps(names) if !names.is_empty() => {
            Some(format!("some steps begin in a fresh server with empty caches: {}", names.join(", ")))
        }
        Cold::All(false) | Cold::Steps(_) => None,
    };
    let cold = here.map(|here| deviation("cold", "caches as the step before left them", &here));
    data.into_iter().chain(cold).collect()
}

/// What a step finds, where it is not what the one before it has left.
const fn state(data: DataMode) -> Option<&'static str> {
    match data {
        DataMode::Preserve => None,
        DataMode::Restart => Some("the server is stopped and started before each step; the tables age"),
        DataMode::Reset => Some("each step has newly loaded tables and a fresh server"),
        DataMode::Restore => Some("each block begins on a copy of the tables as loaded; they age within it"),
        DataMode::RestoreEachStep => Some("each step has a copy of the tables as loaded and a fresh server"),
    }
}

/// What becomes of binary logs. The drivers of published reports send RESET MASTER, sysbench alone nothing.
pub(crate) fn binary_logs(is_reset_by_original: bool) -> Deviation {
    let original = if is_reset_by_original {
        "RESET MASTER before and after each step; MySQL from 8.4 refuses it and keeps its logs"
    } else {
        "left as they are"
    };
    deviation(
        "binary logs",
        original,
        "deleted before and after each step on servers that dbdyno started, on every version; left as they are on others",
    )
}

/// A step that ends with its time may not end: how long sysbench waits for it, and how long dbdyno.
pub(crate) fn time_cap(times: f64) -> Deviation {
    deviation(
        "time_cap",
        "statements in flight at the end are awaited without a limit",
        &format!("a step is cut off and failed after {times} times its length and 10 s"),
    )
}

pub(crate) fn deviation(topic: &str, original: &str, here: &str) -> Deviation {
    Deviation { topic: topic.to_owned(), original: original.to_owned(), here: here.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use crate::insert_benchmark::InsertBenchmark;
    use crate::microbenchmarks::Microbenchmarks;

    const ALL: [Original; 6] = [
        InsertBenchmark::ORIGINAL,
        Microbenchmarks::ORIGINAL,
        crate::oltp::Oltp::ORIGINAL,
        crate::sysbench::Sysbench::ORIGINAL,
        crate::pgbench::Pgbench::ORIGINAL,
        crate::dbt3::Dbt3::ORIGINAL,
    ];

    fn here(original: &Original, around: Surroundings, topic: &str) -> Option<String> {
        let found = of_surroundings(original, &around).into_iter().find(|found| found.topic == topic);
        found.map(|found| found.here)
    }

    #[test]
    fn each_workload_says_that_nothing_rests_until_the_plan_has_the_originals_rest() {
        let rest = |original: &Original, seconds| {
            let rest = Duration::from_secs(seconds);
            here(original, Surroundings { rest, ..Surroundings::default() }, "rest")
        };
        assert_eq!(ALL.len(), crate::ALL.len());
        for original in &ALL {
            assert_eq!(rest(original, 0).as_deref(), Some("none: the next cell begins at once"));
            assert_eq!(rest(original, 5).as_deref(), Some("5s between cells"));
        }
        let [insert_benchmark, microbenchmarks, ..] = &ALL;
        assert_eq!((rest(insert_benchmark, 1200), rest(microbenchmarks, 600)), (None, None));
        assert!(rest(insert_benchmark, 600).is_some() && rest(microbenchmarks, 1200).is_some());
    }

    #[test]
    fn a_unix_socket_to_postgresql_is_reported_where_there_is_one() {
        for original in &ALL {
            let transport = |has_postgres_socket| {
                let around = Surroundings { has_postgres_socket, ..Surroundings::default() };
                here(original, around, "transport")
            };
            assert_eq!(transport(false), None);
            assert!(transport(true).unwrap().contains("unix socket"));
        }
    }

    #[test]
    fn steps_that_begin_cold_or_on_other_data_are_reported() {
        let reported = |data, cold| {
            let all = of_state(data, &cold);
            all.iter().map(|found| format!("{}: {}\n", found.topic, found.here)).collect::<String>()
        };
        assert_eq!(reported(DataMode::Preserve, Cold::Steps(Vec::new())), "");
        insta::assert_snapshot!(reported(DataMode::Restart, Cold::Steps(vec!["qr100".to_owned(), "qp100".to_owned()])), @r"
        data: the server is stopped and started before each step; the tables age
        cold: some steps begin in a fresh server with empty caches: qr100, qp100
        ");
        for data in [DataMode::Reset, DataMode::Restore, DataMode::RestoreEachStep] {
            assert_eq!(of_state(data, &Cold::All(true)).len(), 2, "{data:?}");
        }
    }
}
