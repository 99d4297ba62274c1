//! Warning where the control (the base against itself) shows a difference.

use crate::model::{Code, StepFindings, Verdict, Warning};

/// A warning for a run whose base differs from itself. The run's other differences may be just as
/// false.
pub(crate) fn warning<'a>(
    steps: impl Iterator<Item = &'a StepFindings>,
    control: Option<&str>,
) -> Option<Warning> {
    let control = control?;
    let differs = |step: &&StepFindings| {
        let verdict = step.variant(control).and_then(|found| found.to_base.verdict);
        matches!(verdict, Some(Verdict::Faster | Verdict::Slower | Verdict::Missed | Verdict::Stalled))
    };
    let places: Vec<String> = steps.filter(differs).map(|step| step.name.clone()).collect();
    (!places.is_empty()).then(|| Warning::new(Code::ControlDiffers).at_all(places).with("control", control))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::fixtures::{add_control, cell, load_step, run, texts};
    use crate::model::{Code, Verdict};
    use crate::{Choices, analyse, analyse_with};

    fn with_control(control: [u64; 4]) -> crate::model::Findings {
        analyse(&run_with_control(control))
    }

    fn run_with_control(control: [u64; 4]) -> dbdyno_record::Run {
        let base = [100_000, 90_000, 110_000, 100_000];
        let cells = base.iter().zip(control).zip(1..).flat_map(|((base, control), block)| {
            [
                cell(block, "a", vec![load_step(*base)]),
                cell(block, "a~control", vec![load_step(control)]),
                cell(block, "b", vec![load_step(base * 108 / 100)]),
            ]
        });
        let mut run = run(&["a", "a~control", "b"], 4, cells.collect());
        add_control(&mut run);
        run
    }

    #[test]
    fn a_base_that_differs_from_itself_is_warned_of_and_is_no_part_of_the_family_of_the_others() {
        let findings = with_control([105_000, 94_600, 115_400, 105_100]);
        let step = &findings.workloads[0].steps[0];
        assert_eq!(step.variants[1].to_base.verdict, Some(Verdict::Faster));
        let inference = step.variants[2].to_base.ratio.as_ref().unwrap().inference.as_ref().unwrap();
        assert_eq!(inference.q_difference, inference.p_difference, "the only comparison of its family");
        let warning = &texts(&findings).into_iter().find(|text| text.starts_with("control-differs")).unwrap();
        assert_snapshot!(warning, @"control-differs [l.i0] control: a~control");
    }

    #[test]
    fn against_another_base_nothing_ran_twice() {
        let run = run_with_control([105_000, 94_600, 115_400, 105_100]);
        for base in ["b", "a~control"] {
            let choices = Choices { base: Some(base.to_owned()) };
            let findings = analyse_with(&run, &choices).unwrap();
            assert!(!findings.warnings.iter().any(|warning| warning.code == Code::ControlDiffers), "{base}");
            assert_eq!(findings.run.control, None);
        }
    }
}
