//! The connection tasks of one client in one step of the Insert Benchmark. They insert, delete,
//! build indexes and query.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use dbdyno_db::{Param, Statement};
use dbdyno_loadgen::{
    Arrivals, ConnectionTask, Coupling, Done, Failure, Limit, Notes, Role, Side, StatementDone, TaskSpec,
};

use crate::connection::any_task;
use crate::connection::{Connection, changed, fetched, indispensable, of_load};
use crate::digits::push_decimal;
use crate::insert_benchmark::options::InsertBenchmarkOptions;
use crate::insert_benchmark::rows::{InsertRowSource, Purpose, stream};
use crate::insert_benchmark::sql::{self, RANGES};
use crate::insert_benchmark::steps::{ClientPart, TaskKind, kinds, writer_arrivals};
use crate::insert_benchmark::{InsertSetup, statement_second};
use crate::{Philox, Tasks, draw_below, draw_below_u64, planned};

/// One client in one step, as its tasks see it.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) setup: Arc<InsertSetup>,
    /// Number of the client, from 1.
    pub(crate) number: u32,
    /// Index of the step.
    pub(crate) step: usize,
    /// Rows that earlier steps planned to insert for this client, whether or not the INSERTs
    /// succeeded. The time in a row can depend on this number.
    pub(crate) rows_before: u64,
    pub(crate) rows_in_table: u64,
    pub(crate) rows_per_commit: u32,
}

impl Client {
    pub(crate) fn table(&self) -> String {
        InsertSetup::table(self.number)
    }
}

any_task! {
    Insert(InsertTask),
    Delete(DeleteTask),
    Range(RangeTask),
    Point(PointTask),
    Index(IndexTask),
}

pub(crate) fn of_client(client: &Client, step: &ClientPart) -> Tasks<AnyTask> {
    let setup = &client.setup;
    let arrivals = writer_arrivals(setup, client.step, step, client.number);
    let writes = Limit::Operations(step.inserts);
    let coupling = step.deletes.then(|| Arc::new(Coupling::new(Coupling::ORIGINAL_LEAD)));
    let side = |side| coupling.as_ref().map(|coupling| (Arc::clone(coupling), side));
    // The deleter's cursor is the lowest id that point queries draw. It is 0 until the first
    // delete, as in the original.
    let cursor = Arc::new(AtomicI64::new(0));
    let mut tasks = Vec::new();
    for (kind_index, kind) in kinds(step).into_iter().enumerate() {
        let task_client = client.clone();
        let task =
            |arrivals, limit| TaskSpec { kind: kind_index, ..TaskSpec::new(client.number, arrivals, limit) };
        let query_spec =
            || TaskSpec { role: Role::Follows, ..task(Arrivals::Closed, Limit::UntilClientEnds) };
        match kind {
            TaskKind::Index => {
                let (capabilities, count) =
                    (&setup.context.database_server.capabilities, setup.options.secondary_indexes);
                let statements = sql::create_indexes(&client.table(), capabilities, count);
                let spec = task(Arrivals::Closed, Limit::Operations(statements.len() as u64));
                tasks.push(planned(spec, move || AnyTask::Index(IndexTask::new(&task_client, statements))));
            }
            TaskKind::Insert => {
                let spec = TaskSpec { coupling: side(Side::Left), ..task(arrivals.clone(), writes) };
                tasks.push(planned(spec, move || AnyTask::Insert(InsertTask::new(&task_client))));
            }
            TaskKind::Delete => {
                // The deleter does not decide when the window ends, because the rate counts
                // inserts. Deletes keep within a few statements of the inserts. If the window ended
                // with the deleter, a short step could count no inserts.
                let deletes = task(arrivals.clone(), writes);
                let spec = TaskSpec { role: Role::Follows, coupling: side(Side::Right), ..deletes };
                let cursor = Arc::clone(&cursor);
                tasks.push(planned(spec, move || AnyTask::Delete(DeleteTask::new(&task_client, cursor))));
            }
            TaskKind::Range => tasks.extend((0..setup.options.query_connections).map(|connection| {
                let task_client = task_client.clone();
                planned(query_spec(), move || AnyTask::Range(RangeTask::new(&task_client, connection)))
            })),
            TaskKind::Point => tasks.extend((0..setup.options.query_connections).map(|connection| {
                let (task_client, cursor) = (task_client.clone(), Arc::clone(&cursor));
                planned(query_spec(), move || {
                    AnyTask::Point(PointTask::new(&task_client, connection, cursor))
                })
            })),
        }
    }
    tasks
}

