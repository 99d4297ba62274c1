//! `dbdyno` alone: what can be done here, in a dozen lines.

use crate::exit::Ended;
use crate::terminal;

const OVERVIEW: &str = "\
dbdyno runs the same workload on database servers and configurations and compares the results.

  dbdyno run [PLAN]             run a plan; without one the Insert Benchmark on SQLite, about a minute
  dbdyno plan PLAN              what a plan would run, how long it takes, how much disk it needs
  dbdyno report RUN             results of a run: tables; with -o FILE.html also charts
  dbdyno compare RUN:A RUN:B    is B faster, slower or the same; status 1 if slower, for a CI job
  dbdyno history RUNS           many runs of one plan: when did a rate change
  dbdyno servers list           servers that can be installed, and installed ones
  dbdyno list workloads         what can be run (also: drivers, metrics, runs)

`dbdyno COMMAND --help` explains a command.
";

pub(crate) fn show() -> Result<(), Ended> {
    terminal::out(OVERVIEW)
}
