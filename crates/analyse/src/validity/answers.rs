//! Check that queries get the same answers as for the base. If they do not, it is not known which
//! is wrong, and the two times must not be compared as if they were for the same query.

use crate::model::{Code, Execution, StepRun, Warning};

/// What is wrong with a run's answers, compared with those of the base's runs; one reason per
/// query.
///
/// Streams that run at the same time as refresh functions see rows come and go, so that they have
/// no common answer.
pub(crate) fn faults(run: &StepRun, base: &[StepRun], base_name: &str) -> Vec<Warning> {
    let has_streams = run.executions.iter().any(|execution| execution.client > 1);
    let known = |name: &str| {
        let all = base.iter().flat_map(|run| &run.executions);
        all.filter(|execution| execution.name == name).find_map(|execution| execution.answer.as_ref())
    };
    let fault = |execution: &Execution| {
        let (answer, known) = (execution.answer.as_ref()?, known(&execution.name)?);
        (!answer.agrees(known)).then(|| {
            Warning::reason(Code::AnswerDiffers)
                .with("query", execution.name.as_str())
                .with("begins", answer.sample.first().cloned().unwrap_or_default())
                .with("base", base_name)
                .with("base_begins", known.sample.first().cloned().unwrap_or_default())
        })
    };
    if has_streams {
        return Vec::new();
    }
    let mut faults: Vec<Warning> = run.executions.iter().filter_map(fault).collect();
    faults.dedup();
    faults
}

#[cfg(test)]
mod tests {
    use dbdyno_record::AnswerDigest;

    use super::*;
    use crate::fixtures::{shown_all, step_run};

    fn run(sum: f64, clients: u32) -> StepRun {
        let sample = vec![vec![Some("FRANCE".to_owned()), Some(sum.to_string())]];
        let answer = AnswerDigest { exact: "5".to_owned(), sums: vec![sum], tolerance: 0.01, sample };
        let execution = |client| Execution {
            name: "q5".to_owned(),
            client,
            repetition: 1,
            seconds: 1.0,
            cut_off: false,
            rows: 1,
            answer: Some(answer.clone()),
        };
        StepRun { executions: (1..=clients).map(execution).collect(), ..step_run(1, 1.0) }
    }

    #[test]
    fn another_answer_is_reported_with_both_and_one_that_is_rounded_otherwise_is_the_same() {
        let base = [run(1_000.0, 1)];
        assert!(faults(&run(1_000.000_9, 1), &base, "a").is_empty());
        let found = faults(&run(900.0, 1), &base, "a");
        insta::assert_snapshot!(shown_all(&found), @r#"answer-differs base: a, base_begins: ["FRANCE","1000"], begins: ["FRANCE","900"], query: q5"#);
        assert!(faults(&run(900.0, 3), &base, "a").is_empty());
    }
}
