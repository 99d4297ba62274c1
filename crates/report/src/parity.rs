//! Describes how the variants were configured, in words and as a table that every format shares.

use dbdyno_analyse::numbered;
use dbdyno_analyse::parity::{
    ClassDifference, ClassRow, LineProblem, Parity, Remark, RemarkKind, SettingsSource, SharedValue,
    Standing, Value, What,
};

use crate::document::{Block, Table, Tone};
use crate::words;

const TITLE: &str = "Configuration differences";

/// Writes one line per remark, worst first: what it is, how it affects a result, and what to write.
fn lines(parity: &Parity) -> Vec<String> {
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

/// Counts the remarks that make a report worth reading: `2 configuration differences, 1 pitfall`.
/// The text is empty if there are none.
pub(crate) fn telling(parity: &Parity) -> String {
    let counted = |(kind, what): (RemarkKind, &str)| match parity.of_kind(kind).count() {
        0 => None,
        count => Some(numbered(count, what)),
    };
    let kinds = [(RemarkKind::Difference, "configuration difference"), (RemarkKind::Pitfall, "pitfall")];
    kinds.into_iter().filter_map(counted).collect::<Vec<_>>().join(", ")
}

/// Lists the configuration differences and the pitfalls, which no page may leave out.
pub(crate) fn telling_remarks(parity: &Parity) -> Vec<Block> {
    let kinds = [RemarkKind::Difference, RemarkKind::Pitfall];
    let lines: Vec<String> =
        kinds.into_iter().flat_map(|kind| parity.of_kind(kind)).map(short_line).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    vec![Block::section(TITLE, "parity"), Block::List(Tone::Plain, lines)]
}

/// Says why a plan that refuses unequal variants refuses these. It is `None` when it does not.
pub fn refusal(parity: &Parity) -> Option<String> {
    let differs =
        |remark: &Remark| format!("  {}: {}; to make it equal: {}", remark.id, text(remark), remark.write);
    let unknown = |remark: &Remark| match remark.what {
        What::ForeignServer(_) => Some(format!("  {}; use parity = \"warn\" with it", text(remark))),
        _ => None,
    };
    let mut lines: Vec<String> = parity.of_kind(RemarkKind::Difference).map(differs).collect();
    // A single variant cannot differ from another.
    if parity.variants.len() > 1 {
        lines.extend(parity.of_kind(RemarkKind::Unknown).filter_map(unknown));
    }
    if lines.is_empty() {
        return None;
    }
    Some(format!(
        "the configurations differ, and the plan says parity = \"refuse\":\n{}\nmake them \
         equal, or list intended differences in differs of the plan",
        lines.join("\n")
    ))
}

fn short_line(remark: &Remark) -> String {
    let word = match remark.kind {
        RemarkKind::Difference => "differs",
        RemarkKind::Pitfall => "pitfall",
        RemarkKind::Detail => "minor difference",
        RemarkKind::Declared => "intended",
        RemarkKind::Unknown => "not known",
    };
    format!("{word}: {}", text(remark))
}

/// Puts a remark into one sentence without its full stop.
pub(crate) fn text(remark: &Remark) -> String {
    let variants = remark.variants.join(", ");
    match &remark.what {
        What::Class(found) if remark.kind == RemarkKind::Declared => {
            format!("{}; listed in differs", class_difference(found))
        }
        What::Class(found) => class_difference(found),
        What::Pitfall { title, lines } if lines.is_empty() => format!("{title} ({variants})"),
        What::Pitfall { title, lines } => {
            let lines = lines.iter().map(|(variant, line)| format!("{variant} {}", line_text(line)));
            format!("{title} ({})", lines.collect::<Vec<_>>().join("; "))
        }
        What::NotAsked { ask } => {
            format!("the settings of {variants} are not known before the run; `{ask}` reads them")
        }
        What::ForeignServer(foreign) => format!(
            "{variants} is not {} itself ({}), so its settings are recorded and not compared",
            foreign.speaks,
            foreign.title()
        ),
        What::ExternalServer => {
            format!("{variants} is an external server: its settings are read after connecting")
        }
        What::UnknownSettings => format!("the settings of {variants} are not known"),
        What::Words(text) => text.clone(),
    }
}

fn line_text(line: &LineProblem) -> String {
    match line {
        LineProblem::Unread { line, setting, group } => format!("line {line}: {setting} is in [{group}]"),
        LineProblem::Twice { line, setting, value, later_line, later_value } => {
            format!("{setting} = {value} (line {line}) and {later_value} (line {later_line})")
        }
        LineProblem::NotTaken { line, setting } => format!("line {line}: {setting}"),
        LineProblem::Changed { line, setting, configured, effective } => {
            let effective = match effective {
                Value::Words(text) if text.is_empty() => "empty".to_owned(),
                value => value.to_string(),
            };
            format!("line {line}: {setting} is configured as {configured} and is effectively {effective}")
        }
    }
}

/// Returns words such as `binary log: off (a, c), on by default (b)`. Variants in one run have
/// different names. Two variants with the same name are from two runs that are compared, and the
/// base's is the first.
pub(crate) fn class_difference(found: &ClassDifference) -> String {
    let names: Vec<&str> =
        found.values.iter().flat_map(|value| &value.variants).map(String::as_str).collect();
    let runs: &[&str] = match names[..] {
        [base, new] if base == new => &[" of the base", " of the new run"],
        _ => &[],
    };
    let mut runs = runs.iter();
    let group = |SharedValue { value, variants }: &SharedValue| {
        let names = variants.iter().map(|name| format!("{name}{}", runs.next().unwrap_or(&"")));
        let by_default = if value.is_default { " by default" } else { "" };
        format!("{}{by_default} ({})", value.text, names.collect::<Vec<_>>().join(", "))
    };
    let groups: Vec<String> = found.values.iter().map(group).collect();
    format!("{}: {}", found.title, groups.join(", "))
}

/// Returns the remarks, and then the table with the details.
pub(crate) fn blocks(parity: &Parity) -> Vec<Block> {
    let mut blocks = remarks(parity);
    if !parity.classes.is_empty() {
        blocks.push(Block::Table(table(parity, |_| true)));
    }
    blocks
}

/// Returns the blocks for a plan: the remarks, and only the settings that differ. There are none
/// where there is neither.
pub(crate) fn blocks_of_plan(parity: &Parity) -> Vec<Block> {
    let differing = |class: &ClassRow| matches!(class.standing, Standing::Differs | Standing::Declared);
    let differs = parity.classes.iter().any(differing);
    if parity.remarks.is_empty() && !differs {
        return Vec::new();
    }
    let mut blocks = remarks(parity);
    let same = parity.classes.iter().filter(|class| class.standing == Standing::Same).count();
    if differs {
        blocks.push(Block::Table(table(parity, differing)));
    }
    if same > 0 {
        blocks.push(Block::text(format!("The same in all variants: {}.", numbered(same, "setting"))));
    }
    blocks
}

fn remarks(parity: &Parity) -> Vec<Block> {
    let lines = lines(parity);
    let list = (!lines.is_empty()).then_some(Block::List(Tone::Doubt, lines));
    std::iter::once(Block::section(TITLE, "parity")).chain(list).collect()
}

/// Makes a table with one row per class and one column per variant.
fn table(parity: &Parity, is_shown: impl Fn(&ClassRow) -> bool) -> Table {
    let mut table = Table { note: note(parity), ..words::table("settings") };
    table.columns.splice(2..2, parity.variants.iter().map(|variant| variant.name.as_str().into()));
    parity.classes.iter().filter(|class| is_shown(class)).for_each(|class| table.push(row(class)));
    table
}

fn note(parity: &Parity) -> String {
    let is_read = |settings_source: &SettingsSource| {
        matches!(settings_source, SettingsSource::Effective | SettingsSource::Foreign)
    };
    let is_predicted = parity.variants.iter().any(|variant| !is_read(&variant.settings_source));
    let from = if is_predicted {
        "Predicted from what each build answered, and the plan; no server was started."
    } else {
        "Effective values, read back from the servers."
    };
    format!("{from} * = server default.")
}

fn row(class: &ClassRow) -> Vec<String> {
    let standing = match class.standing {
        Standing::Same => "same",
        Standing::SameInFamily => "same in each family",
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
    use dbdyno_analyse::parity::{ClassCell, Foreign};

    use super::*;
    use crate::fixture;

    #[test]
    fn remarks_say_what_it_is_what_it_does_and_what_to_write() {
        insta::assert_snapshot!(lines(&fixture::parity(&fixture::NAMES)).join("\n"), @r#"
        differs: buffer pool: 2,000 KiB | 1 GiB. A commit waits for the disk. Remedy: PRAGMA cache_size.
        pitfall: SQLite syncs nothing (<b>&"). A commit waits for the disk. Remedy: synchronous = full.
        intended: redo log, total: 4,000 KiB; listed in differs
        "#);
    }

    #[test]
    fn differences_and_pitfalls_are_counted() {
        let mut parity = fixture::parity(&fixture::NAMES);
        assert_eq!(telling(&parity), "1 configuration difference, 1 pitfall");
        parity.remarks.clear();
        assert_eq!(telling(&parity), "");
    }

    #[test]
    fn what_was_found_is_put_into_words() {
        let value = |text: &str, is_default, variants: &[&str]| SharedValue {
            value: ClassCell { text: text.to_owned(), is_default },
            variants: variants.iter().map(|name| (*name).to_owned()).collect(),
        };
        let class = |values| ClassDifference { title: "page size".to_owned(), values };
        let three = class(vec![value("4 KiB", true, &["a", "c"]), value("8 KiB", false, &["b"])]);
        let of_two_runs = class(vec![value("4 KiB", true, &["a"]), value("8 KiB", true, &["a"])]);
        insta::assert_snapshot!(class_difference(&of_two_runs), @"page size: 4 KiB by default (a of the base), 8 KiB by default (a of the new run)");
        let said = |kind, what| {
            let (id, variants) = (String::new(), vec!["a".to_owned(), "b".to_owned()]);
            text(&Remark { kind, id, variants, what, effect: String::new(), write: String::new() })
        };
        let own = str::to_owned;
        let pitfall = |lines: Vec<LineProblem>| What::Pitfall {
            title: own("lines"),
            lines: lines.into_iter().map(|line| (own("a"), line)).collect(),
        };
        let changed = |effective| LineProblem::Changed {
            line: 8,
            setting: own("x"),
            configured: own("200M"),
            effective,
        };
        let twice = LineProblem::Twice {
            line: 6,
            setting: own("sync_binlog"),
            value: own("1"),
            later_line: 9,
            later_value: own("0"),
        };
        let lines = vec![
            LineProblem::Unread { line: 2, setting: own("port"), group: own("mysql") },
            twice,
            LineProblem::NotTaken { line: 7, setting: own("innodb_foo") },
            changed(Value::Size(256 << 20)),
            changed(Value::Words(String::new())),
        ];
        let texts = [
            said(RemarkKind::Difference, What::Class(three.clone())),
            said(RemarkKind::Declared, What::Class(three)),
            said(RemarkKind::Pitfall, pitfall(Vec::new())),
            said(RemarkKind::Pitfall, pitfall(lines)),
            said(RemarkKind::Unknown, What::NotAsked { ask: own("dbdyno servers get pg-18.6") }),
            said(RemarkKind::Unknown, What::ExternalServer),
            said(RemarkKind::Unknown, What::UnknownSettings),
            said(RemarkKind::Unknown, foreign()),
        ];
        insta::assert_snapshot!(texts.join("\n"), @r"
        page size: 4 KiB by default (a, c), 8 KiB (b)
        page size: 4 KiB by default (a, c), 8 KiB (b); listed in differs
        lines (a, b)
        lines (a line 2: port is in [mysql]; a sync_binlog = 1 (line 6) and 0 (line 9); a line 7: innodb_foo; a line 8: x is configured as 200M and is effectively 256 MiB; a line 8: x is configured as 200M and is effectively empty)
        the settings of a, b are not known before the run; `dbdyno servers get pg-18.6` reads them
        a, b is an external server: its settings are read after connecting
        the settings of a, b are not known
        a, b is not PostgreSQL itself (PGlite, which speaks PostgreSQL's protocol), so its settings are recorded and not compared
        ");
    }

    fn foreign() -> What {
        What::ForeignServer(Foreign { name: "PGlite".to_owned(), speaks: "PostgreSQL".to_owned() })
    }

    #[test]
    fn a_refusal_says_what_differs_and_what_to_write() {
        let mut parity = fixture::parity(&fixture::NAMES);
        insta::assert_snapshot!(refusal(&parity).unwrap_or_default(), @r#"
        the configurations differ, and the plan says parity = "refuse":
          buffer-pool: buffer pool: 2,000 KiB | 1 GiB; to make it equal: PRAGMA cache_size
        make them equal, or list intended differences in differs of the plan
        "#);
        parity.remarks.retain(|remark| remark.kind != RemarkKind::Difference);
        assert_eq!(refusal(&parity), None, "a pitfall is no reason");
        let unknown = Remark { kind: RemarkKind::Unknown, what: foreign(), ..parity.remarks[0].clone() };
        parity.remarks.push(unknown);
        assert!(refusal(&parity).is_some_and(|text| text.contains("use parity = \"warn\"")), "not known");
        parity.variants.truncate(1);
        assert_eq!(refusal(&parity), None, "one alone is like itself");
    }

    #[test]
    fn the_table_has_a_row_per_class_and_marks_defaults() {
        let table = table(&fixture::parity(&fixture::NAMES), |_| true);
        let rows: Vec<String> = table.rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @r"
        commit | commit | synced* | synced | same
        buffer-pool | buffer pool | 2,000 KiB* | 1 GiB | DIFFERS
        redo | redo log, total | – | 4,000 KiB | intended
        ");
    }
}
