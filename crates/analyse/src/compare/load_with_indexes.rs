//! The load and the building of its indexes as one rate, as published load rates are.

use dbdyno_record::OperationClass;

use crate::compare::ratio::{interval_of_blocks, of_blocks};
use crate::model::runs::valid;
use crate::model::{LoadVariant, LoadWithIndexes, StepFindings, StepRun, VariantStep};
use crate::statistics::describe::median;

/// Of the first step that inserts and is followed by one that builds indexes; `None` without one.
/// Both rates are in rows a second, so a row takes the sum of both times.
pub(crate) fn load_with_indexes(steps: &[StepFindings], base: &str) -> Option<LoadWithIndexes> {
    let is_pair = |pair: &&[StepFindings]| {
        let classes = [pair[0].headline_class, pair[1].headline_class];
        classes == [OperationClass::Insert, OperationClass::Index]
            && pair.iter().all(|step| !step.less_is_better)
    };
    let [load, index] = steps.windows(2).find(is_pair)? else { return None };
    let of_base = rates(load, index, base);
    let of_variant = |variant: &VariantStep| {
        let rates = rates(load, index, &variant.variant);
        let ratio = |(block, rate): &(u32, f64)| {
            let (_, base) = of_base.iter().find(|(other, _)| other == block)?;
            Some((*block, rate / base))
        };
        let ratios: Vec<(u32, f64)> = rates.iter().filter_map(ratio).collect();
        LoadVariant {
            variant: variant.variant.clone(),
            rate: median(&rates.iter().map(|(_, rate)| *rate).collect::<Vec<_>>()),
            interval: interval_of_blocks(&ratios),
            ratio: of_blocks(ratios).map(|ratio| ratio.value),
        }
    };
    Some(LoadWithIndexes {
        load: load.name.clone(),
        index: index.name.clone(),
        variants: load.variants.iter().map(of_variant).collect(),
    })
}

/// By block, where both steps are valid.
fn rates(load: &StepFindings, index: &StepFindings, variant: &str) -> Vec<(u32, f64)> {
    let of_block = |run: &StepRun| {
        let index = valid(index.runs_of(variant)).find(|other| other.block == run.block)?;
        let rate = 1.0 / (1.0 / run.rate + 1.0 / index.rate);
        (rate > 0.0).then_some((run.block, rate))
    };
    valid(load.runs_of(variant)).filter_map(of_block).collect()
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{OperationClass, StepRecord};

    use crate::analyse;
    use crate::fixtures::{cell, load_step, run};
    use crate::model::LoadVariant;

    /// The two steps of a run of the fixtures, of which the second builds indexes here.
    fn steps(load: u64, index: u64) -> Vec<StepRecord> {
        let mut second = load_step(index);
        second.name = "qr100".to_owned();
        second.spec.name = second.name.clone();
        second.spec.headline.kind = "index".to_owned();
        second.spec.kinds[0].kind = "index".to_owned();
        second.spec.kinds[0].class = OperationClass::Index;
        second.intervals.iter_mut().for_each(|interval| interval.kind = "index".to_owned());
        vec![load_step(load), second]
    }

    #[test]
    fn a_row_takes_the_time_of_the_load_and_of_the_index() {
        let cells = vec![
            cell(1, "a", steps(1_000, 1_000)),
            cell(1, "b", steps(3_000, 1_000)),
            cell(2, "a", steps(1_000, 1_000)),
            cell(2, "b", steps(3_000, 1_000)),
        ];
        let found =
            analyse(&run(&["a", "b"], 2, cells)).workloads[0].load_with_indexes.clone().expect("two steps");
        assert_eq!((found.load.as_str(), found.index.as_str()), ("l.i0", "qr100"));
        let figures = |one: &LoadVariant| format!("{:.3} {:.3}", one.rate.unwrap(), one.ratio.unwrap());
        let figures: Vec<String> = found.variants.iter().map(figures).collect();
        assert_eq!(figures, ["500.000 1.000", "750.000 1.500"]);
    }

    #[test]
    fn without_a_step_that_builds_indexes_there_is_none() {
        let found = analyse(&run(&["a"], 1, vec![cell(1, "a", vec![load_step(5), load_step(5)])]));
        assert!(found.workloads[0].load_with_indexes.is_none());
    }
}