#[derive(Debug)]
pub struct InsertTask {
    connection: Connection,
    client: Client,
    builder: InsertBuilder,
    statement: Option<Statement>,
    sql: Vec<u8>,
    params: Vec<Param>,
}

impl InsertTask {
    pub(crate) fn new(client: &Client) -> Self {
        Self {
            connection: Connection::new(&client.setup.context.database_server, "insert"),
            client: client.clone(),
            builder: InsertBuilder::new(client),
            statement: None,
            sql: Vec::new(),
            params: Vec::new(),
        }
    }
}

impl ConnectionTask for InsertTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open_to_insert().await?;
        if self.client.setup.prepared.writes {
            let sql = sql::prepared_insert(&self.client.table(), self.client.rows_per_commit);
            self.statement = Some(self.connection.prepare(&sql).await?);
        }
        Ok(())
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        if self.statement.is_some() {
            self.builder.params(number, &mut self.params);
        } else {
            self.builder.text(number, &mut self.sql);
        }
        Ok(())
    }

    async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        let answer = self.connection.send(self.statement, &self.params, &self.sql).await;
        let is_load = self.client.step < InsertBenchmarkOptions::LOAD_STEPS;
        answer.map(changed).map_err(|failure| if is_load { of_load(failure) } else { failure })
    }

    async fn close(self) {
        self.connection.close().await;
    }
}

/// The bytes of [`InsertBuilder::row_head`] that hold the time.
const TIME: std::ops::Range<usize> = 2..21;

/// Writes the INSERT statements of a client in a step, by their number, as text or as parameters.
#[derive(Debug, Clone)]
pub(crate) struct InsertBuilder {
    prefix: String,
    rows: InsertRowSource,
    rows_before: u64,
    rows_per_commit: u32,
    clock: crate::insert_benchmark::options::Clock,
    /// The second that `row_head` holds. Most statements have the same second as the previous one.
    second: i64,
    /// The beginning of a row, `('YYYY-MM-DD HH:MM:SS',`.
    row_head: [u8; 23],
}

impl InsertBuilder {
    pub(crate) fn new(client: &Client) -> Self {
        let options = &client.setup.options;
        Self {
            prefix: sql::insert_prefix(&client.table()),
            rows: InsertRowSource::new(options, client.setup.context.seed, client.step, client.number),
            rows_before: client.rows_before,
            rows_per_commit: client.rows_per_commit,
            clock: options.clock,
            second: i64::MIN,
            row_head: *b"('0000-00-00 00:00:00',",
        }
    }

    /// Writes the whole statement `number`. The integer column `price` gets a number with two
    /// decimals, as in the original.
    pub(crate) fn text(&mut self, number: u64, out: &mut Vec<u8>) {
        self.set_time(number);
        out.clear();
        out.extend_from_slice(self.prefix.as_bytes());
        for row in 0..self.rows_per_commit {
            let numbers = self.rows.numbers(number, row);
            out.extend_from_slice(&self.row_head);
            push_decimal(out, numbers.cashregisterid);
            out.push(b',');
            push_decimal(out, numbers.customerid);
            out.push(b',');
            push_decimal(out, numbers.productid);
            out.push(b',');
            push_decimal(out, numbers.price);
            out.extend_from_slice(b".00,'");
            self.rows.write_data(number, row, out);
            out.extend_from_slice(b"'),");
        }
        // This removes the comma after the last row.
        out.pop();
    }

