//! Reads the scripts of a plan. This module also has pgbench's three built-in scripts, and their
//! tables.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::pgbench::script::{self, ScriptCommand};
use crate::pgbench::variables::Names;
use crate::workload::sha256;

/// Highest number of bytes in a script.
const MOST_BYTES: u64 = 1 << 20;

/// Variables that every connection has.
pub(crate) const SCALE: &str = "scale";
pub(crate) const CLIENT: &str = "client_id";
pub(crate) const SEEDS: [&str; 2] = ["default_seed", "random_seed"];

#[derive(Debug, Clone)]
pub(crate) struct ScriptSource {
    /// The file, or the name of one of pgbench's scripts, as the plan gives it.
    pub(crate) given: String,
    /// The script's name within the names of steps and statements.
    pub(crate) name: String,
    pub(crate) weight: u64,
    pub(crate) text: String,
    pub(crate) commands: Vec<ScriptCommand>,
    pub(crate) builtin: Option<&'static Builtin>,
}

/// All scripts of a step, and the variables that they use.
#[derive(Debug, Clone)]
pub(crate) struct Scripts {
    pub(crate) list: Vec<ScriptSource>,
    pub(crate) names: Arc<Names>,
}

impl Scripts {
    /// Reads `files`. `more` are names of variables that exist whether or not the scripts use them.
    /// `commit` is the word that ends a transaction in pgbench's own scripts.
    pub(crate) fn read<'a>(
        files: &[String],
        more: impl Iterator<Item = &'a str>,
        commit: &str,
    ) -> Result<Self, String> {
        let mut names = Names::default();
        for name in more.chain([SCALE, CLIENT]).chain(SEEDS) {
            names.index(name);
        }
        let mut list = Vec::new();
        for (file, name) in files.iter().zip(names_of(files)) {
            let (given, weight) = weighted(file)?;
            let builtin = BUILTINS.iter().find(|own| own.name == given);
            let text = builtin.map_or_else(
                || text_of(given),
                |own| Ok(own.text.replace("\nEND;", &format!("\n{commit};"))),
            )?;
            let commands =
                script::read(&text, &mut names).map_err(|problem| format!("script {given}: {problem}"))?;
            list.push(ScriptSource { given: given.to_owned(), name, weight, text, commands, builtin });
        }
        if list.iter().all(|source| source.weight == 0) {
            return Err("no script has a weight above 0".to_owned());
        }
        Ok(Self { list, names: Arc::new(names) })
    }

    /// Returns the script that a draw from 0 to below the sum of weights chooses.
    pub(crate) fn chosen(&self, mut draw: u64) -> usize {
        for (index, source) in self.list.iter().enumerate() {
            match draw.checked_sub(source.weight) {
                None => return index,
                Some(rest) => draw = rest,
            }
        }
        self.list.len() - 1
    }

    pub(crate) fn weights(&self) -> u64 {
        self.list.iter().map(|source| source.weight).sum()
    }

    pub(crate) fn hash(&self) -> String {
        sha256(self.list.iter().map(|source| &*source.text))
    }
}

/// Returns the file and weight in `FILE@WEIGHT`.
fn weighted(file: &str) -> Result<(&str, u64), String> {
    match file.rsplit_once('@') {
        None => Ok((file, 1)),
        Some((given, weight)) => {
            let weight = weight.parse().ok().filter(|weight| *weight <= u64::from(u32::MAX));
            let weight =
                weight.ok_or_else(|| format!("{file}: the weight after @ must be a whole number from 0"))?;
            Ok((given, weight))
        }
    }
}

/// Returns the names of scripts, which are their files without folder and suffix. A repeated name
/// gets a number.
pub(crate) fn names_of(files: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for file in files {
        let given = weighted(file).map_or(file.as_str(), |(given, _)| given);
        let stem = Path::new(given).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
        let is_plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
        let plain: String =
            stem.chars().map(|character| if is_plain(character) { character } else { '_' }).collect();
        let again =
            names.iter().filter(|own| **own == plain || own.starts_with(&format!("{plain}-"))).count();
        names.push(if again == 0 { plain } else { format!("{plain}-{}", again + 1) });
    }
    names
}

fn text_of(path: &str) -> Result<String, String> {
    let problem = |error: std::io::Error| {
        let names = BUILTINS.map(|own| own.name).join(", ");
        format!("cannot read script {path}: {error}; pgbench's own are {names}")
    };
    if std::fs::metadata(path).map_err(problem)?.len() > MOST_BYTES {
        return Err(format!("{path} is not a script: it has more than {MOST_BYTES} bytes"));
    }
    String::from_utf8(std::fs::read(path).map_err(problem)?).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = 1 + bytes[..valid].iter().filter(|byte| **byte == b'\n').count();
        let first = bytes.get(valid).copied().unwrap_or_default();
        format!(
            "script {path}: line {line}: byte 0x{first:02x} is not UTF-8; save the script as UTF-8, or write the value as an escape"
        )
    })
}

/// Keeps `name`, under which commands are counted, for the life of the process. There are few
/// names, and each run of a script has the same ones.
pub(crate) fn interned(name: String) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(own) = all.get(name.as_str()) {
        return own;
    }
    let own: &'static str = Box::leak(name.into_boxed_str());
    all.insert(own);
    own
}

/// One of pgbench's own scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    pub name: &'static str,
    /// The script's title in pgbench's report.
    pub title: &'static str,
    pub text: &'static str,
    /// Whether the script leaves branches and tellers as they are, so that their sums differ from
    /// those of the accounts.
    pub(crate) only_accounts: bool,
    /// Whether each transaction adds a row to the history.
    pub(crate) writes: bool,
}

