//! Puts variants side by side, in a table with one row per class of settings and in the remarks
//! that a reader must see. The report crate writes the sentences.

use dbdyno_products::{Foreign, SettingsSource, Subject};
use serde::Serialize;

use crate::parity::classes::{Across, Class, ClassValue, Weight, classes};
use crate::parity::pitfalls::{Circumstances, pitfalls};
use crate::parity::settings::LineProblem;

/// Compares `subjects`. `declared` are the classes in which the plan wants them to differ.
pub fn compared(subjects: &[Subject], declared: &[String], run: Circumstances) -> Parity {
    let rows: Vec<(&Class, ClassRow)> =
        classes().iter().filter_map(|class| Some((class, row(class, subjects, declared)?))).collect();
    let mut remarks: Vec<Remark> =
        rows.iter().filter_map(|(class, row)| difference(class, row, subjects)).collect();
    let is_meant = |class: &Option<String>| class.as_ref().is_some_and(|class| declared.contains(class));
    let unmeant = pitfalls().iter().filter(|pitfall| !is_meant(&pitfall.class));
    remarks.extend(unmeant.filter_map(|pitfall| pitfall.met(subjects, run)));
    for remark in subjects.iter().filter_map(unknown) {
        let is_same =
            |known: &&mut Remark| known.what == remark.what && matches!(known.what, What::NotAsked { .. });
        match remarks.iter_mut().find(is_same) {
            Some(known) => known.variants.extend(remark.variants),
            None => remarks.push(remark),
        }
    }
    remarks.sort_by_key(|remark| remark.kind);
    Parity {
        variants: subjects
            .iter()
            .map(|subject| VariantSettings {
                name: subject.name.clone(),
                settings_source: subject.settings_source.clone(),
            })
            .collect(),
        classes: rows.into_iter().map(|(_, row)| row).collect(),
        remarks,
    }
}

fn row(class: &Class, subjects: &[Subject], declared: &[String]) -> Option<ClassRow> {
    let found: Vec<Option<ClassValue>> = subjects.iter().map(|subject| class.of(subject)).collect();
    if found.iter().all(Option::is_none) {
        return None;
    }
    let cell = |(found, subject): (&Option<ClassValue>, &Subject)| match found {
        Some(ClassValue { value, is_configured }) => ClassCell {
            text: value.to_string(),
            is_default: !is_configured && subject.has_recorded_configuration(),
        },
        None => ClassCell { text: String::new(), is_default: false },
    };
    Some(ClassRow {
        id: class.id.clone(),
        title: class.title.clone(),
        meaning: class.meaning.clone(),
        weight: class.weight,
        standing: standing(class, subjects, &found, declared),
        cells: found.iter().zip(subjects).map(cell).collect(),
    })
}

fn standing(
    class: &Class,
    subjects: &[Subject],
    found: &[Option<ClassValue>],
    declared: &[String],
) -> Standing {
    let known: Vec<(&str, &ClassValue)> = subjects
        .iter()
        .zip(found)
        .filter_map(|(subject, found)| Some((subject.family.name, found.as_ref()?)))
        .collect();
    let are_compared = |a: &str, b: &str| class.across == Across::All || a == b;
    let (mut compared, mut left_out) = (false, false);
    for (index, (family, one)) in known.iter().enumerate() {
        for (other_family, other) in &known[index + 1..] {
            if !are_compared(family, other_family) {
                left_out = true;
                continue;
            }
            compared = true;
            if !one.value.is_like(&other.value) {
                let is_declared = declared.contains(&class.id);
                return if is_declared { Standing::Declared } else { Standing::Differs };
            }
        }
    }
    match (compared, left_out) {
        (true, false) => Standing::Same,
        (true, true) => Standing::SameInFamily,
        (false, _) => Standing::NotCompared,
    }
}

fn difference(class: &Class, row: &ClassRow, subjects: &[Subject]) -> Option<Remark> {
    let kind = match (row.standing, row.weight) {
        (Standing::Differs, Weight::Result) => RemarkKind::Difference,
        (Standing::Differs, Weight::Detail) => RemarkKind::Detail,
        (Standing::Declared, _) => RemarkKind::Declared,
        _ => return None,
    };
    Some(Remark {
        kind,
        id: class.id.clone(),
        variants: subjects.iter().map(|subject| subject.name.clone()).collect(),
        what: What::Class(ClassDifference { title: row.title.clone(), values: by_value(row, subjects) }),
        effect: class.effect.clone(),
        write: if kind == RemarkKind::Declared { String::new() } else { class.write.clone() },
    })
}

