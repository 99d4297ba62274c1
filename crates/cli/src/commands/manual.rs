//! `dbdyno man` and `dbdyno completions`: the command line as manual pages and for shells, from its
//! own texts.

use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::{Args, CompletionsArgs, ManArgs};
use crate::exit::{Ended, OURS, USAGE};
use crate::terminal;

/// Prints a manual page, as roff.
pub(crate) fn man(args: &ManArgs) -> Result<(), Ended> {
    let mut whole = Args::command();
    // Names of pages and usages of commands follow from those above them.
    whole.build();
    let command = match &args.command {
        None => whole,
        Some(name) => whole.find_subcommand(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = whole.get_subcommands().map(clap::Command::get_name).collect();
            Ended::new(USAGE, format!("there is no command {name:?}; there are {}", known.join(", ")))
        })?,
    };
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| Ended::new(OURS, error))?;
    terminal::out(&String::from_utf8_lossy(&page))
}

/// Prints what a shell needs to complete the command's words.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Ended> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "dbdyno", &mut text);
    terminal::out(&String::from_utf8_lossy(&text))
}
