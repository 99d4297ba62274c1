//! Lays overrides from the command line (`--set KEY=VALUE`) over the parsed plan file.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::setup::text;

/// Sets the value at dotted path `key`, and makes absent tables on the way.
///
/// `variant.NAME.KEY` means the variant of that name, and `setup.NAME.KEY` the set-up. Names may
/// hold dots, so the longest name that fits is taken.
pub(crate) fn set<'a>(
    root: &mut DeTable<'a>,
    key: &'a str,
    span: Range<usize>,
    value: Spanned<DeValue<'a>>,
) -> Result<(), String> {
    for list in ["variant", "setup"] {
        if let Some(rest) = key.strip_prefix(list).and_then(|rest| rest.strip_prefix('.')) {
            let (table, rest) = entry(root, list, rest)?;
            return set_in(table, rest, span, value);
        }
    }
    set_in(root, key, span, value)
}

fn set_in<'a>(
    mut table: &mut DeTable<'a>,
    key: &'a str,
    span: Range<usize>,
    value: Spanned<DeValue<'a>>,
) -> Result<(), String> {
    let (folders, last) = key.rsplit_once('.').unwrap_or(("", key));
    if last.is_empty() || key.starts_with('.') || key.contains("..") {
        return Err("the key must be a dotted path such as blocks or workload.NAME.KEY".to_owned());
    }
    for folder in folders.split('.').filter(|folder| !folder.is_empty()) {
        if !table.contains_key(folder) {
            let empty = Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
            table.insert(Spanned::new(span.clone(), folder.into()), empty);
        }
        table = match table.get_mut(folder).map(Spanned::get_mut) {
            Some(DeValue::Table(inner)) => inner,
            _ => return Err(format!("`{folder}` in the plan is not a table, so it has no keys to set")),
        };
    }
    table.insert(Spanned::new(span, last.into()), value);
    Ok(())
}

/// Returns the table of `[[list]]` whose name begins `rest`, and what follows that name in `rest`.
fn entry<'t, 'a>(
    root: &'t mut DeTable<'a>,
    list: &str,
    rest: &'a str,
) -> Result<(&'t mut DeTable<'a>, &'a str), String> {
    let mut names = Vec::new();
    let mut best: Option<(usize, usize)> = None;
    let entries = match root.get_mut(list).map(Spanned::get_mut) {
        Some(DeValue::Array(entries)) => entries,
        _ => return Err(format!("the plan has no [[{list}]] to set a key of")),
    };
    for (index, table) in entries.iter().enumerate() {
        let Some(name) = table.get_ref().as_table().and_then(|table| text(table, "name")) else { continue };
        let fits = rest.strip_prefix(name).is_some_and(|after| after.starts_with('.'));
        if fits && best.is_none_or(|(_, length)| name.len() > length) {
            best = Some((index, name.len()));
        }
        names.push(format!("`{name}`"));
    }
    let unknown = || {
        let known = names.join(", ");
        format!("write {list}.NAME.KEY with the name of a {list} of the plan; it has {known}")
    };
    let (index, length) = best.ok_or_else(unknown)?;
    match entries.get_mut(index).map(Spanned::get_mut) {
        Some(DeValue::Table(table)) => Ok((table, &rest[length + 1..])),
        _ => Err(unknown()),
    }
}
