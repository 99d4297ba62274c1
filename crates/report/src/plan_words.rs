//! Text that a plan has for its report, as blocks: prose, set-ups side by side, sections, and
//! published figures next to the measured ones.
//!
//! Where the plan leaves text out, it is drafted from the findings and marked as drafted. A draft
//! says in which groups of steps each variant was decided to be faster or slower, by how much, and
//! what the difference is made of.

use std::collections::BTreeMap;

use dbdyno_analyse::{
    Cause, Findings, OperationClass, PublishedComparison, Ratio, RunSummary, SectionFindings, StepFindings,
    VariantStep, Verdict, WorkloadFindings,
};

use crate::charts::Charts;
use crate::document::{Block, Tone};
use crate::number::{fixed, interval_text};
use crate::views::details::of_operation;
use crate::views::{self, Scope, bounded_text};
use crate::words::listed;

/// Returns the conclusion with which a page begins: the plan's own, or one that is drafted from the
/// decided comparisons. It is `None` where nothing was compared.
pub(crate) fn conclusion(findings: &Findings) -> Option<Block> {
    match &findings.prose.summary {
        Some(text) => Some(Block::Prose(text.clone())),
        None => drafted(&findings.run.base, findings.run.control.as_deref(), &findings.workloads),
    }
}

/// Returns machine, sponsor, links and deviations, for a plan that has any of them.
pub(crate) fn prose(findings: &Findings) -> Vec<Block> {
    let prose = &findings.prose;
    let mut blocks: Vec<Block> = Vec::new();
    blocks.extend(prose.machine.iter().map(|text| Block::Prose(format!("**Machine.** {text}"))));
    let mut facts: Vec<(String, String)> = Vec::new();
    let follows = [prose.author.clone(), prose.year.map(|year| year.to_string())];
    let follows = follows.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let rows = [
        ("follows", Some(follows).filter(|text| !text.is_empty())),
        ("sponsor", prose.sponsor.clone()),
        ("size", prose.size.clone()),
    ];
    facts.extend(rows.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?))));
    if !facts.is_empty() {
        blocks.push(Block::Facts(facts));
    }
    blocks.extend(list("Links", &prose.links));
    blocks.extend(list("Differences from the original report", &prose.deviations));
    if !blocks.is_empty() {
        blocks.insert(0, Block::section("Method", "method"));
    }
    blocks
}

/// Returns items in Markdown under a small heading, and nothing without items.
fn list(title: &str, items: &[String]) -> Vec<Block> {
    if items.is_empty() {
        return Vec::new();
    }
    let items: Vec<String> = items.iter().map(|item| format!("* {}", item.replace('\n', " "))).collect();
    vec![Block::heading(3, title), Block::Prose(items.join("\n"))]
}

/// Returns the plan's note on a step or a section.
pub(crate) fn note(findings: &Findings, name: &str) -> Option<Block> {
    findings.prose.notes.get(name).map(|text| Block::Prose(text.clone()))
}

/// Returns the workloads that ran in several set-ups, with one table per variant.
pub(crate) fn set_ups(run: &RunSummary, workloads: &[WorkloadFindings], id: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (number, (workload, tables)) in views::side_by_side(run, workloads).into_iter().enumerate() {
        let title = format!("Set-ups of {workload} side by side");
        blocks.push(match id {
            "" => Block::heading(3, title),
            id => Block::section(title, format!("{id}{number}")),
        });
        blocks.extend(tables.into_iter().map(Block::Table));
    }
    blocks
}

/// Returns the plan's sections, each with its own base and, on a page, its own charts.
pub(crate) fn sections(findings: &Findings, charts: Option<&Charts<'_>>) -> Vec<Block> {
    let of = |(number, section): (usize, &SectionFindings)| {
        let mut blocks = vec![Block::section(&section.title, format!("section{number}"))];
        match section.text.as_str() {
            "" => blocks.extend(drafted(&section.base, findings.run.control.as_deref(), &section.workloads)),
            text => blocks.push(Block::Prose(text.to_owned())),
        }
        blocks.extend(note(findings, &section.title));
        let run = views::run_of_section(&findings.run, section);
        for (at, workload) in section.workloads.iter().enumerate() {
            if section.workloads.len() > 1 {
                blocks.push(Block::heading(3, &workload.name));
            }
            let id = format!("section{number}w{at}");
            let scope = Scope { run: &run, workload, ..Scope::of(findings, workload) };
            blocks.extend(charts.into_iter().flat_map(|charts| charts.of_workload(scope, &id)));
            blocks.extend(views::rates(scope));
        }
        blocks.extend(set_ups(&run, &section.workloads, ""));
        blocks
    };
    findings.sections.iter().enumerate().flat_map(of).collect()
}

