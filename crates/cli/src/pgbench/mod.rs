//! `dbdyno pgbench` offers pgbench's own command line and text output, with dbdyno's load engine.

mod invocation;
mod log;
mod text;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use dbdyno_db::{AnySession, Session};
use dbdyno_loadgen::{Observer, StepEnd, Threads};
use dbdyno_record::{Interval, Outcome};
use dbdyno_workloads::pgbench::{Alone, BUILTINS, Listener, Pgbench, builtin};
use hdrhistogram::Histogram;

use self::invocation::PgbenchInvocation;
use self::text::{PgbenchCounts, PgbenchReport, ReportTimes};
use crate::exit::ExitError;
use crate::pgbench::log::{FailureCounts, Watch};
use crate::{load, terminal};

/// Exit status for errors before a run: options, scripts, files, or the first connection.
const STATIC: u8 = 1;
/// Exit status for errors while the run goes on.
const ABORTED: u8 = 2;

fn wrong(problem: impl ToString) -> ExitError {
    ExitError::new(STATIC, problem)
}

pub(crate) fn run(arguments: &[String]) -> Result<(), ExitError> {
    let line = invocation::read_words(arguments).map_err(wrong)?;
    if line.repeated.iter().any(|(name, value)| *name == "builtin" && value == "list") {
        terminal::aside(&listed());
        return Ok(());
    }
    if let Some(name) = line.text("show-script") {
        let own = builtin(name).map_err(wrong)?;
        terminal::aside(&format!("-- {}: {}\n{}", own.name, own.title, own.text));
        return Ok(());
    }
    if line.has("version") {
        return terminal::out(&format!("pgbench (PostgreSQL) 15 (dbdyno {})", env!("CARGO_PKG_VERSION")));
    }
    if !line.ignored.is_empty() {
        let names: Vec<String> = line.ignored.iter().map(|name| format!("--{name}")).collect();
        terminal::note(&format!("options without effect: {}", names.join(", ")));
    }
    let invocation = PgbenchInvocation::of(&line).map_err(wrong)?;
    let context =
        load::ad_hoc_context(invocation.database_server.clone(), invocation.seed).map_err(as_static)?;
    let watch = Arc::new(Watch::new(&invocation).map_err(wrong)?);
    let alone =
        Alone { listener: Arc::clone(&watch) as Arc<dyn Listener>, latency_limit: invocation.latency_limit };
    let workload = Pgbench::alone(&invocation.options, context, alone).map_err(wrong)?;
    if invocation.initializes {
        initialize(&invocation, &workload).map_err(as_static)
    } else {
        measure(&invocation, workload, &watch)
    }
}

/// Gives an error from before the run the exit status that pgbench has for it.
fn as_static(error: ExitError) -> ExitError {
    ExitError { code: STATIC, ..error }
}

/// Returns the list of scripts that `-b list` prints.
fn listed() -> String {
    let lines = BUILTINS.iter().map(|own| format!("  {:>13}: {}\n", own.name, own.title));
    format!("Available builtin scripts:\n{}", lines.collect::<String>())
}

fn initialize(invocation: &PgbenchInvocation, workload: &Pgbench) -> Result<(), ExitError> {
    if invocation.options.init_steps.is_empty() {
        return Err(wrong("no initialization steps specified"));
    }
    let began = Instant::now();
    terminal::note(&format!(
        "making {} accounts ({})...",
        100_000 * workload.scale(),
        invocation.options.init_steps
    ));
    let end = load::ad_hoc_step(
        workload,
        Threads::default(),
        (&invocation.opening, invocation.seed),
        None,
        &mut SilentObserver,
    )?;
    if end.outcome != Outcome::Completed {
        return Err(wrong(reason(&end)));
    }
    terminal::note(&format!("done in {:.2} s.", began.elapsed().as_secs_f64()));
    Ok(())
}

fn reason(end: &StepEnd) -> &str {
    end.message.as_deref().unwrap_or("the run did not complete")
}

/// An observer of a load that prints nothing while the load runs.
struct SilentObserver;

impl Observer for SilentObserver {}

