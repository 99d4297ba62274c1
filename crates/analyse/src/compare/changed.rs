//! Warnings about servers or settings, or a dbdyno, that changed while a run went on. The blocks of
//! one variant then belong to two servers or two tools.

use dbdyno_products::KNOWN;
use dbdyno_record::{CellId, Run, ServerInfo};

use crate::model::{Code, SettingChange, Warning};
use crate::servers::servers_of;

/// One warning for each variant whose server or settings changed from one start to another.
pub(crate) fn warnings(run: &Run) -> Vec<Warning> {
    let names = run.manifest.variants.iter().map(|variant| variant.name.as_str());
    names.flat_map(|name| of_variant(run, name)).collect()
}

pub(crate) fn of_variant(run: &Run, name: &str) -> Vec<Warning> {
    [exchanged(run, name), set_otherwise(run, name)].into_iter().flatten().collect()
}

/// A note that the run went on with another build of dbdyno than the one that began it.
pub(crate) fn measured_by_several(run: &Run) -> Option<Warning> {
    let begun = &run.manifest.tool;
    let other = run.tools().find(|tool| *tool != begun)?;
    let [first, other] = [begun, other].map(|tool| format!("{} ({})", tool.version, tool.commit));
    let warning = Warning::new(Code::SeveralTools).with("run", run.manifest.run_id.as_str());
    Some(warning.with("first", first).with("other", other))
}

/// Every start of a variant's server, with its cell.
fn starts<'a>(run: &'a Run, variant: &str) -> impl Iterator<Item = (&'a CellId, &'a ServerInfo)> {
    let cells = run.cells.iter().filter(move |cell| cell.id.variant == variant);
    cells.flat_map(|cell| servers_of(cell).map(move |server| (&cell.id, server)))
}

fn exchanged(run: &Run, variant: &str) -> Option<Warning> {
    let (_, first) = starts(run, variant).next()?;
    let (_, other) = starts(run, variant).find(|(_, server)| server.version_text != first.version_text)?;
    let warning = Warning::new(Code::ServerChanged).at(variant);
    Some(warning.with("first", first.version_text.as_str()).with("other", other.version_text.as_str()))
}

/// The first start whose settings differ from those of the first start of all. A server of another
/// version is reported separately.
fn set_otherwise(run: &Run, variant: &str) -> Option<Warning> {
    let (first_cell, first) = starts(run, variant).find(|(_, server)| !server.settings.is_empty())?;
    let same_build = |server: &ServerInfo| server.version_text == first.version_text;
    let others = starts(run, variant).filter(|(_, server)| same_build(server) && !server.settings.is_empty());
    let (cell, changes) =
        others.map(|(cell, server)| (cell, changes(first, server))).find(|(_, found)| !found.is_empty())?;
    let warning = Warning::new(Code::SettingsChanged).at(variant).with("changes", changes);
    Some(warning.with("first", first_cell.to_string()).with("other", cell.to_string()))
}

/// The settings that differ. A setting that only one of the two starts has counts as well.
fn changes(first: &ServerInfo, other: &ServerInfo) -> Vec<SettingChange> {
    let names =
        first.settings.keys().chain(other.settings.keys().filter(|name| !first.settings.contains_key(*name)));
    let change = |name: &String| {
        let [first, other] = [first, other].map(|server| server.settings.get(name));
        let is_stable = !KNOWN.of_each_start.contains(&name.to_ascii_lowercase());
        let is_path = [first, other].into_iter().flatten().any(|value| value.contains('/'));
        (first != other && is_stable && !is_path).then(|| SettingChange {
            name: name.clone(),
            first: first.cloned(),
            other: other.cloned(),
        })
    };
    names.filter_map(change).collect()
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{CellEvent, CellRecord};
    use insta::assert_snapshot;

    use super::*;
    use crate::fixtures::{cell, run, shown_all};

    fn set(block: u32, settings: &[(&str, &str)]) -> CellRecord {
        let mut cell = cell(block, "a", Vec::new());
        for event in &mut cell.events {
            if let CellEvent::Server { server, .. } = event {
                let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
                server.settings = settings.collect();
            }
        }
        cell
    }

    #[test]
    fn settings_that_another_block_had_otherwise_are_named_with_both_values() {
        let first = [("sync_binlog", "1"), ("innodb_io_capacity", "200"), ("old", "1")];
        let third = [("sync_binlog", "0"), ("innodb_io_capacity", "200"), ("new", "ON")];
        let run = run(&["a"], 3, vec![set(1, &first), set(2, &first), set(3, &third)]);
        assert_snapshot!(shown_all(&warnings(&run)), @r#"settings-changed [a] changes: [{"name":"old","first":"1","other":null},{"name":"sync_binlog","first":"1","other":"0"},{"name":"new","first":null,"other":"ON"}], first: block 1 a insert-benchmark, other: block 3 a insert-benchmark"#);
    }

    #[test]
    fn what_every_start_has_of_its_own_is_no_change() {
        let start = |n: &'static str, folder: &'static str| {
            [("server_uuid", n), ("TIMESTAMP", n), ("datadir", folder)]
        };
        let cells = vec![set(1, &start("1", "/d/1")), set(2, &start("2", "/d/2")), set(3, &[])];
        assert!(warnings(&run(&["a"], 3, cells)).is_empty());
    }
}
