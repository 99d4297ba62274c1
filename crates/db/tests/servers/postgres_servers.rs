//! Real PostgreSQL servers: initialised, started, asked, stopped, killed and refused.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dbdyno_db::postgres::{Options, PostgresSession};
use dbdyno_db::server::{
    Base, Certificates, Data, Error, Ownership, RuntimeDir, Server, ServerSpec, find_named, list,
    remove_data, servers_dir,
};
use dbdyno_db::{Session, Tls};
use dbdyno_model::{TlsMode, TlsSettings};

use crate::support::{
    self, POSTGRES, Wanted, base, block_on, first_and_last_cpu, new_folder, process_is_there, spec,
    wait_until_gone, with_options,
};

/// What differs between versions is tried with these too: a prefix, and the catalogue's name that
/// gets one.
const OTHERS: [Wanted; 2] = [("pg-9.6.", "pg-9.6.24"), ("pg-18.", "pg-18.6")];

/// Set in the copy of this program that is killed, to the folder of its server.
const HOLD: &str = "DBDYNO_TEST_HOLD";

/// The base directory `name`; `None` for other products.
fn postgres_named(name: &str) -> Option<Base> {
    Some(find_named(name).unwrap()).filter(|base| base.family.name() == "postgres")
}

fn started(spec: &ServerSpec) -> Server {
    Server::start(spec).unwrap_or_else(|error| panic!("{error}"))
}

fn ask(server: &Server, sql: &str) -> String {
    support::ask(server, &[sql])
}

