//! How the variants were configured, in words and as a table that every format shares.

use dbdyno_analyse::parity::{ClassRow, Knowledge, Parity, Remark, RemarkKind, Standing};

use crate::evidence::{Column, Grid, Topic};

/// Heading of the section.
pub(crate) const TITLE: &str = "Configuration differences";

/// Lines of the short form; more are counted.
const SHORT: usize = 8;

/// One line a remark, worst first: what it is, what it does to a result, what to write.
pub(crate) fn lines(parity: &Parity) -> Vec<String> {
    let line = |remark: &Remark| {
        let mut text = short_line(remark);
        if !remark.effect.is_empty() && remark.kind != RemarkKind::Declared {
            text.push_str(&format!(". {}", remark.effect));
        }
        if !remark.write.is_empty() {
            text.push_str(&format!(" Remedy: {}.", remark.write));
        }
        text
    };
    parity.remarks.iter().map(line).collect()
}

/// What matters most, for the end of a run; empty when there is nothing to say.
pub(crate) fn short_lines(parity: &Parity) -> Vec<String> {
    let telling = |remark: &&Remark| matches!(remark.kind, RemarkKind::Difference | RemarkKind::Trap);
    let all: Vec<String> = parity.remarks.iter().filter(telling).map(short_line).collect();
    let more = all.len().saturating_sub(SHORT);
    let mut lines: Vec<String> = all.into_iter().take(SHORT).collect();
    if more > 0 {
        lines.push(format!("{more} more, with remedies in the report"));
    }
    lines
}

fn short_line(remark: &Remark) -> String {
    let word = match remark.kind {
        RemarkKind::Difference => "differs",
        RemarkKind::Trap => "trap",
        RemarkKind::Detail => "minor difference",
        RemarkKind::Declared => "intended",
        RemarkKind::Unknown => "not known",
    };
    format!("{word}: {}", remark.text)
}

/// A row a class, a column a variant.
pub(crate) fn grid(parity: &Parity) -> Grid {
    let mut columns = vec![Column::new("class", "", "its name in `differs` of a plan")];
    columns.push(Column::new("what", "", "effective value"));
    columns.extend(parity.variants.iter().map(|variant| Column::new(&variant.name, "", "")));
    columns.push(Column::new("compared", "", "whether the variants agree"));
    Grid {
        title: "Settings by class".to_owned(),
        note: note(parity),
        topic: Topic::Statistics,
        labels: 2,
        columns,
        rows: parity.classes.iter().map(row).collect(),
    }
}

fn note(parity: &Parity) -> String {
    let how = parity.variants.iter().any(|variant| variant.knowledge != Knowledge::Effective);
    let from = if how {
        "Predicted from the defaults of each version and the plan; no server was started."
    } else {
        "Effective values, read back from the servers."
    };
    format!("{from} * = server default.")
}

fn row(class: &ClassRow) -> Vec<String> {
    let standing = match class.standing {
        Standing::Same => "same",
        Standing::Differs => "DIFFERS",
        Standing::Declared => "intended",
        Standing::NotCompared => "",
    };
    let cells = class.cells.iter().map(|cell| match (cell.text.as_str(), cell.is_default) {
        ("", _) => "–".to_owned(),
        (text, true) => format!("{text}*"),
        (text, false) => text.to_owned(),
    });
    let head = [class.id.clone(), class.title.clone()];
    head.into_iter().chain(cells).chain([standing.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn remarks_say_what_it_is_what_it_does_and_what_to_write() {
        insta::assert_snapshot!(lines(&fixture::parity(&fixture::NAMES)).join("\n"), @r#"
        differs: buffer pool: 2000 KiB | 1 GiB. A commit waits for the disk. Remedy: PRAGMA cache_size.
        trap: SQLite syncs nothing (<b>&"). A commit waits for the disk. Remedy: synchronous = full.
        intended: redo log, total: 4000 KiB; listed in differs
        "#);
    }

    #[test]
    fn the_short_form_counts_what_it_leaves_out() {
        let mut parity = fixture::parity(&fixture::NAMES);
        assert_eq!(short_lines(&parity).len(), 2);
        parity.remarks = vec![parity.remarks[0].clone(); SHORT + 3];
        assert_eq!(short_lines(&parity)[SHORT], "3 more, with remedies in the report");
        parity.remarks.clear();
        assert!(short_lines(&parity).is_empty());
    }

    #[test]
    fn the_table_has_a_row_a_class_and_marks_defaults() {
        let grid = grid(&fixture::parity(&fixture::NAMES));
        let rows: Vec<String> = grid.rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        commit | commit | synced* | synced | same
        buffer-pool | buffer pool | 2000 KiB* | 1 GiB | DIFFERS
        redo | redo log, total | – | 4000 KiB | intended
        ");
    }
}
