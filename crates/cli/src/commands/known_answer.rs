//! `dbdyno known-answer` runs a server whose responses, delays and faults are programmed.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use dbdyno_known_answer::{Error, Handle, Listen, Protocol, Script, Server, Stats, Threads};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};

use crate::args::{KnownAnswerArgs, SpokenProtocol};
use crate::exit::{ExitError, MACHINE, USAGE};
use crate::terminal;

pub(crate) fn serve(args: &KnownAnswerArgs) -> Result<(), ExitError> {
    if cfg!(debug_assertions) {
        terminal::warning("this is a debug build of dbdyno; use --release for numbers that count");
    }
    // The signals are blocked before the server's threads start, so that only this thread takes
    // them.
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    signals
        .thread_block()
        .map_err(|error| ExitError::machine(format!("cannot watch for Ctrl-C: {error}")))?;
    allow_many_connections();
    let listen = match (&args.socket, args.port) {
        (Some(path), _) => Listen::Unix(path.clone()),
        (None, port) => Listen::Tcp(SocketAddr::new(args.listen, port.unwrap_or(0))),
    };
    let protocol = match args.protocol {
        SpokenProtocol::Mysql => Protocol::Mysql,
        SpokenProtocol::Postgres => Protocol::Postgres,
    };
    let cpus = args.cpus.iter().flat_map(|list| &list.0).map(|&cpu| cpu as usize).collect();
    let threads = Threads { cpus, count: args.threads.map(usize::from) };
    let handle = Server::start(listen, protocol, script(args), threads).map_err(ended)?;
    terminal::out(&format!("listening on {}", handle.address()))?;
    // Any result ends the wait, because only these signals can come.
    let _ = signals.wait();
    print_report(handle, protocol, args.stats.as_deref())
}

fn script(args: &KnownAnswerArgs) -> Script {
    Script {
        rows: args.rows,
        columns: args.columns,
        bytes: args.bytes,
        delay: args.delay,
        burn: args.burn,
        prepared_only: args.prepared_only,
        freeze: args.freeze,
        error: args.error.clone(),
        disconnect_every: args.disconnect_every,
        half: args.half,
        login_delay: args.login_delay,
        connection_limit: args.connection_limit,
        deprecate_eof: !args.old_eof,
        seed: args.seed,
    }
}

fn print_report(handle: Handle, protocol: Protocol, file: Option<&Path>) -> Result<(), ExitError> {
    #[derive(serde::Serialize)]
    struct KnownAnswerReport {
        protocol: Protocol,
        script: Script,
        #[serde(flatten)]
        stats: Stats,
    }
    let script = handle.script().clone();
    let report = KnownAnswerReport { protocol, script, stats: handle.stop() };
    let text = serde_json::to_string_pretty(&report).map_err(ExitError::ours)?;
    let Some(path) = file else {
        return terminal::out(&text);
    };
    let written = std::fs::File::create(path).and_then(|mut file| writeln!(file, "{text}"));
    written.map_err(|error| ExitError::machine(format!("cannot write {}: {error}", path.display())))
}

/// Raises the limit on file descriptors as far as the system allows. If it refuses, connections
/// fail once the descriptors run out.
fn allow_many_connections() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

fn ended(error: Error) -> ExitError {
    let code = match error {
        Error::Script { .. } | Error::Text { .. } | Error::NotASocket { .. } => USAGE,
        _ => MACHINE,
    };
    ExitError::new(code, error)
}
