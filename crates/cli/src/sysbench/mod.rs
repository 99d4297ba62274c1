//! `dbdyno sysbench` offers sysbench's own command line and text output, with dbdyno's load engine.

mod invocation;
mod text;

use std::collections::BTreeMap;

use dbdyno_loadgen::{Observer, StepEnd, Threads};
use dbdyno_record::{Interval, Outcome};
use dbdyno_workloads::sysbench::Sysbench;
use hdrhistogram::Histogram;

use self::invocation::SysbenchInvocation;
use self::text::SysbenchCounts;
use crate::exit::ExitError;
use crate::{load, terminal, time};

pub(crate) fn run(arguments: &[String]) -> Result<(), ExitError> {
    let line = invocation::read_words(arguments).map_err(ExitError::usage)?;
    let missing =
        |what: &str| ExitError::usage(format!("{what}, e.g. dbdyno sysbench oltp_read_only --threads=4 run"));
    let commands = "no command given: prepare, run, cleanup, prewarm, help or one of the script's own";
    let script = line.script.clone().ok_or_else(|| missing("name a script and a command"))?;
    let command = line.command.clone().ok_or_else(|| missing(commands))?;
    if matches!(script.as_str(), "cpu" | "fileio" | "memory" | "threads" | "mutex") {
        let message =
            format!("{script} is a test of sysbench that asks no database: dbdyno has none of those");
        return Err(ExitError::usage(message));
    }
    let ignored = line.ignored();
    if !ignored.is_empty() {
        terminal::note(&format!("options without effect: {}", ignored.join(", ")));
    }
    let invocation = SysbenchInvocation::of(&line, &script, &command).map_err(ExitError::usage)?;
    let context = load::ad_hoc_context(invocation.database_server.clone(), invocation.seed)?;
    let workload = Sysbench::alone(&invocation.options, context).map_err(ExitError::usage)?;
    terminal::out(&format!("sysbench 1.0.20 (dbdyno {})\n\n", env!("CARGO_PKG_VERSION")))?;
    match command.as_str() {
        "help" => help(&script, workload),
        "run" => measure(&invocation, workload),
        _ => run_command(&invocation, workload),
    }
}

fn help(script: &str, mut workload: Sysbench) -> Result<(), ExitError> {
    if workload.has_help() {
        // This call prints the help.
        load::wait(workload.help())?.map_err(ExitError::usage)?;
        return printed(&workload);
    }
    let stem = script.strip_suffix(".lua").unwrap_or(script);
    let options = workload.own_options();
    let lines = options.iter().map(|option| {
        text::option(&option.name, &option.kind, &option.description, option.default.as_deref())
    });
    terminal::out(&format!("{stem} options:\n{}", lines.collect::<Vec<_>>().join("\n")))
}

/// Runs `prepare`, `cleanup` or another command. The script prints what it does.
fn run_command(invocation: &SysbenchInvocation, workload: Sysbench) -> Result<(), ExitError> {
    let end = engine(invocation, &workload, &mut SysbenchObserver::new(invocation, &workload))?;
    printed(&workload)?;
    ended(&end)
}

fn measure(invocation: &SysbenchInvocation, mut workload: Sysbench) -> Result<(), ExitError> {
    terminal::out(&header(invocation))?;
    load::wait(workload.begin())?.map_err(ExitError::server)?;
    printed(&workload)?;
    terminal::out("Initializing worker threads...\n\nThreads started!\n\n")?;
    let mut seen = SysbenchObserver::new(invocation, &workload);
    let end = engine(invocation, &workload, &mut seen)?;
    printed(&workload)?;
    ended(&end)?;
    let seconds = seen.last_us.saturating_sub(seen.warmup_us()) as f64 / 1e6;
    let stat = seen.all.stat(invocation.threads, invocation.percentile, seconds, seconds);
    if invocation.histogram {
        terminal::out(&text::histogram(&seen.all))?;
        terminal::out(" ")?;
    }
    if !workload.report("cumulative", &stat).map_err(ExitError::usage)? {
        let threads = seen.threads(&end);
        terminal::out(&text::cumulative(&seen.all, invocation.percentile, seconds, &threads, seen.asks()))?;
    }
    let queue = seen.queue_fault();
    load::wait(workload.end())?.map_err(ExitError::server)?;
    printed(&workload)?;
    queue.map_or(Ok(()), |fault| Err(ExitError::new(1, fault)))
}