    /// Writes six parameters per row of statement `number`. It reuses the texts that are in `out`.
    pub(crate) fn params(&mut self, number: u64, out: &mut Vec<Param>) {
        self.set_time(number);
        out.resize(self.rows_per_commit as usize * 6, Param::Int(0));
        for (row, params) in (0..self.rows_per_commit).zip(out.chunks_exact_mut(6)) {
            let numbers = self.rows.numbers(number, row);
            params[0].set_text(|text| text.extend_from_slice(&self.row_head[TIME]));
            params[1] = Param::Int(i64::from(numbers.cashregisterid));
            params[2] = Param::Int(i64::from(numbers.customerid));
            params[3] = Param::Int(i64::from(numbers.productid));
            params[4] = Param::Int(i64::from(numbers.price));
            params[5].set_text(|text| self.rows.write_data(number, row, text));
        }
    }

    fn set_time(&mut self, number: u64) {
        let rows_before = self.rows_before + number * u64::from(self.rows_per_commit);
        let second = statement_second(self.clock, rows_before);
        if self.second != second {
            let time = jiff::Timestamp::from_second(second).unwrap_or_default();
            let text = time.strftime("%Y-%m-%d %H:%M:%S").to_string();
            // The years of a run's times have four digits, so the length is always the same.
            if text.len() == TIME.len() {
                self.row_head[TIME].copy_from_slice(text.as_bytes());
            }
            self.second = second;
        }
    }
}

#[derive(Debug)]
pub struct DeleteTask {
    connection: Connection,
    client: Client,
    cursor: Cursor,
    /// The cursor's position, which the client's point queries read.
    published: Arc<AtomicI64>,
    parts: [String; 3],
    statement: Option<Statement>,
    sql: Vec<u8>,
    params: [Param; 2],
}

impl DeleteTask {
    pub(crate) fn new(client: &Client, published: Arc<AtomicI64>) -> Self {
        let setup = &client.setup;
        Self {
            connection: Connection::new(&setup.context.database_server, "delete"),
            client: client.clone(),
            cursor: Cursor::new(setup.options.resync_rounds, client.rows_per_commit),
            published,
            parts: sql::delete_parts(&client.table(), &setup.context.database_server.capabilities),
            statement: None,
            sql: Vec::new(),
            params: [Param::Int(0), Param::Int(i64::from(client.rows_per_commit))],
        }
    }
}

impl ConnectionTask for DeleteTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open().await?;
        // After a lost connection, it is unknown whether the last delete took effect.
        self.cursor.look_up_next();
        if self.client.setup.prepared.writes {
            let [head, middle, tail] = &self.parts;
            self.statement = Some(self.connection.prepare(&format!("{head}?{middle}?{tail}")).await?);
        }
        Ok(())
    }

    async fn prepare(&mut self, _number: u64, notes: &mut Notes) -> Result<(), Failure> {
        if self.cursor.must_look_up() {
            let sql = sql::extreme(&self.client.table(), "min");
            let lowest = self.connection.lookup("min_id", &sql, notes).await?;
            self.cursor.set(lowest);
        }
        let from = self.cursor.next();
        self.published.store(self.cursor.position, Ordering::Release);
        self.params[0] = Param::Int(from);
        let mut digits = itoa::Buffer::new();
        let [head, middle, tail] = &self.parts;
        self.sql.clear();
        self.sql.extend_from_slice(head.as_bytes());
        self.sql.extend_from_slice(digits.format(from).as_bytes());
        self.sql.extend_from_slice(middle.as_bytes());
        self.sql.extend_from_slice(digits.format(self.client.rows_per_commit).as_bytes());
        self.sql.extend_from_slice(tail.as_bytes());
        Ok(())
    }

    async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        self.connection.send(self.statement, &self.params, &self.sql).await.map(changed)
    }

    async fn close(self) {
        self.connection.close().await;
    }
}

