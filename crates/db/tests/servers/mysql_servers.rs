//! Real MariaDB and MySQL servers: initialised, started, asked, stopped, killed and refused.

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

/// What differs between versions is tried with these too: a prefix, and the catalogue's name that
/// gets one.
const OTHERS: [Wanted; 3] = [
    ("mariadb-10.1.", "mariadb-10.1.23"),
    ("mariadb-10.11", "mariadb-10.11-debian"),
    ("mysql-5.6.", "mysql-5.6.24"),
];

/// Set in the copy of this program that is killed, to the folder of its server.
const HOLD: &str = "DBDYNO_TEST_HOLD";

/// The base directory `name`; `None` for PostgreSQL, which has tests of its own.
fn mysql_named(name: &str) -> Option<Base> {
    Some(find_named(name).unwrap()).filter(|base| base.family.name() == "mysql")
}

/// For tests of initialising itself: a template of their own.
fn initialised_here(spec: ServerSpec, folder: &TempDir) -> ServerSpec {
    ServerSpec { template_dir: folder.path().join("templates"), ..spec }
}

fn ask(server: &Server, sql: &str) -> String {
    support::ask(server, &[sql])
}

#[test]
fn a_build_starts_from_fresh_data_answers_and_stops_cleanly() {
    lives(&base(MARIADB));
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn every_build_starts_from_fresh_data_answers_and_stops_cleanly() {
    [MYSQL].into_iter().chain(OTHERS).for_each(|wanted| drop(base(wanted)));
    list(&servers_dir()).iter().filter_map(|name| mysql_named(name)).for_each(|base| lives(&base));
}

fn lives(base: &Base) {
    let name = &base.title;
    let folder = new_folder();
    let server = Server::start(&initialised_here(spec(base, folder.path()), &folder))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let version = ask(&server, "SELECT VERSION()");
    assert!(version.starts_with(&base.release.to_string()), "{name} says {version}");
    assert_eq!(ask(&server, "SELECT COUNT(*) FROM mysql.user WHERE user=''"), "0", "{name}");
    assert_eq!(ask(&server, "SELECT CURRENT_USER()"), "root@localhost", "{name}");
    assert_eq!(ask(&server, "SELECT @@skip_networking"), "1", "{name}");
    let temporary = PathBuf::from(ask(&server, "SELECT @@tmpdir"));
    is_next_to(&temporary, &server.data_dir);
    let pid = server.pid();
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    assert_eq!(program, base.program.canonicalize().unwrap(), "{name}: the process is not the server itself");
    let stopped = server.stop().unwrap();
    assert_eq!((stopped.code, stopped.killed), (Some(0), false), "{name}: {stopped:?}");
    assert!(!process_is_there(pid), "{name}");
    assert!(!temporary.exists(), "{name}: {} is left", temporary.display());
}

/// Sorts and temporary tables are on the device of the data, which is sampled.
fn is_next_to(temporary: &Path, data: &Path) {
    assert_eq!((temporary.parent(), temporary.is_dir()), (data.parent(), true), "{}", temporary.display());
    let device = |path: &Path| std::fs::metadata(path).unwrap().dev();
    assert_eq!(device(temporary), device(data));
}

/// A colon in a path would end the name of a folder in the list that tmpdir is.
#[test]
fn below_a_folder_with_a_colon_a_server_starts_and_says_where_its_temporary_files_lie() {
    let folder = new_folder();
    let below = folder.path().join("12:30");
    std::fs::create_dir(&below).unwrap();
    let server = Server::start(&spec(&base(MARIADB), &below)).unwrap();
    let temporary = ask(&server, "SELECT @@tmpdir");
    assert_eq!(Path::new(&temporary).parent(), server.socket().parent());
    assert!(server.notes.iter().any(|note| note.contains(&temporary)), "{:?}", server.notes);
}

#[test]
fn a_folder_for_temporary_files_of_the_option_file_is_left_alone() {
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
fn the_option_file_holds_also_for_what_only_initialising_can_set() {
    initialises_by_option_file(MARIADB);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn the_option_file_holds_also_for_what_only_initialising_can_set_in_other_servers() {
    [MYSQL].into_iter().chain(OTHERS).for_each(initialises_by_option_file);
}

fn initialises_by_option_file(wanted: Wanted) {
    let text = "[mysqld]\ninnodb_buffer_pool_size = 32M\ninnodb-page-size=8k # needs a template of its own\n\
                datadir=/nowhere\nsocket=/nowhere/s\nlog-error=/nowhere/log\n";
    let folder = new_folder();
    let spec = initialised_here(with_options(&base(wanted), folder.path(), text), &folder);
    let server = Server::start(&spec).unwrap();
    assert_eq!(ask(&server, "SELECT @@innodb_buffer_pool_size"), (32 * 1024 * 1024).to_string());
    assert_eq!(ask(&server, "SELECT @@innodb_page_size"), "8192");
    server.stop().unwrap();
}

#[test]
fn a_server_that_dies_at_start_shows_the_end_of_its_log() {
    [MARIADB, MYSQL].into_iter().for_each(dies_at_start);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn servers_of_other_versions_that_die_at_start_show_the_end_of_their_logs() {
    OTHERS.into_iter().for_each(dies_at_start);
}

fn dies_at_start(wanted: Wanted) {
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
fn a_second_start_on_our_data_directory_begins_from_nothing() {
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
fn two_servers_run_side_by_side_each_on_its_cpus() {
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
        // A thread that ends meanwhile has no status.
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
fn a_dropped_value_leaves_no_process_and_no_socket() {
    let base = base(MARIADB);
    let folder = new_folder();
    let server = Server::start(&spec(&base, folder.path())).unwrap();
    let (pid, socket) = (server.pid(), server.socket().to_path_buf());
    assert!(socket.exists());
    drop(server);
    assert!(!process_is_there(pid));
    assert!(!socket.parent().unwrap().exists());
}

/// ScratchServers both parts: started again with [`HOLD`] set, it is the dbdyno that gets killed.
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
    // What the killed one can no longer remove goes with this folder, which is in /tmp as sockets
    // need short paths.
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
    // And its data directory may be used again, with empty temporary files, which go with the
    // server.
    let server = Server::start(&spec).unwrap();
    assert!(temporary.is_dir() && !temporary.join("ibXYZ").exists());
    drop(server);
    assert!(!temporary.exists());
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn myrocks_is_loaded_where_the_build_has_it_and_named_where_not() {
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
fn a_database_is_claimed_once_found_again_and_a_foreign_one_is_refused() {
    [MARIADB, MYSQL].into_iter().for_each(names_the_owner);
}

#[test]
#[ignore = "in cargo xtask test --all: every version"]
fn databases_of_other_versions_are_claimed_as_well() {
    OTHERS.into_iter().for_each(names_the_owner);
}

fn names_the_owner(wanted: Wanted) {
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
        // The error says how to hand a database over; that must work as it is there.
        let message = refused.to_string();
        let statement = &message[message.find("CREATE TABLE").unwrap()..];
        session.query(statement.as_bytes()).await.unwrap();
        assert_eq!(take_ownership("production").await.unwrap(), Ownership::Ours);
    });
}
