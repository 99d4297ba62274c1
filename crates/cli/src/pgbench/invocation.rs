//! Reads pgbench's command line (short and long options in any order, and a database), turns it
//! into options of the workload, and finds its database.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_db::mysql::Options as Login;
use dbdyno_db::{DatabaseAddress, DatabaseServer, postgres};
use dbdyno_loadgen::MOST_RETRIES;
use dbdyno_model::{Load, PlanDuration};
use dbdyno_workloads::oltp::options::OltpArrivals;
use dbdyno_workloads::pgbench::builtin;
use dbdyno_workloads::pgbench::options::{PartitionMethod, PgbenchOptions as Options, QueryMode, Vacuum};
use serde_json::{Value, json};

use crate::load::Opening;
use crate::pgbench::log::LogOptions;

#[derive(Debug)]
pub(super) struct PgbenchInvocation {
    pub(super) options: Options,
    pub(super) database_server: DatabaseServer,
    pub(super) opening: Opening,
    pub(super) initializes: bool,
    pub(super) clients: u32,
    pub(super) jobs: u32,
    pub(super) progress: u64,
    pub(super) per_command: bool,
    pub(super) scale: Option<u32>,
    pub(super) seed: u64,
    pub(super) latency_limit: Option<Duration>,
    /// Highest number of tries per transaction. 0 means no limit except time.
    pub(super) tries: u32,
    pub(super) failures_detailed: bool,
    pub(super) verbose_errors: bool,
    pub(super) progress_timestamp: bool,
    /// Whether an aborted run ends without a report.
    pub(super) exit_on_abort: bool,
    pub(super) log: Option<LogOptions>,
}

impl PgbenchInvocation {
    pub(super) fn of(line: &PgbenchCommandLine) -> Result<Self, String> {
        let clients = line.number("client")?.unwrap_or(1_u32);
        let mut options = Options {
            files: files(line)?,
            connections: vec![clients],
            use_existing: false,
            connect: line.has("connect"),
            vacuum: match (line.has("no-vacuum"), line.has("vacuum-all")) {
                (true, _) => Vacuum::None,
                (false, true) => Vacuum::All,
                (false, false) => Vacuum::Small,
            },
            protocol: line.text("protocol").map_or(Ok(QueryMode::Simple), |word| {
                let wrong = |_| format!("--protocol is {word}, but must be simple, extended or prepared");
                serde_json::from_value(json!(word)).map_err(wrong)
            })?,
            fillfactor: line.number("fillfactor")?.unwrap_or(100),
            scale: line.number("scale")?.unwrap_or(1),
            partitions: line.number("partitions")?.unwrap_or(0),
            partition_method: partition_method(line)?,
            unlogged_tables: line.has("unlogged-tables"),
            ..Options::default()
        };
        let initializes = line.has("initialize") || line.has("init-steps");
        options.init_steps = if initializes { init_steps(line) } else { String::new() };
        match (line.number("transactions")?, line.number("time")?) {
            (Some(_), Some(_)) => return Err("-t and -T exclude each other".to_owned()),
            (None, Some(seconds)) => options.time = PlanDuration(Duration::from_secs(seconds)),
            (each, None) => options.transactions = Some(each.unwrap_or(10)),
        }
        let latency_limit = line.number::<f64>("latency-limit")?.map(milliseconds).transpose()?;
        if let Some(rate) = line.number::<f64>("rate")? {
            if !(1.0..=1e8).contains(&rate) {
                return Err(format!("--rate is {rate}, but must be 1 to 100000000"));
            }
            (options.arrivals, options.rates) = (OltpArrivals::Poisson, vec![rate.round() as u32]);
            options.latency_limit = latency_limit.map(PlanDuration);
        }
        let tries = tries(line)?;
        options.max_tries = if tries == 0 { MOST_RETRIES } else { tries.min(MOST_RETRIES) };
        for (_, definition) in line.repeated.iter().filter(|(name, _)| *name == "define") {
            let (name, value) = definition.split_once('=').ok_or("-D takes NAME=VALUE")?;
            options.define.insert(name.to_owned(), Value::String(value.to_owned()));
        }
        let opening = opening()?;
        Ok(Self {
            database_server: opening.database_server(DatabaseAddress::Postgres(login(line)?), ""),
            opening,
            initializes,
            clients,
            jobs: line.number("jobs")?.unwrap_or(1).clamp(1, clients.max(1)),
            progress: line.number("progress")?.unwrap_or(0),
            per_command: line.has("report-per-command") || line.has("report-latencies"),
            scale: line.number("scale")?,
            seed: seed(line)?,
            latency_limit,
            tries,
            failures_detailed: line.has("failures-detailed"),
            verbose_errors: line.has("verbose-errors"),
            progress_timestamp: line.has("progress-timestamp"),
            exit_on_abort: line.has("exit-on-abort"),
            log: log(line)?,
            options,
        })
    }
}

