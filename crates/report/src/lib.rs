//! Writes findings as reports: HTML, Markdown, CSV, JSON, Parquet, OpenMetrics and text for the
//! terminal.
//!
//! [`ALL`] names the formats that are one text. Everything that a reader sees comes from
//! [`Findings`]. No code here computes a step's rate, ratio or percentile, but views put several
//! steps together.
//!
//! * Terminal, Markdown and HTML are rendered from one [`document`], which `run`, `comparison` and
//!   `history` build. Its tables and its summary are made in `views`.
//! * JSON, CSV, Parquet and OpenMetrics are made from the findings and their two long tables. JSON
//!   has the views too.
//! * `facts`, `warnings` and `words` put run, host, variants and reasons into words.

mod charts;
mod comparison;
mod csv;
pub mod document;
mod facts;
mod history;
mod index;
mod json;
mod number;
mod openmetrics;
mod parity;
#[cfg(feature = "parquet")]
mod parquet;
mod plan_words;
mod run;
#[cfg(test)]
mod tests;
mod views;
mod warnings;
mod words;

use dbdyno_analyse::Findings;
#[cfg(test)]
use tests::fixture;

pub use comparison::{
    comparison_json, comparison_junit, comparison_markdown, comparison_terminal, exclusion_text,
};
pub use facts::{host_class_words, not_comparable, unlike_runs};
pub use history::{history_html, history_json, history_markdown, history_terminal};
pub use index::{HistoryEntry, RunEntry, index_html};
pub use json::SCHEMA;
pub use number::{milliseconds, rate, seconds_text};
pub use openmetrics::{Exposition, Labels, OPENMETRICS_TYPE, run_openmetrics};
pub use parity::refusal as parity_refusal;
#[cfg(feature = "parquet")]
pub use parquet::{RunRows, parquet};
pub use run::{
    PageOptions, ReportPart, TerminalOptions, parity_terminal, published_html, run_html, run_terminal,
};
pub use views::Topic;
pub use warnings::{brief as reason_brief, reasons_text, text as warning_text, texts as warning_texts};

/// One format in which findings are written. Rendering is pure: the same findings give the same
/// text.
#[derive(Debug)]
pub struct Format {
    /// The word that selects it on the command line.
    pub name: &'static str,
    /// Extension of a file in this format, without the dot.
    pub extension: &'static str,
    /// Renders the whole document, which ends in a newline.
    pub render: fn(&Findings) -> String,
}

/// Every format that is one text. The terminal's format has the whole report here, in 100 columns
/// and without colour.
pub const ALL: &[Format] = &[
    Format {
        name: "terminal",
        extension: "txt",
        render: |findings| document::terminal(&run::whole(findings, None, &[]), 100, false),
    },
    Format {
        name: "md",
        extension: "md",
        render: |findings| document::markdown(&run::whole(findings, None, &[])),
    },
    Format { name: "html", extension: "html", render: |findings| run_html(findings, PageOptions::default()) },
    Format { name: "csv", extension: "csv", render: csv::csv },
    Format { name: "json", extension: "json", render: json::findings },
    Format { name: "openmetrics", extension: "prom", render: run_openmetrics },
];

/// Returns the format with this name.
pub fn find(name: &str) -> Result<&'static Format, Error> {
    ALL.iter().find(|format| format.name == name).ok_or_else(|| Error::UnknownFormat {
        name: name.to_owned(),
        // Parquet is not in the list, because it is a folder of files.
        known: ALL.iter().map(|format| format.name).chain(["parquet"]).collect::<Vec<_>>().join(", "),
    })
}

/// An error while a report is written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no report format is called `{name}`; use one of: {known}")]
    UnknownFormat { name: String, known: String },

    #[cfg(feature = "parquet")]
    #[error("{} cannot be written: {reason}; give another folder with --output", path.display())]
    Parquet { path: std::path::PathBuf, reason: String },

    #[error("the run has no step called `{asked}`; its steps: {known}")]
    UnknownStep { asked: String, known: String },
}
