//! The manual: every `--help`, and what the command says without any.

use crate::support::Desk;

/// Compares with `../golden/NAME.txt.snap`.
fn golden(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

fn said(args: &[&str]) -> String {
    let ended = Desk::new().dbdyno(args);
    ended.expect_ok();
    assert_eq!(ended.err, "");
    ended.out
}

#[test]
fn the_overview_fits_a_dozen_lines() {
    let text = said(&[]);
    assert!(text.trim_end().lines().count() <= 12, "{text}");
    golden("overview", &text);
}

#[test]
fn help_explains_the_command() {
    golden("help", &said(&["--help"]));
}

#[test]
fn help_explains_run() {
    golden("help-run", &said(&["run", "--help"]));
}

#[test]
fn help_explains_plan() {
    golden("help-plan", &said(&["plan", "--help"]));
}

#[test]
fn help_explains_report() {
    golden("help-report", &said(&["report", "--help"]));
}

#[test]
fn help_explains_history() {
    golden("help-history", &said(&["history", "--help"]));
}

#[test]
fn help_explains_compare() {
    golden("help-compare", &said(&["compare", "--help"]));
}

#[test]
fn help_explains_list() {
    golden("help-list", &said(&["list", "--help"]));
}

#[test]
fn help_explains_known_answer() {
    golden("help-known-answer", &said(&["known-answer", "--help"]));
}

#[test]
fn help_explains_doctor() {
    golden("help-doctor", &said(&["doctor", "--help"]));
}

#[test]
fn help_explains_servers() {
    let verbs = ["list", "get", "add", "start", "remove"].map(|verb| said(&["servers", verb, "--help"]));
    golden("help-servers", &format!("{}\n{}", said(&["servers", "--help"]), verbs.join("\n")));
}

#[test]
fn help_is_no_wider_than_a_terminal() {
    for command in ["run", "plan", "report", "compare", "list", "doctor", "known-answer", "servers"] {
        for line in said(&[command, "--help"]).lines() {
            assert!(line.chars().count() <= 100, "{command}: {line}");
        }
    }
}

#[test]
fn the_version_is_told() {
    assert_eq!(said(&["--version"]), format!("dbdyno {}\n", env!("CARGO_PKG_VERSION")));
}
