//! The microbenchmarks: their names, families, and what each is called and does.

use dbdyno_plan::named;
use dbdyno_record::OperationClass;

use crate::oltp::options::OltpTest;

named! {
    /// One microbenchmark, in the order of families. Names are the original's; what some of them
    /// hide is in `words.toml`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

/// Tests of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Single values are looked up, one or a list of them.
    Points,
    /// Ranges, and the scan of a whole table.
    Ranges,
    /// Ten point selects and ranges.
    Transactions,
    /// Rows change.
    Writes,
}

impl MicroTest {
    pub(crate) fn family(self) -> Family {
        match self {
            _ if self <= Self::PointsNotcoveredSi => Family::Points,
            _ if self <= Self::Scan => Family::Ranges,
            _ if self <= Self::ReadOnlyDistinct => Family::Transactions,
            _ => Family::Writes,
        }
    }

    pub fn writes(self) -> bool {
        self.family() == Family::Writes
    }

    /// It runs with several ranges, so that its step's name must say which.
    pub(crate) const fn is_named_by_range(self) -> bool {
        matches!(self, Self::RandomPoints | Self::ReadOnly | Self::ReadWrite)
    }

    /// What it does to the contents of tables, said by the classic test that does the same.
    pub(crate) fn effect(self) -> OltpTest {
        match self {
            Self::UpdateIndex => OltpTest::UpdateIndex,
            Self::WriteOnly => OltpTest::WriteOnly,
            Self::ReadWrite => OltpTest::ReadWrite,
            Self::Delete => OltpTest::Delete,
            Self::Insert => OltpTest::Insert,
            Self::UpdateInlist | Self::UpdateNonindex | Self::UpdateOne | Self::UpdateZipf => {
                OltpTest::UpdateNonIndex
            }
            _ => OltpTest::PointSelect,
        }
    }

    /// What an operation is called, what it does, and the label of its rate.
    pub(crate) fn labels(self) -> (&'static str, OperationClass, &'static str) {
        match (self, self.family()) {
            (Self::WriteOnly | Self::ReadWrite, _) | (_, Family::Transactions) => {
                ("transaction", OperationClass::Other, "transactions/s")
            }
            (Self::Scan, _) => ("scan", OperationClass::Scan, "rows/s"),
            (Self::Delete, _) => ("delete", OperationClass::Delete, "deletes/s"),
            (Self::Insert, _) => ("insert", OperationClass::Insert, "inserts/s"),
            (_, Family::Writes) => ("update", OperationClass::Other, "updates/s"),
            (_, Family::Points | Family::Ranges) => ("query", OperationClass::Query, "queries/s"),
        }
    }
}
