//! Tests encrypted connections from the plan to the report.

use dbdyno_record::{CellEvent, ConnectionClass, Run};

#[allow(dead_code, reason = "shared with the drivers' tests, which use all of it")]
#[path = "../../../../db/tests/mysql_servers/server.rs"]
mod tcp_server;

use crate::servers::watch::ask;
use crate::servers::{
    MARIADB_10_11, MYSQL_5_6, MYSQL_8_0, POSTGRES_9_6, POSTGRES_15, POSTGRES_18, small_plan, variant,
};
use crate::support::{Desk, faults, findings, texts};

/// The encryption on which MySQL 8.0 and rustls agree.
const AGREED: &str = "TLSv1.3 TLS_AES_256_GCM_SHA384";

/// The classes of connections that agreed on `AGREED`, and those in plaintext, in the cell of
/// `variant`.
fn classes(run: &Run, variant: &str) -> (Vec<String>, Vec<String>) {
    let cell = run.cells.iter().find(|cell| cell.id.variant == variant).unwrap();
    let Some(CellEvent::Ended { connections, .. }) = cell.events.last() else {
        panic!("no end of {variant}")
    };
    let names = |wanted: &dyn Fn(&ConnectionClass) -> bool| {
        connections.iter().filter(|found| wanted(found)).map(|found| found.class.clone()).collect()
    };
    let agreed = |found: &ConnectionClass| {
        found.tls_version.clone().zip(found.cipher.clone()).is_some_and(|(a, b)| format!("{a} {b}") == AGREED)
    };
    (names(&agreed), names(&|found| found.tls_version.is_none()))
}

#[test]
#[ignore = "in cargo xtask test --all: a server of its own"]
fn the_encryption_of_tcp_connections_is_recorded_and_a_difference_gives_a_warning() {
    let base = tcp_server::bases::required(MYSQL_8_0).pop().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(tcp_server::Server::start_with(&base, &[]));
    ask(&server.root(), &["CREATE USER bench@'127.0.0.1'", "GRANT ALL ON *.* TO bench@'127.0.0.1'"]);
    let desk = Desk::new();
    let address = |name: &str, database: &str, more: &str| {
        format!(
            "[[variant]]\nname = \"{name}\"\naddress = \"mysql://bench@127.0.0.1:{}/{database}\"\n{more}\n",
            server.port
        )
    };
    let variants = address("clear", "a", "") + &address("tls", "b", "tls = { mode = \"require\" }");
    desk.write("p.toml", &small_plan(&variants, ""));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    let dir = desk.run_dir();
    let findings = findings(&dir);
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2));
    let run = Run::open(&dir).unwrap();
    let all = ["conductor", "delete", "index", "insert", "query", "status"].map(str::to_owned).to_vec();
    assert_eq!(classes(&run, "tls"), (all, Vec::new()));
    assert_eq!(classes(&run, "clear"), (Vec::new(), Vec::new()));
    let warning = format!(
        "Encryption of connections differs, which affects every ratio: clear: in plaintext; tls: {AGREED}."
    );
    assert!(texts(&findings).contains(&warning), "{:?}", texts(&findings));
    let words = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("connections {AGREED}")), "{}", ended.out);
    let html = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(html.contains(AGREED));
}

/// The plan configures no certificates. After a restart the server must be reachable at the same
/// port.
#[test]
#[ignore = "in cargo xtask test --all: other versions, restarts servers"]
fn servers_that_dbdyno_starts_speak_tls_with_the_runs_own_certificates() {
    let desk = Desk::new();
    let mut variants = variant("pg-old", POSTGRES_9_6, "tls = { mode = \"prefer\" }");
    variants += &variant("mysql", MYSQL_8_0, "tls = { mode = \"require\" }");
    for (name, prefix) in [("pg", POSTGRES_18), ("maria", MARIADB_10_11), ("mysql-proven", MYSQL_8_0)] {
        variants += &variant(name, prefix, "tls = {}");
    }
    let workload = "[workload.oltp]\ntests = [\"read-write\"]\ntables = 1\ntable_size = 500\nconnections = [2]\n\
                    events = 200\nsettle_wait = \"0s\"\ndata = \"restart\"\n";
    desk.write("p.toml", &format!("name = \"test\"\n{variants}{workload}"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let findings = findings(&dir);
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 5));
    for variant in &findings.variants {
        let encryption = variant.encryption.as_deref().unwrap_or("nothing");
        assert!(encryption.starts_with("TLSv1.3 "), "{}: {encryption}", variant.name);
    }
    let run = Run::open(&dir).unwrap();
    assert_eq!(classes(&run, "pg").1, Vec::<String>::new(), "in plaintext");
    let deviations = &run.manifest.workloads[0].deviations;
    assert!(
        !deviations.iter().any(|found| found.topic == "transport"),
        "PostgreSQL with TLS has TCP, as the original"
    );
    no_key_is_left(&dir);
}

fn no_key_is_left(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            no_key_is_left(&entry.path());
        } else {
            let text = std::fs::read(entry.path()).unwrap();
            assert!(!String::from_utf8_lossy(&text).contains("PRIVATE KEY"), "{}", entry.path().display());
        }
    }
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn connections_that_cannot_be_encrypted_are_refused_with_the_remedy() {
    let desk = Desk::new();
    let refused = |variant: &str| {
        desk.write("p.toml", &small_plan(variant, ""));
        desk.refusal(&desk.dbdyno(&["run", "p.toml"]))
    };
    insta::assert_snapshot!(refused(&variant("a", POSTGRES_15, "tls = { ca = \"ca.pem\" }")), @"exit 2: error: variant a: dbdyno makes the certificates of a PostgreSQL that it starts, and checks them; leave ca, cert and key out of tls, and ssl_cert_file out of own_config");
    insta::assert_snapshot!(refused(&variant("a", MYSQL_8_0, "tls = { ca = \"absent.pem\" }")), @"exit 2: error: variant a: TLS: cannot read certificates from FOLDER/absent.pem: I/O error: No such file or directory (os error 2)");
    desk.write("p.toml", &small_plan(&variant("a", MYSQL_5_6, "tls = { mode = \"require\" }"), ""));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    let said = format!("{}{}", ended.out, ended.err);
    assert!(said.contains("the server does not offer TLS, which the plan requires"), "{said}");
}
