//! Starts the servers on which dbdyno and sysbench are compared. Both use the same server.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use dbdyno_db::server::{Running, Server, ServerSpec, find_named, list, servers_dir};
use dbdyno_db::{ConnectionSettings, DatabaseAddress, Session};
use tokio::runtime::{Builder, Runtime};

use super::Setting;
use super::machine::{self, Ended, ended, on_client_cpus};

/// Option files of MySQL's family and of PostgreSQL.
pub(super) type Settings = [&'static str; 2];

/// Settings that keep everything in memory, and let no commit wait for the disk, so that the client
/// becomes the limit.
pub(super) const FOR_CLIENTS: Settings = [
    "[mysqld]
innodb_buffer_pool_size = 256M
innodb_flush_log_at_trx_commit = 0
max_connections = 5000
back_log = 5000
skip_log_bin
",
    "shared_buffers = 256MB
synchronous_commit = off
max_connections = 200
",
];
/// Database of sysbench's tables. dbdyno makes its own.
pub(super) const PEER_DATABASE: &str = "sbtest";
const OWN_DATABASE: &str = "dbdyno";
const START_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Host {
    /// Title for tables, as `MariaDB 10.11.5`.
    pub(super) title: String,
    /// Address of dbdyno's own database for a plan. The host has another one for sysbench.
    pub(super) address: String,
    pub(super) peer_address: String,
    /// Options that tell sysbench where to connect.
    options: Vec<String>,
    /// The socket as the server's own clients name it: a path, or for PostgreSQL the socket's
    /// folder.
    pub(super) socket: String,
    pub(super) is_mysql: bool,
    /// How to reach sysbench's database.
    sysbench_address: DatabaseAddress,
    /// The server, which stops when this value is dropped.
    server: Running,
    /// Runtime of the thread that started the server. The kernel stops a server when that thread
    /// ends.
    runtime: Runtime,
}

impl Host {
    /// Starts the newest server whose name begins with `prefix`, on the server's half of the CPUs.
    pub(super) fn start(setting: &Setting, prefix: &str, settings: Settings) -> Result<Self> {
        let base = find_named(&newest_of(&list(&servers_dir()), prefix)?)?;
        let title = base.title.clone();
        let folder = setting.folder.join(prefix);
        std::fs::create_dir_all(&folder)?;
        let is_mysql = base.family.name() == "mysql";
        let option_file = folder.join(format!("own.{}", base.family.facts().option_file_ending));
        std::fs::write(&option_file, settings[usize::from(!is_mysql)])?;
        let spec = ServerSpec::new(&base, Some(&option_file), &folder, folder.join("template"))?;
        let spec = ServerSpec { cpus: machine::halves().0, start_timeout: START_TIMEOUT, ..spec };
        let server = Server::start(&spec)?;
        let family = server.base.family;
        let (scheme, user) = (family.facts().schemes[0], family.facts().superuser);
        let socket = family.socket_in_address(server.socket()).display().to_string();
        let address = |database: &str| format!("{scheme}{user}@localhost/{database}?socket={socket}");
        let (driver, key) = if is_mysql { ("mysql", "socket") } else { ("pgsql", "host") };
        let option = |key: &str, value: &str| format!("--{driver}-{key}={value}");
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let create = format!("CREATE DATABASE {PEER_DATABASE}");
        runtime.block_on(send(&server.address(None, &ConnectionSettings::default()), &[&create]))?;
        Ok(Self {
            title,
            address: address(OWN_DATABASE),
            peer_address: address(PEER_DATABASE),
            options: vec![
                format!("--db-driver={driver}"),
                option(key, &socket),
                option("user", user),
                option("db", PEER_DATABASE),
            ],
            is_mysql,
            sysbench_address: server.address(Some(PEER_DATABASE), &ConnectionSettings::default()),
            server: server.into_running(),
            socket,
            runtime,
        })
    }

    /// Sends statements to sysbench's database, one after the other.
    fn query(&self, statements: &[&str]) -> Result<()> {
        self.runtime.block_on(send(&self.sysbench_address, statements))
    }

    /// Returns the words of a command line for sysbench and for `dbdyno sysbench`.
    pub(super) fn words(&self, test: &str, load: &SysbenchLoad, more: &[&str], command: &str) -> Vec<String> {
        let SysbenchLoad { tables, rows, threads, seconds } = load;
        let mut words = vec![test.to_owned()];
        words.extend(self.options.iter().cloned());
        // By default sysbench 1.0 draws keys from another distribution than dbdyno.
        words.extend(["--rand-type=uniform", &format!("--tables={tables}")].map(str::to_owned));
        words.extend([format!("--table-size={rows}"), format!("--threads={threads}")]);
        words.push(format!("--time={seconds}"));
        words.extend(more.iter().chain([&command]).map(|word| (*word).to_owned()));
        words
    }

    pub(super) fn sysbench(
        &self,
        test: &str,
        load: &SysbenchLoad,
        more: &[&str],
        command: &str,
    ) -> Result<Ended> {
        ended(on_client_cpus("sysbench").args(self.words(test, load, more, command)))
    }

    /// Makes sysbench's tables again and has PostgreSQL vacuum them. Pages of an old table are full
    /// of dead rows, and the first client to measure leaves an older table to the next.
    pub(super) fn prepare(&self, load: &SysbenchLoad) -> Result<()> {
        for command in ["cleanup", "prepare"] {
            self.sysbench("oltp_read_write", &SysbenchLoad { threads: 1, ..*load }, &[], command)?;
        }
        if self.is_mysql { Ok(()) } else { self.query(&["VACUUM ANALYZE sbtest1", "CHECKPOINT"]) }
    }

    /// Drops the tables that dbdyno has made, with their database.
    pub(super) fn drop_own(&self) -> Result<()> {
        self.query(&[&format!("DROP DATABASE {OWN_DATABASE}")])
    }

    /// Returns the server's CPU time since its start in µs, in the kernel's clock ticks (10 ms). It
    /// covers the server's process and its children, running or ended.
    pub(super) fn cpu_us(&self) -> Result<f64> {
        let pid = self.server.pid();
        let all = std::fs::read_dir("/proc")?.flatten();
        let all = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        let ticks = all.filter_map(|stat| ticks_of(&stat, pid)).sum::<u64>();
        Ok((ticks * 10_000) as f64)
    }
}

async fn send(address: &DatabaseAddress, statements: &[&str]) -> Result<()> {
    let mut session = address.clone().database_server("innodb", false).connect().await?;
    for statement in statements {
        session.query(statement.as_bytes()).await.with_context(|| (*statement).to_owned())?;
    }
    session.close().await;
    Ok(())
}

/// The load that sysbench puts on.
#[derive(Debug, Clone, Copy)]
pub(super) struct SysbenchLoad {
    pub(super) tables: u32,
    /// Rows of each table.
    pub(super) rows: u64,
    pub(super) threads: u32,
    pub(super) seconds: u32,
}

/// Returns the first line of `sysbench --version`.
pub(super) fn sysbench_version() -> Result<String> {
    let output = Command::new("sysbench").arg("--version").output();
    let output = output.context("sysbench cannot be run; install it: apt-get install sysbench")?;
    Ok(format!("peer: {} of Debian", String::from_utf8_lossy(&output.stdout).trim()))
}

/// Returns a process's ticks from its line of /proc/PID/stat, if it is `pid` or a child of that.
/// They are the sum of utime, stime, cutime and cstime, fields 14 to 17, with pid and ppid in
/// fields 1 and 4 (proc_pid_stat(5)). The name before the last `)` may hold blanks.
fn ticks_of(stat: &str, pid: u32) -> Option<u64> {
    let (name, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let pid = pid.to_string();
    let is_of_it = name.split(' ').next()? == pid || *fields.get(1)? == pid;
    is_of_it.then(|| fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum())?
}

/// Returns the entry of `there` that begins with `prefix` and has the highest last number.
fn newest_of(there: &[String], prefix: &str) -> Result<String> {
    let patch = |name: &str| name.rsplit('.').next().and_then(|last| last.parse::<u32>().ok());
    let newest = there.iter().filter(|name| name.starts_with(prefix)).max_by_key(|name| patch(name));
    match newest {
        Some(name) => Ok(name.clone()),
        None => bail!("no {prefix}* in the servers folder; get one with `cargo xtask servers`"),
    }
}

/// Says where servers and clients run, for the facts of a page.
pub(super) fn servers(titles: &[String]) -> String {
    let (servers, clients) = machine::halves();
    let (servers, clients) = (machine::list(servers.as_deref()), machine::list(clients.as_deref()));
    format!("servers: {}, on CPUs {servers}; clients on CPUs {clients}", titles.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_of_the_process_and_of_its_children() {
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194304 10 0 0 0 100 20 3 4 20 0 31 0 12 0 0";
        assert_eq!([7, 1, 8].map(|pid| ticks_of(stat, pid)), [Some(127), Some(127), None]);
        assert_eq!(ticks_of("7 (x) S 1", 7), None);
    }

    #[test]
    fn the_newest_server_of_the_series_is_taken_and_none_is_an_error() {
        let names = ["mariadb-10.11.5", "mariadb-10.11.19", "mariadb-10.11-debian", "mysql-8.0.31"];
        let names = names.map(str::to_owned);
        assert_eq!(newest_of(&names, "mariadb-10.11").unwrap(), "mariadb-10.11.19");
        assert_eq!(newest_of(&names[2..], "mariadb-10.11").unwrap(), "mariadb-10.11-debian");
        let error = newest_of(&names[3..], "mariadb-10.11").unwrap_err().to_string();
        assert!(error.contains("cargo xtask servers"), "{error}");
    }
}
