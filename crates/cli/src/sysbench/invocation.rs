//! Reads sysbench's command line (`[--name=value ...] script [command]`, in any order), turns it
//! into options of the workload, and finds its database.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_db::mysql::Options as Login;
use dbdyno_db::{DatabaseAddress, DatabaseServer, null};
use dbdyno_model::{Load, PlanDuration};
use dbdyno_workloads::oltp::options::{Distribution, ErrorCode, OltpArrivals};
use dbdyno_workloads::sysbench::options::{PsMode, SysbenchOptions as Options};
use serde_json::{Value, json};

use crate::load::Opening;

const ENDLESS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

#[derive(Debug)]
pub(super) struct SysbenchInvocation {
    pub(super) options: Options,
    pub(super) database_server: DatabaseServer,
    pub(super) threads: u32,
    pub(super) report_interval: u64,
    pub(super) percentile: u64,
    pub(super) histogram: bool,
    pub(super) seed: u64,
    pub(super) opening: Opening,
    /// Time after its planned end at which a run is cut off, if that is sooner than for a plan's
    /// step.
    pub(super) forced_shutdown: Option<Duration>,
}

impl SysbenchInvocation {
    pub(super) fn of(line: &SysbenchCommandLine, script: &str, command: &str) -> Result<Self, String> {
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
        random_options(line, &mut options)?;
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

/// Sets the login timeout. sysbench's default is the same as a plan's.
fn opening(line: &SysbenchCommandLine) -> Result<Opening, String> {
    let load = Load::default();
    let login_timeout = match line.number(&["thread_init_timeout"], load.login_timeout.0.as_secs())? {
        0 => return Err("--thread-init-timeout must be 1 or more seconds".to_owned()),
        seconds => PlanDuration::from_secs(seconds),
    };
    Ok(Opening { load: Load { login_timeout, ..load }, login_key: "--thread-init-timeout" })
}

/// Sets the options of the random distribution.
fn random_options(line: &SysbenchCommandLine, options: &mut Options) -> Result<(), String> {
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

/// Returns a new seed for each run, unless one other than 0 is given. With the same seed, a run
/// would write the same values as the run before it and change no rows.
fn seed(line: &SysbenchCommandLine) -> Result<u64, String> {
    Ok(match line.number(&["rand_seed"], 0)? {
        0 => crate::load::time_seed(),
        seed => seed,
    })
}

fn ignored_errors(line: &SysbenchCommandLine) -> Option<Vec<ErrorCode>> {
    let codes = line.text("mysql_ignore_errors")?;
    Some(codes.split(',').map(|code| ErrorCode(code.trim().to_owned())).collect())
}

fn address(line: &SysbenchCommandLine) -> Result<DatabaseAddress, String> {
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
    line: &SysbenchCommandLine,
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

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SysbenchCommandLine {
    pub(super) script: Option<String>,
    pub(super) command: Option<String>,
    /// sysbench's own options, with `_` in place of `-`.
    pub(super) general: BTreeMap<String, String>,
    pub(super) own: BTreeMap<String, String>,
}

/// Options of sysbench that have an effect in dbdyno.
const APPLIED: &str = "
    threads num_threads events max_requests time max_time warmup_time rate
    report_interval percentile histogram forced_shutdown thread_init_timeout
    config_file validate
    rand_type rand_seed rand_spec_iter rand_spec_pct rand_spec_res rand_pareto_h rand_zipfian_exp
    db_driver db_ps_mode
    mysql_host mysql_port mysql_socket mysql_user mysql_password mysql_db mysql_ssl
    mysql_ignore_errors mysql_dry_run
    pgsql_host pgsql_port pgsql_user pgsql_password pgsql_db pgsql_sslmode
    test";

/// Options of sysbench that have no effect in dbdyno. A message names those that are used.
const IGNORED: &str = "
    luajit_cmd thread_stack_size report_checkpoints verbosity debug
    db_debug mysql_debug mysql_compression mysql_compression_algorithms
    mysql_ssl_key mysql_ssl_cert mysql_ssl_cipher";

fn is_in(options: &str, name: &str) -> bool {
    options.split_whitespace().any(|own| own == name)
}

pub(super) fn read_words(arguments: &[String]) -> Result<SysbenchCommandLine, String> {
    let named = |word: &&String| word.starts_with("--config-file=") || word.starts_with("--config_file=");
    let of_file = match arguments.iter().rfind(named).and_then(|word| word.split_once('=')) {
        Some((_, path)) => config_file(path)?,
        None => Vec::new(),
    };
    let mut read = SysbenchCommandLine::default();
    // The command line takes precedence over the file.
    for word in of_file.iter().chain(arguments) {
        let Some(option) = word.strip_prefix("--") else {
            let place = if read.script.is_none() { &mut read.script } else { &mut read.command };
            if place.is_some() {
                return Err(format!("{word} is one word too many: [--name=value ...] script [command]"));
            }
            *place = Some(word.clone());
            continue;
        };
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let name = name.replace('-', "_");
        let is_general = is_in(APPLIED, &name) || is_in(IGNORED, &name);
        let list = if is_general { &mut read.general } else { &mut read.own };
        list.insert(name, value.to_owned());
    }
    // Before sysbench 1.0 the script was an option.
    if let Some(test) = read.general.remove("test") {
        read.command = read.command.or(read.script.take());
        read.script = Some(test);
    }
    Ok(read)
}

/// Reads the options of a file for `--config-file`. It has one option per line, as on the command
/// line but without dashes.
fn config_file(path: &str) -> Result<Vec<String>, String> {
    /// Longest file in bytes. This is far more than all options need.
    const MOST_BYTES: u64 = 1 << 20;
    let problem = |error: std::io::Error| format!("--config-file: cannot read {path}: {error}");
    let found = std::fs::metadata(path).map_err(problem)?;
    if !found.is_file() || found.len() > MOST_BYTES {
        return Err(format!("--config-file: {path} is no file of options"));
    }
    let text = std::fs::read_to_string(path).map_err(problem)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let option = |line: &str| match line.split_once('=') {
        Some((name, value)) => format!("--{}={}", name.trim().trim_start_matches("--"), value.trim()),
        None => format!("--{}", line.trim_start_matches("--")),
    };
    Ok(lines.map(option).collect())
}

impl SysbenchCommandLine {
    pub(super) fn ignored(&self) -> Vec<String> {
        let given = self.general.keys().filter(|name| is_in(IGNORED, name));
        given.map(|name| format!("--{}", name.replace('_', "-"))).collect()
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.general.get(name).map(String::as_str)
    }

    /// Returns the first of these options that was given, as a whole number.
    pub(super) fn number(&self, names: &[&str], default: u64) -> Result<u64, String> {
        let Some(name) = names.iter().find(|name| self.general.contains_key(**name)) else {
            return Ok(default);
        };
        let text = self.general[*name].as_str();
        text.parse()
            .map_err(|_| format!("--{} is {text}, but must be a whole number", name.replace('_', "-")))
    }

    pub(super) fn fraction(&self, name: &str, default: f64) -> Result<f64, String> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| format!("--{} is {text}, but must be a number", name.replace('_', "-")))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.text(name) {
            None | Some("off" | "false" | "0") => Ok(false),
            Some("" | "on" | "true" | "1") => Ok(true),
            Some(text) => Err(format!("--{} is {text}, but must be on or off", name.replace('_', "-"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> SysbenchCommandLine {
        read_words(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn options_may_come_anywhere_and_belong_to_sysbench_or_to_the_script() {
        let line = of("oltp_read_only.lua --tables=8 --threads=16 --mysql_socket=/s run --skip-trx --debug");
        assert_eq!(line.script.as_deref(), Some("oltp_read_only.lua"));
        assert_eq!(line.command.as_deref(), Some("run"));
        assert_eq!(
            line.own.into_iter().collect::<Vec<_>>(),
            [("skip_trx".to_owned(), String::new()), ("tables".to_owned(), "8".to_owned())]
        );
        let line = of("--threads=16 --mysql_socket=/s --debug a b");
        assert_eq!((line.number(&["threads"], 1), line.text("mysql_socket")), (Ok(16), Some("/s")));
        assert_eq!(line.ignored(), ["--debug"]);
    }

    #[test]
    fn the_script_was_an_option_once() {
        let line = of("--test=oltp.lua --num-threads=4 run");
        assert_eq!((line.script.as_deref(), line.command.as_deref()), (Some("oltp.lua"), Some("run")));
        assert_eq!(line.number(&["threads", "num_threads"], 1), Ok(4));
        let many = ["a", "b", "c"].map(str::to_owned);
        assert!(read_words(&many).unwrap_err().contains("c is one word too many"));
    }
}
