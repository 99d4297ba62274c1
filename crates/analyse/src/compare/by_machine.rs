//! Finds in a fleet's run whether ratios depend on the machine, and which machine differs from the
//! others.
//!
//! One machine measures both sides of a block's ratio, so the machine's speed cancels out. If the
//! machines' mean log ratios differ by more than their blocks scatter, machine and variant
//! interact.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_record::{Run, RunEvent};

use crate::model::{
    ByMachine, Code, FarthestMachine, LEVEL, MachineRatio, StepFindings, VariantStep, Warning,
    WorkloadFindings,
};
use crate::statistics::describe::mean;
use crate::statistics::false_discovery::benjamini_hochberg;
use crate::statistics::student::p_of_equal_means;

/// The machines of a fleet, each with its blocks.
pub(crate) type Machines = BTreeMap<String, BTreeSet<u32>>;

/// The machines, each with its blocks. A block belongs to the machine that measured it last.
pub(crate) fn machines(run: &Run) -> Machines {
    let mut of_blocks = BTreeMap::new();
    for event in &run.events {
        if let RunEvent::BlockMeasured { block, machine, .. } = event {
            of_blocks.insert(*block, machine);
        }
    }
    let mut machines = Machines::new();
    for (block, machine) in of_blocks {
        machines.entry(machine.clone()).or_default().insert(block);
    }
    machines
}

/// Ratios by machine, with probabilities that are not adjusted yet; `None` where all blocks are
/// from one machine.
pub(crate) fn by_machine(blocks: &[(u32, f64)], machines: &Machines) -> Option<ByMachine> {
    let of_machine = |(name, own): (&String, &BTreeSet<u32>)| {
        let logs: Vec<f64> =
            blocks.iter().filter(|(block, _)| own.contains(block)).map(|(_, ratio)| ratio.ln()).collect();
        let ratio = mean(&logs)?.exp();
        Some((MachineRatio { machine: name.clone(), ratio, blocks: logs.len() }, logs))
    };
    let (machines, logs): (Vec<MachineRatio>, Vec<Vec<f64>>) = machines.iter().filter_map(of_machine).unzip();
    if machines.len() < 2 {
        return None;
    }
    let repeated: Vec<&[f64]> = logs.iter().map(Vec::as_slice).filter(|logs| logs.len() > 1).collect();
    let p_interaction = p_of_equal_means(&repeated);
    let farthest = farthest(&machines, &logs);
    Some(ByMachine { machines, p_interaction, q_interaction: p_interaction, farthest })
}

/// The machine with the largest studentised distance from all others together. Each machine is
/// tested, so the probability is multiplied by the number of machines (Bonferroni).
fn farthest(machines: &[MachineRatio], logs: &[Vec<f64>]) -> Option<FarthestMachine> {
    if machines.len() < 3 {
        return None;
    }
    let against_others = |at: usize| {
        let others = [&logs[..at], &logs[at + 1..]].concat().concat();
        Some((at, p_of_equal_means(&[&logs[at], &others])?, mean(&others)?))
    };
    let all = (0..machines.len()).filter_map(against_others);
    let (at, p, others) = all.min_by(|one, other| one.1.total_cmp(&other.1))?;
    let p = (p * machines.len() as f64).min(1.0);
    let MachineRatio { machine, ratio, .. } = machines[at].clone();
    Some(FarthestMachine { machine, ratio, others: others.exp(), p, q: p })
}

/// Adjusts the probabilities of all comparisons in a run. The interactions are one family, and the
/// farthest machines another.
pub(crate) fn adjust(all: &mut [&mut ByMachine]) {
    let mut interactions: Vec<&mut f64> =
        all.iter_mut().filter_map(|found| found.q_interaction.as_mut()).collect();
    adjust_family(&mut interactions);
    let mut farthest: Vec<&mut f64> =
        all.iter_mut().filter_map(|found| Some(&mut found.farthest.as_mut()?.q)).collect();
    adjust_family(&mut farthest);
}

fn adjust_family(family: &mut [&mut f64]) {
    let p: Vec<f64> = family.iter().map(|p| **p).collect();
    for (own, adjusted) in family.iter_mut().zip(benjamini_hochberg(&p)) {
        **own = adjusted;
    }
}

