//! Makes one step of a sequence from the classic workload's parts: its settings, its description
//! and its connections. It also puts back the rows that delete steps took away.

use std::sync::Arc;
use std::time::Instant;

use dbdyno_db::{AnySession, Session, first_i64};
use dbdyno_loadgen::{Arrivals, Limit, TaskSpec};
use dbdyno_record::{KindSpec, StepSpec, Unit};
use serde_json::{Map, Value, json};

use crate::microbenchmarks::list;
use crate::microbenchmarks::options::{MicroLength, MicroLevel, MicroTest, MicrobenchmarksOptions};
use crate::oltp::load::write_insert;
use crate::oltp::operation::{StatementSlot, statement_slots};
use crate::oltp::rows::OltpRowSource;
use crate::oltp::sql::{Fetch, OltpStatement};
use crate::oltp::tasks::{AnyTask, TestScript, TestTask};
use crate::oltp::{self, OltpSetup};
use crate::step::step_spec;
use crate::{Context, Error, Result, Tasks, Work, planned};

/// A step that is about to be described or run.
pub(crate) struct ReadyStep<'a> {
    pub(crate) options: &'a MicrobenchmarksOptions,
    pub(crate) level: &'a MicroLevel,
    /// The set-up that the classic workload's parts get for this step.
    pub(crate) setup: Arc<OltpSetup>,
}

impl<'a> ReadyStep<'a> {
    pub(crate) fn new(options: &'a MicrobenchmarksOptions, level: &'a MicroLevel, context: &Context) -> Self {
        let setup = OltpSetup { options: options.step_part(&level.step), context: context.clone() };
        Self { options, level, setup: Arc::new(setup) }
    }

    /// Returns the statements of one operation.
    pub(crate) fn statement_slots(&self) -> Vec<StatementSlot> {
        let range = self.level.step.range;
        let points = |columns, by| OltpStatement::Points(Fetch { columns, by }, range);
        let rows = |columns, by| OltpStatement::Range(Fetch { columns, by }, range);
        let kind = match self.level.step.test {
            MicroTest::PointQuery => OltpStatement::Point,
            MicroTest::RandomPoints => points("c", "id"),
            MicroTest::HotPoints => OltpStatement::HotPoints(range),
            MicroTest::PointsCoveredPk => points("id", "id"),
            MicroTest::PointsNotcoveredPk => points("id, c", "id"),
            MicroTest::PointsCoveredSi => points("k", "k"),
            MicroTest::PointsNotcoveredSi => points("k, c", "k"),
            MicroTest::RangeCoveredPk => rows("id", "id"),
            MicroTest::RangeNotcoveredPk => rows("id, c", "id"),
            MicroTest::RangeCoveredSi => rows("k", "k"),
            MicroTest::RangeNotcoveredSi => rows("k, c", "k"),
            MicroTest::ReadOnlyCount => OltpStatement::CountRange,
            MicroTest::Scan => OltpStatement::Scan,
            MicroTest::UpdateInlist => OltpStatement::ListUpdate(self.options.update_inlist_ids),
            MicroTest::UpdateIndex => OltpStatement::IndexUpdate,
            MicroTest::UpdateNonindex | MicroTest::UpdateOne | MicroTest::UpdateZipf => {
                OltpStatement::NonIndexUpdate
            }
            MicroTest::Delete => OltpStatement::Delete,
            MicroTest::ReadOnly
            | MicroTest::ReadOnlySimple
            | MicroTest::ReadOnlySum
            | MicroTest::ReadOnlyOrder
            | MicroTest::ReadOnlyDistinct
            | MicroTest::WriteOnly
            | MicroTest::ReadWrite
            | MicroTest::Insert => {
                let classic = self.level.step.test.effect();
                return statement_slots(classic, &self.setup.options, self.setup.client_ids());
            }
        };
        vec![StatementSlot { kind, group: 0 }]
    }

    pub(crate) fn is_prepared(&self) -> bool {
        let auto = !matches!(self.level.step.test, MicroTest::Insert | MicroTest::Scan);
        self.options.protocol.prepares(auto)
    }

    /// Returns the limit at which connection `connection` (from 0) ends its part of the step.
    fn limit(&self, connection: u32) -> Limit {
        let step = &self.level.step;
        match (self.options.length(step), self.options.operations) {
            (Some(length), _) => Limit::Time(length + self.options.warmup_of(step)),
            (None, _) if step.length == MicroLength::OneScan => Limit::Operations(1),
            (None, operations) => {
                let share = oltp::steps::share(operations.unwrap_or(1), connection, self.level.connections);
                Limit::Operations(share)
            }
        }
    }

    /// Returns the connections of the step. `found_rows` has the number of rows in each table,
    /// where it is not `table_size`.
    pub(crate) fn tasks(&self, first_new_id: i64, found_rows: &Arc<[u64]>) -> Tasks<AnyTask> {
        let connections = self.level.connections;
        let clients = crate::step::clients(connections, None);
        let script = TestScript {
            kind: self.level.step.test.labels().0,
            statement_slots: self.statement_slots(),
            prepared: self.is_prepared(),
            stream: crate::step::stream(&self.level.name, self.setup.context.draws),
            connections,
            is_shared: false,
            table_each: self.level.step.test == MicroTest::Scan,
            found_rows: Arc::clone(found_rows),
        };
        let task = |connection: u32| {
            // Connections that scan the same table are recorded as one client, wherever the number
            // of tables divides that of clients. Tables may differ in size, and only sums are known
            // for a client.
            let spec = TaskSpec::new(1 + connection % clients, Arrivals::Closed, self.limit(connection));
            let (setup, script) = (Arc::clone(&self.setup), script.clone());
            planned(spec, move || AnyTask::Test(TestTask::new(&setup, script, connection, first_new_id)))
        };
        (0..connections).map(task).collect()
    }

