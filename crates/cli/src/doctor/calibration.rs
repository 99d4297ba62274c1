//! Measures the highest rate of the load client. The calibration is an ordinary run of point
//! selects against servers that only send prepared responses. Calibrations are kept in a file in
//! the user's cache folder, and written as a table and as JSON.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use dbdyno_analyse::{Findings, StepRun, Validity};
use dbdyno_db::server::{RuntimeDir, clean_command};
use dbdyno_model::CpuList;
use dbdyno_plan::{Plan, grouped};
use dbdyno_products::FamilyFacts;
use dbdyno_record::{
    CalibratedHost, ClientCalibration, ClientRate, HostInfo, LimitedBy, Manifest, Run, RunWriter, ToolInfo,
};
use dbdyno_report::document::{Block, Column, Table};
use dbdyno_workloads::plans::parse;
use serde_json::{Value, json};

use crate::args::DoctorArgs;
use crate::conductor::{AdvisoryLocks, Conductor, Partial, RunClock, RunTally, TEMPLATES};
use crate::engines::this_program;
use crate::exit::ExitError;
use crate::plan::forecast;
use crate::plan::prepare::{manifest, prepare};
use crate::progress::Progress;
use crate::{files, host, limits, signals};

/// Share of its time from which a load thread, or the server on its CPUs, counts as the limit.
const FULL: f64 = 0.90;
/// Shortest time for which each number of connections is measured.
const MIN_TIME: Duration = Duration::from_secs(1);
const TEST: &str = "point-select";

/// Returns where the server that speaks a family's protocol listens: a socket, or the folder of a
/// socket.
fn socket(runtime_dir: &RuntimeDir, family: &FamilyFacts) -> PathBuf {
    runtime_dir.path().join(family.name)
}

/// Calibrates the client as `args` say. It measures for `args.time` with each number of connections
/// and each protocol.
pub(crate) fn calibrate(args: &DoctorArgs) -> Result<ClientCalibration, ExitError> {
    // The path of a unix socket has at most 107 bytes, so it is not below a run directory.
    let runtime_dir = RuntimeDir::new().map_err(ExitError::machine)?;
    let plan = plan(args, &runtime_dir)?;
    // Servers end with the thread that starts them, and inherit its CPUs. They must therefore start
    // in this thread, and before it is pinned to the client's CPUs.
    let cancel = signals::watch(signals::RUN_STOPS)?;
    host::check(&plan, runtime_dir.path(), 0)?;
    limits::check(&plan)?;
    let server_cpus = host::server_cpus(&plan);
    let listed = server_cpus.clone().map(CpuList);
    for family in FamilyFacts::of_servers().filter(|family| family.socket_prefix.is_some()) {
        std::fs::create_dir(socket(&runtime_dir, family)).map_err(ExitError::machine)?;
    }
    let servers = FamilyFacts::of_servers()
        .map(|family| KnownAnswerServer::start(family.name, &socket(&runtime_dir, family), listed.as_ref()))
        .collect::<Result<Vec<_>, _>>()?;
    let runtime = host::event_loop()?;
    let variants = prepare(&plan, &runtime)?;
    let manifest = manifest(&plan, &variants, runtime_dir.path())?;
    let writer = RunWriter::create(runtime_dir.path(), &manifest)?;
    let dir = writer.dir().to_owned();
    host::pin_client(&plan)?;
    let progress = Progress::new(&forecast::of(&plan), &manifest.order);
    let data_root = dir.join("data");
    let mut conductor = Conductor {
        plan: &plan,
        variants: &variants,
        writer,
        manifest: None,
        clock: RunClock::start(),
        progress,
        cancel,
        runtime,
        template_dir: data_root.join(TEMPLATES),
        data_root,
        server_cpus: server_cpus.clone(),
        advisory_locks: AdvisoryLocks::default(),
        clients: None,
        partial: Partial::new(),
        profiled: Partial::new(),
        stopping: None,
    };
    let tally = conductor.run(&manifest.order, RunTally::default())?;
    drop(conductor);
    drop(servers);
    tally.ended()?;
    let server_cpus = server_cpus.map_or(manifest.host.cpus as usize, |cpus| cpus.len());
    calibration(&dir, &manifest, &plan, server_cpus)
}

