//! `dbdyno` alone prints an overview of a dozen lines. `dbdyno man` writes manual pages, and
//! `dbdyno completions` writes completions for a shell. Both come from the texts of the command
//! line.

use clap::CommandFactory;
use clap_mangen::Man;
use dbdyno_products::EMBEDDED;

use crate::args::Args;
use crate::exit::ExitError;
use crate::terminal;

/// Text that `dbdyno` alone prints. `EMBEDDED` stands for the database that needs no server.
const OVERVIEW: &str = "\
dbdyno runs the same work on database servers and says which is faster.

  dbdyno run                EMBEDDED in two modes: a minute, no server needed
  dbdyno run --server A --server B --workload NAME --get      two servers
  dbdyno init               a plan from a few questions; `plans` lists some
  dbdyno plan PLAN          what it would run, how long, with how much disk
  dbdyno report latest      the summary; with -o FILE.html also charts
  dbdyno compare RUN:A :B   ends with status 1 if B is slower, for CI
  dbdyno history RUNS       many runs of one plan: what changed, and when
  dbdyno servers list       servers that can be got, and those that are here
  dbdyno list workloads     what can be run
`dbdyno COMMAND --help` explains a command.
";

pub(crate) fn overview() -> Result<(), ExitError> {
    terminal::out(&OVERVIEW.replace("EMBEDDED", EMBEDDED.products[0].name))
}

pub(crate) fn man(command: Option<&str>) -> Result<(), ExitError> {
    let mut whole = Args::command();
    // Page names and usage lines of subcommands derive from the commands above them.
    whole.build();
    let command = match command {
        None => whole,
        Some(name) => whole.find_subcommand(name).cloned().ok_or_else(|| {
            let shown = whole.get_subcommands().filter(|command| !command.is_hide_set());
            let known: Vec<&str> = shown.map(clap::Command::get_name).collect();
            ExitError::usage(format!("there is no command {name:?}; there are {}", known.join(", ")))
        })?,
    };
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(ExitError::ours)?;
    terminal::out(&String::from_utf8_lossy(&page))
}

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<(), ExitError> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "dbdyno", &mut text);
    terminal::out(&String::from_utf8_lossy(&text))
}
