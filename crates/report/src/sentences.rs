//! The summary in sentences: one per variant, with the number of steps in which it is faster,
//! slower or the same.

use dbdyno_analyse::{Ratio, StepFindings, VariantStep, Verdict, numbered};

use crate::document::Tone;
use crate::medians::opposite;
use crate::number::{duration_whole_us, fixed};
use crate::views::details::explanations;
use crate::views::{Scope, bounded_text, ratio_tone};
use crate::words::{blocks_text, reached_rate_text, zero_rate_text};

/// Sentences for the variants other than the base. Variants with the same result share a sentence.
pub(crate) fn sentences(scope: Scope<'_>) -> Vec<String> {
    let has_verdicts = has_verdicts(scope);
    let mut said: Vec<(Vec<&str>, String)> = Vec::new();
    for name in scope.compared() {
        let against = Against { scope, name };
        let text = if has_verdicts { against.verdicts() } else { against.differences() };
        match said.iter_mut().find(|(_, same)| *same == text) {
            Some((names, _)) => names.push(name),
            None => said.push((vec![name], text)),
        }
    }
    said.into_iter().map(|(names, text)| format!("{} {text}", names.join(", "))).collect()
}

/// Sentences on what the largest differences are made of, and on medians that disagree with a
/// ratio.
pub(crate) fn reasons(scope: Scope<'_>) -> Vec<String> {
    if !has_verdicts(scope) {
        return Vec::new();
    }
    explanations(scope.workload).into_iter().chain(opposite(scope.run, scope.workload)).collect()
}

/// Whether any step can have a verdict. Steps whose rate the plan sets have no interval, however
/// many blocks there are.
fn has_verdicts(scope: Scope<'_>) -> bool {
    let mut variants = scope.steps().flat_map(|step| &step.variants);
    variants.any(|variant| variant.to_base.inference().is_some())
        || scope.workload.most_ratio_blocks(&scope.run.base) > 1
}

/// The verdict of a step, if the step says anything about the variant.
pub(crate) fn shown_verdict(variant: &VariantStep) -> Option<Verdict> {
    let says_something = variant.to_base.ratio.is_some()
        || !variant.to_base.zero_rates.is_empty()
        || variant.to_base.undecided.is_some();
    variant.to_base.verdict.filter(|_| says_something)
}

/// One variant against the base.
#[derive(Clone, Copy)]
struct Against<'a> {
    scope: Scope<'a>,
    name: &'a str,
}

type StepOfVariant<'a> = (&'a StepFindings, &'a VariantStep);

