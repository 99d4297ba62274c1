//! Reads MySQL-family query plans, from EXPLAIN in all versions.

use crate::facts::{PlanRow, joined};

pub(super) fn nodes(rows: &[PlanRow]) -> Vec<String> {
    rows.iter().map(|row| node(row, rows.len() > 1)).collect()
}

/// Positions of table, access type, key and remarks among EXPLAIN's columns. MySQL 5.7 added
/// `partitions` and `filtered`.
fn places(columns: usize) -> Option<[usize; 4]> {
    match columns {
        10 => Some([2, 3, 5, 9]),
        12 => Some([2, 4, 6, 11]),
        _ => None,
    }
}

/// One node, as in `index k_1 range, covering`. In a join, the tables' order is part of the plan,
/// so the table comes first: `orders: ...`.
fn node(row: &[Option<String>], is_join: bool) -> String {
    let Some(places) = places(row.len()) else { return joined(row) };
    let [table, access, key, extra] = places.map(|place| row[place].as_deref().unwrap_or_default());
    let index = match key {
        "" => String::new(),
        "PRIMARY" => "primary key ".to_owned(),
        key => format!("index {key} "),
    };
    let how = match access {
        "ALL" => "full scan".to_owned(),
        "index" => format!("{index}full scan"),
        "range" | "index_merge" => format!("{index}{}", access.replace('_', " ")),
        "const" | "system" | "eq_ref" => format!("{index}one row"),
        "ref" | "ref_or_null" => format!("{index}lookup"),
        "" if table.is_empty() => "no table".to_owned(),
        other => format!("{index}{other}"),
    };
    let remarks =
        REMARKS.iter().filter(|(words, _)| extra.split(';').any(|part| part.trim().starts_with(words)));
    // `Using index condition` begins with the same words.
    let covering = extra.split(';').any(|part| part.trim() == "Using index").then(|| "covering".to_owned());
    let words = std::iter::once(how)
        .chain(covering)
        .chain(remarks.map(|(_, short)| (*short).to_owned()))
        .collect::<Vec<_>>()
        .join(", ");
    if is_join && !table.is_empty() { format!("{table}: {words}") } else { words }
}

/// Remarks that mean extra work. `Using where` says only that rows are filtered, and versions
/// differ in when they say it.
const REMARKS: [(&str, &str); 11] = [
    ("Using index condition", "index condition"),
    ("Using index for group-by", "loose scan"),
    ("Using MRR", "multi-range read"),
    ("Rowid-ordered scan", "multi-range read"),
    ("Using rowid filter", "rowid filter"),
    ("Using temporary", "temporary table"),
    ("Using filesort", "sort"),
    ("Using join buffer", "join buffer"),
    ("Using union", "union of indexes"),
    ("Using intersect", "intersection of indexes"),
    ("Using sort_union", "union of indexes"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn row(access: &str, key: &str, extra: &str) -> Vec<String> {
        let row = ["1", "SIMPLE", "t", access, "PRIMARY,k_1", key, "4", "", "9", extra];
        nodes(&[row.map(|cell| Some(cell.to_owned())).to_vec()])
    }

    #[test]
    fn plans_of_both_shapes_say_the_same() {
        let new = ["1", "SIMPLE", "t", "", "range", "k_1", "k_1", "4", "", "101", "100.00", "Using index"];
        let new = new.map(|cell| Some(cell.to_owned()).filter(|text| !text.is_empty())).to_vec();
        assert_eq!(row("range", "k_1", "Using where; Using index"), ["index k_1 range, covering"]);
        assert_eq!(nodes(&[new]), ["index k_1 range, covering"]);
        assert_eq!(row("ALL", "", "Using where; Using filesort"), ["full scan, sort"]);
        assert_eq!(row("const", "PRIMARY", ""), ["primary key one row"]);
        assert_eq!(row("ref", "k_1", "Using index condition"), ["index k_1 lookup, index condition"]);
    }

    #[test]
    fn of_a_join_each_node_has_its_table() {
        let row = |table: &str| {
            let row = ["1", "SIMPLE", table, "ALL", "", "", "", "", "9", "Using join buffer (flat)"];
            row.map(|cell| Some(cell.to_owned())).to_vec()
        };
        assert_eq!(nodes(&[row("a"), row("b")]), ["a: full scan, join buffer", "b: full scan, join buffer"]);
    }
}
