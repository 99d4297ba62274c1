//! `cargo xtask demo` compares real servers and writes the page and its screenshots under
//! docs/demo.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::Parser;

use crate::page;
use crate::servers::{get_for_plan, measured, servers_of};
use crate::workspace::{self, built_dbdyno, run};

/// Compare five MySQL and MariaDB servers (docs/demo/demo.toml) and write docs/demo: the page and
/// screenshots.
///
/// Builds dbdyno in release, gets the servers and runs them for about half an hour. It begins when
/// the load average of the last minute is below 0.3; nothing else should run on the machine
/// meanwhile. Chromium and npm are needed for the screenshots.
#[derive(Debug, Parser)]
pub(crate) struct DemoArgs {
    /// Write page and screenshots of a run that is there, instead of running the plan.
    #[arg(long, value_name = "DIR")]
    run: Option<PathBuf>,
}

const PLAN: [&str; 1] = ["docs/demo/demo.toml"];

pub(crate) fn make(args: &DemoArgs) -> Result<()> {
    let dbdyno = built_dbdyno()?;
    let folder = workspace::root().join("docs/demo");
    let measured = match &args.run {
        Some(run) => std::path::absolute(run)?,
        None => {
            get_for_plan(&servers_of(&dbdyno, &PLAN)?)?;
            workspace::wait_until_quiet()?;
            measured(&dbdyno, &PLAN, &workspace::target().join("demo"), None)?
        }
    };
    let html = folder.join("report.html");
    run(Command::new(&dbdyno).arg("report").arg(&measured).arg("--output").arg(&html))?;
    page::install()?;
    let script = page::folder().join("test/screenshots.mjs");
    run(Command::new("node").arg(script).arg(&html).arg(&folder))
}
