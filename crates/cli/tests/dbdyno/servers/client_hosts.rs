//! Tests several client hosts on a real server. The server's log shows that each connection sends
//! exactly what it sends from a single host.

use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;

use dbdyno_record::{Check, Run};

use crate::servers::MARIADB_10_1;
use crate::servers::external::{PASSWORD, external_server};
use crate::servers::sent::{StatementForm, of_mariadb};
use crate::servers::watch::ask;
use crate::support::{Desk, faults_but_times, findings};

/// Opens a TCP port that leads to the socket, because the tests' servers listen only on sockets.
fn port_to(socket: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for client in listener.incoming().map(Result::unwrap) {
            let server = UnixStream::connect(&socket).unwrap();
            client.set_nodelay(true).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            let (mut from, mut to) = (server, client);
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    port
}

/// The statements of each test connection, sorted so that the connections' order does not matter,
/// and the results of the checks after each step.
type Done = (Vec<Vec<String>>, Vec<Vec<Check>>);

fn done_by(hosts: usize) -> Done {
    let desk = Desk::new();
    let server = external_server(&desk, MARIADB_10_1);
    ask(
        &server.options(None),
        &["SET GLOBAL general_log_file = 'general.log'", "SET GLOBAL general_log = ON"],
    );
    let port = port_to(server.socket().to_owned());
    let hosts = vec!["127.0.0.1"; hosts];
    let clients = format!("[clients]\nhosts = {hosts:?}\nstart = {:?}\n", env!("CARGO_BIN_EXE_dbdyno"));
    let clients = if hosts.is_empty() { String::new() } else { clients };
    let text = format!(
        "name = \"test\"\n{clients}[[variant]]\nname = \"a\"\naddress = \"mysql://bench@127.0.0.1:{port}/bench\"\n\
         password_env = \"PASSWORD\"\n[workload.oltp]\ntests = [\"read-only\", \"update-non-index\", \"insert\"]\nconnections = [5]\n\
         tables = 2\ntable_size = 500\nload_connections = 1\nsettle_wait = \"0s\"\nevents = 47\n"
    );
    desk.write("p.toml", &text);
    desk.ended(desk.command(&["run", "p.toml"]).env("PASSWORD", PASSWORD)).expect_ok();
    let dir = desk.run_dir();
    assert_eq!(faults_but_times(&findings(&dir)), [""; 0]);
    let log = std::fs::read(server.data_dir.join("general.log")).unwrap();
    let sessions = of_mariadb(&String::from_utf8_lossy(&log)).into_iter();
    // Test connections execute prepared statements. The conductor's connections run other
    // statements on the tables.
    let is_of_test = |sql: &str| ["BEGIN", "COMMIT"].contains(&sql) || sql.contains("sbtest");
    let sent = sessions.filter(|session| {
        session
            .sent
            .iter()
            .any(|sent| sent.form == StatementForm::Executed || sent.sql.starts_with("INSERT INTO sbtest"))
    });
    let mut sent: Vec<Vec<String>> = sent
        .map(|session| session.done().map(|sent| sent.sql.clone()).filter(|sql| is_of_test(sql)).collect())
        .collect();
    sent.sort();
    let cell = Run::open(&dir).unwrap().cells.remove(0);
    let checks = |step: &dbdyno_record::StepRecord| {
        step.checks().into_iter().cloned().map(|check| Check { duration_us: 0, ..check }).collect()
    };
    (sent, cell.steps.iter().map(checks).collect())
}

#[test]
#[ignore = "in cargo xtask test --all: another version"]
fn three_hosts_send_exactly_what_one_does() {
    let (alone, of_three) = (done_by(0), done_by(3));
    // One connection loads, and each test has five connections.
    assert_eq!(alone.0.len(), 1 + 3 * 5);
    assert!(alone.0.iter().all(|sent| !sent.is_empty()));
    assert_eq!(alone, of_three);
}