impl<'a> Against<'a> {
    fn steps(self) -> impl Iterator<Item = StepOfVariant<'a>> {
        self.scope.steps().filter_map(move |step| Some((step, step.variant(self.name)?)))
    }

    fn with(self, verdict: Verdict) -> impl Iterator<Item = StepOfVariant<'a>> {
        self.steps().filter(move |(_, variant)| shown_verdict(variant) == Some(verdict))
    }

    fn sentence(self, parts: &[String]) -> String {
        format!("against {}: {}.", self.scope.run.base, parts.join("; "))
    }

    /// The steps with each verdict, by name where something differs. Verdicts that no step has are
    /// left out.
    fn verdicts(self) -> String {
        let base = &self.scope.run.base;
        let mut parts: Vec<String> = self.stalled().into_iter().collect();
        parts.extend(extreme("slower", self.with(Verdict::Slower)));
        parts.extend(extreme("faster", self.with(Verdict::Faster)));
        parts.extend(counted("same", self.with(Verdict::Same).count()));
        parts.extend(counted("undecided", self.with(Verdict::Undecided).count()));
        let missed: Vec<String> = self
            .with(Verdict::Missed)
            .filter(|(step, _)| !step.misses_schedule_of(base, self.name))
            .map(ratio_of)
            .collect();
        if !missed.is_empty() {
            parts.push(format!(
                "target missed in {} ({}: not slower, but {base} kept a background rate that it missed)",
                numbered(missed.len(), "step"),
                missed.join(", ")
            ));
        }
        parts.extend(self.paced());
        // A load whose data are restored afterwards has one block, whatever the plan's number.
        let is_single =
            |variant: &VariantStep| variant.to_base.ratio.is_some() && variant.to_base.verdict.is_none();
        parts.extend(counted("one block only", self.steps().filter(|(_, found)| is_single(found)).count()));
        parts.extend(counted("no ratio", self.without_ratio()));
        self.sentence(&parts) + &self.base_stalled() + &self.other_misses()
    }

    /// For one block: in how many steps the ratios are far from 1. Which of them is farthest may be
    /// chance, so that a ratio is named only where it is the only one.
    fn differences(self) -> String {
        let near_or_far = |tone: Tone| -> Vec<(f64, &StepFindings)> {
            let steps = self.steps().filter(|(_, variant)| {
                !matches!(shown_verdict(variant), Some(Verdict::Stalled | Verdict::Paced))
            });
            let ratios = steps.filter_map(|(step, variant)| Some((variant.to_base.value()?, step)));
            ratios.filter(|(ratio, step)| ratio_tone(*ratio, step.less_is_better) == tone).collect()
        };
        let [above, below, near] = [Tone::Above, Tone::Below, Tone::Plain].map(near_or_far);
        let only = |of: &[(f64, &StepFindings)]| match of {
            [(ratio, step)] => {
                let time = if step.less_is_better { "time " } else { "" };
                format!(" ({time}{} in {})", fixed(Some(*ratio), 2), step.name)
            }
            _ => String::new(),
        };
        let (rate, better, worse) = match self.scope.steps().any(|step| step.less_is_better) {
            true => ("", "more than 5 % faster", "more than 5 % slower"),
            false => ("rate ", "more than 5 % higher", "more than 5 % lower"),
        };
        let is_missed = |step: &StepFindings| step.misses_target_of(&self.scope.run.base, self.name);
        let fewer_writes = match above.iter().filter(|(_, step)| is_missed(step)).count() {
            0 => String::new(),
            all if all == above.len() => ", with fewer background writes than planned".to_owned(),
            some => format!(", in {some} of them with fewer background writes than planned"),
        };
        let mut parts: Vec<String> = self.stalled().into_iter().collect();
        let better = counted(better, above.len()).map(|text| text + &only(&above) + &fewer_writes);
        let worse = counted(worse, below.len()).map(|text| text + &only(&below));
        let differing = better.into_iter().chain(worse).collect::<Vec<_>>().join("; ");
        parts.extend((!differing.is_empty()).then(|| format!("{rate}{differing}")));
        parts.extend(counted("within 5 %", near.len()));
        parts.extend(self.paced());
        parts.extend(counted("no ratio", self.without_ratio()));
        self.sentence(&parts) + &self.base_stalled()
    }

    /// Words such as `stalled in 1 step (qr100: answered nothing in block 2 of 5, in which wal
    /// answered)`.
    fn stalled(self) -> Option<String> {
        let text = |(step, variant): StepOfVariant<'_>| {
            let text = zero_rate_text(&variant.to_base.zero_rates, &self.scope.run.base);
            format!("{}: {}", step.name, text.unwrap_or_default())
        };
        let steps: Vec<String> = self.with(Verdict::Stalled).map(text).collect();
        (!steps.is_empty())
            .then(|| format!("stalled in {} ({})", numbered(steps.len(), "step"), steps.join("; ")))
    }

    /// The sentence on blocks in which the base stalled; empty where it always answered.
    fn base_stalled(self) -> String {
        let stalled = self.steps().filter(|(_, variant)| !variant.to_base.zero_rates.base_stalled.is_empty());
        let text = |(step, variant): StepOfVariant<'_>| {
            format!("{} of {}", blocks_text(&variant.to_base.zero_rates.base_stalled), step.name)
        };
        let steps: Vec<String> = stalled.map(text).collect();
        if steps.is_empty() {
            return String::new();
        }
        let base = &self.scope.run.base;
        format!(" {base} answered nothing in {}: no verdict of faster or same there.", steps.join(", "))
    }

    /// Steps whose rate the plan sets: those that missed it, and those that kept it.
    fn paced(self) -> Vec<String> {
        let base = &self.scope.run.base;
        let missed: Vec<String> = self
            .with(Verdict::Missed)
            .filter(|(step, _)| step.misses_schedule_of(base, self.name))
            .filter_map(|(step, variant)| {
                Some(format!("{}: {}", step.name, reached_rate_text(step.reached_rate(variant)?)))
            })
            .collect();
        let missed_text = (!missed.is_empty()).then(|| {
            let steps = numbered(missed.len(), "step");
            format!("schedule missed, which {base} kept, in {steps} ({})", missed.join("; "))
        });
        let paced: Vec<String> = self.with(Verdict::Paced).map(|found| self.times(found)).collect();
        let paced_text = (!paced.is_empty()).then(|| {
            let steps = numbered(paced.len(), "step");
            format!("paced in {steps} (the plan fixes the rate; p99 response time: {})", paced.join(", "))
        });
        missed_text.into_iter().chain(paced_text).collect()
    }

    /// Words such as `qr100 1.52 ms against 1.40 ms`, with medians over the blocks.
    fn times(self, (step, variant): StepOfVariant<'_>) -> String {
        let text =
            |variant: &VariantStep| Some(duration_whole_us(step.response_p99_us(variant)?.round() as u64));
        match (text(variant), step.variant(&self.scope.run.base).and_then(text)) {
            (Some(own), Some(base)) => format!("{} {own} against {base}", step.name),
            _ => step.name.clone(),
        }
    }

    /// Steps with another verdict in which only this variant missed the background rate.
    fn other_misses(self) -> String {
        let base = &self.scope.run.base;
        let steps: Vec<&str> = self
            .steps()
            .filter(|(step, _)| step.misses_target_of(base, self.name))
            .filter(|(_, variant)| shown_verdict(variant) != Some(Verdict::Missed))
            .map(|(step, _)| step.name.as_str())
            .collect();
        match steps.is_empty() {
            true => String::new(),
            false => {
                format!(" It missed the background target in {}, which {base} kept.", steps.join(", "))
            }
        }
    }

    /// Number of steps that say nothing at all.
    fn without_ratio(self) -> usize {
        let says_nothing =
            |variant: &VariantStep| variant.to_base.ratio.is_none() && shown_verdict(variant).is_none();
        self.steps().filter(|(_, variant)| says_nothing(variant)).count()
    }
}

