//! Turns pgbench's command line into options of the workload, and finds its database.

use std::time::Duration;

use dbdyno_db::mysql::Options as Login;
use dbdyno_db::{DatabaseAddress, DatabaseServer, postgres};
use dbdyno_loadgen::MOST_RETRIES;
use dbdyno_model::{Load, PlanDuration};
use dbdyno_workloads::oltp::options::OltpArrivals;
use dbdyno_workloads::pgbench::builtin;
use dbdyno_workloads::pgbench::options::{PartitionMethod, PgbenchOptions as Options, QueryMode, Vacuum};
use serde_json::{Value, json};

use super::command_line::CommandLine;
use super::log::LogOptions;
use crate::ad_hoc::Opening;

#[derive(Debug)]
pub(super) struct Invocation {
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
    /// How often a transaction is tried. 0 means as often as there is time for.
    pub(super) tries: u32,
    pub(super) failures_detailed: bool,
    pub(super) verbose_errors: bool,
    pub(super) progress_timestamp: bool,
    /// Whether an aborted run ends without a report.
    pub(super) exit_on_abort: bool,
    pub(super) log: Option<LogOptions>,
}

impl Invocation {
    pub(super) fn of(line: &CommandLine) -> Result<Self, String> {
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

/// Sets the login timeout. libpq waits for ever unless PGCONNECT_TIMEOUT says for how many seconds.
/// dbdyno takes a plan's default instead.
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

fn tries(line: &CommandLine) -> Result<u32, String> {
    let tries = line.number("max-tries")?.unwrap_or(1);
    if tries == 0 && line.text("latency-limit").or(line.text("time")).is_none() {
        return Err("an unlimited number of transaction tries needs --latency-limit or -T".to_owned());
    }
    Ok(tries)
}

fn partition_method(line: &CommandLine) -> Result<PartitionMethod, String> {
    let Some(word) = line.text("partition-method") else { return Ok(PartitionMethod::Range) };
    if line.number("partitions")?.unwrap_or(0_u32) == 0 {
        return Err("--partition-method requires greater than zero --partitions".to_owned());
    }
    let method = serde_json::from_value(json!(word));
    method.map_err(|_| format!("--partition-method is {word}, but must be range or hash"))
}

/// Reads what `-l` asks for. The other options of the log need it.
fn log(line: &CommandLine) -> Result<Option<LogOptions>, String> {
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
fn seed(line: &CommandLine) -> Result<u64, String> {
    let variable = std::env::var("PGBENCH_RANDOM_SEED").ok();
    match line.text("random-seed").or(variable.as_deref()) {
        None | Some("time" | "rand") => Ok(crate::ad_hoc::time_seed()),
        Some(text) => text.parse().map_err(|_| {
            format!("--random-seed is {text}, but must be a whole number, \"time\" or \"rand\"")
        }),
    }
}

fn milliseconds(limit: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(limit / 1e3)
        .map_err(|_| format!("--latency-limit is {limit}, but must be above 0"))
}

fn init_steps(line: &CommandLine) -> String {
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
fn files(line: &CommandLine) -> Result<Vec<String>, String> {
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
fn login(line: &CommandLine) -> Result<Login, String> {
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
