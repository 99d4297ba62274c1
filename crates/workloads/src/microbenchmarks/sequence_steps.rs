//! The two sequences of microbenchmarks: which runs when, how long, and under which name.

use crate::microbenchmarks::micro_test::MicroTest;
use crate::microbenchmarks::sequence::MicroSequence;
use MicroTest as Test;
use Moment::{Main, Pre, Warm, WarmPre};

/// When in a sequence a test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the steps that write.
    Pre,
    /// After them, or one of them.
    Main,
    /// Only to fill caches; its result is in no summary.
    Warm,
    /// The same, before the steps that write.
    WarmPre,
}

/// How long a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MicroLength {
    /// `read_time`
    Read,
    /// `write_time`
    Write,
    /// `warm_scan_time`
    WarmScan,
    /// Each connection scans its table once, and the step ends with the last of them.
    OneScan,
}

/// How many connections a step has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MicroConnections {
    /// A step for each number of `connections`.
    Each,
    /// As many as there are tables.
    Tables,
}

/// One line of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MicroStep {
    pub test: MicroTest,
    pub moment: Moment,
    /// The number in the published name. Where it has an effect, how many ids or rows a query asks
    /// for.
    pub range: u32,
    pub length: MicroLength,
    pub connections: MicroConnections,
    /// The server is brought to rest after it.
    pub settles: bool,
}

impl Moment {
    /// What the step's name has after the test's.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Pre => ".pre",
            Self::Main => "",
            Self::Warm => ".warm",
            Self::WarmPre => ".warmpre",
        }
    }

    /// Its result is in no summary.
    pub const fn is_warm_up(self) -> bool {
        matches!(self, Self::Warm | Self::WarmPre)
    }
}

impl MicroStep {
    /// `point-query.pre`, `random-points.pre_range=10`: the published name, without the range where
    /// it distinguishes nothing.
    pub fn name(&self) -> String {
        if self.test.is_named_by_range() {
            return self.published_name();
        }
        format!("{}{}", self.test.name(), self.moment.suffix())
    }

    /// The name in published tables, whose range is there even where it has no effect:
    /// `point-query.pre_range=100`.
    pub fn published_name(&self) -> String {
        format!("{}{}_range={}", self.test.name(), self.moment.suffix(), self.range)
    }

    fn new(test: Test, moment: Moment, range: u32) -> Self {
        let length = if test.writes() { MicroLength::Write } else { MicroLength::Read };
        Self { test, moment, range, length, connections: MicroConnections::Each, settles: false }
    }

    const fn settling(self) -> Self {
        Self { settles: true, ..self }
    }
}

impl MicroSequence {
    /// All steps after load and index, in order.
    pub fn steps(self) -> Vec<MicroStep> {
        let mut steps = vec![
            MicroStep {
                connections: MicroConnections::Tables,
                ..MicroStep::new(Test::PointQuery, Warm, 100)
            }
            .settling(),
        ];
        match self {
            Self::FortyTwo => {
                steps.extend(pre_42());
                steps.extend(writes(MicroLength::Read));
                steps.extend(post_42());
            }
            Self::ThirtyTwo => {
                let warm_scan = |moment| MicroStep {
                    length: MicroLength::WarmScan,
                    ..MicroStep::new(Test::Scan, moment, 100)
                };
                steps.extend([
                    warm_scan(WarmPre),
                    MicroStep::new(Test::PointQuery, Pre, 100),
                    MicroStep::new(Test::RangeNotcoveredSi, Pre, 100),
                ]);
                steps.extend(writes(MicroLength::Write));
                steps.push(warm_scan(Warm));
                steps.extend(post_32());
            }
        }
        steps.extend([Test::Delete, Test::Insert].map(|test| MicroStep::new(test, Main, 100)));
        steps
    }
}

/// `test` with several ranges.
fn ranges(test: Test, moment: Moment, ranges: [u32; 3]) -> [MicroStep; 3] {
    ranges.map(|range| MicroStep::new(test, moment, range))
}

/// Tests of lists and ranges over both indexes, in the order of the 42.
const BY_INDEX: [Test; 8] = [
    Test::PointsCoveredPk,
    Test::PointsNotcoveredPk,
    Test::PointsCoveredSi,
    Test::PointsNotcoveredSi,
    Test::RangeCoveredPk,
    Test::RangeNotcoveredPk,
    Test::RangeCoveredSi,
    Test::RangeNotcoveredSi,
];

fn pre_42() -> Vec<MicroStep> {
    let mut steps = vec![MicroStep::new(Test::PointQuery, Pre, 100)];
    steps.extend(ranges(Test::RandomPoints, Pre, [10, 100, 1000]));
    steps.extend(ranges(Test::ReadOnly, Pre, [10, 100, 10_000]));
    steps.extend(BY_INDEX.map(|test| MicroStep::new(test, Pre, 100)));
    steps
}

fn post_42() -> Vec<MicroStep> {
    let mut steps = ranges(Test::ReadOnly, Main, [10, 100, 10_000]).to_vec();
    steps.push(MicroStep::new(Test::PointQuery, Main, 100));
    steps.extend(ranges(Test::RandomPoints, Main, [10, 100, 1000]));
    steps.push(MicroStep::new(Test::HotPoints, Main, 100));
    steps.extend(BY_INDEX.map(|test| MicroStep::new(test, Main, 100)));
    steps.push(MicroStep {
        length: MicroLength::OneScan,
        connections: MicroConnections::Tables,
        ..MicroStep::new(Test::Scan, Main, 100)
    });
    steps
}

