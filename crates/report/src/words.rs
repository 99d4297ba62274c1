//! Words that several tables and sentences share. The tables' own words come from `tables.toml`,
//! and words for levels of deferred work, with their units, from `levels.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use dbdyno_analyse::{
    MIN_SECONDS, ReachedRate, RestlessLevel, StepFindings, TooFewOperations, Undecided, VariantStep,
    WorkLeft, ZeroRates, is_in_bytes, keeps_target, min_accepted,
};

use crate::document::Table;
use crate::number::fixed;

static TABLES: LazyLock<BTreeMap<String, Table>> = LazyLock::new(|| {
    toml::from_str(include_str!("tables.toml")).expect("tables.toml is a part of the program and is tested")
});

/// Returns the table with this id, without rows.
pub(crate) fn table(id: &str) -> Table {
    TABLES.get(id).cloned().unwrap_or_else(|| panic!("tables.toml has no table {id}"))
}

/// Returns the table with this id for a step, whose units are those of the step.
pub(crate) fn table_of(step: &StepFindings, id: &str) -> Table {
    let mut table = table(id);
    let units = table.columns.iter_mut().map(|column| &mut column.unit);
    units.chain([&mut table.note]).for_each(|text| *text = text.replace("{unit}", &step.rate_label));
    table
}

/// Title of the table in which a step shows its response times.
pub(crate) const TIMES_TABLE: &str = "Service and response time";

/// Titles of the tables of ratios: for rates, for times, and as published. The page's script finds the table by
/// its title.
pub(crate) const RATIO_TABLES: [&str; 3] = ["Relative throughput", "Relative seconds", RELATIVE_QPS];

/// Title of the table of ratios of rates in the style of published reports.
pub(crate) const RELATIVE_QPS: &str = "Relative QPS";

/// Lists names as `a, b and c`.
pub(crate) fn listed(names: &[&str]) -> String {
    match names {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.concat(),
    }
}

/// Returns words such as `block 2`, `blocks 2 and 5`.
pub(crate) fn blocks_text(blocks: &[u32]) -> String {
    let numbers: Vec<String> = blocks.iter().map(u32::to_string).collect();
    let names: Vec<&str> = numbers.iter().map(String::as_str).collect();
    format!("{} {}", if blocks.len() == 1 { "block" } else { "blocks" }, listed(&names))
}

fn whole(rate: f64) -> String {
    fixed(Some(rate), 0)
}

/// Returns words such as `476/s of 3,000/s were reached, 84.1 % of the operations dropped`.
pub(crate) fn reached_rate_text(reached_rate: ReachedRate) -> String {
    let mut text =
        format!("{}/s of {}/s were reached", whole(reached_rate.reached), whole(reached_rate.asked));
    if reached_rate.dropped_share > 0.0 {
        text.push_str(&format!(", {:.1} % of the operations dropped", 100.0 * reached_rate.dropped_share));
    }
    if reached_rate.queue_share > 0.0 {
        text.push_str(&format!(
            ", the queue grew by {:.1} % of the operations",
            100.0 * reached_rate.queue_share
        ));
    }
    text
}

