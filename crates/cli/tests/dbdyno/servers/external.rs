//! Tests servers that dbdyno did not start: it logs in with a password, gets a database, and leaves
//! the rest of the server alone.

use std::path::Path;

use dbdyno_db::server::{Server, ServerSpec, find_named};
use dbdyno_record::Run;

use crate::servers::shared::{self, MARIADB, MYSQL};
use crate::servers::watch::{ask, server};
use crate::servers::{require, small_plan};
use crate::support::{Desk, Ended, faults, findings, templates};

pub(crate) const PASSWORD: &str = "Sw0rdfish-of-the-test";
const VARIABLE: &str = "DBDYNO_TEST_PASSWORD";

/// Starts a server that counts as someone else's. Its user `bench` has a password and may create
/// databases.
pub(crate) fn external_server(desk: &Desk, prefix: &str) -> Server {
    let base = find_named(&require(prefix)).unwrap();
    let spec = ServerSpec::new(&base, None, &desk.path("theirs"), templates()).unwrap();
    let server = Server::start(&spec).unwrap();
    add_user(&server);
    server
}

/// Adds a user `bench` who has a password and may create databases.
pub(crate) fn add_user(server: &Server) {
    let create = format!("CREATE USER bench@localhost IDENTIFIED BY '{PASSWORD}'");
    ask(&server.options(None), &[&create, "GRANT ALL ON *.* TO bench@localhost"]);
}

pub(crate) fn address(server: &Server, database: &str) -> String {
    shared::address(server, "bench", database)
}

/// Runs a plan against `database` on `server`, with `password` in the environment if there is one.
fn run(desk: &Desk, server: &Server, database: &str, password: Option<&str>) -> Ended {
    let address = address(server, database);
    let variant =
        format!("[[variant]]\nname = \"theirs\"\naddress = \"{address}\"\npassword_env = \"{VARIABLE}\"\n");
    desk.write("p.toml", &small_plan(&variant, ""));
    let mut command = desk.command(&["run", "p.toml"]);
    match password {
        Some(password) => command.env(VARIABLE, password),
        None => command.env_remove(VARIABLE),
    };
    let ended = desk.ended(&mut command);
    assert!(!format!("{ended:?}").contains(PASSWORD), "the password is shown: {ended:?}");
    ended
}

fn no_file_holds_the_password(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            no_file_holds_the_password(&path);
        } else {
            let text = std::fs::read(&path).unwrap();
            let holds = text.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
            assert!(!holds, "{} holds the password", path.display());
        }
    }
}

#[test]
fn a_mysql_address_works_and_its_server_is_left_running() {
    let (desk, server, database) = (Desk::new(), &*MYSQL, &*shared::database());
    run(&desk, server, database, Some(PASSWORD)).expect_ok();
    let dir = desk.run_dir();
    let findings = findings(&dir);
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 1));
    assert!(findings.variants[0].external);
    let cell = &Run::open(&dir).unwrap().cells[0];
    // The socket shows which process's CPU time to read, without any privilege on that server.
    assert_eq!(self::server(cell).unwrap().pid, Some(server.pid()));
    let cost = &findings.workloads[0].steps[0].variants[0].runs[0].cost;
    assert!(cost.server_cpu_us.is_some_and(|cpu| cpu > 0.0), "{cost:?}");
    no_file_holds_the_password(&dir);

    assert!(server.is_running(), "dbdyno stopped a server that is not its own");
    assert!(server.data_dir.join(database).is_dir());
    let marks = ask(&server.options(Some(database)), &["SELECT COUNT(*) FROM dbdyno_mark"]);
    assert_eq!(marks, [[Some("1".to_owned())]]);
    // The database is marked as dbdyno's, so it may be filled again.
    std::fs::rename(desk.path("runs"), desk.path("runs-before")).unwrap();
    run(&desk, server, database, Some(PASSWORD)).expect_ok();
    assert!(server.is_running());
}

#[test]
fn a_database_without_marker_is_refused_and_a_wrong_password_is_not_shown() {
    let (desk, server) = (Desk::new(), &*MARIADB);
    let [shop, bench] = [0; 2].map(|_| shared::database());
    ask(
        &server.options(None),
        &[
            &format!("CREATE DATABASE {shop}"),
            &format!("CREATE TABLE {shop}.orders (id INT)"),
            &format!("INSERT INTO {shop}.orders VALUES (7)"),
        ],
    );
    let said = |ended: &Ended| {
        let text = desk.refusal(ended).replace(server.socket().to_str().unwrap(), "SOCKET");
        text.replace(&shop, "SHOP").replace(&bench, "BENCH")
    };

    let ended = run(&desk, server, &shop, Some(PASSWORD));
    insta::assert_snapshot!(said(&ended), @"exit 4: error: variant theirs: database SHOP exists and is not marked as dbdyno's, so it is left alone; name one that does not exist, or hand it over with: CREATE TABLE `SHOP`.dbdyno_mark (created DATETIME NOT NULL PRIMARY KEY, tool VARCHAR(40) NOT NULL)");
    let orders = ask(&server.options(Some(&shop)), &["SELECT id FROM orders"]);
    assert_eq!(orders, [[Some("7".to_owned())]]);
    let tables = format!("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{shop}'");
    assert_eq!(ask(&server.options(None), &[&tables]), [[Some("1".to_owned())]]);

    let ended = run(&desk, server, &bench, Some("a wrong one"));
    insta::assert_snapshot!(said(&ended), @"exit 4: error: variant theirs: looking for database BENCH: connecting to SOCKET as bench: server said: Access denied for user 'bench'@'localhost' (using password: YES); check the user and where its password comes from (1045)");
    let ended = run(&desk, server, &bench, None);
    insta::assert_snapshot!(said(&ended), @"exit 2: error: variant theirs: credentials: the environment variable DBDYNO_TEST_PASSWORD, which should hold the password, is not set");
    assert!(server.is_running() && desk.run_dirs().is_empty());
}
