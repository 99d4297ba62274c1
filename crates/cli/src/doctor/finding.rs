//! One line of the fitness list: what was found, and what to do about it.

use serde::Serialize;

/// How a machine does in one respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Ok,
    /// Figures may be worse than they need be.
    Warning,
    /// Nothing can be measured.
    Unfit,
}

/// What was found in one respect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) name: &'static str,
    pub(crate) state: State,
    pub(crate) found: String,
    /// What to do about it; empty where nothing has to be done.
    pub(crate) advice: &'static str,
}

impl Finding {
    pub(crate) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: State::Ok, found: found.into(), advice: "" }
    }

    pub(crate) fn warning(name: &'static str, found: impl Into<String>, advice: &'static str) -> Self {
        Self { name, state: State::Warning, found: found.into(), advice }
    }

    pub(crate) fn unfit(name: &'static str, found: impl Into<String>, advice: &'static str) -> Self {
        Self { name, state: State::Unfit, found: found.into(), advice }
    }
}

/// The list for people, aligned.
pub(crate) fn lines(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.name.chars().count()).max().unwrap_or(0);
    let line = |finding: &Finding| {
        let state = match finding.state {
            State::Ok => "ok",
            State::Warning => "warning",
            State::Unfit => "unfit",
        };
        let advice = if finding.advice.is_empty() { String::new() } else { format!("; {}", finding.advice) };
        format!("{:<width$}  {state:<7}  {}{advice}\n", finding.name, finding.found)
    };
    findings.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_aligned_and_advice_stands_behind_what_was_found() {
        let findings = [
            Finding::ok("CPUs", "4"),
            Finding::warning("governor", "powersave", "set performance"),
            Finding::unfit("disk", "1 MB free", "make room"),
        ];
        insta::assert_snapshot!(lines(&findings), @r"
        CPUs      ok       4
        governor  warning  powersave; set performance
        disk      unfit    1 MB free; make room
        ");
    }
}
