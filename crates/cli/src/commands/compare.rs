//! `dbdyno compare` compares two variants of one run or of two. It prints a short table, and its
//! exit status can fail a CI job.

use std::path::Path;

use dbdyno_analyse::{
    CompareChoices, ComparedStep, Comparison, Side, Verdict, compare as compare_sides, numbered,
};
use dbdyno_record::Run;
use dbdyno_report::{
    comparison_json, comparison_junit, comparison_markdown, comparison_terminal, exclusion_text,
};

use crate::args::{CompareArgs, ComparisonFormat, FailOn, Gate};
use crate::commands::report::directory;
use crate::exit::{ExitError, SLOWER};
use crate::terminal;

pub(crate) fn compare(args: &CompareArgs) -> Result<(), ExitError> {
    let (base_dir, base_variant) = run_and_variant(&args.base);
    let (new_dir, new_variant) = run_and_variant(&args.new);
    let base_run = Run::open(&directory(Path::new(base_dir))?)?;
    let other_run = if new_dir.is_empty() { None } else { Some(Run::open(&directory(Path::new(new_dir))?)?) };
    let new_run = other_run.as_ref().unwrap_or(&base_run);
    let comparison = compare_sides(
        side(&base_run, base_variant, &args.base)?,
        side(new_run, new_variant, &args.new)?,
        CompareChoices { margin: args.margin.map(|percent| percent / 100.0), anyway: args.anyway },
    )?;
    let options = terminal::options();
    let text = match args.format {
        ComparisonFormat::Terminal => comparison_terminal(&comparison, &options),
        ComparisonFormat::Md => comparison_markdown(&comparison),
        ComparisonFormat::Json => comparison_json(&comparison),
        ComparisonFormat::Junit => {
            comparison_junit(&comparison, |step| is_failure(step, args.fail_on, &args.gate))
        }
    };
    terminal::deliver("comparison", &text, args.output.as_deref())?;
    status(&comparison, args.fail_on, &args.gate)
}

/// Splits `RUN:VARIANT`, `RUN` or `:VARIANT` into the run directory and the variant. The text of an
/// existing directory is not split, because its name may hold a colon.
fn run_and_variant(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((run, variant)) if !Path::new(text).is_dir() => (run, Some(variant)),
        _ => (text, None),
    }
}

fn side<'a>(run: &'a Run, variant: Option<&'a str>, text: &str) -> Result<Side<'a>, ExitError> {
    let variants = &run.manifest.variants;
    match (variant, variants.as_slice()) {
        (Some(variant), _) => Ok(Side { run, variant }),
        (None, [only]) => Ok(Side { run, variant: &only.name }),
        (None, _) => {
            let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
            let names = names.join(", ");
            Err(ExitError::usage(format!(
                "{text} has several variants: write {text}:VARIANT with one of: {names}"
            )))
        }
    }
}

/// Says why the first excluded block was left out: `block 1 of my57 l.i0: its cell failed: ...`
fn first_left_out(comparison: &Comparison) -> Option<String> {
    let (base, new) = (&comparison.base.variant, &comparison.new.variant);
    let mut all = comparison.steps.iter().flat_map(|step| {
        let base = step.base_left_out.iter().map(move |one| (base, step, one));
        base.chain(step.new_left_out.iter().map(move |one| (new, step, one)))
    });
    let (variant, step, one) = all.next()?;
    Some(format!("block {} of {variant} {}: {}", one.block, step.step, exclusion_text(one)))
}

/// Names the first step in which the new variant failed and the base did not, or failed less often,
/// with the reason. Other such steps are only counted.
fn broken(comparison: &Comparison) -> Option<String> {
    let all = comparison.broken();
    let (step, one) = all.first()?;
    let more = match all.len() - 1 {
        0 => String::new(),
        more => format!(" (and in {} more)", numbered(more, "step")),
    };
    let base = &comparison.base.variant;
    let than_base = match step.base_left_out.iter().any(|other| other.kind.is_fault()) && !comparison.paired {
        true => format!("in more of its blocks than {base}"),
        false => format!("where {base} is valid"),
    };
    Some(format!(
        "{} went wrong {than_base}: {}, block {}: {}{more}",
        comparison.new.variant,
        step.step,
        one.block,
        exclusion_text(one)
    ))
}

