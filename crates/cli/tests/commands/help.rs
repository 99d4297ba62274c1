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

/// The page with the text of each block of `$ dbdyno` or `$ dbdyno ... --help` as the command prints it.
fn with_texts_as_printed(page: &str) -> String {
    let mut parts = page.split("```console\n$ dbdyno");
    let mut anew = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (args, rest) = part.split_once('\n').expect("a line of arguments");
        let args: Vec<&str> = args.split_whitespace().collect();
        let (text, behind) = rest.split_once("```").expect("the block ends");
        let is_help = args.is_empty() || args.last() == Some(&"--help");
        let printed = if is_help { said(&args) } else { text.to_owned() };
        let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
        let args: String = args.iter().flat_map(|arg| [" ", arg]).collect();
        anew += &format!("```console\n$ dbdyno{args}\n{}\n```{behind}", printed.join("\n"));
    }
    anew
}

/// Run the tests with `DBDYNO_UPDATE=1` to write the page anew.
#[test]
fn the_page_of_the_command_line_has_the_texts_that_the_command_prints() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let page = std::fs::read_to_string(&file).unwrap();
    let anew = with_texts_as_printed(&page);
    // The options of known-answer are in its guide.
    let commands = [
        "run", "plan", "plans", "init", "report", "compare", "history", "serve", "list", "servers", "doctor",
    ];
    for command in commands.into_iter().chain(["completions", "man"]) {
        assert!(page.contains(&format!("\n$ dbdyno {command} --help\n")), "{command} is not on the page");
    }
    if std::env::var_os("DBDYNO_UPDATE").is_some() {
        std::fs::write(&file, &anew).unwrap();
    } else {
        let differing = page.lines().zip(anew.lines()).find(|(there, printed)| there != printed);
        assert!(
            page == anew,
            "{differing:?}: run `DBDYNO_UPDATE=1 cargo test -p dbdyno --test commands help`"
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