/// Returns published figures next to the measured ones.
pub(crate) fn published(findings: &Findings) -> Vec<Block> {
    let Some(published) = &findings.published else { return Vec::new() };
    let PublishedComparison { title, author, year, sponsor, machine, .. } = published;
    let mut blocks = vec![Block::section("Published and measured", "published")];
    let sponsor = sponsor.as_ref().map_or_else(String::new, |sponsor| format!(", sponsored by {sponsor}"));
    blocks.push(Block::text(format!("{title} ({author}, {year}{sponsor}). Measured there on: {machine}.")));
    blocks.push(Block::Text(
        Tone::Muted,
        "Another machine, other sizes and often other builds: this compares findings, not machines."
            .to_owned(),
    ));
    let [of_findings, of_figures] = views::published(findings);
    blocks.extend(of_findings.map(Block::Table));
    blocks.extend(views::published_counts(findings).map(Block::text));
    blocks.extend(
        of_figures.map(|table| Block::Fold("Figure by figure".to_owned(), vec![Block::Table(table)])),
    );
    blocks
}

/// Marks text that no person wrote.
const DRAFTED: &str = "Drafted from the verdicts";

/// Number of groups that are described. Further ones are only counted.
const DESCRIBED: usize = 4;

/// Number of steps that are named one by one.
const NAMED: usize = 3;

/// Smallest mean difference that is described, as a fraction. Smaller ones are only counted.
const LARGE: f64 = 0.05;

/// Smallest share of the difference that a cause must explain to be called *the* cause.
const MOST_OF_IT: f64 = 0.5;

/// Returns one item per variant that was compared, or `None` where no difference was decided.
fn drafted(base: &str, control: Option<&str>, workloads: &[WorkloadFindings]) -> Option<Block> {
    let variants = workloads.iter().flat_map(WorkloadFindings::judged_steps).flat_map(|step| &step.variants);
    let mut verdicts = variants.filter_map(|variant| variant.to_base.verdict);
    if !verdicts.any(|verdict| matches!(verdict, Verdict::Faster | Verdict::Slower)) {
        return None;
    }
    let mut items: Vec<String> = Vec::new();
    for workload in workloads {
        let of = if workloads.len() > 1 { format!("{}: ", workload.name) } else { String::new() };
        let names = workload.steps.first().into_iter().flat_map(|step| &step.variants);
        let names = names.map(|variant| variant.variant.as_str());
        for name in names.filter(|name| *name != base && Some(*name) != control) {
            items.extend(sentence(base, name, workload).map(|text| format!("* {of}{text}")));
        }
    }
    (!items.is_empty()).then(|| Block::Prose(format!("*{DRAFTED}.*\n\n{}", items.join("\n"))))
}

type Compared<'a> = (&'a StepFindings, &'a VariantStep, &'a Ratio);

/// The steps in one group that have the same verdict.
struct DecidedGroup<'a> {
    group: String,
    steps: Vec<Compared<'a>>,
    /// Number of steps in the group that have a ratio.
    all: usize,
}