/// Each value once, with the variants that have it.
fn by_value(row: &ClassRow, subjects: &[Subject]) -> Vec<SharedValue> {
    let mut values: Vec<SharedValue> = Vec::new();
    for (cell, subject) in row.cells.iter().zip(subjects).filter(|(cell, _)| !cell.text.is_empty()) {
        let name = subject.name.clone();
        match values.iter_mut().find(|known| known.value == *cell) {
            Some(known) => known.variants.push(name),
            None => values.push(SharedValue { value: cell.clone(), variants: vec![name] }),
        }
    }
    values
}

fn unknown(subject: &Subject) -> Option<Remark> {
    let what = match &subject.settings_source {
        SettingsSource::Foreign => What::ForeignServer(subject.foreign.clone()?),
        SettingsSource::Effective | SettingsSource::Predicted => return None,
        SettingsSource::Unknown if subject.is_external => What::ExternalServer,
        SettingsSource::Unknown if !subject.ask.is_empty() => What::NotAsked { ask: subject.ask.clone() },
        SettingsSource::Unknown if !subject.product.is_known() => return None,
        SettingsSource::Unknown => What::UnknownSettings,
    };
    Some(Remark {
        kind: RemarkKind::Unknown,
        id: "unknown".to_owned(),
        variants: vec![subject.name.clone()],
        what,
        effect: String::new(),
        write: String::new(),
    })
}

