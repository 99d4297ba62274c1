//! Tests that initialise, start, query, stop and kill real PostgreSQL servers.

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

/// Versions for tests of behaviour that differs between versions. Each entry has a prefix, and the
/// catalogue's name for a server with that prefix.
const OTHERS: [Wanted; 2] = [("pg-9.6.", "pg-9.6.24"), ("pg-18.", "pg-18.6")];

/// Environment variable with the server's folder. It is set in the copy of this program that is
/// killed.
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
    check_life(&base(POSTGRES));
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn every_build_starts_from_fresh_data_answers_and_stops_cleanly() {
    OTHERS.into_iter().for_each(|wanted| drop(base(wanted)));
    list(&servers_dir()).iter().filter_map(|name| postgres_named(name)).for_each(|base| check_life(&base));
}

fn check_life(base: &Base) {
    let name = &base.title;
    let folder = new_folder();
    // The test has its own template folder, so that the server is initialised.
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
fn the_plans_settings_apply_except_for_paths_and_network() {
    check_settings(POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn the_plans_settings_apply_in_other_versions() {
    OTHERS.into_iter().for_each(check_settings);
}

fn check_settings(wanted: Wanted) {
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
fn a_server_that_dies_at_start_shows_the_end_of_its_log() {
    check_death_at_start(POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn servers_of_other_versions_that_die_at_start_show_the_end_of_their_logs() {
    OTHERS.into_iter().for_each(check_death_at_start);
}

fn check_death_at_start(wanted: Wanted) {
    let folder = new_folder();
    let spec = with_options(&base(wanted), folder.path(), "shared_bufers = 1GB\n");
    let error = Server::start(&spec).unwrap_err();
    assert!(matches!(error, Error::DiedAtStart { .. }), "{error}");
    assert!(error.to_string().contains("shared_bufers"), "{error}");
}

#[test]
fn data_of_others_are_refused_and_stay() {
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
        // A process may have ended meanwhile.
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        assert!(status.contains(&format!("\nCpus_allowed_list:\t{cpu}\n")), "{status}");
    }
}

#[test]
fn a_dropped_server_leaves_no_process_and_no_socket() {
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

/// The first process is killed in the middle of a statement. The other processes continue for a
/// moment, and the data directory is removed only when they have ended.
#[test]
fn a_killed_servers_data_stay_until_its_last_process_has_ended() {
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

/// The test plays both parts: it starts itself again with [`HOLD`] set, and the second process is
/// the dbdyno that is killed.
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
    // This folder has the files that the killed process can no longer remove. It is in /tmp,
    // because sockets need short paths.
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
    // A new server can use the data directory.
    started(&spec(&base(POSTGRES), folder.path()));
}

#[test]
fn dbdyno_takes_ownership_of_a_new_database_and_refuses_a_foreign_one() {
    check_ownership(POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn dbdyno_takes_ownership_of_databases_in_other_versions() {
    OTHERS.into_iter().for_each(check_ownership);
}

fn check_ownership(wanted: Wanted) {
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
        // The error contains a statement that hands a database over to dbdyno. The statement must
        // work as it is written.
        let message = refused.to_string();
        let statement = &message[message.find("CREATE TABLE").unwrap()..];
        let inside = server.options(Some("production"));
        let mut session = PostgresSession::connect(&inside).await.unwrap();
        session.query(statement.as_bytes()).await.unwrap();
        session.close().await;
        assert_eq!(take_ownership("production").await.unwrap(), Ownership::Ours);
    });
}

/// All users of the machine can connect to the port.
#[test]
fn over_tcp_server_and_client_accept_only_certificates_of_the_same_run() {
    check_mutual_tls(POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn over_tcp_an_old_server_accepts_only_the_client_of_the_same_run() {
    check_mutual_tls(OTHERS[0]);
}

fn check_mutual_tls(wanted: Wanted) {
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
