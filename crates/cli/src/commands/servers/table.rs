//! Shows servers as tables, and says in few words what a server can do.

use dbdyno_db::server::{Abilities, ThreadPool, TlsAbility};
use dbdyno_fetch::ListedServer;
use dbdyno_products::{ALL, FamilyFacts};
use dbdyno_report::document::{Column, Table};

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
fn words<const N: usize>(title: &str, heads: [&str; N], figures: &[&str]) -> Table {
    let column = |head: &&str| Column { is_words: !figures.contains(head), ..Column::words(head) };
    Table {
        title: title.to_owned(),
        labels: 1,
        columns: heads.iter().map(column).collect(),
        ..Table::default()
    }
}

pub(super) fn catalogue(all: &[ListedServer]) -> Table {
    let mut table = words("", ["name", "server", "here", "download", "source"], &["download"]);
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

/// Shows what the installed servers can do. Servers that have not been probed are left out.
pub(super) fn abilities(all: &[ListedServer]) -> Table {
    let heads = ["name", "engines", "pool", "login", "TLS", "async I/O", "more"];
    let mut table = words("features of the servers here, as they reported them", heads, &[]);
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
            more(abilities).join(", "),
        ]);
    }
    table
}

/// Says what is worth a word about a server that was just probed.
pub(super) fn summary(abilities: &Abilities) -> String {
    let mut words = vec![engines(abilities)];
    match abilities.thread_pool {
        ThreadPool::None => {}
        ThreadPool::BuiltIn => words.push("thread pool".to_owned()),
        ThreadPool::Plugin => words.push("thread pool as a plugin".to_owned()),
    }
    words.push(abilities.default_login.clone());
    words.extend(abilities.aio.first().cloned());
    words.extend(more(abilities));
    words.join(", ")
}

/// Names the default engine, and the other engines that not every build has.
fn engines(abilities: &Abilities) -> String {
    let is_other = |engine: &&String| !USUAL.contains(&engine.as_str());
    let others = abilities.engines.iter().filter(is_other);
    std::iter::once(&abilities.default_engine).chain(others).cloned().collect::<Vec<_>>().join(", ")
}

fn more(abilities: &Abilities) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_what_distinguishes_a_build() {
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
        assert_eq!(summary(&abilities), words);
    }
}
