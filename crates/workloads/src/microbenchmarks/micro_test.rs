//! The microbenchmarks and their names.

/// One microbenchmark. Names are the original's; what some of them hide is said with each test in the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MicroTest {
    PointQuery,
    RandomPoints,
    HotPoints,
    PointsCoveredPk,
    PointsNotcoveredPk,
    PointsCoveredSi,
    PointsNotcoveredSi,
    RangeCoveredPk,
    RangeNotcoveredPk,
    RangeCoveredSi,
    RangeNotcoveredSi,
    ReadOnly,
    ReadOnlySimple,
    ReadOnlySum,
    ReadOnlyOrder,
    ReadOnlyDistinct,
    ReadOnlyCount,
    Scan,
    UpdateInlist,
    UpdateIndex,
    UpdateNonindex,
    UpdateOne,
    UpdateZipf,
    WriteOnly,
    ReadWrite,
    Delete,
    Insert,
}

impl MicroTest {
    /// Every test, in the order in which they are documented.
    pub const ALL: [Self; 27] = [
        Self::PointQuery,
        Self::RandomPoints,
        Self::HotPoints,
        Self::PointsCoveredPk,
        Self::PointsNotcoveredPk,
        Self::PointsCoveredSi,
        Self::PointsNotcoveredSi,
        Self::RangeCoveredPk,
        Self::RangeNotcoveredPk,
        Self::RangeCoveredSi,
        Self::RangeNotcoveredSi,
        Self::ReadOnly,
        Self::ReadOnlySimple,
        Self::ReadOnlySum,
        Self::ReadOnlyOrder,
        Self::ReadOnlyDistinct,
        Self::ReadOnlyCount,
        Self::Scan,
        Self::UpdateInlist,
        Self::UpdateIndex,
        Self::UpdateNonindex,
        Self::UpdateOne,
        Self::UpdateZipf,
        Self::WriteOnly,
        Self::ReadWrite,
        Self::Delete,
        Self::Insert,
    ];

    /// The original's name of the test.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PointQuery => "point-query",
            Self::RandomPoints => "random-points",
            Self::HotPoints => "hot-points",
            Self::PointsCoveredPk => "points-covered-pk",
            Self::PointsNotcoveredPk => "points-notcovered-pk",
            Self::PointsCoveredSi => "points-covered-si",
            Self::PointsNotcoveredSi => "points-notcovered-si",
            Self::RangeCoveredPk => "range-covered-pk",
            Self::RangeNotcoveredPk => "range-notcovered-pk",
            Self::RangeCoveredSi => "range-covered-si",
            Self::RangeNotcoveredSi => "range-notcovered-si",
            Self::ReadOnly => "read-only",
            Self::ReadOnlySimple => "read-only-simple",
            Self::ReadOnlySum => "read-only-sum",
            Self::ReadOnlyOrder => "read-only-order",
            Self::ReadOnlyDistinct => "read-only-distinct",
            Self::ReadOnlyCount => "read-only-count",
            Self::Scan => "scan",
            Self::UpdateInlist => "update-inlist",
            Self::UpdateIndex => "update-index",
            Self::UpdateNonindex => "update-nonindex",
            Self::UpdateOne => "update-one",
            Self::UpdateZipf => "update-zipf",
            Self::WriteOnly => "write-only",
            Self::ReadWrite => "read-write",
            Self::Delete => "delete",
            Self::Insert => "insert",
        }
    }

    /// It changes rows.
    pub const fn writes(self) -> bool {
        matches!(
            self,
            Self::UpdateInlist
                | Self::UpdateIndex
                | Self::UpdateNonindex
                | Self::UpdateOne
                | Self::UpdateZipf
                | Self::WriteOnly
                | Self::ReadWrite
                | Self::Delete
                | Self::Insert
        )
    }

    /// It runs with several ranges, so that its step's name must say which.
    pub(crate) const fn is_named_by_range(self) -> bool {
        matches!(self, Self::RandomPoints | Self::ReadOnly | Self::ReadWrite)
    }
}
