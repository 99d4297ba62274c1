//! One line of the fitness list: what was found, a verdict for measuring, and what to do about it.

use dbdyno_report::document::{Cell, Column, Table, Tone};
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Good,
    /// Figures may be worse, or vary more, than they need.
    Note,
    /// Measuring makes no sense before this is changed.
    Bad,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) name: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) found: String,
    /// What to do about it. It is empty where nothing has to be done.
    pub(crate) advice: &'static str,
}

impl Finding {
    fn new(verdict: Verdict, found: impl Into<String>, advice: &'static str) -> Self {
        Self { name: "", verdict, found: found.into(), advice }
    }

    pub(crate) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }
}

pub(crate) fn good(found: impl Into<String>) -> Finding {
    Finding::new(Verdict::Good, found, "")
}

pub(crate) fn note(found: impl Into<String>, advice: &'static str) -> Finding {
    Finding::new(Verdict::Note, found, advice)
}

/// Makes a note where there is something to note.
pub(crate) fn note_if(is_noted: bool, found: impl Into<String>, advice: &'static str) -> Finding {
    if is_noted { note(found, advice) } else { good(found) }
}

pub(crate) fn bad(found: impl Into<String>, advice: &'static str) -> Finding {
    Finding::new(Verdict::Bad, found, advice)
}

pub(crate) fn table(findings: &[Finding]) -> Table {
    let columns = ["what", "verdict", "found; what to do"].map(Column::words).to_vec();
    let mut table = Table { labels: 2, columns, ..Table::default() };
    for finding in findings {
        let (word, tone) = match finding.verdict {
            Verdict::Good => ("good", Tone::Plain),
            Verdict::Note => ("note", Tone::Doubt),
            Verdict::Bad => ("bad", Tone::Worse),
        };
        let advice = if finding.advice.is_empty() { String::new() } else { format!("; {}", finding.advice) };
        let found = Cell::from(format!("{}{advice}", finding.found));
        table.push([Cell::from(finding.name), Cell::toned(word, tone), found]);
    }
    table
}

/// Writes what is not good in one sentence for the record of a run. It is `None` when all is good.
pub(crate) fn doubts(findings: &[Finding]) -> Option<String> {
    let doubtful = findings.iter().filter(|finding| finding.verdict != Verdict::Good);
    let reported: Vec<String> =
        doubtful.map(|finding| format!("{}: {}", finding.name, finding.found)).collect();
    (!reported.is_empty())
        .then(|| format!("Machine at the start of the run: {}. See dbdyno doctor.", reported.join("; ")))
}

#[cfg(test)]
mod tests {
    use dbdyno_report::document::{Block, terminal};

    use super::*;

    fn findings() -> [Finding; 3] {
        [
            good("4").named("CPUs"),
            note("powersave", "set performance").named("governor"),
            bad("1 MB free", "make room").named("disk"),
        ]
    }

    #[test]
    fn the_list_is_aligned_and_advice_follows_what_was_found() {
        let blocks = [Block::Table(table(&findings()))];
        insta::assert_snapshot!(terminal(&blocks, 80, false), @r"
        what      verdict  found; what to do
        ─────────────────────────────────────────────
        CPUs      good     4
        governor  note     powersave; set performance
        disk      bad      1 MB free; make room
        ");
    }

    #[test]
    fn what_is_not_good_is_one_sentence_of_a_run() {
        insta::assert_snapshot!(doubts(&findings()).unwrap(), @"Machine at the start of the run: governor: powersave; disk: 1 MB free. See dbdyno doctor.");
        assert_eq!(doubts(&findings()[..1]), None);
    }
}
