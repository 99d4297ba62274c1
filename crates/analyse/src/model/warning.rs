//! Types for a run's warnings and for the reasons why figures are not used. They hold data only;
//! the report crate writes the sentences.

use std::collections::BTreeMap;

use dbdyno_record::CheckPart;
use serde::{Deserialize, Serialize};

use crate::model::comparison::{Aspect, Difference};
use crate::parity::ClassDifference;

/// One warning of a run, or one reason why a step's figures in one block are not used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Warning {
    pub code: Code,
    pub severity: Severity,
    /// Where the warning holds, or what it is about: `block 1 wal l.i0`, `wal`, a table. The worst
    /// or the first place comes first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<&'static str, Figure>,
}

/// One value in a warning or a reason: a number, a text, or a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Figure {
    Count(u64),
    Number(f64),
    Text(String),
    Blocks(Vec<u32>),
    Shares(Vec<BlockShare>),
    /// The parts of a content check that differ from what they must be.
    Parts(Vec<CheckPart>),
    /// A row of an answer. It is empty where the answer has no such row.
    Row(Vec<Option<String>>),
    Reasons(Vec<Warning>),
    Restless(Vec<RestlessLevel>),
    Deferred(Vec<WorkLeft>),
    /// A class of settings in which two variants differ.
    Setting(ClassDifference),
    Design(DesignFault),
    Differences(Vec<Difference>),
    /// The property that differs. Its values are separate figures (`Value`), because a sentence
    /// puts the property and each value in different positions.
    Aspect(Aspect),
    Value(Aspect, Option<String>),
    Changes(Vec<SettingChange>),
    VariantShares(Vec<VariantShare>),
    /// The parts of a block that was interrupted and resumed.
    Sessions(Vec<SessionPart>),
}

/// The cells of a block that were begun by one invocation of dbdyno on the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionPart {
    pub cells: usize,
    /// When the first of these cells began, as the record has it.
    pub from: String,
}

/// Lowest and highest share over a variant's runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VariantShare {
    pub variant: String,
    pub lowest: f64,
    pub highest: f64,
}

/// A setting whose value differed between two starts of a server. `None` where the server did not
/// have the setting at that start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingChange {
    pub name: String,
    pub first: Option<String>,
    pub other: Option<String>,
}

/// What keeps variants with factors from being a full factorial design.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DesignFault {
    BaseWithoutFactors {
        base: String,
    },
    OtherFactors {
        variant: String,
        base: String,
    },
    OneLevel {
        factor: String,
    },
    /// The variants do not have each combination of levels exactly once.
    Combinations {
        variants: usize,
        different: usize,
        all: usize,
    },
}

/// A level of deferred work that was still above `quiet_at` when the settling time ended. Up to
/// `quiet_at` it counts as quiet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestlessLevel {
    pub level: String,
    pub value: i64,
    pub quiet_at: i64,
}

/// How much a level of deferred work grew in a step. The next step had to do this work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkLeft {
    pub level: String,
    pub more: i64,
    /// Share of the bytes that were written in the step.
    pub share: Option<f64>,
    pub written_bytes: Option<i64>,
    pub from: String,
    pub to: String,
}

/// A step of a variant, and the number of its blocks in which something holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockShare {
    pub place: String,
    pub blocks: usize,
    pub of: usize,
}

macro_rules! codes {
    ($($code:ident),*) => {
        /// What a warning or a reason is about. The report has the words for each code in a table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Code {
            $($code),*
        }

        impl Code {
            pub const ALL: &[Self] = &[$(Self::$code),*];
        }
    };
}

codes! {
    DebugBuild, UnknownBase, RunGoingOn, CellFailed, CellInterrupted, CellUnfinished,
    CellRepeated, CellToRepeat, CellsMissing, RecordsMissing, CellRecordsMissing, Resumed,
    BlockResumed, DamagedRecord, InvalidStep, InvalidSteps, ZeroRate, Stalled, BaseStalled,
    TargetMissed, TargetMissedByClient, TargetMissedInBlocks, ScheduleMissed, OutageOfSchedule,
    OutageOfClosedLoop, ClientPause, QueryCache, AnsweredByCache, ShortSteps,
    EmptyWrites, Unsettled, DeferredWork,
    FailedOperations, Recorded, RecordedOften, ServerChanged, SettingsChanged, Encryption,
    Configuration, ExternalServer, ExternalServerSeen, Embedded, NoDatabase, SharedCpus,
    UnpinnedCpus, FsyncsUncounted, CalibrationWrong, Sampling, HostCpuUnseen,
    HostCpuUncounted, OtherReads, Steal, ClientWait, ForeignCpu, ForeignLoad, ThrottledLittle, ClockSetOn,
    ClockSetBack, ControlDiffers, RatesRise, RatesFall,
    RateRises, RateFalls, OneBlock, OneBlockMeasured, NoDesign, NotCold,
    MachinesDiffer, OddMachine,
    NotComparable, TwoRuns, ChangedBetweenRuns, StartedOtherwise, DebugBuildCompared, SeveralTools,
    WithoutChecksums, SettingsDiffer, InterimAnalyses,
    AnalysedWhileGoingOn, NewAnsweredNothing, BaseAnsweredNothing, NewMissedTarget, BothOnSchedule,
    NewMissedSchedule, OneBlockCompared,
    LeftOutGoingOn, UnlikeFirst, ChangedWithRun, TimesFollowed, DroppedToZero, TooFewRuns,
    // These are reasons, and what other warnings quote.
    Quoted, DamagedStep, NoWindow, ContentDiffers, OperationsLost, OperationsOpen, IntervalsEmpty,
    IntervalsMissing, IntervalsGap, IntervalsTwice, IntervalsShort, OperationsUnlike,
    ConnectionsUnlike, NoBarrier, TimesUnlike, StatementTimesUnlike, Paused, AnswerDiffers,
    OperationsFailed, LittlesLaw, ClientBusy, ClientWaited, ClientAtItsRate, ClientLate, ClientHostBusy,
    ClientHostLate, WarmupBacklog, Restless, Throttled, ClientHostThrottled
}

