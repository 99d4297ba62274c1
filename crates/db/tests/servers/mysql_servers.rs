//! Tests that initialise, start, query, stop and kill real MariaDB and MySQL servers.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use dbdyno_db::Session;
use dbdyno_db::mysql::MysqlSession;
use dbdyno_db::server::{Base, Error, Ownership, Server, ServerSpec, find_named, list, servers_dir};
use dbdyno_products::mysql;
use tempfile::TempDir;

use crate::support::{
    self, MARIADB, MYSQL, Wanted, base, block_on, first_and_last_cpu, new_folder, process_is_there, spec,
    wait_until_gone, with_options,
};

/// Versions for tests of behaviour that differs between versions. Each entry has a prefix, and the
/// catalogue's name for a server with that prefix.
const OTHERS: [Wanted; 3] = [
    ("mariadb-10.1.", "mariadb-10.1.23"),
    ("mariadb-10.11", "mariadb-10.11-debian"),
    ("mysql-5.6.", "mysql-5.6.24"),
];

/// Environment variable with the server's folder. It is set in the copy of this program that is
/// killed.
const HOLD: &str = "DBDYNO_TEST_HOLD";

/// The base directory `name`; `None` for PostgreSQL, which has its own tests.
fn mysql_named(name: &str) -> Option<Base> {
    Some(find_named(name).unwrap()).filter(|base| base.family.name() == "mysql")
}

/// Gives the spec its own template folder, for tests that need a server to be initialised.
fn with_own_template(spec: ServerSpec, folder: &TempDir) -> ServerSpec {
    ServerSpec { template_dir: folder.path().join("templates"), ..spec }
}

fn ask(server: &Server, sql: &str) -> String {
    support::ask(server, &[sql])
}