/// How the variants were configured, and which settings the servers have as a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parity {
    pub variants: Vec<VariantSettings>,
    /// One row per class that at least one variant has.
    pub classes: Vec<ClassRow>,
    /// Remarks that a reader must know, the worst first.
    pub remarks: Vec<Remark>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VariantSettings {
    pub name: String,
    pub settings_source: SettingsSource,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassRow {
    pub id: String,
    pub title: String,
    pub meaning: String,
    pub weight: Weight,
    pub standing: Standing,
    /// One entry per variant, in the order of the variants.
    pub cells: Vec<ClassCell>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassCell {
    /// The value as text: `128 MiB`, `off`. It is empty where the product has nothing of the kind,
    /// or nothing is known.
    pub text: String,
    /// The value is the server's own choice, because nothing was configured. It is never set for a
    /// server that others run, whose option file is not known.
    pub is_default: bool,
}

/// Whether the variants are alike in a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Same,
    /// The variants of each product family are alike, and there are several families, whose values
    /// are not compared with each other.
    SameInFamily,
    Differs,
    /// The variants differ, as the plan says they do.
    Declared,
    /// Only one variant has the class, or the variants are from different product families.
    NotCompared,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Remark {
    pub kind: RemarkKind,
    /// Id of the class or pitfall.
    pub id: String,
    pub variants: Vec<String>,
    #[serde(rename = "text")]
    pub what: What,
    /// How the difference or the pitfall affects a result.
    pub effect: String,
    /// What to write in a configuration to remove the cause; empty for an intended difference.
    pub write: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum What {
    Class(ClassDifference),
    /// The variants have met a pitfall. It has the title, and the configuration lines concerned,
    /// each with its variant.
    Pitfall {
        title: String,
        lines: Vec<(String, LineProblem)>,
    },
    /// The variant's build was not asked for its settings. This command asks it.
    NotAsked {
        ask: String,
    },
    /// The server is not one of the known products, so no rule says what its settings mean.
    ForeignServer(Foreign),
    /// Others run the server, and it was not asked for its settings yet.
    ExternalServer,
    UnknownSettings,
    /// The remark as a sentence. Only a report adds it, for readers of its JSON.
    Words(String),
}

/// A class in which variants differ, and the variants that have each value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassDifference {
    pub title: String,
    /// The values in the order of the variants.
    pub values: Vec<SharedValue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedValue {
    pub value: ClassCell,
    pub variants: Vec<String>,
}

/// A class with the values of two variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingDifference {
    /// Id of the class, such as `durability`.
    pub class: String,
    pub base: String,
    pub variant: String,
}

/// What a remark is about, in the order in which reports show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemarkKind {
    /// A class that decides results differs.
    Difference,
    Pitfall,
    /// A class that matters less differs.
    Detail,
    /// A class differs, as the plan says it does.
    Declared,
    /// Something could not be known.
    Unknown,
}

impl Parity {
    pub fn of_kind(&self, kind: RemarkKind) -> impl Iterator<Item = &Remark> {
        self.remarks.iter().filter(move |remark| remark.kind == kind)
    }

    /// Classes in which `variant` differs from `base`, including those that the plan declares.
    pub fn differences(&self, base: &str, variant: &str) -> Vec<SettingDifference> {
        let place = |name: &str| self.variants.iter().position(|known| known.name == name);
        let (Some(base), Some(variant)) = (place(base), place(variant)) else { return Vec::new() };
        let differing = |row: &&ClassRow| matches!(row.standing, Standing::Differs | Standing::Declared);
        let difference = |row: &ClassRow| {
            let [base, variant] = [base, variant].map(|at| row.cells[at].text.clone());
            let is_unlike = !base.is_empty() && !variant.is_empty() && base != variant;
            is_unlike.then(|| SettingDifference { class: row.id.clone(), base, variant })
        };
        self.classes.iter().filter(differing).filter_map(difference).collect()
    }

    /// Ids of the classes that differ and decide results.
    pub fn unlike(&self) -> Vec<&str> {
        self.of_kind(RemarkKind::Difference).map(|remark| remark.id.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::testing::{configured, server, variant};
    use crate::parity::{Planned, effective};

    /// The remark as text, such as `Difference binlog: on* (a), off (b)`. A default has a star.
    fn shown(remark: &Remark) -> String {
        let value = |SharedValue { value, variants }: &SharedValue| {
            format!("{}{} ({})", value.text, if value.is_default { "*" } else { "" }, variants.join(", "))
        };
        let what = match &remark.what {
            What::Class(found) => found.values.iter().map(value).collect::<Vec<_>>().join(", "),
            other => format!("{other:?}"),
        };
        format!("{:?} {}: {what}", remark.kind, remark.id)
    }

    fn shown_all(parity: &Parity) -> String {
        parity.remarks.iter().map(shown).collect::<Vec<_>>().join("\n")
    }

    const EQUAL: &str = "innodb_buffer_pool_size = 1G\nskip_log_bin\nperformance_schema = 0\ncharacter_set_server = latin1\n\
                         innodb_flush_method = O_DIRECT\ninnodb_flush_neighbors = 0\n";

    #[test]
    fn two_products_with_their_defaults_differ_in_the_classes_that_are_known_to_differ() {
        let subjects = [configured("my", "MySQL", "8.0.31", ""), configured("ma", "MariaDB", "10.11.5", "")];
        let parity = compared(&subjects, &[], Circumstances::default());
        let differing: Vec<&str> =
            parity.of_kind(RemarkKind::Difference).map(|remark| remark.id.as_str()).collect();
        assert_eq!(
            differing,
            [
                "binlog",
                "io",
                "charset",
                "collation",
                "column-definitions",
                "protocol-options",
                "performance-schema"
            ]
        );
        insta::assert_snapshot!(shown(&parity.remarks[0]), @"Difference binlog: binary log, synced at each commit* (my), off* (ma)");
    }

    #[test]
    fn variants_that_were_configured_equally_do_not_differ_in_what_decides_results() {
        let my = format!("[mysqld]\n{EQUAL}innodb_redo_log_capacity = 1G\n");
        let ma = format!("[mysqld]\n{EQUAL}innodb_log_file_size = 1G\n");
        let subjects =
            [configured("my", "MySQL", "8.0.31", &my), configured("ma", "MariaDB", "10.11.5", &ma)];
        let of_the_clients = ["column-definitions".to_owned(), "protocol-options".to_owned()];
        let parity = compared(&subjects, &of_the_clients, Circumstances::default());
        assert_eq!(parity.of_kind(RemarkKind::Difference).count(), 0, "{}", shown_all(&parity));
        let redo = parity.classes.iter().find(|row| row.id == "redo").unwrap();
        assert_eq!(
            (redo.standing, redo.cells[0].text.as_str(), redo.cells[0].is_default),
            (Standing::Same, "1 GiB", false)
        );
    }

    #[test]
    fn a_database_has_the_characters_that_its_server_was_configured_with() {
        let read_back = |config: &str, set: &str, collation: &str| {
            let mut subject = configured("a", "MariaDB", "10.11.5", config);
            for (name, value) in [("character_set_database", set), ("collation_database", collation)] {
                subject.settings.insert(name.to_owned(), value.to_owned());
            }
            let parity = compared(&[subject], &[], Circumstances::default());
            ["charset", "collation"].map(|id| {
                let row = parity.classes.iter().find(|row| row.id == id).unwrap();
                (row.cells[0].text.clone(), row.cells[0].is_default)
            })
        };
        let both = "[mysqld]\ncharacter_set_server = latin1\ncollation_server = latin1_swedish_ci\n";
        let words = |text: &str, is_default| (text.to_owned(), is_default);
        let latin1 = |is_default| [words("latin1", is_default), words("latin1_swedish_ci", is_default)];
        assert_eq!(read_back(both, "latin1", "latin1_swedish_ci"), latin1(false));
        assert_eq!(read_back("", "latin1", "latin1_swedish_ci"), latin1(true), "another default");
        assert_eq!(
            read_back(both, "utf8mb4", "utf8mb4_bin"),
            [words("UTF-8", true), words("utf8mb4_bin", true)],
            "a database that was there before"
        );
    }

    #[test]
    fn a_declared_difference_is_no_alarm_and_its_pitfalls_are_not_reported() {
        let off = "[mysqld]\ninnodb_doublewrite = 0\n";
        let subjects = [configured("on", "MySQL", "8.0.31", ""), configured("off", "MySQL", "8.0.31", off)];
        let declared = ["torn-pages".to_owned()];
        let parity = compared(&subjects, &declared, Circumstances::default());
        let differences = parity.differences("on", "off");
        assert_eq!(differences.iter().map(|found| found.class.as_str()).collect::<Vec<_>>(), ["torn-pages"]);
        insta::assert_snapshot!(shown_all(&parity), @"Declared torn-pages: on* (on), off (off)");
        let parity = compared(&subjects, &[], Circumstances::default());
        insta::assert_snapshot!(shown_all(&parity), @r#"
        Difference torn-pages: on* (on), off (off)
        Pitfall torn-pages-off: Pitfall { title: "nothing protects from torn pages", lines: [] }
        "#);
        assert_eq!(parity.remarks[1].variants, ["off"]);
    }

    /// The server's settings have names and values that would be a difference and a pitfall if the
    /// product itself had them.
    #[test]
    fn a_server_of_another_kind_has_no_known_class_and_meets_no_pitfall() {
        let settings = [("innodb_flush_log_at_trx_commit", "0"), ("innodb_doublewrite", "OFF")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let mut read_back = server("TiDB", "7.5.0", settings);
        let of = |read_back: &_| effective(&variant("tidb", ""), read_back, &Planned::default());
        let base = configured("my", "MySQL", "8.0.31", "");
        read_back.speaks = Some("MySQL".to_owned());
        let parity = compared(&[base.clone(), of(&read_back)], &[], Circumstances::default());
        assert!(!parity.classes.is_empty());
        assert!(parity.classes.iter().all(|row| row.cells[1].text.is_empty()));
        insta::assert_snapshot!(shown_all(&parity), @r#"Unknown unknown: ForeignServer(Foreign { name: "TiDB", speaks: "MySQL" })"#);
        // These are the same settings for the product itself.
        (read_back.product, read_back.speaks) = ("MySQL".to_owned(), None);
        let parity = compared(&[base, of(&read_back)], &[], Circumstances::default());
        let kinds =
            [RemarkKind::Difference, RemarkKind::Pitfall].map(|kind| parity.of_kind(kind).count() > 0);
        assert_eq!(kinds, [true, true], "{}", shown_all(&parity));
    }

    #[test]
    fn classes_of_a_family_are_compared_within_it() {
        let subjects = [configured("my", "MySQL", "8.0.31", ""), configured("pg", "PostgreSQL", "15.1", "")];
        let parity = compared(&subjects, &[], Circumstances::default());
        let standing = |id: &str| parity.classes.iter().find(|row| row.id == id).unwrap().standing;
        assert_eq!(
            [standing("collation"), standing("commit"), standing("page-size")],
            [Standing::NotCompared, Standing::Same, Standing::Differs]
        );
        let subjects = [
            configured("ma", "MariaDB", "10.2.11", ""),
            configured("new", "MariaDB", "10.2.11", ""),
            configured("pg", "PostgreSQL", "15.1", ""),
        ];
        let parity = compared(&subjects, &[], Circumstances::default());
        let collation = parity.classes.iter().find(|row| row.id == "collation").unwrap();
        assert_eq!(collation.standing, Standing::SameInFamily, "PostgreSQL's collation is another");
    }
}
