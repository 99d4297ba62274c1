//! Tests features that only PostgreSQL has: addresses and password files, plan keys that do not
//! apply, text, and ids beyond 31 bits.

use dbdyno_db::postgres::{Options, PostgresSession};
use dbdyno_db::server::{Server, ServerSpec, find_named};
use dbdyno_db::{Session, first_i64};
use dbdyno_record::Run;

use crate::servers::shared::{self, POSTGRES};
use crate::servers::watch::answer;
use crate::servers::{POSTGRES_9_6, POSTGRES_15, POSTGRES_18, require, small_plan, variant};
use crate::support::{Desk, faults, findings, templates};

pub(crate) const PASSWORD: &str = "Sw0rdfish:of the test";

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
    number(&server.options(None), &format!("CREATE ROLE bench LOGIN CREATEDB PASSWORD '{PASSWORD}'"));
    let rules = server.data_dir.join("pg_hba.conf");
    std::fs::write(rules, "local all postgres trust\nlocal all all md5\n").unwrap();
    number(&server.options(None), "SELECT pg_reload_conf()");
}

/// The number that `sql` returns, if it returns one.
pub(crate) fn number(options: &Options, sql: &str) -> Option<i64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut session = PostgresSession::connect(options).await.unwrap();
        let rows = answer(&mut session, sql).await;
        session.close().await;
        first_i64(&rows)
    })
}

#[test]
fn an_address_works_with_a_password_file_and_its_server_is_left_running() {
    works_with_a_password_file(&POSTGRES);
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn an_address_of_an_older_or_newer_postgres_works_too() {
    for prefix in [POSTGRES_9_6, POSTGRES_18] {
        works_with_a_password_file(&external_server(&Desk::new(), prefix));
    }
}

/// Checks that dbdyno leaves the server running, and that it leaves a database alone that is not
/// marked as its own.
fn works_with_a_password_file(server: &Server) {
    let desk = Desk::new();
    let [load, shop] = [0; 2].map(|_| shared::database());
    let escaped = PASSWORD.replace(':', "\\:");
    let pass_file = desk.write("pass", &format!("localhost:5432:*:bench:{escaped}\n"));
    std::fs::set_permissions(&pass_file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let plan = |database: &str| {
        let address = shared::address(server, "bench", database);
        let theirs =
            format!("[[variant]]\nname = \"theirs\"\naddress = \"{address}\"\noption_file = \"pass\"\n");
        small_plan(&theirs, "")
    };
    desk.write("p.toml", &plan(&load));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let dir = desk.run_dir();
    let findings = findings(&dir);
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 1));
    assert!(findings.variants[0].external);
    assert!(server.is_running(), "dbdyno stopped a server that is not its own");
    assert_eq!(number(&server.options(Some(&load)), "SELECT count(*) FROM dbdyno_mark"), Some(1));

    number(&server.options(None), &format!("CREATE DATABASE {shop} OWNER bench"));
    desk.write("q.toml", &plan(&shop));
    let refused = desk.refusal(&desk.dbdyno(&["run", "q.toml"])).replace(&shop, "SHOP");
    insta::allow_duplicates! {
        insta::assert_snapshot!(refused, @"exit 4: error: variant theirs: database SHOP exists and is not marked as dbdyno's, so it is left alone; name one that does not exist, or hand it over with: (connected to it) CREATE TABLE dbdyno_mark (created timestamp NOT NULL PRIMARY KEY, tool varchar(40) NOT NULL)");
    }
    desk.write("pass", "localhost:5432:*:bench:wrong\n");
    let socket = server.socket().to_str().unwrap();
    let refused =
        desk.refusal(&desk.dbdyno(&["run", "p.toml"])).replace(socket, "SOCKET").replace(&load, "LOAD");
    insta::allow_duplicates! {
        insta::assert_snapshot!(refused, @r#"exit 4: error: variant theirs: looking for database LOAD: connecting to SOCKET as bench, database LOAD: server said: password authentication failed for user "bench"; check the user, where its password comes from, and the server's pg_hba.conf (28P01)"#);
    }
}

#[test]
fn options_of_other_products_are_refused_before_anything_runs() {
    for option in [
        "engine = \"innodb\"",
        "client_charset = \"latin1\"",
        "column_definitions = \"always\"",
        "deprecate_eof = true",
        "session_track = false",
    ] {
        let desk = Desk::new();
        desk.write("p.toml", &small_plan(&variant("a", POSTGRES_15, &format!("options.{option}")), ""));
        let text = desk.refusal(&desk.dbdyno(&["run", "p.toml"]));
        let (key, _) = option.split_once(' ').unwrap();
        let wanted = format!("variant `a` has options.{key}, and a PostgreSQL server has no options");
        assert!(text.starts_with("exit 2: ") && text.ends_with(&wanted), "{text}");
    }
}

#[test]
#[ignore = "in cargo xtask test --all: other versions"]
fn every_protocol_and_kind_of_arrivals_and_ids_beyond_31_bits_are_valid() {
    let desk = Desk::new();
    for (protocol, arrivals) in [("auto", "poisson"), ("text", "burst"), ("prepared", "burst")] {
        let options = format!(
            "protocol = \"{protocol}\"\narrivals = \"{arrivals}\"\nfirst_id = 3_000_000_000\nread_write_time = \"2s\"\n\
             create_table_options = \"WITH (fillfactor = 80)\""
        );
        let variants = variant("old", POSTGRES_9_6, "") + &variant("new", POSTGRES_15, "");
        desk.write("p.toml", &small_plan(&variants, &options));
        desk.dbdyno(&["run", "p.toml"]).expect_ok();
        let dir = desk.run_dir();
        let findings = findings(&dir);
        assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 2), "{protocol}");
        let run = Run::open(&dir).unwrap();
        for kind in run.cells.iter().flat_map(|cell| &cell.steps).flat_map(|step| &step.spec.kinds) {
            let expected = match (protocol, kind.kind.as_str()) {
                (_, "index") | ("auto", "insert" | "delete") => "text",
                ("auto", _) => "prepared",
                _ => protocol,
            };
            assert_eq!(kind.protocol, expected, "{protocol}: {kind:?}");
        }
        let mut deviations = run.manifest.workloads[0].deviations.iter();
        assert!(deviations.any(|found| found.topic == "transport"), "the original has TCP");
        std::fs::rename(desk.path("runs"), desk.path(protocol)).unwrap();
    }
}
