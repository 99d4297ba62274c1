//! Words for warnings, and for the reasons why figures are not used. `warnings.toml` has a row for
//! each code, and says how it is filled in.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use dbdyno_analyse::{
    BlockShare, CheckPart, Code, DesignFault, Figure, SessionPart, SettingChange, VariantShare, Warning,
    numbered, p_text,
};

use crate::facts;
use crate::number::fixed;
use crate::parity::class_difference;
use crate::words::{self, TIMES_TABLE, blocks_text, listed};

/// Number of settings that a warning names. Further ones are only counted.
const NAMED: usize = 8;

static WORDS: LazyLock<BTreeMap<Code, String>> = LazyLock::new(|| {
    toml::from_str(include_str!("warnings.toml"))
        .expect("warnings.toml is a part of the program and is tested")
});

/// Returns the words for a code. They are empty where the table has no row, which a test excludes.
fn row(code: Code) -> &'static str {
    WORDS.get(&code).map_or("", String::as_str)
}

/// Puts a warning into one or more sentences, or a reason into a part of a sentence.
pub fn text(warning: &Warning) -> String {
    worded(warning, &row(warning.code).replace('|', ""))
}

/// Returns the first part of a reason, for a text that is too short for details and for what to do.
pub fn brief(warning: &Warning) -> String {
    worded(warning, row(warning.code).split('|').next().unwrap_or_default())
}

/// Puts reasons into words, separated by semicolons.
pub fn reasons_text(reasons: &[Warning]) -> String {
    reasons.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// Gives each warning its words as a figure `text`, for readers of JSON. Reasons inside a warning
/// get theirs too. For some figures JSON has only the words.
pub(crate) fn add_words<'a>(reasons: impl IntoIterator<Item = &'a mut Warning>) {
    for reason in reasons {
        let words = text(reason);
        for figure in reason.figures.values_mut() {
            match figure {
                Figure::Reasons(inner) => add_words(inner),
                Figure::Setting(_)
                | Figure::Changes(_)
                | Figure::Design(_)
                | Figure::Differences(_)
                | Figure::Aspect(_)
                | Figure::Value(..)
                | Figure::VariantShares(_)
                | Figure::Sessions(_) => *figure = written(figure, "").into(),
                _ => {}
            }
        }
        reason.figures.insert("text", words.into());
    }
}

fn worded(warning: &Warning, words: &str) -> String {
    let mut text = String::new();
    let mut rest = words;
    while let Some(at) = rest.find('[') {
        text.push_str(&filled(warning, &rest[..at]).0);
        let end = rest[at..].find(']').map_or(rest.len(), |end| at + end);
        let (part, is_whole) = filled(warning, &rest[at + 1..end]);
        text.push_str(if is_whole { &part } else { "" });
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    text.push_str(&filled(warning, rest).0);
    text
}

/// Puts warnings into words, each in one or more sentences.
pub fn texts<'a>(warnings: impl IntoIterator<Item = &'a Warning>) -> Vec<String> {
    warnings.into_iter().map(text).collect()
}

/// Number of warnings of one kind from which on only the first is written in full.
const ALIKE: usize = 4;