/// Sets the login timeout to the seconds in `PGCONNECT_TIMEOUT`. Without it libpq waits for ever,
/// but dbdyno takes a plan's default.
fn opening() -> Result<Opening, String> {
    const VARIABLE: &str = "PGCONNECT_TIMEOUT";
    let mut load = Load::default();
    if let Some(text) = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty()) {
        load.login_timeout = match text.trim().parse() {
            Ok(seconds @ 1..) => PlanDuration::from_secs(seconds),
            _ => {
                return Err(format!("{VARIABLE} is {text}, but must be a whole number of seconds from 1 on"));
            }
        };
    }
    Ok(Opening { load, login_key: VARIABLE })
}

fn tries(line: &PgbenchCommandLine) -> Result<u32, String> {
    let tries = line.number("max-tries")?.unwrap_or(1);
    if tries == 0 && line.text("latency-limit").or(line.text("time")).is_none() {
        return Err("an unlimited number of transaction tries needs --latency-limit or -T".to_owned());
    }
    Ok(tries)
}

fn partition_method(line: &PgbenchCommandLine) -> Result<PartitionMethod, String> {
    let Some(word) = line.text("partition-method") else { return Ok(PartitionMethod::Range) };
    if line.number("partitions")?.unwrap_or(0_u32) == 0 {
        return Err("--partition-method requires greater than zero --partitions".to_owned());
    }
    let method = serde_json::from_value(json!(word));
    method.map_err(|_| format!("--partition-method is {word}, but must be range or hash"))
}

/// Reads the options of the log. They are refused without `-l`.
fn log(line: &PgbenchCommandLine) -> Result<Option<LogOptions>, String> {
    let options = ["aggregate-interval", "log-prefix", "sampling-rate"];
    let alone = options.into_iter().find(|name| !line.has("log") && line.has(name));
    if let Some(name) = alone {
        return Err(format!("--{name} is for a log of transactions: give -l too"));
    }
    let sampling: Option<f64> = line.number("sampling-rate")?;
    let aggregate_s: Option<u64> = line.number("aggregate-interval")?;
    if let Some(share) = sampling.filter(|share| !(*share > 0.0 && *share <= 1.0)) {
        return Err(format!("--sampling-rate is {share}, but must be above 0 and at most 1"));
    }
    if sampling.is_some() && aggregate_s.is_some() {
        return Err("--sampling-rate and --aggregate-interval exclude each other".to_owned());
    }
    let time_s = line.number::<u64>("time")?;
    match aggregate_s {
        Some(0) => return Err("--aggregate-interval is 0, but must be at least 1".to_owned()),
        Some(every) if time_s.is_some_and(|time| time % every != 0) => {
            let time = time_s.unwrap_or(0);
            return Err(format!("duration ({time}) must be a multiple of aggregation interval ({every})"));
        }
        _ => {}
    }
    let prefix = line.text("log-prefix").unwrap_or("pgbench_log").to_owned();
    Ok(line.has("log").then_some(LogOptions { prefix, aggregate_s, sampling }))
}

/// Returns a new seed for each run unless one is given, as pgbench does.
fn seed(line: &PgbenchCommandLine) -> Result<u64, String> {
    let variable = std::env::var("PGBENCH_RANDOM_SEED").ok();
    match line.text("random-seed").or(variable.as_deref()) {
        None | Some("time" | "rand") => Ok(crate::load::time_seed()),
        Some(text) => text.parse().map_err(|_| {
            format!("--random-seed is {text}, but must be a whole number, \"time\" or \"rand\"")
        }),
    }
}

fn milliseconds(limit: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(limit / 1e3)
        .map_err(|_| format!("--latency-limit is {limit}, but must be above 0"))
}

fn init_steps(line: &PgbenchCommandLine) -> String {
    let mut steps = line.text("init-steps").unwrap_or("dtgvp").replace(' ', "");
    if line.has("no-vacuum") {
        steps = steps.replace('v', "");
    }
    if line.has("foreign-keys") && !steps.contains('f') {
        steps.push('f');
    }
    steps
}

