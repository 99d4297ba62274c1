//! Tests of the manual: every `--help`, and the overview that `dbdyno` alone prints.

use std::collections::BTreeSet;

use crate::support::Desk;

/// Compares `text` with `../golden/NAME.txt.snap`.
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
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
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
fn help_explains_sysbench() {
    golden("help-sysbench", &said(&["sysbench", "--help"]));
}

#[test]
fn help_explains_pgbench() {
    golden("help-pgbench", &said(&["pgbench", "--help"]));
}

#[test]
fn help_explains_servers() {
    let verbs = ["list", "get", "add", "start", "remove"].map(|verb| said(&["servers", verb, "--help"]));
    golden("help-servers", &format!("{}\n{}", said(&["servers", "--help"]), verbs.join("\n")));
}

/// Returns the page with the current output of each `$ dbdyno` and `$ dbdyno ... --help` in it. An
/// option that an earlier block shows with the same text is only named.
fn with_texts_as_printed(page: &str) -> String {
    let mut parts = page.split("```console\n$ dbdyno");
    let mut updated = parts.next().unwrap_or_default().to_owned();
    let mut known = BTreeSet::new();
    for part in parts {
        let (args, rest) = part.split_once('\n').expect("a line of arguments");
        let args: Vec<&str> = args.split_whitespace().collect();
        let (text, after) = rest.split_once("```").expect("the block ends");
        let is_help = args.is_empty() || args.last() == Some(&"--help");
        let printed = if is_help { said(&args) } else { text.to_owned() };
        let mut printed: Vec<String> =
            printed.trim_end().lines().map(|line| line.trim_end().to_owned()).collect();
        if is_help {
            printed = with_new_options(printed, &mut known);
        }
        let args: String = args.iter().flat_map(|arg| [" ", arg]).collect();
        updated += &format!("```console\n$ dbdyno{args}\n{}\n```{after}", printed.join("\n"));
    }
    updated
}

/// Returns the lines of a help text without the options whose texts are `known`. The names of these
/// options follow at the end.
fn with_new_options(lines: Vec<String>, known: &mut BTreeSet<String>) -> Vec<String> {
    let is_option =
        |line: &str| line.trim_start().starts_with('-') && line.len() - line.trim_start().len() <= 6;
    let options = lines.iter().position(|line| line == "Options:").map_or(lines.len(), |at| at + 1);
    let (mut shown, mut repeated) = (lines[..options].to_vec(), Vec::new());
    let mut rest = &lines[options..];
    while !rest.is_empty() {
        let end = rest.iter().skip(1).position(|line| is_option(line)).map_or(rest.len(), |at| at + 1);
        let (option, others) = rest.split_at(end);
        let words: Vec<&str> = option.iter().flat_map(|line| line.split_whitespace()).collect();
        if known.insert(words.join(" ")) {
            shown.extend_from_slice(option);
        } else {
            repeated.extend(words.into_iter().find(|word| word.starts_with("--")).map(str::to_owned));
        }
        rest = others;
    }
    if !repeated.is_empty() {
        shown.push("      As above:".to_owned());
    }
    for name in repeated {
        match shown.last_mut() {
            Some(line) if line.len() + name.len() < 100 => *line += &format!(" {name}"),
            _ => shown.push(format!("      {name}")),
        }
    }
    shown
}

/// Run the tests with `DBDYNO_UPDATE=1` to write the page again.
#[test]
fn the_page_of_the_command_line_has_the_texts_that_the_command_prints() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let updated = with_texts_as_printed(&page);
    // Each of the other commands has a separate page or no options of its own.
    let commands = ["run", "plan", "init", "report", "compare", "history", "serve", "list"];
    for command in commands {
        assert!(page.contains(&format!("\n$ dbdyno {command} --help\n")), "{command} is not on the page");
    }
    if std::env::var_os("DBDYNO_UPDATE").is_some() {
        std::fs::write(&file, &updated).unwrap();
    } else {
        let differing = page.lines().zip(updated.lines()).find(|(there, printed)| there != printed);
        assert!(
            page == updated,
            "{differing:?}: run `DBDYNO_UPDATE=1 cargo test -p dbdyno --test dbdyno help`"
        );
    }
}

#[test]
fn every_command_has_a_manual_page_and_every_shell_completes_it() {
    let help = said(&["--help"]);
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = commands
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty());
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    assert!(names.len() > 10, "{names:?}");
    let whole = said(&["man"]);
    for name in &names {
        assert!(
            whole.contains(&format!("dbdyno\\-{}(1)", name.replace('-', "\\-"))),
            "{name} is not in {whole}"
        );
        let page = said(&["man", name]);
        assert!(page.contains(&format!(".TH dbdyno-{name} 1")) && page.contains(".SH OPTIONS"), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = said(&["completions", shell]);
        assert!(names.iter().all(|name| script.contains(name)), "{shell}");
    }
    let unknown = Desk::new().dbdyno(&["man", "walk"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.err.starts_with("error: there is no command \"walk\"; there are run, plan, "),
        "{}",
        unknown.err
    );
}

#[test]
fn the_version_is_printed() {
    assert_eq!(said(&["--version"]), format!("dbdyno {}\n", env!("CARGO_PKG_VERSION")));
}
