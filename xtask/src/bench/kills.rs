//! Bench `kills`: `kill -9` of dbdyno at random moments, and what was lost, what could not go on
//! and what was left.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use dbdyno_record::{Outcome, Run, StepRecord};

use super::grid::Grid;
use super::{Measured, Setting};
use crate::terminal;

/// How often dbdyno is killed.
const KILLS: u32 = 200;
/// How often one run is killed before it may end.
const KILLS_A_RUN: u32 = 4;
const SEED: u64 = 17;

/// Two cells of all steps that the Insert Benchmark has, as short as they can be.
const PLAN: &str = r#"
name = "kills"
[[variant]]
name = "rollback"
server = "sqlite"
pragmas = { journal_mode = "delete", synchronous = "off" }
[[variant]]
name = "wal"
server = "sqlite"
pragmas = { journal_mode = "wal", synchronous = "off" }
[workload.insert-benchmark]
load_rows = 5_000
write_rows = 1_000
rates = [100]
read_write_time = "1s"
settle_wait = "0s"
"#;

#[derive(Debug, Default)]
struct Tally {
    kills: u32,
    /// That came before the run had a manifest, so that there was nothing to go on with.
    too_early: u32,
    /// That found dbdyno at its end already.
    too_late: u32,
    runs: u32,
    /// Steps that dbdyno had called finished when it was killed, and those of them that no record
    /// has.
    finished: usize,
    lost: Vec<String>,
    /// Runs that went on until their end, valid in all steps.
    completed: u32,
    leftovers: Vec<String>,
    faults: Vec<String>,
}

/// SplitMix64, as in the fuzz targets.
struct Draw(u64);

