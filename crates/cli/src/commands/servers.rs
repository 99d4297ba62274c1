//! `dbdyno servers` downloads, adds and removes server builds. It lists the catalogue, the
//! installed servers, and their features. It also starts a scratch server in the foreground, whose
//! data are removed when it stops.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use dbdyno_db::server::{
    Abilities, Base, Error as ServerError, ThreadPool, TlsAbility, list as names_in, servers_dir,
};
use dbdyno_fetch as servers;
use dbdyno_fetch::{
    BuildRequest, Catalogue, Entry, Error, ListedServer, Repository, ScratchOptions, ScratchServer, ServerEntry,
    ServerOrigin,
    catalogue, client, find_named, inventory, missing_tools,
};
use dbdyno_plan::Plan;
use dbdyno_products::{ALL, FamilyFacts, VariantKind};
use dbdyno_report::document::{Block, Column, Table};
use serde_json::{Value, json};

use crate::args::{BuildArgs, ServersVerb};
use crate::exit::{ExitError, INTERRUPTED, MACHINE, SERVER, USAGE};
use crate::{signals, terminal};

pub(crate) fn servers(verb: &ServersVerb) -> Result<(), ExitError> {
    match verb {
        ServersVerb::List { here, json } => show_list(*here, *json),
        ServersVerb::Get { names, from } => get(names, from.as_deref(), result),
        ServersVerb::Build(args) => build(args),
        ServersVerb::Add { name, basedir } => add(name, basedir),
        ServersVerb::Start { name, config } => start(name, config.as_deref()),
        ServersVerb::Remove { name: Some(name), .. } => remove(name),
        ServersVerb::Remove { older_than, .. } => remove_builds(older_than.map_or(Duration::ZERO, |age| age.0)),
    }
}

fn result(line: &str) -> Result<(), ExitError> {
    terminal::out_blocks(&[Block::text(line)])
}

/// Downloads one server after the other. When a download fails, the next one is still tried.
///
/// `from` is a tarball of the one server, or the folder with the tarballs of all. `say` prints a
/// line about each server.
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

/// Downloads a plan's servers that are not installed, either at once or after the user agrees. The
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

/// Asks whether to download servers, and shows their sizes. The result is `false` where there is no
/// one to ask, or where the catalogue lacks one of the servers.
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

/// Fails before the first download if tools are missing, and names all of them at once.
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

/// Builds a server from a git repository.
fn build(args: &BuildArgs) -> Result<(), ExitError> {
    let request = BuildRequest {
        product: args.product.clone(),
        repo: args.repo.clone(),
        commit: args.commit.clone(),
        patch: args.patch.clone(),
        options: args.options.clone(),
    };
    let repository = Repository::open(&args.repo).map_err(ended)?;
    if repository.is_dirty() {
        terminal::warning("the repository has changes that are not committed; no build has them");
    }
    let cancel = signals::watch("stopping; incomplete files are removed (again: stop at once)")?;
    let begun = Instant::now();
    let (name, server_entry) =
        servers::build(&request, &servers_dir(), &cancel, &mut |line| terminal::note(line)).map_err(ended)?;
    result(&described(&name, &server_entry, begun))
}

/// Removes builds that were made longer ago than `age`.
fn remove_builds(age: Duration) -> Result<(), ExitError> {
    let mut removed = 0;
    for name in servers::builds_older_than(&servers_dir(), age) {
        remove(&name)?;
        removed += 1;
    }
    match removed {
        0 => result("no build is that old"),
        _ => Ok(()),
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
        ServerOrigin::Added => format!("{name}: forgotten; {} stays as it is", server_entry.source),
        ServerOrigin::Got | ServerOrigin::Built | ServerOrigin::Found => {
            format!("{name}: removed from {}", servers_dir().display())
        }
    })
}

/// Writes one line on a server that is installed and answers.
fn described(name: &str, server_entry: &ServerEntry, begun: Instant) -> String {
    let place = servers_dir().join(name);
    let title = server_entry.answer.as_ref().map_or(String::new(), |answer| {
        format!("{} {} ({})", answer.product, answer.version, abilities_summary(&answer.abilities))
    });
    format!("{name}: {title} in {}, {:.1} s", place.display(), begun.elapsed().as_secs_f64())
}

