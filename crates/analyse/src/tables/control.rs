//! The A/A table: the base against itself under a second name, and what its scatter lets the run see.

use crate::compare::verdicts::Rules;
use crate::model::{
    Cell, Colour, Inference, LEVEL, Ratio, StepFindings, Table, TableRow, VariantStep, Verdict,
};
use crate::statistics::power::USUAL_POWER;
use crate::statistics::power_same::margin_for_same;
use crate::words::numbered;

/// Columns are steps; `None` for a run without A/A.
pub(crate) fn control(steps: &[StepFindings], rules: Rules<'_>) -> Option<Table> {
    let again = rules.again?;
    let of_step = |step: &StepFindings| -> [Cell; 4] {
        let variant = step.variants.iter().find(|variant| variant.variant == again);
        let found = variant.and_then(|variant| Some((variant, variant.ratio.as_ref()?)));
        match found {
            Some((variant, ratio)) => cells(variant, ratio),
            None => std::array::from_fn(|_| nothing("no block in which both are valid")),
        }
    };
    let columns: Vec<[Cell; 4]> = steps.iter().map(of_step).collect();
    let row = |at: usize, label: &str| TableRow {
        label: label.to_owned(),
        is_target: false,
        cells: columns.iter().map(|cells| cells[at].clone()).collect(),
    };
    Some(Table {
        title: format!("A/A: {} against itself", rules.base),
        caption: caption(steps, rules.base, again),
        columns: steps.iter().map(|step| step.name.clone()).collect(),
        rows: vec![row(0, "ratio"), row(1, "noise %"), row(2, "detects %"), row(3, "equivalence margin %")],
    })
}

fn cells(variant: &VariantStep, ratio: &Ratio) -> [Cell; 4] {
    let shown = Cell {
        value: Some(ratio.value),
        text: format!("{:.3}", ratio.value),
        interval: ratio.inference.as_ref().map(|inference| inference.interval),
        verdict: variant.verdict,
        ..nothing("")
    };
    let seen = ratio.inference.as_ref().and_then(|inference| seen(inference, ratio.blocks.len()));
    let [noise, detects, same] = match seen {
        Some(figures) => figures.map(|fraction| Cell {
            value: Some(100.0 * fraction),
            text: format!("{:.2}", 100.0 * fraction),
            ..nothing("")
        }),
        None => std::array::from_fn(|_| nothing("one block has no noise")),
    };
    [shown, noise, detects, same]
}

/// Noise, the difference that is found and the margin within which sameness is shown, as fractions.
fn seen(inference: &Inference, blocks: usize) -> Option<[f64; 3]> {
    let paired = inference.paired.as_ref()?;
    let same_within = margin_for_same(paired.deviation, u32::try_from(blocks).ok()?, LEVEL, USUAL_POWER)?;
    Some([paired.deviation.exp_m1(), paired.detectable_ratio - 1.0, same_within.exp_m1()])
}

fn nothing(note: &str) -> Cell {
    Cell {
        value: None,
        text: "n/a".to_owned(),
        colour: Colour::None,
        interval: None,
        verdict: None,
        misses_target: false,
        note: note.to_owned(),
    }
}

fn caption(steps: &[StepFindings], base: &str, again: &str) -> String {
    let verdicts: Vec<Verdict> = steps
        .iter()
        .filter_map(|step| step.variants.iter().find(|variant| variant.variant == again)?.verdict)
        .collect();
    let of = |wanted: &[Verdict]| verdicts.iter().filter(|verdict| wanted.contains(verdict)).count();
    let answer = if verdicts.is_empty() {
        String::new()
    } else {
        format!(
            " False differences: {} of {}; {} same, {} undecided{}{}{}.",
            of(&[Verdict::Faster, Verdict::Slower]),
            numbered(verdicts.len(), "step"),
            of(&[Verdict::Same]),
            of(&[Verdict::Undecided]),
            match of(&[Verdict::Invalid]) {
                0 => String::new(),
                invalid => format!(", {invalid} invalid"),
            },
            match of(&[Verdict::Paced]) {
                0 => String::new(),
                paced => format!(", {paced} paced"),
            },
            match of(&[Verdict::Missed, Verdict::Stalled]) {
                0 => String::new(),
                stalled => format!(", {stalled} that missed its rate or stalled"),
            },
        )
    };
    format!(
        "A/A: {base} ran a second time in every block, as {again}.{answer} noise: standard \
         deviation of a block's ratio. With this noise and number of blocks, 80 % of runs show a \
         difference as large as detects, and equivalence within the equivalence margin."
    )
}

/// A word that the base against itself must not get.
fn is_difference(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower | Verdict::Missed | Verdict::Stalled)
}

