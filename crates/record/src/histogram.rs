//! `histograms.hlog`: the HdrHistogram interval log, version 1.3, one histogram a line.
//!
//! The log writer of the `hdrhistogram` crate prints times with three decimals and borrows its file for as long as
//! it lives; the lines are therefore made here, and its reader is what they are tested with.

use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry, Tag};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::{Error, base64};

/// What stands above the first histogram. Readers of the format pass over all of it.
pub(crate) const HEADER: &str = "#[Histogram log format version 1.3]\n\
    #[Times are seconds since the step's barrier, values are microseconds]\n\
    \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

/// From when an operation's time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Clock {
    /// From sending to answered.
    Service,
    /// From when the operation was due to answered.
    Response,
    /// From when the operation was due to sending, of operations that a free connection was waiting to send: how late the
    /// load engine itself was.
    Lag,
}

impl Clock {
    /// `service`, `response` or `lag`, the last part of a histogram's tag.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Service => "service",
            Clock::Response => "response",
            Clock::Lag => "lag",
        }
    }

    /// Tag of the histogram of one operation kind: `<kind>/service`, `<kind>/response` or `<kind>/lag`.
    pub fn tag(self, kind: &str) -> String {
        format!("{kind}/{}", self.name())
    }
}

/// The kind under which the times of one statement within operations of `kind` are recorded: `transaction:delete`.
pub fn statement_kind(kind: &str, statement: &str) -> String {
    format!("{kind}:{statement}")
}

/// Times of one operation kind over `[from_us, to_us)` since the barrier, in microseconds.
///
/// The histogram is kept in its compressed form (about 1 kB) and unpacked on demand (up to 190 kB), because a run has one
/// for each second, kind and clock of each step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramSpan {
    /// Operation kind: `insert`, `query`, ...
    pub kind: String,
    pub clock: Clock,
    pub from_us: u64,
    pub to_us: u64,
    compressed: Vec<u8>,
}

impl HistogramSpan {
    /// A span from a histogram in memory. Fails when it cannot be serialised (a count beyond 2^63).
    pub fn new(
        kind: &str,
        clock: Clock,
        from_us: u64,
        to_us: u64,
        histogram: &Histogram<u64>,
    ) -> Result<Self, Error> {
        let compressed = compress(histogram).map_err(|message| Error::Histogram {
            tag: clock.tag(kind),
            from_us,
            to_us,
            message,
        })?;
        Ok(HistogramSpan { kind: kind.into(), clock, from_us, to_us, compressed })
    }

    /// `<kind>/service`, `<kind>/response` or `<kind>/lag`.
    pub fn tag(&self) -> String {
        self.clock.tag(&self.kind)
    }

    /// The span's time and the stored form of its counts: equal for equal histograms.
    pub fn content(&self) -> (u64, u64, &[u8]) {
        (self.from_us, self.to_us, &self.compressed)
    }

    /// The histogram, unpacked: values in microseconds, a range that grows with what is added to it. Fails when the
    /// bytes are no HdrHistogram.
    pub fn histogram(&self) -> Result<Histogram<u64>, Error> {
        let unpacked = Deserializer::new().deserialize(&mut self.compressed.as_slice());
        let mut histogram: Histogram<u64> = unpacked.map_err(|error| self.error(error.to_string()))?;
        histogram.auto(true);
        Ok(histogram)
    }

    /// Adds every count to `sum` without loss. Fails when the bytes are no HdrHistogram, or when `sum` has a fixed
    /// range that does not hold the greatest value.
    pub fn add_to(&self, sum: &mut Histogram<u64>) -> Result<(), Error> {
        sum.add(self.histogram()?).map_err(|error| self.error(error.to_string()))
    }

    fn error(&self, message: String) -> Error {
        Error::Histogram {
            tag: self.clock.tag(&self.kind),
            from_us: self.from_us,
            to_us: self.to_us,
            message,
        }
    }
}

