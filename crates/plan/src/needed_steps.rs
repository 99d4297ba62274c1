//! Selects the steps that a block must run when it measures only some of them.

use dbdyno_model::DataMode;

use crate::StepOutline;

/// Says for each of `steps` whether it must run, so that the `wanted` steps find what they find in
/// a whole block. Besides them, the load must run, what changes the data before them, and what
/// fills caches for them. Where data are put back before a step, nothing before that counts.
pub fn needed_steps(
    steps: &[StepOutline],
    data: DataMode,
    wanted: impl Fn(&StepOutline) -> bool,
) -> Vec<bool> {
    let mut needed = vec![false; steps.len()];
    let (mut leads_on, mut is_any) = (false, false);
    for (index, step) in steps.iter().enumerate().rev() {
        let is_before = leads_on && (step.changes_data || step.is_warm_up) || is_any && step.loads;
        needed[index] = is_before || wanted(step);
        is_any |= needed[index];
        leads_on |= needed[index];
        if data.puts_back_each_step() && step.begins_group {
            leads_on = false;
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::StepEstimate;

    /// Makes steps from their names. `+` after a name means that it changes data, `~` that it fills
    /// caches, and `=` that it goes on with the group of the step before it.
    fn steps(names: &str) -> Vec<StepOutline> {
        let step = |(index, name): (usize, &str)| StepOutline {
            loads: index < 2,
            begins_group: !name.contains('='),
            is_warm_up: name.contains('~'),
            changes_data: name.contains('+') || index < 2,
            ..StepOutline::new(StepEstimate::new(name.trim_end_matches(['+', '~', '=']), "", Duration::ZERO))
        };
        names.split(' ').enumerate().map(step).collect()
    }

    fn needed(data: DataMode, wanted: &str) -> String {
        let steps = steps(
            "load index warm~ points.pre= list.pre update+ read-write+ points list warm-si~ points-si= delete+",
        );
        let wanted: Vec<&str> = wanted.split(' ').collect();
        let needed = needed_steps(&steps, data, |step| wanted.contains(&step.name.as_str()));
        let names =
            steps.iter().zip(needed).filter(|(_, needed)| *needed).map(|(step, _)| step.name.as_str());
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_step_that_reads_needs_what_changes_data_before_it_and_no_other_reader() {
        let of = |wanted| needed(DataMode::Preserve, wanted);
        insta::assert_snapshot!(of("list.pre"), @"load index warm list.pre");
        insta::assert_snapshot!(of("list"), @"load index warm update read-write list");
        insta::assert_snapshot!(of("points.pre delete"), @"load index warm points.pre update read-write warm-si delete");
        insta::assert_snapshot!(of("index"), @"load index");
        insta::assert_snapshot!(of("none"), @"");
    }

    #[test]
    fn where_data_are_put_back_nothing_before_that_is_needed_but_the_load() {
        for data in [DataMode::RestoreEachStep, DataMode::Reset] {
            assert_eq!(needed(data, "list"), "load index list");
            assert_eq!(needed(data, "points.pre points-si"), "load index warm points.pre warm-si points-si");
        }
    }
}
