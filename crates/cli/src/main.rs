//! The command `dbdyno`: it reads the command line, runs a command, and turns its end into an exit
//! status.

mod args;
mod clients;
mod commands;
mod conductor;
mod doctor;
mod engines;
mod exit;
mod files;
mod fleet;
mod host;
mod http;
mod limits;
mod load;
mod pgbench;
mod plan;
mod progress;
mod signals;
#[cfg(feature = "scripts")]
mod sysbench;
mod terminal;
mod time;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command, accepted};
use crate::exit::{ExitError, USAGE};

fn main() -> ExitCode {
    limits::begin();
    let ended = match Args::try_parse_from(accepted(std::env::args_os())) {
        Ok(args) => {
            terminal::set(args.color, args.quiet);
            run_command(args.command)
        }
        Err(answer) => terminal::answer(&answer),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(ExitError { code, message }) => {
            match message {
                Some(message) if code == USAGE => terminal::mistake(&message),
                Some(message) => terminal::error(&message),
                None => {}
            }
            ExitCode::from(code)
        }
    }
}

fn run_command(command: Option<Command>) -> Result<(), ExitError> {
    match command {
        None => commands::manual::overview(),
        Some(Command::Run(run)) => commands::run::run(&run),
        Some(Command::Plan(plan)) => commands::plan::show(&plan),
        Some(Command::Plans { verb }) => commands::plan::plans(verb.as_ref()),
        Some(Command::Init(init)) => commands::init::init(&init),
        Some(Command::Report(report)) => commands::report::report(&report),
        Some(Command::Compare(compare)) => commands::compare::compare(&compare),
        Some(Command::History(history)) => commands::history::history(&history),
        Some(Command::Serve { folder, port }) => commands::site::serve(&folder, port),
        Some(Command::List(list)) => commands::list::list(&list),
        Some(Command::Servers { verb }) => commands::servers::servers(&verb),
        Some(Command::Doctor(doctor)) => doctor::doctor(&doctor),
        Some(Command::Completions { shell }) => commands::manual::completions(shell),
        Some(Command::Man { command }) => commands::manual::man(command.as_deref()),
        Some(Command::KnownAnswer(server)) => commands::known_answer::serve(&server),
        #[cfg(feature = "scripts")]
        Some(Command::Sysbench { words }) => sysbench::run(&words),
        #[cfg(not(feature = "scripts"))]
        Some(Command::Sysbench { .. }) => {
            Err(ExitError::usage(dbdyno_plan::built_without(dbdyno_plan::BuildPart::SCRIPTS)))
        }
        Some(Command::Pgbench { words, .. }) => pgbench::run(&words),
        Some(Command::Task(task)) => commands::run::task(&task),
        Some(Command::Agent { listen }) => clients::agent(&listen),
    }
}
