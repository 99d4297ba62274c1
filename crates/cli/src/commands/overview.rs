//! `dbdyno` alone: what can be done here, in a dozen lines.

use crate::exit::Ended;
use crate::terminal;

const OVERVIEW: &str = "\
dbdyno runs the same work on database servers and says which is faster.

  dbdyno run                SQLite in two modes: a minute, no server needed
  dbdyno run --server A --server B --workload NAME --get      two servers
  dbdyno init               a plan from a few questions; `plans` lists some
  dbdyno plan PLAN          what it would run, how long, with how much disk
  dbdyno report latest      the answer; with -o FILE.html also charts
  dbdyno compare RUN:A :B   ends with status 1 if B is slower, for CI
  dbdyno history RUNS       many runs of one plan: what changed, and when
  dbdyno servers list       servers that can be got, and those that are here
  dbdyno list workloads     what can be run
`dbdyno COMMAND --help` explains a command.
";

pub(crate) fn show() -> Result<(), Ended> {
    terminal::out(OVERVIEW)
}
