//! This module has the two sequences of microbenchmarks: their names in plans, and their steps. A
//! plan chooses steps by patterns such as `point-query*` and `!scan`.

use std::sync::LazyLock;

use dbdyno_model::{named, scalar};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::microbenchmarks::options::MicroTest;

/// The order of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum MicroSequence {
    /// The 42 of the reports of 2023 and 2024.
    #[serde(rename = "42")]
    FortyTwo,
    /// The 32 of the reports since April 2025.
    #[serde(rename = "32")]
    ThirtyTwo,
}

impl MicroSequence {
    pub const ALL: [Self; 2] = [Self::FortyTwo, Self::ThirtyTwo];

    /// Returns the name of the sequence in lists.
    pub const fn title(self) -> &'static str {
        match self {
            Self::FortyTwo => "sequence 42",
            Self::ThirtyTwo => "sequence 32",
        }
    }
}

/// Reads a name. The names are numbers, so they may be written without quotes too.
impl<'de> Deserialize<'de> for MicroSequence {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, "\"42\" or \"32\"", |given| match given.text() {
            "42" => Ok(Self::FortyTwo),
            "32" => Ok(Self::ThirtyTwo),
            // The message has serde's wording, because plan errors are made from serde's messages.
            other => Err(format!("unknown variant `{other}`, expected `42` or `32`")),
        })
    }
}

named! {
    /// When in a sequence a test runs. Each text is the suffix that a step's name has after the
    /// name of its test.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Moment {
        /// Before the steps that write.
        Pre = ".pre",
        /// After the steps that write, or as one of them.
        Main = "",
        /// Only to fill caches. The result is in no summary.
        Warm = ".warm",
        /// Only to fill caches, before the steps that write.
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
    /// Returns the step's name, which is the published name, but without the range where the range
    /// distinguishes nothing: `point-query.pre`, but `random-points.pre_range=10`.
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

    /// Reads a line of a sequence: the published name, then words for the properties in which the
    /// step differs from most others.
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

/// Returns whether `name` fits `pattern`, in which `*` is any text and `?` one character.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    // A plan may write `non-index`, as in the name of the classic test.
    let pattern = pattern.replace("non-index", "nonindex");
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // `star` has the position of the last star, and how much of the name that star covers so far.
    let (mut at, mut of, mut star) = (0, 0, None);
    while of < name.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, of));
            at += 1;
        } else if pattern.get(at).is_some_and(|&wanted| wanted == '?' || wanted == name[of]) {
            at += 1;
            of += 1;
        } else if let Some((starred, taken)) = star {
            star = Some((starred, taken + 1));
            at = starred + 1;
            of = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&rest| rest == '*')
}

/// Returns whether `patterns` choose one of these names. The last pattern that fits any of them
/// decides, and a pattern with `!` decides against it. Nothing is chosen at first, unless the first
/// pattern takes names away.
pub(crate) fn chosen(patterns: &[String], names: &[&str]) -> bool {
    let at_first = patterns.first().is_some_and(|pattern| pattern.starts_with('!'));
    patterns.iter().fold(at_first, |is_chosen, pattern| {
        let (adds, pattern) =
            pattern.strip_prefix('!').map_or((true, pattern.as_str()), |rest| (false, rest));
        if names.iter().any(|name| fits(pattern, name)) { adds } else { is_chosen }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microbenchmarks::options::MicrobenchmarksOptions;

    #[test]
    fn a_sequence_needs_no_quotes_and_a_wrong_name_is_answered_with_both_right_ones() {
        let read = |value: &str, set: &[(String, String)]| {
            let text = format!(
                "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.microbenchmarks]\nsequence = {value}\n"
            );
            let plan = crate::plans::parse_with(&text, "test.toml", set);
            plan.map_or_else(
                |error| error.to_string(),
                |plan| format!("{:?}", plan.workload.options::<MicrobenchmarksOptions>().unwrap().sequence),
            )
        };
        assert_eq!([read("32", &[]), read("\"32\"", &[])], ["ThirtyTwo", "ThirtyTwo"]);
        assert_eq!(
            read("32", &[("workload.microbenchmarks.sequence".to_owned(), "42".to_owned())]),
            "FortyTwo"
        );
        let wrong = [read("\"41\"", &[]), read("41", &[]), read("true", &[])];
        insta::assert_snapshot!(wrong.join("\n"), @r#"
        test.toml:6:12: `41` is not a value of this key (did you mean `42`?); it takes 42, 32
        test.toml:6:12: `41` is not a value of this key (did you mean `42`?); it takes 42, 32
        test.toml:6:12: found boolean `true` where "42" or "32" is wanted
        "#);
    }

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
        // These are the published 32, and the two steps before the writes, which the published
        // tables leave out.
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

    #[test]
    fn a_star_fits_any_text_and_a_question_mark_one_character() {
        for (pattern, name, expected) in [
            ("scan", "scan", true),
            ("scan", "scan.warm", false),
            ("scan*", "scan.warm", true),
            ("*.pre*", "random-points.pre_range=10", true),
            ("*covered-?i", "points-notcovered-si", true),
            ("*covered-?i", "points-notcovered-pk", false),
            ("*a*b", "xxaxxaxb", true),
            ("*a*b", "xxaxxaxbx", false),
            ("", "scan", false),
            ("**", "", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_last_pattern_that_fits_decides() {
        let list = |patterns: &[&str]| patterns.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let points = list(&["point-query*", "scan", "!*.warm"]);
        assert!(chosen(&points, &["point-query.pre"]) && chosen(&points, &["scan"]));
        assert!(!chosen(&points, &["point-query.warm"]) && !chosen(&points, &["delete"]));
        let all_but = list(&["!scan*", "scan.warm"]);
        assert!(
            chosen(&all_but, &["delete"]) && chosen(&all_but, &["scan.warm"]) && !chosen(&all_but, &["scan"])
        );
        assert!(chosen(&list(&["update-inlist_range=100"]), &["update-inlist", "update-inlist_range=100"]));
    }
}
