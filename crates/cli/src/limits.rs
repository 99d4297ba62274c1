//! Checks limits of this machine and of servers that a plan's connections would exceed in the
//! middle of a run. It finds them before anything runs.

use std::path::Path;

use dbdyno_db::{AnySession, Room, Session, connection_room, prepared_room};
use dbdyno_plan::Plan;
use dbdyno_products::VariantKind;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::Uid;

use crate::exit::ExitError;

/// Open files in addition to connections: records, logs, the sampler's files, the event loops'
/// files.
const OTHER_FILES: u64 = 256;
/// Open files per load thread. An event loop holds its poll descriptor, a wake-up, a signal pipe
/// and a timer.
const FILES_PER_THREAD: u64 = 6;
/// Open files per connection to an embedded database. It holds the database, its journal or
/// write-ahead log, and the log's index.
const FILES_OF_EMBEDDED: u64 = 4;
/// Threads in addition to those that send load: main, sampler, runtimes.
const OTHER_THREADS: u64 = 32;
/// Bytes of address space that a small run takes: program, libraries, records.
const OWN_ADDRESSES: u64 = 32 << 20;
/// Bytes of the stack of a thread in Rust's standard library.
const ADDRESSES_PER_THREAD: u64 = 2 << 20;
/// Connections that are open during the load but carry none of it: one for set-up and checks, one
/// for the sampler's status, and one for the lock on a database at an address.
pub(crate) const OTHER_CONNECTIONS: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Need {
    files: u64,
    threads: u64,
}

/// Sets how the kernel treats this process when it exceeds a limit or crashes. It is called before
/// any thread starts, because threads inherit these settings.
pub(crate) fn begin() {
    // With SIGXFSZ blocked, a write beyond `ulimit -f` fails, which is reported with file and
    // advice, and the process goes on. The signal is blocked and not ignored, because servers must
    // not inherit an ignored signal. The standard library starts programs with no signal blocked.
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGXFSZ);
    let _ = signals.thread_block();
    // A core dump would hold the passwords of servers, so its size is limited to 0. Clearing
    // `PR_SET_DUMPABLE` would also keep this user's perf and gdb away, and give /proc/self to root.
    // Only the soft limit is set. Servers inherit it, and a server with `core-file` raises it
    // again.
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_CORE) {
        let _ = setrlimit(Resource::RLIMIT_CORE, 0, hard);
    }
}

/// Raises the limit on open files as far as the plan needs and the system allows.
pub(crate) fn check(plan: &Plan) -> Result<(), ExitError> {
    let need = need(plan, std::thread::available_parallelism().map_or(1, usize::from) as u64);
    let connections = plan.workload.most_connections();
    raise_files(need.files)
        .and_then(|()| check_threads(need.threads))
        .and_then(|()| {
            check_addresses(need.threads, getrlimit(Resource::RLIMIT_AS).map_or(u64::MAX, |limit| limit.0))
        })
        .map_err(|message| ExitError::machine(format!("the plan opens {connections} connections: {message}")))
}

fn need(plan: &Plan, cpus: u64) -> Need {
    let connections = u64::from(plan.workload.most_connections());
    let is_embedded = plan.variants.iter().any(|variant| VariantKind::of(variant).is_embedded());
    let threads = match plan.host.client_threads {
        _ if is_embedded => connections,
        Some(threads) => u64::from(threads).min(connections),
        None => cpus.min(connections),
    };
    let of_connection = if is_embedded { FILES_OF_EMBEDDED } else { 1 };
    Need {
        files: connections * of_connection + threads * FILES_PER_THREAD + OTHER_FILES,
        threads: threads + OTHER_THREADS,
    }
}

fn raise_files(need: u64) -> Result<(), String> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|error| format!("cannot ask for the limit on open files: {error}"))?;
    if need <= soft {
        return Ok(());
    }
    if need > hard {
        return Err(format!(
            "they need about {need} open files, and this process may have {hard}; raise the hard limit (nofile in \
             /etc/security/limits.conf, LimitNOFILE= of a service), or plan fewer connections"
        ));
    }
    setrlimit(Resource::RLIMIT_NOFILE, need, hard)
        .map_err(|error| format!("cannot raise the limit on open files from {soft} to {need}: {error}"))
}

/// Refuses more threads than the address space has room for. A thread that cannot be started is an
/// error that can be reported. An allocation that fails ends the process with SIGABRT and no more
/// than `memory allocation of N bytes failed`, because Rust leaves a program no choice there. A
/// plan with too many threads is therefore refused before it runs.
fn check_addresses(threads: u64, limit: u64) -> Result<(), String> {
    let need = OWN_ADDRESSES + threads * ADDRESSES_PER_THREAD;
    let [need_mib, limit_mib] = [need, limit].map(|bytes| bytes >> 20);
    match need > limit {
        true => Err(format!(
            "they need about {need_mib} MiB of addresses, and this process may have {limit_mib}; raise ulimit -v, or plan fewer connections"
        )),
        false => Ok(()),
    }
}

fn check_threads(need: u64) -> Result<(), String> {
    match thread_limits().into_iter().find(|limit| need > limit.0) {
        Some((limit, what, how)) => {
            Err(format!("they need about {need} threads, and {what} is {limit}; {how}"))
        }
        None => Ok(()),
    }
}

