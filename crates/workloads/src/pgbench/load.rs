//! Makes the four tables, as `pgbench -i` does.

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;

use dbdyno_drivers::{Capabilities, RowStream};
use dbdyno_loadgen::{Done, Failure, Lane, Notes};

use super::Setup;
use super::builtin::{ACCOUNTS, FOREIGN_KEYS, TABLES, TELLERS};
use crate::connection::{Connection, changed, of_load};

/// Accounts that are sent at once: about 1 MB, or rows of one INSERT where there is no stream of
/// rows.
const STREAMED: u64 = 20_000;
const INSERTED: u64 = 1_000;

/// From this scale on numbers of accounts have 64 bits.
const LARGE_SCALE: u32 = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoadOperation {
    Statements(Vec<String>),
    /// Accounts with these numbers.
    Accounts(RangeInclusive<u64>),
}

pub(crate) fn load_operations(setup: &Setup) -> Vec<LoadOperation> {
    let capabilities = &setup.context.endpoint.capabilities;
    let options = &setup.options;
    let scale = u64::from(options.scale);
    let mut all = Vec::new();
    for letter in options.init_steps.chars() {
        match letter {
            'd' => {
                let drop = TABLES.iter().map(|table| format!("drop table if exists {}", table.name));
                all.push(LoadOperation::Statements(drop.collect()));
            }
            't' => all.push(LoadOperation::Statements(creations(setup))),
            'g' => {
                all.push(LoadOperation::Statements(small_tables(scale)));
                let rows = if capabilities.row_stream == RowStream::CopyIn { STREAMED } else { INSERTED };
                let firsts = (0..scale * ACCOUNTS).step_by(rows as usize);
                all.extend(
                    firsts.map(|first| {
                        LoadOperation::Accounts(first + 1..=(first + rows).min(scale * ACCOUNTS))
                    }),
                );
            }
            'G' => {
                let insert = |table: &str, columns: &str, values: &str, rows: u64| {
                    format!(
                        "insert into {table}({columns}) select {values} from generate_series(1, {rows}) as n"
                    )
                };
                let tellers = format!("n, (n - 1) / {TELLERS} + 1, 0");
                let accounts = format!("n, (n - 1) / {ACCOUNTS} + 1, 0, ''");
                all.push(LoadOperation::Statements(vec![
                    insert("pgbench_branches", "bid,bbalance", "n, 0", scale),
                    insert("pgbench_tellers", "tid,bid,tbalance", &tellers, TELLERS * scale),
                    insert("pgbench_accounts", "aid,bid,abalance,filler", &accounts, ACCOUNTS * scale),
                ]));
            }
            'v' if !capabilities.gather_statistics.is_empty() => {
                let gather = |table: &super::builtin::Table| {
                    format!("{} {}", capabilities.gather_statistics, table.name)
                };
                all.push(LoadOperation::Statements(TABLES.iter().map(gather).collect()));
            }
            'p' if capabilities.foreign_keys => {
                let keyed = TABLES.iter().filter(|table| !table.key.is_empty());
                let add =
                    keyed.map(|table| format!("alter table {} add primary key ({})", table.name, table.key));
                all.push(LoadOperation::Statements(add.collect()));
            }
            'f' if capabilities.foreign_keys => {
                let add = FOREIGN_KEYS.iter().map(|(table, column, to)| {
                    format!("alter table {table} add constraint {table}_{column}_fkey foreign key ({column}) references {to} ({column})")
                });
                all.push(LoadOperation::Statements(add.collect()));
            }
            _ => {}
        }
    }
    all
}