#[test]
fn a_build_starts_from_fresh_data_answers_and_stops_cleanly() {
    lives(&base(POSTGRES));
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn every_build_starts_from_fresh_data_answers_and_stops_cleanly() {
    OTHERS.into_iter().for_each(|wanted| drop(base(wanted)));
    list(&servers_dir()).iter().filter_map(|name| postgres_named(name)).for_each(|base| lives(&base));
}

fn lives(base: &Base) {
    let name = &base.title;
    let folder = new_folder();
    // Its own template: this is a test of initialising too.
    let template_dir = folder.path().join("templates");
    let server = started(&ServerSpec { template_dir, ..spec(base, folder.path()) });
    assert!(ask(&server, "SHOW server_version").starts_with(&base.version), "{name}");
    assert_eq!(ask(&server, "SHOW listen_addresses"), "", "{name}");
    assert_eq!(ask(&server, "SHOW server_encoding"), "UTF8", "{name}");
    let place = server.data_dir.display().to_string();
    assert_eq!(ask(&server, "SHOW data_directory"), place, "{name}");
    let pid = server.pid();
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    assert_eq!(program, base.program.canonicalize().unwrap(), "{name}: not the server itself");
    let owner = std::fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    assert_ne!(owner, 0, "{name} runs as root");
    let stopped = server.stop().unwrap();
    assert_eq!((stopped.code, stopped.killed), (Some(0), false), "{name}: {stopped:?}");
    assert!(!process_is_there(pid), "{name}");
    let log = std::fs::read_to_string(folder.path().join("server.log")).unwrap();
    assert!(log.contains("database system is shut down"), "{name}: {log}");
    assert!(!log.contains("incomplete startup packet"), "{name}: {log}");
    remove_data(&folder.path().join("data")).unwrap();
}

#[test]
fn the_plans_settings_hold_but_paths_and_network_do_not() {
    holds_settings(POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn the_plans_settings_hold_in_other_versions() {
    OTHERS.into_iter().for_each(holds_settings);
}

fn holds_settings(wanted: Wanted) {
    let text = "shared_buffers = 32MB\nPORT = 1\nlisten_addresses = '*' # all\nlogging_collector = on\n\
                unix_socket_directories = '/nowhere'\nwal_level = minimal\nmax_wal_senders = 0\n";
    let folder = new_folder();
    let server = started(&with_options(&base(wanted), folder.path(), text));
    assert_eq!(ask(&server, "SHOW shared_buffers"), "32MB");
    assert_eq!(ask(&server, "SHOW wal_level"), "minimal");
    assert_eq!(ask(&server, "SHOW port"), "5432");
    server.stop().unwrap();
}

#[test]
fn a_server_that_dies_at_start_is_reported_with_its_last_words() {
    dies_at_start(POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn servers_of_other_versions_that_die_at_start_are_reported_with_their_last_words() {
    OTHERS.into_iter().for_each(dies_at_start);
}

fn dies_at_start(wanted: Wanted) {
    let folder = new_folder();
    let spec = with_options(&base(wanted), folder.path(), "shared_bufers = 1GB\n");
    let error = Server::start(&spec).unwrap_err();
    assert!(matches!(error, Error::DiedAtStart { .. }), "{error}");
    assert!(error.to_string().contains("shared_bufers"), "{error}");
}

#[test]
fn foreign_data_is_refused_and_stays() {
    let folder = new_folder();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("precious"), "x").unwrap();
    let refused = Server::start(&spec(&base(POSTGRES), folder.path())).unwrap_err();
    assert!(matches!(refused, Error::NotOurs { .. }), "{refused}");
    assert!(data.join("precious").exists());
}

#[test]
fn a_running_servers_data_is_neither_wiped_nor_removed() {
    let folder = new_folder();
    let spec = spec(&base(POSTGRES), folder.path());
    let server = started(&spec);
    let refused = Server::start(&spec).unwrap_err();
    assert!(matches!(refused, Error::StillRunning { pid, .. } if pid == server.pid()), "{refused}");
    assert!(matches!(remove_data(&server.data_dir), Err(Error::StillRunning { .. })));
    assert_eq!(ask(&server, "SELECT 7"), "7");
}

#[test]
fn all_processes_of_a_server_are_on_its_cpus() {
    let folder = new_folder();
    let [_, cpu] = first_and_last_cpu();
    let server = started(&ServerSpec { cpus: Some(vec![cpu]), ..spec(&base(POSTGRES), folder.path()) });
    let backend = ask(&server, "SELECT pg_backend_pid()");
    assert!(!process_is_there(backend.parse().unwrap()) || backend != server.pid().to_string());
    let pids = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", server.pid())).unwrap();
    let pids: Vec<&str> = pids.split_whitespace().collect();
    assert!(pids.len() >= 4, "{pids:?}");
    for pid in pids {
        // One may have ended meanwhile.
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        assert!(status.contains(&format!("\nCpus_allowed_list:\t{cpu}\n")), "{status}");
    }
}

#[test]
fn a_dropped_value_leaves_no_process_and_no_socket() {
    let folder = new_folder();
    let server = started(&spec(&base(POSTGRES), folder.path()));
    let pid = server.pid();
    let socket_folder = match server.options(Some("postgres")).address {
        dbdyno_db::Address::Socket(path) => path.parent().unwrap().to_owned(),
        other => panic!("{other:?}"),
    };
    assert!(socket_folder.exists());
    drop(server);
    assert!(!process_is_there(pid));
    assert!(!socket_folder.exists());
}

/// The first process is killed in the middle of a statement: the others go on for a moment, and the
/// data directory is removed only when they are gone.
#[test]
fn the_data_of_a_killed_server_waits_for_its_last_process() {
    let folder = new_folder();
    let server = started(&spec(&base(POSTGRES), folder.path()));
    let (pid, data_dir) = (server.pid(), server.data_dir.clone());
    let options = server.options(Some("postgres"));
    let busy = std::thread::spawn(move || {
        block_on(async {
            let mut session = PostgresSession::connect(&options).await.unwrap();
            session.query(b"SELECT count(*) FROM generate_series(1, 20000000)").await
        })
    });
    sleep(Duration::from_millis(300));
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    while server.is_running() {
        sleep(Duration::from_millis(10));
    }
    drop(server);
    remove_data(&data_dir).unwrap();
    assert!(!data_dir.exists());
    let _ = busy.join().unwrap();
}

/// ScratchServers both parts: started again with [`HOLD`] set, it is the dbdyno that gets killed.
#[test]
fn a_dbdyno_killed_by_9_leaves_no_server() {
    if let Some(folder) = std::env::var_os(HOLD).map(PathBuf::from) {
        let server = started(&spec(&base(POSTGRES), &folder));
        std::fs::write(folder.join("pid.new"), server.pid().to_string()).unwrap();
        std::fs::rename(folder.join("pid.new"), folder.join("pid")).unwrap();
        sleep(Duration::from_secs(600));
        panic!("no one killed the owner");
    }
    let folder = new_folder();
    // What the killed one can no longer remove goes with this folder, which is in /tmp as sockets
    // need short paths.
    let temporary = tempfile::tempdir().unwrap();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "postgres_servers::a_dbdyno_killed_by_9_leaves_no_server"])
        .env(HOLD, folder.path())
        .env("TMPDIR", temporary.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(600);
    let pid = loop {
        if let Ok(text) = std::fs::read_to_string(folder.path().join("pid")) {
            break text.parse().unwrap();
        }
        assert!(
            owner.try_wait().unwrap().is_none() && Instant::now() < deadline,
            "the owner started no server"
        );
        sleep(Duration::from_millis(20));
    };
    assert!(process_is_there(pid));
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until_gone(pid);
    // And its data directory may be used again.
    started(&spec(&base(POSTGRES), folder.path()));
}

#[test]
fn a_database_is_claimed_once_found_again_and_a_foreign_one_is_refused() {
    names_the_owner(POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn databases_of_other_versions_are_claimed_as_well() {
    OTHERS.into_iter().for_each(names_the_owner);
}

fn names_the_owner(wanted: Wanted) {
    let folder = new_folder();
    let server = started(&spec(&base(wanted), folder.path()));
    let options = server.options(Some("postgres"));
    block_on(async {
        let take_ownership = async |name: &str| server.base.family.take_ownership(&options, name).await;
        let name = "load\"'test";
        assert_eq!(take_ownership(name).await.unwrap(), Ownership::Created);
        assert_eq!(take_ownership(name).await.unwrap(), Ownership::Ours);
        let mut session = PostgresSession::connect(&options).await.unwrap();
        session.query(b"CREATE DATABASE production").await.unwrap();
        session.close().await;
        let refused = take_ownership("production").await.unwrap_err();
        assert!(matches!(refused, Error::DatabaseNotOurs { .. }), "{refused}");
        // The error says how to hand a database over; that must work as it is there.
        let message = refused.to_string();
        let statement = &message[message.find("CREATE TABLE").unwrap()..];
        let inside = server.options(Some("production"));
        let mut session = PostgresSession::connect(&inside).await.unwrap();
        session.query(statement.as_bytes()).await.unwrap();
        session.close().await;
        assert_eq!(take_ownership("production").await.unwrap(), Ownership::Ours);
    });
}

/// The port is open to all users of the machine.
#[test]
fn over_tcp_only_the_runs_own_client_is_let_in_and_the_client_trusts_the_runs_own_server_only() {
    lets_in_its_client_only(POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn over_tcp_an_old_server_lets_in_the_runs_own_client_only() {
    lets_in_its_client_only(OTHERS[0]);
}

fn lets_in_its_client_only(wanted: Wanted) {
    let folder = new_folder();
    let certificates = Certificates::new("postgres").unwrap();
    let runtime_dir = RuntimeDir::new().unwrap().with_certificates(&certificates).unwrap();
    let spec = spec(&base(wanted), folder.path());
    let server =
        spec.base.family.start(runtime_dir, &spec, Data::Fresh).unwrap_or_else(|error| panic!("{error}"));
    let come = |options: Options| {
        let session = block_on(PostgresSession::connect(&options));
        session.map(|_| ()).map_err(|error| error.to_string())
    };
    let tcp = server.options(Some("postgres"));
    let of = |certificates: &Certificates, mode| Tls::of_pem(mode, &certificates.for_client()).unwrap();
    assert_eq!(come(tcp.clone().with_tls(of(&certificates, TlsMode::Verify))), Ok(()));
    assert_eq!(come(Options::socket(server.socket(), "postgres")), Ok(()));

    let refusal = |options| come(options).unwrap_err();
    let in_plaintext = refusal(tcp.clone());
    assert!(in_plaintext.contains("no pg_hba.conf entry"), "{in_plaintext}");
    let anyone = TlsSettings { mode: TlsMode::Require, ..TlsSettings::default() };
    let without = refusal(tcp.clone().with_tls(Tls::load(anyone).unwrap()));
    assert!(without.contains("requires a valid client certificate"), "{without}");
    let other = Certificates::new("postgres").unwrap();
    let distrusted = refusal(tcp.clone().with_tls(of(&other, TlsMode::Verify)));
    assert!(distrusted.contains("it is not signed by the authority that it names"), "{distrusted}");
    let stranger = refusal(tcp.with_tls(of(&other, TlsMode::Require)));
    assert!(stranger.contains("certificate"), "{stranger}");
}
