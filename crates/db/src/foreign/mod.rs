//! Servers that speak a product's protocol but are another product. This module identifies them by
//! what they say about themselves, and probes them to find out what they can do.
//!
//! Known servers are rows in `known.toml`. None has its own code, because the probes in [`probe`]
//! find out where a server differs from the product.

mod probe;

use std::sync::LazyLock;

use serde::Deserialize;

use crate::product::{Texts, version_numbers};
#[cfg(test)]
use probe::is_ability;

/// Longest text that is kept as a version, in characters.
const LONGEST_VERSION: usize = 120;

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        server: Vec<Known>,
    }
    let file: File = toml::from_str(include_str!("known.toml")).expect("the file is part of the program");
    file.server
});

/// One row for a known server. The data file explains the fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    name: String,
    speaks: Vec<String>,
    #[serde(default)]
    words: Vec<String>,
    has: Option<String>,
    #[serde(default)]
    proxy: bool,
    #[serde(default)]
    breaks: Vec<String>,
    #[serde(default)]
    programmed: bool,
}

/// Text that replaces the server's message for a feature that was not probed.
const NOT_PROBED: &str = "not probed, because the probe breaks this server";

/// What a server says about itself. It is enough to decide which server it is.
#[derive(Debug)]
pub(crate) struct Identification<'a> {
    /// The driver that asked the server.
    pub(crate) driver: &'static str,
    /// The product whose protocol the server speaks, for people.
    pub(crate) protocol: &'static str,
    /// The server's version at login and other texts about itself, with the most informative one
    /// first.
    pub(crate) said: &'a [&'a str],
    /// Values of settings, and of functions without arguments, by their names.
    pub(crate) has: &'a Texts,
    /// The product's name, and its version as text and as numbers. This is set where everything
    /// that the server says about itself points to that product.
    pub(crate) own: Option<(&'static str, &'a str, [u32; 3])>,
    /// Whether the connection's number differs from the one at login. A proxy or pooler then passes
    /// statements on.
    pub(crate) through_proxy: bool,
}

/// The server that was identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) product: String,
    pub(crate) version_text: String,
    pub(crate) version: [u32; 3],
    pub(crate) foreign: Option<Foreign>,
}

/// A server that is none of the known products.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Foreign {
    /// The name that the server gives itself.
    pub name: String,
    /// The product whose protocol the server speaks: `MySQL`, `PostgreSQL`.
    pub speaks: String,
    /// Whether the server passes statements on. Its process then does not hold the data, and the
    /// answers come from the product.
    pub is_proxy: bool,
    /// Whether the server answers as it was configured to, so that its answers do not show what it
    /// can do.
    pub is_programmed: bool,
    /// Features that the product has and this server lacked when probed, each with the server's own
    /// message.
    pub missing: Vec<(String, String)>,
}

/// Names of the settings and functions by which a server that speaks `driver`'s protocol is
/// recognised.
pub(crate) fn identifying_names(driver: &str) -> impl Iterator<Item = &'static str> {
    let spoken = KNOWN.iter().filter(move |known| known.speaks.iter().any(|spoken| *spoken == driver));
    spoken.filter_map(|known| known.has.as_deref())
}

/// Identifies the server. A name that the server gives itself outweighs everything that looks like
/// the product, because servers with the same protocol copy its versions and settings.
pub(crate) fn identify(identification: &Identification<'_>) -> Identity {
    let foreign = |name: &str, is_proxy| Foreign {
        name: name.to_owned(),
        speaks: identification.protocol.to_owned(),
        is_proxy,
        is_programmed: false,
        missing: Vec::new(),
    };
    let of = |foreign: Foreign, version_text: &str, version| Identity {
        product: foreign.name.clone(),
        version_text: shortened(version_text),
        version,
        foreign: Some(foreign),
    };
    if let Some((known, text, version)) = known(identification) {
        // A name without a version is shown after the version that the server reports to the
        // protocol's clients.
        let banner = format!("{} {text}", identification.said.first().unwrap_or(&""));
        let text = if text.contains(|sign: char| sign.is_ascii_digit()) { text } else { &banner };
        let missing = known.breaks.iter().map(|name| (name.clone(), NOT_PROBED.to_owned())).collect();
        let is_programmed = known.programmed;
        let found = Foreign { is_programmed, missing, ..foreign(&known.name, known.proxy) };
        return of(found, text, version);
    }
    match identification.own {
        Some((product, text, version)) if identification.through_proxy => {
            of(foreign(&format!("proxy or pooler in front of {product}"), true), text, version)
        }
        Some((product, text, version)) => {
            Identity { product: product.to_owned(), version_text: text.to_owned(), version, foreign: None }
        }
        None => {
            let name = format!("unknown server that speaks {}'s protocol", identification.protocol);
            let said = identification.said.iter().find(|text| !text.is_empty()).copied().unwrap_or_default();
            of(foreign(&name, false), said, first_numbers(said))
        }
    }
}