fn header(invocation: &SysbenchInvocation) -> String {
    let mut lines = vec!["Running the test with following options:".to_owned()];
    lines.push(format!("Number of threads: {}", invocation.threads));
    let warmup = invocation.options.warmup.0.as_secs();
    if warmup > 0 {
        lines.push(format!("Warmup time: {warmup}s"));
    }
    if let Some(rate) = invocation.options.rates.first() {
        lines.push(format!("Target transaction rate: {rate}/sec"));
    }
    if invocation.report_interval > 0 {
        lines.push(format!("Report intermediate results every {} second(s)", invocation.report_interval));
    }
    lines.push(format!("Initializing random number generator from seed ({}).\n\n\n", invocation.seed));
    lines.join("\n")
}

fn printed(workload: &Sysbench) -> Result<(), ExitError> {
    let text = workload.take_printed();
    if text.is_empty() { Ok(()) } else { terminal::out(&text) }
}

fn ended(end: &StepEnd) -> Result<(), ExitError> {
    match (end.outcome, &end.message) {
        (Outcome::Completed, _) => Ok(()),
        (_, message) => {
            let message = message.as_deref().unwrap_or("the run did not complete");
            Err(ExitError::new(1, format!("FATAL: {message}")))
        }
    }
}

fn engine(
    invocation: &SysbenchInvocation,
    workload: &Sysbench,
    seen: &mut SysbenchObserver<'_>,
) -> Result<StepEnd, ExitError> {
    let threads =
        Threads { blocking: invocation.database_server.capabilities.blocking, ..Threads::default() };
    let is_run = invocation.options.commands == ["run"];
    let shortened =
        invocation.forced_shutdown.filter(|_| is_run).map(|more| invocation.options.time.0 + more);
    load::ad_hoc_step(workload, threads, (&invocation.opening, invocation.seed), shortened, seen)
}

/// Seconds' worth of events at the target rate that may wait when the warm-up ends.
const MOST_QUEUED_SECONDS: f64 = 0.010;

struct SysbenchObserver<'a> {
    invocation: &'a SysbenchInvocation,
    workload: &'a Sysbench,
    all: SysbenchCounts,
    /// Counts since the previous line.
    part: SysbenchCounts,
    clients: BTreeMap<u32, (u64, u64)>,
    last_us: u64,
    line_us: u64,
    /// Events that were due but had not begun when the warm-up ended.
    queued: u64,
}

impl<'a> SysbenchObserver<'a> {
    fn new(invocation: &'a SysbenchInvocation, workload: &'a Sysbench) -> Self {
        let (all, part) = (SysbenchCounts::default(), SysbenchCounts::default());
        let clients = BTreeMap::new();
        Self { invocation, workload, all, part, clients, last_us: 0, line_us: 0, queued: 0 }
    }

    /// Whether the script uses a database. sysbench then reports statements, even when none was
    /// answered.
    fn asks(&self) -> bool {
        self.workload.asks_database()
    }

    /// Returns an error if too many events of an open loop were waiting when the warm-up ended,
    /// because the response times then include the time in that queue.
    fn queue_fault(&self) -> Option<String> {
        let rate = *self.invocation.options.rates.first()?;
        let most = (f64::from(rate) * MOST_QUEUED_SECONDS).max(1.0);
        (self.queued as f64 > most).then(|| {
            format!(
                "INVALID: {} events were still waiting when the warm-up ended, {:.1} s of the target rate: the latencies are those \
                 of that queue; give a longer --warmup-time or a lower --rate",
                self.queued,
                self.queued as f64 / f64::from(rate)
            )
        })
    }

    fn warmup_us(&self) -> u64 {
        time::to_us(self.invocation.options.warmup.0)
    }

