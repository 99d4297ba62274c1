//! `dbdyno servers start` runs a server in the foreground. Its data are removed when it stops.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dbdyno_db::server::Base;
use dbdyno_fetch::{ScratchOptions, ScratchServer, client, find_named};

use super::ended;
use crate::exit::ExitError;
use crate::{signals, terminal};

const POLL: Duration = Duration::from_millis(100);

const LOG_LINES: usize = 15;

pub(super) fn start(name: &str, config: Option<&Path>) -> Result<(), ExitError> {
    if let Some(file) = config.filter(|file| !file.is_file()) {
        return Err(ExitError::usage(format!(
            "--config: there is no file {}; name an option file",
            file.display()
        )));
    }
    let base = find_named(name).map_err(ended)?;
    let cancel = signals::watch("stopping the server (again: stop at once)")?;
    terminal::note(&format!("starting {} ({name}) on fresh data", base.title));
    // This thread lives until the end. The server must start in it, because the kernel stops a
    // server when the thread that started it ends.
    let options =
        ScratchOptions { config: config.map(Path::to_path_buf), engine: None, cancel: Arc::clone(&cancel) };
    let scratch = ScratchServer::start(&base, &options).map_err(ended)?;
    terminal::out(&how_to_connect(&base, &scratch))?;
    for note in &scratch.server.notes {
        terminal::note(&format!("note: {note}"));
    }
    while !cancel.load(Ordering::Relaxed) {
        if let Some(status) = scratch.server.exit_status() {
            let tail = scratch.server.log_tail(LOG_LINES);
            return Err(ExitError::server(format!("{} ended by itself ({status}):\n{tail}", base.title)));
        }
        std::thread::sleep(POLL);
    }
    scratch.stop().map_err(ended)?;
    terminal::note("stopped; its data is removed");
    Ok(())
}

fn how_to_connect(base: &Base, scratch: &ScratchServer) -> String {
    let socket = scratch.socket();
    let family = base.family;
    let (scheme, user) = (family.facts().schemes[0], family.facts().superuser);
    let address =
        format!("{scheme}{user}@localhost/DATABASE?socket={}", family.socket_in_address(socket).display());
    let client = client(base, socket)
        .map_or("none found, in the build or on this machine".to_owned(), |words| words.join(" "));
    format!(
        "{title} runs as process {pid} ({seconds:.1} s); Ctrl-C stops it and removes its data\n\
         client   {client}\nsocket   {socket}\nuser     {user}, no password\naddress  {address}\nlog      {log}\n",
        title = base.title,
        pid = scratch.server.pid(),
        seconds = scratch.start_time.as_secs_f64(),
        socket = socket.display(),
        log = scratch.server.log.display(),
    )
}