/// Where the next delete begins.
///
/// A round is one delete. Round 0 looks up the lowest id, and so does every (resync + 1)th round
/// after it. With a resync of 0 only round 0 does. Between look-ups the cursor advances by the rows
/// deleted, as if ids had no gaps. LIMIT makes each delete take existing rows all the same, so a
/// gap only makes the cursor lag until the next look-up.
#[derive(Debug)]
struct Cursor {
    resync: u32,
    rows: i64,
    /// Rounds until the next look-up, or `None` before the first.
    left: Option<u32>,
    position: i64,
}

impl Cursor {
    fn new(resync: u32, rows: u32) -> Self {
        Self { resync, rows: i64::from(rows), left: None, position: 0 }
    }

    fn must_look_up(&self) -> bool {
        match self.left {
            None => true,
            Some(left) => left == 0 && self.resync > 0,
        }
    }

    /// Makes the next round look up the lowest id.
    fn look_up_next(&mut self) {
        self.left = None;
    }

    /// Moves the cursor to the lowest id. An empty table leaves it where it is.
    fn set(&mut self, lowest: Option<i64>) {
        self.position = lowest.unwrap_or(self.position);
        // This is one more than the resync count, because `next` subtracts one for this round too.
        self.left = Some(self.resync + 1);
    }

    /// Returns the id at which the next delete begins, and moves the cursor on.
    fn next(&mut self) -> i64 {
        let from = self.position;
        self.position += self.rows;
        self.left = self.left.map(|left| left.saturating_sub(1));
        from
    }
}

/// Builds the indexes of one client's table, with one operation per DDL statement.
#[derive(Debug)]
pub struct IndexTask {
    connection: Connection,
    insert: InsertBuilder,
    statements: Vec<String>,
    /// Rows that count for this client: those that its table had before the step's INSERT, and for
    /// client 1 also the rows of that INSERT. The original counts only one client's INSERT,
    /// although each client makes one.
    rows: u64,
}

impl IndexTask {
    pub(crate) fn new(client: &Client, statements: Vec<String>) -> Self {
        Self {
            connection: Connection::new(&client.setup.context.database_server, "index"),
            insert: InsertBuilder::new(client),
            statements,
            rows: client.rows_in_table
                + if client.number == 1 { u64::from(client.rows_per_commit) } else { 0 },
        }
    }
}

impl ConnectionTask for IndexTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open_to_insert().await
    }

    /// Inserts once before the first index. The INSERT is part of the step's time, and its own time
    /// is noted separately.
    async fn prepare(&mut self, number: u64, notes: &mut Notes) -> Result<(), Failure> {
        if number == 0 {
            let mut sql = Vec::new();
            self.insert.text(0, &mut sql);
            let began = Instant::now();
            let answer = self.connection.query(&sql).await.map_err(indispensable)?;
            notes.lookup("insert", began.elapsed(), i64::try_from(answer.affected).ok());
        }
        Ok(())
    }

    /// Builds one index. All rows count once, with the last statement, so the rate is in rows, and
    /// not in rows times indexes.
    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let sql = self.statements[index].as_bytes();
        let answer = self.connection.query(sql).await.map_err(indispensable)?;
        let rows = if index + 1 == self.statements.len() { self.rows } else { 0 };
        Ok(Done { rows, received_bytes: answer.bytes })
    }

    async fn close(self) {
        self.connection.close().await;
    }
}

#[derive(Debug)]
pub struct PointTask {
    connection: Connection,
    client: Client,
    draws: PointDraws,
    cursor: Arc<AtomicI64>,
    highest_id: i64,
    /// Whether the prepared statement declares its ids wider than `int`, because 32 bits no longer
    /// hold them.
    wide: bool,
    prefix: String,
    statement: Option<Statement>,
    ids: Vec<i64>,
    sql: Vec<u8>,
    params: Vec<Param>,
}

