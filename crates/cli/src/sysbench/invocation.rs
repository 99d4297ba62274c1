//! Turns sysbench's command line into options of the workload, and finds its database.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_db::mysql::Options as Login;
use dbdyno_db::{DatabaseAddress, DatabaseServer, null};
use dbdyno_model::{Load, PlanDuration};
use dbdyno_workloads::oltp::options::{Distribution, ErrorCode, OltpArrivals};
use dbdyno_workloads::sysbench::options::{PsMode, SysbenchOptions as Options};
use serde_json::{Value, json};

use super::command_line::CommandLine;
use crate::ad_hoc::Opening;

const ENDLESS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) options: Options,
    pub(super) database_server: DatabaseServer,
    pub(super) threads: u32,
    pub(super) report_interval: u64,
    pub(super) percentile: u64,
    pub(super) histogram: bool,
    pub(super) seed: u64,
    pub(super) opening: Opening,
    /// How long after its time a run is cut off, if that is sooner than a plan's step would be.
    pub(super) forced_shutdown: Option<Duration>,
}

impl Invocation {
    pub(super) fn of(line: &CommandLine, script: &str, command: &str) -> Result<Self, String> {
        let threads = line.number(&["threads", "num_threads"], 1)?;
        let threads = u32::try_from(threads).ok().filter(|threads| *threads > 0);
        let threads = threads.ok_or("--threads must be 1 or more")?;
        let (events, time) =
            (line.number(&["events", "max_requests"], 0)?, line.number(&["time", "max_time"], 10)?);
        let rate = u32::try_from(line.number(&["rate"], 0)?).unwrap_or(u32::MAX);
        let percentile = line.number(&["percentile"], 95)?;
        if percentile > 100 {
            return Err(format!("--percentile is {percentile}, but must be 0 to 100"));
        }
        let time = if time == 0 { ENDLESS } else { Duration::from_secs(time) };
        let own = line.own.iter().map(|(name, value)| (name.clone(), json!(value)));
        let mut options = Options {
            script: script.to_owned(),
            options: own.collect::<BTreeMap<String, Value>>(),
            commands: vec![command.to_owned()],
            connections: vec![threads],
            prepare_connections: threads.min(1024),
            time: PlanDuration(time),
            events: (events > 0).then_some(events),
            time_ends_too: true,
            warmup: PlanDuration(Duration::from_secs(line.number(&["warmup_time"], 0)?)),
            db_ps_mode: if line.text("db_ps_mode") == Some("disable") {
                PsMode::Disable
            } else {
                PsMode::Auto
            },
            ignore_errors: ignored_errors(line),
            strict: true,
            validate: line.flag("validate")?,
            ..Options::default()
        };
        if rate > 0 {
            (options.arrivals, options.rates) = (OltpArrivals::Poisson, vec![rate]);
        }
        draws(line, &mut options)?;
        let shutdown = line.text("forced_shutdown").filter(|text| *text != "off");
        let opening = opening(line)?;
        let engine = line.own.get("mysql_storage_engine").map_or("innodb", String::as_str);
        Ok(Self {
            database_server: opening.database_server(address(line)?, engine),
            opening,
            options,
            threads,
            report_interval: line.number(&["report_interval"], 0)?,
            percentile,
            histogram: line.flag("histogram")?,
            seed: seed(line)?,
            forced_shutdown: shutdown
                .map(|_| line.number(&["forced_shutdown"], 0))
                .transpose()?
                .map(Duration::from_secs),
        })
    }
}

/// Sets the login timeout. sysbench's default equals a plan's, half a minute.
fn opening(line: &CommandLine) -> Result<Opening, String> {
    let load = Load::default();
    let login_timeout = match line.number(&["thread_init_timeout"], load.login_timeout.0.as_secs())? {
        0 => return Err("--thread-init-timeout must be 1 or more seconds".to_owned()),
        seconds => PlanDuration::from_secs(seconds),
    };
    Ok(Opening { load: Load { login_timeout, ..load }, login_key: "--thread-init-timeout" })
}

