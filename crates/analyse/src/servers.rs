//! Reads what servers reported about themselves at their start, and lists of CPUs, such as `0-3,8`,
//! as plans and the kernel write them.

use std::collections::BTreeSet;

use dbdyno_products::engine_name;
use dbdyno_record::{CellEvent, CellRecord, Run, ServerInfo};

/// The engine of the workload's tables, with its version where the server reports one. It is the
/// server's default engine where tables name none.
pub(crate) fn tables_engine(server: &ServerInfo) -> Option<String> {
    let Some(asked) = &server.tables_engine else { return server.engine.clone() };
    // The description of a default InnoDB has its version, and identifies XtraDB.
    let described = server.engine.as_ref().filter(|default| {
        let name = default.split_whitespace().next().unwrap_or_default();
        let name = if name == "XtraDB" { "InnoDB" } else { name };
        name.eq_ignore_ascii_case("innodb") && name.eq_ignore_ascii_case(asked)
    });
    Some(described.cloned().unwrap_or_else(|| engine_name(asked)))
}

/// What the servers in a variant's cells reported, once per start.
pub(crate) fn servers<'a>(run: &'a Run, variant: &str) -> impl Iterator<Item = &'a ServerInfo> {
    run.cells.iter().filter(move |cell| cell.id.variant == variant).flat_map(servers_of)
}

/// What the servers in one cell reported.
pub(crate) fn servers_of(cell: &CellRecord) -> impl Iterator<Item = &ServerInfo> {
    cell.events.iter().filter_map(|event| match event {
        CellEvent::Server { server, .. } => Some(server),
        _ => None,
    })
}

/// Highest CPU number that is accepted. No host has as many CPUs, so a higher number is a typing
/// error.
const MAX_CPU: u32 = 65_535;

/// The CPUs of a list such as `0-3,8`; `None` when it is not one.
pub(crate) fn cpu_list(list: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > MAX_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_is_that_of_the_tables_and_not_the_servers_default() {
        let named = |default: &str, tables: Option<&str>| {
            let [engine, tables_engine] = [Some(default), tables].map(|text| text.map(str::to_owned));
            tables_engine_of(engine, tables_engine)
        };
        assert_eq!(named("InnoDB 10.11.19", Some("innodb")), "InnoDB 10.11.19");
        assert_eq!(named("XtraDB 5.6.36", Some("InnoDB")), "XtraDB 5.6.36");
        assert_eq!(named("InnoDB 10.11.19", Some("rocksdb")), "MyRocks");
        assert_eq!(named("InnoDB 10.11.19", Some("aria")), "Aria");
        assert_eq!(named("ROCKSDB", Some("rocksdb")), "MyRocks");
        assert_eq!(named("ROCKSDB", Some("innodb")), "InnoDB");
        assert_eq!(named("InnoDB 8.0.31", Some("tokudb")), "tokudb");
        assert_eq!(named("heap", None), "heap");
    }

    fn tables_engine_of(engine: Option<String>, tables_engine: Option<String>) -> String {
        super::tables_engine(&ServerInfo { engine, tables_engine, ..ServerInfo::default() }).unwrap()
    }

    #[test]
    fn cpu_lists_are_read_and_nonsense_is_none() {
        assert_eq!(cpu_list("0-2,8"), Some(BTreeSet::from([0, 1, 2, 8])));
        assert_eq!(cpu_list("all"), None);
        assert_eq!(cpu_list("0-4000000000"), None);
    }
}
