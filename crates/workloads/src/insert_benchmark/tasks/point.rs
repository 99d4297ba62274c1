//! Point queries: ten random ids between the deleter's cursor and the highest id.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use dbdyno_db::{Param, Statement};
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes};

use super::Client;
use crate::connection::{Connection, fetched};
use crate::insert_benchmark::rows::{Purpose, stream};
use crate::insert_benchmark::sql;
use crate::{Philox, draw_below_u64};

#[derive(Debug)]
pub struct PointTask {
    connection: Connection,
    client: Client,
    draws: PointDraws,
    cursor: Arc<AtomicI64>,
    greatest: i64,
    /// Whether ids have more than 32 bits.
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
            greatest: 0,
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
            self.greatest = self.connection.lookup("max_id", &sql, notes).await?.unwrap_or(0);
            let wide = i32::try_from(self.greatest).is_err();
            if self.statement.is_some() && wide && !self.wide {
                self.wide = true;
                self.prepare_query().await?;
            }
        }
        self.draws.at(number, self.cursor.load(Ordering::Acquire), self.greatest, &mut self.ids);
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

/// Ids of each query. They are independent uniform draws, so duplicates are possible.
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

    /// Writes the ids of query `number`, uniform from `least` to `greatest` − 1.
    pub(crate) fn at(&self, number: u64, least: i64, greatest: i64, out: &mut Vec<i64>) {
        let width = u64::try_from(greatest - least).unwrap_or(0).max(1);
        out.clear();
        for pair in 0..self.ids.div_ceil(2) {
            // One draw of 128 bits serves two ids.
            let [a, b, c, d] = self.stream.at(self.client, number, (self.connection << 16) | pair);
            out.push(least + draw_below_u64(a, b, width) as i64);
            out.push(least + draw_below_u64(c, d, width) as i64);
        }
        out.truncate(self.ids as usize);
    }
}