/// Returns the limits on threads that hold for this process: the number, the name, and how to raise
/// it.
fn thread_limits() -> Vec<(u64, &'static str, &'static str)> {
    // The kernel does not apply this limit to root.
    let of_user = (!Uid::effective().is_root())
        .then(|| getrlimit(Resource::RLIMIT_NPROC).ok())
        .flatten()
        .map(|(soft, _)| (soft, "this user's limit on processes", "raise it with ulimit -u"));
    let of_kernel = number(Path::new("/proc/sys/kernel/threads-max"))
        .map(|limit| (limit, "kernel.threads-max", "raise it with sysctl"));
    let of_group = std::fs::read_to_string("/proc/self/cgroup")
        .ok()
        .and_then(|groups| pids_left(Path::new("/sys/fs/cgroup"), &groups))
        .map(|left| (left, "what the control group has left (pids.max)", "raise it there"));
    [of_user, of_kernel, of_group].into_iter().flatten().collect()
}

/// Returns the tightest limit on threads, or `None` when none is known.
pub(crate) fn most_threads() -> Option<u64> {
    thread_limits().into_iter().map(|limit| limit.0).min()
}

/// Returns the number of files that this process may open, once it has raised its own limit. It is
/// `None` when the kernel does not report it.
pub(crate) fn most_files() -> Option<u64> {
    getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(_, hard)| hard)
}

/// Names the current limit on open files of this process.
pub(crate) fn files_in_words() -> String {
    getrlimit(Resource::RLIMIT_NOFILE)
        .map_or_else(|_| "ulimit -n".to_owned(), |(soft, _)| format!("ulimit -n, now {soft}"))
}

/// Returns the number of threads that this process's control group and those above it leave room
/// for. `None` means any number.
fn pids_left(root: &Path, groups: &str) -> Option<u64> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let group = root.join(own);
    let ancestors = group.ancestors().take_while(|folder| folder.starts_with(root));
    let left = ancestors.filter_map(|folder| {
        let most = number(&folder.join("pids.max"))?;
        Some(most.saturating_sub(number(&folder.join("pids.current")).unwrap_or(0)))
    });
    left.min()
}

fn number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Checks that the server of `session` takes the plan's connections. A server that does not report
/// a limit is trusted.
pub(crate) async fn check_server(session: &mut AnySession, plan: &Plan) -> Result<(), String> {
    let need = u64::from(plan.workload.most_connections()) + OTHER_CONNECTIONS;
    if let Some(Room { most, setting }) = connection_room(session).await
        && need > most
    {
        return Err(format!(
            "the plan opens {need} connections, and the server takes {most} ({setting}); raise max_connections there, or plan \
             fewer connections"
        ));
    }
    check_prepared(session, plan).await
}

/// Checks the number of prepared statements, because some servers limit it over all connections and
/// refuse the next one.
async fn check_prepared(session: &mut AnySession, plan: &Plan) -> Result<(), String> {
    if plan.workload.most_prepared_statements(true) == 0 {
        return Ok(());
    }
    let Some(Room { most, setting }) = prepared_room(session).await else { return Ok(()) };
    // MySQL prepares no BEGIN, but MariaDB does from some version on. The statement that this
    // session prepares is released when the session ends.
    let need = plan.workload.most_prepared_statements(session.prepare("BEGIN").await.is_ok());
    if need <= most {
        return Ok(());
    }
    Err(format!(
        "the plan prepares {need} statements (each kind on each table, BEGIN and COMMIT, for each connection), and the server holds {most} \
         ({setting}); raise it there, plan fewer tables or connections, or send text: protocol = \"text\""
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(server: &str, clients: u32) -> Plan {
        let text = format!(
            "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"{server}\"\n[workload.insert-benchmark]\n\
             clients = {clients}\n"
        );
        dbdyno_workloads::plans::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_connection_is_a_file_and_with_sqlite_four_and_a_thread() {
        let connections = u64::from(plan("null", 100).workload.most_connections());
        assert_eq!(connections, 300);
        assert_eq!(need(&plan("null", 100), 4), Need { files: 300 + 24 + 256, threads: 4 + 32 });
        assert_eq!(need(&plan("sqlite", 100), 4), Need { files: 1200 + 1800 + 256, threads: 300 + 32 });
    }

    #[test]
    fn needs_beyond_a_limit_are_refused_with_need_and_limit() {
        let error = raise_files(u64::MAX - 1).unwrap_err();
        assert!(
            error.contains("18446744073709551614 open files") && error.contains("LimitNOFILE"),
            "{error}"
        );
        let error = check_threads(1 << 40).unwrap_err();
        assert!(error.contains("1099511627776 threads"), "{error}");
        assert_eq!((raise_files(16), check_threads(2)), (Ok(()), Ok(())));
        let error = check_addresses(512, 700 << 20).unwrap_err();
        assert!(
            error.contains("about 1056 MiB of addresses, and this process may have 700; raise ulimit -v"),
            "{error}"
        );
        assert_eq!((check_addresses(512, u64::MAX), check_addresses(34, 100 << 20)), (Ok(()), Ok(())));
    }

    #[test]
    fn the_tightest_control_group_above_this_process_counts() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let service = root.path().join("system/bench");
        std::fs::create_dir_all(&service).expect("folders");
        let write = |path: &str, text: &str| std::fs::write(root.path().join(path), text).expect("a file");
        write("system/pids.max", "500\n");
        write("system/pids.current", "120\n");
        write("system/bench/pids.max", "max\n");
        assert_eq!(pids_left(root.path(), "0::/system/bench\n"), Some(380));
        write("system/bench/pids.max", "100\n");
        write("system/bench/pids.current", "40\n");
        assert_eq!(pids_left(root.path(), "1:cpu:/x\n0::/system/bench\n"), Some(60));
        assert_eq!(pids_left(root.path(), "1:cpu:/x\n"), None);
    }
}
