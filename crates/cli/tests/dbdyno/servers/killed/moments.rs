//! Tests that nothing is lost and nothing is left over when dbdyno is killed at random moments and
//! resumed. The moments cover the whole length of a run, from reading the plan to writing the
//! report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use dbdyno_record::{CellId, Outcome, Run, RunEvent};
use nix::sys::signal::Signal;

use crate::servers::{MARIADB_11_8, MY_CNF, POSTGRES_15, variant};
use crate::support::{Desk, Ended, faults_but_rates, findings, wait_for};

/// The variable for the number of kills per product.
const KILLS: &str = "DBDYNO_KILLS";

/// The variable for the seed of all random moments. A test that fails prints it.
const SEED: &str = "DBDYNO_KILLS_SEED";

/// The entries that dbdyno may leave in its run directory and in the folder from which it is
/// called.
const OF_RUN: [&str; 9] = [
    "aside",
    "cells",
    "configs",
    "events.jsonl",
    "logs",
    "manifest.json",
    "repeated",
    "report.csv",
    "report.html",
];
const OF_DESK: [&str; 9] =
    ["err.txt", "my.cnf", "out.txt", "p.toml", "runs", "runtime", "state", "templates", "tmp"];

/// A product on which dbdyno is killed, with a plan's two variants.
struct Product {
    name: &'static str,
    variants: [String; 2],
    /// The duration of a whole run in each data mode.
    lengths: [Duration; 2],
}

/// The data modes, which alternate from round to round: two variants with fresh data each, or one
/// variant in two blocks on copies of a snapshot.
const MODES: [&str; 2] = ["preserve", "restore"];

/// Counts of the states in which dbdyno was killed.
#[derive(Debug, Default)]
struct Tally {
    rounds: u32,
    kills: u32,
    /// Kills of resumed runs.
    second_kills: u32,
    before_the_run: u32,
    /// Kills after all cells had been completed.
    after_the_last_cell: u32,
    cells_completed: usize,
    files: usize,
}

/// The random generator SplitMix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn time(&mut self, limit: Duration) -> Duration {
        limit.mul_f64((self.next() >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

#[test]
#[ignore = "in cargo xtask test --all: kills"]
fn nothing_is_lost_or_left_when_dbdyno_is_killed_at_random_moments() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let kills = u32::try_from(number(KILLS).unwrap_or(3)).unwrap();
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_micros() as u64;
    let seed = number(SEED).unwrap_or_else(now);
    say(&format!("{SEED}={seed}"));
    let sqlite = |name: &str, mode: &str| {
        format!(
            "[[variant]]\nname = \"{name}\"\nserver = \"sqlite\"\noptions.pragmas = {{ journal_mode = \"{mode}\", synchronous = \"off\" }}\n"
        )
    };
    let servers = |prefix, more| [variant("a", prefix, more), variant("b", prefix, "")];
    let products = [
        ("sqlite", [sqlite("a", "delete"), sqlite("b", "wal")]),
        ("mariadb", servers(MARIADB_11_8, "own_config = \"my.cnf\"")),
        ("postgres", servers(POSTGRES_15, "")),
    ];
    std::thread::scope(|scope| {
        for (name, variants) in products {
            scope.spawn(move || {
                of_product(Product { name, variants, lengths: [Duration::ZERO; 2] }, kills, seed)
            });
        }
    });
}

/// Prints progress, which matters in a run of hours and after a failure.
#[expect(clippy::print_stderr, reason = "a test that takes long says how far it is")]
fn say(text: &str) {
    eprintln!("{text}");
}

fn of_product(mut product: Product, kills: u32, seed: u64) {
    // The data directory templates that all rounds share, except those that make their own.
    let shared = Desk::new();
    let templates = shared.path("templates");
    for (mode, _) in MODES.iter().enumerate().chain([(0, &"")]) {
        let round = Round::new(&product, (seed, 0), mode, &templates);
        let began = Instant::now();
        round.ended(&["run", "p.toml"]).expect_ok();
        let took = began.elapsed();
        round.whole_and_clean(&round.desk.run_dir());
        drop(round);
        product.lengths[mode] = took;
    }
    say(&format!("{}: whole runs take {:.1?}", product.name, product.lengths));
    let (mut tally, mut number) = (Tally::default(), 0);
    while tally.kills < kills {
        number += 1;
        assert!(number < 20 + 3 * kills, "{}: runs end before they are killed: {tally:?}", product.name);
        let mut round = Round::new(&product, (seed, number), number as usize % 2, &templates);
        round.killed_and_resumed(&mut tally);
        if number.is_multiple_of(20) {
            say(&format!("{} so far: {tally:?}", product.name));
        }
    }
    say(&format!("{}: {tally:?}", product.name));
}

/// One run that is killed and resumed, in its own folder.
struct Round<'a> {
    product: &'a Product,
    seed: (u64, u32),
    mode: usize,
    templates: PathBuf,
    draw: Draw,
    desk: Desk,
    /// The moments of the kills, each from the start of its process.
    moments: Vec<Duration>,
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            say(&format!(
                "FAILED: {} round {} of {SEED}={}, data {}, killed after {:?}\n{}",
                self.product.name,
                self.seed.1,
                self.seed.0,
                MODES[self.mode],
                self.moments,
                std::fs::read_to_string(self.desk.path("err.txt")).unwrap_or_default()
            ));
        }
    }
}

