//! Making a data directory: one of three ways, by product, version and what the build brings along.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::command::part_options;
use crate::my_cnf::MyCnf;
use crate::process::Process;
use crate::{BaseDir, Error, launch, log};

/// No server takes a minute on an idle machine; a busy one gets ten.
const LIMIT: Duration = Duration::from_secs(600);

/// Scripts of the share folder that make the system tables, in their order; builds have the first and the last.
const SYSTEM_TABLES: &[&str] =
    &["mysql_system_tables.sql", "mysql_performance_tables.sql", "mysql_system_tables_data.sql"];

/// Old installers make users without a name, who would catch the logins of all others.
const NO_ANONYMOUS_USERS: &str =
    "DELETE FROM mysql.user WHERE user='';\nDELETE FROM mysql.db WHERE user='';\n";

/// How a data directory is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// `mysqld --initialize-insecure`: MySQL and Percona Server from 5.7.
    Initialize,
    /// The build's own script.
    Installer(PathBuf),
    /// SQL of the share folder through `mysqld --bootstrap`, for old builds without the script.
    Bootstrap(Vec<PathBuf>),
}

/// Makes the empty folder `data_dir` a data directory: no anonymous users, root@localhost without a password.
/// Output goes to `log_file`.
///
/// # Errors
/// [`Error::NoInstaller`], [`Error::Initialise`] with the end of the output.
pub(crate) fn initialise(
    base: &BaseDir,
    my_cnf: &MyCnf,
    data_dir: &Path,
    log_file: &Path,
) -> Result<(), Error> {
    let common = common_options(base, data_dir);
    let settings = my_cnf.initial_options(base);
    let run = |line: Vec<String>, sql: &[u8]| run_logged(base, &line, sql, log_file);
    let bootstrap = || {
        let mut line = vec![base.program().display().to_string()];
        line.extend(common.iter().cloned());
        line.extend(settings.iter().cloned());
        line.push("--bootstrap".to_owned());
        line
    };
    match way(base)? {
        Way::Initialize => {
            let mut line = vec![base.program().display().to_string()];
            line.extend(common.iter().cloned());
            line.extend(part_options(base, &MyCnf::default()));
            line.extend(settings.iter().cloned());
            line.push("--initialize-insecure".to_owned());
            run(line, b"")?;
        }
        Way::Installer(script) => {
            let mut line = vec![script.display().to_string()];
            line.extend(common.iter().cloned());
            line.extend(installer_options(base).iter().map(|option| (*option).to_owned()));
            line.extend(settings.iter().cloned());
            without_new_my_cnf(base, || run(line, b""))?;
            if makes_anonymous_users(base) {
                run(bootstrap(), NO_ANONYMOUS_USERS.as_bytes())?;
            }
        }
        Way::Bootstrap(scripts) => {
            let folder = data_dir.join("mysql");
            fs::create_dir(&folder).map_err(Error::io("cannot make", folder.clone()))?;
            run(bootstrap(), bootstrap_sql(&scripts)?.as_bytes())?;
        }
    }
    // The server's own identity, which each copy must make anew.
    let identity = data_dir.join("auto.cnf");
    if identity.exists() {
        fs::remove_file(&identity).map_err(Error::io("cannot remove", identity.clone()))?;
    }
    Ok(())
}

/// Chooses the way for `base`.
pub(crate) fn way(base: &BaseDir) -> Result<Way, Error> {
    if !base.is_mariadb() && base.version().at_least(5, 7) {
        return Ok(Way::Initialize);
    }
    if let Some(script) = base.installer() {
        return Ok(Way::Installer(script.to_path_buf()));
    }
    let share = base.share_dir().map(Path::to_path_buf).unwrap_or_else(|| base.prefix().join("share"));
    let scripts: Vec<PathBuf> =
        SYSTEM_TABLES.iter().map(|name| share.join(name)).filter(|path| path.is_file()).collect();
    if scripts.first().is_some_and(|first| first.ends_with(SYSTEM_TABLES[0])) {
        return Ok(Way::Bootstrap(scripts));
    }
    let looked_for = format!(
        "bin or scripts/mariadb-install-db, mysql_install_db, {}",
        share.join(SYSTEM_TABLES[0]).display()
    );
    Err(Error::NoInstaller { base: base.path().to_path_buf(), looked_for })
}

fn common_options(base: &BaseDir, data_dir: &Path) -> Vec<String> {
    let mut options = vec![
        "--no-defaults".to_owned(),
        format!("--basedir={}", base.prefix().display()),
        format!("--datadir={}", data_dir.display()),
    ];
    if nix::unistd::geteuid().is_root() {
        options.push("--user=root".to_owned());
    }
    options
}

