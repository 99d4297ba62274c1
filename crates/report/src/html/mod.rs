//! Findings as one HTML file that needs neither network nor script.

mod bars;
mod chart;
mod downsample;
mod page;
mod scale;
mod svg;

use dbdyno_analyse::Findings;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior};

use crate::{Error, Format};

/// The HTML report. Style and script are embedded, a content security policy forbids anything from outside, every
/// number is readable with scripts off, and text is escaped by the template engine.
#[derive(Debug, Clone, Copy)]
pub struct Html;

/// The engine escapes by this name's ending.
const TEMPLATE: &str = "page.html";

impl Format for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn extension(&self) -> &'static str {
        "html"
    }

    fn render(&self, findings: &Findings) -> Result<String, Error> {
        let failed = |source| Error::Template { run_id: findings.run.run_id.clone(), source };
        let mut engine = Environment::new();
        engine.set_undefined_behavior(UndefinedBehavior::Strict);
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
        engine.set_syntax(syntax.build().map_err(failed)?);
        engine.add_template(TEMPLATE, include_str!("page.html")).map_err(failed)?;
        engine.add_template("page.css", include_str!("page.css")).map_err(failed)?;
        engine.add_template("page.js", include_str!("page.js")).map_err(failed)?;
        let page = Serde(page::Page::new(findings));
        engine.get_template(TEMPLATE).and_then(|template| template.render(page)).map_err(failed)
    }
}

#[cfg(test)]
mod tests;