/// The matching row, the text that matches it, and the version in that text.
fn known<'a>(identification: &Identification<'a>) -> Option<(&'static Known, &'a str, [u32; 3])> {
    let speaks = |known: &&Known| known.speaks.iter().any(|driver| *driver == identification.driver);
    KNOWN.iter().filter(speaks).find_map(|known| {
        if let Some(value) = known.has.as_ref().and_then(|name| identification.has.get(name)) {
            return Some((known, value.as_str(), first_numbers(value)));
        }
        known.words.iter().find_map(|word| {
            let (text, rest) = identification
                .said
                .iter()
                .find_map(|text| Some((*text, text.split_once(word.as_str())?.1)))?;
            // The version follows the name, as in `-TiDB-v7.5.0` and `PGlite 0.5.8`. Otherwise the
            // first number is the best guess.
            let after = rest.trim_start_matches([' ', '-', '/', 'v']);
            let is_version = after.starts_with(|sign: char| sign.is_ascii_digit());
            Some((known, text, if is_version { version_numbers(after) } else { first_numbers(text) }))
        })
    })
}

/// Numbers in the first version in `text`.
fn first_numbers(text: &str) -> [u32; 3] {
    version_numbers(text.trim_start_matches(|sign: char| !sign.is_ascii_digit()))
}

