//! Two variants compared step by step: of one run, in pairs, or of two runs, apart.

use dbdyno_record::Run;
use serde::Serialize;

use crate::alike::differences;
use crate::parity::between;
use crate::ratio::valid;
use crate::statistics::describe::{Group, geometric_mean, group};
use crate::verdict::{Inference, Verdict, adjust, paired, unpaired, verdict};
use crate::{Choices, Error, Findings, StepFindings, VariantStep, analyse_with};

/// A variant of a run.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    pub run: &'a Run,
    pub variant: &'a str,
}

/// What the caller may choose about a comparison.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompareChoices {
    /// Margin as a fraction; `None` = the base run's.
    pub margin: Option<f64>,
    /// Compare runs that are not alike too, and say so.
    pub anyway: bool,
}

/// Base and new, step by step.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    pub base: ComparedSide,
    pub new: ComparedSide,
    /// `true` when both are of one run, so that ratios are formed within blocks.
    pub paired: bool,
    pub margin: f64,
    /// What a reader must know before any number.
    pub notes: Vec<String>,
    pub steps: Vec<ComparedStep>,
    /// The ratios of all steps that have one, as one group.
    pub ratios: Option<Group>,
}

/// Who is compared.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedSide {
    pub run_id: String,
    pub variant: String,
    pub version_text: String,
}

/// One step of both sides.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedStep {
    pub workload: String,
    pub step: String,
    pub rate_label: String,
    /// Median over the valid blocks.
    pub base_rate: Option<f64>,
    pub new_rate: Option<f64>,
    /// Blocks that the ratio is made of: pairs, or the valid blocks of base and new.
    pub base_blocks: usize,
    pub new_blocks: usize,
    /// New ÷ base: geometric mean over pairs, or ratio of the geometric means.
    pub ratio: Option<f64>,
    /// `None` when a side has one block only.
    pub inference: Option<Inference>,
    /// `None` for one block and for a step that one of the two did not run.
    pub verdict: Option<Verdict>,
}

/// Compares `new` with `base`.
///
/// Two runs must be alike: same plan name, workloads with their versions and options (which hold the size of the data), seed,
/// class of host and kind of build. [`Error::NotAlike`] says what differs, unless `anyway` was chosen; then it is a note.
pub fn compare(base: Side<'_>, new: Side<'_>, choices: CompareChoices) -> Result<Comparison, Error> {
    let one_run = base.run.manifest.run_id == new.run.manifest.run_id;
    let margin = choices.margin.unwrap_or(base.run.manifest.margin);
    let base_findings = of_variant(base)?;
    let mut notes = Vec::new();
    let mut steps = if one_run {
        if base.variant == new.variant {
            return Err(Error::WithItself { variant: base.variant.to_owned() });
        }
        known(new)?;
        in_pairs(&base_findings, new.variant, margin)
    } else {
        let differences = differences(&base.run.manifest, &new.run.manifest);
        if !differences.is_empty() && !choices.anyway {
            return Err(Error::NotAlike { differences });
        }
        notes.extend(differences.into_iter().map(|what| format!("The runs are not alike: {what}.")));
        notes.push(
            "Measured in two runs: whatever changed on the machine between them is in the ratios too, and no interval \
             shows it. Better put both into one plan, whose blocks interleave them."
                .to_owned(),
        );
        apart(&base_findings, base.variant, &of_variant(new)?, new.variant, margin)
    };
    notes.extend(debug_builds(base.run, new.run));
    notes.extend(between((base.run, base.variant), (new.run, new.variant)));
    judge(&mut steps, margin);
    if steps.iter().all(|step| step.inference.is_none()) && steps.iter().any(|step| step.ratio.is_some()) {
        notes.push(
            "One block: there are ratios, but no intervals and no verdicts. Run five blocks or more."
                .to_owned(),
        );
    }
    Ok(Comparison {
        base: compared_side(base, &base_findings),
        new: match one_run {
            true => compared_side(new, &base_findings),
            false => compared_side(new, &of_variant(new)?),
        },
        paired: one_run,
        margin,
        notes,
        ratios: group(&steps.iter().filter_map(|step| step.ratio).collect::<Vec<_>>()),
        steps,
    })
}

fn of_variant(side: Side<'_>) -> Result<Findings, Error> {
    known(side)?;
    analyse_with(side.run, &Choices { base: Some(side.variant.to_owned()) })
}

fn known(side: Side<'_>) -> Result<(), Error> {
    let known: Vec<String> = side.run.manifest.variants.iter().map(|variant| variant.name.clone()).collect();
    if known.iter().any(|name| name == side.variant) {
        return Ok(());
    }
    Err(Error::UnknownVariant {
        run: side.run.manifest.run_id.clone(),
        asked: side.variant.to_owned(),
        known,
    })
}