fn creations(setup: &Setup) -> Vec<String> {
    let capabilities = &setup.context.endpoint.capabilities;
    let (options, has_keys) = (&setup.options, setup.options.init_steps.contains('p'));
    let create = |table: &super::builtin::Table| {
        let number = if options.scale >= LARGE_SCALE { "bigint" } else { "int" };
        let columns = table.columns.replace("AID", number);
        // Where no key can be added later, it is there from the start.
        let key = if has_keys && !table.key.is_empty() && !capabilities.foreign_keys {
            format!(",primary key ({})", table.key)
        } else {
            String::new()
        };
        let suffix = suffix(capabilities, options.fillfactor, table.key.is_empty());
        format!("create table {}({columns}{key}){suffix}", table.name)
    };
    TABLES.iter().map(create).collect()
}

/// A heap may leave room in its pages.
fn suffix(capabilities: &Capabilities, fillfactor: u32, is_history: bool) -> String {
    match (capabilities.keeps_arrival_order, is_history) {
        (true, false) => format!(" with (fillfactor={fillfactor})"),
        (true, true) => String::new(),
        (false, _) => capabilities.table_suffix.clone(),
    }
}

fn small_tables(scale: u64) -> Vec<String> {
    let insert = |table: &str, rows: u64, row: &dyn Fn(u64) -> String| {
        let numbers: Vec<u64> = (1..=rows).collect();
        let statement = |numbers: &[u64]| {
            let rows: Vec<String> = numbers.iter().map(|number| row(*number)).collect();
            format!("insert into {table} values {}", rows.join(","))
        };
        numbers.chunks(INSERTED as usize).map(statement).collect::<Vec<_>>()
    };
    let branches = insert("pgbench_branches(bid,bbalance)", scale, &|bid| format!("({bid},0)"));
    let tellers = insert("pgbench_tellers(tid,bid,tbalance)", scale * TELLERS, &|tid| {
        format!("({tid},{},0)", (tid - 1) / TELLERS + 1)
    });
    branches.into_iter().chain(tellers).collect()
}

pub struct LoadLane {
    connection: Connection,
    operations: Vec<LoadOperation>,
    stream: bool,
    text: String,
}

impl LoadLane {
    pub(crate) fn new(setup: &Arc<Setup>) -> Self {
        let endpoint = &setup.context.endpoint;
        Self {
            connection: Connection::new(endpoint, "load"),
            operations: load_operations(setup),
            stream: endpoint.capabilities.row_stream == RowStream::CopyIn,
            text: String::new(),
        }
    }
}

impl Lane for LoadLane {
    async fn open(&mut self) -> Result<(), Failure> {
        self.connection.open().await
    }

    async fn prepare(&mut self, number: u64, _notes: &mut Notes) -> Result<(), Failure> {
        let Some(LoadOperation::Accounts(numbers)) = self.operations.get(number as usize) else {
            return Ok(());
        };
        self.text.clear();
        if !self.stream {
            self.text.push_str("insert into pgbench_accounts(aid,bid,abalance,filler) values ");
        }
        for aid in numbers.clone() {
            let bid = (aid - 1) / ACCOUNTS + 1;
            // Writing to a text cannot fail.
            let _ = if self.stream {
                writeln!(self.text, "{aid}\t{bid}\t0\t")
            } else {
                write!(self.text, "{}({aid},{bid},0,'')", if aid == *numbers.start() { "" } else { "," })
            };
        }
        Ok(())
    }

    async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
        let mut done = Done::default();
        match self.operations.get(number as usize) {
            None => {}
            Some(LoadOperation::Statements(statements)) => {
                for sql in statements {
                    let answer = self.connection.query(sql.as_bytes()).await.map_err(of_load)?;
                    let inserts = sql.starts_with("insert");
                    done.rows += if inserts { answer.affected } else { 0 };
                    done.received_bytes += answer.bytes;
                }
            }
            Some(LoadOperation::Accounts(_)) => {
                let text = self.text.as_bytes();
                let answer = if self.stream {
                    self.connection.load_rows("copy pgbench_accounts from stdin", text).await
                } else {
                    self.connection.query(text).await
                };
                done = changed(answer.map_err(of_load)?);
            }
        }
        Ok(done)
    }

    async fn close(self) {
        self.connection.close().await;
    }
}
