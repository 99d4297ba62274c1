//! The steps of the two sequences of microbenchmarks: which test runs when, how long, and under which
//! name.

use std::sync::LazyLock;

use dbdyno_model::named;

use crate::microbenchmarks::micro_test::MicroTest;
use crate::microbenchmarks::sequence::MicroSequence;

named! {
    /// When in a sequence a test runs; what the step's name has after the test's.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Moment {
        /// Before the steps that write.
        Pre = ".pre",
        /// After them, or one of them.
        Main = "",
        /// Only to fill caches; its result is in no summary.
        Warm = ".warm",
        /// The same, before the steps that write.
        WarmPre = ".warmpre",
    }
}

/// How long a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MicroLength {
    /// The option `read_time`.
    Read,
    /// The option `write_time`.
    Write,
    /// The option `warm_scan_time`.
    WarmScan,
    /// Each connection scans its table once, and the step ends with the last of them.
    OneScan,
}

/// How many connections a step has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MicroConnections {
    /// There is a step for each number of `connections`.
    Each,
    /// There are as many as there are tables.
    Tables,
}

/// One line of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MicroStep {
    pub test: MicroTest,
    pub moment: Moment,
    /// The number in the published name. Where it has an effect, it is how many ids or rows a query
    /// asks for.
    pub range: u32,
    pub length: MicroLength,
    pub connections: MicroConnections,
    /// Whether the server is brought to rest after the step.
    pub settles: bool,
}

impl Moment {
    /// Returns whether the step only warms up, so that its result is in no summary.
    pub const fn is_warm_up(self) -> bool {
        matches!(self, Self::Warm | Self::WarmPre)
    }
}

impl MicroStep {
    /// Returns the published name without the range where the range distinguishes nothing, such as
    /// `point-query.pre` or `random-points.pre_range=10`.
    pub fn name(&self) -> String {
        if self.test.is_named_by_range() {
            return self.published_name();
        }
        format!("{}{}", self.test.name(), self.moment.name())
    }

    /// Returns the name in published tables, which has the range even where it has no effect:
    /// `point-query.pre_range=100`.
    pub fn published_name(&self) -> String {
        format!("{}{}_range={}", self.test.name(), self.moment.name(), self.range)
    }

    /// Reads a line of a sequence: the published name, and what distinguishes the step from the others.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (name, range) = words.next()?.split_once("_range=")?;
        let (test, moment) = name.split_at(name.find('.').unwrap_or(name.len()));
        let test = MicroTest::ALL.into_iter().find(|known| known.name() == test)?;
        let mut step = Self {
            test,
            moment: Moment::ALL.into_iter().find(|known| known.name() == moment)?,
            range: range.parse().ok()?,
            length: if test.writes() { MicroLength::Write } else { MicroLength::Read },
            connections: MicroConnections::Each,
            settles: false,
        };
        for word in words {
            match word {
                "tables" => step.connections = MicroConnections::Tables,
                "read_time" => step.length = MicroLength::Read,
                "warm_scan_time" => step.length = MicroLength::WarmScan,
                "one_scan" => step.length = MicroLength::OneScan,
                "settles" => step.settles = true,
                _ => return None,
            }
        }
        Some(step)
    }
}

impl MicroSequence {
    /// Returns all steps after load and index, in order.
    pub fn steps(self) -> &'static [MicroStep] {
        static BOTH: LazyLock<[Vec<MicroStep>; 2]> = LazyLock::new(|| {
            [include_str!("sequence_42.txt"), include_str!("sequence_32.txt")].map(|text| {
                let lines = text.lines().filter(|line| !line.is_empty());
                lines.map(|line| MicroStep::read(line).expect("tests read every line")).collect()
            })
        });
        match self {
            Self::FortyTwo => &BOTH[0],
            Self::ThirtyTwo => &BOTH[1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sequence: MicroSequence) -> String {
        let name =
            |step: &MicroStep| format!("{}{}", step.name(), if step.settles { " (settles)" } else { "" });
        sequence.steps().iter().map(name).collect::<Vec<_>>().join("\n")
    }

    /// Returns the number of steps whose result counts.
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
        // These are the published 32, and the two steps before the writes, which the published tables
        // leave out.
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