/// One warning where ratios depend on the machine, and one for each odd machine: its ratio in some
/// step differs from the other machines' ratio. Each warning names the step with the smallest q.
pub(crate) fn warnings(workloads: &[WorkloadFindings]) -> Vec<Warning> {
    let of_step = |step| StepFindings::by_machine(step).map(move |(variant, found)| (step, variant, found));
    let all: Vec<(&StepFindings, &VariantStep, &ByMachine)> =
        workloads.iter().flat_map(WorkloadFindings::judged_steps).flat_map(of_step).collect();
    let place = |step: &StepFindings, variant: &VariantStep| format!("{} {}", variant.variant, step.name);
    let mut differ: Vec<(f64, String)> = all
        .iter()
        .filter_map(|(step, variant, found)| Some((found.q_interaction?, place(step, variant))))
        .filter(|(q, _)| *q <= LEVEL)
        .collect();
    differ.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut odd: BTreeMap<&str, Vec<(&FarthestMachine, String)>> = BTreeMap::new();
    for (step, variant, found) in &all {
        if let Some(farthest) = found.farthest.as_ref().filter(|farthest| farthest.is_odd()) {
            odd.entry(&farthest.machine).or_default().push((farthest, place(step, variant)));
        }
    }
    let more = |all: usize| (all > 1).then_some(all - 1);
    let depends = differ.first().map(|(q, place)| {
        let warning = Warning::new(Code::MachinesDiffer).at(place).with("p", *q);
        warning.with_some("more", more(differ.len()))
    });
    let odd_warning = |(machine, found): (&str, Vec<(&FarthestMachine, String)>)| {
        let (farthest, place) = found.iter().min_by(|one, other| one.0.q.total_cmp(&other.0.q))?;
        let warning = Warning::new(Code::OddMachine).at(place).with("machine", machine).with("p", farthest.q);
        let warning = warning.with("ratio", farthest.ratio).with("others", farthest.others);
        Some(warning.with_some("more", more(found.len())))
    };
    depends.into_iter().chain(odd.into_iter().filter_map(odd_warning)).collect()
}