impl PointTask {
    pub(crate) fn new(client: &Client, connection: u32, cursor: Arc<AtomicI64>) -> Self {
        Self {
            connection: Connection::new(&client.setup.context.database_server, "query"),
            client: client.clone(),
            draws: PointDraws::new(client, connection),
            cursor,
            highest_id: 0,
            wide: false,
            prefix: sql::point_prefix(&client.table()),
            statement: None,
            ids: Vec::new(),
            sql: Vec::new(),
            params: Vec::new(),
        }
    }

    async fn prepare_query(&mut self) -> Result<(), Failure> {
        let setup = &self.client.setup;
        let (capabilities, ids) =
            (&setup.context.database_server.capabilities, setup.options.points_per_query);
        let sql = sql::prepared_point(&self.client.table(), capabilities, ids, self.wide);
        self.statement = Some(self.connection.prepare(&sql).await?);
        Ok(())
    }
}

impl ConnectionTask for PointTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open().await?;
        if self.client.setup.prepared.queries {
            self.prepare_query().await?;
        }
        Ok(())
    }

    async fn prepare(&mut self, number: u64, notes: &mut Notes) -> Result<(), Failure> {
        if number.is_multiple_of(u64::from(self.client.setup.options.max_id_every.max(1))) {
            let sql = sql::extreme(&self.client.table(), "max");
            self.highest_id = self.connection.lookup("max_id", &sql, notes).await?.unwrap_or(0);
            let wide = i32::try_from(self.highest_id).is_err();
            if self.statement.is_some() && wide && !self.wide {
                self.wide = true;
                self.prepare_query().await?;
            }
        }
        self.draws.at(number, self.cursor.load(Ordering::Acquire), self.highest_id, &mut self.ids);
        if self.statement.is_some() {
            self.params.clear();
            self.params.extend(self.ids.iter().map(|&id| Param::Int(id)));
            return Ok(());
        }
        let mut digits = itoa::Buffer::new();
        self.sql.clear();
        self.sql.extend_from_slice(self.prefix.as_bytes());
        for (index, &id) in self.ids.iter().enumerate() {
            if index > 0 {
                self.sql.push(b',');
            }
            self.sql.extend_from_slice(digits.format(id).as_bytes());
        }
        self.sql.push(b')');
        Ok(())
    }

    async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        self.connection.send(self.statement, &self.params, &self.sql).await.map(fetched)
    }

    async fn close(self) {
        self.connection.close().await;
    }
}

/// Draws the ids of each point query. The draws are independent and uniform, so an id may occur
/// twice.
#[derive(Debug)]
pub(crate) struct PointDraws {
    stream: Philox,
    client: u32,
    connection: u32,
    ids: u32,
}

impl PointDraws {
    pub(crate) fn new(client: &Client, connection: u32) -> Self {
        Self {
            stream: Philox::new(client.setup.context.seed, stream(client.step, Purpose::Queries)),
            client: client.number,
            connection,
            ids: client.setup.options.points_per_query,
        }
    }

    /// Writes the ids of query `number`, uniform from `lowest` to `highest` − 1.
    pub(crate) fn at(&self, number: u64, lowest: i64, highest: i64, out: &mut Vec<i64>) {
        let width = u64::try_from(highest - lowest).unwrap_or(0).max(1);
        out.clear();
        for pair in 0..self.ids.div_ceil(2) {
            // One draw of 128 bits serves two ids.
            let [a, b, c, d] = self.stream.at(self.client, number, (self.connection << 16) | pair);
            out.push(lowest + draw_below_u64(a, b, width) as i64);
            out.push(lowest + draw_below_u64(c, d, width) as i64);
        }
        out.truncate(self.ids as usize);
    }
}

#[derive(Debug)]
pub struct RangeTask {
    connection: Connection,
    prepared: bool,
    draws: RangeDraws,
    parts: Vec<[String; 2]>,
    statements: Vec<Statement>,
    chosen: usize,
    sql: Vec<u8>,
    params: [Param; 1],
}