/// The steps that write and leave as many rows as they found; `write_only` is the length of one of
/// them.
fn writes(write_only: MicroLength) -> Vec<MicroStep> {
    let updates =
        [Test::UpdateInlist, Test::UpdateIndex, Test::UpdateNonindex, Test::UpdateOne, Test::UpdateZipf];
    let mut steps = updates.map(|test| MicroStep::new(test, Main, 100)).to_vec();
    steps.push(MicroStep { length: write_only, ..MicroStep::new(Test::WriteOnly, Main, 10_000) });
    steps.push(MicroStep::new(Test::ReadWrite, Main, 10));
    steps.push(MicroStep::new(Test::ReadWrite, Main, 100).settling());
    steps
}

fn post_32() -> Vec<MicroStep> {
    let one = |test| MicroStep::new(test, Main, 100);
    let mut steps = vec![one(Test::Scan)];
    steps.extend(ranges(Test::ReadOnly, Main, [10, 100, 10_000]));
    let parts = [
        Test::ReadOnlySimple,
        Test::ReadOnlySum,
        Test::ReadOnlyOrder,
        Test::ReadOnlyDistinct,
        Test::ReadOnlyCount,
    ];
    steps.extend(parts.map(|test| MicroStep::new(test, Main, 1000)));
    steps.push(one(Test::PointQuery));
    steps.extend(ranges(Test::RandomPoints, Main, [10, 100, 1000]));
    steps.extend(
        [
            Test::HotPoints,
            Test::PointsCoveredPk,
            Test::PointsNotcoveredPk,
            Test::RangeCoveredPk,
            Test::RangeNotcoveredPk,
        ]
        .map(one),
    );
    steps.push(MicroStep::new(Test::PointsCoveredSi, Warm, 100));
    steps.extend(
        [Test::PointsCoveredSi, Test::PointsNotcoveredSi, Test::RangeCoveredSi, Test::RangeNotcoveredSi]
            .map(one),
    );
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sequence: MicroSequence) -> String {
        let name =
            |step: &MicroStep| format!("{}{}", step.name(), if step.settles { " (settles)" } else { "" });
        sequence.steps().iter().map(name).collect::<Vec<_>>().join("\n")
    }

    /// Steps whose result counts.
    fn counted(sequence: MicroSequence) -> usize {
        sequence.steps().iter().filter(|step| !step.moment.is_warm_up()).count()
    }

    #[test]
    fn the_42_come_in_the_originals_order() {
        assert_eq!(counted(MicroSequence::FortyTwo), 42);
        insta::assert_snapshot!(names(MicroSequence::FortyTwo), @r"
        point-query.warm (settles)
        point-query.pre
        random-points.pre_range=10
        random-points.pre_range=100
        random-points.pre_range=1000
        read-only.pre_range=10
        read-only.pre_range=100
        read-only.pre_range=10000
        points-covered-pk.pre
        points-notcovered-pk.pre
        points-covered-si.pre
        points-notcovered-si.pre
        range-covered-pk.pre
        range-notcovered-pk.pre
        range-covered-si.pre
        range-notcovered-si.pre
        update-inlist
        update-index
        update-nonindex
        update-one
        update-zipf
        write-only
        read-write_range=10
        read-write_range=100 (settles)
        read-only_range=10
        read-only_range=100
        read-only_range=10000
        point-query
        random-points_range=10
        random-points_range=100
        random-points_range=1000
        hot-points
        points-covered-pk
        points-notcovered-pk
        points-covered-si
        points-notcovered-si
        range-covered-pk
        range-notcovered-pk
        range-covered-si
        range-notcovered-si
        scan
        delete
        insert
        ");
    }

    #[test]
    fn the_newer_sequence_comes_in_the_originals_order() {
        // The published 32 and the two steps before the writes, which their tables leave out.
        assert_eq!(counted(MicroSequence::ThirtyTwo), 34);
        insta::assert_snapshot!(names(MicroSequence::ThirtyTwo), @r"
        point-query.warm (settles)
        scan.warmpre
        point-query.pre
        range-notcovered-si.pre
        update-inlist
        update-index
        update-nonindex
        update-one
        update-zipf
        write-only
        read-write_range=10
        read-write_range=100 (settles)
        scan.warm
        scan
        read-only_range=10
        read-only_range=100
        read-only_range=10000
        read-only-simple
        read-only-sum
        read-only-order
        read-only-distinct
        read-only-count
        point-query
        random-points_range=10
        random-points_range=100
        random-points_range=1000
        hot-points
        points-covered-pk
        points-notcovered-pk
        range-covered-pk
        range-notcovered-pk
        points-covered-si.warm
        points-covered-si
        points-notcovered-si
        range-covered-si
        range-notcovered-si
        delete
        insert
        ");
    }

    #[test]
    fn no_two_steps_of_a_sequence_share_a_name() {
        for sequence in [MicroSequence::FortyTwo, MicroSequence::ThirtyTwo] {
            let mut names: Vec<String> = sequence.steps().iter().map(MicroStep::name).collect();
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count, "{sequence:?}");
        }
    }

    #[test]
    fn every_test_is_in_a_sequence() {
        let both = [MicroSequence::FortyTwo, MicroSequence::ThirtyTwo].map(MicroSequence::steps).concat();
        for test in MicroTest::ALL {
            assert!(both.iter().any(|step| step.test == test), "{test:?}");
        }
    }
}
