//! The project's own commands: `cargo xtask test`, `servers`, `bench`, `page`, `demo`, `reports`,
//! `dist`.

mod bench;
mod debian_source;
mod demo;
mod dist;
mod filled;
mod page;
mod reports;
mod servers;
mod test;
#[cfg(test)]
mod tidy_tests;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own commands.
#[derive(Debug, Parser)]
#[command(name = "xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct XtaskArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Test(test::TestArgs),
    Servers(servers::ServersArgs),
    Bench(bench::BenchArgs),
    Page(page::PageArgs),
    Demo(demo::DemoArgs),
    Reports(reports::ReportsArgs),
    Dist(dist::DistArgs),
}

fn main() -> ExitCode {
    let done = match XtaskArgs::parse().command {
        Command::Test(args) => test::run(&args),
        Command::Servers(args) => servers::run(&args).map(|()| true),
        Command::Bench(args) => bench::run(&args),
        Command::Page(args) => page::build(&args).map(|()| true),
        Command::Demo(args) => demo::make(&args).map(|()| true),
        Command::Reports(args) => reports::make(&args).map(|()| true),
        Command::Dist(args) => dist::go(&args).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            workspace::note(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        XtaskArgs::command().debug_assert();
    }
}
