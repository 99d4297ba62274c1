//! Functions that look at a run and its servers while the run goes on.

use std::path::{Path, PathBuf};

use dbdyno_db::mysql::{MysqlSession, Options};
use dbdyno_db::{Cells, Class, Session};
use dbdyno_record::{CellEvent, CellRecord, Run, ServerInfo};

use crate::support::wait_for;

/// The description of the server in the cell of `variant` in block 1. Waits until the server has
/// described itself.
pub(crate) fn server_of(run_dir: &Path, variant: &str) -> ServerInfo {
    wait_for(&format!("the server of {variant}"), || {
        let run = Run::open(run_dir).ok()?;
        run.cells.iter().find(|cell| cell.id.variant == variant).and_then(server)
    })
}

/// The server that a cell's events report.
pub(crate) fn server(cell: &CellRecord) -> Option<ServerInfo> {
    cell.events.iter().find_map(|event| match event {
        CellEvent::Server { server, .. } => Some(server.clone()),
        _ => None,
    })
}

/// The unix socket that a running server was started with.
pub(crate) fn socket_of(pid: u32) -> PathBuf {
    argument_of(pid, "--socket=")
}

/// The unix socket that a running PostgreSQL server was started with.
pub(crate) fn postgres_socket_of(pid: u32) -> PathBuf {
    argument_of(pid, "unix_socket_directories=").join(".s.PGSQL.5432")
}

fn argument_of(pid: u32, begin: &str) -> PathBuf {
    let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    PathBuf::from(line.split('\0').find_map(|argument| argument.strip_prefix(begin)).unwrap())
}

pub(crate) fn process_is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// The kernel's letter for the state of a process, as in proc(5): `T` for stopped, `Z` for ended
/// and not yet waited for. It is `None` when the process is gone.
pub(crate) fn state(pid: u32) -> Option<char> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.trim_start().chars().next()
}

/// The running processes that `pid` has started.
pub(crate) fn children_of(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = tasks.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_child = |child: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().nth(1).map(str::to_owned));
        fields.flatten().is_some_and(|parent| parent == pid.to_string())
    };
    numbers.filter(is_child).collect()
}

pub(crate) fn wait_until_gone(pid: u32) {
    wait_for(&format!("the end of process {pid}"), || (!process_is_there(pid)).then_some(()));
}

/// Sends the statements over one new connection. Returns the last one's rows.
pub(crate) fn ask(options: &Options, statements: &[&str]) -> Cells {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut session = MysqlSession::connect(options).await.unwrap();
        let mut rows = Cells::new();
        for statement in statements {
            rows = answer(&mut session, statement).await;
        }
        session.close().await;
        rows
    })
}

/// The rows of a statement. A load at the same time may cause a deadlock with it, and the statement
/// is then sent again.
pub(crate) async fn answer(session: &mut impl Session, statement: &str) -> Cells {
    for _ in 0..20 {
        match session.rows(statement).await {
            Ok(rows) => return rows,
            Err(error) if error.class == Class::Retry => {}
            Err(error) => panic!("{statement}: {error}"),
        }
    }
    panic!("{statement}: the server asked 20 times to send it again");
}
