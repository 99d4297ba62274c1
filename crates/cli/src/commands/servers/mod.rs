//! `dbdyno servers` lists, downloads, adds and removes server builds, and starts a scratch server.

mod list;
mod start;
mod table;

use std::path::Path;
use std::time::Instant;

use dbdyno_db::server::{Error as ServerError, list as names_in, servers_dir};
use dbdyno_fetch::{self as servers, Catalogue, Entry, Error, Origin, ServerEntry, missing_tools};
use dbdyno_plan::Plan;
use dbdyno_products::VariantKind;
use dbdyno_report::document::Block;

pub(crate) use list::{here, here_json};

use crate::args::ServersVerb;
use crate::exit::{ExitError, INTERRUPTED, MACHINE, SERVER, USAGE};
use crate::{signals, terminal};

pub(crate) fn servers(verb: &ServersVerb) -> Result<(), ExitError> {
    match verb {
        ServersVerb::List { here, json } => list::show(*here, *json),
        ServersVerb::Get { names, from } => get(names, from.as_deref(), result),
        ServersVerb::Add { name, basedir } => add(name, basedir),
        ServersVerb::Start { name, config } => start::start(name, config.as_deref()),
        ServersVerb::Remove { name } => remove(name),
    }
}

fn result(line: &str) -> Result<(), ExitError> {
    terminal::out_blocks(&[Block::text(line)])
}

/// Gets one server after the other. When one cannot be got, the next is still tried.
///
/// `from` is a tarball of the one server, or the folder with the tarballs of all. `say` prints what
/// was got.
fn get(
    names: &[String],
    from: Option<&Path>,
    say: impl Fn(&str) -> Result<(), ExitError>,
) -> Result<(), ExitError> {
    let mut catalogue = Catalogue::read().map_err(ended)?;
    if let Some(from) = from {
        for entry in catalogue.entries.iter_mut().filter(|entry| names.contains(&entry.name)) {
            entry.take_from(from).map_err(ended)?;
        }
    }
    let entries: Vec<&Entry> =
        names.iter().map(|name| catalogue.find(name)).collect::<Result<_, _>>().map_err(ended)?;
    check_tools(&entries)?;
    let cancel = signals::watch("stopping; incomplete files are removed (again: stop at once)")?;
    let mut first_failure = None;
    for entry in entries {
        let begun = Instant::now();
        match servers::get(entry, &servers_dir(), &cancel, &mut |line| terminal::note(line)) {
            Ok(server_entry) => say(&described(&entry.name, &server_entry, begun))?,
            Err(error @ Error::Cancelled { .. }) => return Err(ended(error)),
            Err(error) => {
                let failure = ended(error);
                if let Some(message) = &failure.message {
                    terminal::error(message);
                }
                first_failure.get_or_insert(failure.code);
            }
        }
    }
    first_failure.map_or(Ok(()), |code| Err(ExitError::silent(code)))
}

/// Gets a plan's servers that are not installed, either at once or after the user agrees. The
/// plan's preparation reports the missing ones.
pub(crate) fn provide(plan: &Plan, at_once: bool) -> Result<(), ExitError> {
    let here = names_in(&servers_dir());
    let mut missing: Vec<String> = Vec::new();
    for variant in &plan.variants {
        if let VariantKind::Named(name) = VariantKind::of(variant)
            && !here.contains(&name)
            && !missing.contains(&name)
        {
            missing.push(name);
        }
    }
    if missing.is_empty() || !(at_once || wants(&missing)) {
        return Ok(());
    }
    // The run's own results go to standard output, so these lines do not.
    get(&missing, None, |line| {
        terminal::note(line);
        Ok(())
    })
}

/// Asks whether to get servers, and shows their sizes. The result is no where no one can be asked,
/// or where one of them cannot be got.
fn wants(missing: &[String]) -> bool {
    let Ok(catalogue) = Catalogue::read() else { return false };
    let entries: Result<Vec<&Entry>, _> = missing.iter().map(|name| catalogue.find(name)).collect();
    let Some(entries) = entries.ok().filter(|_| terminal::can_ask()) else { return false };
    let named = entries.iter().map(|entry| match entry.download_mb {
        Some(mb) => format!("{} ({mb} MB)", entry.name),
        None => entry.name.clone(),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let answer = terminal::ask(&format!("not installed: {named}. Get now? [Y/n]"));
    answer.is_some_and(|answer| answer.is_empty() || answer.to_lowercase().starts_with('y'))
}

/// Refuses before the first download, and names all missing tools at once.
fn check_tools(entries: &[&Entry]) -> Result<(), ExitError> {
    let there = names_in(&servers_dir());
    let wanted = entries.iter().filter(|entry| !there.contains(&entry.name));
    let mut packages: Vec<String> = wanted.flat_map(|entry| missing_tools(entry)).collect();
    packages.sort();
    packages.dedup();
    match packages.is_empty() {
        true => Ok(()),
        false => Err(ended(Error::MissingTools {
            what: "getting these servers".to_owned(),
            packages: packages.join(" "),
        })),
    }
}

fn add(name: &str, base_dir: &Path) -> Result<(), ExitError> {
    let catalogue = Catalogue::read().map_err(ended)?;
    let begun = Instant::now();
    let server_entry =
        servers::add(name, base_dir, &servers_dir(), &catalogue, &mut |line| terminal::note(line))
            .map_err(ended)?;
    result(&described(name, &server_entry, begun))
}

fn remove(name: &str) -> Result<(), ExitError> {
    let server_entry =
        servers::remove(name, &servers_dir(), &mut |line| terminal::note(line)).map_err(ended)?;
    result(&match server_entry.origin {
        Origin::Added => format!("{name}: forgotten; {} stays as it is", server_entry.source),
        Origin::Got | Origin::Found => format!("{name}: removed from {}", servers_dir().display()),
    })
}

/// Writes one line on a server that is installed and answers.
fn described(name: &str, server_entry: &ServerEntry, begun: Instant) -> String {
    let place = servers_dir().join(name);
    let title = server_entry.answer.as_ref().map_or(String::new(), |answer| {
        format!("{} {} ({})", answer.product, answer.version, table::summary(&answer.abilities))
    });
    format!("{name}: {title} in {}, {:.1} s", place.display(), begun.elapsed().as_secs_f64())
}

/// Assigns an error the exit status that says who can mend it.
fn ended(error: impl Into<Error>) -> ExitError {
    let error = error.into();
    let code = match &error {
        Error::NotInCatalogue { .. }
        | Error::Catalogue { .. }
        | Error::NameTaken { .. }
        | Error::NotRemovable { .. } => USAGE,
        Error::MissingTools { .. }
        | Error::Server(
            ServerError::Io { .. } | ServerError::NoUser { .. } | ServerError::SocketTooLong { .. },
        ) => MACHINE,
        Error::Cancelled { .. } | Error::Server(ServerError::Cancelled { .. }) => INTERRUPTED,
        _ => SERVER,
    };
    ExitError::new(code, error)
}