#[test]
fn a_build_starts_from_fresh_data_answers_and_stops_cleanly() {
    check_life(&base(MARIADB));
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn every_build_starts_from_fresh_data_answers_and_stops_cleanly() {
    [MYSQL].into_iter().chain(OTHERS).for_each(|wanted| drop(base(wanted)));
    list(&servers_dir()).iter().filter_map(|name| mysql_named(name)).for_each(|base| check_life(&base));
}

fn check_life(base: &Base) {
    let name = &base.title;
    let folder = new_folder();
    let server = Server::start(&with_own_template(spec(base, folder.path()), &folder))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let version = ask(&server, "SELECT VERSION()");
    assert!(version.starts_with(&base.release.to_string()), "{name} says {version}");
    assert_eq!(ask(&server, "SELECT COUNT(*) FROM mysql.user WHERE user=''"), "0", "{name}");
    assert_eq!(ask(&server, "SELECT CURRENT_USER()"), "root@localhost", "{name}");
    assert_eq!(ask(&server, "SELECT @@skip_networking"), "1", "{name}");
    let temporary = PathBuf::from(ask(&server, "SELECT @@tmpdir"));
    check_same_device(&temporary, &server.data_dir);
    let pid = server.pid();
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    assert_eq!(program, base.program.canonicalize().unwrap(), "{name}: the process is not the server itself");
    let stopped = server.stop().unwrap();
    assert_eq!((stopped.code, stopped.killed), (Some(0), false), "{name}: {stopped:?}");
    assert!(!process_is_there(pid), "{name}");
    assert!(!temporary.exists(), "{name}: {} is left", temporary.display());
}

/// Checks that temporary files are on the same device as the data, because dbdyno samples that
/// device.
fn check_same_device(temporary: &Path, data: &Path) {
    assert_eq!((temporary.parent(), temporary.is_dir()), (data.parent(), true), "{}", temporary.display());
    let device = |path: &Path| std::fs::metadata(path).unwrap().dev();
    assert_eq!(device(temporary), device(data));
}

/// The option tmpdir is a list of folders, in which a colon separates two folders.
#[test]
fn a_server_below_a_folder_with_a_colon_notes_its_folder_for_temporary_files() {
    let folder = new_folder();
    let below = folder.path().join("12:30");
    std::fs::create_dir(&below).unwrap();
    let server = Server::start(&spec(&base(MARIADB), &below)).unwrap();
    let temporary = ask(&server, "SELECT @@tmpdir");
    assert_eq!(Path::new(&temporary).parent(), server.socket().parent());
    assert!(server.notes.iter().any(|note| note.contains(&temporary)), "{:?}", server.notes);
}

#[test]
fn a_tmpdir_in_the_option_file_is_used_and_not_removed() {
    let folder = new_folder();
    let own = folder.path().join("own");
    std::fs::create_dir(&own).unwrap();
    let base = base(MYSQL);
    let text = format!("[mysqld]\ntmpdir = {}\n", own.display());
    let server = Server::start(&with_options(&base, folder.path(), &text)).unwrap();
    assert_eq!(ask(&server, "SELECT @@tmpdir"), own.display().to_string());
    assert!(!folder.path().join("data.tmp").exists());
    server.stop().unwrap();
    assert!(own.exists());
}

#[test]
fn the_option_file_applies_to_initialisation() {
    check_initialisation_options(MARIADB);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn the_option_file_applies_to_initialisation_in_other_versions() {
    [MYSQL].into_iter().chain(OTHERS).for_each(check_initialisation_options);
}

fn check_initialisation_options(wanted: Wanted) {
    let text = "[mysqld]\ninnodb_buffer_pool_size = 32M\ninnodb-page-size=8k # needs a template of its own\n\
                datadir=/nowhere\nsocket=/nowhere/s\nlog-error=/nowhere/log\n";
    let folder = new_folder();
    let spec = with_own_template(with_options(&base(wanted), folder.path(), text), &folder);
    let server = Server::start(&spec).unwrap();
    assert_eq!(ask(&server, "SELECT @@innodb_buffer_pool_size"), (32 * 1024 * 1024).to_string());
    assert_eq!(ask(&server, "SELECT @@innodb_page_size"), "8192");
    server.stop().unwrap();
}

#[test]
fn a_server_that_dies_at_start_shows_the_end_of_its_log() {
    [MARIADB, MYSQL].into_iter().for_each(check_death_at_start);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn servers_of_other_versions_that_die_at_start_show_the_end_of_their_logs() {
    OTHERS.into_iter().for_each(check_death_at_start);
}

fn check_death_at_start(wanted: Wanted) {
    let base = base(wanted);
    let folder = new_folder();
    let spec = with_options(&base, folder.path(), "[mysqld]\nno_such_option = 1\n");
    let error = Server::start(&spec).unwrap_err();
    assert!(matches!(error, Error::DiedAtStart { .. }), "{error}");
    let message = error.to_string();
    assert!(message.starts_with(&format!("{} died at start (exit status: ", base.title)), "{message}");
    assert!(message.contains("unknown variable 'no_such_option=1'"), "{message}");
}

#[test]
fn a_server_that_does_not_answer_in_time_is_stopped() {
    let base = base(MYSQL);
    let folder = new_folder();
    let spec = ServerSpec { start_timeout: Duration::ZERO, ..spec(&base, folder.path()) };
    let error = Server::start(&spec).unwrap_err();
    assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
    let mark = std::fs::read_to_string(folder.path().join("data/.dbdyno-data")).unwrap();
    let noted = mark.lines().find_map(|line| line.strip_prefix("server ")).unwrap();
    let pid = noted.split(' ').next().unwrap().parse().unwrap();
    assert!(!process_is_there(pid));
}

#[test]
fn a_data_directory_that_is_not_ours_is_refused_and_left_alone() {
    let base = base(MARIADB);
    let folder = new_folder();
    let precious = folder.path().join("data/ibdata1");
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(&precious, "precious").unwrap();
    let error = Server::start(&spec(&base, folder.path())).unwrap_err();
    assert!(matches!(error, Error::NotOurs { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
}

#[test]
fn a_second_start_on_our_data_directory_begins_with_fresh_data() {
    let base = base(MARIADB);
    let folder = new_folder();
    for _ in 0..2 {
        let server = Server::start(&spec(&base, folder.path())).unwrap();
        let there = "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name='left'";
        assert_eq!(ask(&server, there), "0");
        block_on(async {
            let mut session = MysqlSession::connect(&server.options(None)).await.unwrap();
            session.query(b"CREATE DATABASE `left`").await.unwrap();
        });
        let while_it_runs = Server::start(&spec(&base, folder.path())).unwrap_err();
        assert!(matches!(while_it_runs, Error::StillRunning { .. }), "{while_it_runs}");
        server.stop().unwrap();
    }
}

#[test]
fn a_server_killed_from_outside_is_noticed() {
    let base = base(MYSQL);
    let folder = new_folder();
    let server = Server::start(&spec(&base, folder.path())).unwrap();
    assert!(server.is_running());
    assert!(Command::new("kill").args(["-9", &server.pid().to_string()]).status().unwrap().success());
    let deadline = Instant::now() + Duration::from_secs(600);
    while server.is_running() {
        assert!(Instant::now() < deadline);
        sleep(Duration::from_millis(5));
    }
    let stopped = server.stop().unwrap();
    assert_eq!((stopped.signal, stopped.had_ended, stopped.killed), (Some(9), true, false));
}

#[test]
fn two_servers_run_at_the_same_time_each_on_its_cpus() {
    let folders = [new_folder(), new_folder()];
    let bases = [base(MARIADB), base(MYSQL)];
    let cpus = first_and_last_cpu();
    let servers: Vec<Server> = bases
        .iter()
        .zip(&folders)
        .zip(cpus)
        .map(|((base, folder), cpu)| {
            Server::start(&ServerSpec { cpus: Some(vec![cpu]), ..spec(base, folder.path()) }).unwrap()
        })
        .collect();
    assert_ne!(servers[0].socket(), servers[1].socket());
    for (server, cpu) in servers.iter().zip(cpus) {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
        // A thread that has ended meanwhile has no status file.
        let statuses: Vec<String> = tasks
            .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).ok())
            .collect();
        assert!(statuses.len() > 1, "{statuses:?}");
        for status in statuses {
            assert!(status.contains(&format!("\nCpus_allowed_list:\t{cpu}\n")), "{status}");
        }
    }
    assert!(ask(&servers[0], "SELECT VERSION()").starts_with("11.8."));
    assert!(ask(&servers[1], "SELECT VERSION()").starts_with("8.0."));
}

#[test]
fn a_dropped_server_leaves_no_process_and_no_socket() {
    let base = base(MARIADB);
    let folder = new_folder();
    let server = Server::start(&spec(&base, folder.path())).unwrap();
    let (pid, socket) = (server.pid(), server.socket().to_path_buf());
    assert!(socket.exists());
    drop(server);
    assert!(!process_is_there(pid));
    assert!(!socket.parent().unwrap().exists());
}

/// The test plays both parts: it starts itself again with [`HOLD`] set, and the second process is
/// the dbdyno that is killed.
#[test]
fn a_dbdyno_killed_by_9_leaves_no_server() {
    if let Some(folder) = std::env::var_os(HOLD).map(PathBuf::from) {
        let server = Server::start(&spec(&base(MARIADB), &folder)).unwrap();
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
        .args(["--exact", "mysql_servers::a_dbdyno_killed_by_9_leaves_no_server"])
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
    let spec = spec(&base(MARIADB), folder.path());
    let temporary = spec.data_dir.with_extension("tmp");
    std::fs::write(temporary.join("ibXYZ"), "what a sort has left").unwrap();
    // A new server can use the data directory. Its folder for temporary files is empty and is
    // removed with the server.
    let server = Server::start(&spec).unwrap();
    assert!(temporary.is_dir() && !temporary.join("ibXYZ").exists());
    drop(server);
    assert!(!temporary.exists());
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn myrocks_is_loaded_if_the_build_has_it_and_reported_missing_otherwise() {
    for name in list(&servers_dir()) {
        let Some(base) = mysql_named(&name) else { continue };
        let folder = new_folder();
        let mut spec = spec(&base, folder.path());
        "rocksdb".clone_into(&mut spec.config.engine);
        let has_it = base.has_plugin(&base.family.engine_plugin("rocksdb"));
        match Server::start(&spec) {
            Ok(server) => {
                assert!(has_it && base.product == mysql::MARIADB, "{name}");
                let engines = "SELECT support FROM information_schema.engines WHERE engine='ROCKSDB'";
                assert_eq!(ask(&server, engines), "YES", "{name}");
            }
            Err(error) => assert!(matches!(error, Error::NoPlugin { .. }) && !has_it, "{name}: {error}"),
        }
    }
}

#[test]
fn dbdyno_takes_ownership_of_a_new_database_and_refuses_a_foreign_one() {
    [MARIADB, MYSQL].into_iter().for_each(check_ownership);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn dbdyno_takes_ownership_of_databases_in_other_versions() {
    OTHERS.into_iter().for_each(check_ownership);
}

fn check_ownership(wanted: Wanted) {
    let folder = new_folder();
    let server = Server::start(&spec(&base(wanted), folder.path())).unwrap();
    block_on(async {
        let mut session = MysqlSession::connect(&server.options(None)).await.unwrap();
        let options = server.options(None);
        let take_ownership = async |name: &str| server.base.family.take_ownership(&options, name).await;
        let name = "load`'test";
        assert_eq!(take_ownership(name).await.unwrap(), Ownership::Created);
        assert_eq!(take_ownership(name).await.unwrap(), Ownership::Ours);
        session.query(b"CREATE DATABASE production").await.unwrap();
        let refused = take_ownership("production").await.unwrap_err();
        assert!(matches!(refused, Error::DatabaseNotOurs { .. }), "{refused}");
        // The error contains a statement that hands a database over to dbdyno. The statement must
        // work as it is written.
        let message = refused.to_string();
        let statement = &message[message.find("CREATE TABLE").unwrap()..];
        session.query(statement.as_bytes()).await.unwrap();
        assert_eq!(take_ownership("production").await.unwrap(), Ownership::Ours);
    });
}