/// Makes the plan of the calibration. Its tables are as small as possible, because the server reads
/// none.
fn plan(args: &DoctorArgs, runtime_dir: &RuntimeDir) -> Result<Plan, ExitError> {
    if args.time.0 < MIN_TIME {
        return Err(ExitError::usage(format!("--time is {}, but must be at least 1s", args.time)));
    }
    let cpus = |key: &str, list: &Option<CpuList>| {
        list.as_ref().map_or_else(String::new, |list| format!("{key} = \"{list}\"\n"))
    };
    let threads = args.client_threads.map_or_else(String::new, |count| format!("client_threads = {count}\n"));
    let wait =
        args.client_wait.as_ref().map_or_else(String::new, |wait| format!("client_wait = \"{wait}\"\n"));
    let host =
        [cpus("client_cpus", &args.client_cpus), cpus("server_cpus", &args.server_cpus), threads, wait]
            .concat();
    let variants = FamilyFacts::of_servers().map(|family| {
        let (name, scheme, socket) = (family.name, family.schemes[0], escaped(&socket(runtime_dir, family)));
        format!("[[variant]]\nname = \"{name}\"\naddress = \"{scheme}any@localhost/any?socket={socket}\"\n")
    });
    let text = format!(
        include_str!("calibration_plan.txt"),
        host = host,
        variants = variants.collect::<String>(),
        TEST = TEST,
        connections = args.connections,
        time = args.time
    );
    parse(&text, "the plan of the calibration").map_err(ExitError::usage)
}