/// Gives an error the exit status that says whether the user, the machine or the server caused it.
fn ended(error: impl Into<Error>) -> ExitError {
    let error = error.into();
    let code = match &error {
        Error::NotInCatalogue { .. }
        | Error::Repository { .. }
        | Error::Unbuildable { .. }
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

fn show_list(only_here: bool, as_json: bool) -> Result<(), ExitError> {
    let catalogue = Catalogue::read().map_err(ended)?;
    let all = listed(&catalogue, only_here);
    if as_json {
        return terminal::out_json(&list_json(&all, &catalogue));
    }
    terminal::out_blocks(&list_blocks(&all, &catalogue))
}

/// Returns the installed servers for `dbdyno list servers --json`.
pub(crate) fn here_json() -> Result<Value, ExitError> {
    let catalogue = Catalogue::read().map_err(ended)?;
    Ok(list_json(&listed(&catalogue, true), &catalogue))
}

fn list_json(all: &[ListedServer], catalogue: &Catalogue) -> Value {
    json!({
        "folder": servers_dir(),
        "own_catalogue": catalogue.own_file,
        "servers": all.iter().map(server_json).collect::<Vec<_>>(),
    })
}

/// Returns the installed servers for `dbdyno list servers`.
pub(crate) fn here() -> Vec<Block> {
    // `dbdyno servers` reports errors in the user's own catalogue.
    let catalogue = Catalogue::read().unwrap_or_else(|_| Catalogue { entries: catalogue(), own_file: None });
    list_blocks(&listed(&catalogue, true), &catalogue)
}

fn listed(catalogue: &Catalogue, only_here: bool) -> Vec<ListedServer> {
    let mut all = inventory(&servers_dir(), catalogue);
    all.retain(|server| !only_here || server.here.is_some());
    all
}

fn list_blocks(all: &[ListedServer], catalogue: &Catalogue) -> Vec<Block> {
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
    blocks.push(Block::Table(catalogue_table(all)));
    let abilities = abilities_table(all);
    blocks.extend((!abilities.rows.is_empty()).then_some(Block::Table(abilities)));
    blocks.extend(notes(all));
    blocks
}

/// Returns notes on faults of installed servers, and on servers that have not been probed.
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

fn server_json(server: &ListedServer) -> Value {
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
            "build": here.build,
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

/// Engines that nearly every build has, so they are not listed.
const USUAL: &[&str] = &[
    "Aria",
    "ARCHIVE",
    "BLACKHOLE",
    "CSV",
    "FEDERATED",
    "InnoDB",
    "MEMORY",
    "MyISAM",
    "MRG_MYISAM",
    "MRG_MyISAM",
    "PERFORMANCE_SCHEMA",
    "SEQUENCE",
    "heap",
    "ndbcluster",
    "ndbinfo",
];

/// Makes a table of words. The columns `figures` are aligned on the right.
fn words_table<const N: usize>(title: &str, heads: [&str; N], figures: &[&str]) -> Table {
    let column = |head: &&str| Column { is_words: !figures.contains(head), ..Column::words(head) };
    Table {
        title: title.to_owned(),
        labels: 1,
        columns: heads.iter().map(column).collect(),
        ..Table::default()
    }
}

fn catalogue_table(all: &[ListedServer]) -> Table {
    let mut table = words_table("", ["name", "server", "here", "download", "source"], &["download"]);
    for server in all {
        let here = match &server.here {
            None => "",
            Some(here) if here.problem.is_some() => "faulty",
            Some(_) => "here",
        };
        let download = server.entry.as_ref().and_then(|entry| entry.download_mb);
        table.push([
            server.name.clone(),
            title(server),
            here.to_owned(),
            download.map_or(String::new(), |mb| format!("{mb} MB")),
            source(server),
        ]);
    }
    table
}

fn title(server: &ListedServer) -> String {
    format!("{} {}", server.product, server.version).trim().to_owned()
}

fn source(server: &ListedServer) -> String {
    let base_dir = server.here.as_ref().map_or(String::new(), |here| here.base_dir.display().to_string());
    let Some(entry) = &server.entry else { return base_dir };
    let mut words = vec![entry.source.kind().to_owned()];
    if entry.untested {
        words.push("untested".to_owned());
    }
    if entry.source.moves_on() {
        words.push("moves with the release".to_owned());
    }
    if entry.own {
        words.push("yours".to_owned());
    }
    words.join(", ")
}

/// Shows the features of the installed servers. Servers that have not been probed are left out.
fn abilities_table(all: &[ListedServer]) -> Table {
    let heads = ["name", "engines", "pool", "login", "TLS", "async I/O", "more"];
    let mut table = words_table("features of the servers here, as they reported them", heads, &[]);
    let asked = all.iter().filter_map(|server| Some((server, server.here.as_ref()?.answer.as_ref()?)));
    for (server, answer) in asked {
        let abilities = &answer.abilities;
        table.push([
            server.name.clone(),
            engines(abilities),
            thread_pool(abilities.thread_pool).to_owned(),
            short_login(&abilities.default_login).to_owned(),
            tls(abilities.tls).to_owned(),
            if abilities.aio.is_empty() { "-".to_owned() } else { abilities.aio.join(" ") },
            more_abilities(abilities).join(", "),
        ]);
    }
    table
}

/// Returns one line with the distinguishing features of a server that was just probed.
fn abilities_summary(abilities: &Abilities) -> String {
    let mut words = vec![engines(abilities)];
    match abilities.thread_pool {
        ThreadPool::None => {}
        ThreadPool::BuiltIn => words.push("thread pool".to_owned()),
        ThreadPool::Plugin => words.push("thread pool as a plugin".to_owned()),
    }
    words.push(abilities.default_login.clone());
    words.extend(abilities.aio.first().cloned());
    words.extend(more_abilities(abilities));
    words.join(", ")
}

/// Names the default engine, and the other engines that not every build has.
fn engines(abilities: &Abilities) -> String {
    let is_other = |engine: &&String| !USUAL.contains(&engine.as_str());
    let others = abilities.engines.iter().filter(is_other);
    std::iter::once(&abilities.default_engine).chain(others).cloned().collect::<Vec<_>>().join(", ")
}

fn more_abilities(abilities: &Abilities) -> Vec<String> {
    let vector = abilities.vector.iter().map(|vector| match vector.starts_with("pgvector") {
        true => vector.clone(),
        false => format!("vector {vector}"),
    });
    vector.chain(abilities.jit.then(|| "JIT".to_owned())).collect()
}

fn thread_pool(pool: ThreadPool) -> &'static str {
    match pool {
        ThreadPool::None => "-",
        ThreadPool::BuiltIn => "built in",
        ThreadPool::Plugin => "plugin",
    }
}

fn tls(tls: TlsAbility) -> &'static str {
    match tls {
        TlsAbility::None => "-",
        TlsAbility::WithCertificate => "given key",
        TlsAbility::OwnCertificate => "own key",
    }
}

fn short_login(login: &str) -> &str {
    let without = |family: &&FamilyFacts| login.strip_prefix(family.name)?.strip_prefix('_');
    let login = ALL.iter().find_map(without).unwrap_or(login);
    login.strip_suffix("_password").unwrap_or(login)
}

/// Time between two checks whether the server has ended, or the user wants it to end.
const POLL: Duration = Duration::from_millis(100);

/// Lines of its log that are printed when a server ends by itself.
const LOG_LINES: usize = 15;

fn start(name: &str, config: Option<&Path>) -> Result<(), ExitError> {
    if let Some(file) = config.filter(|file| !file.is_file()) {
        return Err(ExitError::usage(format!(
            "--config: there is no file {}; name an option file",
            file.display()
        )));
    }
    let base = find_named(name).map_err(ended)?;
    let cancel = signals::watch("stopping the server (again: stop at once)")?;
    terminal::note(&format!("starting {} ({name}) on fresh data", base.title));
    // The server must start in this thread, which lives until the end. The kernel stops a server
    // when the thread that started it ends.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_the_distinguishing_features_of_a_build() {
        let text = |word: &str| word.to_owned();
        let abilities = Abilities {
            engines: ["Aria", "CSV", "InnoDB", "MyISAM", "ROCKSDB"].map(text).to_vec(),
            default_engine: text("InnoDB 10.11.19"),
            thread_pool: ThreadPool::BuiltIn,
            default_login: text("mysql_native_password"),
            aio: vec![text("io_uring")],
            vector: Some(text("index")),
            ..Abilities::default()
        };
        let words = "InnoDB 10.11.19, ROCKSDB, thread pool, mysql_native_password, io_uring, vector index";
        assert_eq!(abilities_summary(&abilities), words);
    }
}