/// Puts warnings into words like [`texts`]. Where many of a kind differ only in their places and
/// figures, the first one is written in full, and the others' places follow it.
pub(crate) fn grouped_texts<'a>(warnings: impl IntoIterator<Item = &'a Warning>) -> Vec<String> {
    let mut kinds: Vec<Vec<&Warning>> = Vec::new();
    for warning in warnings {
        let is_alike = |kind: &&mut Vec<&Warning>| kind[0].code == warning.code && has_kind(kind[0]);
        match kinds.iter_mut().find(is_alike).filter(|_| has_kind(warning)) {
            Some(kind) => kind.push(warning),
            None => kinds.push(vec![warning]),
        }
    }
    let of_kind = |kind: Vec<&Warning>| match kind.as_slice() {
        [first, others @ ..] if kind.len() >= ALIKE => {
            let places: Vec<&str> = others.iter().map(|other| other.places[0].as_str()).collect();
            vec![format!("{} The same holds, with other figures, in {}.", text(first), listed(&places))]
        }
        all => texts(all.iter().copied()),
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

/// Whether another warning of the same code differs only in its place and its figures. That is not
/// so where texts or reasons are a part of it.
fn has_kind(warning: &Warning) -> bool {
    let is_own = |figure: &Figure| matches!(figure, Figure::Text(_) | Figure::Reasons(_));
    warning.places.len() == 1 && !warning.figures.values().any(is_own)
}

/// Fills figures into the words, and says whether the warning has all of these figures.
fn filled(warning: &Warning, words: &str) -> (String, bool) {
    let (mut text, mut is_whole, mut rest) = (String::new(), true, words);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let (name, how) = name.split_once(':').unwrap_or((name, ""));
        let value = match name {
            "place" => warning.places.first().cloned(),
            "last_place" => warning.places.last().cloned(),
            "times_table" => Some(TIMES_TABLE.to_owned()),
            "places" if warning.places.is_empty() => None,
            "places" if how == "listed" => Some(places_listed(warning)),
            "places" => Some(warning.places.join(", ")),
            name => warning.figures.get(name).map(|figure| written(figure, how)),
        };
        is_whole &= value.is_some();
        text.push_str(before);
        text.push_str(&value.unwrap_or_default());
        rest = after;
    }
    text.push_str(rest);
    (text, is_whole)
}

/// Lists the warning's `places`: `a, b and c`, `a, b and 7 more`.
fn places_listed(warning: &Warning) -> String {
    let more = warning.figures.get("more").map(|more| format!("{} more", written(more, "")));
    listed(&warning.places.iter().map(String::as_str).chain(more.as_deref()).collect::<Vec<_>>())
}

fn written(figure: &Figure, how: &str) -> String {
    match (figure, how) {
        (_, "if") => String::new(),
        (Figure::Text(text), "first") => text[..clause(text)].to_owned(),
        (Figure::Text(text), "rest") => text[clause(text)..].to_owned(),
        (Figure::Text(text), _) => text.clone(),
        (Figure::Parts(parts), "first") => parts.first().map_or_else(String::new, part_text),
        (Figure::Parts(parts), _) => {
            parts.iter().skip(1).map(|part| format!("; {}", part_text(part))).collect()
        }
        (Figure::Row(row), _) if row.is_empty() => "no row".to_owned(),
        (Figure::Row(row), _) => {
            let cells: Vec<&str> = row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
            format!("({})", cells.join(", "))
        }
        (Figure::Reasons(reasons), _) => reasons_text(reasons),
        (Figure::Restless(levels), _) => words::restless_text(levels),
        (Figure::Deferred(work), _) => work.iter().map(words::deferred_text).collect::<Vec<_>>().join("; "),
        (Figure::Setting(found), _) => class_difference(found),
        (Figure::Changes(changes), _) => changes_text(changes),
        (Figure::VariantShares(shares), _) => shares.iter().map(variant_share).collect::<Vec<_>>().join(", "),
        (Figure::Sessions(parts), _) => parts.iter().map(session_part).collect::<Vec<_>>().join(", "),
        (Figure::Design(fault), _) => design_fault(fault),
        (Figure::Differences(all), _) => facts::difference_phrases(all),
        (Figure::Aspect(aspect), _) => facts::aspect_name(aspect),
        (Figure::Value(aspect, value), _) => facts::aspect_text(aspect, value.as_deref()),
        (Figure::Blocks(blocks), _) => blocks_text(blocks),
        (Figure::Shares(shares), _) => shares.iter().map(share_text).collect::<Vec<_>>().join(", "),
        (Figure::Count(1), "times") => "once".to_owned(),
        (Figure::Count(count), "times") => format!("{count} times"),
        (Figure::Count(count), "") => count.to_string(),
        (Figure::Count(count), noun) => numbered(*count, noun),
        (Figure::Number(number), "p") => p_text(*number),
        (Figure::Number(number), how) => {
            let decimals = how.trim_end_matches('%').parse().unwrap_or(0);
            fixed(Some(if how.ends_with('%') { 100.0 * number } else { *number }), decimals)
        }
    }
}

/// Returns words such as `3 cells from 2026-03-01 12:00:59 UTC`. Records have the form
/// `2026-03-01T12:00:59.123Z`.
fn session_part(part: &SessionPart) -> String {
    let from = match (part.from.get(..10), part.from.get(11..19)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => part.from.clone(),
    };
    format!("{} from {from}", numbered(part.cells as u64, "cell"))
}

/// Returns words such as `wal 47 to 82 %`.
fn variant_share(share: &VariantShare) -> String {
    let [lowest, highest] = [share.lowest, share.highest].map(|share| format!("{:.0}", 100.0 * share));
    let range = if lowest == highest { lowest } else { format!("{lowest} to {highest}") };
    format!("{} {range} %", share.variant)
}

/// Returns words such as `sync_binlog "1", then "0"; 2 more`.
fn changes_text(changes: &[SettingChange]) -> String {
    let value = |value: &Option<String>| format!("{:?}", value.as_deref().unwrap_or("not there"));
    let change = |change: &SettingChange| {
        format!("{} {}, then {}", change.name, value(&change.first), value(&change.other))
    };
    let more = changes.len().saturating_sub(NAMED);
    let named = changes.iter().take(NAMED).map(change);
    named.chain((more > 0).then(|| format!("{more} more"))).collect::<Vec<_>>().join("; ")
}

fn design_fault(fault: &DesignFault) -> String {
    match fault {
        DesignFault::BaseWithoutFactors { base } => format!("the base {base} has no factors"),
        DesignFault::OtherFactors { variant, base } => {
            format!("{variant} and {base} do not name the same factors")
        }
        DesignFault::OneLevel { factor } => format!("factor {factor} has one level only"),
        DesignFault::Combinations { variants, different, all } => format!(
            "{variants} variants with {different} different combinations of levels, where all \
             combinations are {all}"
        ),
    }
}

/// Returns the position at which the first clause of a text ends.
fn clause(text: &str) -> usize {
    ["; ", " ("].into_iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len())
}

