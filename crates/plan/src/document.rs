//! Reads a plan's text and its overrides into one tree of TOML values, each of which knows where it
//! was written. Therefore messages can name line and column.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Location};
use crate::setup::{name_parts, text};
use crate::{overrides, size};

/// One step of a path into a plan, such as `variant`, `0`, `server`.
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

/// The texts that a document is made of. Positions run through all of them: the file comes first,
/// then the overrides, each after a gap of one byte.
pub(crate) struct Texts<'a> {
    origin: &'a str,
    text: &'a str,
    overrides: &'a [(String, String)],
    /// The text `v = VALUE` for each override, moved by blanks to its position.
    padded: Vec<String>,
    /// Where each override begins.
    starts: Vec<usize>,
}

/// The tree before it becomes a [`crate::Plan`].
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

    /// Returns the line and column of a position, or the override that it lies in.
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

    /// Makes an error `message` at a span, or at the file's start without one.
    pub(crate) fn error(&self, span: Option<Range<usize>>, message: String) -> Error {
        Error::Invalid { location: self.location(span.map_or(0, |span| span.start)), message }
    }
}

impl<'a> Document<'a> {
    /// Parses the file and lays the overrides over it.
    pub(crate) fn new(texts: &'a Texts<'a>) -> Result<Self, Error> {
        let mut root = DeTable::parse(texts.text)
            .map_err(|error| texts.error(error.span(), syntax_message(error.message())))?;
        // `--size` is applied first, so that `--set` on the command line wins over it.
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

    /// Returns where the value at `path` was written. For an absent value it is the beginning of
    /// the nearest table around it.
    pub(crate) fn location_of(&self, path: &[Segment<'_>]) -> Location {
        self.texts.location(self.find(path).0.start)
    }

    /// Returns the path at which the value at `path` was written. A set-up's workload is written in
    /// the set-up or in the plan's own table.
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

    /// Returns the span of the value at `path`, or of the nearest one around it, and how many
    /// segments lead to a value.
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
            // An array of tables has the span of its first header, which says nothing about its
            // elements.
            if !matches!(found.get_ref(), DeValue::Array(_)) || path.last() == Some(segment) {
                span = found.span();
            }
            table = found.get_ref().as_table();
            value = Some(found);
        }
        (span, path.len())
    }
}

/// Parses an override's value as TOML. It is `None` unless the text is one TOML value and nothing
/// else.
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