fn status(comparison: &Comparison, fail_on: FailOn, gate: &[Gate]) -> Result<(), ExitError> {
    let broken = broken(comparison).filter(|_| fail_on != FailOn::Never);
    if let Some(message) = broken {
        return Err(ExitError::new(SLOWER, message));
    }
    let says_nothing =
        |step: &ComparedStep| step.to_base.ratio.is_none() && step.to_base.verdict != Some(Verdict::Stalled);
    if comparison.steps.iter().all(says_nothing) {
        let why = first_left_out(comparison).map_or_else(String::new, |why| format!("; {why}"));
        return Err(ExitError::usage(format!(
            "nothing was compared: no step is valid on both sides in the same block{why}; see \
                 dbdyno report RUN"
        )));
    }
    if comparison.steps.iter().any(|step| is_failure(step, fail_on, gate)) {
        return Err(ExitError::silent(SLOWER));
    }
    Ok(())
}

fn is_failure(step: &ComparedStep, fail_on: FailOn, gate: &[Gate]) -> bool {
    let by_rate = gate.contains(&Gate::Rate) && fails_by_rate(step, fail_on);
    // Steps without a percentile, such as an index build, cannot fail by p99.
    by_rate
        || gate.contains(&Gate::P99)
            && step.to_base.p99.as_ref().is_some_and(|p99| is_bad(p99.verdict, fail_on))
}

/// Returns whether a step fails by its rate. It is a regression if the new variant missed a
/// background rate or a schedule that the base kept, whatever the concurrent queries gained. It is
/// also one if the new variant answered nothing in some block.
fn fails_by_rate(step: &ComparedStep, fail_on: FailOn) -> bool {
    is_bad(step.to_base.verdict, fail_on) || step.target_missed && fail_on != FailOn::Never
}