/// Returns the scripts in their order.
fn files(line: &PgbenchCommandLine) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    for (name, value) in &line.repeated {
        match *name {
            "file" => files.push(value.clone()),
            "builtin" => {
                let (name, weight) = value
                    .split_once('@')
                    .map_or((value.as_str(), None), |(name, weight)| (name, Some(weight)));
                let own = builtin(name)?.name;
                files.push(weight.map_or_else(|| own.to_owned(), |weight| format!("{own}@{weight}")));
            }
            _ => {}
        }
    }
    if files.is_empty() {
        files.push("tpcb-like".to_owned());
    }
    Ok(files)
}

/// Returns the address and the user, from the options and libpq's variables.
fn login(line: &PgbenchCommandLine) -> Result<Login, String> {
    const SOCKETS: &str = "/var/run/postgresql";
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let text = |name: &str, of: &str| line.text(name).map(str::to_owned).or_else(|| variable(of));
    let port = text("port", "PGPORT").unwrap_or_else(|| "5432".to_owned());
    let port: u16 = port.parse().map_err(|_| format!("--port is {port}, but must be a port"))?;
    let user = text("username", "PGUSER").or_else(|| variable("USER"));
    let user = user.ok_or("no user: give -U, or set PGUSER or USER")?;
    let named = line.text("dbname").map(str::to_owned);
    let database =
        line.database.clone().or(named).or_else(|| variable("PGDATABASE")).unwrap_or_else(|| user.clone());
    let host = text("host", "PGHOST").unwrap_or_else(|| SOCKETS.to_owned());
    let login = if host.starts_with('/') {
        let socket = postgres::socket_path(std::path::Path::new(&host), port);
        Login::socket(socket, &user)
    } else {
        Login::tcp(&host, port, &user)
    };
    let login = login.with_database(&database);
    Ok(match variable("PGPASSWORD") {
        Some(password) => login.with_password(dbdyno_db::Secret::new(password)),
        None => login,
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Flag,
    Value,
    /// The option takes a value and may come several times: it names a script or sets a variable.
    Script,
    /// The option stands for one of pgbench's own scripts. Its position among the scripts counts.
    Builtin(&'static str),
    /// The option has no effect.
    Ignored,
    /// The option would make other tables, so it is refused.
    Refused,
}

const OPTIONS: [(char, &str, Use); 47] = [
    ('i', "initialize", Use::Flag),
    ('I', "init-steps", Use::Value),
    ('F', "fillfactor", Use::Value),
    ('n', "no-vacuum", Use::Flag),
    ('q', "quiet", Use::Ignored),
    ('s', "scale", Use::Value),
    (' ', "foreign-keys", Use::Flag),
    (' ', "index-tablespace", Use::Refused),
    (' ', "partition-method", Use::Value),
    (' ', "partitions", Use::Value),
    (' ', "tablespace", Use::Refused),
    (' ', "unlogged-tables", Use::Flag),
    ('b', "builtin", Use::Script),
    ('f', "file", Use::Script),
    ('N', "skip-some-updates", Use::Builtin("simple-update")),
    ('S', "select-only", Use::Builtin("select-only")),
    ('c', "client", Use::Value),
    ('C', "connect", Use::Flag),
    ('D', "define", Use::Script),
    ('j', "jobs", Use::Value),
    ('l', "log", Use::Flag),
    ('L', "latency-limit", Use::Value),
    ('M', "protocol", Use::Value),
    ('P', "progress", Use::Value),
    ('r', "report-per-command", Use::Flag),
    (' ', "report-latencies", Use::Flag),
    ('R', "rate", Use::Value),
    ('t', "transactions", Use::Value),
    ('T', "time", Use::Value),
    ('v', "vacuum-all", Use::Flag),
    (' ', "aggregate-interval", Use::Value),
    (' ', "exit-on-abort", Use::Flag),
    (' ', "failures-detailed", Use::Flag),
    (' ', "log-prefix", Use::Value),
    (' ', "max-tries", Use::Value),
    (' ', "progress-timestamp", Use::Flag),
    (' ', "random-seed", Use::Value),
    (' ', "sampling-rate", Use::Value),
    (' ', "show-script", Use::Value),
    (' ', "verbose-errors", Use::Flag),
    ('d', "debug", Use::Ignored),
    (' ', "dbname", Use::Value),
    ('h', "host", Use::Value),
    ('p', "port", Use::Value),
    ('U', "username", Use::Value),
    ('V', "version", Use::Flag),
    ('?', "help", Use::Flag),
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PgbenchCommandLine {
    options: BTreeMap<&'static str, String>,
    /// Options that may come several times: name and value, in their order.
    pub(super) repeated: Vec<(&'static str, String)>,
    pub(super) database: Option<String>,
    pub(super) ignored: Vec<&'static str>,
}

pub(super) fn read_words(arguments: &[String]) -> Result<PgbenchCommandLine, String> {
    let mut read = PgbenchCommandLine::default();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let found = OPTIONS.iter().find(|(_, own, _)| *own == name);
            let (_, name, of) = found.ok_or_else(|| format!("--{name} is no option of pgbench"))?;
            read.take(name, *of, || value.or_else(|| words.next()))?;
        } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
            read.cluster(short, &mut words)?;
        } else if read.database.replace(word.to_owned()).is_some() {
            return Err(format!("{word} is one word too many: [OPTION]... [DBNAME]"));
        }
    }
    Ok(read)
}

impl PgbenchCommandLine {
    /// Reads the letters after one `-`. When a letter takes a value, the rest of the word is its
    /// value.
    fn cluster<'a>(
        &mut self,
        short: &'a str,
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        let mut rest = short;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let found = OPTIONS.iter().find(|(own, ..)| *own == letter && letter != ' ');
            let (_, name, of) = found.ok_or_else(|| format!("-{letter} is no option of pgbench"))?;
            let takes = matches!(of, Use::Value | Use::Script);
            let own = (takes && !rest.is_empty()).then_some(rest);
            self.take(name, *of, || own.or_else(|| words.next()))?;
            if takes {
                return Ok(());
            }
        }
        Ok(())
    }

    fn take<'a>(
        &mut self,
        name: &'static str,
        of: Use,
        value: impl FnOnce() -> Option<&'a str>,
    ) -> Result<(), String> {
        let missing = || format!("--{name} takes a value");
        match of {
            Use::Flag => drop(self.options.insert(name, String::new())),
            Use::Value => drop(self.options.insert(name, value().ok_or_else(missing)?.to_owned())),
            Use::Script => self.repeated.push((name, value().ok_or_else(missing)?.to_owned())),
            Use::Builtin(script) => self.repeated.push(("builtin", script.to_owned())),
            Use::Ignored => self.ignored.push(name),
            Use::Refused => {
                return Err(format!("--{name} is not there: dbdyno makes no such tables; leave it out"));
            }
        }
        Ok(())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("--{name} is {text}, but must be a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<PgbenchCommandLine, String> {
        read_words(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn short_and_long_options_are_read_as_pgbench_reads_them() {
        let line =
            of("-nr -c16 --jobs=2 -T 60 -f a.sql@9 -Dx=1 -S --file b.sql -q --max-tries 3 bench").unwrap();
        assert!(line.has("no-vacuum") && line.has("report-per-command") && !line.has("connect"));
        assert_eq!((line.number("client"), line.number("time")), (Ok(Some(16_u32)), Ok(Some(60_u64))));
        assert_eq!(line.number("max-tries"), Ok(Some(3_u32)));
        let repeated: Vec<(&str, &str)> =
            line.repeated.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(
            repeated,
            [("file", "a.sql@9"), ("define", "x=1"), ("builtin", "select-only"), ("file", "b.sql")]
        );
        assert_eq!((line.database.as_deref(), line.ignored), (Some("bench"), vec!["quiet"]));
    }

    #[test]
    fn the_long_form_of_every_option_equals_its_letter() {
        for (letter, name, used) in OPTIONS.into_iter().filter(|(letter, ..)| *letter != ' ') {
            let value = if matches!(used, Use::Value | Use::Script) { " tpcb-like" } else { "" };
            let short = of(&format!("-{letter}{value}"));
            assert!(short.is_ok(), "-{letter}: {short:?}");
            assert_eq!(short, of(&format!("--{name}{value}")), "-{letter} --{name}");
            assert_eq!(short, of(&format!("--{name}{}", value.replace(' ', "="))), "-{letter} --{name}=");
        }
        let read = of("--builtin=select-only").unwrap();
        assert_eq!(read.repeated, [("builtin", "select-only".to_owned())]);
    }

    #[test]
    fn wrong_words_are_named_in_the_error() {
        assert_eq!(of("-Z").unwrap_err(), "-Z is no option of pgbench");
        assert_eq!(of("--nix=1").unwrap_err(), "--nix is no option of pgbench");
        assert_eq!(of("-c").unwrap_err(), "--client takes a value");
        assert_eq!(of("a b").unwrap_err(), "b is one word too many: [OPTION]... [DBNAME]");
        assert!(of("--tablespace=x").unwrap_err().contains("--tablespace is not there"));
        assert_eq!(
            of("-c x").unwrap().number::<u32>("client").unwrap_err(),
            "--client is x, but must be a number"
        );
    }
}
