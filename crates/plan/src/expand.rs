//! Expands a plan into cells, and selects the steps that a block must run when it measures only
//! some of them.

use dbdyno_model::DataMode;

use crate::{Plan, StepOutline};

/// One execution of one workload against one variant. Blocks count from 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    pub block: u32,
    pub variant: String,
    pub workload: String,
}

/// Returns all cells of a plan, block after block. Each block runs every variant with every
/// workload once, in random order.
///
/// A block's order depends on the plan's seed, the block's number and the number of cells in it,
/// and on nothing else. Adding blocks therefore does not change the earlier ones, and the order is
/// the same on every machine and in every version.
pub fn cells(plan: &Plan) -> Vec<Cell> {
    (1..=plan.blocks).flat_map(|block| further_cells(plan, block, |_| true)).collect()
}

/// Returns the cells of one block in random order, reduced to those that are `wanted`. The block's
/// number may be higher than the plan's `blocks`.
pub fn further_cells(plan: &Plan, block: u32, wanted: impl Fn(&Cell) -> bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    for variant in &plan.variants {
        for workload in plan.workload.names() {
            cells.push(Cell { block, variant: variant.name.clone(), workload: workload.to_owned() });
        }
    }
    cells.retain(wanted);
    shuffle(&mut cells, &mut SplitMix64::for_block(plan.seed, block));
    cells
}

