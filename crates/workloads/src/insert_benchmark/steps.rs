//! The ten steps: what each is, in the original's order.

use crate::insert_benchmark::options::{InsertBenchmark as Options, Pacing};
use dbdyno_db::Capabilities;
use dbdyno_loadgen::{Arrivals, Draws, Pace};
use dbdyno_record::{Headline, KindSpec, OperationClass, StepSpec, Target, Unit, WindowRule};
use serde_json::{Map, json};
use std::time::Duration;

use crate::insert_benchmark::Setup;
use crate::insert_benchmark::rows::{Purpose, stream};
use crate::insert_benchmark::sql::{self, RANGES};
use crate::specs::{self, protocol};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepKind {
    Load,
    Index,
    Write,
    Range,
    Point,
}

/// What a connection does in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneKind {
    Insert,
    Index,
    Delete,
    Range,
    Point,
}

impl LaneKind {
    /// Its name in records.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Index => "index",
            Self::Delete => "delete",
            Self::Range | Self::Point => "query",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepPlan {
    pub(crate) name: String,
    pub(crate) kind: StepKind,
    /// INSERT statements of each client.
    pub(crate) inserts: u64,
    pub(crate) rows_per_commit: u32,
    pub(crate) deletes: bool,
    /// Background rows per second and client, for read-write steps.
    pub(crate) rate: Option<u32>,
}

impl StepPlan {
    /// Rows that each client inserts.
    pub(crate) fn rows(&self) -> u64 {
        self.inserts * u64::from(self.rows_per_commit)
    }
}

pub(crate) fn plan(options: &Options) -> Vec<StepPlan> {
    let commit = &options.rows_per_commit;
    let (first, second) = options.write_split();
    let step = |name: &str, kind, rows: u64, rows_per_commit: u32, deletes| StepPlan {
        name: name.to_owned(),
        kind,
        inserts: rows.div_ceil(u64::from(rows_per_commit)),
        rows_per_commit,
        deletes,
        rate: None,
    };
    let mut steps = vec![
        step("l.i0", StepKind::Load, options.load_rows, commit.load, false),
        step("l.x", StepKind::Index, u64::from(commit.load), commit.load, false),
        step("l.i1", StepKind::Write, first, commit.write_1, options.deletes),
        step("l.i2", StepKind::Write, second, commit.write_2, options.deletes),
    ];
    for &rate in &options.rates {
        for (prefix, kind) in [("qr", StepKind::Range), ("qp", StepKind::Point)] {
            // The original lowers the commit size to the rate when it is larger.
            let rows_per_commit = commit.read_write.min(rate);
            let rows = (options.read_write_time.0.as_secs_f64() * f64::from(rate)).round() as u64;
            steps.push(StepPlan {
                name: format!("{prefix}{rate}"),
                kind,
                inserts: rows.div_ceil(u64::from(rows_per_commit)),
                rows_per_commit,
                deletes: options.deletes,
                rate: Some(rate),
            });
        }
    }
    steps
}

/// Pace of the background writers of `client` in `step`, which is number `index`.
pub(crate) fn writer_pace(setup: &Setup, index: usize, step: &StepPlan, client: u32) -> Pace {
    let Some(rate) = step.rate else { return Pace::Closed };
    let options = &setup.options;
    let per = Duration::from_secs(u64::from(step.rows_per_commit));
    match options.pacing {
        Pacing::Even => {
            // Clients are set off against each other, so that even means even over all of them.
            let interval = per / rate;
            let phase = interval * (client - 1) / options.clients;
            Pace::Open(Arrivals::Constant { operations: u64::from(rate), per, phase })
        }
        Pacing::Poisson => {
            let draws = Draws::new(setup.context.seed, stream(index, Purpose::Arrivals), client);
            // As long as an even step: chance in its length would be chance in whether it kept its
            // rate.
            Pace::Open(Arrivals::poisson(u64::from(rate), per, draws).fitted_to(step.inserts))
        }
        Pacing::Burst => Pace::Burst { per_second: u64::from(rate.div_ceil(step.rows_per_commit).max(1)) },
    }
}

pub(crate) fn spec(index: usize, step: &StepPlan, setup: &Setup) -> StepSpec {
    let options = &setup.options;
    let (kind, unit, label) = match step.kind {
        StepKind::Load | StepKind::Write => (LaneKind::Insert, Unit::Rows, "inserts/s"),
        StepKind::Index => (LaneKind::Index, Unit::Rows, "indexed rows/s"),
        StepKind::Range => (LaneKind::Range, Unit::Operations, "queries/s"),
        StepKind::Point => (LaneKind::Point, Unit::Operations, "queries/s"),
    };
    let target = step.rate.map(|rate| Target {
        kind: LaneKind::Insert.name().to_owned(),
        rows_per_second: f64::from(rate) * f64::from(options.clients),
        share: options.sla_share,
    });
    StepSpec {
        name: step.name.clone(),
        clients: options.clients,
        headline: Headline { kind: kind.name().to_owned(), unit, label: label.to_owned() },
        window: if step.kind == StepKind::Index { WindowRule::LastEnded } else { WindowRule::FirstEnded },
        target,
        kinds: kinds(step).into_iter().map(|kind| kind_spec(kind, (index, step), setup)).collect(),
        options: Map::from_iter([
            ("rows_per_commit".to_owned(), json!(step.rows_per_commit)),
            ("insert_statements_per_client".to_owned(), json!(step.inserts)),
            ("deletes".to_owned(), json!(step.deletes)),
            ("seed".to_owned(), json!(setup.context.seed)),
        ]),
        ..StepSpec::default()
    }
}

fn kind_spec(kind: LaneKind, (index, step): (usize, &StepPlan), setup: &Setup) -> KindSpec {
    let (options, prepared) = (&setup.options, setup.prepared);
    let pace = match kind {
        LaneKind::Insert | LaneKind::Delete => writer_pace(setup, index, step, 1),
        LaneKind::Index | LaneKind::Range | LaneKind::Point => Pace::Closed,
    };
    let (connections_per_client, rows_per_operation, is_prepared) = match kind {
        LaneKind::Insert | LaneKind::Delete => (1, step.rows_per_commit, prepared.writes),
        LaneKind::Index => (1, step.rows_per_commit, false),
        LaneKind::Range => (options.query_connections, options.rows_per_query, prepared.queries),
        LaneKind::Point => (options.query_connections, options.points_per_query, prepared.queries),
    };
    let inserted = if kind == LaneKind::Insert { f64::from(rows_per_operation) } else { 0.0 };
    let class = match kind {
        LaneKind::Insert => OperationClass::Insert,
        LaneKind::Delete => OperationClass::Delete,
        LaneKind::Index => OperationClass::Index,
        LaneKind::Range | LaneKind::Point => OperationClass::Query,
    };
    let statement = statement(kind, step, &setup.context.endpoint.capabilities, options);
    KindSpec {
        connections_per_client,
        pace: pace.to_string(),
        protocol: protocol(is_prepared),
        rows_per_operation,
        statements_per_operation: 1,
        user_bytes_per_operation: inserted * row_bytes(options),
        ..specs::kind_spec(kind.name(), class, statement)
    }
}

/// Bytes of a row's values: an id and a time of 8 bytes each, four numbers of 4, and the mean
/// length of `data`.
fn row_bytes(options: &Options) -> f64 {
    const NUMBERS: f64 = 32.0;
    NUMBERS + f64::from(options.data_length_min + options.data_length_max) / 2.0
}

fn statement(kind: LaneKind, step: &StepPlan, capabilities: &Capabilities, options: &Options) -> String {
    let table = "pi?";
    match kind {
        LaneKind::Insert => {
            format!("{}(?,?,?,?,?,?), ... {} rows", sql::insert_prefix(table), step.rows_per_commit)
        }
        LaneKind::Delete => {
            let [head, middle, tail] = sql::delete_parts(table, capabilities);
            format!("{head}?{middle}{}{tail}", step.rows_per_commit)
        }
        LaneKind::Index => sql::create_indexes(table, capabilities, options.secondary_indexes).join("; "),
        LaneKind::Range => {
            let text = |kind| sql::range_parts(table, kind, capabilities, options.rows_per_query).join("?");
            let kinds = RANGES.iter().take(options.secondary_indexes as usize);
            kinds.map(text).collect::<Vec<_>>().join(" | ")
        }
        LaneKind::Point => sql::prepared_point(table, capabilities, options.points_per_query, false),
    }
}

/// Kinds of connections of a step, in the order in which records number them.
pub(crate) fn kinds(step: &StepPlan) -> Vec<LaneKind> {
    let (first, query) = match step.kind {
        StepKind::Load | StepKind::Write => (LaneKind::Insert, None),
        StepKind::Index => (LaneKind::Index, None),
        StepKind::Range => (LaneKind::Insert, Some(LaneKind::Range)),
        StepKind::Point => (LaneKind::Insert, Some(LaneKind::Point)),
    };
    [Some(first), step.deletes.then_some(LaneKind::Delete), query].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insert_benchmark::Prepared;

    #[test]
    fn the_default_profile_has_the_originals_ten_steps() {
        let options = Options { load_rows: 10_000_000, write_rows: 20_000_000, ..Options::default() };
        let steps: Vec<_> =
            plan(&options).into_iter().map(|s| (s.name, s.inserts, s.rows_per_commit, s.deletes)).collect();
        let expect = |name: &str, inserts, rows, deletes| (name.to_owned(), inserts, rows, deletes);
        assert_eq!(
            steps,
            [
                expect("l.i0", 100_000, 100, false),
                expect("l.x", 1, 100, false),
                expect("l.i1", 320_000, 50, true),
                expect("l.i2", 800_000, 5, true),
                expect("qr100", 3_600, 50, true),
                expect("qp100", 3_600, 50, true),
                expect("qr500", 18_000, 50, true),
                expect("qp500", 18_000, 50, true),
                expect("qr1000", 36_000, 50, true),
                expect("qp1000", 36_000, 50, true),
            ]
        );
    }

    #[test]
    fn a_rate_below_the_commit_size_lowers_the_commit_size() {
        let options = Options { rates: vec![20], ..Options::default() };
        assert_eq!(plan(&options)[4].rows_per_commit, 20);
    }

    fn setup(options: Options) -> Setup {
        Setup { options, context: crate::cards::context(), prepared: Prepared::default() }
    }

    #[test]
    fn even_writers_of_several_clients_are_set_off_against_each_other() {
        let setup = setup(Options { clients: 4, ..Options::default() });
        let steps = plan(&setup.options);
        let due =
            |client| writer_pace(&setup, 4, &steps[4], client).due(1).expect("even pace has a schedule");
        assert_eq!(due(1), Duration::from_millis(500));
        assert_eq!(due(2), Duration::from_millis(625));
        assert_eq!(due(4), Duration::from_millis(875));
    }

    #[test]
    fn random_writers_have_all_their_statements_in_the_time_of_the_step() {
        let setup = setup(Options { clients: 2, pacing: Pacing::Poisson, ..Options::default() });
        let steps = plan(&setup.options);
        let due = |index: usize, client, number| {
            let pace = writer_pace(&setup, index, &steps[index], client);
            assert_eq!(pace.to_string(), "poisson 2/s");
            pace.due(number).expect("a schedule").as_secs_f64()
        };
        assert_eq!(steps[4].inserts, 3_600);
        for client in [1, 2] {
            assert!((due(4, client, 3_600) - 1_800.0).abs() < 1e-4);
            assert!(due(4, client, 3_599) < 1_800.0);
        }
        let middle = [due(4, 1, 1_800), due(4, 2, 1_800), due(5, 1, 1_800)];
        assert!(middle.iter().all(|seconds| (seconds - 900.0).abs() < 75.0), "{middle:?}");
        assert!(
            middle[0] != middle[1] && middle[0] != middle[2],
            "clients and steps have times of their own"
        );
    }

    #[test]
    fn the_burst_rate_is_the_originals_statements_per_second() {
        let setup = setup(Options { pacing: Pacing::Burst, ..Options::default() });
        let steps = plan(&setup.options);
        let per_second = |index: usize| match writer_pace(&setup, index, &steps[index], 1) {
            Pace::Burst { per_second } => per_second,
            other => panic!("{other} is not a burst"),
        };
        assert_eq!([per_second(4), per_second(6), per_second(8)], [2, 10, 20]);
    }
}
