//! Writes the observations as a table for spreadsheets and statistics, with one row per run of a
//! step and one column per metric. It also has [`ColumnValue`], a value that may be missing, which
//! Parquet files use too.

use std::collections::BTreeMap;
use std::fmt;

use dbdyno_analyse::tables::{ComparisonRow, Key, Observation, Tables, ValueSource, columns};
use dbdyno_analyse::{Bound, Findings, Validity, Verdict};

use crate::number::NOT_AVAILABLE;
use crate::views::details::reason;

/// A column's name and its value in one row.
type CsvField = (String, ColumnValue);

/// Writes the CSV report (RFC 4180 quoting, lines end in `\n`). Numbers are not rounded, and a
/// missing value is `NA`.
pub(crate) fn csv(findings: &Findings) -> String {
    let rows = rows(findings);
    let always: Vec<String> = FIRST_COLUMNS.iter().map(|name| (*name).to_owned()).chain(columns()).collect();
    let (mut heads, mut indexes): (Vec<&str>, BTreeMap<&str, usize>) = Default::default();
    for name in always.iter().chain(rows.iter().flatten().map(|(name, _)| name)) {
        indexes.entry(name).or_insert_with(|| {
            heads.push(name);
            heads.len() - 1
        });
    }
    let mut text = line(heads.iter().map(|head| (*head).to_owned()));
    for row in &rows {
        let mut fields = vec![NOT_AVAILABLE.to_owned(); heads.len()];
        row.iter().for_each(|(name, value)| fields[indexes[name.as_str()]] = value.to_string());
        text.push_str(&line(fields.into_iter()));
    }
    text
}

/// The first columns: which run of a step the row is about, its state, and its ratio to the base.
const FIRST_COLUMNS: [&str; 12] = [
    "run",
    "workload",
    "setup",
    "block",
    "machine",
    "variant",
    "step",
    "connections",
    "state",
    "reason",
    "ratio_to_base",
    "ratio_to_base_bound",
];

/// Workload, set-up, step and variant of a row.
type CsvKey<'a> = (&'a str, Option<&'a str>, &'a str, &'a str);

fn csv_key<'a>(key: &Key<'a>) -> CsvKey<'a> {
    (key.workload, key.setup, key.step, key.variant)
}

fn rows(findings: &Findings) -> Vec<Vec<CsvField>> {
    let tables = Tables::of(findings);
    let (all, ratios) = (over_blocks(findings, &tables), ratios_of_blocks(&tables));
    let of_runs = tables.observations.chunk_by(|one, next| one.key == next.key);
    let of_runs = of_runs.filter_map(|run| Some((run[0].key, run[0].key.block?, run)));
    let row = |(key, block, run): (Key<'_>, u32, &[Observation<'_>])| {
        let validity = run[0].validity;
        let ratio = ratios.get(&(csv_key(&key), block));
        let first_values: [ColumnValue; FIRST_COLUMNS.len()] = [
            findings.run.run_id.as_str().into(),
            key.workload.into(),
            key.setup.into(),
            block.into(),
            key.machine.into(),
            key.variant.into(),
            key.step.into(),
            key.connections.into(),
            validity.map(Validity::state).into(),
            validity.map(reason).into(),
            ratio.and_then(|found| found.ratio).into(),
            ratio.and_then(|found| found.bound).map(Bound::name).into(),
        ];
        let metrics = run.iter().map(|one| (one.metric.to_string(), one.value.into()));
        let cells = FIRST_COLUMNS.iter().zip(first_values).map(|(name, value)| ((*name).to_owned(), value));
        cells.chain(metrics).chain(all.get(&csv_key(&key)).into_iter().flatten().cloned()).collect()
    };
    of_runs.map(row).collect()
}

/// Returns the columns on all blocks together, which are the same in each block's row: the
/// observations without the medians of the catalogue's metrics, and the ratios to the run's base.
fn over_blocks<'a>(findings: &'a Findings, tables: &Tables<'a>) -> BTreeMap<CsvKey<'a>, Vec<CsvField>> {
    let mut found: BTreeMap<CsvKey<'a>, Vec<CsvField>> = BTreeMap::new();
    for (workload, step, variant) in findings.variants_of_steps() {
        let (name, setup) = dbdyno_analyse::workload_and_setup(&workload.name);
        let groups = step.groups.iter();
        let groups = groups.map(|(grouping, group)| (format!("group_{grouping}"), group.as_str().into()));
        let differences = findings.parity.as_ref().map(|parity| {
            let classes = parity.differences(&findings.run.base, &variant.variant).into_iter();
            let classes = classes.map(|found| found.class).collect::<Vec<_>>().join(" ");
            ("settings_unlike_base".to_owned(), classes.into())
        });
        let cells = found.entry((name, setup, &step.name, &variant.variant)).or_default();
        cells.push(("unit".to_owned(), step.rate_label.as_str().into()));
        cells.push(("base".to_owned(), findings.run.base.as_str().into()));
        cells.extend(groups.chain(differences));
    }
    for one in tables.observations.iter().filter(|one| one.key.block.is_none() && one.entry.is_none()) {
        let cells = found.entry(csv_key(&one.key)).or_default();
        cells.push((format!("{}_over_blocks", one.metric), one.value.into()));
    }
    for one in tables.comparisons.iter().filter(|one| one.key.is_whole()) {
        let cells = found.entry(csv_key(&one.key)).or_default();
        let mut add = |what: &str, value: ColumnValue| {
            cells.push((format!("{}_{what}_over_blocks", one.metric), value))
        };
        add("to_base", one.ratio.into());
        if one.entry.is_none() {
            add("to_base_low", one.interval.map(|interval| interval.low).into());
            add("to_base_high", one.interval.map(|interval| interval.high).into());
            add("to_base_p", one.p().into());
            add("to_base_bound", one.bound.map(Bound::name).into());
            add("verdict", one.verdict.map(Verdict::word).into());
        }
    }
    found
}