impl<'a> Round<'a> {
    fn new(product: &'a Product, seed: (u64, u32), mode: usize, templates: &Path) -> Self {
        let desk = Desk::new();
        desk.write("my.cnf", MY_CNF);
        let (variants, blocks) = match mode {
            0 => (product.variants.concat(), 1),
            _ => (product.variants[0].clone(), 2),
        };
        desk.write(
            "p.toml",
            &format!(
                "name = \"kills\"\nblocks = {blocks}\n{variants}\n[workload.oltp]\ntests = [\"insert\"]\n\
                 table_size = 500\nconnections = [2]\ntime = \"1s\"\nsettle_wait = \"0s\"\ndata = \"{}\"\n",
                MODES[mode]
            ),
        );
        for folder in ["tmp", "runtime"] {
            std::fs::create_dir(desk.path(folder)).unwrap();
        }
        // Some rounds make the data directories themselves, so that dbdyno is killed during that
        // work too.
        let is_own = seed.1 % 5 == 4;
        let templates = if is_own { desk.path("templates") } else { templates.to_owned() };
        let of_product =
            product.name.bytes().fold(seed.0, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        let draw = Draw(of_product ^ (u64::from(seed.1) << 40));
        Self { product, seed, mode, templates, draw, desk, moments: Vec::new() }
    }

    /// A dbdyno command whose temporary files are in this round's folder too.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.desk.command(args);
        command.env("TMPDIR", self.desk.path("tmp")).env("DBDYNO_RUNTIME", self.desk.path("runtime"));
        command.env("DBDYNO_TEMPLATES", &self.templates);
        command
    }

    /// Runs dbdyno to its end.
    fn ended(&self, args: &[&str]) -> Ended {
        self.desk.start(&mut self.command(args)).wait()
    }

    /// Kills dbdyno at a random moment. It returns `false` if dbdyno had ended before.
    fn killed(&mut self, args: &[&str], tally: &mut Tally) -> bool {
        let moment = self.draw.time(self.product.lengths[self.mode]);
        self.moments.push(moment);
        let running = self.desk.start(&mut self.command(args));
        std::thread::sleep(moment);
        running.signal(Signal::SIGKILL);
        let is_killed = running.wait().code.is_none();
        tally.kills += u32::from(is_killed);
        is_killed
    }

