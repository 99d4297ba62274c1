//! `dbdyno serve`: the pages of a folder of runs for a browser on this machine, made from the
//! records when they are asked for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use crate::args::ServeArgs;
use crate::commands::site::{Site, no_runs};
use crate::exit::{Ended, MACHINE};
use crate::terminal;

/// How often pages of runs that go on ask for news.
const LIVE_SECONDS: u32 = 2;
/// A browser sends far less.
const MOST_HEAD_BYTES: u64 = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn serve(args: &ServeArgs) -> Result<(), Ended> {
    let site = Arc::new(Site::of(&args.folder).ok_or_else(|| no_runs(&args.folder))?);
    let cannot = |error| {
        Ended::new(MACHINE, format!("cannot listen on port {}: {error}; try another --port", args.port))
    };
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, args.port))).map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    terminal::out(&format!("runs of {}: http://{address}/ (Ctrl-C ends)", args.folder.display()))?;
    for stream in listener.incoming().flatten() {
        let site = Arc::clone(&site);
        // A browser that went away is no fault of ours.
        std::thread::spawn(move || answer(&site, &stream));
    }
    Ok(())
}

/// One request and its answer; the connection is closed after it.
fn answer(site: &Site, stream: &TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut reader = BufReader::new(stream.take(MOST_HEAD_BYTES));
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let (status, text) = response(site, &head);
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        text.len()
    )?;
    stream.write_all(text.as_bytes())
}

/// Status and body. Only names of this machine are answered: a page from elsewhere whose name leads
/// here must not read results.
fn response(site: &Site, head: &[String]) -> (&'static str, String) {
    let mut words = head.first().map_or("", String::as_str).split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let header = |name: &str| {
        let lines = head.iter().skip(1).filter_map(|line| line.split_once(':'));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    };
    let host = header("host").unwrap_or("").rsplit_once(':').map_or("", |(name, _)| name);
    if !["127.0.0.1", "localhost"].contains(&host) {
        return ("403 Forbidden", "Open this page under 127.0.0.1 or localhost.\n".to_owned());
    }
    if method != "GET" {
        return ("405 Method Not Allowed", "Only GET is answered.\n".to_owned());
    }
    let path = target.split(['?', '#']).next().unwrap_or("");
    match site.page(path, LIVE_SECONDS) {
        Some(page) => ("200 OK", page),
        None => ("404 Not Found", "There is no such page; the index is at /.\n".to_owned()),
    }
}