/// The histogram's stored form. Its range ends at its greatest value, because whoever unpacks it clears and walks the
/// whole range: up to an hour that is 190 kB for a handful of values.
fn compress(histogram: &Histogram<u64>) -> Result<Vec<u8>, String> {
    let low = histogram.low();
    let high = histogram.max().max(low.saturating_mul(2));
    let mut short = Histogram::<u64>::new_with_bounds(low, high, histogram.sigfig())
        .map_err(|error| error.to_string())?;
    short.add(histogram).map_err(|error| error.to_string())?;
    let mut compressed = Vec::new();
    V2DeflateSerializer::new().serialize(&short, &mut compressed).map_err(|error| error.to_string())?;
    Ok(compressed)
}

/// The tag's kind and clock; `None` when it is not `<kind>/<clock>`.
fn parse_tag(tag: &str) -> Option<(&str, Clock)> {
    let (kind, clock) = Tag::new(tag)?.as_str().rsplit_once('/')?;
    let clock =
        [Clock::Service, Clock::Response, Clock::Lag].into_iter().find(|known| known.name() == clock)?;
    (!kind.is_empty()).then_some((kind, clock))
}

/// One line of the log, with its end. Fails with a sentence when the tag or the span is not one that is read back.
pub(crate) fn format_line(
    tag: &str,
    from_us: u64,
    to_us: u64,
    histogram: &Histogram<u64>,
) -> Result<Vec<u8>, String> {
    let (kind, _) = parse_tag(tag).ok_or_else(|| {
        format!("histogram tag {tag:?} is not `<kind>/service`, `<kind>/response` or `<kind>/lag`")
    })?;
    if kind.contains(char::is_control) {
        return Err(format!("histogram tag {tag:?} holds a control character"));
    }
    let length_us = to_us
        .checked_sub(from_us)
        .ok_or_else(|| format!("histogram {tag} ends at {to_us} us, before it begins at {from_us} us"))?;
    let max_us = histogram.max();
    let mut line =
        format!("Tag={tag},{},{},{max_us}.000,", seconds(from_us), seconds(length_us)).into_bytes();
    base64::encode(&compress(histogram)?, &mut line);
    line.push(b'\n');
    Ok(line)
}

/// Seconds with every microsecond kept.
fn seconds(time_us: u64) -> String {
    format!("{}.{:06}", time_us / 1_000_000, time_us % 1_000_000)
}

/// One line of the log without its end; `None` for a comment or the legend, a sentence for anything broken.
pub(crate) fn parse_line(line: &[u8]) -> Result<Option<HistogramSpan>, String> {
    let line = [line, b"\n"].concat();
    let entry = match IntervalLogIterator::new(&line).next() {
        Some(Ok(LogEntry::Interval(entry))) => entry,
        Some(Ok(LogEntry::StartTime(_) | LogEntry::BaseTime(_))) => return Ok(None),
        None if line != b"\n" => return Ok(None),
        _ => return Err("not a line of a histogram log".into()),
    };
    let tag = entry.tag().map_or("", |tag| tag.as_str());
    let (kind, clock) = parse_tag(tag).ok_or_else(|| format!("unknown histogram tag {tag:?}"))?;
    let compressed = base64::decode(entry.encoded_histogram().as_bytes()).ok_or("histogram is no base64")?;
    if !is_whole(&compressed) {
        return Err("histogram is not as long as it says".into());
    }
    let from_us = micros(entry.start_timestamp())?;
    let to_us = from_us.checked_add(micros(entry.duration())?).ok_or("histogram's end is out of range")?;
    Ok(Some(HistogramSpan { kind: kind.into(), clock, from_us, to_us, compressed }))
}

fn micros(time: Duration) -> Result<u64, String> {
    u64::try_from(time.as_micros()).map_err(|_| "histogram's time is out of range".into())
}

/// A compressed histogram names its own length after its first four bytes, so that a cut one shows without unpacking it.
fn is_whole(compressed: &[u8]) -> bool {
    let Some((head, payload)) = compressed.split_at_checked(8) else { return false };
    let length = head[4..].iter().fold(0usize, |length, &byte| length << 8 | usize::from(byte));
    payload.len() == length
}
