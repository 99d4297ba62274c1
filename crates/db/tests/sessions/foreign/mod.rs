//! Tests with servers that speak a product's protocol but are not that product. They check the
//! names that dbdyno gives such servers, and how it works without the statements that they do not
//! support.

mod server;

use dbdyno_db::mysql::Options;
use dbdyno_db::{
    Capabilities, DatabaseAddress, DatabaseServer, DeleteForm, Description, IndexDdl, IndexHint, KeySource,
    RowStream, describe, mysql, postgres, status,
};

use server::Script;

fn mysql_server(version: &'static str, script: Script) -> DatabaseServer {
    let login = Options::tcp("127.0.0.1", server::mysql(version, script), "bench");
    let capabilities = mysql::capabilities("innodb", false);
    DatabaseServer { address: DatabaseAddress::Mysql(login.with_database("bench")), capabilities }
}

fn postgres_server(version: &'static str, script: Script) -> DatabaseServer {
    let login = Options::tcp("127.0.0.1", server::postgres(version, script), "bench");
    let capabilities = postgres::capabilities();
    DatabaseServer { address: DatabaseAddress::Postgres(login.with_database("bench")), capabilities }
}

async fn described(database_server: &DatabaseServer) -> Description {
    let mut session = database_server.connect().await.unwrap_or_else(|error| panic!("{error}"));
    describe(&mut session).await.unwrap_or_else(|error| panic!("{error}"))
}

/// The server's name, version and version text: `TiDB 7.5.0: 8.0.11-TiDB-v7.5.0`.
async fn named(database_server: &DatabaseServer) -> String {
    let Description { product, version: [major, minor, patch], version_text, foreign, .. } =
        described(database_server).await;
    let mark = if foreign.is_some() { "" } else { " itself" };
    format!("{product}{mark} {major}.{minor}.{patch}: {version_text}")
}

/// Settings in MySQL's answers. A good imitation has the same settings.
const MYSQL_SETTINGS: &[&[&str]] = &[
    &["datadir", "/data"],
    &["plugin_dir", "/plugins"],
    &["version_comment", "MySQL Community Server - GPL"],
    &["version_compile_machine", "x86_64"],
    &["version_compile_os", "Linux"],
    &["default_storage_engine", "InnoDB"],
];

const MYSQL: Script = &[
    ("SELECT VERSION()", &[&["8.0.31"]]),
    ("SHOW GLOBAL VARIABLES", MYSQL_SETTINGS),
    ("information_schema.PLUGINS", &[&["1"]]),
    ("CONNECTION_ID()", &[&["7", "dbdyno"]]),
    ("SHOW ENGINES", &[&["InnoDB", "DEFAULT"]]),
];

/// MySQL's script except for its plugins.
const IMITATION: Script =
    &[MYSQL[0], MYSQL[1], ("information_schema.PLUGINS", &[&["0"]]), MYSQL[3], MYSQL[4]];

const TIDB: Script = &[
    ("SELECT VERSION()", &[&["8.0.11-TiDB-v7.5.0"]]),
    MYSQL[1],
    MYSQL[2],
    ("CONNECTION_ID()", &[&["2199023255559", "dbdyno"]]),
    ("CREATE TABLE", &[]),
    ("INSERT", &[]),
    ("DROP TABLE", &[]),
    ("BEGIN", &[]),
    ("COMMIT", &[]),
    ("ADD INDEX dbdyno_b (b), ADD INDEX", &[]),
    ("FORCE INDEX", &[]),
];

const PROXYSQL: Script = &[
    MYSQL[0],
    MYSQL[1],
    MYSQL[2],
    ("select @@version_comment limit 1", &[&["(ProxySQL)"]]),
    ("CONNECTION_ID()", &[&["99", "dbdyno"]]),
];

const MYSQL_BEHIND: Script =
    &[MYSQL[0], MYSQL[1], MYSQL[2], ("CONNECTION_ID()", &[&["99", "dbdyno"]]), MYSQL[4]];

