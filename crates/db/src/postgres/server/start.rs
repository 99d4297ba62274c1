//! Starts a PostgreSQL server, which never runs as root.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use nix::sys::signal::Signal;

use super::data::Runner;
use super::{SUPERUSER, data as data_dirs};
use crate::postgres::socket_path;
use crate::server::certificates::CertificateFiles;
use crate::server::running::{
    Data, Running, Server, ServerSpec, Start, TLS_HOST, absolute, absolute_itself, absolute_log, superuser_at,
};
use crate::server::runtime_dir::RuntimeTls;
use crate::server::{Error, RuntimeDir, datadir, launch};

/// The port in the socket's name. Without TLS the server listens on no TCP port.
const PORT: u16 = 5432;

/// Implements [`crate::Family::start`].
pub(in crate::postgres) fn start(
    runtime_dir: RuntimeDir,
    spec: &ServerSpec,
    data: Data,
) -> Result<Server, Error> {
    let base = &spec.base;
    let tls = runtime_dir.tls.clone();
    let tls_port = tls.as_ref().map(|tls| tls.port.number);
    let socket = socket_path(runtime_dir.path(), tls_port.unwrap_or(PORT));
    let (log, data_dir) = (absolute_log(&spec.log)?, absolute_itself(&spec.data_dir)?);
    let template_dir = absolute(&spec.template_dir)?;
    let program = base.program.as_path();
    let runner = Runner::choose(&[program, &data_dir, &template_dir, runtime_dir.path()])?;

    match data {
        Data::Fresh => {
            let template = data_dirs::template(
                base,
                &spec.config.initdb_options(),
                &runner,
                &template_dir,
                &spec.cancel,
            )?;
            data_dirs::make(&data_dir, &template, &spec.config.text(), &runner, &spec.cancel)?;
        }
        Data::AsItIs | Data::Cold => datadir::check_at_rest(&data_dir, &spec.cancel)?,
    }
    runner.own(runtime_dir.path())?;

    let mut options = start_options(&data_dir, runtime_dir.path(), tls_port.unwrap_or(PORT));
    if data == Data::Cold {
        options.extend(settings([("pg_prewarm.autoprewarm", "off".to_owned())]));
    }
    let mut notes = runner.notes();
    if let Some(tls) = &tls {
        options.extend(tls_options(tls, runtime_dir.path(), &runner)?);
        notes.push(format!(
            "it listens on {TLS_HOST} too, for TLS: PostgreSQL has none over unix sockets. Certificates are dbdyno's, made for this run"
        ));
    }
    // SIGINT asks for a fast shutdown, which ends sessions and writes a checkpoint. On SIGTERM the
    // server would wait for its sessions. A kill would leave its shared memory behind.
    let signals = launch::Signals { stop: Signal::SIGINT, orphaned: Signal::SIGINT };
    let line = launch::line(runner.setpriv(), &runner.options(), signals, program, &options);
    let start = Start {
        title: base.title.clone(),
        line,
        cpus: spec.cpus.as_deref(),
        runtime_dir,
        data_dir,
        tmp_dir: None,
        log,
        login: superuser_at(base, &socket),
        may_log_in: &|pid| base.release.0[0] < STATUS_SINCE || says_ready(&spec.data_dir, pid),
        timeout: spec.start_timeout,
        cancel: Arc::clone(&spec.cancel),
        notes,
    };
    let running = Running::start(start)?;
    Ok(Server { base: base.clone(), socket, tls_port, running })
}

/// Returns options for the server's command line, where they win over the configuration file.
/// dbdyno decides where the data, the socket and the log are.
fn start_options(data_dir: &Path, run_dir: &Path, port: u16) -> Vec<String> {
    let mut options = vec!["-D".to_owned(), data_dir.display().to_string()];
    let folder = run_dir.display().to_string();
    options.extend(settings([
        ("unix_socket_directories", folder),
        ("unix_socket_permissions", "0700".to_owned()),
        ("listen_addresses", String::new()),
        ("port", port.to_string()),
        ("logging_collector", "off".to_owned()),
        ("log_destination", "stderr".to_owned()),
    ]));
    options
}

fn settings<const N: usize>(named: [(&str, String); N]) -> impl Iterator<Item = String> {
    named.map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]).into_iter().flatten()
}

/// Returns options that let only clients with dbdyno's certificate in over TCP, and only over TLS.
/// Other users on this machine can reach the port too.
fn tls_options(tls: &RuntimeTls, run_dir: &Path, runner: &Runner) -> Result<Vec<String>, Error> {
    let hba = run_dir.join("tls/pg_hba.conf");
    let text = format!("local all all trust\nhostssl all {SUPERUSER} {TLS_HOST}/32 cert\n");
    fs::write(&hba, text).map_err(Error::io("cannot write", hba.clone()))?;
    let CertificateFiles { authority, certificate, key } = &tls.files;
    let folder = run_dir.join("tls");
    for path in [&folder, authority, certificate, key, &hba] {
        runner.own(path)?;
    }
    let named = [
        ("listen_addresses", TLS_HOST.to_owned()),
        ("ssl", "on".to_owned()),
        ("ssl_ca_file", authority.display().to_string()),
        ("ssl_cert_file", certificate.display().to_string()),
        ("ssl_key_file", key.display().to_string()),
        ("hba_file", hba.display().to_string()),
    ];
    Ok(settings(named).collect())
}

/// The first version whose `postmaster.pid` has a status.
const STATUS_SINCE: u32 = 10;

/// The status line's number in `postmaster.pid`, from 0 (`LOCK_FILE_LINE_PM_STATUS` in
/// `utils/pidfile.h`).
const STATUS_LINE: usize = 7;

/// Status of a server that accepts connections, and of one that accepts only readers' connections.
const ACCEPTING: [&str; 2] = ["ready", "standby"];

/// Whether the server whose first process is `pid` says in `data_dir` that it accepts connections.
/// Before that it would refuse a login and log the refusal as an error.
fn says_ready(data_dir: &Path, pid: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(data_dir.join("postmaster.pid")) else { return false };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_its_own = lines.first().is_some_and(|line| *line == pid.to_string());
    is_its_own && lines.get(STATUS_LINE).is_some_and(|line| ACCEPTING.contains(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_listens_on_its_private_socket_only() {
        let options = start_options(Path::new("/d"), Path::new("/t"), PORT).join(" ");
        insta::assert_snapshot!(options, @"-D /d -c unix_socket_directories=/t -c unix_socket_permissions=0700 -c listen_addresses= -c port=5432 -c logging_collector=off -c log_destination=stderr");
    }

    #[test]
    fn a_server_is_ready_when_the_status_line_in_its_own_file_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let says = |text: &str| {
            std::fs::write(folder.path().join("postmaster.pid"), text).unwrap();
            says_ready(folder.path(), 7)
        };
        assert!(!says_ready(folder.path(), 7));
        let before = "/data\n1700000000\n5432\n/run\n\n  1 2\n";
        assert!(says(&format!("7\n{before}ready   \n")));
        assert!(says(&format!("7\n{before}standby \n")));
        assert!(!says(&format!("7\n{before}starting\n")));
        assert!(!says(&format!("7\n{before}")));
        // A killed server leaves its file behind.
        assert!(!says(&format!("8\n{before}ready   \n")));
        assert!(!says("7\nready   \n"));
    }
}
