//! Tests of several client hosts. All agents run on this host, against a known-answer server. The
//! tests check the load that agents send, which conductor an agent accepts, and how a lost agent is
//! reported.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;

use dbdyno_analyse::Validity;
use dbdyno_db::TlsPem;
use dbdyno_db::server::Certificates;
use dbdyno_record::{ClientHost, Run, StepEvent, StepRecord};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::support::{Desk, Running, faults_but_clocks, findings, wait_for, wait_until_in_step};

/// Starts a server on a port of its own, and returns it with the port.
fn server(desk: &Desk, name: &str, args: &[&str]) -> (Running, u16) {
    let stats = desk.path(&format!("{name}.json"));
    let words = ["known-answer", "--protocol", "mysql", "--port", "0", "--stats", stats.to_str().unwrap()];
    let mut running = desk.start(&mut desk.command(&[&words, args].concat()));
    let port = wait_for("the server to listen", || {
        assert!(running.is_running(), "{}", running.said());
        let said = std::fs::read_to_string(desk.path("out.txt")).unwrap();
        said.trim_end().rsplit_once(':').and_then(|(_, port)| port.parse().ok())
    });
    (running, port)
}

fn stats(desk: &Desk, name: &str, server: Running) -> Value {
    server.signal(Signal::SIGTERM);
    server.wait().expect_ok();
    serde_json::from_str(&std::fs::read_to_string(desk.path(&format!("{name}.json"))).unwrap()).unwrap()
}

/// Writes a plan for the server at `port`, with this number of agents on this host. With 0 the plan
/// has no client hosts.
fn write_plan(desk: &Desk, port: u16, hosts: usize, workload: &str) {
    let hosts = vec!["127.0.0.1"; hosts];
    let clients = format!("[clients]\nhosts = {hosts:?}\nstart = {:?}\n", env!("CARGO_BIN_EXE_dbdyno"));
    let clients = if hosts.is_empty() { String::new() } else { clients };
    let text = format!(
        "name = \"test\"\n{clients}[[variant]]\nname = \"a\"\naddress = \"mysql://any@127.0.0.1:{port}/any\"\n\
         [workload.oltp]\nverify = \"off\"\nsettle_wait = \"0s\"\nload_connections = 1\n{workload}\n"
    );
    desk.write("p.toml", &text);
}

fn step(dir: &Path, name: &str) -> StepRecord {
    let cell = Run::open(dir).unwrap().cells.remove(0);
    cell.steps.into_iter().find(|step| step.name.starts_with(name)).unwrap()
}

fn hosts(step: &StepRecord) -> Vec<ClientHost> {
    let host = |event: &StepEvent| match event {
        StepEvent::ClientHost(host) => Some(host.clone()),
        _ => None,
    };
    step.events.iter().filter_map(host).collect()
}

/// Read-only transactions on seven connections. Each test adds `events` or `time`.
const READ_ONLY: &str = "tests = [\"read-only\"]\nconnections = [7]\ntable_size = 100\n";

#[test]
fn three_hosts_send_as_much_as_one_and_leave_the_same_record() {
    let desk = Desk::new();
    let mut asked = Vec::new();
    for hosts in [0, 3] {
        let name = format!("server{hosts}");
        let (server, port) = server(&desk, &name, &["--delay", "constant 2ms"]);
        write_plan(&desk, port, hosts, &format!("{READ_ONLY}events = 220"));
        let out = format!("runs{hosts}");
        desk.dbdyno(&["run", "p.toml", "--out", &out]).expect_ok();
        let dir = std::fs::read_dir(desk.path(&out)).unwrap().next().unwrap().unwrap().path();
        assert_eq!(faults_but_clocks(&findings(&dir)), [""; 0]);
        let step = step(&dir, "read-only");
        let done: u64 = step.intervals.iter().map(|interval| interval.done).sum();
        let timed: u64 = step.histograms.iter().map(|span| span.histogram().unwrap().len()).sum();
        let of_stats = stats(&desk, &name, server);
        asked.push((done, timed, of_stats["requests"]["executions"].clone(), step.spec.clone()));
        let connections: Vec<u32> = self::hosts(&step).iter().map(|host| host.connections).collect();
        assert_eq!(connections, if hosts == 0 { vec![] } else { vec![3, 2, 2] });
        let is_measured = |host: &ClientHost| host.cpu_us > 0 && host.measured_us > 0 && host.cpus > 0;
        assert!(self::hosts(&step).iter().all(is_measured));
    }
    assert_eq!(asked[0].0, 220);
    assert_eq!(asked[0], asked[1]);
}

#[test]
fn a_fixed_rate_is_divided_between_the_hosts() {
    let desk = Desk::new();
    let (server, port) = server(&desk, "server", &[]);
    write_plan(&desk, port, 3, &format!("{READ_ONLY}arrivals = \"constant\"\nrates = [300]\ntime = \"3s\""));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let step = step(&desk.run_dir(), "read-only");
    assert_eq!(step.window(), Some((0, 3_000_000)));
    let sum = |field: fn(&dbdyno_record::Interval) -> u64| step.intervals.iter().map(field).sum::<u64>();
    assert_eq!(sum(|interval| interval.due), 900);
    // A busy machine may send the last operations too late for the window.
    assert!((1..=900).contains(&sum(|interval| interval.done)));
    drop(server);
}

