//! Words for levels of deferred work, with their units.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use dbdyno_analyse::{RestlessLevel, WorkLeft, is_in_bytes};

static WORDS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    toml::from_str(include_str!("levels.toml")).expect("levels.toml is a part of the program and is tested")
});

pub(crate) fn words(level: &str) -> &str {
    WORDS.get(level).map_or(level, String::as_str)
}

/// Words such as `dirty pages 120.0 MB (quiet at 2.6 MB), dead rows 17 (quiet at 5)`.
pub(crate) fn restless(levels: &[RestlessLevel]) -> String {
    let level = |RestlessLevel { level, value: last, quiet_at }: &RestlessLevel| {
        format!("{} {} (quiet at {})", words(level), value(level, *last), value(level, *quiet_at))
    };
    match levels {
        [] => "below its bounds only briefly".to_owned(),
        levels => levels.iter().map(level).collect::<Vec<_>>().join(", "),
    }
}

/// Words such as `512.0 MB more dirty pages (41 % of the 1250.0 MB written) from l.i1 to l.i2`.
pub(crate) fn deferred(work: &WorkLeft) -> String {
    let WorkLeft { level, more, share, written_bytes, from, to } = work;
    let share = share.zip(*written_bytes).map_or_else(String::new, |(share, written)| {
        let written = megabytes(written);
        match share > 1.0 {
            true => format!(" (more than the {written} written)"),
            false => format!(" ({:.0} % of the {written} written)", 100.0 * share),
        }
    });
    format!("{} more {}{share} from {from} to {to}", value(level, *more), words(level))
}

/// The value: `512.0 MB` for a level in bytes, `17` for any other.
fn value(level: &str, value: i64) -> String {
    if is_in_bytes(level) { megabytes(value) } else { value.to_string() }
}

/// Bytes as megabytes of 10^6 bytes.
fn megabytes(bytes: i64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(level: &str, value: i64, quiet_at: i64) -> RestlessLevel {
        RestlessLevel { level: level.to_owned(), value, quiet_at }
    }

    #[test]
    fn bytes_are_megabytes_and_counts_stay_counts() {
        let levels = [level("dirty_bytes", 120_000_000, 2_600_000), level("history_list_length", 17, 5)];
        insta::assert_snapshot!(restless(&levels), @"dirty pages 120.0 MB (quiet at 2.6 MB), transactions to purge 17 (quiet at 5)");
        assert_eq!((words("dead_rows"), words("unheard_of")), ("dead rows", "unheard_of"));
    }

    #[test]
    fn work_that_was_left_has_its_share_of_what_was_written_where_that_is_known() {
        let (from, to) = ("l.i0".to_owned(), "qr100".to_owned());
        let (share, written_bytes) = (Some(0.5), Some(1_024_000_000));
        let level = "dirty_bytes".to_owned();
        let work = WorkLeft { level, more: 512_000_000, share, written_bytes, from, to };
        insta::assert_snapshot!(deferred(&work), @"512.0 MB more dirty pages (50 % of the 1024.0 MB written) from l.i0 to qr100");
        let most = WorkLeft { share: Some(2.0), written_bytes: Some(256_000_000), ..work.clone() };
        insta::assert_snapshot!(deferred(&most), @"512.0 MB more dirty pages (more than the 256.0 MB written) from l.i0 to qr100");
        let unseen = WorkLeft { share: None, written_bytes: None, ..work };
        insta::assert_snapshot!(deferred(&unseen), @"512.0 MB more dirty pages from l.i0 to qr100");
    }
}
