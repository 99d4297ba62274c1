//! Tests of what must hold for every table of every document: only a decided verdict has a colour,
//! a comparison has one verdict, and no table is empty.

use std::collections::BTreeSet;

use dbdyno_analyse::{Findings, Verdict};
use dbdyno_model::Colours;
use serde_json::Value;

use crate::charts::Charts;
use crate::document::tests::tables;
use crate::document::{Block, Table, Tone};
use crate::fixture;
use crate::run::{PageOptions, published, short, whole};
use crate::words::RATIO_TABLES;

/// Findings with one and with several blocks, with groups, sweeps, times and several variants.
fn all() -> Vec<Findings> {
    vec![
        fixture::findings(),
        fixture::with_blocks(3),
        fixture::with_groups(),
        fixture::with_aging(),
        fixture::with_sweep(),
        fixture::sized(&["rollback", "b", "c", "d"], 3, 5),
    ]
}

/// The terminal's summary, the page, and the page in the style of published reports.
fn documents(findings: &Findings) -> [Vec<Block>; 3] {
    let charts = Charts::new(findings);
    [
        short(findings, ""),
        whole(findings, Some(&charts), &[]),
        published(findings, &charts, PageOptions::default()),
    ]
}

const COLOURS: [Tone; 6] = [Tone::Better, Tone::Worse, Tone::Highest, Tone::Lowest, Tone::Above, Tone::Below];

/// Whether a table cell's verdict, or the last word of its text, is not a decided difference.
fn is_no_difference(text: &str, verdict: Option<Verdict>) -> bool {
    let is_word = |verdict: Verdict| text.split(' ').next_back() == Some(verdict.word());
    let open = [Verdict::Undecided, Verdict::Same, Verdict::Invalid, Verdict::OnSchedule];
    open.into_iter().any(|open| verdict == Some(open) || is_word(open))
}

#[test]
fn what_is_undecided_same_or_invalid_has_no_colour_in_any_table() {
    let mut seen = 0;
    for findings in all() {
        for blocks in documents(&findings) {
            for table in tables(&blocks) {
                for cell in table.rows.iter().flatten() {
                    if is_no_difference(&cell.text, cell.verdict) {
                        seen += 1;
                        let place = format!("{:?} in {:?}", cell.text, table.title);
                        assert!(!COLOURS.contains(&cell.tone), "{:?}: {place}", cell.tone);
                        assert!(!["+", "−", "▲", "▼"].contains(&cell.sign), "{}: {place}", cell.sign);
                    }
                }
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn with_colours_by_threshold_an_undecided_ratio_is_marked() {
    let mut findings = fixture::with_blocks(3);
    findings.run.colours = Colours::Threshold;
    let mut seen = 0;
    for blocks in documents(&findings) {
        let of_rates = tables(&blocks).into_iter().filter(|table| is_of_rates(table));
        for cell in of_rates.flat_map(|table| &table.rows).flatten() {
            if cell.verdict == Some(Verdict::Undecided) && cell.value.is_some() {
                seen += 1;
                assert!(cell.sign.ends_with('?'), "{}", cell.text);
            }
            assert!(
                cell.text != "1.00" || cell.verdict.is_some() || cell.sign.is_empty(),
                "the base is marked"
            );
        }
    }
    assert!(seen > 2, "{seen}");
}

/// Whether a table's verdicts are those of rates. Others are of response times.
fn is_of_rates(table: &Table) -> bool {
    RATIO_TABLES.iter().any(|title| table.title.starts_with(title))
        || ["", "Verdict"].contains(&table.title.as_str())
}

/// Returns the verdicts that a table shows, each with its step and its variant.
fn shown(findings: &Findings, table: &Table) -> Vec<[String; 3]> {
    let workload = &findings.workloads[0];
    let is_step = |name: &str| workload.steps.iter().any(|step| step.name == name);
    let is_variant = |name: &str| findings.variants.iter().any(|variant| variant.name == name);
    let compared: Vec<&str> = findings.variants.iter().map(|found| found.name.as_str()).collect();
    let mut all = Vec::new();
    for row in &table.rows {
        for (column, cell) in table.columns.iter().zip(row) {
            let (label, head) = (row[0].text.as_str(), column.name.as_str());
            // Steps are rows, or columns in the style of published reports.
            let place = match () {
                () if is_step(label) && is_variant(head) => Some((label, head)),
                () if is_variant(label) && is_step(head) => Some((head, label)),
                () if is_step(label) && head == "verdict" && compared.len() == 2 => {
                    Some((label, compared[1]))
                }
                () => None,
            };
            let word = match cell.verdict {
                Some(verdict) => Some(verdict.word()),
                None if head == "verdict" => Some(cell.text.as_str()).filter(|word| *word != "–"),
                None => None,
            };
            all.extend(
                place.zip(word).map(|((step, variant), word)| [step, variant, word].map(str::to_owned)),
            );
        }
    }
    all
}

#[test]
fn a_comparison_has_one_verdict_in_all_outputs() {
    for findings in [fixture::with_blocks(3), fixture::sized(&["rollback", "b", "c", "d"], 3, 5)] {
        let steps = &findings.workloads[0].steps;
        let found = |[step, variant, _]: &[String; 3]| {
            let step = steps.iter().find(|known| known.name == *step).expect("the step is there");
            step.variant(variant).expect("the variant is there").to_base.verdict.map(Verdict::word)
        };
        let mut seen = BTreeSet::new();
        for blocks in documents(&findings) {
            for verdict in tables(&blocks)
                .into_iter()
                .filter(|table| is_of_rates(table))
                .flat_map(|table| shown(&findings, table))
            {
                assert_eq!(Some(verdict[2].as_str()), found(&verdict), "{verdict:?}");
                seen.insert(verdict);
            }
        }
        let json: Value = serde_json::from_str(&crate::json::findings(&findings)).expect("it is JSON");
        for row in json["comparisons"].as_array().expect("a list") {
            let text = |name: &str| row[name].as_str().map(str::to_owned);
            let is_of_rate = text("metric").as_deref() == Some("rate") && row["block"].is_null();
            let Some(word) = text("verdict").filter(|_| is_of_rate && row["machine"].is_null()) else {
                continue;
            };
            let verdict = [text("step").unwrap(), text("variant").unwrap(), word];
            assert_eq!(Some(verdict[2].as_str()), found(&verdict), "JSON: {verdict:?}");
            seen.insert(verdict);
        }
        let words: BTreeSet<&str> = seen.iter().map(|verdict| verdict[2].as_str()).collect();
        assert!(seen.len() > 5 && words.len() > 2, "{seen:?}");
    }
}

#[test]
fn no_table_is_empty_or_has_only_zeros() {
    for findings in all() {
        for blocks in documents(&findings) {
            for table in tables(&blocks) {
                let texts: Vec<_> = table.rows.iter().map(|row| row.join(" | ")).collect();
                assert!(!table.rows.is_empty() && table.has_values(), "{}: {texts:?}", table.title);
            }
        }
    }
}