/// Returns the headline's ratio in each block.
fn ratios_of_blocks<'t, 'a>(tables: &'t Tables<'a>) -> BTreeMap<(CsvKey<'a>, u32), &'t ComparisonRow<'a>> {
    let is_headline = |one: &&ComparisonRow<'_>| {
        ["rate", "seconds"].contains(&one.metric) && one.key.source == ValueSource::Run
    };
    let rates = tables.comparisons.iter().filter(is_headline);
    rates.filter_map(|one| Some(((csv_key(&one.key), one.key.block?), one))).collect()
}

fn line(fields: impl Iterator<Item = String>) -> String {
    fields.map(|field| quoted(&field)).collect::<Vec<_>>().join(",") + "\n"
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[derive(Clone)]
pub(crate) enum ColumnValue {
    Text(Option<String>),
    Whole(Option<i64>),
    Number(Option<f64>),
    Flag(Option<bool>),
}

/// Numbers are not rounded. A ratio to a base of 0 is `inf`, and a missing value is `NA`.
impl fmt::Display for ColumnValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(Some(text)) => out.write_str(text),
            Self::Whole(Some(number)) => number.fmt(out),
            Self::Number(Some(number)) if !number.is_nan() => number.fmt(out),
            Self::Flag(Some(flag)) => flag.fmt(out),
            _ => out.write_str(NOT_AVAILABLE),
        }
    }
}

/// Implements conversions into a value, from a type and from an option of that type.
macro_rules! from {
    ($($type:ty => $kind:ident($into:path),)*) => {$(
        impl From<$type> for ColumnValue {
            fn from(value: $type) -> Self {
                Self::from(Some(value))
            }
        }

        impl From<Option<$type>> for ColumnValue {
            fn from(value: Option<$type>) -> Self {
                Self::$kind(value.and_then($into))
            }
        }
    )*};
}

from! {
    String => Text(Some),
    &str => Text(owned),
    f64 => Number(Some),
    bool => Flag(Some),
    u32 => Whole(whole),
    u64 => Whole(whole),
    usize => Whole(whole),
}

fn owned(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Converts a number to 64 bits with a sign. It is `None` where the number does not fit.
fn whole(number: impl TryInto<i64>) -> Option<i64> {
    number.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_field_is_quoted_only_when_it_must_be() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"no\""), "\"say \"\"no\"\"\"");
        assert_eq!(quoted("two\nlines"), "\"two\nlines\"");
    }

    /// Returns the texts below a head, in the order of the rows.
    fn below(text: &str, head: &str) -> Vec<String> {
        // In the fixture, no name and no text before these columns holds a comma or a line feed.
        let column = text.lines().next().and_then(|heads| heads.split(',').position(|name| name == head));
        let column = column.unwrap_or_else(|| panic!("no column {head}"));
        let cell = |line: &str| line.split(',').nth(column).unwrap_or_default().to_owned();
        text.lines().skip(1).take(2).map(cell).collect()
    }

    #[test]
    fn rows_have_their_group_their_target_and_relative_metrics() {
        let text = csv(&fixture::with_groups());
        assert_eq!(below(&text, "group_2024"), ["writes", "writes"]);
        let text: String =
            text.lines().filter(|line| !line.contains(",rollback,l.")).map(|l| format!("{l}\n")).collect();
        assert_eq!(below(&text, "ips_to_base_over_blocks"), ["1.02", "1.02"]);
        assert_eq!(below(&text, "rps_to_base_over_blocks"), ["inf", "inf"]);
        assert_eq!(below(&text, "host_check_unexplained_us"), ["5", "5"]);
        assert_eq!(below(&text, "target_over_blocks"), ["NA", "NA"], "l.i0 has none");
        assert_eq!(below(&text, "lookup_min_id_count"), ["8", "8"]);
        assert_eq!(below(&text, "lookup_min_id_mean_seconds"), ["0.0015", "0.0015"]);
        assert_eq!(below(&text, "lookup_insert_seconds"), ["NA", "NA"], "of l.x only");
    }

    #[test]
    fn the_table_of_the_fixture() {
        let text = csv(&fixture::findings());
        assert_eq!(text.lines().count(), 1 + 20);
        insta::assert_snapshot!("csv", text);
    }
}