fn draws(line: &CommandLine, options: &mut Options) -> Result<(), String> {
    options.rand_type = match line.text("rand_type") {
        None | Some("uniform") => Distribution::Uniform,
        Some("special") => Distribution::Special,
        Some("gaussian") => Distribution::Gaussian,
        Some("pareto") => Distribution::Pareto,
        Some("zipfian") => Distribution::Zipfian,
        Some(other) => {
            return Err(format!(
                "--rand-type is {other}, but must be uniform, special, gaussian, pareto or zipfian"
            ));
        }
    };
    let number = |name, default| line.number(&[name], default).map(|number| number as u32);
    options.rand_spec_iter = number("rand_spec_iter", 12)?;
    options.rand_spec_pct = number("rand_spec_pct", 1)?;
    options.rand_spec_res = number("rand_spec_res", 75)?;
    options.rand_pareto_h = line.fraction("rand_pareto_h", 0.2)?;
    options.rand_zipfian_exp = line.fraction("rand_zipfian_exp", 0.8)?;
    Ok(())
}

/// Returns a new seed for each run, unless one other than 0 is given. A run that sends the same
/// values as the run before it would change no rows.
fn seed(line: &CommandLine) -> Result<u64, String> {
    Ok(match line.number(&["rand_seed"], 0)? {
        0 => crate::ad_hoc::time_seed(),
        seed => seed,
    })
}

fn ignored_errors(line: &CommandLine) -> Option<Vec<ErrorCode>> {
    let codes = line.text("mysql_ignore_errors")?;
    Some(codes.split(',').map(|code| ErrorCode(code.trim().to_owned())).collect())
}

fn address(line: &CommandLine) -> Result<DatabaseAddress, String> {
    if line.flag("mysql_dry_run")? {
        return Ok(DatabaseAddress::Null(null::Options::default()));
    }
    let plaintext = |option: &str| {
        format!("--{option}: connections of this command are in plaintext; a plan's tls encrypts them")
    };
    match line.text("db_driver").unwrap_or("mysql") {
        "mysql" => {
            let login = login(line, "mysql", 3306, "MYSQL_PWD", |_| None)?;
            if line.text("mysql_ssl").is_some_and(|mode| !matches!(mode, "off" | "disabled")) {
                return Err(plaintext("mysql-ssl"));
            }
            Ok(DatabaseAddress::Mysql(login))
        }
        "pgsql" => {
            let socket = |host: &str| host.starts_with('/').then(|| format!("{host}/.s.PGSQL."));
            let login = login(line, "pgsql", 5432, "PGPASSWORD", socket)?;
            let encrypts = |mode: &str| mode.starts_with("require") || mode.starts_with("verify");
            if line.text("pgsql_sslmode").is_some_and(encrypts) {
                return Err(plaintext("pgsql-sslmode"));
            }
            Ok(DatabaseAddress::Postgres(login))
        }
        other => Err(format!("--db-driver is {other}, but must be mysql or pgsql")),
    }
}

/// Returns the address and the user, from the options that begin with `kind`. `socket_of` makes the
/// path of a host's socket, without the port.
fn login(
    line: &CommandLine,
    kind: &str,
    port: u16,
    password_variable: &str,
    socket_of: impl Fn(&str) -> Option<String>,
) -> Result<Login, String> {
    let text = |name: &str| line.text(&format!("{kind}_{name}"));
    let host = text("host").unwrap_or("localhost").split(',').next().unwrap_or("localhost");
    let port = match text("port") {
        None => port,
        Some(port) => port.parse().map_err(|_| format!("--{kind}-port is {port}, but must be a port"))?,
    };
    let user = text("user").unwrap_or("sbtest");
    let login = match (text("socket"), socket_of(host)) {
        (Some(socket), _) => Login::socket(socket, user),
        (None, Some(socket)) => Login::socket(format!("{socket}{port}"), user),
        (None, None) => Login::tcp(host, port, user),
    };
    let password = text("password").map(str::to_owned).or_else(|| std::env::var(password_variable).ok());
    let login = login.with_database(text("db").unwrap_or("sbtest"));
    Ok(match password {
        Some(password) => login.with_password(dbdyno_db::mysql::Secret::new(password)),
        None => login,
    })
}
