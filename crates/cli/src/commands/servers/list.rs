//! `dbdyno servers list` shows the catalogue, what is installed, and what each installed server can
//! do.

use dbdyno_db::server::servers_dir;
use dbdyno_fetch::{Catalogue, ListedServer, catalogue, inventory};
use dbdyno_report::document::Block;
use serde_json::{Value, json};

use super::{ended, table};
use crate::exit::ExitError;
use crate::terminal;

pub(super) fn show(only_here: bool, as_json: bool) -> Result<(), ExitError> {
    let catalogue = Catalogue::read().map_err(ended)?;
    let all = shown(&catalogue, only_here);
    if as_json {
        return terminal::out_json(&json(&all, &catalogue));
    }
    terminal::out_blocks(&blocks(&all, &catalogue))
}

/// Returns the installed servers for `dbdyno list servers --json`.
pub(crate) fn here_json() -> Result<Value, ExitError> {
    let catalogue = Catalogue::read().map_err(ended)?;
    Ok(json(&shown(&catalogue, true), &catalogue))
}

fn json(all: &[ListedServer], catalogue: &Catalogue) -> Value {
    json!({
        "folder": servers_dir(),
        "own_catalogue": catalogue.own_file,
        "servers": all.iter().map(server).collect::<Vec<_>>(),
    })
}

/// Returns the installed servers for `dbdyno list servers`.
pub(crate) fn here() -> Vec<Block> {
    // `dbdyno servers` reports what is wrong with the reader's own catalogue.
    let catalogue = Catalogue::read().unwrap_or_else(|_| Catalogue { entries: catalogue(), own_file: None });
    blocks(&shown(&catalogue, true), &catalogue)
}

fn shown(catalogue: &Catalogue, only_here: bool) -> Vec<ListedServer> {
    let mut all = inventory(&servers_dir(), catalogue);
    all.retain(|server| !only_here || server.here.is_some());
    all
}

fn blocks(all: &[ListedServer], catalogue: &Catalogue) -> Vec<Block> {
    let folder = servers_dir();
    let folder = folder.display();
    if all.is_empty() {
        let text = format!("no servers in {folder}; `dbdyno servers list` shows available servers");
        return vec![Block::text(text)];
    }
    let mut blocks = vec![Block::text(format!("servers folder: {folder}"))];
    if let Some(file) = &catalogue.own_file {
        blocks.push(Block::text(format!("your catalogue: {}", file.display())));
    }
    blocks.push(Block::Table(table::catalogue(all)));
    let abilities = table::abilities(all);
    blocks.extend((!abilities.rows.is_empty()).then_some(Block::Table(abilities)));
    blocks.extend(notes(all));
    blocks
}

/// Notes what is wrong with installed servers, and which have not been probed.
fn notes(all: &[ListedServer]) -> Vec<Block> {
    let heres = || all.iter().filter_map(|server| Some((server, server.here.as_ref()?)));
    let problems =
        heres().filter_map(|(server, here)| Some(format!("{}: {}", server.name, here.problem.as_ref()?)));
    let mut blocks: Vec<Block> = problems.map(Block::text).collect();
    let unasked = || heres().filter(|(_, here)| here.answer.is_none() && here.problem.is_none());
    let of_catalogue = unasked().filter(|(server, _)| server.entry.is_some());
    let mut commands: Vec<String> = unasked()
        .filter(|(server, _)| server.entry.is_none())
        .map(|(server, here)| {
            format!("dbdyno servers add {} --basedir {}", server.name, here.base_dir.display())
        })
        .collect();
    let names: Vec<&str> = of_catalogue.map(|(server, _)| server.name.as_str()).collect();
    if !names.is_empty() {
        commands.push(format!("dbdyno servers get {}", names.join(" ")));
    }
    if !commands.is_empty() {
        blocks.push(Block::text("features unknown, or rebuilt since; to ask the servers:"));
        blocks.push(Block::Code(commands.join("\n")));
    }
    // The gap follows the tables.
    let gap = (!blocks.is_empty()).then(|| Block::text(""));
    gap.into_iter().chain(blocks).collect()
}

fn server(server: &ListedServer) -> Value {
    let entry = server.entry.as_ref().map(|entry| {
        json!({
            "source": entry.source.to_string(),
            "kind": entry.source.kind(),
            "checked_by": entry.source.check(),
            "download_mb": entry.download_mb,
            "untested": entry.untested,
            "own": entry.own,
        })
    });
    let here = server.here.as_ref().map(|here| {
        json!({
            "base_dir": here.base_dir,
            "origin": here.origin,
            "problem": here.problem,
            "answer": here.answer,
        })
    });
    json!({
        "name": server.name,
        "product": server.product,
        "version": server.version,
        "catalogue": entry,
        "here": here,
    })
}