fn installer_options(base: &BaseDir) -> &'static [&'static str] {
    match (base.is_mariadb(), base.version()) {
        // From 10.4 root would else log in as the operating system's root only.
        (true, version) if version.at_least(10, 5) => {
            &["--force", "--skip-name-resolve", "--auth-root-authentication-method=normal", "--skip-test-db"]
        }
        (true, version) if version.at_least(10, 4) => {
            &["--force", "--skip-name-resolve", "--auth-root-authentication-method=normal"]
        }
        (true, _) => &["--force", "--skip-name-resolve"],
        (false, version) if version.at_least(5, 6) => &["--force", "--skip-name-resolve"],
        (false, _) => &["--force"],
    }
}

/// From 10.4 MariaDB's `mysql.user` is a view, and its installer makes no such users with our options.
fn makes_anonymous_users(base: &BaseDir) -> bool {
    !(base.is_mariadb() && base.version().at_least(10, 4))
}

fn bootstrap_sql(scripts: &[PathBuf]) -> Result<String, Error> {
    // The variables tell the scripts of MariaDB from 10.4 to give root no password and to make nobody else.
    let mut sql = "SET @skip_auth_anonymous=1, @auth_root_socket=NULL;\nuse mysql;\n".to_owned();
    for script in scripts {
        let bytes = fs::read(script).map_err(Error::io("cannot read", script.clone()))?;
        sql.push_str(&String::from_utf8_lossy(&bytes));
        sql.push('\n');
    }
    sql.push_str(NO_ANONYMOUS_USERS);
    Ok(sql)
}

/// MySQL 5.6's script leaves a `my.cnf` in the base directory, which would not have been there before.
fn without_new_my_cnf(base: &BaseDir, run: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    let left = ["my.cnf", "my-new.cnf"].map(|name| base.prefix().join(name));
    let new: Vec<&PathBuf> = left.iter().filter(|path| !path.exists()).collect();
    let result = run();
    for path in new.into_iter().filter(|path| path.exists()) {
        fs::remove_file(path).map_err(Error::io("cannot remove", path.clone()))?;
    }
    result
}

fn run_logged(base: &BaseDir, line: &[String], sql: &[u8], log_file: &Path) -> Result<(), Error> {
    let failed = |why: String| Error::Initialise {
        server: base.title(),
        why: format!("{}: {why}", line.join(" ")),
        log_tail: log::tail(log_file, log::SHOWN_LINES),
    };
    let mut command: Command = launch::detached(line, log_file)?;
    // MySQL 5.6's script looks for its parts from where it is called.
    command.current_dir(base.prefix()).stdin(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A server that ended early closes the pipe; its exit status tells more than the broken pipe.
        let _ = stdin.write_all(sql);
    }
    let process = Process::new(child);
    match process.wait(LIMIT) {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(failed(status.to_string())),
        None => {
            let _ = process.stop(Duration::from_secs(5));
            Err(failed(format!("not done after {} s", LIMIT.as_secs())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Product;

    #[test]
    fn new_mysql_initialises_itself_and_a_build_without_any_way_says_what_it_lacks() {
        assert_eq!(way(&BaseDir::sample(Product::MySql, (5, 7, 22))).unwrap(), Way::Initialize);
        assert_eq!(way(&BaseDir::sample(Product::PerconaServer, (8, 0, 35))).unwrap(), Way::Initialize);
        let message = way(&BaseDir::sample(Product::MariaDb, (10, 1, 23))).unwrap_err().to_string();
        insta::assert_snapshot!(message, @"/s/base has no installer: looked for bin or scripts/mariadb-install-db, mysql_install_db, /s/base/share/mysql_system_tables.sql; use a base directory that was not stripped of its share folder");
    }

    #[test]
    fn installers_get_no_option_that_they_do_not_know() {
        let options = |product, version| installer_options(&BaseDir::sample(product, version)).join(" ");
        assert_eq!(options(Product::MySql, (5, 5, 34)), "--force");
        assert_eq!(options(Product::MySql, (5, 6, 14)), "--force --skip-name-resolve");
        assert_eq!(options(Product::MariaDb, (10, 1, 23)), "--force --skip-name-resolve");
        let new = "--force --skip-name-resolve --auth-root-authentication-method=normal --skip-test-db";
        assert_eq!(options(Product::MariaDb, (10, 11, 5)), new);
    }
}