    fn killed_and_resumed(&mut self, tally: &mut Tally) {
        tally.rounds += 1;
        if !self.killed(&["run", "p.toml"], tally) {
            return;
        }
        if self.draw.next().is_multiple_of(3) {
            wait_for("what dbdyno had started to end", || self.processes().is_empty().then_some(()));
        }
        let Some(dir) = self.desk.run_dirs().pop() else {
            tally.before_the_run += 1;
            return self.began_again();
        };
        let resume = ["run", "--resume", dir.to_str().unwrap()];
        let mut kept = Kept::of(&dir);
        kept.counted(tally);
        if self.draw.next().is_multiple_of(4) && self.killed(&resume, tally) {
            tally.second_kills += 1;
            kept.is_there(&dir);
            kept = Kept::of(&dir);
            kept.counted(tally);
        }
        self.ended(&resume).expect_ok();
        kept.is_there(&dir);
        self.whole_and_clean(&dir);
    }

    /// Handles a run that was killed before it had begun. The next run reports what the killed one
    /// has left.
    fn began_again(&self) {
        let runs = std::fs::read_dir(self.desk.path("runs")).into_iter().flatten().flatten();
        // The next run removes the file with which the killed one measured the disk.
        let left: Vec<PathBuf> = runs.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        for folder in &left {
            let refused = self.ended(&["run", "--resume", folder.to_str().unwrap()]);
            refused.expect_code(2);
            assert!(
                refused.err.contains(" holds no run: the dbdyno that made it was killed"),
                "{}",
                refused.err
            );
        }
        let ended = self.ended(&["run", "p.toml"]);
        ended.expect_ok();
        let is_said = ended.err.contains("note: a run that was killed before it began has left runs/");
        assert_eq!(is_said, !left.is_empty(), "{}", ended.err);
        left.iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
        self.whole_and_clean(&self.desk.run_dir());
    }

    /// Checks that every cell is complete and valid, that the report is there, and that nothing
    /// else is left.
    fn whole_and_clean(&self, dir: &Path) {
        assert_eq!(self.processes(), [""; 0], "processes are left");
        let run = Run::open(dir).unwrap();
        let is_of_a_kill = |warning: &String| warning.contains("was cut off by a crash");
        assert!(run.warnings.iter().all(is_of_a_kill), "{:?}", run.warnings);
        let ids: Vec<&CellId> = run.cells.iter().map(|cell| &cell.id).collect();
        assert_eq!(ids, Vec::from_iter(&run.manifest.order));
        assert!(run.cells.iter().all(|cell| cell.outcome() == Some(Outcome::Completed)));
        assert!(matches!(run.events.last(), Some(RunEvent::Ended { outcome: Outcome::Completed, .. })));
        for id in ids {
            let ended = |event: &&RunEvent| matches!(event, RunEvent::CellEnded { cell, outcome: Outcome::Completed, .. } if cell == id);
            assert!(run.events.iter().filter(ended).count() <= 1, "{id} was completed twice");
        }
        assert_eq!(faults_but_rates(&findings(dir)), [""; 0]);
        let report = std::fs::read_to_string(dir.join("report.html")).unwrap();
        assert!(report.trim_end().ends_with("</html>"));
        let changed = |name: &str| dir.join(name).metadata().unwrap().modified().unwrap();
        assert!(changed("report.html") >= changed("events.jsonl"), "the report is of an earlier end");

        let unknown = |folder: &Path, known: &[&str]| {
            names_in(folder).into_iter().filter(|name| !known.contains(&name.as_str())).collect::<Vec<_>>()
        };
        assert_eq!(unknown(dir, &OF_RUN), [""; 0], "in the run directory");
        assert_eq!(unknown(self.desk.path("").as_path(), &OF_DESK), [""; 0], "next to it");
        assert_eq!(names_in(&self.desk.path("runs")).len(), 1);
        for folder in ["tmp", "runtime"] {
            assert_eq!(names_in(&self.desk.path(folder)), [""; 0], "in {folder}");
        }
        let is_of_a_maker = |name: &String| name.starts_with('.');
        assert!(!names_in(&self.templates).iter().any(is_of_a_maker), "{:?}", names_in(&self.templates));
        // Files that were set aside are in the state that the kill left.
        let recorded = files_below(dir).into_iter().filter(|path| !path.starts_with(dir.join("aside")));
        let unfinished: Vec<PathBuf> = recorded
            .chain(files_below(&self.desk.path("state")))
            .filter(|path| {
                path.extension().is_some_and(|ending| ending == "unfinished" || ending == "partial")
            })
            .collect();
        assert!(unfinished.is_empty(), "{unfinished:?}");
    }

