//! `dbdyno pgbench`: pgbench's own command line and text output, with dbdyno's load engine.

mod command_line;
mod invocation;
mod text;

use std::time::{Duration, Instant};

use dbdyno_drivers::{AnySession, Session};
use dbdyno_loadgen::{Observer, StepEnd, Threads};
use dbdyno_record::{Interval, Outcome};
use dbdyno_workloads::pgbench::{Pgbench, builtin};
use hdrhistogram::Histogram;

use self::invocation::Invocation;
use self::text::{Counts, Took};
use crate::exit::ExitError;
use crate::{terminal, unrecorded};

pub(crate) fn run(arguments: &[String]) -> Result<(), ExitError> {
    let line = command_line::read(arguments).map_err(ExitError::usage)?;
    if let Some(name) = line.text("show-script") {
        let own = builtin(name).map_err(ExitError::usage)?;
        return terminal::out(&format!("-- {}: {}\n{}", own.name, own.title, own.text));
    }
    if line.has("version") {
        return terminal::out(&format!("pgbench (PostgreSQL) 15 (dbdyno {})", env!("CARGO_PKG_VERSION")));
    }
    if !line.ignored.is_empty() {
        let names: Vec<String> = line.ignored.iter().map(|name| format!("--{name}")).collect();
        terminal::note(&format!("without effect here: {}", names.join(", ")));
    }
    let invocation = Invocation::of(&line).map_err(ExitError::usage)?;
    let context = unrecorded::context(invocation.endpoint.clone(), &invocation.load, invocation.seed)?;
    let workload = Pgbench::alone(&invocation.options, context).map_err(ExitError::usage)?;
    if invocation.initializes { initialize(&invocation, &workload) } else { measure(&invocation, workload) }
}

fn initialize(invocation: &Invocation, workload: &Pgbench) -> Result<(), ExitError> {
    if invocation.options.init_steps.is_empty() {
        return Err(ExitError::usage("no initialization steps specified"));
    }
    let began = Instant::now();
    terminal::note(&format!(
        "making {} accounts ({})...",
        100_000 * workload.scale(),
        invocation.options.init_steps
    ));
    let end = unrecorded::step(
        workload,
        Threads::default(),
        (&invocation.load, invocation.seed),
        None,
        &mut Nothing,
    )?;
    ended(&end)?;
    terminal::note(&format!("done in {:.2} s.", began.elapsed().as_secs_f64()));
    Ok(())
}

/// A load says nothing while it runs.
struct Nothing;

impl Observer for Nothing {}

fn measure(invocation: &Invocation, mut workload: Pgbench) -> Result<(), ExitError> {
    terminal::note(&format!("setting random seed to {}", invocation.seed));
    unrecorded::wait(ready(invocation, &mut workload))??;
    let mut seen = Seen::new(invocation);
    let threads = Threads { count: Some(invocation.jobs), ..Threads::default() };
    let end = unrecorded::step(&workload, threads, (&invocation.load, invocation.seed), None, &mut seen)?;
    ended(&end)?;
    let took = Took {
        seconds: seen.last_us as f64 / 1e6,
        connecting: seen.barrier.saturating_duration_since(seen.began),
    };
    let report = text::report(&seen.all, invocation, &workload.scripts(), workload.scale(), took);
    terminal::out(&format!("pgbench (PostgreSQL) 15 (dbdyno {})\n{report}", env!("CARGO_PKG_VERSION")))
}

async fn ready(invocation: &Invocation, workload: &mut Pgbench) -> Result<(), ExitError> {
    let mut session = invocation.endpoint.connect().await.map_err(ExitError::server)?;
    let done = prepared(invocation, workload, &mut session).await.map_err(ExitError::server);
    session.close().await;
    done
}

async fn prepared(
    invocation: &Invocation,
    workload: &mut Pgbench,
    session: &mut AnySession,
) -> Result<(), dbdyno_workloads::Error> {
    if workload.scripts().iter().any(|script| script.title.starts_with("<builtin")) {
        workload.find_scale(session).await?;
        if invocation.scale.is_some_and(|scale| u64::from(scale) != workload.scale()) {
            let scale = workload.scale();
            terminal::note(&format!("-s is ignored: pgbench_branches has {scale} rows"));
        }
    }
    if workload.make_ready(session).await?.is_some() {
        terminal::note("starting vacuum...end.");
    }
    Ok(())
}

fn ended(end: &StepEnd) -> Result<(), ExitError> {
    if end.outcome == Outcome::Completed {
        return Ok(());
    }
    let message = end.message.as_deref().unwrap_or("the run did not complete");
    Err(ExitError::usage(format!("Run was aborted: {message}")))
}

struct Seen<'a> {
    invocation: &'a Invocation,
    all: Counts,
    /// Since the line before.
    part: Counts,
    began: Instant,
    barrier: Instant,
    last_us: u64,
    line_us: u64,
}

impl<'a> Seen<'a> {
    fn new(invocation: &'a Invocation) -> Self {
        let now = Instant::now();
        let (all, part) = (Counts::default(), Counts::default());
        Self { invocation, all, part, began: now, barrier: now, last_us: 0, line_us: 0 }
    }
}

impl Observer for Seen<'_> {
    fn warning(&mut self, text: &str) {
        terminal::warning(text);
    }

    fn barrier(&mut self, start: Instant) {
        self.barrier = start;
    }

    fn times(&mut self, _: &str, response: &Histogram<u64>) {
        for counts in [&mut self.all, &mut self.part] {
            // Ranges grow: adding cannot fail.
            let _ = counts.times.0.add(response);
        }
    }

    fn late(&mut self, max_us: u64) {
        self.all.lag_max_us = self.all.lag_max_us.max(max_us);
    }

    fn statements(&mut self, name: &str, done: u64, times: Option<&Histogram<u64>>) {
        let part = self.all.parts.entry(name.to_owned()).or_default();
        part.0 += done;
        if let Some(times) = times {
            let _ = part.1.0.add(times);
        }
    }

    fn second(&mut self, intervals: &[Interval]) {
        for interval in intervals {
            self.last_us = self.last_us.max(interval.to_us);
            for counts in [&mut self.all, &mut self.part] {
                counts.done += interval.done;
                counts.failed += interval.failed;
                counts.retries += interval.errors.retry;
                counts.skipped += interval.dropped;
                counts.lag_us += interval.response_sum_us.saturating_sub(interval.service_sum_us);
            }
        }
        let every = Duration::from_secs(self.invocation.progress);
        let since = Duration::from_micros(self.last_us.saturating_sub(self.line_us));
        if !every.is_zero() && since >= every {
            let total = self.last_us as f64 / 1e6;
            terminal::note(&text::progress(&self.part, self.invocation, since.as_secs_f64(), total));
            (self.part, self.line_us) = (Counts::default(), self.last_us);
        }
    }
}