/// Returns words such as `answered nothing in blocks 2 and 5 of 6, in which wal answered`. It is
/// `None` where both answered in every block.
pub(crate) fn zero_rate_text(found: &ZeroRates, base: &str) -> Option<String> {
    let own = (!found.stalled.is_empty()).then(|| {
        let blocks = blocks_text(&found.stalled);
        format!("answered nothing in {blocks} of {}, in which {base} answered", found.blocks)
    });
    let of_base = (!found.base_stalled.is_empty())
        .then(|| format!("{base} answered nothing in {}", blocks_text(&found.base_stalled)));
    let parts: Vec<String> = own.into_iter().chain(of_base).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Says why a comparison is undecided that more blocks would not decide.
pub(crate) fn undecided_text(why: &Undecided) -> String {
    match why {
        Undecided::BelowClock => {
            format!("a time below {MIN_SECONDS} s is below what the clock resolves: no ratio is formed")
        }
        Undecided::TooFewOperations(TooFewOperations { operations, needed, enough_seconds }) => format!(
            "too few operations: {operations:.1} in the window; {needed:.0} would be enough, which takes {enough_seconds:.0} s"
        ),
        Undecided::ForeignLoad(load) => {
            let [base, new] = [load.base_share, load.new_share].map(|share| 100.0 * share);
            format!(
                "other programs took {new:.0} % of the CPU time that server or client could have had, \
                 and {base:.0} % next to the base"
            )
        }
        Undecided::BaseStalled => "the base answered nothing in some blocks".to_owned(),
    }
}

/// Says how far a variant stayed below its background rate. It is `None` where it kept the rate.
pub(crate) fn missed_text(step: &StepFindings, variant: &VariantStep) -> Option<String> {
    let (target, share) = step.target.filter(|_| step.misses(variant))?;
    let (judged, rate) = (variant.judged_background_rate?, variant.background_rate?);
    let [shown, target_text] = [rate, target].map(whole);
    let text = if keeps_target(rate, target, share) {
        let [part, min] = [judged / target, share].map(|share| (100.0 * share).floor());
        format!(
            "background inserts {shown}/s of {target_text}/s, and the slowest client {part:.0} % of its part, \
             at least {min:.0} % needed"
        )
    } else {
        let min = whole(min_accepted(target, share));
        format!("background inserts {shown}/s, at least {min}/s of {target_text}/s needed")
    };
    let blocks = some_blocks(variant).map(|blocks| format!("; missed in {blocks}"));
    Some(text + &blocks.unwrap_or_default())
}

/// Says in how many blocks a variant missed the background rate, where the median over all blocks
/// kept it. It is `None` where it missed the rate in no block.
pub(crate) fn missed_blocks_text(step: &StepFindings, variant: &VariantStep) -> Option<String> {
    let blocks = some_blocks(variant).filter(|_| !step.misses(variant))?;
    Some(format!("the background rate was missed in {blocks}, and kept by the median"))
}

/// Returns the number of blocks that missed the target, such as `2 of 5 blocks`. It is `None` for
/// none and for all.
fn some_blocks(variant: &VariantStep) -> Option<String> {
    let missed = variant.target_missed_blocks.len();
    let all = variant.valid_runs().count();
    (0 < missed && missed < all).then(|| format!("{missed} of {all} blocks"))
}

static LEVELS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    toml::from_str(include_str!("levels.toml")).expect("levels.toml is a part of the program and is tested")
});

pub(crate) fn level_words(level: &str) -> &str {
    LEVELS.get(level).map_or(level, String::as_str)
}

/// Returns words such as `dirty pages 120.0 MB (quiet at 2.6 MB), dead rows 17 (quiet at 5)`.
pub(crate) fn restless_text(levels: &[RestlessLevel]) -> String {
    let level = |RestlessLevel { level, value: last, quiet_at }: &RestlessLevel| {
        format!("{} {} (quiet at {})", level_words(level), value(level, *last), value(level, *quiet_at))
    };
    match levels {
        [] => "below its bounds only briefly".to_owned(),
        levels => levels.iter().map(level).collect::<Vec<_>>().join(", "),
    }
}

/// Returns words such as `512.0 MB more dirty pages (41 % of the 1250.0 MB written) from l.i1 to
/// l.i2`.
pub(crate) fn deferred_text(work: &WorkLeft) -> String {
    let WorkLeft { level, more, share, written_bytes, from, to } = work;
    // A share of next to nothing says nothing.
    let written = written_bytes.filter(|bytes| *bytes >= 1_000_000);
    let share = share.zip(written).map_or_else(String::new, |(share, written)| {
        let written = megabytes(written);
        match share > 1.0 {
            true => format!(" (more than the {written} written)"),
            false => format!(" ({:.0} % of the {written} written)", 100.0 * share),
        }
    });
    format!("{} more {}{share} from {from} to {to}", value(level, *more), level_words(level))
}

/// Writes the value: `512.0 MB` for a level in bytes, `17` for any other.
fn value(level: &str, value: i64) -> String {
    if is_in_bytes(level) { megabytes(value) } else { value.to_string() }
}

/// Writes bytes as megabytes of 10^6 bytes.
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
        insta::assert_snapshot!(restless_text(&levels), @"dirty pages 120.0 MB (quiet at 2.6 MB), transactions to purge 17 (quiet at 5)");
        assert_eq!((level_words("dead_rows"), level_words("unheard_of")), ("dead rows", "unheard_of"));
    }

    #[test]
    fn work_that_was_left_has_its_share_of_what_was_written_where_that_is_known() {
        let (from, to) = ("l.i0".to_owned(), "qr100".to_owned());
        let (share, written_bytes) = (Some(0.5), Some(1_024_000_000));
        let level = "dirty_bytes".to_owned();
        let work = WorkLeft { level, more: 512_000_000, share, written_bytes, from, to };
        insta::assert_snapshot!(deferred_text(&work), @"512.0 MB more dirty pages (50 % of the 1024.0 MB written) from l.i0 to qr100");
        let max = WorkLeft { share: Some(2.0), written_bytes: Some(256_000_000), ..work.clone() };
        insta::assert_snapshot!(deferred_text(&max), @"512.0 MB more dirty pages (more than the 256.0 MB written) from l.i0 to qr100");
        let unseen = WorkLeft { share: None, written_bytes: None, ..work };
        insta::assert_snapshot!(deferred_text(&unseen), @"512.0 MB more dirty pages from l.i0 to qr100");
    }
}
