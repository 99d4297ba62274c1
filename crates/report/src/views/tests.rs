//! What the views say, by changes to the fixture.

use dbdyno_analyse::{Effect, Findings, Ratio, Verdict, ZeroRates};
use dbdyno_model::Colours;

use super::*;
use crate::fixture;

/// The table of this title, of the only workload.
fn table(findings: &Findings, title: &str) -> Table {
    let scope = Scope::of(findings, &findings.workloads[0]);
    let mut tables = OF_WORKLOAD.iter().flat_map(|view| (view.tables)(scope));
    tables.find(|table| table.title.starts_with(title)).unwrap_or_else(|| panic!("no table {title}"))
}

/// The second variant's cell of a step.
fn cell(findings: &Findings, title: &str, step: usize) -> Cell {
    table(findings, title).rows[step][2].clone()
}

#[test]
fn each_kind_of_table_is_there_only_where_there_is_something_of_it() {
    let titles = |findings: &Findings| {
        let scope = Scope::of(findings, &findings.workloads[0]);
        let of_rates = OF_WORKLOAD.iter().filter(|view| view.part == Part::Rates);
        let all = of_rates.flat_map(|view| (view.tables)(scope));
        all.map(|table| table.title.split([':', '(']).next().unwrap_or_default().trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        titles(&fixture::findings()),
        ["Throughput", "Relative throughput", "Background inserts", "Errors"]
    );
    assert_eq!(titles(&fixture::with_groups())[2], "Groups of steps");
    assert_eq!(titles(&fixture::with_sweep())[2], "Connections");
    assert_eq!(titles(&fixture::with_aging())[2], "After ÷ before writes");
    let mut alone = fixture::sized(&["rollback"], 1, 5);
    assert_eq!(titles(&alone), ["Throughput", "Background inserts", "Errors"]);
    alone.workloads[0].steps.truncate(4);
    assert_eq!(titles(&alone), ["Throughput", "Errors"], "loads have no targets");
}

#[test]
fn a_rate_in_the_lowest_quarter_that_missed_its_target_says_both() {
    let mut findings = fixture::sized(&["a", "b", "c", "d"], 1, 5);
    let step = &mut findings.workloads[0].steps[8];
    step.variants[1].rate = Some(1_000.0);
    let found = cell(&findings, "Throughput", 8);
    assert_eq!((found.tone, found.sign), (Tone::Lowest, "▼ SLA"));
    let note = "lowest quarter of this step; background inserts 3,600/s, at least 3,800/s of 4,000/s needed";
    assert_eq!(found.note, note);
    let tones: Vec<Tone> = table(&findings, "Throughput").legend.iter().map(|(tone, _)| *tone).collect();
    assert_eq!(tones, [Tone::Highest, Tone::Lowest, Tone::Missed]);
}

#[test]
fn quarters_take_four_variants_and_a_difference() {
    let tone = |names: &[&str], verdict| {
        let mut findings = fixture::sized(names, 1, 5);
        let variant = &mut findings.workloads[0].steps[0].variants[1];
        (variant.rate, variant.to_base.verdict) = (Some(1_000.0), verdict);
        cell(&findings, "Throughput", 0).tone
    };
    let four = ["a", "b", "c", "d"];
    assert_eq!(tone(&four, None), Tone::Lowest);
    assert_eq!(tone(&four, Some(Verdict::Slower)), Tone::Lowest);
    assert_eq!(tone(&four, Some(Verdict::Undecided)), Tone::Plain);
    assert_eq!(tone(&four, Some(Verdict::Same)), Tone::Plain);
    assert_eq!(tone(&four[..3], Some(Verdict::Slower)), Tone::Plain);
    let base = |verdict| {
        let mut findings = fixture::sized(&four, 1, 5);
        findings.run.base = "a".to_owned();
        let step = &mut findings.workloads[0].steps[0];
        step.variants[0].rate = Some(1_000.0);
        step.variants[1..].iter_mut().for_each(|variant| variant.to_base.verdict = Some(Verdict::Undecided));
        step.variants[3].to_base.verdict = Some(verdict);
        table(&findings, "Throughput").rows[0][1].tone
    };
    assert_eq!((base(Verdict::Faster), base(Verdict::Undecided)), (Tone::Lowest, Tone::Plain));
}

#[test]
fn ratios_are_coloured_by_verdict_or_by_threshold() {
    let tones = |mut findings: Findings, colours| {
        findings.run.colours = colours;
        // 1.02 undecided, 2.50 faster, 1.04 undecided, 0.80 slower.
        [0, 2, 4, 8].map(|step| cell(&findings, "Relative throughput", step).tone)
    };
    let (plain, above, below) = (Tone::Plain, Tone::Above, Tone::Below);
    assert_eq!(tones(fixture::with_blocks(3), Colours::Verdict), [plain, above, plain, below]);
    assert_eq!(tones(fixture::findings(), Colours::Verdict), [plain; 4], "one block decides nothing");
    let (green, grey, red) = (Tone::Highest, Tone::Missed, Tone::Lowest);
    assert_eq!(tones(fixture::findings(), Colours::Threshold), [grey, green, grey, red]);
}

#[test]
fn a_variant_that_stalled_is_red_and_says_where() {
    let mut findings = fixture::with_blocks(3);
    let variant = &mut findings.workloads[0].steps[5].variants[1];
    variant.to_base.zero_rates = ZeroRates { stalled: vec![2, 3], base_stalled: Vec::new(), blocks: 5 };
    variant.to_base.verdict = Some(Verdict::Stalled);
    let found = cell(&findings, "Relative throughput", 5);
    assert_eq!((found.tone, found.text.as_str()), (Tone::Lowest, "1.30"));
    let note = "answered nothing in blocks 2 and 3 of 5, in which rollback answered; the ratio is that of the other blocks";
    assert_eq!(found.note, note);
    let table = table(&findings, "Relative throughput");
    assert!(table.note.contains(" stalled: it answered nothing"), "{}", table.note);
    assert_eq!(table.legend.len(), 3);
}

#[test]
fn a_rate_without_a_ratio_is_not_called_invalid() {
    let mut findings = fixture::findings();
    findings.workloads[0].steps[0].variants[1].to_base.ratio = None;
    let found = cell(&findings, "Relative throughput", 0);
    assert_eq!(
        (found.text.as_str(), found.note.as_str()),
        ("n/a", "no block in which rollback is valid too")
    );
}

#[test]
fn the_base_against_itself_counts_false_differences() {
    let mut findings = fixture::with_blocks(3);
    assert!(
        !OF_WORKLOAD
            .iter()
            .flat_map(|view| (view.tables)(Scope::of(&findings, &findings.workloads[0])))
            .any(|table| table.title.starts_with("A/A"))
    );
    findings.run.again = Some(fixture::NAMES[1].to_owned());
    let table = table(&findings, "A/A: rollback against itself");
    assert!(table.note.contains(" False differences: 4 of 8 steps; 1 same, 3 undecided."), "{}", table.note);
    let texts: Vec<&str> = table.rows[0].iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(texts, ["l.i0", "1.020", "1.31", "3.10", "3.52"]);
    assert_eq!(table.rows[7][1].note, "no block in which both are valid");
}

#[test]
fn an_effect_says_which_variants_missed_their_writes() {
    let mut findings = fixture::with_blocks(3);
    let ratio = Ratio { value: 0.8, blocks: vec![(1, 0.8)], bound: None, inference: None };
    let effect = Effect {
        name: "binlog: on against off".to_owned(),
        ratio,
        stalled: vec![2],
        missed: vec!["d".to_owned()],
        verdict: Some(Verdict::Undecided),
    };
    findings.workloads[0].steps[4].effects = vec![effect];
    let table = table(&findings, "Effects");
    let note = "without block 2, in which a variant answered nothing; d did not keep the background rate";
    assert_eq!((table.rows[4][1].note.as_str(), table.rows[0][1].text.as_str()), (note, "n/a"));
}

#[test]
fn margins_of_single_steps_are_named() {
    let mut findings = fixture::with_blocks(3);
    for step in [1, 2] {
        findings.workloads[0].steps[step].margin = 0.05;
    }
    let note = table(&findings, "Relative throughput").note;
    assert!(note.contains(" beyond the margin of 2 % (5 % in l.x and l.i1)."), "{note}");
}