    pub(crate) fn spec(&self) -> StepSpec {
        let (step, connections) = (&self.level.step, self.level.connections);
        let (kind, class, label) = step.test.labels();
        let clients = crate::step::clients(connections, None);
        let unit = if step.test == MicroTest::Scan { Unit::Rows } else { Unit::Operations };
        let kind = KindSpec {
            connections_per_client: connections / clients,
            ..oltp::steps::test_kind((kind, class), &self.statement_slots(), self.is_prepared(), &self.setup)
        };
        let is_timed = self.options.length(step).is_some();
        let spec = step_spec((&self.level.name, clients), (unit, label), is_timed, kind, self.options_map());
        StepSpec { groups: list::of_step(step), is_warm_up: step.moment.is_warm_up(), ..spec }
    }

    fn options_map(&self) -> Map<String, Value> {
        let (step, options) = (&self.level.step, self.options);
        let mut map = Map::from_iter([
            ("published_name".to_owned(), json!(step.published_name())),
            ("connections".to_owned(), json!(self.level.connections)),
            ("tables".to_owned(), json!(options.tables)),
            ("table_size".to_owned(), json!(options.table_size)),
            ("seed".to_owned(), json!(self.setup.context.draws)),
            ("table_state".to_owned(), json!(self.table_state())),
        ]);
        match (options.length(step), options.operations) {
            (Some(length), _) => {
                map.insert("time_seconds".to_owned(), json!(length.as_secs_f64()));
                map.insert("warmup_seconds".to_owned(), json!(options.warmup_of(step).as_secs_f64()));
            }
            (None, Some(operations)) if step.length != MicroLength::OneScan => {
                map.insert("operations".to_owned(), json!(operations));
            }
            (None, _) => {}
        }
        map
    }

    /// Returns the state of the tables when the step begins: `loaded` as long as nothing has
    /// written to them, otherwise `written`.
    fn table_state(&self) -> &'static str {
        if self.options.data.restores_each_step() {
            return "loaded";
        }
        let earlier = self.options.levels();
        let mut earlier = earlier.iter().take_while(|level| level.name != self.level.name);
        if earlier.any(|level| level.step.test.writes()) { "written" } else { "loaded" }
    }
}

/// Number of ids in which one query looks for missing rows.
const ROWS_PER_LOOK: u64 = 20_000;
/// Number of missing rows that one INSERT puts back.
const ROWS_PER_STATEMENT: usize = 1_000;

/// Inserts the loaded rows that are missing, outside of any measured time, and returns their
/// number. Other rows stay as they are.
pub(crate) async fn refill(setup: &OltpSetup, session: &mut AnySession) -> Result<(u64, Work)> {
    let began = Instant::now();
    let source = OltpRowSource::of(setup);
    let (mut rows, mut sql) = (0_u64, Vec::new());
    for number in 1..=setup.options.tables {
        let mut first = 1;
        while first <= setup.options.table_size {
            let last = (first + ROWS_PER_LOOK - 1).min(setup.options.table_size);
            let missing = missing(number, source.id(first), source.id(last), session).await?;
            for some in missing.chunks(ROWS_PER_STATEMENT) {
                let rows_of_load = some.iter().map(|id| id - setup.options.first_id + 1);
                write_insert(number, rows_of_load, true, &source, &mut sql);
                let putting =
                    Error::during(format!("putting rows of table {} back", OltpSetup::table(number)));
                session.query(&sql).await.map_err(putting)?;
                rows += some.len() as u64;
            }
            first = last + 1;
        }
    }
    Ok((rows, Work::new("refill", began.elapsed(), [("rows", json!(rows))])))
}

/// Returns the ids from `first` to `last` without a row, ascending.
async fn missing(number: u32, first: u64, last: u64, session: &mut AnySession) -> Result<Vec<u64>> {
    let table = OltpSetup::table(number);
    let looking = || Error::during(format!("looking for missing rows of table {table}"));
    let between = format!("FROM {table} WHERE id BETWEEN {first} AND {last}");
    let count = session.rows(&format!("SELECT COUNT(*) {between}")).await.map_err(looking())?;
    if first_i64(&count).and_then(|count| u64::try_from(count).ok()) == Some(last - first + 1) {
        return Ok(Vec::new());
    }
    let cells = session.rows(&format!("SELECT id {between} ORDER BY id")).await.map_err(looking())?;
    let ids = cells.iter().filter_map(|row| row.first()?.as_deref()?.parse::<u64>().ok());
    let mut missing = Vec::new();
    let mut next = first;
    for id in ids {
        missing.extend(next..id);
        next = id + 1;
    }
    missing.extend(next..=last);
    Ok(missing)
}
