//! The ratios of several steps in a few figures, such as average and median, as published tables
//! have them for groups of steps.

use crate::compare::ratio::interval_of_steps;
use crate::model::{Bound, Ratio, StepComparison, StepFindings};
use crate::statistics::Interval;
use crate::statistics::describe::{self, Group as Figures};

/// A step with its ratio.
type OfStep<'a> = (&'a StepFindings, Ratio);

/// The ratios of one variant in the steps of one group.
#[derive(Debug)]
pub struct GroupRatios<'a> {
    /// Steps with a ratio, in the order of the steps.
    pub counted: Vec<OfStep<'a>>,
    /// Names of the steps that are not counted. They have no ratio, or none over all blocks because
    /// one of the two answered nothing in some, or the plan sets their rate.
    pub without: Vec<&'a str>,
}

impl<'a> GroupRatios<'a> {
    /// Collects the ratios from a group's steps. Each step comes with the variant's comparison
    /// there, which is `None` where the variant did not run.
    pub fn of(
        variant: &str,
        members: impl IntoIterator<Item = (&'a StepFindings, Option<&'a StepComparison>)>,
    ) -> Self {
        let mut found = Self { counted: Vec::new(), without: Vec::new() };
        for (step, against) in members {
            let counted = against.filter(|against| step.is_counted(variant, against));
            match counted.and_then(|against| against.ratio.clone()) {
                Some(ratio) => found.counted.push((step, ratio)),
                None => found.without.push(&step.name),
            }
        }
        found
    }

    /// The ratios without bounds, each as a ratio of rates. A ratio of times is inverted, so that
    /// above 1 is faster in every step.
    pub(crate) fn into_speeds(self) -> Self {
        let speed = |(step, ratio): OfStep<'a>| match step.less_is_better {
            true => (step, turned(ratio)),
            false => (step, ratio),
        };
        let exact = self.counted.into_iter().filter(|(_, ratio)| ratio.bound.is_none());
        Self { counted: exact.map(speed).collect(), ..self }
    }

    fn ratios(&self) -> impl Iterator<Item = &Ratio> {
        self.counted.iter().map(|(_, ratio)| ratio)
    }

    /// Average, median and the others; `None` where no step has a ratio.
    pub fn figures(&self) -> Option<Figures> {
        describe::group(&self.ratios().map(|ratio| ratio.value).collect::<Vec<_>>())
    }

    /// The figures of each block in which all steps have a ratio.
    pub(crate) fn figures_in_blocks(&self) -> Vec<Figures> {
        let in_block = |block: u32| -> Option<Figures> {
            let own = |ratio: &Ratio| Some(ratio.blocks.iter().find(|(other, _)| *other == block)?.1);
            describe::group(&self.ratios().map(own).collect::<Option<Vec<f64>>>()?)
        };
        let blocks = self.ratios().next().into_iter().flat_map(|ratio| &ratio.blocks);
        blocks.filter_map(|(block, _)| in_block(*block)).collect()
    }

    /// The 95 % interval of the geometric mean; `None` for one block, for bounds, and where not all
    /// steps have the same blocks.
    pub fn interval(&self) -> Option<Interval> {
        interval_of_steps(&self.ratios().collect::<Vec<_>>())
    }

    /// The bound that the means over all steps are, where any of the ratios is a bound.
    pub fn bound(&self) -> Option<Bound> {
        Bound::of_all(self.ratios().filter_map(|ratio| ratio.bound))
    }

    /// The steps with the lowest and the highest ratio.
    pub fn ends(&self) -> Option<[&OfStep<'a>; 2]> {
        let all = || self.counted.iter();
        let least = all().min_by(|one, other| one.1.value.total_cmp(&other.1.value))?;
        Some([least, all().max_by(|one, other| one.1.value.total_cmp(&other.1.value))?])
    }
}

/// The inverse ratio, of base to variant.
fn turned(ratio: Ratio) -> Ratio {
    let blocks = ratio.blocks.into_iter().map(|(block, ratio)| (block, 1.0 / ratio));
    Ratio { value: 1.0 / ratio.value, blocks: blocks.collect(), bound: None, inference: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::fixtures::run_of_pairs;

    /// Steps in which the rates or times of `b` are these multiples of those of `a`, block by
    /// block.
    fn steps(all: &[(bool, &[u64])]) -> Vec<StepFindings> {
        let of = |(is_time, times): &(bool, &[u64])| {
            let pairs: Vec<(u64, u64)> = times.iter().map(|times| (1_000, 1_000 * times)).collect();
            let mut step = analyse(&run_of_pairs("r", &pairs)).workloads[0].steps[0].clone();
            step.less_is_better = *is_time;
            step
        };
        all.iter().map(of).collect()
    }

    fn ratios(steps: &[StepFindings]) -> GroupRatios<'_> {
        GroupRatios::of("b", steps.iter().map(|step| (step, Some(&step.variants[1].to_base))))
    }

    #[test]
    fn speeds_are_ratios_of_times_turned_round_and_leave_out_bounds() {
        let mut steps = steps(&[(false, &[2]), (true, &[4]), (true, &[8])]);
        steps[2].variants[1].to_base.ratio.as_mut().unwrap().bound = Some(Bound::MoreThan);
        let figures = ratios(&steps).figures().unwrap();
        assert_eq!((figures.count, figures.min, figures.max), (3, 2.0, 8.0));
        assert_eq!(ratios(&steps).bound(), Some(Bound::MoreThan));
        let figures = ratios(&steps).into_speeds().figures().unwrap();
        assert_eq!((figures.count, figures.min, figures.max), (2, 0.25, 2.0));
    }

    #[test]
    fn a_block_has_figures_where_all_steps_have_it_and_the_mean_an_interval_where_none_lacks_one() {
        let mut steps = steps(&[(false, &[1, 2, 3]), (false, &[3, 4, 5])]);
        let averages = |steps: &[StepFindings]| -> Vec<f64> {
            ratios(steps).figures_in_blocks().iter().map(|figures| figures.average).collect()
        };
        assert_eq!(averages(&steps), [2.0, 3.0, 4.0]);
        assert!(ratios(&steps).interval().is_some());
        steps[1].variants[1].to_base.ratio.as_mut().unwrap().blocks.remove(1);
        assert_eq!(averages(&steps), [2.0, 4.0]);
        assert_eq!(ratios(&steps).interval(), None);
    }
}