fn compared_side(side: Side<'_>, findings: &Findings) -> ComparedSide {
    let found = findings.variants.iter().find(|variant| variant.name == side.variant);
    ComparedSide {
        run_id: side.run.manifest.run_id.clone(),
        variant: side.variant.to_owned(),
        version_text: found.map_or_else(String::new, |variant| variant.version_text.clone()),
    }
}

fn debug_builds(base: &Run, new: &Run) -> Option<String> {
    let debug = [base, new].iter().any(|run| run.manifest.tool.build != "release");
    debug.then(|| "Measured with a debug build of dbdyno: its numbers are not worth comparing.".to_owned())
}

fn variant_of<'a>(step: &'a StepFindings, name: &str) -> Option<&'a VariantStep> {
    step.variants.iter().find(|variant| variant.variant == name)
}

fn in_pairs(findings: &Findings, new: &str, margin: f64) -> Vec<ComparedStep> {
    let seed = findings.run.seed;
    let compared = |workload: &str, step: &StepFindings| {
        let base = variant_of(step, &findings.run.base)?;
        let new = variant_of(step, new)?;
        let ratios: Vec<f64> =
            new.ratio.iter().flat_map(|ratio| &ratio.blocks).map(|(_, ratio)| *ratio).collect();
        Some(ComparedStep {
            base_blocks: ratios.len(),
            new_blocks: ratios.len(),
            ratio: new.ratio.as_ref().map(|ratio| ratio.value),
            inference: paired(&ratios, margin, seed),
            ..both(workload, step, base, new)
        })
    };
    let steps = findings
        .workloads
        .iter()
        .flat_map(|workload| workload.steps.iter().filter_map(move |step| compared(&workload.name, step)));
    steps.collect()
}

/// Steps of the base that the new run has too, by workload and name.
fn apart(base: &Findings, base_name: &str, new: &Findings, new_name: &str, margin: f64) -> Vec<ComparedStep> {
    let other = |workload: &str, name: &str| {
        let workload = new.workloads.iter().find(|other| other.name == workload)?;
        workload.steps.iter().find(|step| step.name == name)
    };
    let rates = |variant: &VariantStep| -> Vec<f64> {
        valid(&variant.runs).map(|run| run.rate).filter(|rate| *rate > 0.0).collect()
    };
    let compared = |workload: &str, step: &StepFindings| {
        let base = variant_of(step, base_name)?;
        let new = variant_of(other(workload, &step.name)?, new_name)?;
        let (base_rates, new_rates) = (rates(base), rates(new));
        Some(ComparedStep {
            base_blocks: base_rates.len(),
            new_blocks: new_rates.len(),
            ratio: geometric_mean(&new_rates).zip(geometric_mean(&base_rates)).map(|(new, base)| new / base),
            inference: unpaired(&base_rates, &new_rates, margin),
            ..both(workload, step, base, new)
        })
    };
    let steps = base
        .workloads
        .iter()
        .flat_map(|workload| workload.steps.iter().filter_map(move |step| compared(&workload.name, step)));
    steps.collect()
}

/// What does not depend on how the two are compared. A step that ran on both sides but has no ratio is invalid.
fn both(workload: &str, step: &StepFindings, base: &VariantStep, new: &VariantStep) -> ComparedStep {
    let ran = !base.runs.is_empty() && !new.runs.is_empty();
    ComparedStep {
        workload: workload.to_owned(),
        step: step.name.clone(),
        rate_label: step.rate_label.clone(),
        base_rate: base.rate,
        new_rate: new.rate,
        base_blocks: 0,
        new_blocks: 0,
        ratio: None,
        inference: None,
        verdict: ran.then_some(Verdict::Invalid),
    }
}

