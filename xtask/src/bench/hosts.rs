//! Starts servers on which dbdyno and sysbench are compared, and runs both clients. In one
//! comparison both use the same server.
//!
//! The CPUs of this machine are divided between the servers and the clients, and the CPU time and
//! memory of a client's process are measured. dbdyno runs a plan, and its figures are read from its
//! report and its records.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use dbdyno_db::server::{Running, Server, ServerSpec, find_named, list, servers_dir};
use dbdyno_db::{ConnectionSettings, DatabaseAddress, Session};
use dbdyno_record::StepRecord;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::Setting;
use crate::workspace::{self, cargo, output, run as run_command};

/// Texts of the option files: the first is for MySQL's family, the second for PostgreSQL.
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
/// Database for sysbench's tables. dbdyno makes a database of its own.
pub(super) const PEER_DATABASE: &str = "sbtest";
const OWN_DATABASE: &str = "dbdyno";
const START_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Host {
    /// Title for tables, such as `MariaDB 10.11.5`.
    pub(super) title: String,
    /// Address of dbdyno's own database, for a plan.
    pub(super) address: String,
    /// Address of sysbench's database, for a plan that uses sysbench's tables.
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
        let spec = ServerSpec { cpus: halves().0, start_timeout: START_TIMEOUT, ..spec };
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
    /// of dead rows, so without this the second client would be measured on a worse table than the
    /// first.
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

    /// Returns the server's CPU time since its start, in µs. The kernel counts it in clock ticks of
    /// 10 ms. It covers the server's process and its children, running or ended.
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

/// The load that sysbench puts on a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct SysbenchLoad {
    pub(super) tables: u32,
    /// Rows of each table.
    pub(super) rows: u64,
    pub(super) threads: u32,
    pub(super) seconds: u32,
}

/// Returns the line of a page that names sysbench's version.
pub(super) fn sysbench_version() -> Result<String> {
    let output = Command::new("sysbench").arg("--version").output();
    let output = output.context("sysbench cannot be run; install it: apt-get install sysbench")?;
    Ok(format!("peer: {} of Debian", String::from_utf8_lossy(&output.stdout).trim()))
}

/// Returns a process's CPU time in clock ticks from its line of /proc/PID/stat, if the process is
/// `pid` or a child of it. The time is the sum of utime, stime, cutime and cstime, which are fields
/// 14 to 17. Fields 1 and 4 are pid and ppid (proc_pid_stat(5)). The name before the last `)` may
/// hold blanks.
fn ticks_of(stat: &str, pid: u32) -> Option<u64> {
    let (name, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let pid = pid.to_string();
    let is_counted = name.split(' ').next()? == pid || *fields.get(1)? == pid;
    is_counted.then(|| fields.get(11..15)?.iter().map(|field| field.parse::<u64>().ok()).sum())?
}

/// Returns the name in `installed` that begins with `prefix` and has the highest last number.
fn newest_of(installed: &[String], prefix: &str) -> Result<String> {
    let patch = |name: &str| name.rsplit('.').next().and_then(|last| last.parse::<u32>().ok());
    let newest = installed.iter().filter(|name| name.starts_with(prefix)).max_by_key(|name| patch(name));
    match newest {
        Some(name) => Ok(name.clone()),
        None => bail!("no {prefix}* in the servers folder; get one with `cargo xtask servers`"),
    }
}

/// Says where servers and clients run, for the facts on a page.
pub(super) fn servers(titles: &[String]) -> String {
    let (servers, clients) = halves();
    let (servers, clients) = (cpu_list(servers.as_deref()), cpu_list(clients.as_deref()));
    format!("servers: {}, on CPUs {servers}; clients on CPUs {clients}", titles.join(", "))
}

/// Returns the numbers of the CPUs that this process may use. In a container or a cpuset they need
/// not begin with 0.
fn allowed_cpus() -> Vec<u32> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let numbers = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
    let cpus: Vec<u32> = numbers.filter_map(|cpu| u32::try_from(cpu).ok()).collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Returns the CPUs of the server and of the client, half of them each. Both are `None` when there
/// is only one CPU.
pub(super) fn halves() -> (Option<Vec<u32>>, Option<Vec<u32>>) {
    split(&allowed_cpus())
}

fn split(cpus: &[u32]) -> (Option<Vec<u32>>, Option<Vec<u32>>) {
    match cpus.split_at(cpus.len() / 2) {
        ([], _) => (None, None),
        (server, client) => (Some(server.to_vec()), Some(client.to_vec())),
    }
}

/// Writes `2,3` as `taskset` and plans read it. `None` stands for all CPUs.
pub(super) fn cpu_list(cpus: Option<&[u32]>) -> String {
    let all = allowed_cpus();
    cpus.unwrap_or(&all).iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Returns a command that runs `program` on the client's CPUs. A program that would buffer its
/// output writes each line at once, so that the time of the line is known.
pub(super) fn on_client_cpus(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(cpu_list(halves().1.as_deref())).args(["stdbuf", "-oL"]).arg(program);
    command
}

/// A client's process that has succeeded.
pub(super) struct Ended {
    /// User and kernel time of the whole process, in µs.
    pub(super) cpu_us: f64,
    /// Highest resident memory in bytes. It is NaN for a process that ended at once.
    pub(super) peak_bytes: f64,
    /// What the process printed on both outputs, with the time of each line.
    lines: Vec<(Instant, String)>,
}

/// Runs a client to its end, without a limit on open files. A shell lifts the limit and then
/// executes the program in its place.
pub(super) fn ended(client: &Command) -> Result<Ended> {
    let program = |client: &Command| format!("{:?}", client.get_program()).replace('"', "");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n $(ulimit -H -n); exec \"$@\" 2>&1", "sh"]);
    command.arg(client.get_program()).args(client.get_args()).stdin(Stdio::null()).stdout(Stdio::piped());
    let before = children_cpu_us()?;
    let mut child = command.spawn().context("sh cannot be run")?;
    let out = BufReader::new(child.stdout.take().context("its output is a pipe")?);
    let reader = thread::spawn(move || {
        out.lines().map_while(Result::ok).map(|line| (Instant::now(), line)).collect::<Vec<_>>()
    });
    let mut peak_bytes = f64::NAN;
    let status = loop {
        // The kernel keeps the highest value itself, so only a higher value after the last reading
        // is missed. A process that has ended has no memory and no `VmHWM`, so the last value is
        // kept.
        peak_bytes = resident_peak(child.id()).unwrap_or(peak_bytes);
        match child.try_wait()? {
            Some(status) => break status,
            None => thread::sleep(Duration::from_millis(50)),
        }
    };
    let cpu_us = (children_cpu_us()? - before) as f64;
    let lines = reader.join().ok().context("the reader of its output panicked")?;
    let ended = Ended { cpu_us, peak_bytes, lines };
    if !status.success() {
        bail!("{} ended with {status}: {}", program(client), ended.text());
    }
    Ok(ended)
}

