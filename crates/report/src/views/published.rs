//! Tables of a published report's figures next to the measured ones, and of its findings, which are
//! looked for in the run.

use dbdyno_analyse::tables::{ComparisonRow, Key, Tables, ValueSource};
use dbdyno_analyse::{Agreement, CLOSE, FindingSeen, Findings, Seen};

use crate::document::{Table, TableCell, Tone};
use crate::number::ratio_text;
use crate::words::table;

pub(super) fn tables(findings: &Findings) -> Vec<Table> {
    published(findings).into_iter().flatten().collect()
}

/// Makes the table of the findings, and that of the figures that were measured. A table without
/// rows is `None`.
pub(crate) fn published(findings: &Findings) -> [Option<Table>; 2] {
    let all = findings.published.iter().flat_map(|published| &published.findings);
    let of_findings = of_findings(all);
    let of_figures = of_figures(&Tables::published(findings));
    [of_findings, of_figures].map(|table| Some(table).filter(|table| !table.rows.is_empty()))
}

fn of_findings<'a>(findings: impl Iterator<Item = &'a FindingSeen>) -> Table {
    let mut table = table("published-findings");
    for one in findings {
        let tone = match one.seen {
            Seen::NotSeen => Tone::Worse,
            Seen::CannotBeTried | Seen::Invalid => Tone::Muted,
            Seen::Seen | Seen::Undecided => Tone::Plain,
        };
        table.push([
            TableCell::from(one.says.as_str()),
            TableCell::toned(seen_word(one.seen), tone),
            TableCell::from(one.steps_seen.to_string()),
            TableCell::from(one.steps_not_seen.to_string()),
            TableCell::from(one.steps_undecided.to_string()),
            TableCell::from(one.steps_invalid.to_string()),
        ]);
    }
    table
}

/// Makes the table with one row per published ratio that was measured. The measured ratio has the
/// same key, with another source.
fn of_figures(tables: &Tables<'_>) -> Table {
    let all = || tables.comparisons.iter();
    let measured = |row: &ComparisonRow<'_>| {
        let key = Key { source: ValueSource::AsPublished, ..row.key };
        all().find(|one| one.key == key && (one.base, one.metric) == (row.base, row.metric))
    };
    let mut table = table("published-figures");
    for row in all().filter(|row| row.key.source == ValueSource::Published) {
        let Some((measured, agreement)) = measured(row).zip(row.agreement) else { continue };
        let setup = row.key.setup.map_or_else(String::new, |setup| format!("{setup} "));
        let tone = if agreement == Agreement::Contradicts { Tone::Worse } else { Tone::Plain };
        let ratio = |row: &ComparisonRow<'_>| {
            let text = row.ratio.map_or_else(|| "n/a".to_owned(), |ratio| ratio_text(ratio, 2));
            TableCell { value: row.ratio, interval: row.interval, ..TableCell::from(text) }
        };
        table.push([
            TableCell::from(format!("{setup}{}", row.key.step)),
            TableCell::from(metric_word(row.metric)),
            TableCell::from(row.base),
            TableCell::from(row.key.variant),
            ratio(row),
            ratio(measured),
            TableCell::toned(agreement_word(agreement), tone),
        ]);
    }
    table
}

/// Says how many of the published figures agree. It is `None` for a report without figures.
pub(crate) fn published_counts(findings: &Findings) -> Option<String> {
    let tables = Tables::published(findings);
    let agreements: Vec<Agreement> = tables.comparisons.iter().filter_map(|row| row.agreement).collect();
    let count = |wanted| agreements.iter().filter(|agreement| **agreement == wanted).count();
    let missing = count(Agreement::NotMeasured);
    let measured = agreements.len() - missing;
    if measured == 0 {
        return (missing > 0).then(|| format!("None of its {missing} figures was measured here."));
    }
    let all = [Agreement::Agrees, Agreement::Contradicts, Agreement::TooWide];
    let counts = all.map(|wanted| (wanted, count(wanted))).into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> =
        counts.map(|(agreement, count)| format!("{}: {count}", agreement_word(agreement))).collect();
    let missing = if missing > 0 { format!(" {missing} more were not measured.") } else { String::new() };
    Some(format!(
        "{measured} published figures were measured here. {}.{missing} A figure agrees when the whole measured 95 % interval is \
         within {:.0} % of it, and contradicts when none of the interval is; otherwise the interval is too wide to tell.",
        counts.join(", "),
        100.0 * CLOSE
    ))
}

fn metric_word(metric: &str) -> &str {
    match metric {
        "cpu_o" => "CPU per operation",
        "rkb_o" => "KB read per operation",
        "response_p99_us" => "p99",
        other => other,
    }
}

const fn agreement_word(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Agrees => "agrees",
        Agreement::Contradicts => "contradicts",
        Agreement::TooWide => "too wide to tell",
        Agreement::NotMeasured => "not measured",
    }
}

const fn seen_word(seen: Seen) -> &'static str {
    match seen {
        Seen::Seen => "seen",
        Seen::NotSeen => "not seen",
        Seen::Undecided => "undecided",
        Seen::Invalid => "invalid here",
        Seen::CannotBeTried => "cannot be tried here",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::testing;

    #[test]
    fn a_published_ratio_is_next_to_the_measured_one_and_is_left_out_if_none_was_measured() {
        let row = |step, source, ratio| {
            let row = testing::comparison((step, "new"), "rate", ratio);
            ComparisonRow { key: Key { source, setup: Some("cached"), ..row.key }, ..row }
        };
        let published = |step, ratio, agreement| ComparisonRow {
            agreement: Some(agreement),
            ..row(step, ValueSource::Published, ratio)
        };
        let comparisons = vec![
            published("l.i0", 0.5, Agreement::Agrees),
            published("qr100", 1.9, Agreement::Contradicts),
            published("qr500", 1.9, Agreement::NotMeasured),
            row("l.i0", ValueSource::Run, 3.0),
            row("l.i0", ValueSource::AsPublished, 0.52),
            row("qr100", ValueSource::AsPublished, 1.0),
        ];
        let table = of_figures(&Tables { comparisons, ..Tables::default() });
        insta::assert_snapshot!(testing::rows(&table), @"
        cached l.i0 | rate | old | new | 0.50 | 0.52 | agrees
        cached qr100 | rate | old | new | 1.90 | 1.00 | contradicts
        ");
        assert_eq!(table.rows[1][6].tone, Tone::Worse);
    }
}