/// A sentence for a run whose base differs from itself: its other differences may be as false.
pub(crate) fn warning<'a>(
    steps: impl Iterator<Item = &'a StepFindings>,
    again: Option<&str>,
) -> Option<String> {
    let again = again?;
    let differs = |step: &&StepFindings| {
        step.variants
            .iter()
            .any(|variant| variant.variant == again && variant.verdict.is_some_and(is_difference))
    };
    let names: Vec<&str> = steps.filter(differs).map(|step| step.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The base differs from itself ({again}) in {}: something other than the variants \
             changes the rates, so other differences there may be false too.",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::fixtures::{cell, load_step, run, texts};
    use crate::model::Verdict;
    use crate::{Choices, analyse, analyse_with};

    fn with_again(again: [u64; 4]) -> crate::model::Findings {
        analyse(&run_again(again))
    }

    fn run_again(again: [u64; 4]) -> dbdyno_record::Run {
        let base = [100_000, 90_000, 110_000, 100_000];
        let cells = base.iter().zip(again).zip(1..).flat_map(|((base, again), block)| {
            [
                cell(block, "a", vec![load_step(*base)]),
                cell(block, "a~again", vec![load_step(again)]),
                cell(block, "b", vec![load_step(base * 108 / 100)]),
            ]
        });
        let mut run = run(&["a", "a~again", "b"], 4, cells.collect());
        run.manifest.experiment.again = Some("a~again".to_owned());
        run
    }

    #[test]
    fn the_base_against_itself_is_a_table_of_its_own() {
        let findings = with_again([100_500, 89_500, 110_700, 99_600]);
        let table = findings.workloads[0].summary.control.as_ref().unwrap();
        let first: Vec<String> =
            table.rows.iter().map(|row| format!("{}: {}", row.label, row.cells[0].text)).collect();
        assert_snapshot!(first.join("\n"), @r"
        ratio: 1.000
        noise %: 0.61
        detects %: 2.26
        equivalence margin %: 1.19
        ");
        assert_snapshot!(table.caption, @"A/A: a ran a second time in every block, as a~again. False differences: 0 of 1 step; 1 same, 0 undecided. noise: standard deviation of a block's ratio. With this noise and number of blocks, 80 % of runs show a difference as large as detects, and equivalence within the equivalence margin.");
        assert_eq!(table.rows[0].cells[0].verdict, Some(Verdict::Same));
        assert_eq!(table.rows[0].cells[1].text, "n/a", "qr100 did not run");
        assert!(!findings.warnings.iter().any(|warning| warning.text.contains("itself")));
    }

    #[test]
    fn a_base_that_differs_from_itself_is_warned_of_and_is_no_part_of_the_family_of_the_others() {
        let findings = with_again([105_000, 94_600, 115_400, 105_100]);
        let step = &findings.workloads[0].steps[0];
        assert_eq!(step.variants[1].verdict, Some(Verdict::Faster));
        let inference = step.variants[2].ratio.as_ref().unwrap().inference.as_ref().unwrap();
        assert_eq!(inference.q_difference, inference.p_difference, "the only comparison of its family");
        let warning = &texts(&findings).into_iter().find(|warning| warning.contains("itself")).unwrap();
        assert_snapshot!(warning, @"The base differs from itself (a~again) in l.i0: something other than the variants changes the rates, so other differences there may be false too.");
    }

    #[test]
    fn steps_without_a_valid_pair_are_counted_too() {
        let cells = (1..=3).flat_map(|block| {
            let mut broken = load_step(1_000);
            broken.events.push(dbdyno_record::StepEvent::Invalid { reason: "clock jumped".to_owned() });
            [cell(block, "a", vec![load_step(1_000)]), cell(block, "a~again", vec![broken])]
        });
        let mut run = run(&["a", "a~again"], 3, cells.collect());
        run.manifest.experiment.again = Some("a~again".to_owned());
        let caption = analyse(&run).workloads[0].summary.control.as_ref().unwrap().caption.clone();
        assert!(
            caption.contains("False differences: 0 of 1 step; 0 same, 0 undecided, 1 invalid."),
            "{caption}"
        );
    }

    #[test]
    fn against_another_base_nothing_ran_twice() {
        let run = run_again([105_000, 94_600, 115_400, 105_100]);
        for base in ["b", "a~again"] {
            let choices = Choices { base: Some(base.to_owned()) };
            let findings = analyse_with(&run, &choices).unwrap();
            assert!(findings.workloads[0].summary.control.is_none(), "{base}");
            assert!(!findings.warnings.iter().any(|warning| warning.text.contains("itself")), "{base}");
            assert_eq!(findings.run.again, None);
        }
    }

    #[test]
    fn a_run_without_it_has_no_such_table() {
        let findings = analyse(&run(&["a", "b"], 1, Vec::new()));
        assert!(findings.workloads[0].summary.control.is_none());
    }
}
