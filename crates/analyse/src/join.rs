//! Joins several runs into one, with their variants next to each other and their blocks one after
//! the other.

use dbdyno_record::{Run, VariantInfo};

use crate::compare::comparability::differences;
use crate::model::Difference;

/// A function that words how two runs differ, given their ids and the differences.
pub type UnlikeWords = fn(&str, &str, &[Difference]) -> String;

/// The first run with the cells of the others. Blocks of different runs are not paired: a variant
/// has a ratio to the base only where both are in the same run. The joined run's warnings say where
/// the runs differ, as `words` puts it. If a variant has the name of another server or
/// configuration, its run's number is appended to its name.
pub fn join(first: Run, others: Vec<Run>, words: UnlikeWords) -> Run {
    let mut all = first;
    for (number, other) in (2_u32..).zip(others) {
        add(&mut all, other, number, words);
    }
    all
}

fn add(all: &mut Run, mut other: Run, number: u32, words: UnlikeWords) {
    let known = |name: &str, all: &Run| all.manifest.variants.iter().find(|one| one.name == name).cloned();
    let names: Vec<String> = other.manifest.variants.iter().map(|variant| variant.name.clone()).collect();
    let pairs: Vec<(&str, &str)> = names
        .iter()
        .filter(|name| known(name, all).is_some())
        .map(|name| (name.as_str(), name.as_str()))
        .collect();
    let differ = differences(all, &other, &pairs);
    if !differ.is_empty() {
        let warning = words(&all.manifest.run_id, &other.manifest.run_id, &differ);
        all.warnings.push(warning);
    }
    for variant in std::mem::take(&mut other.manifest.variants) {
        let is_same = |one: &VariantInfo| (&one.server, &one.config) == (&variant.server, &variant.config);
        match known(&variant.name, all) {
            Some(one) if is_same(&one) => {}
            Some(_) => {
                let name = format!("{} ({number})", variant.name);
                let cells = other.cells.iter_mut().chain(&mut other.profiled_cells);
                let cells = cells.map(|cell| &mut cell.id).chain(&mut other.manifest.order);
                cells.filter(|id| id.variant == variant.name).for_each(|id| id.variant.clone_from(&name));
                all.manifest.variants.push(VariantInfo { name, ..variant });
            }
            None => all.manifest.variants.push(variant),
        }
    }
    for workload in other.manifest.workloads {
        if all.manifest.workloads.iter().all(|one| one.name != workload.name) {
            all.manifest.workloads.push(workload);
        }
    }
    let before = all.manifest.order.iter().map(|cell| cell.block).max().unwrap_or(0);
    let cells = other.cells.iter_mut().chain(&mut other.profiled_cells);
    let cells = cells.map(|cell| &mut cell.id).chain(&mut other.manifest.order);
    cells.for_each(|id| id.block += before);
    all.manifest.plan.blocks += other.manifest.plan.blocks;
    all.manifest.order.append(&mut other.manifest.order);
    all.cells.append(&mut other.cells);
    all.profiled_cells.append(&mut other.profiled_cells);
    all.warnings.append(&mut other.warnings);
    all.is_going_on |= other.is_going_on;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, run};

    fn words(_: &str, _: &str, differ: &[Difference]) -> String {
        differ.iter().map(|one| format!("{:?}", one.aspect)).collect()
    }

    fn of(names: &[&str], rate: u64) -> Run {
        let cells = names.iter().map(|name| cell(1, name, vec![load_step(rate)]));
        run(names, 1, cells.collect())
    }

    #[test]
    fn blocks_follow_each_other_and_what_is_new_is_added() {
        let mut other = of(&["a", "c"], 3_000);
        other.manifest.plan.seed += 1;
        let joined = join(of(&["a", "b"], 1_000), vec![other], words);
        let cells: Vec<String> =
            joined.cells.iter().map(|cell| format!("{} {}", cell.id.block, cell.id.variant)).collect();
        assert_eq!(cells, ["1 a", "1 b", "2 a", "2 c"]);
        assert_eq!(joined.warnings, ["Seed"]);
        let findings = analyse(&joined);
        let ratios: Vec<_> = findings.workloads[0].steps[0]
            .variants
            .iter()
            .map(|one| (one.variant.as_str(), one.to_base.ratio.as_ref().map(|ratio| ratio.blocks.len())))
            .collect();
        assert_eq!(ratios, [("a", Some(2)), ("b", Some(1)), ("c", Some(1))]);
    }

    #[test]
    fn another_server_under_the_same_name_is_another_variant() {
        let mut other = of(&["a"], 3_000);
        other.manifest.variants[0].config = "x = 1".to_owned();
        let joined = join(of(&["a"], 1_000), vec![other], words);
        let names: Vec<&str> = joined.manifest.variants.iter().map(|one| one.name.as_str()).collect();
        assert_eq!((names, joined.cells[1].id.variant.as_str()), (vec!["a", "a (2)"], "a (2)"));
    }
}
