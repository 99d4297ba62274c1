//! Findings as one HTML file that needs neither network nor script.

mod bars;
mod chart;
mod downsample;
mod history_chart;
mod history_page;
mod names;
mod page;
mod scale;
mod second_charts;
mod svg;
mod sweep_charts;

use dbdyno_analyse::{Findings, History};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use crate::{Error, Format};

/// The HTML report. Style and script are embedded, a content security policy forbids anything from outside, every
/// number is readable with scripts off, and text is escaped by the template engine.
#[derive(Debug, Clone, Copy)]
pub struct Html;

/// The engine escapes by the ending of these names.
const TEMPLATE: &str = "page.html";
const HISTORY_TEMPLATE: &str = "history.html";

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn extension(&self) -> &'static str {
        "html"
    }

    fn render(&self, findings: &Findings) -> Result<String, Error> {
        rendered(TEMPLATE, &findings.run.run_id, page::Page::new(findings))
    }
}

/// The history as one HTML page like the report's: charts of all series with their levels and changes, and all values as text.
///
/// # Errors
/// [`Error::Template`], a fault of this crate's own template.
pub fn history_html(history: &History) -> Result<String, Error> {
    rendered(HISTORY_TEMPLATE, &history.name, history_page::HistoryPage::new(history))
}

/// A template filled in; `about` is what errors name.
fn rendered(template: &str, about: &str, page: impl Serialize) -> Result<String, Error> {
    let failed = |source| Error::Template { run_id: about.to_owned(), source };
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    engine.set_syntax(syntax.build().map_err(failed)?);
    engine.add_filter("coded", |text: String| minijinja::Value::from_safe_string(svg::coded(&text)));
    engine.add_template(TEMPLATE, include_str!("page.html")).map_err(failed)?;
    engine.add_template(HISTORY_TEMPLATE, include_str!("history.html")).map_err(failed)?;
    engine.add_template("grid.html", include_str!("grid.html")).map_err(failed)?;
    engine.add_template("head.html", include_str!("head.html")).map_err(failed)?;
    engine.add_template("page.css", include_str!("page.css")).map_err(failed)?;
    engine.add_template("page.js", include_str!("page.js")).map_err(failed)?;
    engine.get_template(template).and_then(|found| found.render(Serde(page))).map_err(failed)
}

#[cfg(test)]
mod tests;