fn measure(invocation: &PgbenchInvocation, mut workload: Pgbench, watch: &Watch) -> Result<(), ExitError> {
    terminal::note(&format!("setting random seed to {}", invocation.seed));
    let partitions = load::wait(ready(invocation, &mut workload)).and_then(|done| done).map_err(as_static)?;
    let mut seen = PgbenchObserver::new(invocation, watch);
    let threads = Threads { count: Some(invocation.jobs), ..Threads::default() };
    let end = load::ad_hoc_step(&workload, threads, (&invocation.opening, invocation.seed), None, &mut seen)?;
    let has_completed = end.outcome == Outcome::Completed;
    if !has_completed && !seen.has_begun {
        return Err(wrong(reason(&end)));
    }
    let logged = watch.finish();
    if !has_completed {
        terminal::error(reason(&end));
    }
    if !has_completed && invocation.exit_on_abort {
        return Err(ExitError::new(ABORTED, "Run was aborted."));
    }
    let took = ReportTimes {
        seconds: seen.last_us as f64 / 1e6,
        connecting: seen.barrier.saturating_duration_since(seen.began),
    };
    let tally = watch.tally();
    let report = PgbenchReport {
        counts: &seen.all,
        tally: &tally,
        invocation,
        scripts: &workload.scripts(),
        scale: workload.scale(),
        partitions,
        took,
    };
    let head = format!("pgbench (PostgreSQL) 15 (dbdyno {})", env!("CARGO_PKG_VERSION"));
    terminal::out(&format!("{head}\n{}", report.text()))?;
    if !has_completed {
        return Err(ExitError::new(ABORTED, "Run was aborted; the above results are incomplete."));
    }
    logged.map_err(|error| ExitError::new(ABORTED, format!("cannot write the log: {error}; make room there")))
}

/// Method and number of the accounts table's partitions, if it has any.
type Partitions = Option<(&'static str, i64)>;

async fn ready(invocation: &PgbenchInvocation, workload: &mut Pgbench) -> Result<Partitions, ExitError> {
    let mut session = invocation.database_server.connect().await.map_err(wrong)?;
    let done = prepared(invocation, workload, &mut session).await.map_err(wrong);
    session.close().await;
    done
}

async fn prepared(
    invocation: &PgbenchInvocation,
    workload: &mut Pgbench,
    session: &mut AnySession,
) -> Result<Partitions, dbdyno_workloads::Error> {
    let mut partitions = None;
    if workload.scripts().iter().any(|script| script.title.starts_with("<builtin")) {
        workload.find_scale(session).await?;
        partitions = workload.partitions(session).await;
        if invocation.scale.is_some_and(|scale| u64::from(scale) != workload.scale()) {
            let scale = workload.scale();
            terminal::note(&format!("-s is ignored: pgbench_branches has {scale} rows"));
        }
    }
    if workload.make_ready(session).await?.is_some() {
        terminal::note("starting vacuum...end.");
    }
    Ok(partitions)
}

struct PgbenchObserver<'a> {
    invocation: &'a PgbenchInvocation,
    watch: &'a Watch,
    all: PgbenchCounts,
    /// Counts since the previous line.
    part: PgbenchCounts,
    /// Failures and retries up to the previous line.
    troubles: FailureCounts,
    began: Instant,
    barrier: Instant,
    has_begun: bool,
    last_us: u64,
    line_us: u64,
}

impl<'a> PgbenchObserver<'a> {
    fn new(invocation: &'a PgbenchInvocation, watch: &'a Watch) -> Self {
        let now = Instant::now();
        Self {
            invocation,
            watch,
            all: PgbenchCounts::default(),
            part: PgbenchCounts::default(),
            troubles: FailureCounts::default(),
            began: now,
            barrier: now,
            has_begun: false,
            last_us: 0,
            line_us: 0,
        }
    }
}

impl Observer for PgbenchObserver<'_> {
    fn warning(&mut self, text: &str) {
        terminal::warning(text);
    }

    fn barrier(&mut self, start: Instant) {
        self.barrier = start;
        self.has_begun = true;
        self.watch.begin(SystemTime::now() + start.saturating_duration_since(Instant::now()));
    }

    fn times(&mut self, _: &str, response: &Histogram<u64>) {
        for counts in [&mut self.all, &mut self.part] {
            // Adding cannot fail, because the histogram's range grows.
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
                counts.lag_us += interval.response_sum_us.saturating_sub(interval.service_sum_us);
            }
        }
        let every = Duration::from_secs(self.invocation.progress);
        let since = Duration::from_micros(self.last_us.saturating_sub(self.line_us));
        if !every.is_zero() && since >= every {
            let total = self.last_us as f64 / 1e6;
            let all = self.watch.tally().all;
            let troubles = all.since(&self.troubles);
            let seconds = since.as_secs_f64();
            terminal::note(&text::progress(&self.part, &troubles, self.invocation, seconds, total));
            (self.part, self.troubles, self.line_us) = (PgbenchCounts::default(), all, self.last_us);
        }
    }
}
