//! What pgbench's command line asks for, in the options of the workload, and where its database is.

use std::time::Duration;

use dbdyno_drivers::mysql::Options as Login;
use dbdyno_drivers::{Endpoint, Target, postgres};
use dbdyno_plan::{Load, PlanDuration};
use dbdyno_workloads::oltp::options::OltpPace;
use dbdyno_workloads::pgbench::builtin;
use dbdyno_workloads::pgbench::options::{Pgbench as Options, QueryMode, Vacuum};
use serde_json::{Value, json};

use super::command_line::CommandLine;

#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) options: Options,
    pub(super) endpoint: Endpoint,
    pub(super) load: Load,
    pub(super) initializes: bool,
    pub(super) clients: u32,
    pub(super) jobs: u32,
    pub(super) progress: u64,
    pub(super) per_command: bool,
    pub(super) scale: Option<u32>,
    pub(super) seed: u64,
    pub(super) latency_limit: Option<Duration>,
}

impl Invocation {
    pub(super) fn of(line: &CommandLine) -> Result<Self, String> {
        let clients = line.number("client")?.unwrap_or(1_u32);
        let mut options = Options {
            files: files(line)?,
            connections: vec![clients],
            use_existing: false,
            connect: line.has("connect"),
            max_tries: line.number("max-tries")?.unwrap_or(1),
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
            (options.pace, options.rates) = (OltpPace::Poisson, vec![rate.round() as u32]);
            options.latency_limit = latency_limit.map(PlanDuration);
        }
        for (_, definition) in line.repeated.iter().filter(|(name, _)| *name == "define") {
            let (name, value) = definition.split_once('=').ok_or("-D takes NAME=VALUE")?;
            options.define.insert(name.to_owned(), Value::String(value.to_owned()));
        }
        Ok(Self {
            endpoint: endpoint(line)?,
            load: load()?,
            initializes,
            clients,
            jobs: line.number("jobs")?.unwrap_or(1).clamp(1, clients.max(1)),
            progress: line.number("progress")?.unwrap_or(0),
            per_command: line.has("report-per-command") || line.has("report-latencies"),
            scale: line.number("scale")?,
            seed: seed(line)?,
            latency_limit,
            options,
        })
    }
}

/// libpq waits for ever unless PGCONNECT_TIMEOUT says for how many seconds; here it is as in a plan.
fn load() -> Result<Load, String> {
    const VARIABLE: &str = "PGCONNECT_TIMEOUT";
    let load = Load::default();
    match std::env::var(VARIABLE).ok().filter(|text| !text.is_empty()) {
        None => Ok(load),
        Some(text) => match text.trim().parse() {
            Ok(seconds @ 1..) => Ok(Load { login_timeout: PlanDuration::from_secs(seconds), ..load }),
            _ => Err(format!("{VARIABLE} is {text}, but must be a whole number of seconds from 1 on")),
        },
    }
}

/// A new one each time unless one is given, as pgbench does.
fn seed(line: &CommandLine) -> Result<u64, String> {
    let variable = std::env::var("PGBENCH_RANDOM_SEED").ok();
    match line.text("random-seed").or(variable.as_deref()) {
        None | Some("time" | "rand") => Ok(crate::unrecorded::time_seed()),
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

/// Scripts in their order; the last of `-N` and `-S` comes after `-b` and `-f`.
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
    for (flag, own) in [("skip-some-updates", "simple-update"), ("select-only", "select-only")] {
        if line.has(flag) {
            files.push(own.to_owned());
        }
    }
    if files.is_empty() {
        files.push("tpcb-like".to_owned());
    }
    Ok(files)
}

/// Where and who, from the options and libpq's variables.
fn endpoint(line: &CommandLine) -> Result<Endpoint, String> {
    const SOCKETS: &str = "/var/run/postgresql";
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let text = |name: &str, of: &str| line.text(name).map(str::to_owned).or_else(|| variable(of));
    let port = text("port", "PGPORT").unwrap_or_else(|| "5432".to_owned());
    let port: u16 = port.parse().map_err(|_| format!("--port is {port}, but must be a port"))?;
    let user = text("username", "PGUSER").or_else(|| variable("USER"));
    let user = user.ok_or("no user: give -U, or set PGUSER or USER")?;
    let database = line.database.clone().or_else(|| variable("PGDATABASE")).unwrap_or_else(|| user.clone());
    let host = text("host", "PGHOST").unwrap_or_else(|| SOCKETS.to_owned());
    let login = if host.starts_with('/') {
        let socket = postgres::socket_path(std::path::Path::new(&host), port);
        Login::socket(socket, &user)
    } else {
        Login::tcp(&host, port, &user)
    };
    let login = login.with_database(&database);
    let login = match variable("PGPASSWORD") {
        Some(password) => login.with_password(dbdyno_drivers::Secret::new(password)),
        None => login,
    };
    Ok(Endpoint { target: Target::Postgres(login), capabilities: postgres::capabilities() })
}
