//! Tests that the command's output fits 80 columns when the terminal's width is unknown.

use crate::commands::recorded;
use crate::support::Desk;

const PRINTING: [&str; 14] = [
    "",
    "list workloads",
    "list drivers",
    "list metrics",
    "list runs",
    "list servers",
    "plans",
    "plan",
    "plan @microbenchmarks-2024",
    "doctor",
    "servers list",
    "servers list --here",
    "report latest",
    "plans show --help",
];

/// The commands' names in the help text of their parent command.
fn commands(help: &str) -> impl Iterator<Item = &str> {
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help")
}

#[test]
fn lists_plans_checks_and_help_fit_80_columns() {
    let desk = Desk::new();
    recorded::write(&desk.path("runs"));
    let version = "echo 'mysqld  Ver 8.0.31 for Linux on x86_64 (MySQL Community Server - GPL)'";
    desk.fake_server("servers/mysql-8.0.31", version);
    let said = |args: &str| {
        let mut command = desk.command(&args.split_whitespace().collect::<Vec<_>>());
        // The paths are short, because dbdyno never breaks a path across lines. A user can then
        // copy it.
        command.env("DBDYNO_SERVERS", "servers").env("XDG_CACHE_HOME", "cache").env_remove("COLUMNS");
        let ended = desk.ended(&mut command);
        assert!(!ended.out.is_empty(), "{args}: {}", ended.err);
        ended.out
    };
    let (all, servers) = (said("--help"), said("servers --help"));
    let of_servers = commands(&servers).map(|name| format!("servers {name} --help"));
    let helps = commands(&all).map(|name| format!("{name} --help")).chain(of_servers);
    let workloads = dbdyno_workloads::ALL.iter().map(|kind| format!("list workloads {}", kind.name()));
    for args in PRINTING.map(str::to_owned).into_iter().chain(helps).chain(workloads) {
        for line in said(&args).lines() {
            assert!(line.chars().count() <= 80, "dbdyno {args}: {line}");
        }
    }
}
