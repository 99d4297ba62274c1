//! The microbenchmarks: their names, their families, and what each does.

use dbdyno_model::named;
use dbdyno_record::OperationClass;

use crate::oltp::options::OltpTest;
use crate::oltp::steps::labels;

named! {
    /// One microbenchmark, in the order of families. Names are the original's; what some of them
    /// hide is in `words.toml`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MicroTest {
        PointQuery = "point-query",
        RandomPoints = "random-points",
        HotPoints = "hot-points",
        PointsCoveredPk = "points-covered-pk",
        PointsNotcoveredPk = "points-notcovered-pk",
        PointsCoveredSi = "points-covered-si",
        PointsNotcoveredSi = "points-notcovered-si",
        RangeCoveredPk = "range-covered-pk",
        RangeNotcoveredPk = "range-notcovered-pk",
        RangeCoveredSi = "range-covered-si",
        RangeNotcoveredSi = "range-notcovered-si",
        ReadOnlyCount = "read-only-count",
        Scan = "scan",
        ReadOnly = "read-only",
        ReadOnlySimple = "read-only-simple",
        ReadOnlySum = "read-only-sum",
        ReadOnlyOrder = "read-only-order",
        ReadOnlyDistinct = "read-only-distinct",
        UpdateInlist = "update-inlist",
        UpdateIndex = "update-index",
        UpdateNonindex = "update-nonindex",
        UpdateOne = "update-one",
        UpdateZipf = "update-zipf",
        WriteOnly = "write-only",
        ReadWrite = "read-write",
        Delete = "delete",
        Insert = "insert",
    }
}

/// Tests of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// They look up single values, one or a list of them.
    Points,
    /// They read ranges, or scan a whole table.
    Ranges,
    /// They send ten point selects and ranges.
    Transactions,
    /// They change rows, as this classic test changes them.
    Writes(OltpTest),
}

impl MicroTest {
    pub(crate) const fn family(self) -> Family {
        match self {
            Self::PointQuery | Self::RandomPoints | Self::HotPoints => Family::Points,
            Self::PointsCoveredPk | Self::PointsNotcoveredPk => Family::Points,
            Self::PointsCoveredSi | Self::PointsNotcoveredSi => Family::Points,
            Self::RangeCoveredPk | Self::RangeNotcoveredPk => Family::Ranges,
            Self::RangeCoveredSi | Self::RangeNotcoveredSi => Family::Ranges,
            Self::ReadOnlyCount | Self::Scan => Family::Ranges,
            Self::ReadOnly | Self::ReadOnlySimple | Self::ReadOnlySum => Family::Transactions,
            Self::ReadOnlyOrder | Self::ReadOnlyDistinct => Family::Transactions,
            Self::UpdateInlist | Self::UpdateNonindex => Family::Writes(OltpTest::UpdateNonIndex),
            Self::UpdateOne | Self::UpdateZipf => Family::Writes(OltpTest::UpdateNonIndex),
            Self::UpdateIndex => Family::Writes(OltpTest::UpdateIndex),
            Self::WriteOnly => Family::Writes(OltpTest::WriteOnly),
            Self::ReadWrite => Family::Writes(OltpTest::ReadWrite),
            Self::Delete => Family::Writes(OltpTest::Delete),
            Self::Insert => Family::Writes(OltpTest::Insert),
        }
    }

    pub const fn writes(self) -> bool {
        matches!(self.family(), Family::Writes(_))
    }

    /// Returns whether it runs with several ranges, so that its step's name must say which.
    pub(crate) const fn is_named_by_range(self) -> bool {
        matches!(self, Self::RandomPoints | Self::ReadOnly | Self::ReadWrite)
    }

    /// Returns what it does to the contents of tables, given as the classic test that does the same.
    pub(crate) const fn effect(self) -> OltpTest {
        match self.family() {
            Family::Points | Family::Ranges => OltpTest::PointSelect,
            Family::Transactions => OltpTest::ReadOnly,
            Family::Writes(test) => test,
        }
    }

    /// Returns what an operation is called, what it does, and the label of its rate.
    pub(crate) const fn labels(self) -> (&'static str, OperationClass, &'static str) {
        match self {
            Self::Scan => ("scan", OperationClass::Scan, "rows/s"),
            test => labels(test.effect()),
        }
    }
}
