//! Ratios summed up over groups of steps, as published tables of microbenchmarks do.

use crate::compare::comparisons::Rules;
use crate::model::{CONFIDENCE, GroupFindings, Ratio, StepFindings, Verdict, ZeroRates};
use crate::statistics::Interval;
use crate::statistics::describe::{self, mean};
use crate::statistics::student::Estimate;

/// One table's worth: a grouping, and the number of connections where there are several.
type Setup = (String, Option<u32>);

/// All groups, in the order of published tables or of their steps, by grouping, number of
/// connections, variant and group. Nothing for the base; the base under a second name has a table
/// of its own.
pub(crate) fn groups(steps: &[StepFindings], rules: Rules<'_>) -> Vec<GroupFindings> {
    let mut found = Vec::new();
    for (grouping, connections) in setups(steps) {
        let members: Vec<&StepFindings> = steps
            .iter()
            .filter(|step| step.groups.contains_key(&grouping))
            .filter(|step| connections.is_none() || rung(step).is_none_or(|rung| Some(rung) == connections))
            .collect();
        let mut names = unique(members.iter().filter_map(|step| step.groups.get(&grouping).cloned()));
        in_published_order(&mut names, |name| name);
        let variants = members.first().map_or(&[][..], |step| step.variants.as_slice());
        let compared = variants.iter().map(|variant| variant.variant.as_str());
        for variant in compared.filter(|name| *name != rules.base && Some(*name) != rules.again) {
            for group in &names {
                let of_group = members.iter().filter(|step| step.groups.get(&grouping) == Some(group));
                let place = (grouping.as_str(), connections, group.as_str());
                found.push(group_findings(place, variant, of_group.copied()));
            }
        }
    }
    found
}

/// The number of connections, where the step's test ran with several (`point-query.c16`).
fn rung(step: &StepFindings) -> Option<u32> {
    step.test_of_sweep().map(|_| step.connections)
}

/// Groupings by name. Steps that always run with the same number of connections belong to every
/// setup.
fn setups(steps: &[StepFindings]) -> Vec<Setup> {
    let mut groupings: Vec<String> = unique(steps.iter().flat_map(|step| step.groups.keys().cloned()));
    groupings.sort();
    let rungs = unique(steps.iter().filter_map(rung));
    let of_grouping = |grouping: String| -> Vec<Setup> {
        match rungs.as_slice() {
            [] => vec![(grouping, None)],
            rungs => rungs.iter().map(|rung| (grouping.clone(), Some(*rung))).collect(),
        }
    };
    groupings.into_iter().flat_map(of_grouping).collect()
}

fn group_findings<'a>(
    (grouping, connections, group): (&str, Option<u32>, &str),
    variant: &str,
    members: impl Iterator<Item = &'a StepFindings>,
) -> GroupFindings {
    let mut ratios: Vec<(&StepFindings, &Ratio)> = Vec::new();
    let mut without = Vec::new();
    for step in members {
        let found =
            step.variant(variant).filter(|found| is_counted(step, variant, &found.zero_rates, found.verdict));
        match found.and_then(|found| found.ratio.as_ref()) {
            Some(ratio) => ratios.push((step, ratio)),
            None => without.push(step.name.clone()),
        }
    }
    let values: Vec<f64> = ratios.iter().map(|(_, ratio)| ratio.value).collect();
    GroupFindings {
        grouping: grouping.to_owned(),
        group: group.to_owned(),
        connections,
        variant: variant.to_owned(),
        less_is_better: ratios.iter().any(|(step, _)| step.less_is_better),
        bounds: ratios.iter().filter_map(|(step, ratio)| Some((step.name.clone(), ratio.bound?))).collect(),
        figures: describe::group(&values),
        interval: interval(&ratios.iter().map(|(_, ratio)| *ratio).collect::<Vec<_>>()),
        steps: ratios.iter().map(|(step, ratio)| (step.name.clone(), ratio.value)).collect(),
        without,
    }
}

/// A ratio that leaves out rates of zero would make the mean better than the variant, and one of
/// rates that the plan gives is none.
pub(crate) fn is_counted(
    step: &StepFindings,
    variant: &str,
    zero_rates: &ZeroRates,
    verdict: Option<Verdict>,
) -> bool {
    let has_pace = step.variant(variant).is_some_and(|found| step.pace(found).is_some());
    let is_fixed_rate = has_pace && matches!(verdict, Some(Verdict::Paced | Verdict::Missed));
    zero_rates.is_empty() && !is_fixed_rate
}

