//! `dbdyno serve` shows the pages of a folder of runs to a browser on this machine. It makes them
//! from the records when they are requested.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use crate::commands::site::{Site, no_runs};
use crate::exit::ExitError;
use crate::http::{self, Answer};
use crate::terminal;

/// Seconds between two requests for news by the page of an unfinished run.
const LIVE_SECONDS: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(5);
const KIND: &str = "text/html; charset=utf-8";

pub(crate) fn serve(folder: &Path, port: u16) -> Result<(), ExitError> {
    let site = Site::of(folder).ok_or_else(|| no_runs(folder))?;
    let cannot =
        |error| ExitError::machine(format!("cannot listen on port {port}: {error}; try another --port"));
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    terminal::out(&format!("runs of {}: http://{address}/ (Ctrl-C ends)", folder.display()))?;
    http::serve(&listener, PATIENCE, move |path| match site.page(path, LIVE_SECONDS) {
        Some(body) => Answer { status: "200 OK", kind: KIND, body },
        None => {
            let body = "There is no such page; the index is at /.\n".to_owned();
            Answer { status: "404 Not Found", kind: KIND, body }
        }
    });
    Ok(())
}