/// Shortens a text to one line of bounded length without the compiler's name. The length must be
/// bounded, because the text comes from an unknown server.
fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    let line = line.split(", compiled by").next().unwrap_or_default();
    line.chars().take(LONGEST_VERSION).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Identifies a `driver` server from its version at login, version() and version comment
    /// (`said`), and from its settings or functions (`has`). `looks_own` says that it looks like
    /// the product.
    fn named(driver: &'static str, said: &[&str], has: &[(&str, &str)], looks_own: bool) -> String {
        let has = has.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (protocol, product) = match driver {
            "mysql" => ("MySQL", "MySQL"),
            _ => ("PostgreSQL", "PostgreSQL"),
        };
        let own = looks_own.then_some((product, said[0], version_numbers(said[0])));
        let identification = Identification { driver, protocol, said, has: &has, own, through_proxy: false };
        let Identity { product, version, version_text, foreign } = identify(&identification);
        let [major, minor, patch] = version;
        let kind = if foreign.is_some() { "foreign" } else { "own" };
        format!("{product} {major}.{minor}.{patch} ({kind}): {version_text}")
    }

    /// These are texts from real servers, in which the product's own version often comes first.
    #[test]
    fn a_server_is_called_by_its_own_name_and_not_by_the_product_that_it_imitates() {
        let mysql = |said: &[&str], has: &[(&str, &str)]| named("mysql", said, has, true);
        let postgres = |said: &[&str], has: &[(&str, &str)]| named("postgres", said, has, true);
        let aurora_pg =
            "PostgreSQL 15.4 on x86_64-pc-linux-gnu, compiled by x86_64-pc-linux-gnu-gcc (GCC) 9.5.0, 64-bit";
        let pglite = "PostgreSQL 18.3 (PGlite 0.5.8) on wasm32-unknown-emscripten, compiled by emcc (Emscripten gcc/clang-like replacement + linker emulating GNU ld) 3.1.74 (1092ec30a3fb), 32-bit";
        let old_pglite = "PostgreSQL 16.4 on x86_64-pc-linux-gnu, compiled by emcc (Emscripten gcc/clang-like replacement) 3.1.72 (437140d), 32-bit";
        let yugabyte =
            "PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 16.0.6, 64-bit";
        let redshift =
            "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2, Redshift 1.0.12103";
        let all = [
            mysql(
                &[
                    "8.0.11-TiDB-v7.5.0",
                    "TiDB Server (Apache License 2.0) Community Edition, MySQL 8.0 compatible",
                ],
                &[],
            ),
            mysql(&["8.0.33", "Dolt"], &[]),
            mysql(&["8.0.30-Vitess", "Version: 18.0.0-SNAPSHOT (Git revision 122ee75)"], &[]),
            mysql(&["8.0.30", "Source distribution"], &[("aurora_version", "3.05.2")]),
            mysql(&["8.0.mysql_aurora.3.04.0", "MySQL Community Server (GPL)"], &[]),
            mysql(
                &[
                    "5.7.32",
                    "SingleStoreDB source distribution (compatible; MySQL Enterprise & MySQL Commercial)",
                ],
                &[("memsql_version", "8.5.4")],
            ),
            mysql(&["5.7.25-OceanBase_CE-v4.2.1.2"], &[]),
            mysql(&["8.0.11", "(ProxySQL)"], &[]),
            mysql(&["8.0.31", "MySQL Community Server - GPL"], &[]),
            named("mysql", &["8.0.31", "my own server"], &[], false),
            postgres(
                &["CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27, go1.19.10)", "13.0.0"],
                &[],
            ),
            postgres(&["PostgreSQL 16.3 compatible CedarDB v2025-08-20", "16.3"], &[]),
            postgres(&[yugabyte, "11.2-YB-2.20.1.0-b0"], &[]),
            postgres(&[aurora_pg, "15.4"], &[("aurora_version", "15.4.1")]),
            postgres(&[pglite, "18.3 (PGlite 0.5.8)"], &[]),
            postgres(&[old_pglite, "16.4"], &[]),
            postgres(&[redshift, "8.0.2"], &[]),
            postgres(&["15.19", "15.19"], &[]),
            named("postgres", &["", "14.0"], &[], false),
        ];
        insta::assert_snapshot!(all.join("\n"), @r"
        TiDB 7.5.0 (foreign): 8.0.11-TiDB-v7.5.0
        Dolt 0.0.0 (foreign): 8.0.33 Dolt
        Vitess 8.0.30 (foreign): 8.0.30-Vitess
        Aurora MySQL 3.5.2 (foreign): 3.05.2
        Aurora MySQL 3.4.0 (foreign): 8.0.mysql_aurora.3.04.0
        SingleStore 8.5.4 (foreign): 8.5.4
        OceanBase 5.7.25 (foreign): 5.7.25-OceanBase_CE-v4.2.1.2
        ProxySQL 0.0.0 (foreign): 8.0.11 (ProxySQL)
        MySQL 8.0.31 (own): 8.0.31
        unknown server that speaks MySQL's protocol 8.0.31 (foreign): 8.0.31
        CockroachDB 23.1.11 (foreign): CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27, go1.19.10)
        CedarDB 2025.8.20 (foreign): PostgreSQL 16.3 compatible CedarDB v2025-08-20
        YugabyteDB 2.20.1 (foreign): PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu
        Aurora PostgreSQL 15.4.1 (foreign): 15.4.1
        PGlite 0.5.8 (foreign): PostgreSQL 18.3 (PGlite 0.5.8) on wasm32-unknown-emscripten
        PGlite 16.4.0 (foreign): PostgreSQL 16.4 on x86_64-pc-linux-gnu
        Amazon Redshift 1.0.12103 (foreign): PostgreSQL 8.0.2 on i686-pc-linux-gnu
        PostgreSQL 15.19.0 (own): 15.19
        unknown server that speaks PostgreSQL's protocol 14.0.0 (foreign): 14.0
        ");
    }

    #[test]
    fn the_name_of_a_product_behind_a_proxy_mentions_the_proxy() {
        let has = Texts::new();
        let said: &[&str] = &["PostgreSQL 15.19 on x86_64-pc-linux-gnu, compiled by gcc, 64-bit"];
        let own = Some(("PostgreSQL", "15.19", [15, 19, 0]));
        let (driver, protocol) = ("postgres", "PostgreSQL");
        let found = identify(&Identification { driver, protocol, said, has: &has, own, through_proxy: true });
        assert_eq!(found.product, "proxy or pooler in front of PostgreSQL");
        assert_eq!((found.version_text.as_str(), found.foreign.unwrap().is_proxy), ("15.19", true));
    }

    #[test]
    fn a_version_from_a_server_is_one_line_of_bounded_length() {
        let long = format!("1.2 {}\nmore", "x".repeat(500));
        assert_eq!(shortened(&long).chars().count(), LONGEST_VERSION);
        assert_eq!(shortened("Release Version: v7.5.0\nEdition: Community"), "Release Version: v7.5.0");
    }

    #[test]
    fn every_known_server_has_a_driver_and_something_to_recognise_it_by() {
        for known in KNOWN.iter() {
            let is_spoken = |driver: &String| crate::Family::ALL.iter().any(|family| family.name() == driver);
            assert!(!known.speaks.is_empty() && known.speaks.iter().all(is_spoken), "{}", known.name);
            assert!(known.has.is_some() || !known.words.is_empty(), "{}", known.name);
            assert!(known.words.iter().all(|word| word.len() >= 3), "{}", known.name);
            assert!(known.breaks.iter().all(|name| is_ability(name)), "{}", known.name);
        }
    }
}
