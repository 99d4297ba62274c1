//! Source `waits`: what the server's connections wait for, in profile blocks only.
//!
//! Keys: `samples` counts how often the server was asked. `wait.NAME` adds up over these samples how
//! many connections were in the wait of that name; the names are the server's. `io_delay_us` is the
//! time in which the server's threads waited for the disk, in steps of 10 ms (field 42 of
//! `/proc/<pid>/task/<tid>/stat`). It is absent unless the kernel counts it, which
//! `sysctl kernel.task_delayacct=1` turns on.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::time::Instant;

use dbdyno_db::{AnySession, DatabaseServer, DbError, Session, waits};
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::host::TICK_US;
use super::processes::numbers;
use super::status::ANSWER_LIMIT;
use super::{Moment, Source, Values, about};
use crate::Error;

const DELAYS_ARE_COUNTED: &str = "/proc/sys/kernel/task_delayacct";
/// The field's place after the name of the program, which is field 2.
const BLOCK_IO_DELAY: usize = 42 - 3;

pub(crate) struct Waits {
    database_server: DatabaseServer,
    runtime: Runtime,
    session: Option<AnySession>,
    sums: BTreeMap<String, i64>,
    /// The server's process, where the kernel counts its threads' waits for the disk.
    pid: Option<u32>,
    /// Ticks of each thread at the last reading, so that those of ended threads stay in the sum.
    delays: HashMap<u32, i64>,
}

impl Waits {
    pub(crate) fn new(database_server: DatabaseServer, pid: Option<u32>) -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
        let counts_delays = fs::read_to_string(DELAYS_ARE_COUNTED).is_ok_and(|text| text.trim() == "1");
        let pid = pid.filter(|_| counts_delays);
        let (session, sums, delays) = (None, BTreeMap::new(), HashMap::new());
        Ok(Self { database_server, runtime, session, sums, pid, delays })
    }

    /// Adds the waits of all connections now.
    fn add(&mut self, found: BTreeMap<String, i64>) {
        for (name, connections) in found {
            *self.sums.entry(format!("wait.{name}")).or_default() += connections;
        }
        *self.sums.entry("samples".to_owned()).or_default() += 1;
    }

    /// Reads the time in which each thread has waited for the disk.
    fn read_delays(&mut self) {
        let Some(pid) = self.pid else { return };
        let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return };
        for thread in numbers(entries) {
            let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat"));
            if let Some(ticks) = stat.ok().as_deref().and_then(block_io_ticks) {
                self.delays.insert(thread, ticks);
            }
        }
        self.sums.insert("io_delay_us".to_owned(), self.delays.values().sum::<i64>() * TICK_US);
    }
}

/// Parses field 42 of a thread's `stat`.
fn block_io_ticks(stat: &str) -> Option<i64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(BLOCK_IO_DELAY)?.parse().ok()
}

async fn ask(
    database_server: &DatabaseServer,
    session: &mut Option<AnySession>,
) -> Result<BTreeMap<String, i64>, DbError> {
    let mut open = match session.take() {
        Some(open) => open,
        None => database_server.connect_as("waits").await?,
    };
    let found = waits(&mut open).await?;
    *session = Some(open);
    Ok(found)
}

impl Source for Waits {
    fn about(&self) -> Map<String, Value> {
        about([("driver", self.database_server.address.name().into())])
    }

    fn read(&mut self, _moment: Moment, values: &mut Values) -> Result<Option<Instant>, Error> {
        let Self { database_server, runtime, session, .. } = self;
        let answer = runtime.block_on(async { timeout(ANSWER_LIMIT, ask(database_server, session)).await });
        let found = answer.map_err(|_| Error::StatusSlow { limit: ANSWER_LIMIT })??;
        self.add(found);
        self.read_delays();
        values.replace(self.sums.clone());
        Ok(Some(Instant::now()))
    }

    fn close(&mut self) {
        if let Some(session) = self.session.take() {
            // A server that does not end the connection in time is left alone.
            let _ = self.runtime.block_on(async { timeout(ANSWER_LIMIT, session.close()).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_io_delay_is_field_42_whatever_the_program_is_called() {
        let fields: Vec<String> = (3..=52).map(|number| number.to_string()).collect();
        let stat = format!("812 (a (b) c) {}", fields.join(" "));
        assert_eq!(block_io_ticks(&stat), Some(42));
        assert_eq!(block_io_ticks("812 (a) S 1 2"), None);
    }
}