fn is_bad(verdict: Option<Verdict>, fail_on: FailOn) -> bool {
    match fail_on {
        FailOn::Slower => matches!(verdict, Some(Verdict::Slower | Verdict::Missed | Verdict::Stalled)),
        FailOn::Undecided => !matches!(verdict, Some(Verdict::Same | Verdict::Faster)),
        FailOn::Never => false,
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{
        ComparedSide, Exclusion, ExclusionKind, PercentileRatio, Ratio, StepComparison, Warning,
    };

    use super::*;
    use crate::exit::USAGE;

    #[test]
    fn a_side_is_given_by_its_run_its_variant_or_both() {
        assert_eq!(run_and_variant("runs/x:wal"), ("runs/x", Some("wal")));
        assert_eq!(run_and_variant("runs/x"), ("runs/x", None));
        assert_eq!(run_and_variant(":wal"), ("", Some("wal")));
    }

    fn step(verdict: Option<Verdict>, target_missed: bool) -> ComparedStep {
        ComparedStep {
            workload: String::new(),
            step: "qr100".to_owned(),
            rate_label: String::new(),
            less_is_better: false,
            margin: 0.02,
            base_rate: None,
            new_rate: None,
            base_p99_us: None,
            new_p99_us: None,
            base_left_out: Vec::new(),
            new_left_out: Vec::new(),
            base_blocks: 3,
            new_blocks: 3,
            to_base: StepComparison {
                ratio: Some(Ratio { value: 1.0, blocks: Vec::new(), bound: None, inference: None }),
                verdict,
                ..StepComparison::default()
            },
            target_missed,
            is_fixed_rate: false,
            schedule_missed: false,
        }
    }

    fn comparison(steps: Vec<ComparedStep>) -> Comparison {
        let side = |variant: &str| ComparedSide {
            run_id: "x".to_owned(),
            variant: variant.to_owned(),
            version_text: String::new(),
        };
        let (base, new, notes) = (side("a"), side("b"), Vec::new());
        Comparison { base, new, paired: true, margin: 0.02, notes, steps, ratios: None, why: Vec::new() }
    }

    fn code(comparison: &Comparison, fail_on: FailOn) -> u8 {
        status(comparison, fail_on, &[Gate::Rate]).map_or_else(|ended| ended.code, |()| 0)
    }

    #[test]
    fn a_background_rate_that_only_base_kept_fails_unless_fail_on_is_never() {
        for verdict in [Some(Verdict::Missed), Some(Verdict::Undecided), None] {
            assert!(fails_by_rate(&step(verdict, true), FailOn::Slower), "{verdict:?}");
            assert!(!fails_by_rate(&step(verdict, true), FailOn::Never), "{verdict:?}");
        }
        assert!(!fails_by_rate(&step(Some(Verdict::Undecided), false), FailOn::Slower));
        assert!(fails_by_rate(&step(Some(Verdict::Undecided), false), FailOn::Undecided));
        assert!(!fails_by_rate(&step(Some(Verdict::Faster), false), FailOn::Undecided));
    }

    #[test]
    fn a_higher_p99_fails_where_p99_is_a_gate() {
        let ratio = Ratio { value: 1.3, blocks: Vec::new(), bound: None, inference: None };
        let with = |verdict| {
            let p99 = Some(PercentileRatio { ratio: ratio.clone(), verdict: Some(verdict) });
            let mut step = step(Some(Verdict::Same), false);
            step.to_base.p99 = p99;
            comparison(vec![step])
        };
        let code = |compared: &Comparison, fail_on, gate: &[Gate]| {
            status(compared, fail_on, gate).map_or_else(|ended| ended.code, |()| 0)
        };
        let both = [Gate::Rate, Gate::P99];
        assert_eq!(code(&with(Verdict::Slower), FailOn::Slower, &[Gate::Rate]), 0);
        assert_eq!(code(&with(Verdict::Slower), FailOn::Slower, &both), SLOWER);
        assert_eq!(code(&with(Verdict::Undecided), FailOn::Slower, &both), 0);
        assert_eq!(code(&with(Verdict::Undecided), FailOn::Undecided, &both), SLOWER);
        assert_eq!(code(&with(Verdict::Slower), FailOn::Never, &both), 0);
    }

    #[test]
    fn stalled_and_missed_fail_as_slower_and_on_schedule_only_as_undecided() {
        let codes = |verdict| {
            let compared = comparison(vec![step(Some(verdict), false)]);
            [FailOn::Slower, FailOn::Undecided, FailOn::Never].map(|fail_on| code(&compared, fail_on))
        };
        assert_eq!(codes(Verdict::Stalled), [SLOWER, SLOWER, 0]);
        assert_eq!(codes(Verdict::Missed), [SLOWER, SLOWER, 0]);
        assert_eq!(codes(Verdict::OnSchedule), [0, SLOWER, 0]);
        assert_eq!(codes(Verdict::Same), [0, 0, 0]);
        let mut without_a_ratio = step(Some(Verdict::Stalled), false);
        without_a_ratio.to_base.ratio = None;
        assert_eq!(code(&comparison(vec![without_a_ratio]), FailOn::Slower), SLOWER);
    }

    #[test]
    fn a_step_in_which_only_new_broke_fails_and_is_named_with_its_reason() {
        let reasons = vec![Warning::quoted("table pi1: rows is 2, expected 3")];
        let left_out = Exclusion { block: 2, kind: ExclusionKind::Invalid, reasons };
        let broken =
            ComparedStep { new_left_out: vec![left_out.clone()], ..step(Some(Verdict::Same), false) };
        let compared = comparison(vec![step(Some(Verdict::Faster), false), broken.clone()]);
        let ended = status(&compared, FailOn::Slower, &[Gate::Rate]).unwrap_err();
        assert_eq!(
            (ended.code, ended.message.unwrap().as_str()),
            (
                SLOWER,
                "b went wrong where a is valid: qr100, block 2: invalid: table pi1: rows is 2, expected 3"
            )
        );
        assert_eq!([FailOn::Undecided, FailOn::Never].map(|fail_on| code(&compared, fail_on)), [SLOWER, 0]);
        let both = ComparedStep { base_left_out: vec![left_out], ..broken.clone() };
        assert_eq!(code(&comparison(vec![both]), FailOn::Slower), 0);
        let two_runs = |new_blocks| {
            let step = ComparedStep {
                base_left_out: vec![Exclusion { block: 1, kind: ExclusionKind::Failed, reasons: Vec::new() }],
                base_rate: Some(100.0),
                new_blocks,
                ..broken.clone()
            };
            Comparison { paired: false, ..comparison(vec![step]) }
        };
        let ended = status(&two_runs(1), FailOn::Slower, &[Gate::Rate]).unwrap_err();
        assert!(
            ended.message.unwrap().starts_with("b went wrong in more of its blocks than a: qr100, block 2")
        );
        assert_eq!(code(&two_runs(3), FailOn::Slower), 0);
        let to_base = StepComparison { verdict: Some(Verdict::Invalid), ..StepComparison::default() };
        let nothing = comparison(vec![ComparedStep { to_base, ..broken }]);
        assert_eq!(code(&nothing, FailOn::Slower), SLOWER);
        let ended = status(&nothing, FailOn::Never, &[Gate::Rate]).unwrap_err();
        assert_eq!(ended.code, USAGE);
        insta::assert_snapshot!(ended.message.unwrap(), @"nothing was compared: no step is valid on both sides in the same block; block 2 of b qr100: invalid: table pi1: rows is 2, expected 3; see dbdyno report RUN");
    }
}