/// Returns the CPU time in µs of all children that have been waited for.
fn children_cpu_us() -> Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds())
}

/// Returns `VmHWM` of process `pid`, in bytes.
fn resident_peak(pid: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? * 1024.0)
}

impl Ended {
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Returns the seconds from the first line that starts with `begin` to the first line that
    /// starts with `end`.
    pub(super) fn seconds_between(&self, begin: &str, end: &str) -> Option<f64> {
        let at = |text: &str| self.lines.iter().find(|(_, line)| line.starts_with(text)).map(|(at, _)| *at);
        Some(at(end)?.checked_duration_since(at(begin)?)?.as_secs_f64())
    }

    /// Returns the number of transactions and their rate, as sysbench or pgbench reports them.
    pub(super) fn transactions(&self) -> Result<(f64, f64)> {
        let text = self.text();
        transactions(&text).with_context(|| format!("no transactions in: {text}"))
    }
}

/// Reads `    transactions:    12345  (2468.10 per sec.)`, or pgbench's two lines.
fn transactions(text: &str) -> Option<(f64, f64)> {
    let after = |head: &str| text.lines().find_map(|line| line.trim().strip_prefix(head));
    let first = |text: &str| text.split(['/', ' ']).next()?.parse().ok();
    if let Some((count, rate)) = after("transactions:").and_then(|rest| rest.split_once('(')) {
        return Some((count.trim().parse().ok()?, first(rate)?));
    }
    Some((first(after("number of transactions actually processed: ")?)?, first(after("tps = ")?)?))
}

/// A run that has ended.
pub(super) struct Ran {
    report: Value,
    directory: PathBuf,
    /// Highest resident memory of the process, in bytes.
    pub(super) peak_bytes: f64,
}

/// Builds an example program of package `dbdyno-db` in release mode, and returns its path.
pub(super) fn built_example(name: &str) -> Result<PathBuf> {
    let package = ["--package", "dbdyno-db"];
    run_command(cargo(&["build", "--locked", "--release", "--example", name]).args(package))?;
    Ok(workspace::target().join("release/examples").join(name))
}

/// Makes a plan of workload `oltp` on the server at `address`, with its client on the client's
/// CPUs. `host` and `oltp` are lines for the sections `[host]` and `[workload.oltp]`.
pub(super) fn plan_text(address: &str, host: &str, oltp: &str) -> String {
    let cpus = halves().1;
    let cpus = cpus.map_or_else(String::new, |cpus| format!("client_cpus = \"{}\"\n", cpu_list(Some(&cpus))));
    format!(
        "name = \"bench\"\n\n[host]\n{cpus}{host}\n\n[[variant]]\nname = \"server\"\naddress = \"{address}\"\n\n\
         [workload.oltp]\n{oltp}\n"
    )
}