impl Draw {
    fn time(&mut self, limit: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        limit.mul_f64(((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let plan = setting.folder.join("plan.toml");
    std::fs::write(&plan, PLAN)?;
    let whole = setting.folder.join("whole");
    let began = Instant::now();
    ensure!(start(setting, &plan, None, &whole)?.wait()?.success(), "the plan cannot be run");
    let limit = began.elapsed();
    let (mut tally, mut draw) = (Tally::default(), Draw(SEED));
    while tally.kills < KILLS {
        let out = setting.folder.join(format!("run{:03}", tally.runs));
        one_run(setting, &plan, &out, limit, &mut draw, &mut tally)?;
        if tally.runs % 10 == 0 {
            terminal::note(&format!("{} of {KILLS} kills", tally.kills));
        }
    }
    let grid = grid(&tally);
    for what in tally.lost.iter().chain(&tally.leftovers).chain(&tally.faults) {
        terminal::note(what);
    }
    let facts = vec![format!(
        "kills: {KILLS}, up to {KILLS_A_RUN} a run, at random moments (seed {SEED}); a run takes {:.1} s",
        limit.as_secs_f64()
    )];
    let is_met = tally.lost.is_empty() && tally.leftovers.is_empty() && tally.completed == tally.runs;
    Ok(Measured::of(&grid, facts, is_met))
}

fn grid(tally: &Tally) -> Grid {
    let row = |what: &str, found: String| vec![what.to_owned(), found];
    let rows = vec![
        row("kills", tally.kills.to_string()),
        row("of them before there was a run", tally.too_early.to_string()),
        row("of them when the run had just ended", tally.too_late.to_string()),
        row("finished steps at the kills", tally.finished.to_string()),
        row("of them lost", tally.lost.len().to_string()),
        row("runs", tally.runs.to_string()),
        row("of them resumed until they were complete and valid", tally.completed.to_string()),
        row("leftovers: data, unfinished files", tally.leftovers.len().to_string()),
    ];
    Grid { header: vec!["figure", "found"], rows }
}

/// One run that is killed some times and then ends.
fn one_run(
    setting: &Setting,
    plan: &Path,
    out: &Path,
    limit: Duration,
    draw: &mut Draw,
    tally: &mut Tally,
) -> Result<()> {
    tally.runs += 1;
    let mut said = BTreeSet::new();
    for _ in 0..KILLS_A_RUN.min(KILLS - tally.kills) {
        let mut child = start(setting, plan, run_in(out)?.as_deref(), out)?;
        sleep(draw.time(limit));
        tally.too_late += u32::from(child.try_wait()?.is_some());
        child.kill()?;
        child.wait()?;
        tally.kills += 1;
        let finished = finished_steps(out)?;
        tally.finished += finished.len();
        said.extend(finished);
        match run_in(out)? {
            None => tally.too_early += 1,
            Some(run) => {
                let recorded = recorded_steps(&run)?;
                let lost = said.iter().filter(|step| !recorded.contains(*step));
                tally.lost.extend(lost.map(|step| format!("{}: {step} is lost", run.display())));
            }
        }
    }
    // A run that was killed when it had just ended has nothing to go on with, and says so.
    let is_over =
        run_in(out)?.map(|run| Run::open(&run)).transpose()?.is_some_and(|run| is_whole(&run).is_none());
    let ended = is_over || start(setting, plan, run_in(out)?.as_deref(), out)?.wait()?.success();
    let run = run_in(out)?.context("a run that ended has left no run directory")?;
    match is_whole(&Run::open(&run)?).filter(|_| ended) {
        None if ended => tally.completed += 1,
        fault => tally.faults.push(format!("{}: {fault:?}", run.display())),
    }
    tally.leftovers.extend(leftovers(&run)?);
    Ok(())
}

/// dbdyno, on its way through the plan or on with a run. What it says is added to a file.
fn start(setting: &Setting, plan: &Path, run: Option<&Path>, out: &Path) -> Result<std::process::Child> {
    std::fs::create_dir_all(out)?;
    let mut command = Command::new(&setting.dbdyno);
    match run {
        Some(run) => command.args(["run", "--resume"]).arg(run),
        None => command.arg("run").arg(plan).arg("--out").arg(out),
    };
    let said = File::create(out.join("said"))?;
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    command.spawn().context("dbdyno cannot be started")
}

/// The run directory in `out`, as soon as it has a manifest.
fn run_in(out: &Path) -> Result<Option<PathBuf>> {
    let Ok(entries) = std::fs::read_dir(out) else { return Ok(None) };
    let mut runs = Vec::new();
    for entry in entries {
        runs.extend(Some(entry?.path()).filter(|path| path.join("manifest.json").is_file()));
    }
    match runs.len() {
        0 | 1 => Ok(runs.pop()),
        _ => bail!("{} holds more than one run", out.display()),
    }
}

/// Steps that dbdyno called finished since it was last started: `block variant step`.
fn finished_steps(out: &Path) -> Result<BTreeSet<String>> {
    let said = std::fs::read_to_string(out.join("said"))?;
    let step = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_step = words.len() > 4 && words[0].parse::<u32>().is_ok() && words.contains(&"in");
        is_step.then(|| words[..3].join(" "))
    };
    Ok(said.lines().filter_map(step).collect())
}

/// Steps whose record is whole, in cells and in those that were set aside.
fn recorded_steps(run: &Path) -> Result<BTreeSet<String>> {
    let mut recorded = BTreeSet::new();
    let mut cells = vec![run.join("cells")];
    cells.extend(folders(&run.join("aside"))?);
    for cells in cells {
        for block in folders(&cells)? {
            for variant in folders(&block)? {
                for step in folders(&variant.join("insert-benchmark"))? {
                    let record = StepRecord::open(&step);
                    let is_whole = record.outcome() == Some(Outcome::Completed) && record.damaged.is_none();
                    let name =
                        |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    recorded
                        .extend(is_whole.then(|| [&block, &variant, &step].map(|path| name(path)).join(" ")));
                }
            }
        }
    }
    Ok(recorded)
}

fn folders(of: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = std::fs::read_dir(of) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in entries {
        found.extend(Some(entry?.path()).filter(|path| path.is_dir()));
    }
    Ok(found)
}

/// What a complete run lacks; `None` for one that has all.
fn is_whole(run: &Run) -> Option<String> {
    let ended = run.cells.iter().filter(|cell| cell.outcome() == Some(Outcome::Completed)).count();
    if ended != run.manifest.order.len() {
        return Some(format!("{ended} of {} cells completed", run.manifest.order.len()));
    }
    let steps = run.cells.iter().flat_map(|cell| &cell.steps);
    let faults = steps.filter_map(|step| match (step.outcome(), &step.damaged) {
        (Some(Outcome::Completed), None) if step.has_checksums => None,
        (outcome, damaged) => Some(format!("{} {outcome:?} {damaged:?}", step.name)),
    });
    faults.reduce(|all, fault| format!("{all}; {fault}"))
}

/// Data and unfinished files that a run which has ended still has.
fn leftovers(run: &Path) -> Result<Vec<String>> {
    let mut left: Vec<String> = [run.join("data")]
        .iter()
        .filter(|path| path.exists())
        .map(|path| path.display().to_string())
        .collect();
    let mut rest = vec![run.to_owned()];
    while let Some(folder) = rest.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                // What was set aside stays as the kill left it.
                rest.extend(Some(path).filter(|path| !path.ends_with("aside")));
            } else if path.extension().is_some_and(|ending| ending == "unfinished") {
                left.push(path.display().to_string());
            }
        }
    }
    Ok(left)
}