    /// Returns events and seconds of each thread. Threads that are one client in the counts get
    /// equal parts of its time.
    fn threads(&self, end: &StepEnd) -> Vec<(f64, f64)> {
        let per_client = (self.invocation.threads as usize / self.clients.len().max(1)).max(1);
        let of_clients = self.clients.values().flat_map(|&(events, us)| {
            let part = (events as f64 / per_client as f64, us as f64 / 1e6 / per_client as f64);
            std::iter::repeat_n(part, per_client)
        });
        let mut threads: Vec<(f64, f64)> = of_clients.collect();
        if self.warmup_us() == 0 && threads.len() == end.tasks.len() {
            threads.iter_mut().zip(&end.tasks).for_each(|(thread, task)| thread.0 = task.done as f64);
        }
        threads
    }

    fn line(&mut self) {
        let SysbenchInvocation { threads, percentile, .. } = *self.invocation;
        let seconds = (self.last_us - self.line_us) as f64 / 1e6;
        let total = self.last_us.saturating_sub(self.warmup_us()) as f64 / 1e6;
        let part = std::mem::take(&mut self.part);
        let stat = part.stat(threads, percentile, seconds, total);
        // A failure to print is noticed when the report is printed at the end.
        let _ = match self.workload.report("intermediate", &stat) {
            Ok(true) => printed(self.workload),
            Ok(false) => {
                let line = text::interval(&part, threads, percentile, seconds, total, self.asks());
                let has_rate = !self.invocation.options.rates.is_empty();
                let queue = has_rate.then(|| format!("\n{}", text::queue(&part, total)));
                terminal::out(&(line + &queue.unwrap_or_default()))
            }
            Err(problem) => {
                terminal::warning(&problem);
                Ok(())
            }
        };
        self.line_us = self.last_us;
    }
}

impl Observer for SysbenchObserver<'_> {
    fn warning(&mut self, text: &str) {
        terminal::warning(text);
    }

    fn times(&mut self, _: &str, response: &Histogram<u64>) {
        for counts in [&mut self.all, &mut self.part] {
            // Adding cannot fail, because the histogram's range grows.
            let _ = counts.times.0.add(response);
        }
    }

    fn statements(&mut self, name: &str, done: u64, _: Option<&Histogram<u64>>) {
        for counts in [&mut self.all, &mut self.part] {
            match name {
                "read" => counts.reads += done,
                "write" => counts.writes += done,
                "other" | "unchanged" => counts.other += done,
                // The event of a reconnect began again, so sysbench does not count it as an ignored
                // error.
                "reconnect" => {
                    (counts.reconnects, counts.reopened) = (counts.reconnects + done, counts.reopened + done)
                }
                _ => {}
            }
        }
    }

    fn second(&mut self, intervals: &[Interval]) {
        for interval in intervals {
            self.last_us = self.last_us.max(interval.to_us);
            for counts in [&mut self.all, &mut self.part] {
                counts.events += interval.done;
                counts.errors += interval.errors.retry;
                counts.reconnects += interval.errors.lost;
            }
            let client = self.clients.entry(interval.client).or_default();
            (client.0, client.1) = (client.0 + interval.done, client.1 + interval.service_sum_us);
        }
        if self.last_us <= self.warmup_us() {
            (self.all, self.part, self.line_us) =
                (SysbenchCounts::default(), SysbenchCounts::default(), self.last_us);
            self.clients.clear();
            let ended = intervals.iter().filter(|interval| interval.to_us == self.warmup_us());
            self.queued += ended.map(|interval| interval.backlog).sum::<u64>();
        }
        for counts in [&mut self.all, &mut self.part] {
            counts.queue_length = intervals.iter().map(|interval| interval.backlog).sum();
            counts.concurrency = intervals.iter().map(|interval| interval.in_flight).sum();
        }
        let every_us = self.invocation.report_interval * 1_000_000;
        if every_us > 0 && self.last_us >= self.line_us + every_us {
            self.line();
        }
    }
}
