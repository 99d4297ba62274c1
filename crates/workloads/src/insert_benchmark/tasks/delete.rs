//! DELETEs at the low end of a client's table. A cursor walks up the ids, and is corrected from time to
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use dbdyno_db::{Param, Statement};
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes};

use super::Client;
use crate::connection::{Connection, changed};
use crate::insert_benchmark::sql;

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
        // After a lost connection it is unknown how far the last delete came.
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
            let least = self.connection.lookup("min_id", &sql, notes).await?;
            self.cursor.set(least);
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
/// Round 0 looks up the lowest id, and so does every (resync + 1)th round after it. With a resync of 0
/// only round 0 does. Between look-ups the cursor advances by the rows deleted, as if ids had no gaps.
/// LIMIT makes each delete take existing rows all the same, so a gap only makes the cursor lag until
/// the next look-up.
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

    /// Takes over the lowest id. An empty table leaves the cursor where it is.
    fn set(&mut self, least: Option<i64>) {
        self.position = least.unwrap_or(self.position);
        // This is one more than the resync count, because `next` subtracts one for this round too.
        self.left = Some(self.resync + 1);
    }

    /// Returns the start of the next delete. It moves the cursor on.
    fn next(&mut self) -> i64 {
        let from = self.position;
        self.position += self.rows;
        self.left = self.left.map(|left| left.saturating_sub(1));
        from
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
    fn the_least_id_is_looked_up_on_round_0_and_every_1001_rounds() {
        assert_eq!(lookup_rounds(1000, 3004), [0, 1001, 2002, 3003]);
    }

    #[test]
    fn without_resync_there_is_one_lookup() {
        assert_eq!(lookup_rounds(0, 5000), [0]);
    }

    #[test]
    fn the_cursor_advances_by_ids_and_follows_the_lookup_beyond_31_bits() {
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