/// Shuffles by the method of Fisher and Yates in Durstenfeld's form. From the last index down, each
/// item swaps with a random item at the same or a lower index.
fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last + 1));
    }
}

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA
/// 2014), with the constants of Vigna's public-domain `splitmix64.c`. It is written out here so
/// that no new version of a crate can change the order of a plan that was run before.
struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts a stream for one block. The seed goes through the mixing function before the block is
    /// added, so that block 2 of seed 1 has nothing to do with block 1 of seed 2.
    fn for_block(seed: u64, block: u32) -> Self {
        let mixed_seed = Self(seed).next();
        Self(Self(mixed_seed.wrapping_add(u64::from(block))).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `bound` - 1, as the high half of a 128-bit product. Its bias is
    /// below bound / 2^64.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

/// Says for each of `steps` whether it must run, so that the `wanted` steps begin in the same state
/// as in a whole block. Besides the wanted steps, the load must run, and so must steps that change
/// the data or fill caches before them. Where data are restored before a step, nothing before that
/// counts except the load.
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
        if data.restores_each_step() && step.begins_group {
            leads_on = false;
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use dbdyno_model::Variant;

    use super::*;
    use crate::fake::Fake;
    use crate::{StepEstimate, Workloads};

    fn plan(variants: usize, blocks: u32, seed: u64) -> Plan {
        let named = |index| Variant { name: format!("v{index}"), ..Variant::default() };
        let workload = Workloads::new(vec![("fake".to_owned(), Box::new(Fake::default()))]);
        Plan {
            name: "test".to_owned(),
            blocks,
            seed,
            margin: 0.02,
            base: None,
            parity: dbdyno_model::Parity::default(),
            differs: Vec::new(),
            aa: false,
            margins: BTreeMap::new(),
            budget: None,
            design: dbdyno_model::Design::default(),
            host: dbdyno_model::Host::default(),
            load: dbdyno_model::Load::default(),
            profile: dbdyno_model::Profile::default(),
            clients: None,
            variants: (0..variants).map(named).collect(),
            workload,
            setups: Vec::new(),
            report: dbdyno_model::Report::default(),
            sections: Vec::new(),
            sizes: BTreeMap::new(),
        }
    }

    #[test]
    fn the_generator_gives_the_published_numbers() {
        let mut random = SplitMix64(1_234_567);
        let numbers: Vec<u64> = (0..5).map(|_| random.next()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(numbers, published);
        assert_eq!(SplitMix64(0).next(), 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn the_order_of_a_seed_never_changes() {
        let order = |seed| {
            let of_block =
                |cells: &[Cell]| cells.iter().map(|cell| cell.variant.clone()).collect::<Vec<_>>().join(" ");
            cells(&plan(5, 3, seed)).chunks(5).map(of_block).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(order(1), @r"
        v1 v0 v3 v2 v4
        v3 v2 v0 v1 v4
        v1 v2 v4 v3 v0
        ");
        insta::assert_snapshot!(order(2), @r"
        v3 v0 v1 v4 v2
        v1 v0 v3 v4 v2
        v1 v4 v3 v0 v2
        ");
    }

    #[test]
    fn every_block_has_each_cell_exactly_once() {
        let all = cells(&plan(7, 20, 42));
        assert_eq!(all.len(), 140);
        for (index, block) in all.chunks(7).enumerate() {
            assert!(block.iter().all(|cell| cell.block as usize == index + 1));
            let names: BTreeSet<&str> = block.iter().map(|cell| cell.variant.as_str()).collect();
            assert_eq!(names.len(), 7);
        }
    }

    #[test]
    fn more_blocks_leave_the_earlier_ones_as_they_were() {
        let long = cells(&plan(4, 9, 5));
        assert_eq!(cells(&plan(4, 2, 5)), long[..8]);
    }

    #[test]
    fn a_further_block_has_the_wanted_cells_in_the_order_of_the_plan() {
        let plan = plan(4, 3, 5);
        assert_eq!(further_cells(&plan, 2, |_| true), cells(&plan)[4..8]);
        let mut names: Vec<String> = further_cells(&plan, 9, |cell| cell.variant != "v2")
            .into_iter()
            .map(|cell| format!("{} {}", cell.block, cell.variant))
            .collect();
        names.sort();
        assert_eq!(names, ["9 v0", "9 v1", "9 v3"]);
    }

    #[test]
    fn the_seed_changes_the_order_and_the_same_seed_repeats_it() {
        assert_eq!(cells(&plan(4, 8, 1)), cells(&plan(4, 8, 1)));
        assert_ne!(cells(&plan(4, 8, 1)), cells(&plan(4, 8, 2)));
    }

    /// The test computes chi-square over all 24 orders of 4 variants. With 23 degrees of freedom a
    /// fair shuffle stays under 49.7 with probability 0.999. The seeds are fixed, so the test
    /// cannot flicker.
    #[test]
    fn over_many_seeds_every_order_is_about_equally_frequent() {
        let runs = 24_000;
        let mut counts: BTreeMap<Vec<String>, f64> = BTreeMap::new();
        for seed in 0..runs {
            let order = cells(&plan(4, 1, seed)).into_iter().map(|cell| cell.variant).collect();
            *counts.entry(order).or_default() += 1.0;
        }
        assert_eq!(counts.len(), 24);
        let expected = runs as f64 / 24.0;
        let chi_square: f64 = counts.values().map(|count| (count - expected).powi(2) / expected).sum();
        assert!(chi_square < 49.7, "chi-square {chi_square}");
    }

    #[test]
    fn over_the_blocks_of_one_run_each_variant_is_first_about_equally_often() {
        let blocks = 9_000;
        let all = cells(&plan(3, blocks, 1));
        for name in ["v0", "v1", "v2"] {
            let first = all.chunks(3).filter(|block| block[0].variant == name).count();
            // The count's standard deviation is sqrt(9000 x 1/3 x 2/3) = 45, and the limit is four
            // of them.
            assert!(first.abs_diff(3_000) < 180, "{name} is first {first} times of {blocks}");
        }
    }

    /// Makes steps from their names. `+` after a name means that it changes data, `~` that it fills
    /// caches, and `=` that it continues the group of the step before it.
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
    fn where_data_are_restored_no_earlier_step_is_needed_except_the_load() {
        for data in [DataMode::RestoreEachStep, DataMode::Reset] {
            assert_eq!(needed(data, "list"), "load index list");
            assert_eq!(needed(data, "points.pre points-si"), "load index warm points.pre warm-si points-si");
        }
    }
}