fn escaped(path: &Path) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte);
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes
        .map(|&byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Reads the rates from the findings of the run, as any report does.
fn calibration(
    dir: &Path,
    manifest: &Manifest,
    plan: &Plan,
    server_cpus: usize,
) -> Result<ClientCalibration, ExitError> {
    let findings = dbdyno_analyse::analyse(&Run::open(dir)?);
    let rates = rates(&findings, server_cpus);
    if rates.is_empty() {
        return Err(ExitError::ours("the calibration has no result"));
    }
    Ok(ClientCalibration {
        at: manifest.started.clone(),
        tool: manifest.tool.clone(),
        host: calibrated_host(&manifest.host, plan),
        rates,
    })
}

/// Returns the rates by driver, then by connections. Invalid steps count too. In other runs a
/// client at its limit makes a step invalid, but a calibration measures this very limit.
fn rates(findings: &Findings, server_cpus: usize) -> Vec<ClientRate> {
    let steps = findings.workloads.iter().flat_map(|workload| &workload.steps);
    let of_test = steps.filter(|step| step.name.starts_with(TEST)).flat_map(|step| &step.variants);
    let runs = of_test.flat_map(|variant| variant.runs.iter().map(move |run| (variant, run)));
    let usable = runs.filter(|(_, run)| matches!(run.validity, Validity::Valid | Validity::Invalid { .. }));
    let mut rates: Vec<ClientRate> =
        usable.filter_map(|(variant, run)| client_rate(&variant.variant, run, server_cpus)).collect();
    rates.sort_by(|a, b| (&a.driver, a.connections).cmp(&(&b.driver, b.connections)));
    rates
}

fn client_rate(driver: &str, run: &StepRun, server_cpus: usize) -> Option<ClientRate> {
    let kind = run.kinds.first()?;
    let busiest = run.cost.busiest_load_thread_share;
    let server = run.cost.server_cpu_us.map(|us| us * run.rate / 1e6 / server_cpus.max(1) as f64);
    Some(ClientRate {
        driver: driver.to_owned(),
        connections: kind.connections,
        statements_per_second: kind.statements_per_second,
        client_cpu_us: run.cost.client_cpu_us,
        busiest_load_thread_share: busiest,
        server_share: server,
        limit: limit(busiest, server),
    })
}

/// Decides what limited the rate. A client without idle time was the limit, however busy the server
/// was.
fn limit(busiest_load_thread_share: Option<f64>, server_share: Option<f64>) -> LimitedBy {
    match (busiest_load_thread_share, server_share) {
        (Some(FULL..), _) => LimitedBy::Client,
        (_, Some(FULL..)) => LimitedBy::Server,
        (Some(_), _) => LimitedBy::RoundTrip,
        (None, _) => LimitedBy::Unknown,
    }
}

/// A known-answer server as a child process, on a private socket. It is killed when dropped,
/// because it has nothing to finish.
struct KnownAnswerServer {
    child: Child,
}

impl KnownAnswerServer {
    /// Starts a server that answers without delay, and waits until it listens. `socket` is the path
    /// of the socket, or for PostgreSQL the socket's folder.
    fn start(protocol: &str, socket: &Path, cpus: Option<&CpuList>) -> Result<Self, ExitError> {
        let cannot = |why: String| {
            ExitError::machine(format!("cannot start the {protocol} server that answers: {why}"))
        };
        // With `--pdeathsig` the kernel ends the server when the thread that starts it ends, even
        // where `kill -9` ends dbdyno.
        let mut command = clean_command("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(this_program()?);
        command.args(["known-answer", "--protocol", protocol, "--socket"]).arg(socket);
        if let Some(cpus) = cpus {
            command.args(["--cpus", &cpus.to_string()]);
        }
        // The server is in a process group of its own, because Ctrl-C must reach only dbdyno, which
        // ends it.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child =
            command.spawn().map_err(|error| cannot(format!("{error} (setpriv of util-linux is needed)")))?;
        let mut answering = Self { child };
        answering.wait_until_it_listens().map_err(cannot)?;
        Ok(answering)
    }

    fn wait_until_it_listens(&mut self) -> Result<(), String> {
        let mut line = String::new();
        if let Some(stdout) = self.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        if line.starts_with("listening on ") {
            return Ok(());
        }
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        Err(said.trim_end().trim_start_matches("error: ").to_owned())
    }
}

impl Drop for KnownAnswerServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Version of the file's schema. A file of another version counts as absent and is written again.
const FORMAT: u32 = 2;

/// Returns the path of `client-calibration.json` in `dbdyno` below `$XDG_CACHE_HOME`, otherwise
/// below `~/.cache`. It is `None` without a home directory.
pub(crate) fn path() -> Option<PathBuf> {
    let cache = files::user_folder("XDG_CACHE_HOME", ".cache")?;
    Some(cache.join("dbdyno/client-calibration.json"))
}

/// Returns the parts of `host` and `plan` that the client's rate depends on.
pub(crate) fn calibrated_host(host: &HostInfo, plan: &Plan) -> CalibratedHost {
    CalibratedHost {
        cpu_model: host.cpu_model.clone(),
        cpus: host.cpus,
        client_cpus: host.client_cpus.clone(),
        server_cpus: host.server_cpus.clone(),
        client_threads: plan.host.client_threads,
        client_wait: host.client_wait.clone(),
    }
}

/// Returns all stored calibrations. A file that cannot be read or understood counts as empty,
/// because a calibration can be repeated.
pub(crate) fn load(path: &Path) -> Vec<ClientCalibration> {
    files::load_cache(path, FORMAT)
}

pub(crate) fn find(path: &Path, tool: &ToolInfo, host: &CalibratedHost) -> Option<ClientCalibration> {
    load(path).into_iter().find(|calibration| calibration.holds_for(tool, host))
}

/// Adds a calibration. It replaces one for the same client, and those of other builds, which no
/// longer apply.
pub(crate) fn save(path: &Path, new: &ClientCalibration) -> Result<(), ExitError> {
    let mut calibrations = load(path);
    calibrations.retain(|old| old.tool == new.tool && !old.holds_for(&new.tool, &new.host));
    calibrations.push(new.clone());
    files::save_cache(path, FORMAT, calibrations)
}

/// Writes the calibration for people. `kept` says where it is stored.
pub(crate) fn calibration_blocks(calibration: &ClientCalibration, kept: &str) -> Vec<Block> {
    let host = &calibration.host;
    let cpus =
        |list: &Option<String>| list.clone().map_or("any CPU".to_owned(), |list| format!("CPUs {list}"));
    let title = format!(
        "What the client can reach: {} CPUs, {}; client on {}{}, server on {}",
        host.cpus,
        host.cpu_model,
        cpus(&host.client_cpus),
        host.client_wait.as_ref().map_or_else(String::new, |wait| format!(" ({wait}s)")),
        cpus(&host.server_cpus)
    );
    let figures = [
        ("connections", ""),
        ("rate", "1/s"),
        ("client CPU", "µs"),
        ("load thread", ""),
        ("server CPUs", ""),
    ];
    let figures = figures.map(|(name, unit)| Column::new(name, unit, ""));
    let columns = figures.into_iter().chain([Column::words("limit")]);
    let mut table = Table::new(&title, "", vec![Column::new("protocol", "", "")], columns);
    calibration.rates.iter().for_each(|rate| table.push(rate_row(rate)));
    vec![Block::Table(table), Block::text(""), Block::text(format!("kept in {kept}"))]
}

fn rate_row(rate: &ClientRate) -> [String; 7] {
    let or_na = |value: Option<String>| value.unwrap_or_else(|| "NA".to_owned());
    let percent = |share: Option<f64>| or_na(share.map(|share| format!("{:.0} %", 100.0 * share)));
    [
        rate.driver.clone(),
        rate.connections.to_string(),
        grouped(rate.statements_per_second.round() as u64),
        or_na(rate.client_cpu_us.map(|us| format!("{us:.2}"))),
        percent(rate.busiest_load_thread_share),
        percent(rate.server_share),
        limit_words(rate.limit).to_owned(),
    ]
}

pub(crate) fn limit_words(limit: LimitedBy) -> &'static str {
    match limit {
        LimitedBy::Client => "client",
        LimitedBy::Server => "server (the client could do more)",
        LimitedBy::RoundTrip => "round trip",
        LimitedBy::Unknown => "not known: measured for too short a time",
    }
}

pub(crate) fn calibration_json(calibration: &ClientCalibration, kept: &str) -> Value {
    let mut value = json!(calibration);
    value["kept_in"] = kept.into();
    value
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{CalibratedHost, ToolInfo};
    use dbdyno_report::document::terminal;

    use super::*;

    #[test]
    fn the_client_is_the_limit_before_the_server_is() {
        let of = |client, server| limit(Some(client), Some(server));
        assert_eq!((of(0.9, 0.95), of(0.89, 0.9)), (LimitedBy::Client, LimitedBy::Server));
        assert_eq!((of(0.5, 0.5), limit(None, None)), (LimitedBy::RoundTrip, LimitedBy::Unknown));
    }

    #[test]
    fn a_folder_of_any_name_is_part_of_an_address() {
        assert_eq!(escaped(Path::new("/tmp/my run?/é%.d")), "/tmp/my%20run%3F/%C3%A9%25.d");
    }

    fn calibration(commit: &str, client_cpus: &str, at: &str) -> ClientCalibration {
        let host = CalibratedHost { client_cpus: Some(client_cpus.to_owned()), ..CalibratedHost::default() };
        let tool =
            ToolInfo { version: "1".to_owned(), commit: commit.to_owned(), build: "release".to_owned() };
        ClientCalibration { at: at.to_owned(), tool, host, rates: Vec::new() }
    }

    #[test]
    fn a_calibration_is_found_again_and_replaced_by_a_newer_one_of_the_same_client() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("dbdyno/c.json");
        let all = || load(&path).into_iter().map(|stored| stored.at).collect::<Vec<_>>();
        assert!(all().is_empty());
        for (cpus, at) in [("0", "first"), ("1", "second"), ("0", "third")] {
            save(&path, &calibration("a", cpus, at)).expect("a writable folder");
        }
        assert_eq!(all(), ["second", "third"]);
        let wanted = calibration("a", "0", "");
        assert_eq!(find(&path, &wanted.tool, &wanted.host).expect("stored").at, "third");
        let other = calibration("b", "0", "fourth");
        assert!(find(&path, &other.tool, &other.host).is_none());
        save(&path, &other).expect("a writable folder");
        assert_eq!(all(), ["fourth"]);
    }

    #[test]
    fn a_file_that_is_not_understood_holds_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("c.json");
        for text in ["{", "[]", r#"{"format":2,"calibrations":[]}"#] {
            std::fs::write(&path, text).expect("a file");
            assert!(load(&path).is_empty(), "{text}");
        }
    }

    #[test]
    fn the_table_is_aligned_and_names_the_limit() {
        let rate = |connections, statements_per_second, limit| ClientRate {
            driver: "mysql".to_owned(),
            connections,
            statements_per_second,
            client_cpu_us: Some(5.25),
            busiest_load_thread_share: Some(0.981),
            server_share: None,
            limit,
        };
        let calibration = ClientCalibration {
            at: String::new(),
            tool: ToolInfo { version: String::new(), commit: String::new(), build: String::new() },
            host: CalibratedHost {
                cpu_model: "Xeon".to_owned(),
                cpus: 4,
                client_cpus: Some("2-3".to_owned()),
                ..CalibratedHost::default()
            },
            rates: vec![rate(1, 37_333.4, LimitedBy::RoundTrip), rate(1024, 189_760.0, LimitedBy::Server)],
        };
        insta::assert_snapshot!(terminal(&calibration_blocks(&calibration, "FILE"), 100, false), @r"
        What the client can reach: 4 CPUs, Xeon; client on CPUs 2-3, server on any CPU
                                                      load  server
        protocol  connections     rate  client CPU  thread    CPUs  limit
                                   1/s          µs
        ─────────────────────────────────────────────────────────────────────────────────────────────
        mysql               1   37,333        5.25    98 %      NA  round trip
        mysql            1024  189,760        5.25    98 %      NA  server (the client could do more)

        kept in FILE
        ");
    }
}