fn part_text(part: &CheckPart) -> String {
    format!("{} is {}, must be {}", part.name, part.actual, part.expected)
}

/// Returns words such as `b l.i0 in 2 of 3 blocks`.
fn share_text(share: &BlockShare) -> String {
    format!("{} in {} of {}", share.place, share.blocks, numbered(share.of as u64, "block"))
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::parity::ClassDifference;
    use dbdyno_analyse::{Aspect, RestlessLevel, WorkLeft};

    use super::*;

    /// Makes a warning that has a fitting figure for every name in braces.
    fn example(code: Code) -> Warning {
        let mut warning = Warning::new(code).at("block 1 wal l.i0").at("block 2 wal l.i0");
        for part in row(code).split('{').skip(1) {
            let name: &'static str = part.split('}').next().unwrap_or_default();
            let (name, how) = name.split_once(':').unwrap_or((name, ""));
            warning = match how {
                "p" => warning.with(name, 0.012),
                how if how.starts_with(|c: char| c.is_ascii_digit()) => warning.with(name, 0.125),
                "" if name.ends_with("blocks") => warning.with(name, &[2, 5][..]),
                "" if [
                    "ended",
                    "planned",
                    "missing",
                    "runs",
                    "all",
                    "of",
                    "missed",
                    "failed",
                    "operations",
                    "could_connections",
                    "due",
                    "accounted",
                    "waiting",
                    "in_flight",
                    "sent",
                    "timed",
                    "done",
                    "late_us",
                    "clock_error_us",
                    "limit_us",
                    "times",
                    "looks",
                    "series",
                    "min_runs",
                    "min_runs_of_all",
                    "more",
                ]
                .contains(&name) =>
                {
                    warning.with(name, 3_u32)
                }
                "" | "first" | "rest" => warning.with(name, format!("<{name}>")),
                _ => warning.with(name, 3_u32),
            };
        }
        warning
    }

    #[test]
    fn the_words_of_every_warning() {
        let lines: Vec<String> =
            Code::ALL.iter().map(|code| format!("{code:?}: {}", text(&example(*code)))).collect();
        assert!(!lines.iter().any(|line| line.contains(['{', '}', '[', '|'])), "{lines:#?}");
        assert_eq!(WORDS.len(), Code::ALL.len(), "every code has a row");
        insta::assert_snapshot!("warnings", lines.join("\n"));
    }

    #[test]
    fn a_setting_that_differs_has_only_its_words_in_json() {
        let found = ClassDifference { title: "page size".to_owned(), values: Vec::new() };
        let mut warning = Warning::new(Code::SettingsDiffer).with("difference", found);
        assert_eq!(text(&warning), "Different settings: page size: .");
        add_words([&mut warning]);
        assert_eq!(warning.figures["difference"], Figure::from("page size: "));
    }

    #[test]
    fn a_different_start_is_in_words_for_readers_of_text_and_of_json() {
        let memory = |value: Option<&str>| (Aspect::StartedMemory, value.map(str::to_owned));
        let mut warning = Warning::new(Code::StartedOtherwise).at("a").at("b");
        warning = warning.with("what", Aspect::StartedMemory);
        warning = warning.with("base", memory(None)).with("new", memory(Some("2 GiB")));
        assert_eq!(text(&warning), "Different start: server memory: not limited (a), 2 GiB (b).");
        add_words([&mut warning]);
        let words = ["what", "base", "new"].map(|name| warning.figures[name].clone());
        assert_eq!(words, ["server memory", "not limited", "2 GiB"].map(Figure::from));
    }

    #[test]
    fn a_part_of_a_block_has_its_cells_and_the_second_in_which_it_began() {
        let of = |cells, from: &str| session_part(&SessionPart { cells, from: from.to_owned() });
        assert_eq!(of(1, "2026-03-01T12:00:59.5Z"), "1 cell from 2026-03-01 12:00:59 UTC");
        assert_eq!(of(2, "noon"), "2 cells from noon");
    }

    #[test]
    fn shares_that_are_written_alike_are_written_once() {
        let of = |lowest, highest| variant_share(&VariantShare { variant: "a".to_owned(), lowest, highest });
        assert_eq!([of(0.47, 0.82), of(0.031, 0.0349)], ["a 47 to 82 %", "a 3 %"]);
    }

    #[test]
    fn changed_settings_are_named_up_to_a_number() {
        let change = |name: &str, first: Option<&str>, other: Option<&str>| SettingChange {
            name: name.to_owned(),
            first: first.map(str::to_owned),
            other: other.map(str::to_owned),
        };
        let mut changes = vec![change("old", Some("1"), None), change("new", None, Some("ON"))];
        assert_eq!(changes_text(&changes), r#"old "1", then "not there"; new "not there", then "ON""#);
        changes.extend((3..=10).map(|n| change(&format!("s{n:02}"), Some("1"), Some("2"))));
        let text = changes_text(&changes);
        assert!(text.ends_with(r#"s08 "1", then "2"; 2 more"#), "{text}");
    }

    #[test]
    fn each_fault_of_a_design_has_its_words() {
        let own = str::to_owned;
        let faults = [
            DesignFault::BaseWithoutFactors { base: own("x") },
            DesignFault::OtherFactors { variant: own("y"), base: own("x") },
            DesignFault::OneLevel { factor: own("a") },
            DesignFault::Combinations { variants: 2, different: 2, all: 4 },
        ];
        let lines: Vec<String> = faults.iter().map(design_fault).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        the base x has no factors
        y and x do not name the same factors
        factor a has one level only
        2 variants with 2 different combinations of levels, where all combinations are 4
        ");
    }

    #[test]
    fn a_reason_has_a_full_and_a_brief_form() {
        let both = |reason: Warning| format!("{}\n{}", brief(&reason), text(&reason));
        let part = |name: &str, actual| CheckPart { name: name.to_owned(), expected: 13, actual };
        let differs = Warning::reason(Code::ContentDiffers).at("pi1");
        insta::assert_snapshot!(both(differs.with("parts", vec![part("rows", 12), part("sum(price)", -4)])), @r"
        table pi1: rows is 12, must be 13
        table pi1: rows is 12, must be 13; sum(price) is -4, must be 13
        ");
        let row = vec![Some("FRANCE".to_owned()), None];
        let answer = Warning::reason(Code::AnswerDiffers).with("query", "q5").with("base", "a");
        let answer = answer.with("begins", row).with("base_begins", Vec::<Option<String>>::new());
        insta::assert_snapshot!(both(answer), @r"
        the answer of q5 is not that of a
        the answer of q5 is not that of a: it begins with (FRANCE, NULL), that of a with no row; the record holds both
        ");
        let busy = Warning::reason(Code::ClientBusy).with("share", 0.97).with("on_cpu", 0.95);
        insta::assert_snapshot!(both(busy.with("waiting", 0.02).with("limit", 0.9)), @r"
        the client was the limit: its busiest load thread had work in 97 % of the window
        the client was the limit: its busiest load thread had work in 97 % of the window (on a CPU in 95 %, waiting for one in 2 %; 90 % or more makes a step invalid); give the client more CPUs (host.client_cpus) or threads (host.client_threads), or the server fewer
        ");
        insta::assert_snapshot!(both(Warning::quoted("sampling failed: no room (ENOSPC); see the log.")), @r"
        sampling failed: no room
        sampling failed: no room (ENOSPC); see the log
        ");
        insta::assert_snapshot!(both(Warning::quoted("clock jumped")), @r"
        clock jumped
        clock jumped
        ");
    }

    #[test]
    fn reasons_and_levels_are_parts_of_a_sentence() {
        let invalid = Warning::new(Code::InvalidSteps).at("1 a l.i1").with("runs", 4_u32).with("all", 60_u32);
        let invalid = invalid.with("steps", 2_u32).with("variants", 1_u32).with("more_alike", 3_u32);
        let invalid =
            invalid.with("reasons", vec![Warning::reason(Code::NoWindow), Warning::quoted("clock jumped")]);
        let level =
            RestlessLevel { level: "dirty_bytes".to_owned(), value: 120_000_000, quiet_at: 2_600_000 };
        let restless = Warning::reason(Code::Restless).with("seconds", 60.0).with("levels", vec![level]);
        let unsettled = Warning::new(Code::Unsettled).at("1 a l.i1").with("why", vec![restless]);
        let work = WorkLeft {
            level: "dead_rows".to_owned(),
            more: 17,
            share: None,
            written_bytes: None,
            from: "l.i1".to_owned(),
            to: "l.i2".to_owned(),
        };
        let deferred =
            Warning::new(Code::DeferredWork).at("a").with("levels", vec![work]).with("more", 2_u32);
        insta::assert_snapshot!(texts(&[invalid, unsettled, deferred]).join("\n"), @r"
        Invalid, not used: 4 of 60 runs of steps (2 steps, 1 variant), first 1 a l.i1: no common window was recorded; clock jumped; and 3 more like these. Each is named at its step.
        In 1 a l.i1, the server did not settle within 60 s: dirty pages 120.0 MB (quiet at 2.6 MB). That work ran during the steps after it.
        a deferred work to later steps: 17 more dead rows from l.i1 to l.i2; and 2 more steps. Details: tables `Deferred work`.
        ");
    }

    #[test]
    fn of_many_warnings_of_a_kind_only_the_first_is_written_in_full() {
        let missed = |place: &str, reached: f64| {
            Warning::new(Code::ScheduleMissed).at(place).with("reached", reached).with("asked", 1_000.0)
        };
        let mut all = vec![missed("b l.i0", 476.0), missed("b l.i1", 500.0), missed("c l.i0", 600.0)];
        assert_eq!(grouped_texts(&all), texts(&all));
        all.push(Warning::new(Code::Resumed).with("times", 1_u32));
        all.push(missed("c l.i1", 700.0));
        let grouped = grouped_texts(&all);
        assert_eq!(grouped.len(), 2, "{grouped:?}");
        assert!(grouped[0].starts_with("b l.i0: the schedule was not kept: 476/s"), "{grouped:?}");
        let end = "The same holds, with other figures, in b l.i1, c l.i0 and c l.i1.";
        assert!(grouped[0].ends_with(end), "{grouped:?}");
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let missed =
            Warning::new(Code::ScheduleMissed).at("b l.i0").with("reached", 476.0).with("asked", 1_000.0);
        let dropped = missed.clone().with("dropped", 0.524);
        insta::assert_snapshot!(text(&missed), @"b l.i0: the schedule was not kept: 476/s of 1,000/s were reached; response times are of answered operations only.");
        insta::assert_snapshot!(text(&dropped), @"b l.i0: the schedule was not kept: 476/s of 1,000/s were reached, 52.4 % of the operations dropped; response times are of answered operations only.");
        insta::assert_snapshot!(text(&Warning::new(Code::Resumed).with("times", 1_u32)), @"The run was stopped and resumed once.");
    }
}
