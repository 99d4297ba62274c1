//! One source and the counter file that takes its samples.

use std::time::Instant;

use dbdyno_record::{CounterHeader, CounterWriter};

use crate::Error;
use crate::sources::{Moment, Source, Values};

/// A source with its file. It remembers what it could not read, and reports that once at the end.
pub(crate) struct Outlet {
    /// One of the names in [`ALL`](crate::ALL).
    name: &'static str,
    source: Box<dyn Source>,
    values: Values,
    /// The counter file, which does not exist before the clock starts.
    pub(crate) writer: Option<CounterWriter>,
    tried: u64,
    missed: u64,
    first_miss: Option<(i64, Error)>,
    write_error: Option<dbdyno_record::Error>,
}

impl Outlet {
    /// Reads `source` once, so that what cannot be read is known before the clock starts. There is no
    /// file yet.
    pub(crate) fn probe(name: &'static str, mut source: Box<dyn Source>) -> Result<Self, Error> {
        let mut values = Values::default();
        source.read(Moment::Boundary, &mut values)?;
        Ok(Self {
            name,
            source,
            values,
            writer: None,
            tried: 0,
            missed: 0,
            first_miss: None,
            write_error: None,
        })
    }

    /// Returns the first line of the source's counter file.
    pub(crate) fn header(&self) -> CounterHeader {
        CounterHeader { source: self.name.to_owned(), about: self.source.about() }
    }

    /// Reads the source and writes a line, with the time at which it was read. After a failed write
    /// there are no more lines, because a file with a hole in it could not be distinguished from a
    /// complete one.
    pub(crate) fn sample(&mut self, moment: Moment, barrier: Instant) {
        let Some(writer) = self.writer.as_mut().filter(|_| self.write_error.is_none()) else { return };
        self.tried += 1;
        match self.source.read(moment, &mut self.values) {
            Ok(None) => {}
            Ok(Some(at)) => {
                self.write_error = writer.line(micros_since(barrier, at), self.values.map()).err()
            }
            Err(error) => {
                self.missed += 1;
                self.first_miss.get_or_insert((micros_since(barrier, Instant::now()), error));
            }
        }
    }

    /// Makes the lines durable. The result is what went wrong: a warning about samples that are
    /// missing, and an error of the file.
    pub(crate) fn finish(mut self) -> (Option<String>, Option<dbdyno_record::Error>) {
        let synced = match (self.writer.as_mut(), self.write_error.take()) {
            (_, Some(error)) => Some(error),
            (Some(writer), None) => writer.sync().err(),
            (None, None) => None,
        };
        self.source.close();
        let warning = self.first_miss.map(|(at_us, error)| {
            let (name, missed, tried) = (self.name, self.missed, self.tried);
            format!(
                "`{name}`: {missed} of {tried} samples are missing, the first at {} s: {error}",
                seconds(at_us)
            )
        });
        (warning, synced)
    }
}

/// Formats a time in seconds. Tenths are enough to find the place.
fn seconds(at_us: i64) -> String {
    format!("{:.1}", std::time::Duration::from_micros(at_us.unsigned_abs()).as_secs_f64())
}

/// Returns the microseconds from `barrier` to `at`, negative when `at` comes first.
fn micros_since(barrier: Instant, at: Instant) -> i64 {
    let micros = |later: Instant, earlier: Instant| {
        i64::try_from(later.saturating_duration_since(earlier).as_micros()).unwrap_or(i64::MAX)
    };
    if at >= barrier { micros(at, barrier) } else { -micros(barrier, at) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_before_the_barrier_are_negative() {
        let barrier = Instant::now() + Duration::from_secs(5);
        assert_eq!(micros_since(barrier, barrier + Duration::from_micros(17)), 17);
        assert_eq!(micros_since(barrier, barrier), 0);
        assert_eq!(micros_since(barrier, barrier - Duration::from_micros(17)), -17);
    }
}