#[tokio::test]
async fn a_server_with_mysqls_protocol_gets_the_name_that_it_reports() {
    let all = [
        named(&mysql_server("8.0.31", MYSQL)).await,
        named(&mysql_server("8.0.31", IMITATION)).await,
        named(&mysql_server("8.0.11-TiDB-v7.5.0", TIDB)).await,
        named(&mysql_server("8.0.11", PROXYSQL)).await,
        named(&mysql_server("8.0.31", MYSQL_BEHIND)).await,
        named(&mysql_server("5.7.0-something", &[])).await,
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    MySQL itself 8.0.31: 8.0.31
    unknown server that speaks MySQL's protocol 8.0.31: 8.0.31
    TiDB 7.5.0: 8.0.11-TiDB-v7.5.0
    ProxySQL 0.0.0: 8.0.31 (ProxySQL)
    proxy or pooler in front of MySQL 8.0.31: 8.0.31
    unknown server that speaks MySQL's protocol 5.7.0: 5.7.0-something
    ");
}

const POSTGRES_SETTINGS: &[&[&str]] = &[
    &["block_size", "8192"],
    &["server_version", "15.19"],
    &["server_version_num", "150019"],
    &["shared_buffers", "128MB"],
    &["wal_segment_size", "16MB"],
];

const POSTGRES: Script = &[
    (
        "SELECT version()",
        &[&["PostgreSQL 15.19 on x86_64-pc-linux-gnu, compiled by gcc (Debian) 12.2.0, 64-bit"]],
    ),
    ("SHOW ALL", POSTGRES_SETTINGS),
    ("pg_backend_pid()", &[&["7", "dbdyno"]]),
];

const POOLER: Script = &[POSTGRES[0], POSTGRES[1], ("pg_backend_pid()", &[&["4711", "dbdyno"]])];

const AURORA: Script = &[
    POSTGRES[0],
    POSTGRES[1],
    POSTGRES[2],
    ("FROM pg_proc", &[&["aurora_version"]]),
    ("SELECT aurora_version()", &[&["15.4.1"]]),
];

const COCKROACH: Script = &[
    (
        "SELECT version()",
        &[&["CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)"]],
    ),
    ("SHOW ALL", POSTGRES_SETTINGS),
    POSTGRES[2],
    ("FROM pg_stat_database", &[&["pg_stat_database.xact_commit", "5"]]),
    ("CREATE TABLE", &[]),
    ("INSERT", &[]),
    ("DROP TABLE", &[]),
    ("BEGIN", &[]),
    ("COMMIT", &[]),
    ("CREATE INDEX", &[]),
    ("ALTER TABLE", &[]),
    ("ANALYZE dbdyno_probe", &[]),
];

#[tokio::test]
async fn a_server_with_postgresqls_protocol_gets_the_name_that_it_reports() {
    let all = [
        named(&postgres_server("15.19", POSTGRES)).await,
        named(&postgres_server("15.19", POOLER)).await,
        named(&postgres_server("15.19", AURORA)).await,
        named(&postgres_server("13.0.0", COCKROACH)).await,
        named(&postgres_server("14.1", &[("SELECT version()", &[&["PostgreSQL 14.1"]])])).await,
        named(&postgres_server("15.0 (dbdyno known-answer)", &[])).await,
        named(&postgres_server("12.3", &[])).await,
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    PostgreSQL itself 15.19.0: 15.19
    proxy or pooler in front of PostgreSQL 15.19.0: 15.19
    Aurora PostgreSQL 15.4.1: 15.4.1
    CockroachDB 23.1.11: CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)
    unknown server that speaks PostgreSQL's protocol 14.1.0: PostgreSQL 14.1
    dbdyno known-answer 15.0.0: 15.0 (dbdyno known-answer)
    unknown server that speaks PostgreSQL's protocol 12.3.0: 12.3
    ");
}

async fn identified(mut database_server: DatabaseServer) -> Capabilities {
    database_server.identify(false, true).await.unwrap_or_else(|error| panic!("{error}"));
    database_server.capabilities
}

fn missing(capabilities: &Capabilities) -> String {
    let foreign = capabilities.foreign.as_ref().expect("a server of another kind");
    let names: Vec<&str> = foreign.missing.iter().map(|(name, _)| name.as_str()).collect();
    names.join(", ")
}

#[tokio::test]
async fn features_that_a_server_lacks_are_listed_and_not_used() {
    let tidb = identified(mysql_server("8.0.11-TiDB-v7.5.0", TIDB)).await;
    insta::assert_snapshot!(missing(&tidb), @"DELETE with ORDER BY and LIMIT, foreign keys, joins in the order of the text, statistics of the optimiser, prepared statements, streamed rows");
    assert_eq!((tidb.index_ddl, tidb.index_hint), (IndexDdl::OneAlter, IndexHint::Force));
    assert_eq!((tidb.delete_form, tidb.row_stream), (DeleteForm::InSubquery, RowStream::PreparedRows));
    assert_eq!((tidb.engine.as_deref(), tidb.table_suffix.as_str()), (None, ""));
    assert!(tidb.text_queries_by_default && !tidb.foreign_keys && !tidb.counts_as_the_product());

    let cockroach = identified(postgres_server("13.0.0", COCKROACH)).await;
    insta::assert_snapshot!(missing(&cockroach), @"a sequence for such keys, joins in the order of the text, vacuum, prepared statements, streamed rows");
    assert_eq!(cockroach.gather_statistics, "ANALYZE");
    assert_eq!((cockroach.key_source, cockroach.row_stream), (KeySource::Table, RowStream::PreparedRows));

    // Another process gets the same capabilities from the names of the missing features.
    let mut told = mysql::capabilities("innodb", false);
    told.foreign.clone_from(&tidb.foreign);
    tidb.lacks().for_each(|name| told.do_without(name));
    assert_eq!(told, tidb);
}

#[tokio::test]
async fn a_server_that_cannot_make_a_table_is_refused_with_its_error() {
    let mut database_server = mysql_server("8.0.11-TiDB-v7.5.0", &TIDB[..4]);
    let error = database_server.identify(false, true).await.unwrap_err().to_string();
    assert!(error.contains("CREATE TABLE dbdyno_probe") && error.contains("error in your SQL"), "{error}");
    // The probe makes no table if the plan uses existing tables.
    database_server.identify(false, false).await.expect("no question but which server it is");
}

#[tokio::test]
async fn a_real_product_keeps_all_capabilities() {
    let mut database_server = mysql_server("8.0.31", MYSQL);
    database_server.identify(false, true).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(database_server.capabilities, mysql::capabilities("innodb", false));
}

/// Counters come from several views, and a server may lack some of these views.
#[tokio::test]
async fn counters_of_existing_views_are_read() {
    let database_server = postgres_server("13.0.0", COCKROACH);
    let mut session = database_server.connect().await.unwrap_or_else(|error| panic!("{error}"));
    for _ in 0..2 {
        let counters = status(&mut session).await.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            counters.into_iter().collect::<Vec<_>>(),
            [("pg_stat_database.xact_commit".to_owned(), 5)]
        );
    }
    let mut session = mysql_server("5.7.0", &[]).connect().await.unwrap_or_else(|error| panic!("{error}"));
    assert!(status(&mut session).await.unwrap_or_else(|error| panic!("{error}")).is_empty());
}