/// Returns the sentences for one variant, such as `In qp500, b is 33 % slower than a (ratio 0.67,
/// 95 % CI 0.58–0.77). 3 steps are the same.`
fn sentence(base: &str, name: &str, workload: &WorkloadFindings) -> Option<String> {
    let compared: Vec<Compared<'_>> = workload
        .judged_steps()
        .filter_map(|step| {
            let variant = step.variant(name)?;
            Some((step, variant, variant.to_base.ratio.as_ref()?))
        })
        .collect();
    if compared.is_empty() {
        return None;
    }
    if compared.iter().all(|(_, variant, _)| variant.to_base.verdict.is_none()) {
        return None;
    }
    let mut parts = parts(&compared);
    parts.sort_by(|one, other| other.weight().total_cmp(&one.weight()));
    let (large, small): (Vec<DecidedGroup<'_>>, Vec<DecidedGroup<'_>>) =
        parts.into_iter().partition(|part| part.mean().exp_m1().abs() >= LARGE);
    let (described, others) = large.split_at(large.len().min(DESCRIBED));
    let mut texts: Vec<String> = described.iter().map(|part| part.text(base, name)).collect();
    let steps = |parts: &[DecidedGroup<'_>]| parts.iter().map(|part| part.steps.len()).sum::<usize>();
    let of_verdict = |wanted: Verdict| {
        compared.iter().filter(|(_, variant, _)| variant.to_base.verdict == Some(wanted)).count()
    };
    let counts = [
        (steps(others), "differ too"),
        (steps(&small), "differ by less than 5 %"),
        (of_verdict(Verdict::Same), "are the same"),
        (of_verdict(Verdict::Undecided), "are undecided"),
    ];
    let counted = |(count, text): (usize, &str)| match count {
        0 => None,
        1 => Some(format!("1 step {}", text.replacen("are", "is", 1).replacen("differ", "differs", 1))),
        count => Some(format!("{count} steps {text}")),
    };
    let counted: Vec<String> = counts.into_iter().filter_map(counted).collect();
    let counted: Vec<&str> = counted.iter().map(String::as_str).collect();
    // A sentence on a difference names the variant.
    let of = if texts.is_empty() { format!("{name}: ") } else { String::new() };
    texts.extend((!counted.is_empty()).then(|| format!("{of}{}.", listed(&counted))));
    (!texts.is_empty()).then(|| texts.join(" "))
}

fn parts<'a>(compared: &[Compared<'a>]) -> Vec<DecidedGroup<'a>> {
    let mut by_group: BTreeMap<(String, &str), DecidedGroup<'a>> = BTreeMap::new();
    for of_step in compared {
        let Some(verdict @ (Verdict::Faster | Verdict::Slower)) = of_step.1.to_base.verdict else { continue };
        let group = group_of(of_step.0);
        let all = compared.iter().filter(|(step, ..)| group_of(step) == group).count();
        let part = by_group.entry((group.clone(), verdict.word()));
        part.or_insert(DecidedGroup { group, steps: Vec::new(), all }).steps.push(*of_step);
    }
    by_group.into_values().collect()
}

/// Returns the step's group in published tables. A step without one is grouped by the class of its
/// operations.
fn group_of(step: &StepFindings) -> String {
    let class = match step.headline_class {
        OperationClass::Query => "steps that query",
        OperationClass::Scan => "steps that scan",
        OperationClass::Insert => "steps that insert",
        OperationClass::Delete => "steps that delete",
        OperationClass::Index => "steps that build indexes",
        OperationClass::Other => "steps",
    };
    step.groups.values().next().cloned().unwrap_or_else(|| class.to_owned())
}