/// The scripts in the order in which pgbench lists them.
pub const BUILTINS: [Builtin; 3] = [
    Builtin {
        name: "tpcb-like",
        title: "<builtin: TPC-B (sort of)>",
        text: include_str!("builtin/tpcb-like.sql"),
        only_accounts: false,
        writes: true,
    },
    Builtin {
        name: "simple-update",
        title: "<builtin: simple update>",
        text: include_str!("builtin/simple-update.sql"),
        only_accounts: true,
        writes: true,
    },
    Builtin {
        name: "select-only",
        title: "<builtin: select only>",
        text: include_str!("builtin/select-only.sql"),
        only_accounts: false,
        writes: false,
    },
];

/// Returns the one script whose name begins with `name`.
pub fn builtin(name: &str) -> Result<&'static Builtin, String> {
    let found: Vec<&Builtin> = BUILTINS.iter().filter(|own| own.name.starts_with(name)).collect();
    let names = BUILTINS.map(|own| own.name).join(", ");
    match &found[..] {
        [own] => Ok(own),
        [] => Err(format!("no builtin script found for name \"{name}\"; there are {names}")),
        several => {
            let count = several.len();
            Err(format!(
                "ambiguous builtin name: {count} builtin scripts found for prefix \"{name}\"; there are {names}"
            ))
        }
    }
}

/// A table with its columns and its key.
pub(crate) struct PgbenchTable {
    pub(crate) name: &'static str,
    /// The columns. Numbers of accounts are `AID`, whose width depends on the scale.
    pub(crate) columns: &'static str,
    pub(crate) key: &'static str,
    /// Number of rows per unit of scale.
    pub(crate) rows: u64,
}

pub(crate) const ACCOUNTS: u64 = 100_000;
pub(crate) const TELLERS: u64 = 10;

/// The tables in an order in which they can be dropped.
pub(crate) const TABLES: [PgbenchTable; 4] = [
    PgbenchTable {
        name: "pgbench_history",
        columns: "tid int,bid int,aid AID,delta int,mtime timestamp,filler char(22)",
        key: "",
        rows: 0,
    },
    PgbenchTable {
        name: "pgbench_tellers",
        columns: "tid int not null,bid int,tbalance int,filler char(84)",
        key: "tid",
        rows: TELLERS,
    },
    PgbenchTable {
        name: "pgbench_accounts",
        columns: "aid AID not null,bid int,abalance int,filler char(84)",
        key: "aid",
        rows: ACCOUNTS,
    },
    PgbenchTable {
        name: "pgbench_branches",
        columns: "bid int not null,bbalance int,filler char(88)",
        key: "bid",
        rows: 1,
    },
];

/// Constraints, as (table, column, table with that column as its key).
pub(crate) const FOREIGN_KEYS: [(&str, &str, &str); 5] = [
    ("pgbench_tellers", "bid", "pgbench_branches"),
    ("pgbench_accounts", "bid", "pgbench_branches"),
    ("pgbench_history", "bid", "pgbench_branches"),
    ("pgbench_history", "tid", "pgbench_tellers"),
    ("pgbench_history", "aid", "pgbench_accounts"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_drawn_by_weight_and_have_names_of_their_own() {
        let files = ["tpcb-like@9", "select-only@0", "select-only"].map(str::to_owned);
        let scripts = Scripts::read(&files, std::iter::empty(), "END").unwrap();
        let names: Vec<&str> = scripts.list.iter().map(|source| source.name.as_str()).collect();
        assert_eq!((names, scripts.weights()), (vec!["tpcb-like", "select-only", "select-only-2"], 10));
        assert_eq!([0, 8, 9].map(|draw| scripts.chosen(draw)), [0, 0, 2]);
    }

    #[test]
    fn a_script_that_is_not_utf_8_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sql").display().to_string();
        for (bytes, line) in [(&b"SELECT 1;\n\nSELECT '\xff\xfe';\n"[..], 3), (b"SELECT '\xff", 1)] {
            std::fs::write(&path, bytes).unwrap();
            let refused = Scripts::read(std::slice::from_ref(&path), std::iter::empty(), "END").unwrap_err();
            let advice = "save the script as UTF-8, or write the value as an escape";
            assert_eq!(refused, format!("script {path}: line {line}: byte 0xff is not UTF-8; {advice}"));
        }
        std::fs::write(&path, "SELECT 'é';").unwrap();
        assert!(Scripts::read(&[path], std::iter::empty(), "END").is_ok());
    }

    #[test]
    fn mistakes_name_the_script() {
        let read = |file: &str| Scripts::read(&[file.to_owned()], std::iter::empty(), "END").unwrap_err();
        assert_eq!(read("tpcb-like@x"), "tpcb-like@x: the weight after @ must be a whole number from 0");
        assert_eq!(read("tpcb-like@0"), "no script has a weight above 0");
        assert!(read("missing.sql").starts_with("cannot read script missing.sql: No such file"));
    }

    #[test]
    fn a_builtin_script_is_found_by_an_unambiguous_beginning_of_its_name() {
        assert_eq!(
            ["tpcb", "si", "select-only"].map(|name| builtin(name).unwrap().name),
            ["tpcb-like", "simple-update", "select-only"]
        );
        insta::assert_snapshot!(builtin("s").unwrap_err(), @r#"ambiguous builtin name: 2 builtin scripts found for prefix "s"; there are tpcb-like, simple-update, select-only"#);
        insta::assert_snapshot!(builtin("nix").unwrap_err(), @r#"no builtin script found for name "nix"; there are tpcb-like, simple-update, select-only"#);
    }
}
