//! A plan's text with its overrides as one tree of values that know where they were written.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Location};
use crate::setup::{name_parts, text};
use crate::{overrides, size};

/// One step of a path into a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segment<'a> {
    Key(&'a str),
    Index(usize),
}

/// One mistake, and the path of the value that it is about.
#[derive(Debug, PartialEq)]
pub(crate) struct Problem<'a> {
    pub(crate) path: Vec<Segment<'a>>,
    pub(crate) message: String,
}

/// The texts that a document is made of. Positions run through all of them: first the file, then
/// the overrides, each after a gap of one byte.
pub(crate) struct Texts<'a> {
    origin: &'a str,
    text: &'a str,
    overrides: &'a [(String, String)],
    /// For each override the text `v = VALUE`, moved by blanks to its position.
    padded: Vec<String>,
    /// Where each override begins.
    starts: Vec<usize>,
}

/// The tree, before it becomes a [`crate::Plan`].
pub(crate) struct Document<'a> {
    texts: &'a Texts<'a>,
    pub(crate) root: Spanned<DeTable<'a>>,
}

impl<'a> Texts<'a> {
    pub(crate) fn new(text: &'a str, origin: &'a str, overrides: &'a [(String, String)]) -> Self {
        let (mut padded, mut starts) = (Vec::new(), Vec::new());
        let mut start = text.len() + 1;
        for (_, value) in overrides {
            let line = format!("{}v = {value}", " ".repeat(start));
            starts.push(start);
            start = line.len() + 1;
            padded.push(line);
        }
        Self { origin, text, overrides, padded, starts }
    }

    /// Line and column, or the override, of a position.
    pub(crate) fn location(&self, offset: usize) -> Location {
        if let Some(index) = self.starts.iter().rposition(|start| *start <= offset) {
            return Location::Override { key: self.overrides[index].0.clone() };
        }
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Location::File {
            origin: self.origin.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// The error `message` at a span; at the file's start without one.
    pub(crate) fn error(&self, span: Option<Range<usize>>, message: String) -> Error {
        Error::Invalid { location: self.location(span.map_or(0, |span| span.start)), message }
    }
}

impl<'a> Document<'a> {
    /// Parses the file and lays the overrides over it.
    pub(crate) fn new(texts: &'a Texts<'a>) -> Result<Self, Error> {
        let mut root = DeTable::parse(texts.text)
            .map_err(|error| texts.error(error.span(), syntax_message(error.message())))?;
        // What is asked for on the command line goes before what a size says.
        for (index, (_, name)) in texts.overrides.iter().enumerate().filter(|(_, (key, _))| key == size::KEY)
        {
            let start = texts.starts[index];
            size::apply(root.get_mut(), name).map_err(|message| texts.error(Some(start..start), message))?;
        }
        let others = texts.overrides.iter().enumerate().filter(|(_, (key, _))| key != size::KEY);
        for (index, (key, value)) in others {
            let start = texts.starts[index];
            let end = texts.padded[index].len();
            let value = parse_value(&texts.padded[index])
                .unwrap_or_else(|| Spanned::new(start..end, DeValue::String(value.as_str().into())));
            overrides::set(root.get_mut(), key, start..end, value)
                .map_err(|message| texts.error(Some(start..end), message))?;
        }
        Ok(Self { texts, root })
    }

    fn has(&self, path: &[Segment<'_>]) -> bool {
        self.find(path).1 == path.len()
    }

    /// Where the value at `path` was written; where the nearest table around it begins if it is
    /// absent.
    pub(crate) fn location_of(&self, path: &[Segment<'_>]) -> Location {
        self.texts.location(self.find(path).0.start)
    }

    /// The path at which the value at `path` was written: that of a set-up's workload is in the
    /// set-up or in the plan's own table.
    pub(crate) fn as_written<'p>(&self, path: &[Segment<'p>]) -> Vec<Segment<'p>> {
        let [Segment::Key("workload"), Segment::Key(name), rest @ ..] = path else { return path.to_vec() };
        let (workload, Some(setup)) = name_parts(name) else { return path.to_vec() };
        let setups = self.root.get_ref().get("setup").and_then(|setups| setups.get_ref().as_array());
        let is_named = |table: &Spanned<DeValue<'_>>| {
            table.get_ref().as_table().and_then(|table| text(table, "name")) == Some(setup)
        };
        let own = [Segment::Key("workload"), Segment::Key(workload)];
        if let Some(index) = setups.and_then(|setups| setups.iter().position(is_named)) {
            let path = [&[Segment::Key("setup"), Segment::Index(index)], &own[..], rest].concat();
            if self.has(&path) {
                return path;
            }
        }
        if self.has(path) { path.to_vec() } else { [&own[..], rest].concat() }
    }

    /// The span of the value at `path`, or of the nearest one around it, and how many segments lead
    /// to something.
    fn find(&self, path: &[Segment<'_>]) -> (Range<usize>, usize) {
        let mut span = 0..0;
        let mut table = Some(self.root.get_ref());
        let mut value: Option<&Spanned<DeValue<'_>>> = None;
        for (depth, segment) in path.iter().enumerate() {
            let next = match segment {
                Segment::Key(key) => table.and_then(|table| table.get(*key)),
                Segment::Index(index) => value.and_then(|value| value.get_ref().get(*index)),
            };
            let Some(found) = next else { return (span, depth) };
            // An array of tables has the span of its first header, which says nothing.
            if !matches!(found.get_ref(), DeValue::Array(_)) || path.last() == Some(segment) {
                span = found.span();
            }
            table = found.get_ref().as_table();
            value = Some(found);
        }
        (span, path.len())
    }
}

/// An override's value as TOML, if it is one value of TOML and nothing else.
fn parse_value(padded: &str) -> Option<Spanned<DeValue<'_>>> {
    let table = DeTable::parse(padded).ok()?.into_inner();
    if table.len() != 1 {
        return None;
    }
    table.into_iter().next().map(|(_, value)| value)
}

fn syntax_message(message: &str) -> String {
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    format!("this is not TOML: {}", lines.join(", "))
}
