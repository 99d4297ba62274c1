//! The summary of a test run as text.

use std::fmt::Write;
use std::time::Duration;

pub(super) enum Outcome {
    Passed,
    Failed {
        reason: String,
    },
    Skipped {
        /// The failed stage that it needs.
        need: &'static str,
    },
}

/// How one stage went.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
    pub(super) seconds: f64,
}

impl Row {
    pub(super) fn is_failure_of(&self, name: &str) -> bool {
        self.name == name && !matches!(self.outcome, Outcome::Passed)
    }
}

/// One line a stage, then one for all, which took `whole` together.
pub(super) fn text(rows: &[Row], whole: Duration) -> String {
    let mut text = format!("{:10} {:8} {:>8}\n", "stage", "result", "seconds");
    for row in rows {
        let (result, why) = match &row.outcome {
            Outcome::Passed => ("passed", String::new()),
            Outcome::Failed { reason } => ("FAILED", reason.lines().next().unwrap_or_default().to_owned()),
            Outcome::Skipped { need } => ("skipped", format!("because {need} failed")),
        };
        let line = format!("{:10} {:8} {:8.1}  {why}", row.name, result, row.seconds);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let failed: Vec<&str> =
        rows.iter().filter(|row| row.is_failure_of(row.name)).map(|row| row.name).collect();
    let seconds = whole.as_secs_f64();
    text + &match failed.is_empty() {
        true => format!("all passed in {seconds:.0} s"),
        false => format!("NOT passed: {} (of {} stages, {seconds:.0} s)", failed.join(", "), rows.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_aligned_and_its_last_line_tells_all() {
        let reason = "`cargo fmt` failed (exit status: 1)\nand more".to_owned();
        let mut rows = vec![
            Row { name: "packages", outcome: Outcome::Failed { reason }, seconds: 0.04 },
            Row { name: "servers", outcome: Outcome::Skipped { need: "packages" }, seconds: 0.0 },
            Row { name: "clippy", outcome: Outcome::Passed, seconds: 123.45 },
        ];
        insta::assert_snapshot!(text(&rows, Duration::from_millis(123_450)), @r"
        stage      result    seconds
        packages   FAILED        0.0  `cargo fmt` failed (exit status: 1)
        servers    skipped       0.0  because packages failed
        clippy     passed      123.5
        NOT passed: packages, servers (of 3 stages, 123 s)
        ");
        rows.drain(..2);
        let text = text(&rows, Duration::from_secs(124));
        assert!(text.ends_with("\nall passed in 124 s"), "{text}");
    }
}
