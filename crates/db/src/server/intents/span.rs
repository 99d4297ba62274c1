//! Version ranges, which include their start and exclude their end.

use std::fmt;

use serde::Deserialize;

use dbdyno_products::Release;

/// Versions from `from` up to but not including `until`. A missing bound leaves that end open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct Span {
    #[serde(default)]
    pub(crate) from: Option<Release>,
    #[serde(default)]
    pub(crate) until: Option<Release>,
}

impl Span {
    pub(crate) fn holds(self, version: Release) -> bool {
        self.from.is_none_or(|from| version >= from) && self.until.is_none_or(|until| version < until)
    }

    /// The versions that are in both spans.
    pub(crate) fn meet(self, other: Self) -> Option<Self> {
        let until = match (self.until, other.until) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        };
        let met = Self { from: self.from.max(other.from), until };
        let is_empty = met.from.zip(met.until).is_some_and(|(from, until)| from >= until);
        (!is_empty).then_some(met)
    }
}

/// Joins spans that touch or overlap. The result is in ascending order.
pub(crate) fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| span.from);
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if last.until.is_none_or(|until| span.from.is_none_or(|from| from <= until)) => {
                last.until = last.until.zip(span.until).map(|(left, right)| left.max(right));
            }
            _ => joined.push(span),
        }
    }
    joined
}

/// The versions in `spans` that are not in `others`.
#[cfg(test)]
pub(crate) fn subtracted(spans: Vec<Span>, others: &[Span]) -> Vec<Span> {
    others.iter().fold(spans, |spans, other| {
        let before = other.from.map(|from| Span { from: None, until: Some(from) });
        let after = other.until.map(|until| Span { from: Some(until), until: None });
        let rest: Vec<Span> = before.into_iter().chain(after).collect();
        spans.iter().flat_map(|span| rest.iter().filter_map(|part| span.meet(*part))).collect()
    })
}

/// Writes `from 8.0.30`, `before 11.0`, `5.6.2 to before 8.0`, and nothing for all versions.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.from, self.until) {
            (None, None) => Ok(()),
            (Some(from), None) => write!(f, "from {from}"),
            (None, Some(until)) => write!(f, "before {until}"),
            (Some(from), Some(until)) => write!(f, "{from} to before {until}"),
        }
    }
}

/// Spans as words: `before 10.7, from 11.0`.
pub(crate) fn words(spans: &[Span]) -> String {
    let words: Vec<String> = spans.iter().map(Span::to_string).filter(|text| !text.is_empty()).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: &str, until: &str) -> Span {
        Span { from: Release::parse(from), until: Release::parse(until) }
    }

    #[test]
    fn ends_are_exclusive_and_beginnings_inclusive() {
        let span = span("5.6.8", "8.0.30");
        let holds = |text: &str| span.holds(Release::parse(text).unwrap());
        assert!(holds("5.6.8") && holds("8.0.29") && !holds("5.6.7") && !holds("8.0.30"));
    }

    #[test]
    fn spans_meet_and_join() {
        assert_eq!(span("5.6", "").meet(span("", "8.0")), Some(span("5.6", "8.0")));
        assert_eq!(span("8.0", "").meet(span("", "8.0")), None);
        assert_eq!(joined(vec![span("8.0", ""), span("", "5.6"), span("5.6", "8.0")]), [span("", "")]);
        assert_eq!(subtracted(vec![span("", "")], &[span("5.6", "8.0")]), [span("", "5.6"), span("8.0", "")]);
        assert_eq!(subtracted(vec![span("5.6", "8.0")], &[span("", "")]), []);
        let apart = joined(vec![span("10.11.8", "11.0"), span("10.6.18", "10.7")]);
        assert_eq!(words(&apart), "10.6.18 to before 10.7, 10.11.8 to before 11.0");
    }
}
