//! Range queries: ten entries of one of the secondary indexes, from a random start.

use dbdyno_db::{Param, Statement};
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes};

use super::Client;
use crate::connection::{Connection, fetched};
use crate::insert_benchmark::rows::{Purpose, stream};
use crate::insert_benchmark::sql::{self, RANGES};
use crate::{Philox, draw_below};

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

/// Kind and parameter of each query. The kind is drawn again each time, with equal chances.
#[derive(Debug)]
pub(crate) struct RangeDraws {
    stream: Philox,
    client: u32,
    connection: u32,
    kinds: u32,
    /// Parameter domains by kind.
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

    /// Returns the index into [`RANGES`] and parameter of query `number`.
    pub(crate) fn at(&self, number: u64) -> (u32, u32) {
        let [kind, value, ..] = self.stream.at(self.client, number, self.connection << 16);
        let kind = draw_below(kind, self.kinds);
        (kind, draw_below(value, self.domains[kind as usize]))
    }
}
