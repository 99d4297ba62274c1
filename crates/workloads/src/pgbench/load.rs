//! Makes the four tables, as `pgbench -i` does.

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;

use dbdyno_db::{Capabilities, RowStream};
use dbdyno_loadgen::{ConnectionTask, Done, Failure, Notes};

use super::PgbenchSetup;
use super::options::{PartitionMethod, PgbenchOptions};
use crate::connection::{Connection, changed, of_load};
use crate::pgbench::sources::{ACCOUNTS, FOREIGN_KEYS, TABLES, TELLERS};

/// Number of accounts that are streamed at once, which is about 1 MB.
const ACCOUNTS_PER_STREAM: u64 = 20_000;
/// Number of rows of one INSERT, where rows cannot be streamed.
const ROWS_PER_INSERT: u64 = 1_000;

/// From this scale on, numbers of accounts are columns of 64 bits, as in pgbench.
const LARGE_SCALE: u32 = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoadOperation {
    Statements(Vec<String>),
    /// Accounts with these numbers.
    Accounts(RangeInclusive<u64>),
}

pub(crate) fn load_operations(setup: &PgbenchSetup) -> Vec<LoadOperation> {
    let capabilities = &setup.context.database_server.capabilities;
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
                let rows = if capabilities.row_stream == RowStream::CopyIn {
                    ACCOUNTS_PER_STREAM
                } else {
                    ROWS_PER_INSERT
                };
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
                let gather = |table: &crate::pgbench::sources::PgbenchTable| {
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

fn creations(setup: &PgbenchSetup) -> Vec<String> {
    let capabilities = &setup.context.database_server.capabilities;
    let (options, has_keys) = (&setup.options, setup.options.init_steps.contains('p'));
    let create = |table: &crate::pgbench::sources::PgbenchTable| {
        let number = if options.scale >= LARGE_SCALE { "bigint" } else { "int" };
        let columns = table.columns.replace("AID", number);
        // Where no key can be added later, the table has it from the start.
        let key = if has_keys && !table.key.is_empty() && !capabilities.foreign_keys {
            format!(",primary key ({})", table.key)
        } else {
            String::new()
        };
        if options.partitions > 0 && table.name == "pgbench_accounts" {
            let method = options.partition_method.name();
            // The partitioned table itself holds no rows, so fill factor and logging are options of
            // its partitions.
            return format!("create table {}({columns}) partition by {method} (aid)", table.name);
        }
        let suffix = suffix(capabilities, options.fillfactor, table.key.is_empty());
        format!("create{} table {}({columns}{key}){suffix}", unlogged(options), table.name)
    };
    TABLES.iter().map(create).chain(partitions(options)).collect()
}

/// Returns a message about the kind of tables that the load needs and the server does not have.
pub(crate) fn unsupported_tables(setup: &PgbenchSetup) -> Option<String> {
    let options = &setup.options;
    let asks = [("partitions", options.partitions > 0), ("unlogged_tables", options.unlogged_tables)];
    let (name, _) = asks.into_iter().find(|(_, is_asked)| *is_asked)?;
    let has_such_tables = setup.context.database_server.capabilities.vacuumed_tables;
    let problem = format!("{name} needs a server with such tables; leave it out or the variant");
    (options.has_load() && !has_such_tables).then_some(problem)
}

/// Returns the partitions of the accounts. The first range has no lower bound, and the last range
/// has no upper bound.
fn partitions(options: &PgbenchOptions) -> impl Iterator<Item = String> {
    let (count, fillfactor) = (u64::from(options.partitions), options.fillfactor);
    let size = (ACCOUNTS * u64::from(options.scale)).div_ceil(count.max(1));
    let (unlogged, method) = (unlogged(options), options.partition_method);
    (0..count).map(move |place| {
        let values = match method {
            PartitionMethod::Range => {
                let edge = |place: u64, open: &str| match place {
                    0 => open.to_owned(),
                    place if place == count => open.to_owned(),
                    place => (place * size + 1).to_string(),
                };
                format!("from ({}) to ({})", edge(place, "minvalue"), edge(place + 1, "maxvalue"))
            }
            PartitionMethod::Hash => format!("with (modulus {count}, remainder {place})"),
        };
        let name = format!("pgbench_accounts_{}", place + 1);
        format!(
            "create{unlogged} table {name} partition of pgbench_accounts for values {values} with (fillfactor={fillfactor})"
        )
    })
}

const fn unlogged(options: &PgbenchOptions) -> &'static str {
    if options.unlogged_tables { " unlogged" } else { "" }
}

/// Returns the text after the columns. For tables that are vacuumed it is the fill factor, which
/// the history does not have.
fn suffix(capabilities: &Capabilities, fillfactor: u32, is_history: bool) -> String {
    match (capabilities.vacuumed_tables, is_history) {
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
        numbers.chunks(ROWS_PER_INSERT as usize).map(statement).collect::<Vec<_>>()
    };
    let branches = insert("pgbench_branches(bid,bbalance)", scale, &|bid| format!("({bid},0)"));
    let tellers = insert("pgbench_tellers(tid,bid,tbalance)", scale * TELLERS, &|tid| {
        format!("({tid},{},0)", (tid - 1) / TELLERS + 1)
    });
    branches.into_iter().chain(tellers).collect()
}

pub struct PgbenchLoadTask {
    connection: Connection,
    operations: Vec<LoadOperation>,
    stream: bool,
    text: String,
}

impl PgbenchLoadTask {
    pub(crate) fn new(setup: &Arc<PgbenchSetup>) -> Self {
        let database_server = &setup.context.database_server;
        Self {
            connection: Connection::new(database_server, "load"),
            operations: load_operations(setup),
            stream: database_server.capabilities.row_stream == RowStream::CopyIn,
            text: String::new(),
        }
    }
}

impl ConnectionTask for PgbenchLoadTask {
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
            // Writing into a `String` cannot fail.
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

#[cfg(test)]
mod tests {
    use dbdyno_db::postgres;

    use super::*;
    use crate::summaries;

    #[test]
    fn a_scale_with_more_accounts_than_32_bits_can_number_is_loaded_to_its_end() {
        const SCALE: u32 = 25_000;
        let mut context = summaries::context();
        context.database_server.capabilities = postgres::capabilities();
        let options =
            PgbenchOptions { scale: SCALE, init_steps: "tg".to_owned(), ..PgbenchOptions::default() };
        let operations = load_operations(&PgbenchSetup::new(&options, context, None));
        let LoadOperation::Statements(created) = &operations[0] else { panic!("{:?}", operations[0]) };
        let accounts = created.iter().find(|sql| sql.starts_with("create table pgbench_accounts(")).unwrap();
        assert!(accounts.contains("aid bigint"), "{accounts}");
        let mut next = 1;
        for operation in &operations {
            if let LoadOperation::Accounts(numbers) = operation {
                assert_eq!(*numbers.start(), next);
                next = numbers.end() + 1;
            }
        }
        assert_eq!(next - 1, 2_500_000_000);
    }

    #[test]
    fn tables_of_an_engine_without_vacuum_have_its_suffix_and_no_fill_factor() {
        for (capabilities, expected) in [
            (dbdyno_db::mysql::capabilities("MyISAM", true), " ENGINE=MyISAM"),
            (dbdyno_db::mysql::capabilities("InnoDB", true), " ENGINE=InnoDB"),
            (postgres::capabilities(), " with (fillfactor=90)"),
        ] {
            assert_eq!(suffix(&capabilities, 90, false), expected);
            let mut context = summaries::context();
            context.database_server.capabilities = capabilities.clone();
            let options = PgbenchOptions { partitions: 2, ..PgbenchOptions::default() };
            let problem = unsupported_tables(&PgbenchSetup::new(&options, context, None));
            assert_eq!(problem.is_none(), capabilities.vacuumed_tables, "{expected}");
        }
    }

    /// The statements are those of the original. The test `servers/pgbench.rs` of the command line
    /// compares the tables with pgbench's.
    #[test]
    fn partitions_by_range_hold_all_accounts_once() {
        let options = PgbenchOptions { partitions: 3, unlogged_tables: true, ..PgbenchOptions::default() };
        insta::assert_snapshot!(partitions(&options).collect::<Vec<_>>().join("\n"), @r"
        create unlogged table pgbench_accounts_1 partition of pgbench_accounts for values from (minvalue) to (33335) with (fillfactor=100)
        create unlogged table pgbench_accounts_2 partition of pgbench_accounts for values from (33335) to (66669) with (fillfactor=100)
        create unlogged table pgbench_accounts_3 partition of pgbench_accounts for values from (66669) to (maxvalue) with (fillfactor=100)
        ");
        let hashed = PgbenchOptions {
            partitions: 2,
            partition_method: PartitionMethod::Hash,
            ..PgbenchOptions::default()
        };
        insta::assert_snapshot!(partitions(&hashed).collect::<Vec<_>>().join("\n"), @r"
        create table pgbench_accounts_1 partition of pgbench_accounts for values with (modulus 2, remainder 0) with (fillfactor=100)
        create table pgbench_accounts_2 partition of pgbench_accounts for values with (modulus 2, remainder 1) with (fillfactor=100)
        ");
        assert_eq!(partitions(&PgbenchOptions::default()).count(), 0);
    }
}