/// Adjusts the p-values over the steps of this comparison and finds the words.
fn judge(steps: &mut [ComparedStep], margin: f64) {
    adjust(&mut steps.iter_mut().filter_map(|step| step.inference.as_mut()).collect::<Vec<_>>());
    for step in steps {
        if let Some(ratio) = step.ratio {
            step.verdict = step.inference.as_ref().map(|inference| verdict(ratio, inference, margin));
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::CellEvent;
    use insta::assert_snapshot;

    use super::*;
    use crate::fixtures::{cell, load_step, run};

    /// A run of `a` and `b` in `l.i0`, one pair of rates a block.
    fn run_of(id: &str, blocks: &[(u64, u64)]) -> Run {
        let cells = blocks.iter().zip(1..).flat_map(|((a, b), block)| {
            [cell(block, "a", vec![load_step(*a)]), cell(block, "b", vec![load_step(*b)])]
        });
        let mut run = run(&["a", "b"], blocks.len() as u32, cells.collect());
        run.manifest.run_id = id.to_owned();
        run
    }

    fn side<'a>(run: &'a Run, variant: &'a str) -> Side<'a> {
        Side { run, variant }
    }

    const STEADY: [(u64, u64); 4] =
        [(100_000, 92_000), (80_000, 73_800), (120_000, 110_100), (100_000, 92_300)];

    #[test]
    fn two_variants_of_one_run_are_compared_in_pairs() {
        let run = run_of("x", &STEADY);
        let found = compare(side(&run, "a"), side(&run, "b"), CompareChoices::default()).unwrap();
        let step = &found.steps[0];
        assert!(found.paired && found.notes.is_empty(), "{:?}", found.notes);
        assert_eq!((step.verdict, step.base_blocks), (Some(Verdict::Slower), 4));
        assert_eq!(found.ratios.map(|ratios| (ratios.count, Some(ratios.average))), Some((1, step.ratio)));
        assert_eq!(found.steps[1].verdict, None, "qr100 did not run");
        let turned = compare(side(&run, "b"), side(&run, "a"), CompareChoices::default()).unwrap();
        assert_eq!(turned.steps[0].verdict, Some(Verdict::Faster));
    }

    #[test]
    fn settings_that_are_not_alike_are_noted() {
        let set = |run: &mut Run, variant: &str, name: &str, value: &str| {
            for cell in run.cells.iter_mut().filter(|cell| cell.id.variant == variant) {
                for event in &mut cell.events {
                    if let CellEvent::Server { server, .. } = event {
                        server.product = "SQLite".to_owned();
                        server.settings.insert(name.to_owned(), value.to_owned());
                    }
                }
            }
        };
        let mut run = run_of("x", &STEADY);
        set(&mut run, "a", "page_size", "4096");
        set(&mut run, "b", "page_size", "8192");
        let notes =
            |run: &Run| compare(side(run, "a"), side(run, "b"), CompareChoices::default()).unwrap().notes;
        assert_snapshot!(notes(&run).join("\n"), @"Not set alike: page: 4 KiB by default (a), 8 KiB by default (b).");
        run.manifest.plan_toml = "differs = [\"page-size\"]".to_owned();
        assert!(notes(&run).is_empty());
        let mut other = run_of("y", &STEADY);
        set(&mut other, "a", "page_size", "8192");
        run.manifest.plan_toml.clear();
        let found = compare(side(&run, "a"), side(&other, "a"), CompareChoices::default()).unwrap();
        let last = found.notes.last().unwrap();
        assert_snapshot!(last, @"Not set alike: page: 4 KiB by default (a of the base), 8 KiB by default (a of the new run).");
    }

    #[test]
    fn a_wider_margin_is_more_lenient() {
        let run = run_of("x", &STEADY);
        let choices = CompareChoices { margin: Some(0.15), anyway: false };
        let found = compare(side(&run, "a"), side(&run, "b"), choices).unwrap();
        assert_eq!((found.margin, found.steps[0].verdict), (0.15, Some(Verdict::Same)));
    }

    #[test]
    fn two_runs_are_compared_apart_and_what_the_pairs_had_in_common_is_noise() {
        let (one, two) = (run_of("x", &STEADY), run_of("y", &STEADY));
        let found = compare(side(&one, "a"), side(&two, "b"), CompareChoices::default()).unwrap();
        assert_eq!((found.paired, found.steps[0].verdict), (false, Some(Verdict::Undecided)));
        assert_eq!(found.steps[0].inference.as_ref().unwrap().paired, None);
        assert!(found.notes[0].starts_with("Measured in two runs"), "{:?}", found.notes);
    }

    #[test]
    fn runs_that_are_not_alike_are_refused_unless_anyway() {
        let (one, mut two) = (run_of("x", &STEADY), run_of("y", &STEADY));
        two.manifest.seed = 8;
        let error = compare(side(&one, "a"), side(&two, "a"), CompareChoices::default()).unwrap_err();
        assert_snapshot!(error, @"the runs are not alike: seed 7 and 8; --anyway compares them all the same");
        let choices = CompareChoices { anyway: true, ..CompareChoices::default() };
        let found = compare(side(&one, "a"), side(&two, "a"), choices).unwrap();
        assert_snapshot!(found.notes[0], @"The runs are not alike: seed 7 and 8.");
    }

    #[test]
    fn one_block_is_a_ratio_without_a_verdict() {
        let run = run_of("x", &STEADY[..1]);
        let found = compare(side(&run, "a"), side(&run, "b"), CompareChoices::default()).unwrap();
        assert_eq!((found.steps[0].ratio, found.steps[0].verdict), (Some(0.92), None));
        assert!(found.notes[0].starts_with("One block"), "{:?}", found.notes);
    }

    #[test]
    fn unknown_variants_and_a_comparison_with_itself_are_errors() {
        let run = run_of("x", &STEADY);
        let fail =
            |base, new| compare(side(&run, base), side(&run, new), CompareChoices::default()).unwrap_err();
        assert_snapshot!(fail("a", "c"), @r#"run x has no variant named "c"; its variants are: a, b"#);
        assert_snapshot!(fail("a", "a"), @"a would be compared with itself: name two variants, or two runs");
    }
}
