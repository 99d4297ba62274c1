//! The groups over which published reports sum steps up, as data.

use std::collections::BTreeMap;

use crate::microbenchmarks::micro_test::Family;
use crate::microbenchmarks::options::{MicroStep, MicroTest as Test, Moment};

/// Name of the five groups in the reports of 2023 and 2024, over 42 steps.
pub(crate) const BY_PART: &str = "2024";
/// Name of the four groups in the reports since 2025, over 32 steps.
pub(crate) const BY_KIND: &str = "2025";
/// Name of the five groups in the report of January 2021, by when a step runs. The load is one of them.
pub(crate) const BY_SEQUENCE: &str = "2021";

pub(crate) fn of_load() -> BTreeMap<String, String> {
    BTreeMap::from([(BY_SEQUENCE.to_owned(), "load".to_owned())])
}

/// Returns the groups of a step. A step that only fills caches has none.
pub(crate) fn of_step(step: &MicroStep) -> BTreeMap<String, String> {
    if step.moment.is_warm_up() {
        return BTreeMap::new();
    }
    let by_kind = (step.moment != Moment::Pre).then(|| by_kind(step.test));
    [(BY_PART, by_part(step.test)), (BY_KIND, by_kind), (BY_SEQUENCE, Some(by_sequence(step)))]
        .into_iter()
        .filter_map(|(grouping, group)| Some((grouping.to_owned(), group?.to_owned())))
        .collect()
}

fn by_part(test: Test) -> Option<&'static str> {
    match (test, test.family()) {
        (Test::RandomPoints, _) => Some("point, part 2"),
        (_, Family::Points) => Some("point, part 1"),
        (Test::ReadOnly, _) => Some("range, part 2"),
        (Test::ReadOnlyCount, _) | (_, Family::Transactions) => None,
        (_, Family::Ranges) => Some("range, part 1"),
        (_, Family::Writes(_)) => Some("writes"),
    }
}

/// Returns the group by kind. In these reports read-only-simple counts as aggregation, though it has
/// none.
fn by_kind(test: Test) -> &'static str {
    match test.family() {
        Family::Points => "point",
        Family::Ranges if test != Test::ReadOnlyCount => "range without aggregation",
        Family::Ranges | Family::Transactions => "range with aggregation",
        Family::Writes(_) => "writes",
    }
}

fn by_sequence(step: &MicroStep) -> &'static str {
    match step.test {
        Test::Delete | Test::Insert => "insert and delete",
        test if test.writes() => "write-heavy",
        _ if step.moment == Moment::Pre => "read-only before write-heavy",
        _ => "read-only after write-heavy",
    }
}

#[cfg(test)]
mod tests {
    use crate::microbenchmarks::options::MicroSequence;

    use super::*;

    /// Returns the numbers of members by group.
    fn counts(sequence: MicroSequence, grouping: &str) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for step in sequence.steps() {
            if let Some(group) = of_step(step).get(grouping) {
                *counts.entry(group.clone()).or_default() += 1;
            }
        }
        counts.iter().map(|(group, count)| format!("{group}: {count}")).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn groups_have_as_many_members_as_in_the_reports() {
        insta::assert_snapshot!(counts(MicroSequence::FortyTwo, BY_PART), @"point, part 1: 11; point, part 2: 6; range, part 1: 9; range, part 2: 6; writes: 10");
        insta::assert_snapshot!(counts(MicroSequence::ThirtyTwo, BY_KIND), @"point: 9; range with aggregation: 8; range without aggregation: 5; writes: 10");
        insta::assert_snapshot!(counts(MicroSequence::FortyTwo, BY_SEQUENCE), @"insert and delete: 2; read-only after write-heavy: 17; read-only before write-heavy: 15; write-heavy: 8");
    }
}