    /// The command lines of all processes that belong to this round's folder: by their environment,
    /// because dbdyno passes `TMPDIR` on, by their command line, or by their working directory.
    fn processes(&self) -> Vec<String> {
        let path = self.desk.path("");
        let place = path.to_str().unwrap().trim_end_matches('/');
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        let about = |process: PathBuf| {
            let text = |name: &str| {
                let bytes = std::fs::read(process.join(name)).unwrap_or_default();
                String::from_utf8_lossy(&bytes).replace('\0', " ")
            };
            let line = text("cmdline");
            let works_in = std::fs::read_link(process.join("cwd")).unwrap_or_default();
            let is_ours =
                line.contains(place) || text("environ").contains(place) || works_in.starts_with(place);
            is_ours.then(|| format!("{}: {line}", process.display()))
        };
        processes.filter_map(about).collect()
    }
}

/// The records of a killed run.
struct Kept {
    /// The files' paths below the run directory, with their contents.
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// The folders of completed cells.
    completed: BTreeSet<PathBuf>,
    /// Whether no cell was left to run.
    is_last: bool,
}

impl Kept {
    fn of(dir: &Path) -> Self {
        let run = Run::open(dir).unwrap();
        let is_completed = |cell: &&dbdyno_record::CellRecord| cell.outcome() == Some(Outcome::Completed);
        let completed: BTreeSet<PathBuf> =
            run.cells.iter().filter(is_completed).map(|cell| folder_of(&cell.id)).collect();
        let is_record = |path: &Path| {
            let first = path.iter().next().unwrap_or_default();
            ["aside", "cells", "repeated", "events.jsonl", "manifest.json"].iter().any(|name| first == *name)
        };
        let below = |path: PathBuf| path.strip_prefix(dir).unwrap().to_owned();
        let files = files_below(dir).into_iter().map(below).filter(|path| is_record(path));
        let files = files.map(|path| (path.clone(), std::fs::read(dir.join(path)).unwrap())).collect();
        let is_last = completed.len() == run.manifest.order.len();
        Self { files, completed, is_last }
    }

    fn counted(&self, tally: &mut Tally) {
        tally.cells_completed += self.completed.len();
        tally.files += self.files.len();
        tally.after_the_last_cell += u32::from(self.is_last);
    }

    /// Checks that all files are still there, byte for byte. Completed cells must be at their old
    /// path. Other files may have been set aside. The run's events must continue the old ones.
    fn is_there(&self, dir: &Path) {
        for (path, bytes) in &self.files {
            let is_same = |path: &Path| std::fs::read(dir.join(path)).is_ok_and(|now| now == *bytes);
            let is_kept = if path == Path::new("events.jsonl") {
                std::fs::read(dir.join(path)).unwrap().starts_with(bytes)
            } else if self.completed.iter().any(|cell| path.starts_with(cell)) {
                is_same(path)
            } else {
                let below = path.strip_prefix("cells").ok();
                let aside =
                    |number| below.is_some_and(|below| is_same(&dir.join("aside").join(number).join(below)));
                is_same(path) || names_in(&dir.join("aside")).iter().any(aside)
            };
            assert!(is_kept, "{} is lost or has changed", path.display());
        }
    }
}

fn folder_of(cell: &CellId) -> PathBuf {
    Path::new("cells").join(cell.block.to_string()).join(&cell.variant).join(&cell.workload)
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let below = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => files_below(&entry.path()),
        false => vec![entry.path()],
    };
    entries.flat_map(below).collect()
}
