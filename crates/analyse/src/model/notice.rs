//! What a reader must know before the figures, as data. The words are in the report.

use std::collections::BTreeMap;

use serde::Serialize;

/// One warning of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Notice {
    pub code: Code,
    pub severity: Severity,
    /// Where it holds, or who it is about: `block 1 wal l.i0`, `wal`. The worst or the first comes
    /// first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<&'static str, Figure>,
}

/// What a warning says: a number, or a text quoted from a server or a record.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Figure {
    Count(u64),
    Number(f64),
    Text(String),
    /// Numbers of blocks.
    Blocks(Vec<u32>),
    Shares(Vec<BlockShare>),
}

/// A place with how many of its blocks something holds for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockShare {
    pub place: String,
    pub blocks: usize,
    pub of: usize,
}

macro_rules! codes {
    ($($code:ident),*) => {
        /// What a warning is about. Each has a row in the report's table of words.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    OutageOfClosedLoop, ClientPause, ShortSteps, ShortScans, EmptyDeletes, Unsettled, DeferredWork,
    FailedOperations, Recorded, RecordedOften, ServerChanged, SettingsChanged, Encryption,
    Configuration, ExternalServer, ExternalServerSeen, Embedded, NoDatabase, SharedCpus,
    UnpinnedCpus, FsyncsUncounted, CalibrationWrong, Sampling, HostCpuUnseen,
    HostCpuUncounted, OtherReads, Steal, ClientWait, ControlDiffers, RatesRise, RatesFall,
    RateRises, RateFalls, OneBlock, OneBlockMeasured, NoDesign, NotCold,
    MachinesDiffer, OddMachine,
    NotComparable, TwoRuns, ChangedBetweenRuns, StartedOtherwise, DebugBuildCompared, SeveralTools,
    WithoutChecksums, SettingsDiffer, InterimAnalyses, InterimAnalysesOfVerdicts,
    AnalysedWhileGoingOn, NewAnsweredNothing, BaseAnsweredNothing, NewMissedTarget, BothPaced,
    NewMissedSchedule, OneBlockCompared,
    LeftOutGoingOn, UnlikeFirst, ChangedWithRun, TimesFollowed, DroppedToZero, TooFewRuns
}

/// What a warning does to the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Figures are missing or must not be used.
    Invalid,
    /// Figures hold; something else must be known to read them.
    Caution,
}

impl Notice {
    pub fn new(code: Code) -> Self {
        Self { code, severity: Severity::Caution, places: Vec::new(), figures: BTreeMap::new() }
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

    /// Only where there is such a figure.
    #[must_use]
    pub fn with_some(self, name: &'static str, figure: Option<impl Into<Figure>>) -> Self {
        match figure {
            Some(figure) => self.with(name, figure),
            None => self,
        }
    }
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
}
