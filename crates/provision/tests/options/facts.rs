//! What a real server says of its options: those it accepts, and the values that it runs with.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use dbdyno_drivers::mysql::MysqlSession;
use dbdyno_drivers::postgres::PostgresSession;
use dbdyno_drivers::{Cells, Session};
use dbdyno_provision::{Base, BaseDir, PgServer, PgServerSpec, Server, ServerSpec};

use crate::support::{block_on, mysql_spec, new_folder, postgres_spec, with_conf, with_my_cnf};

/// Names and values.
pub(crate) type Values = BTreeMap<String, String>;

/// How a server is started.
#[derive(Debug, Default)]
pub(crate) struct How {
    /// Text of its option file.
    pub(crate) file: Option<String>,
    pub(crate) initdb: Vec<String>,
}

/// The engine that brings as many options along as the build has.
pub(crate) fn engine(base: &Base) -> &'static str {
    let has = |base: &BaseDir| base.plugin_dir().is_some_and(|folder| folder.join("ha_rocksdb.so").is_file());
    if matches!(base, Base::Mysql(base) if has(base)) { "rocksdb" } else { "innodb" }
}

/// Options that the server program, or `initdb`, accepts; of MariaDB and MySQL with the values that it would start with.
pub(crate) fn accepted(name: &str, base: &Base, running: &Values) -> Values {
    match base {
        Base::Mysql(base) => mysql_help(name, base).unwrap_or_else(|| of_variables(running)),
        Base::Postgres(base) => {
            let help = output(Command::new(base.program().with_file_name("initdb")).arg("--help"));
            let words = help.split(|c: char| c.is_whitespace() || matches!(c, ',' | '=' | '['));
            let long = words.filter(|word| word.starts_with("--") && word.len() > 2);
            let initdb = long.map(|word| (word.to_owned(), String::new()));
            running.clone().into_iter().chain(initdb).collect()
        }
    }
}

/// Options by the variables that they set, and two that are called otherwise.
fn of_variables(running: &Values) -> Values {
    let others = [("transaction_isolation", &running["tx_isolation"]), ("ssl", &running["have_ssl"])];
    let others = others.map(|(name, value)| (name.to_owned(), value.replace("DISABLED", "OFF")));
    running.clone().into_iter().chain(others).collect()
}

/// The table at the end of `mysqld --help --verbose`; `None` where that crashes, as in MariaDB 10.1.8.
fn mysql_help(name: &str, base: &BaseDir) -> Option<Values> {
    let folder = new_folder();
    let mut command = Command::new(base.program());
    command.arg("--no-defaults").arg(format!("--basedir={}", base.prefix().display()));
    command.arg(format!("--datadir={}", folder.path().display())).arg("--user=root");
    if let Some(share) = base.share_dir() {
        command.arg(format!("--lc-messages-dir={}", share.display()));
    }
    if let Some(plugins) = base.plugin_dir() {
        command.arg(format!("--plugin-dir={}", plugins.display()));
        let there = |plugin: &&str| plugins.join(plugin).is_file();
        for plugin in ["ha_rocksdb.so", "thread_pool.so"].iter().filter(|plugin| there(plugin)) {
            command.arg(format!("--plugin-load-add={plugin}"));
        }
    }
    let help = output(command.args(["--help", "--verbose"]));
    if help.is_empty() {
        return None;
    }
    let table =
        help.rsplit_once("Variables (--variable-name=value)").unwrap_or_else(|| panic!("{name}: {help}")).1;
    let lines = table.lines().skip(3).take_while(|line| !line.trim().is_empty());
    let pair = |line: &str| {
        let (name, value) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let value = value.trim().replace("(No default value)", "");
        (name.replace('-', "_"), value)
    };
    Some(lines.map(pair).collect())
}

fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The values that a server of `base` runs with; sizes of PostgreSQL in bytes.
///
/// # Errors
/// When it does not start.
pub(crate) fn running(base: &Base, how: &How) -> Result<Values, String> {
    let folder = new_folder();
    match base {
        Base::Mysql(found) => {
            let spec = match &how.file {
                Some(text) => with_my_cnf(found, folder.path(), text),
                None => mysql_spec(found, folder.path()),
            };
            let spec = ServerSpec { engine: engine(base).to_owned(), ..spec };
            let server = Server::start(&spec).map_err(|error| error.to_string())?;
            let values = block_on(async {
                let mut session = MysqlSession::connect(&server.options(None)).await.unwrap();
                session.rows("SHOW GLOBAL VARIABLES").await.unwrap()
            });
            server.stop().unwrap();
            Ok(pairs(values))
        }
        Base::Postgres(found) => {
            let spec = match &how.file {
                Some(text) => with_conf(found, folder.path(), text),
                None => postgres_spec(found, folder.path()),
            };
            postgres(&PgServerSpec { initdb: how.initdb.clone(), ..spec })
        }
    }
}

fn postgres(spec: &PgServerSpec) -> Result<Values, String> {
    let server = PgServer::start(spec).map_err(|error| error.to_string())?;
    let sql = "SELECT name, CASE WHEN setting LIKE '-%' THEN setting \
               WHEN unit = 'kB' THEN (setting::bigint * 1024)::text \
               WHEN unit = '8kB' THEN (setting::bigint * 8192)::text \
               WHEN unit = 'MB' THEN (setting::bigint * 1048576)::text \
               WHEN unit LIKE '%MB' THEN (setting::bigint * 1048576 * replace(unit, 'MB', '')::bigint)::text \
               ELSE setting END FROM pg_settings";
    let values = block_on(async {
        let mut session = PostgresSession::connect(&server.options("postgres")).await.unwrap();
        session.rows(sql).await.unwrap()
    });
    server.stop().unwrap();
    Ok(pairs(values))
}

fn pairs(cells: Cells) -> Values {
    cells
        .into_iter()
        .map(|row| {
            let mut row = row.into_iter().map(Option::unwrap_or_default);
            (row.next().unwrap_or_default().to_lowercase(), row.next().unwrap_or_default())
        })
        .collect()
}
