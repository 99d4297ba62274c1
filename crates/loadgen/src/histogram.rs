//! Histograms of times in microseconds, and how they are sent to another host.

use std::borrow::Borrow;

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Histograms hold 1 µs to 1 h with 3 significant figures. An index build that takes longer makes its
/// histogram grow.
const LOWEST_US: u64 = 1;
const HIGHEST_US: u64 = 3_600_000_000;
const FIGURES: u8 = 3;

/// Returns an empty histogram of times. It takes 190 kB.
pub(crate) fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(LOWEST_US, HIGHEST_US, FIGURES)
        .expect("the bounds are constants that the crate accepts");
    histogram.auto(true);
    histogram
}

/// A histogram as it goes from one host to another: its values, each with how often it was recorded.
/// Nothing is lost.
#[derive(Serialize, Deserialize)]
struct Counts(Vec<(u64, u64)>);

impl From<&Histogram<u64>> for Counts {
    fn from(histogram: &Histogram<u64>) -> Self {
        let values = histogram.iter_recorded();
        Self(values.map(|value| (value.value_iterated_to(), value.count_at_value())).collect())
    }
}

impl From<Counts> for Histogram<u64> {
    fn from(counts: Counts) -> Self {
        let mut histogram = histogram();
        for (value, count) in counts.0 {
            if histogram.record_n(value, count).is_err() {
                histogram.saturating_record_n(value, count);
            }
        }
        histogram
    }
}

/// Lets serde write a histogram as its counts.
pub(crate) mod counts {
    use super::{Borrow, Counts, Deserialize, Deserializer, Histogram, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        histogram: &impl Borrow<Histogram<u64>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        Counts::from(histogram.borrow()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, H: From<Histogram<u64>>>(
        deserializer: D,
    ) -> Result<H, D::Error> {
        Ok(Histogram::from(Counts::deserialize(deserializer)?).into())
    }
}

/// The same for a histogram that may be absent.
pub(crate) mod some_counts {
    use super::{Counts, Deserialize, Deserializer, Histogram, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        histogram: &Option<Histogram<u64>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        histogram.as_ref().map(Counts::from).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Histogram<u64>>, D::Error> {
        Ok(Option::<Counts>::deserialize(deserializer)?.map(Into::into))
    }
}

pub(crate) fn record(histogram: &mut Histogram<u64>, value_us: u64) {
    if histogram.record(value_us).is_err() {
        // There is no memory to grow into. The count is kept, at the highest value there is room for.
        histogram.saturating_record(value_us);
    }
}