impl DecidedGroup<'_> {
    /// Returns the mean log ratio. A bound counts as the smallest difference that it allows.
    fn mean(&self) -> f64 {
        self.steps.iter().map(|(.., ratio)| ratio.value.ln()).sum::<f64>() / self.steps.len() as f64
    }

    fn weight(&self) -> f64 {
        self.mean().abs() * self.steps.len() as f64
    }

    fn text(&self, base: &str, name: &str) -> String {
        let names: Vec<&str> = self.steps.iter().map(|(step, ..)| step.name.as_str()).collect();
        let cause = self.cause().map_or_else(String::new, |cause| format!(" {cause}"));
        let difference = self.difference(base);
        match self.steps.as_slice() {
            [(step, _, ratio)] => {
                let interval = ratio
                    .interval()
                    .map_or_else(String::new, |interval| format!(", 95 % CI {}", interval_text(interval)));
                let ratio = bounded_text(ratio);
                format!("In {}, {name} is {difference} (ratio {ratio}{interval}).{cause}", step.name)
            }
            steps => {
                let steps_text = match names.len() <= NAMED {
                    true => listed(&names),
                    false => format!("{} of {} {}", names.len(), self.all, self.group),
                };
                let mut ends: Vec<&Ratio> = steps.iter().map(|(.., ratio)| *ratio).collect();
                ends.sort_by(|one, other| one.value.total_cmp(&other.value));
                let range = match ends.as_slice() {
                    [lowest, .., highest] => format!("{} to {}", bounded_text(lowest), bounded_text(highest)),
                    _ => String::new(),
                };
                format!("In {steps_text}, {name} is {difference} on average (ratios {range}).{cause}")
            }
        }
    }

    /// Returns words such as `33 % slower than a`, or from a factor of 2 on `2.5 times as fast as a`.
    fn difference(&self, base: &str) -> String {
        let are_times = self.steps.iter().all(|(step, ..)| step.less_is_better);
        let speed = if are_times { (-self.mean()).exp() } else { self.mean().exp() };
        match speed {
            2.0.. => format!("{} times as fast as {base}", fixed(Some(speed), 1)),
            1.0..2.0 => format!("{} % faster than {base}", fixed(Some(100.0 * (speed - 1.0)), 0)),
            0.5..1.0 => format!("{} % slower than {base}", fixed(Some(100.0 * (1.0 - speed)), 0)),
            _ => format!("{} times as fast as {base}", fixed(Some(speed), 2)),
        }
    }

    /// Returns a sentence on the cause according to the steps' cost breakdowns, such as `Most of it
    /// is user CPU per operation (×0.74 on the rate).` It is `None` where a step has no
    /// breakdown, and where no cause is most of the difference.
    fn cause(&self) -> Option<String> {
        const CAUSES: [Cause; 4] = [Cause::CpuUser, Cause::CpuKernel, Cause::IoWait, Cause::Idle];
        let of_step = |cause: Cause, variant: &VariantStep| {
            let mut parts = variant.to_base.cost_breakdown.as_ref()?.parts.iter();
            Some(parts.find(|part| part.cause == cause)?.factor.ln())
        };
        let mean_of = |cause: Cause| -> Option<(Cause, f64)> {
            let logs = self.steps.iter().map(|(_, variant, _)| of_step(cause, variant));
            let logs = logs.collect::<Option<Vec<f64>>>()?;
            Some((cause, logs.iter().sum::<f64>() / logs.len() as f64))
        };
        let all = CAUSES.into_iter().map(mean_of).collect::<Option<Vec<_>>>()?;
        let (cause, log) = all.into_iter().max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))?;
        (log / self.mean() >= MOST_OF_IT).then(|| {
            let factor = fixed(Some(log.exp()), 2);
            format!("Most of it is {} (×{factor} on the rate).", of_operation(cause))
        })
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{CostBreakdown, CostPart, Findings};

    use super::*;
    use crate::fixture;

    fn said(findings: &Findings) -> String {
        match drafted(&findings.run.base, None, &findings.workloads) {
            Some(Block::Prose(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn decided_steps_are_summed_up_in_groups_and_others_are_counted() {
        insta::assert_snapshot!(said(&fixture::with_blocks(3)), @r#"
        *Drafted from the verdicts.*

        * In l.i1, l.i2 and qp100, <b>&" is 3.2 times as fast as rollback on average (ratios 1.30 to 9.87). Most of it is user CPU per operation (×3.24 on the rate). In qr1000, <b>&" is 20 % slower than rollback (ratio 0.80, 95 % CI 0.784–0.816). Most of it is user CPU per operation (×0.82 on the rate). 1 step is the same and 3 steps are undecided.
        "#);
    }

    #[test]
    fn one_block_decides_nothing() {
        let findings = fixture::findings();
        assert!(drafted(&findings.run.base, None, &findings.workloads).is_none());
    }

    #[test]
    fn nothing_is_drafted_where_no_difference_was_decided() {
        let mut findings = fixture::with_blocks(3);
        for variant in findings.workloads[0].steps.iter_mut().flat_map(|step| &mut step.variants) {
            variant.to_base.verdict = variant.to_base.verdict.map(|_| Verdict::Undecided);
        }
        assert!(drafted(&findings.run.base, None, &findings.workloads).is_none());
    }

    #[test]
    fn the_cause_is_that_of_the_cost_breakdown_whatever_the_whole_host_used() {
        let mut findings = fixture::with_blocks(3);
        let steps = findings.workloads[0].steps.iter_mut();
        for variant in steps.filter_map(|step| step.variants.last_mut()) {
            let Some(ratio) = &variant.to_base.ratio else { continue };
            let part = |cause, share: f64| CostPart {
                cause,
                base: 10.0,
                variant: 20.0,
                factor: ratio.value.powf(share),
            };
            let shares =
                [(Cause::CpuUser, 0.8), (Cause::CpuKernel, 0.1), (Cause::IoWait, 0.1), (Cause::Idle, 0.0)];
            let parts = shares.map(|(cause, share)| part(cause, share)).to_vec();
            variant.to_base.cost_breakdown = Some(CostBreakdown { cpus: 2, parts });
            if let Some(relative) = &mut variant.to_base.relative {
                // The variant used the CPU of the whole host.
                relative.0.insert("cpu_o", 31.9);
            }
        }
        let text = said(&findings);
        assert!(text.contains("Most of it is user CPU per operation (×") && !text.contains("31.9"), "{text}");
    }
}
