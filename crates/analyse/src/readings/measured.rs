//! One step with everything its figures are computed from, and the two divisions that all of them
//! use.

use dbdyno_record::{Interval, OperationClass, StepSpec, Unit, VariantInfo};

use crate::readings::counters::{Change, Counters, change};
use crate::readings::rates;
use crate::readings::span::Span;

/// Where the database works, and so whose CPU and memory are the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hosting {
    /// A server process on this host, sampled by its process id.
    Process,
    /// Inside dbdyno: what the client used is client and database together.
    Embedded,
    /// Someone else's server out of sight: its CPU, memory and disk are unknown.
    External,
    /// No database at all: dbdyno measures itself.
    Nothing,
}

impl Hosting {
    /// Of a variant in one step. A server that others run is a process like any other where it was
    /// sampled.
    pub(crate) fn in_step(variant: &VariantInfo, counters: &Counters) -> Self {
        match Self::of(variant) {
            Self::External if counters.contains_key("server") => Self::Process,
            hosting => hosting,
        }
    }

    pub(crate) fn of(variant: &VariantInfo) -> Self {
        match variant.driver.as_str() {
            "null" => Self::Nothing,
            _ if variant.embedded => Self::Embedded,
            _ if variant.external => Self::External,
            _ => Self::Process,
        }
    }

    /// The source that samples the process in which the database works.
    pub(crate) fn source(self) -> Option<&'static str> {
        match self {
            Self::Process => Some("server"),
            Self::Embedded => Some("client"),
            Self::External | Self::Nothing => None,
        }
    }
}

/// A step, its common window and its counters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measured<'a> {
    pub(crate) spec: &'a StepSpec,
    pub(crate) intervals: &'a [Interval],
    pub(crate) counters: &'a Counters,
    pub(crate) window: Span,
    pub(crate) hosting: Hosting,
    pub(crate) cpus: u32,
}

impl Measured<'_> {
    /// `figure`, unless the step did not come to a common window: then it is not known, and not 0.
    pub(crate) fn in_window(&self, figure: f64) -> Option<f64> {
        (self.window.seconds() > 0.0).then_some(figure)
    }

    pub(crate) fn headline_rate(&self) -> f64 {
        rates::rate(self.spec, self.intervals, &self.spec.headline.kind, self.window)
    }

    /// The kind whose rows are inserts: the headline where that counts rows that come in or are
    /// indexed, else the background inserts, if any. A scan's rows are neither.
    pub(crate) fn insert_kind(&self) -> Option<&str> {
        let headline = &self.spec.headline;
        if headline.unit == Unit::Rows && self.spec.headline_class() != OperationClass::Scan {
            return Some(&headline.kind);
        }
        let kind = self.spec.kinds.iter().find(|kind| kind.class == OperationClass::Insert);
        kind.map(|kind| kind.kind.as_str())
    }

    pub(crate) fn rate_of(&self, kind: &str) -> f64 {
        rates::rate(self.spec, self.intervals, kind, self.window)
    }

    pub(crate) fn change(&self, source: &str, keys: &[&str]) -> Option<Change> {
        change(self.counters, source, keys, self.window)
    }

    /// The increase of a sum of counters for one second between its samples.
    pub(crate) fn per_second(&self, source: &str, keys: &[&str]) -> Option<f64> {
        Some(self.change(source, keys)?.per_second())
    }

    /// The same for one unit of the headline done between them.
    pub(crate) fn per_unit(&self, source: &str, keys: &[&str]) -> Option<f64> {
        self.per_headline_unit(self.change(source, keys)?)
    }

    /// A counter's increase for one unit of the headline done between the same two samples.
    pub(crate) fn per_headline_unit(&self, change: Change) -> Option<f64> {
        self.per_unit_of(&self.spec.headline.kind, change)
    }

    /// A counter's increase for one unit of `kind` done between the same two samples; `None` when
    /// there was none.
    pub(crate) fn per_unit_of(&self, kind: &str, change: Change) -> Option<f64> {
        let work = rates::work(self.spec, self.intervals, kind, self.window, change.between);
        (work > 0.0).then(|| change.value / work)
    }
}
