//! Warning where the control (the base against itself) shows a difference.

use crate::model::{Code, Notice, StepFindings, Verdict};

/// A warning for a run whose base differs from itself. The run's other differences may be just as
/// false.
pub(crate) fn notice<'a>(
    steps: impl Iterator<Item = &'a StepFindings>,
    again: Option<&str>,
) -> Option<Notice> {
    let again = again?;
    let differs = |step: &&StepFindings| {
        let verdict = step.variant(again).and_then(|found| found.to_base.verdict);
        matches!(verdict, Some(Verdict::Faster | Verdict::Slower | Verdict::Missed | Verdict::Stalled))
    };
    let places: Vec<String> = steps.filter(differs).map(|step| step.name.clone()).collect();
    (!places.is_empty()).then(|| Notice::new(Code::ControlDiffers).at_all(places).with("again", again))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::fixtures::{cell, load_step, run, set_again, texts};
    use crate::model::{Code, Verdict};
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
        set_again(&mut run);
        run
    }

    #[test]
    fn a_base_that_differs_from_itself_is_warned_of_and_is_no_part_of_the_family_of_the_others() {
        let findings = with_again([105_000, 94_600, 115_400, 105_100]);
        let step = &findings.workloads[0].steps[0];
        assert_eq!(step.variants[1].to_base.verdict, Some(Verdict::Faster));
        let inference = step.variants[2].to_base.ratio.as_ref().unwrap().inference.as_ref().unwrap();
        assert_eq!(inference.q_difference, inference.p_difference, "the only comparison of its family");
        let warning = &texts(&findings).into_iter().find(|text| text.starts_with("control-differs")).unwrap();
        assert_snapshot!(warning, @"control-differs [l.i0] again: a~again");
    }

    #[test]
    fn against_another_base_nothing_ran_twice() {
        let run = run_again([105_000, 94_600, 115_400, 105_100]);
        for base in ["b", "a~again"] {
            let choices = Choices { base: Some(base.to_owned()) };
            let findings = analyse_with(&run, &choices).unwrap();
            assert!(!findings.warnings.iter().any(|notice| notice.code == Code::ControlDiffers), "{base}");
            assert_eq!(findings.run.again, None);
        }
    }
}