/// Runs a plan in a folder of its own.
pub(super) fn run_plan(setting: &Setting, plan: &str) -> Result<Ran> {
    let folder = tempfile::Builder::new().prefix("run-").tempdir_in(&setting.folder)?.keep();
    let (file, runs) = (folder.join("plan.toml"), folder.join("runs"));
    std::fs::write(&file, plan)?;
    let ended = ended(Command::new(&setting.dbdyno).arg("run").arg(&file).arg("--out").arg(&runs))?;
    let found = std::fs::read_dir(&runs)?.flatten().map(|entry| entry.path()).next();
    let directory = found.with_context(|| format!("{} holds no run", runs.display()))?;
    let report =
        output(Command::new(&setting.dbdyno).arg("report").arg(&directory).args(["--format", "json"]))?;
    let report = serde_json::from_str(&report).context("the report is not JSON")?;
    Ok(Ran { report, directory, peak_bytes: ended.peak_bytes })
}

impl Ran {
    /// Returns the step of this name in the report. It must be valid.
    pub(super) fn step(&self, name: &str) -> Result<&Value> {
        let step = self.any_step(name)?;
        match step["state"] == "valid" {
            true => Ok(step),
            false => bail!("step {name} is not valid: {}", why(step)),
        }
    }

    /// Returns a step as [`Ran::step`] does, valid or not. This is for a bench that judges the
    /// figures itself.
    pub(super) fn any_step(&self, name: &str) -> Result<&Value> {
        let rows = self.report["observations"].as_array().context("the report has no observations")?;
        let found = rows.iter().find(|one| one["step"] == name && one["block"].is_number());
        found.with_context(|| format!("the report has no step {name}"))
    }

    /// Returns the record of a step in the only cell.
    pub(super) fn record(&self, step: &str) -> Result<StepRecord> {
        let run = dbdyno_record::Run::open(&self.directory)?;
        let cell = run.cells.into_iter().next_back().context("the run has no cell")?;
        let found = cell.steps.into_iter().find(|one| one.name == step);
        found.with_context(|| format!("the run has no step {step}"))
    }
}

/// Says why a step is not valid.
pub(super) fn why(step: &Value) -> String {
    let parts = ["state", "reasons", "message"].map(|name| &step[name]).into_iter();
    parts.filter(|part| !part.is_null()).map(Value::to_string).collect::<Vec<_>>().join(" ")
}

/// Returns the number at `pointer` (such as `/metrics/client_cpu_us`) in a report.
pub(super) fn number(report: &Value, pointer: &str) -> Result<f64> {
    let value = report.pointer(pointer).and_then(Value::as_f64);
    value.with_context(|| format!("the report has no {pointer}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn server_and_client_share_no_cpu_where_there_are_two() {
        assert_eq!(split(&[4, 5, 6, 7, 9]), (Some(vec![4, 5]), Some(vec![6, 7, 9])));
        assert_eq!(split(&[3]), (None, None));
        assert_eq!(cpu_list(Some(&[2, 3])), "2,3");
    }

    #[test]
    fn transactions_and_their_rate_are_read_from_both_programs_reports() {
        let text = "SQL statistics:\n    transactions:                        98765  (9876.43 per sec.)\n    \
                    queries:                             98765  (9876.43 per sec.)\n";
        assert_eq!(transactions(text), Some((98_765.0, 9876.43)));
        let text = "number of transactions actually processed: 1234/1234\n\
                    tps = 617.25 (without initial connection time)\n";
        assert_eq!(transactions(text), Some((1234.0, 617.25)));
        assert_eq!(transactions("FATAL: no"), None);
    }

    #[test]
    fn an_ended_client_gives_its_lines_with_their_times_and_a_failed_one_is_an_error() {
        let mut line = Command::new("sh");
        let done = ended(line.args(["-c", "echo begun; echo ready >&2"])).unwrap();
        assert_eq!(done.text(), "begun\nready");
        assert!(done.seconds_between("begun", "ready").is_some_and(|seconds| seconds >= 0.0));
        assert_eq!(done.seconds_between("ready", "done"), None);
        assert!(resident_peak(std::process::id()).is_some_and(|bytes| bytes > 100_000.0));
        let error = ended(Command::new("sh").args(["-c", "echo why; exit 3"])).err().unwrap();
        assert_eq!(error.to_string(), "sh ended with exit status: 3: why");
    }

    #[test]
    fn a_step_that_is_not_valid_or_a_figure_that_is_missing_is_an_error() {
        let row = json!({ "step": "a", "block": 1, "state": "failed", "metrics": { "rate": 7.5 } });
        let report = json!({ "observations": [{ "step": "a", "metrics": { "rate": 9 } }, row] });
        let ran = Ran { report, directory: PathBuf::new(), peak_bytes: 0.0 };
        let error = ran.step("a").unwrap_err().to_string();
        assert_eq!(error, r#"step a is not valid: "failed""#);
        assert_eq!(ran.step("b").unwrap_err().to_string(), "the report has no step b");
        assert_eq!(number(ran.any_step("a").unwrap(), "/metrics/rate").unwrap(), 7.5);
        let error = number(ran.any_step("a").unwrap(), "/lag").unwrap_err().to_string();
        assert_eq!(error, "the report has no /lag");
    }
}
