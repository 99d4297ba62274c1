//! The scripts that pgbench brings along, and its four tables.

/// One of the original's own scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Builtin {
    pub name: &'static str,
    /// What pgbench's report calls it.
    pub title: &'static str,
    pub text: &'static str,
    /// Whether it leaves branches and tellers as they are, so that their sums differ from those of the
    /// accounts.
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
    /// Rows for each unit of scale.
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
    fn a_builtin_script_is_found_by_an_unambiguous_beginning_of_its_name() {
        assert_eq!(
            ["tpcb", "si", "select-only"].map(|name| builtin(name).unwrap().name),
            ["tpcb-like", "simple-update", "select-only"]
        );
        insta::assert_snapshot!(builtin("s").unwrap_err(), @r#"ambiguous builtin name: 2 builtin scripts found for prefix "s"; there are tpcb-like, simple-update, select-only"#);
        insta::assert_snapshot!(builtin("nix").unwrap_err(), @r#"no builtin script found for name "nix"; there are tpcb-like, simple-update, select-only"#);
    }
}
