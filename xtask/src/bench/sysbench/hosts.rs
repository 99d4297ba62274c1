//! The servers that dbdyno and sysbench are compared on: both speak to the same one.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use dbdyno_drivers::{Endpoint, Manner, Session, Target};
use dbdyno_provision::{Running, Server, ServerSpec, find_named, list, servers_dir};
use tokio::runtime::{Builder, Runtime};

use crate::bench::{machine, newest_of};

/// Everything in memory, and no commit waits for the disk: the client is to be asked for all it can
/// do.
const MY_CNF: &str = "[mysqld]
innodb_buffer_pool_size = 256M
innodb_flush_log_at_trx_commit = 0
max_connections = 5000
back_log = 5000
skip_log_bin
";
const POSTGRESQL_CONF: &str = "shared_buffers = 256MB
synchronous_commit = off
max_connections = 200
";
/// Database of sysbench's tables; dbdyno makes its own.
pub(in crate::bench) const PEER_DATABASE: &str = "sbtest";
pub(in crate::bench) const OWN_DATABASE: &str = "dbdyno";
const START_TIMEOUT: Duration = Duration::from_secs(60);

pub(in crate::bench) struct Host {
    /// For tables: `MariaDB 10.11.5`.
    pub(in crate::bench) title: String,
    /// Address for a plan.
    pub(in crate::bench) address: String,
    /// The same of the database in which sysbench makes its tables.
    pub(in crate::bench) peer_address: String,
    /// Where sysbench connects.
    pub(in crate::bench) peer_options: Vec<String>,
    /// Path of a MySQL socket and its database, for the floor.
    pub(in crate::bench) socket: Option<(String, String)>,
    /// How to reach sysbench's database.
    target: Target,
    pub(in crate::bench) is_mysql: bool,
    /// Stopped when it is dropped.
    server: Running,
    /// Of the thread that started the server: the kernel stops a server when that thread ends.
    pub(in crate::bench) runtime: Runtime,
}

impl Host {
    /// Has PostgreSQL vacuum sysbench's table; other products need nothing.
    pub(in crate::bench) fn tidy_up(&self) -> Result<()> {
        match self.is_mysql {
            true => Ok(()),
            false => self
                .runtime
                .block_on(self.query(["VACUUM ANALYZE sbtest1", "CHECKPOINT"].map(str::to_owned).to_vec())),
        }
    }

    /// Sends `statements` to sysbench's database, one after the other.
    pub(in crate::bench) async fn query(&self, statements: Vec<String>) -> Result<()> {
        let mut session = self.target.clone().endpoint("", false).connect().await?;
        for statement in statements {
            session.query(statement.as_bytes()).await.with_context(|| statement.clone())?;
        }
        session.close().await;
        Ok(())
    }

    /// The statement by which the server reads a file that it can see: commas, a line of names.
    pub(in crate::bench) fn load_file(&self, table: &str, file: &Path) -> String {
        let file = file.display();
        match self.is_mysql {
            true => format!(
                "LOAD DATA INFILE '{file}' INTO TABLE {table} FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' IGNORE 1 LINES"
            ),
            false => format!("COPY {table} FROM '{file}' WITH (FORMAT csv, HEADER)"),
        }
    }

    /// CPU time of the server since it started, by the kernel's clock ticks (10 ms): its process
    /// and its children, running or ended.
    pub(in crate::bench) fn cpu_time(&self) -> Result<Duration> {
        let pid = self.server.pid();
        let own = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|text| process(&text));
        let own = own.with_context(|| format!("the server, process {pid}, is gone"))?;
        let entries = std::fs::read_dir("/proc")?.flatten();
        let all = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        let children = all.filter_map(|text| process(&text)).filter(|one| one.parent == pid);
        Ok(Duration::from_millis((own.ticks + children.map(|one| one.ticks).sum::<u64>()) * 10))
    }
}

#[derive(Debug, PartialEq)]
struct Process {
    parent: u32,
    ticks: u64,
}

/// A line of /proc/PID/stat: ppid, field 4, and the sum of utime, stime, cutime and cstime, fields
/// 14 to 17 (proc_pid_stat(5)), counted from the end of the name, which may hold blanks.
fn process(stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let times = fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok());
    Some(Process { parent: fields.get(1)?.parse().ok()?, ticks: times.sum::<Option<u64>>()? })
}

/// Starts the newest server of the series `prefix` in `folder`, on the server's half of the CPUs.
pub(in crate::bench) fn start(prefix: &str, folder: &Path) -> Result<Host> {
    start_with(prefix, folder, (MY_CNF, POSTGRESQL_CONF), machine::halves().0)
}

/// [`start`] with other settings, of which the product's own are taken, and on other CPUs.
pub(in crate::bench) fn start_with(
    prefix: &str,
    folder: &Path,
    (my_cnf, postgresql_conf): (&str, &str),
    cpus: Option<Vec<u32>>,
) -> Result<Host> {
    let name = newest_of(&list(&servers_dir()), prefix)?;
    let base = find_named(&name)?;
    let title = base.title.clone();
    std::fs::create_dir_all(folder)?;
    let file = |name: &str| folder.join(name);
    let is_mysql = base.family.facts().name == "mysql";
    let (key, _) = base.family.facts().option_file;
    std::fs::write(file(key), if is_mysql { my_cnf } else { postgresql_conf })?;
    let server = Server::start(&ServerSpec {
        base,
        option_file: Some(file(key)),
        initial_options: Vec::new(),
        cpus,
        data_dir: file("data"),
        log: file("server.log"),
        template_dir: file("template"),
        start_timeout: START_TIMEOUT,
        cancel: std::sync::Arc::default(),
        engine: "innodb".to_owned(),
    })?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(create_database(server.target(None, &Manner::default()).endpoint("innodb", false)))?;
    let family = server.base.family;
    let (scheme, user) = (family.facts().schemes[0], family.facts().superuser);
    let socket = server.socket().display().to_string();
    let place = family.socket_in_address(server.socket()).display().to_string();
    let address = |database: &str| format!("{scheme}{user}@localhost/{database}?socket={place}");
    let (driver, key) = if is_mysql { ("mysql", "socket") } else { ("pgsql", "host") };
    Ok(Host {
        title,
        address: address(OWN_DATABASE),
        peer_address: address(PEER_DATABASE),
        peer_options: vec![
            format!("--db-driver={driver}"),
            format!("--{driver}-{key}={place}"),
            format!("--{driver}-user={user}"),
            format!("--{driver}-db={PEER_DATABASE}"),
        ],
        socket: is_mysql.then(|| (socket, PEER_DATABASE.to_owned())),
        is_mysql,
        target: server.target(Some(PEER_DATABASE), &Manner::default()),
        server: server.into_running(),
        runtime,
    })
}

async fn create_database(endpoint: Endpoint) -> Result<()> {
    let mut session = endpoint.connect().await?;
    session.query(format!("CREATE DATABASE {PEER_DATABASE}").as_bytes()).await?;
    session.close().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Process, process};

    #[test]
    fn cpu_time_is_the_process_and_its_ended_children() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194304 10 0 0 0 100 20 3 4 20 0 31 0 12 0 0";
        assert_eq!(process(stat), Some(Process { parent: 1, ticks: 127 }));
        assert_eq!(process("7 (x) S 1"), None);
    }
}