/// Each block has one geometric mean over the steps, and these are the observations: steps of a
/// block are not independent repetitions of anything.
fn interval(ratios: &[&Ratio]) -> Option<Interval> {
    let blocks: Vec<u32> = ratios.first()?.blocks.iter().map(|(block, _)| *block).collect();
    let same = |ratio: &&Ratio| ratio.blocks.iter().map(|(block, _)| *block).eq(blocks.iter().copied());
    if !ratios.iter().all(same) || ratios.iter().any(|ratio| ratio.bound.is_some()) {
        return None;
    }
    let of_block = |at: usize| mean(&ratios.iter().map(|ratio| ratio.blocks[at].1.ln()).collect::<Vec<_>>());
    let logs: Vec<f64> = (0..blocks.len()).filter_map(of_block).collect();
    Estimate::of_mean(&logs).map(|estimate| estimate.interval(CONFIDENCE).exp())
}

/// Groups that have parts, in the order of published tables: point, range, writes. Others stay as
/// their steps ran.
pub fn in_published_order<T>(items: &mut [T], group: impl Fn(&T) -> &str) {
    if items.iter().any(|item| group(item).contains("part ")) {
        items.sort_by(|one, other| group(one).cmp(group(other)));
    }
}

/// Each of `items` once, in their order.
pub fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{Run, StepRecord};

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, run};
    use crate::simulations::{chance, close, normal, share};

    /// A step of the load's kind under another name, in a group.
    fn member(name: &str, group: &str, rate: u64) -> StepRecord {
        let mut step = load_step(rate);
        step.name = name.to_owned();
        step.spec.name = name.to_owned();
        step.spec.groups = [("2024".to_owned(), group.to_owned())].into();
        step
    }

    /// The published "point, part 2" of one comparison: its figures are printed as 0.75, 0.72,
    /// 0.69, 0.84 and 0.07.
    const PUBLISHED: [u64; 6] = [6_900, 6_900, 7_200, 7_200, 8_400, 8_400];

    fn published(blocks: &[u64]) -> Run {
        let names = ["a", "b", "c", "d", "e", "f"];
        let of = |rates: [u64; 6], percent: u64| {
            let steps = names.iter().zip(rates);
            steps.map(|(name, rate)| member(name, "point, part 2", rate * percent)).collect::<Vec<_>>()
        };
        let cells = blocks.iter().zip(1..).flat_map(|(percent, block)| {
            [cell(block, "old", of([10_000; 6], 100)), cell(block, "new", of(PUBLISHED, *percent))]
        });
        run(&["old", "new"], u32::try_from(blocks.len()).unwrap(), cells.collect())
    }

    #[test]
    fn a_published_group_has_its_published_figures() {
        let found = analyse(&published(&[100])).workloads[0].groups.clone();
        assert_eq!(found.len(), 1, "the base has none");
        let figures = found[0].figures.unwrap();
        let shown = [figures.average, figures.median, figures.min, figures.max, figures.deviation.unwrap()];
        assert_eq!(shown.map(|figure| format!("{figure:.2}")), ["0.75", "0.72", "0.69", "0.84", "0.07"]);
        close(figures.geometric_mean.unwrap(), (0.69_f64 * 0.72 * 0.84).cbrt(), 1e-12);
        assert_eq!((found[0].interval, found[0].variant.as_str()), (None, "new"));
    }

    #[test]
    fn the_interval_is_that_of_the_blocks_geometric_means() {
        // All six ratios are 1 % lower, as they are, 1 % higher: three observations whose logs are
        // known.
        let found = analyse(&published(&[99, 100, 101])).workloads[0].groups.clone();
        let centre = (0.69_f64 * 0.72 * 0.84).cbrt();
        let logs: Vec<f64> = [0.99, 1.0, 1.01].iter().map(|factor: &f64| (factor * centre).ln()).collect();
        let expected = Estimate::of_mean(&logs).unwrap().interval(0.95).exp();
        let interval = found[0].interval.unwrap();
        close(interval.low, expected.low, 1e-9);
        close(interval.high, expected.high, 1e-9);
    }

    #[test]
    fn the_interval_holds_the_truth_though_steps_share_their_blocks_and_scatter_unequally() {
        // Six steps whose true ratios differ; a block moves all of them together, and each by
        // itself, one far more than others.
        const STUDIES: u64 = 4_000;
        let truth = |step: u64| 0.02 * step as f64;
        let of_step = |study: u64, step: u64, blocks: u64| {
            let log = |block: u64| {
                let own = 0.01 * (1 + step * step) as f64 * normal(study, 100 * step + block + 100);
                truth(step) + 0.03 * normal(study, block) + own
            };
            let blocks = (0..blocks).map(|block| (block as u32, log(block).exp())).collect();
            Ratio { value: 1.0, blocks, bound: None, inference: None }
        };
        let centre = ((0..6).map(truth).sum::<f64>() / 6.0).exp();
        for blocks in [3, 5, 10] {
            let covered = share(STUDIES, |study| {
                let ratios: Vec<Ratio> = (0..6).map(|step| of_step(study, step, blocks)).collect();
                interval(&ratios.iter().collect::<Vec<_>>()).unwrap().contains(centre)
            });
            close(covered, 0.95, chance(0.95, STUDIES));
        }
    }

    #[test]
    fn steps_without_a_ratio_are_named_and_not_counted() {
        let mut broken = member("b", "reads", 10);
        broken.events.push(dbdyno_record::StepEvent::Invalid { reason: "x".to_owned() });
        let cells = vec![
            cell(1, "old", vec![member("a", "reads", 100), member("b", "reads", 100)]),
            cell(1, "new", vec![member("a", "reads", 200), broken]),
        ];
        let found = analyse(&run(&["old", "new"], 1, cells)).workloads[0].groups.clone();
        assert_eq!(found[0].steps, [("a".to_owned(), 2.0)]);
        assert_eq!(found[0].without, ["b"]);
        assert_eq!((found[0].lowest(), found[0].figures.unwrap().deviation), (Some("a"), None));
    }

    #[test]
    fn each_number_of_connections_is_a_setup_and_steps_with_a_fixed_number_are_in_all() {
        let rung = |name: &str, connections: u32, rate| {
            let mut step = member(name, "reads", rate);
            step.spec.clients = connections;
            step
        };
        let of = |rate| vec![rung("a.c1", 1, rate), rung("a.c16", 16, rate * 2), rung("scan", 4, rate * 3)];
        let found = analyse(&run(&["old", "new"], 1, vec![cell(1, "old", of(10)), cell(1, "new", of(20))]));
        let seen: Vec<String> = found.workloads[0]
            .groups
            .iter()
            .map(|group| {
                let names: Vec<&str> = group.steps.iter().map(|(name, _)| name.as_str()).collect();
                format!("{:?}: {}", group.connections, names.join(" "))
            })
            .collect();
        assert_eq!(seen, ["Some(1): a.c1 scan", "Some(16): a.c16 scan"]);
    }

    #[test]
    fn groups_with_parts_are_in_the_order_of_published_tables_and_of_one_year() {
        let of = |rate| {
            let mut steps = vec![member("w", "writes", rate), member("p", "point, part 1", rate)];
            steps
                .iter_mut()
                .for_each(|step| _ = step.spec.groups.insert("2021".to_owned(), "all".to_owned()));
            steps
        };
        let mut run = run(&["old", "new"], 1, vec![cell(1, "old", of(10)), cell(1, "new", of(20))]);
        let names = |run: &Run| -> Vec<String> {
            analyse(run).workloads[0].groups.iter().map(|group| group.group.clone()).collect()
        };
        assert_eq!(names(&run), ["all", "point, part 1", "writes"]);
        run.manifest.plan.report.year = Some(2024);
        assert_eq!(names(&run), ["point, part 1", "writes"]);
        run.manifest.plan.report.year = Some(1999);
        assert_eq!(names(&run).len(), 3, "no grouping of that year");
    }

    #[test]
    fn steps_of_no_group_make_no_table() {
        let cells = vec![cell(1, "a", vec![load_step(100)]), cell(1, "b", vec![load_step(100)])];
        assert!(analyse(&run(&["a", "b"], 1, cells)).workloads[0].groups.is_empty());
    }
}