impl StepFindings {
    /// The variants that were compared on several machines.
    pub fn by_machine(&self) -> impl Iterator<Item = (&VariantStep, &ByMachine)> {
        self.variants.iter().filter_map(|variant| Some((variant, variant.to_base.by_machine.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::Run;

    use super::*;
    use crate::analyse;
    use crate::fixtures::{measured, run_of_pairs, texts};
    use crate::simulations::{close, normal, share};
    use crate::statistics::power::USUAL_POWER;

    /// A fleet of `machines`, each with `blocks` blocks that follow each other.
    fn fleet(machines: u32, blocks: u32) -> Machines {
        let of = |machine: u32| {
            (format!("n{machine}"), BTreeSet::from_iter(machine * blocks..(machine + 1) * blocks))
        };
        (0..machines).map(of).collect()
    }

    /// A run of `a` and `b`. Each block is given as its machine and the rate of `b`. The rate of
    /// `a` is always 100,000.
    fn measured_on(blocks: &[(&str, u64)]) -> Run {
        let pairs: Vec<(u64, u64)> = blocks.iter().map(|(_, rate)| (100_000, *rate)).collect();
        let mut run = run_of_pairs("r", &pairs);
        run.events = (1..).zip(blocks).map(|(block, (machine, _))| measured(block, machine, None)).collect();
        run
    }

    fn found(run: &Run) -> Option<ByMachine> {
        analyse(run).workloads[0].steps[0].variants[1].to_base.by_machine.clone()
    }

    fn said(run: &Run) -> Vec<String> {
        let about = |text: &String| text.starts_with("machines-differ") || text.starts_with("odd-machine");
        texts(&analyse(run)).into_iter().filter(about).collect()
    }

    #[test]
    fn a_block_belongs_to_the_machine_that_measured_it_last() {
        let mut run = measured_on(&[("one", 90_000), ("one", 90_000)]);
        run.events.push(measured(2, "two", None));
        let of = |machine: &str, block| (machine.to_owned(), BTreeSet::from([block]));
        assert_eq!(machines(&run), Machines::from([of("one", 1), of("two", 2)]));
    }

    #[test]
    fn ratios_are_averaged_on_a_log_scale_within_each_machine() {
        let blocks = [("one", 100_000), ("two", 64_000), ("one", 64_000), ("two", 100_000)];
        let found = found(&measured_on(&blocks)).unwrap();
        for (of, name) in found.machines.iter().zip(["one", "two"]) {
            assert_eq!((of.machine.as_str(), of.blocks), (name, 2));
            close(of.ratio, 0.8, 1e-12);
        }
        close(found.p_interaction.unwrap(), 1.0, 1e-9);
        assert_eq!(found.farthest, None, "of two machines none is the odd one");
    }

    #[test]
    fn one_machine_has_no_table_and_machines_with_one_block_have_no_test_of_interaction() {
        assert_eq!(found(&measured_on(&[("one", 90_000), ("one", 80_000)])), None);
        assert_eq!(found(&run_of_pairs("r", &[(100_000, 90_000), (100_000, 80_000)])), None, "no fleet");
        let found = found(&measured_on(&[("one", 90_000), ("two", 80_000), ("three", 85_000)])).unwrap();
        assert_eq!((found.p_interaction, found.q_interaction), (None, None));
        assert!(found.farthest.is_some(), "three machines have a farthest one");
    }

    #[test]
    fn a_machine_with_another_ratio_than_the_others_is_named() {
        let alike = |rate| [("n1", rate), ("n1", rate + 900), ("n2", rate + 400), ("n2", rate + 700)];
        let same = measured_on(&[&alike(90_000)[..], &[("n3", 90_200), ("n3", 90_800)]].concat());
        assert_eq!(said(&same), [""; 0]);
        let other = measured_on(&[&alike(90_000)[..], &[("n3", 120_000), ("n3", 120_900)]].concat());
        let said = said(&other);
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].starts_with("machines-differ [b l.i0] p: "), "{said:?}");
        assert!(said[1].starts_with("odd-machine [b l.i0] machine: n3, others: 0.9"), "{said:?}");
    }

    const STUDIES: u64 = 2_000;
    const STEPS: u64 = 10;

    /// A run of ten steps on a fleet. In the first step, `n0` has ratios that are larger by
    /// `planted` on the log scale.
    fn study(number: u64, fleet: &Machines, planted: f64) -> Vec<ByMachine> {
        let blocks: Vec<u32> = fleet.values().flatten().copied().collect();
        let of_step = |step: u64| {
            let of_block = |block: &u32| {
                let shift = if step == 0 && fleet["n0"].contains(block) { planted } else { 0.0 };
                (*block, (0.05 + shift + 0.02 * normal(STEPS * number + step, u64::from(*block))).exp())
            };
            by_machine(&blocks.iter().map(of_block).collect::<Vec<_>>(), fleet).unwrap()
        };
        let mut all: Vec<ByMachine> = (0..STEPS).map(of_step).collect();
        adjust(&mut all.iter_mut().collect::<Vec<_>>());
        all
    }

    fn depends(found: &ByMachine) -> bool {
        found.q_interaction.is_some_and(|q| q <= LEVEL)
    }

    fn is_odd(found: &ByMachine) -> bool {
        found.farthest.as_ref().is_some_and(FarthestMachine::is_odd)
    }

    #[test]
    fn at_most_5_percent_of_fleets_of_equal_machines_have_a_false_alarm() {
        // The bound adds three standard errors of a binomial share.
        let bound = 0.05 + 3.0 * (0.05_f64 * 0.95 / STUDIES as f64).sqrt();
        for fleet in [fleet(3, 2), fleet(4, 3), fleet(8, 1)] {
            let alarms = |is_alarm: fn(&ByMachine) -> bool| {
                share(STUDIES, |number| study(number, &fleet, 0.0).iter().any(is_alarm))
            };
            let (interaction, odd) = (alarms(depends), alarms(is_odd));
            assert!(interaction <= bound && odd <= bound, "{interaction} {odd} of {fleet:?}");
        }
    }

    #[test]
    fn a_planted_interaction_is_found_and_its_machine_named() {
        for (fleet, tests_interaction) in [(fleet(4, 3), true), (fleet(8, 1), false)] {
            let found = |is_found: &dyn Fn(&ByMachine) -> bool| {
                share(STUDIES, |number| is_found(&study(number, &fleet, 0.2)[0]))
            };
            let named = |found: &ByMachine| {
                is_odd(found) && found.farthest.as_ref().is_some_and(|farthest| farthest.machine == "n0")
            };
            let (interaction, named) = (found(&depends), found(&named));
            assert!(named >= USUAL_POWER, "{named} of {fleet:?}");
            assert_eq!(interaction >= USUAL_POWER, tests_interaction, "{interaction} of {fleet:?}");
        }
    }
}