/// What a warning does to the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Figures are missing or must not be used.
    Invalid,
    /// Figures hold, but a reader must know something else to read them.
    Caution,
}

impl Warning {
    pub fn new(code: Code) -> Self {
        Self { code, severity: Severity::Caution, places: Vec::new(), figures: BTreeMap::new() }
    }

    /// A reason why figures must not be used.
    pub fn reason(code: Code) -> Self {
        Self { severity: Severity::Invalid, ..Self::new(code) }
    }

    /// A reason that is known as text only, such as one in a record.
    pub fn quoted(text: &str) -> Self {
        Self::reason(Code::Quoted).with("text", text.trim_end().trim_end_matches('.'))
    }

    /// Whether the two are the same reason, though places and figures may differ.
    pub fn is_like(&self, other: &Self) -> bool {
        self.code == other.code && self.words() == other.words()
    }

    /// The texts of its figures, without numbers.
    fn words(&self) -> Vec<(&'static str, String)> {
        let words = |figure: &Figure| match figure {
            Figure::Text(text) => Some(without_numbers(text)),
            Figure::Parts(parts) => {
                Some(parts.iter().map(|part| part.name.as_str()).collect::<Vec<_>>().join(", "))
            }
            _ => None,
        };
        self.figures.iter().filter_map(|(name, figure)| Some((*name, words(figure)?))).collect()
    }

    /// Whether both lists have the same length and entries at the same position are alike.
    pub fn are_alike(some: &[Self], others: &[Self]) -> bool {
        some.len() == others.len() && some.iter().zip(others).all(|(one, other)| one.is_like(other))
    }

    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.places.push(place.into());
        self
    }

    #[must_use]
    pub fn at_all<P: Into<String>>(mut self, places: impl IntoIterator<Item = P>) -> Self {
        self.places.extend(places.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, figure: impl Into<Figure>) -> Self {
        self.figures.insert(name, figure.into());
        self
    }

    #[must_use]
    pub fn with_some(self, name: &'static str, figure: Option<impl Into<Figure>>) -> Self {
        match figure {
            Some(figure) => self.with(name, figure),
            None => self,
        }
    }
}

/// Replaces each number by `#`, as in `table #: rows is #, expected #`.
fn without_numbers(text: &str) -> String {
    let is_of_number = |character: char| character.is_ascii_digit() || matches!(character, '.' | ',');
    let mut rest = text;
    let mut found = String::with_capacity(text.len());
    while let Some(at) = rest.find(|character: char| character.is_ascii_digit()) {
        found.push_str(&rest[..at]);
        found.push('#');
        let end = rest[at..].find(|character| !is_of_number(character)).map_or(rest.len(), |end| at + end);
        rest = &rest[at + rest[at..end].trim_end_matches(['.', ',']).len()..];
    }
    found + rest
}

macro_rules! figures {
    ($($from:ty: $figure:expr;)*) => {
        $(impl From<$from> for Figure {
            fn from(value: $from) -> Self {
                $figure(value)
            }
        })*
    };
}

figures! {
    u64: Self::Count;
    u32: |count| Self::Count(u64::from(count));
    usize: |count| Self::Count(count as u64);
    f64: Self::Number;
    String: Self::Text;
    &str: |text: &str| Self::Text(text.to_owned());
    &[u32]: |blocks: &[u32]| Self::Blocks(blocks.to_vec());
    Vec<BlockShare>: Self::Shares;
    Vec<CheckPart>: Self::Parts;
    Vec<Option<String>>: Self::Row;
    Vec<Warning>: Self::Reasons;
    Vec<RestlessLevel>: Self::Restless;
    Vec<WorkLeft>: Self::Deferred;
    ClassDifference: Self::Setting;
    DesignFault: Self::Design;
    Vec<Difference>: Self::Differences;
    Aspect: Self::Aspect;
    (Aspect, Option<String>): |(aspect, value)| Self::Value(aspect, value);
    Vec<SettingChange>: Self::Changes;
    Vec<VariantShare>: Self::VariantShares;
    Vec<SessionPart>: Self::Sessions;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_in_numbers_are_one_reason() {
        assert_eq!(
            without_numbers("waited in 10.5 % of 1,234 (block 2), not more."),
            "waited in # % of # (block #), not more."
        );
        assert_eq!(without_numbers("97 %, 3"), without_numbers("8 %, 100.25"));
        let like = |one, other| Warning::quoted(one).is_like(&Warning::quoted(other));
        assert!(like("table 1: 5 rows", "table 2: 60,000 rows."));
        assert!(!like("the client was late: 1 ms", "the client was the limit: 1 ms"));
        assert!(!Warning::quoted("").is_like(&Warning::reason(Code::NoWindow)));
        let failed =
            |error| Warning::reason(Code::OperationsFailed).with("failed", 7_u64).with("error", error);
        assert!(failed("duplicate key 12").is_like(&failed("duplicate key 7")));
        assert!(!failed("duplicate key").is_like(&failed("disk full")), "other causes");
    }
}