impl RangeTask {
    pub(crate) fn new(client: &Client, connection: u32) -> Self {
        let setup = &client.setup;
        let capabilities = &setup.context.database_server.capabilities;
        let draws = RangeDraws::new(client, connection);
        let (table, limit) = (client.table(), setup.options.rows_per_query);
        let parts = |kind| sql::range_parts(&table, kind, capabilities, limit);
        let parts = RANGES.iter().take(draws.kinds as usize).map(parts).collect();
        Self {
            connection: Connection::new(&setup.context.database_server, "query"),
            prepared: setup.prepared.queries,
            draws,
            parts,
            statements: Vec::new(),
            chosen: 0,
            sql: Vec::new(),
            params: [Param::Int(0)],
        }
    }
}

impl ConnectionTask for RangeTask {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open().await?;
        if self.prepared {
            for parts in &self.parts {
                self.statements.push(self.connection.prepare(&parts.join("?")).await?);
            }
        }
        Ok(())
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        let (kind, value) = self.draws.at(number);
        self.chosen = kind as usize;
        if self.prepared {
            self.params[0] = Param::Int(i64::from(value));
            return Ok(());
        }
        let [head, tail] = &self.parts[self.chosen];
        self.sql.clear();
        self.sql.extend_from_slice(head.as_bytes());
        self.sql.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.sql.extend_from_slice(tail.as_bytes());
        Ok(())
    }

    async fn perform(&mut self, _number: u64) -> Result<Done, Failure> {
        let answer = if self.prepared {
            self.connection.execute(self.statements[self.chosen], &self.params).await?
        } else {
            self.connection.query(&self.sql).await?
        };
        Ok(fetched(answer))
    }

    async fn close(self) {
        self.connection.close().await;
    }
}

/// Draws the kind and the parameter of each range query. All kinds have equal chances each time.
#[derive(Debug)]
pub(crate) struct RangeDraws {
    stream: Philox,
    client: u32,
    connection: u32,
    kinds: u32,
    /// By kind, the number of values that the parameter can have. They begin at 0.
    domains: [u32; 3],
}

impl RangeDraws {
    pub(crate) fn new(client: &Client, connection: u32) -> Self {
        let options = &client.setup.options;
        Self {
            stream: Philox::new(client.setup.context.seed, stream(client.step, Purpose::Queries)),
            client: client.number,
            connection,
            kinds: options.secondary_indexes.clamp(1, 3),
            domains: [options.products, options.cashregisters, options.max_price],
        }
    }

    /// Returns the kind of query `number`, as an index into [`RANGES`], and its parameter.
    pub(crate) fn at(&self, number: u64) -> (u32, u32) {
        let [kind, value, ..] = self.stream.at(self.client, number, self.connection << 16);
        let kind = draw_below(kind, self.kinds);
        (kind, draw_below(value, self.domains[kind as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup_rounds(resync: u32, rounds: u32) -> Vec<u32> {
        let mut cursor = Cursor::new(resync, 50);
        let mut looked_up = Vec::new();
        for round in 0..rounds {
            if cursor.must_look_up() {
                looked_up.push(round);
                cursor.set(Some(1));
            }
            cursor.next();
        }
        looked_up
    }

    #[test]
    fn the_lowest_id_is_looked_up_in_round_0_and_every_1001_rounds() {
        assert_eq!(lookup_rounds(1000, 3004), [0, 1001, 2002, 3003]);
    }

    #[test]
    fn without_resync_there_is_one_lookup() {
        assert_eq!(lookup_rounds(0, 5000), [0]);
    }

    #[test]
    fn the_cursor_advances_by_rows_and_follows_a_lookup_beyond_31_bits() {
        let mut cursor = Cursor::new(1, 5);
        cursor.set(Some(3_000_000_000));
        assert_eq!(
            (cursor.next(), cursor.next(), cursor.position),
            (3_000_000_000, 3_000_000_005, 3_000_000_010)
        );
        assert!(cursor.must_look_up());
        cursor.set(None);
        assert_eq!(cursor.next(), 3_000_000_010);
    }
}