#[test]
fn a_step_whose_agent_is_killed_fails_with_the_name_of_the_host() {
    let desk = Desk::new();
    let (server, port) = server(&desk, "server", &["--delay", "constant 2ms"]);
    write_plan(&desk, port, 2, &format!("{READ_ONLY}time = \"60s\""));
    let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
    let dir = desk.run_dir();
    wait_until_in_step(&mut running, &dir, "1/a/oltp/read-only.c7");
    kill(agent_in(&desk.path("")), Signal::SIGKILL).unwrap();
    running.wait().expect_code(4);
    let findings = findings(&dir);
    let step = findings.workloads[0].steps.iter().find(|step| step.name.starts_with("read-only")).unwrap();
    let Validity::Failed { message } = &step.variants[0].runs[0].validity else { panic!("{step:?}") };
    assert!(message.contains("client host 127.0.0.1 was lost"), "{message}");
    drop(server);
}

/// Returns the process of the agent that was started in `folder`.
fn agent_in(folder: &Path) -> Pid {
    let folder = folder.canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_agent = |pid: &i32| {
        let words = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let at = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        words.contains("\0agent\0") && at == folder
    };
    Pid::from_raw(pids.find(is_agent).unwrap())
}

/// Starts an agent as `dbdyno run` does, and returns it with its port.
fn agent(desk: &Desk, pem: &TlsPem) -> (Child, u16) {
    let mut command = desk.command(&["agent", "--listen", "127.0.0.1"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let credentials = json!({
        "authorities": pem.authorities, "certificate": pem.certificate, "key": pem.key.reveal(),
    });
    writeln!(child.stdin.take().unwrap(), "{credentials}").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim_end().strip_prefix("listening on 127.0.0.1:").unwrap().parse().unwrap();
    (child, port)
}

/// Connects as a conductor that trusts the authority of `trusted` and presents the certificate of
/// `shown`. Returns the first byte that the agent sends, and the connection, which stays open until
/// it is dropped.
async fn greeted(
    port: u16,
    trusted: &TlsPem,
    shown: &TlsPem,
) -> std::io::Result<(u8, impl AsyncReadExt + Unpin + use<>)> {
    let parsed =
        |pem: &str| CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect::<Vec<_>>();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(parsed(&trusted.authorities));
    let key = PrivateKeyDer::from_pem_slice(shown.key.reveal().as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_client_auth_cert(parsed(&shown.certificate), key);
    let connector = TlsConnector::from(Arc::new(config.unwrap()));
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    let mut stream = connector.connect(ServerName::try_from("127.0.0.1").unwrap(), stream).await?;
    Ok((stream.read_u8().await?, stream))
}

#[tokio::test(flavor = "current_thread")]
async fn an_agent_takes_one_conductor_with_the_right_certificate_and_ends_with_it() {
    let desk = Desk::new();
    let [ours, theirs] =
        ["127.0.0.1"; 2].map(|host| Certificates::for_server_at(&[host], "conductor").unwrap());
    let (mut child, port) = agent(&desk, &ours.for_server());
    let of = |certificates: &Certificates| certificates.for_client();
    assert!(greeted(port, &of(&theirs), &of(&theirs)).await.is_err(), "an agent that is not trusted");
    assert!(greeted(port, &of(&ours), &of(&theirs)).await.is_err(), "a conductor that is not trusted");
    let (_, taken) = greeted(port, &of(&ours), &of(&ours)).await.unwrap();
    let second = greeted(port, &of(&ours), &of(&ours)).await.err().unwrap();
    assert_eq!(second.kind(), std::io::ErrorKind::ConnectionRefused);
    assert!(child.try_wait().unwrap().is_none());
    drop(taken);
    assert!(wait_for("the end of the agent", || child.try_wait().unwrap()).success());
}

#[test]
fn plans_that_client_hosts_cannot_run_are_refused_before_anything_runs() {
    let desk = Desk::new();
    let refusal = |hosts: &str, variant: &str, workload: &str| {
        let text = format!(
            "name = \"test\"\n[clients]\nhosts = {hosts}\nstart = \"false\"\n[[variant]]\nname = \"a\"\n{variant}\n\
             [workload.{workload}]\n"
        );
        desk.write("p.toml", &text);
        let ended = desk.dbdyno(&["plan", "p.toml"]);
        ended.expect_code(2);
        ended.err.lines().next().unwrap().to_owned()
    };
    let at = "address = \"mysql://any@127.0.0.1:1/any\"";
    let refusals = [
        refusal("[]", at, "oltp"),
        refusal("[\"-oProxyCommand=x\"]", at, "oltp"),
        refusal("2", at, "oltp"),
        refusal("[\"c1\"]\non = \"slurm\"", at, "oltp"),
        refusal("2\non = \"nomad\"", at, "oltp"),
        refusal("[\"c1\"]", "server = \"sqlite\"", "oltp"),
        refusal("[\"c1\"]", "address = \"mysql://any@localhost/any?socket=/s\"", "oltp"),
        refusal("[\"c1\"]", at, "insert-benchmark"),
    ];
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    error: p.toml:3:9: hosts must be one or more names or addresses, as ["10.0.0.2"], or a number with on, which finds them
    error: p.toml:3:9: hosts must be one or more names or addresses, as ["10.0.0.2"], or a number with on, which finds them
    error: p.toml:3:9: hosts must be one or more names or addresses, as ["10.0.0.2"], or a number with on, which finds them
    error: p.toml:3:9: hosts must be a number, as 4, when on finds them
    error: p.toml:4:6: there are ray, ray://HOST:PORT, slurm and slurm:PARTITION
    error: p.toml:3:9: client hosts need servers that they reach: let variant `a` have an address with a host
    error: p.toml:3:9: client hosts need servers that they reach: let variant `a` have an address with a host
    error: p.toml:3:9: the connections of workload insert-benchmark cannot be shared out to client hosts
    "#);
}
