//! The options that a real server accepts, and the values with which it runs.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use dbdyno_db::server::intents::Rendered;
use dbdyno_db::server::{Base, Server};
use dbdyno_db::{Cells, ConnectionSettings, Session};

use crate::support::{block_on, new_folder, spec};

/// Names and values of options.
pub(crate) type Values = BTreeMap<String, String>;

/// The engine with which the build has the most options.
pub(crate) fn engine(base: &Base) -> &'static str {
    if base.has_plugin(&base.family.engine_plugin("rocksdb")) { "rocksdb" } else { "innodb" }
}

/// Options that the server program or `initdb` accepts. For MariaDB and MySQL the values are those
/// with which the server would start.
pub(crate) fn accepted(name: &str, base: &Base, running: &Values) -> Values {
    if base.family.name() == "mysql" {
        return mysql_help(name, base).unwrap_or_else(|| of_variables(running));
    }
    let help = output(Command::new(base.program.with_file_name("initdb")).arg("--help"));
    let words = help.split(|c: char| c.is_whitespace() || matches!(c, ',' | '=' | '['));
    let long = words.filter(|word| word.starts_with("--") && word.len() > 2);
    let initdb = long.map(|word| (word.to_owned(), String::new()));
    running.clone().into_iter().chain(initdb).collect()
}

/// Options with the names of the variables that they set, and two options with other names.
fn of_variables(running: &Values) -> Values {
    let others = [("transaction_isolation", &running["tx_isolation"]), ("ssl", &running["have_ssl"])];
    let others = others.map(|(name, value)| (name.to_owned(), value.replace("DISABLED", "OFF")));
    running.clone().into_iter().chain(others).collect()
}

/// The table at the end of `mysqld --help --verbose`. The result is `None` if the program crashes,
/// as it does in MariaDB 10.1.8.
fn mysql_help(name: &str, base: &Base) -> Option<Values> {
    let folder = new_folder();
    let mut command = Command::new(&base.program);
    command.arg("--no-defaults").arg(format!("--basedir={}", base.prefix.display()));
    command.arg(format!("--datadir={}", folder.path().display())).arg("--user=root");
    let shares = ["share", "share/mysql", "share/mariadb"].map(|name| base.prefix.join(name));
    if let Some(share) = shares.iter().find(|share| share.join("english/errmsg.sys").exists()) {
        command.arg(format!("--lc-messages-dir={}", share.display()));
    }
    if let Some(plugins) = &base.plugin_dir {
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

/// The values with which a `base` server runs. PostgreSQL's sizes are in bytes.
pub(crate) fn running(base: &Base, config: Option<&Rendered>) -> Result<Values, String> {
    let folder = new_folder();
    let mut spec = spec(base, folder.path());
    if let Some(config) = config {
        let path = folder.path().join("options.cnf");
        std::fs::write(&path, config.text()).unwrap();
        spec.config = config.clone().in_file(path);
    }
    engine(base).clone_into(&mut spec.config.engine);
    let server = Server::start(&spec).map_err(|error| error.to_string())?;
    let sql = if base.family.name() == "mysql" { "SHOW GLOBAL VARIABLES" } else { IN_BYTES };
    let values = block_on(async {
        let database_server =
            server.address(None, &ConnectionSettings::default()).database_server("innodb", true);
        database_server.connect().await.unwrap().rows(sql).await.unwrap()
    });
    server.stop().unwrap();
    Ok(pairs(values))
}

const IN_BYTES: &str = "SELECT name, CASE WHEN setting LIKE '-%' THEN setting \
    WHEN unit = 'kB' THEN (setting::bigint * 1024)::text \
    WHEN unit = '8kB' THEN (setting::bigint * 8192)::text \
    WHEN unit = 'MB' THEN (setting::bigint * 1048576)::text \
    WHEN unit LIKE '%MB' THEN (setting::bigint * 1048576 * replace(unit, 'MB', '')::bigint)::text \
    ELSE setting END FROM pg_settings";

fn pairs(cells: Cells) -> Values {
    cells
        .into_iter()
        .map(|row| {
            let mut row = row.into_iter().map(Option::unwrap_or_default);
            (row.next().unwrap_or_default().to_lowercase(), row.next().unwrap_or_default())
        })
        .collect()
}
