//! Statements that a step sends outside its operations, by what they ask for: the lowest id, the
//! highest id, the INSERT before the indexes.

use dbdyno_record::{StepEvent, StepRecord};

use crate::model::Lookups;

/// One entry per name, in the order in which the names were first sent.
pub(crate) fn lookups(step: &StepRecord) -> Vec<Lookups> {
    let mut found: Vec<(&str, Vec<u64>)> = Vec::new();
    for event in &step.events {
        let StepEvent::Lookup { name, duration_us, .. } = event else { continue };
        match found.iter_mut().find(|(known, _)| known == name) {
            Some((_, durations_us)) => durations_us.push(*duration_us),
            None => found.push((name, vec![*duration_us])),
        }
    }
    found.iter().map(|(name, durations_us)| Lookups::of(name, durations_us)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::read_write_step;

    #[test]
    fn a_rare_slow_look_up_does_not_drown_among_quick_ones_of_another_name() {
        let mut step = read_write_step();
        assert_eq!(lookups(&step), []);
        let asked =
            [("min_id", 1_500_000), ("max_id", 100), ("max_id", 300), ("min_id", 250_000), ("max_id", 200)];
        step.events.extend(asked.map(|(name, duration_us)| StepEvent::Lookup {
            at_us: 1,
            client: 1,
            name: name.to_owned(),
            duration_us,
            value: Some(1),
        }));
        let figures = |found: &Lookups| (found.count, found.seconds, found.mean_seconds, found.max_seconds);
        let found = lookups(&step);
        assert_eq!(found.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["min_id", "max_id"]);
        assert_eq!(figures(&found[0]), (2, 1.75, 0.875, 1.5));
        assert_eq!(figures(&found[1]), (3, 0.000_6, 0.000_6 / 3.0, 0.000_3));
    }
}