/// Words such as `qr100 1.30`.
fn ratio_of((step, variant): StepOfVariant<'_>) -> String {
    let ratio = variant.to_base.ratio.as_ref().map_or("n/a".to_owned(), bounded_text);
    format!("{} {ratio}", step.name)
}

/// Words such as `slower in 5 steps (down to 0.78 in qp100)`, with the ratio that is farthest from
/// 1; `None` without a step.
fn extreme<'a>(word: &str, steps: impl Iterator<Item = StepOfVariant<'a>>) -> Option<String> {
    let steps: Vec<(&Ratio, &str)> =
        steps.filter_map(|(step, found)| Some((found.to_base.ratio.as_ref()?, step.name.as_str()))).collect();
    let distance = |ratio: &Ratio| ratio.value.ln().abs();
    let (ratio, name) = steps.iter().max_by(|a, b| distance(a.0).total_cmp(&distance(b.0)))?;
    let to = match (steps.len(), ratio.value < 1.0) {
        (1, _) => "",
        (_, true) => "down to ",
        (_, false) => "up to ",
    };
    Some(format!("{word} in {} ({to}{} in {name})", numbered(steps.len(), "step"), bounded_text(ratio)))
}

/// Words such as `same in 3 steps`; `None` without a step.
fn counted(word: &str, steps: usize) -> Option<String> {
    (steps > 0).then(|| format!("{word} in {}", numbered(steps, "step")))
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Findings, ZeroRates};

    use super::*;
    use crate::fixture;

    fn first(findings: &Findings) -> String {
        sentences(Scope::of(findings, &findings.workloads[0])).remove(0)
    }

    #[test]
    fn the_answer_of_one_block_counts_steps_and_names_no_extremes() {
        insta::assert_snapshot!(first(&fixture::findings()), @r#"<b>&" against rollback: rate more than 5 % higher in 3 steps; more than 5 % lower in 1 step (0.80 in qr1000); within 5 % in 4 steps; no ratio in 2 steps."#);
    }

    #[test]
    fn with_several_blocks_the_answer_is_made_of_verdicts() {
        insta::assert_snapshot!(first(&fixture::with_blocks(3)), @r#"<b>&" against rollback: slower in 1 step (0.80 in qr1000); faster in 3 steps (up to 9.87 in l.i2); same in 1 step; undecided in 3 steps; no ratio in 2 steps. It missed the background target in qr1000, which rollback kept."#);
    }

    #[test]
    fn variants_of_which_the_same_is_to_be_said_share_a_sentence() {
        let mut findings = fixture::findings();
        let alone = first(&findings);
        let mut twin = findings.variants[1].clone();
        twin.name = "twin".to_owned();
        findings.variants.push(twin);
        for step in &mut findings.workloads[0].steps {
            let of_twin = step
                .variants
                .last()
                .cloned()
                .map(|of| dbdyno_analyse::VariantStep { variant: "twin".to_owned(), ..of });
            step.variants.extend(of_twin);
        }
        let said = sentences(Scope::of(&findings, &findings.workloads[0]));
        assert_eq!(said, [alone.replace(" against", ", twin against")]);
    }

    /// The second variant wrote half of what the base wrote in these steps.
    fn missed(mut findings: Findings, steps: &[usize]) -> String {
        for step in steps {
            let variant = &mut findings.workloads[0].steps[*step].variants[1];
            variant.judged_background_rate = variant.judged_background_rate.map(|rate| rate / 2.0);
            if variant.to_base.verdict == Some(Verdict::Faster) {
                variant.to_base.verdict = Some(Verdict::Missed);
            }
        }
        first(&findings)
    }

    #[test]
    fn steps_with_fewer_writes_than_the_base_kept_up_are_named() {
        insta::assert_snapshot!(missed(fixture::findings(), &[5]), @r#"<b>&" against rollback: rate more than 5 % higher in 3 steps, in 1 of them with fewer background writes than planned; more than 5 % lower in 1 step (0.80 in qr1000); within 5 % in 4 steps; no ratio in 2 steps."#);
        insta::assert_snapshot!(missed(fixture::with_blocks(3), &[5, 6]), @r#"<b>&" against rollback: slower in 1 step (0.80 in qr1000); faster in 2 steps (up to 9.87 in l.i2); same in 1 step; undecided in 3 steps; target missed in 1 step (qp100 1.30: not slower, but rollback kept a background rate that it missed); no ratio in 2 steps. It missed the background target in qr500, qr1000, which rollback kept."#);
    }

    #[test]
    fn steps_of_one_block_among_steps_of_several_are_counted() {
        let mut findings = fixture::with_blocks(3);
        let variant = &mut findings.workloads[0].steps[0].variants[1];
        variant.to_base.verdict = None;
        variant.to_base.ratio.as_mut().unwrap().inference = None;
        let text = first(&findings);
        assert!(text.contains("; one block only in 1 step; no ratio in 2 steps."), "{text}");
    }

    /// The second variant answered nothing in block 2 in this step.
    fn stalled(mut findings: Findings, step: usize) -> String {
        let variant = &mut findings.workloads[0].steps[step].variants[1];
        variant.to_base.zero_rates = ZeroRates { stalled: vec![2], base_stalled: Vec::new(), blocks: 4 };
        variant.to_base.verdict = Some(Verdict::Stalled);
        first(&findings)
    }

    #[test]
    fn rate_zero_is_the_first_thing_that_is_said() {
        insta::assert_snapshot!(stalled(fixture::findings(), 5), @r#"<b>&" against rollback: stalled in 1 step (qp100: answered nothing in block 2 of 4, in which rollback answered); rate more than 5 % higher in 2 steps; more than 5 % lower in 1 step (0.80 in qr1000); within 5 % in 4 steps; no ratio in 2 steps."#);
        insta::assert_snapshot!(stalled(fixture::with_blocks(3), 5), @r#"<b>&" against rollback: stalled in 1 step (qp100: answered nothing in block 2 of 4, in which rollback answered); slower in 1 step (0.80 in qr1000); faster in 2 steps (up to 9.87 in l.i2); same in 1 step; undecided in 3 steps; no ratio in 2 steps. It missed the background target in qr1000, which rollback kept."#);
    }

    #[test]
    fn a_base_that_stood_still_is_said_as_well() {
        let mut findings = fixture::with_blocks(3);
        for step in [4, 5] {
            let zero_rates = ZeroRates { stalled: Vec::new(), base_stalled: vec![1, 3], blocks: 4 };
            findings.workloads[0].steps[step].variants[1].to_base.zero_rates = zero_rates;
        }
        let text = first(&findings);
        let expected = ". rollback answered nothing in blocks 1 and 3 of qr100, blocks 1 and 3 of \
                        qp100: no verdict of faster or same there.";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn steps_whose_rate_is_the_plans_are_counted_apart_with_their_response_times() {
        let mut findings = fixture::with_blocks(3);
        findings.workloads[0].steps[5].variants[1].to_base.verdict = Some(Verdict::Paced);
        insta::assert_snapshot!(first(&findings), @r#"<b>&" against rollback: slower in 1 step (0.80 in qr1000); faster in 2 steps (up to 9.87 in l.i2); same in 1 step; undecided in 3 steps; paced in 1 step (the plan fixes the rate; p99 response time: qp100 1.52 ms against 1.52 ms); no ratio in 2 steps. It missed the background target in qr1000, which rollback kept."#);
    }
}
