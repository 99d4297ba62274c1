//! Tests what a user sees in a terminal of 80 and of 120 columns, with colours and without, in tmux
//! sessions.

use std::process::Command;
use std::time::Duration;

use dbdyno_record::Run;

use crate::commands::recorded;
use crate::support::{Desk, wait_for};

const ROWS: &str = "60";

/// A terminal in which `dbdyno` runs.
struct Session<'a> {
    desk: &'a Desk,
}

impl<'a> Session<'a> {
    fn start(desk: &'a Desk, columns: u16, has_colours: bool, args: &str) -> Self {
        let session = Self { desk };
        let line = format!("{} {args}; tmux wait-for -S ended; sleep 600", env!("CARGO_BIN_EXE_dbdyno"));
        let mut tmux = session.tmux(&["new-session", "-d", "-x", &columns.to_string(), "-y", ROWS, &line]);
        if has_colours {
            tmux.env_remove("NO_COLOR");
        }
        assert!(tmux.status().unwrap().success());
        session
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        self.desk.prepare(&mut tmux);
        // The terminal gets its own size, not that of a tmux session in which the tests may run.
        tmux.env_remove("COLUMNS").env_remove("LINES").env_remove("TMUX").env("LANG", "C.UTF-8");
        tmux.arg("-S").arg(self.desk.path("tmux")).args(["-f", "/dev/null"]).args(args);
        tmux
    }

    fn wait(&self) {
        assert!(self.tmux(&["wait-for", "ended"]).status().unwrap().success());
    }

    /// The text on the screen, with `‹strong green›` where the style changes. The escape sequences
    /// themselves are not compared, because tmux versions write the same styles in different ways.
    fn screen(&self) -> String {
        let shown = self.tmux(&["capture-pane", "-p", "-e"]).output().unwrap();
        let text = String::from_utf8(shown.stdout).unwrap();
        let (mut readable, mut style, mut last) = (String::new(), Style::default(), Style::default());
        for (number, part) in text.split("\u{1b}[").enumerate() {
            let (codes, rest) = if number == 0 { ("", part) } else { part.split_once('m').unwrap() };
            codes.split(';').for_each(|code| style.take(code));
            for character in rest.chars() {
                if style != last && !character.is_whitespace() {
                    readable.push_str(&style.name());
                    last = style;
                }
                readable.push(character);
            }
        }
        readable.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }
}

/// The style that escape sequences request (ECMA-48, SGR).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Style {
    weight: &'static str,
    colour: &'static str,
}

impl Style {
    fn take(&mut self, code: &str) {
        match code {
            "" | "49" => {}
            "0" => *self = Self::default(),
            "1" => self.weight = "strong",
            "2" => self.weight = "faint",
            "39" => self.colour = "",
            "31" => self.colour = "red",
            "32" => self.colour = "green",
            "33" => self.colour = "yellow",
            "36" => self.colour = "cyan",
            other => panic!("a style that dbdyno does not use: {other}"),
        }
    }

    fn name(self) -> String {
        format!("‹{}›", [self.weight, self.colour].join(" ").trim())
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let _ = self.tmux(&["kill-server"]).output();
    }
}

fn shown(columns: u16, has_colours: bool, args: &str) -> String {
    let desk = Desk::new();
    let run = recorded::write(&desk.path("runs"));
    // A program that another test has just started may hold the run's lock until it executes.
    wait_for("the run to have ended", || (!Run::open(&run).unwrap().is_going_on).then_some(()));
    let session = Session::start(&desk, columns, has_colours, args);
    session.wait();
    session.screen()
}

#[test]
#[ignore = "in cargo xtask test --all: tmux"]
fn the_summary_fits_80_and_120_columns_and_is_coloured_where_the_terminal_wants_it() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for (columns, has_colours) in [(80, false), (120, false), (80, true), (120, true)] {
            let text = shown(columns, has_colours, "report latest");
            let name = format!("terminal-{columns}{}", if has_colours { "-colours" } else { "" });
            if !has_colours {
                assert!(!text.contains('‹'), "{text}");
                assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{text}");
                let answer = text.lines().skip_while(|line| !line.starts_with("mysql-8.0.31 is "));
                assert!((10..=24).contains(&answer.count()), "it fits one screen:\n{text}");
            }
            insta::assert_snapshot!(name, text);
        }
    });
}

/// Replaces each figure with an N, because figures differ from run to run.
fn masked(line: &str) -> String {
    let mut text = String::new();
    for character in line.chars() {
        match character {
            c if c.is_ascii_digit() => text.push('N'),
            ',' | '.' if text.ends_with('N') => {}
            c => text.push(c),
        }
    }
    while text.contains("NN") {
        text = text.replace("NN", "N");
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
#[ignore = "in cargo xtask test --all: tmux"]
fn while_a_run_goes_on_one_line_has_rate_p99_and_the_time_that_is_left() {
    let always = ["ETA N:N", "N queries/s", "pN N ms"];
    let with_room = ["block N/N", "sqlite", "point-select.cN"];
    for (columns, parts) in [(80, &[][..]), (120, &with_room[..])] {
        let desk = Desk::new();
        let options = "--server sqlite --workload oltp --test point-select --connections 1 --time 60s \
                       --set workload.oltp.table_size=100 --set workload.oltp.tables=1 --blocks 5";
        let session = Session::start(&desk, columns, false, &format!("run {options}"));
        let is_progress = |line: &&str| line.contains("/s") && line.contains("p99");
        // A failure shows the text on the screen.
        let mut screen = String::new();
        let line = (0..600).find_map(|_| {
            std::thread::sleep(Duration::from_millis(500));
            screen = session.screen();
            screen.lines().find(is_progress).map(str::to_owned)
        });
        let line = line.unwrap_or_else(|| panic!("no rate and p99 in:\n{screen}"));
        assert!(line.chars().count() <= usize::from(columns), "{line}");
        let masked = masked(&line);
        assert!(always.iter().chain(parts).all(|part| masked.contains(part)), "{line}");
    }
}
