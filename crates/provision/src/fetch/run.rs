//! Running another program to its end; when it fails, its words are the error.

use std::process::{Command, Stdio};

use crate::Error;

/// Lines of output that an error repeats.
const SHOWN_LINES: usize = 15;

/// Runs `command` without input and returns what it printed. `what` says what it is good for.
///
/// # Errors
/// [`Error::Tool`] when it cannot be run or fails.
pub(super) fn run(what: &str, command: &mut Command) -> Result<String, Error> {
    let line = shown(command);
    let failed = |status: String, output: String| Error::Tool {
        what: what.to_owned(),
        command: line.clone(),
        status,
        output,
    };
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed("cannot be run".to_owned(), error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    // Maven tells its errors on the standard output, everybody else on the other one.
    let said = format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout).trim_end(),
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    let lines: Vec<&str> = said.trim().lines().collect();
    let end = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    Err(failed(format!("failed ({})", output.status), end))
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_returned_and_a_failure_shows_the_words() {
        assert_eq!(run("echoing", Command::new("echo").arg("x")).unwrap(), "x\n");
        let error =
            run("failing", Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"])).unwrap_err();
        insta::assert_snapshot!(error, @r"
        failing: `sh -c echo out; echo err >&2; exit 3` failed (exit status: 3)
        out
        err
        ");
        let error = run("finding", &mut Command::new("no-such-program-here")).unwrap_err().to_string();
        assert!(error.starts_with("finding: `no-such-program-here` cannot be run"), "{error}");
    }
}
