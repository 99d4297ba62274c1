//! Running test programs: those that hold clocks alone, all others side by side; the output of each
//! in one piece.

use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::programs::Program;
use crate::terminal;

/// Programs at once: one is busy with the longest of them for most of the time, the other goes
/// through the rest.
const SIDE_BY_SIDE: usize = 2;

/// Tests at once in each of them, beyond one a CPU: tests with servers wait for the disk and for
/// whole seconds more than they work, tests of clocks wait for times to come.
const WAITING: usize = 4;

/// How one program went.
struct Ended<'a> {
    program: &'a Program,
    passed: bool,
    seconds: f64,
    /// What its failed tests printed.
    failures: String,
}

/// Runs all programs; an error says how to run those again that failed, and what their failed tests
/// printed: a log of thousands of lines ends with it.
pub(super) fn run(programs: &[Program]) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let (alone, others): (Vec<&Program>, Vec<&Program>) =
        programs.iter().partition(|program| program.is_alone());
    let mut ended = at_once(&alone, 1, cpus)?;
    ended.extend(at_once(&others, SIDE_BY_SIDE, cpus)?);
    terminal::note(&format!("\n{}", longest(&mut ended)));
    let failed: Vec<String> =
        ended.iter().filter(|ended| !ended.passed).map(|ended| ended.program.again()).collect();
    match failed.is_empty() {
        true => Ok(()),
        false => {
            let failures: String = ended.iter().map(|ended| ended.failures.as_str()).collect();
            bail!("{} of {} test programs failed: {}{failures}", failed.len(), ended.len(), failed.join("; "))
        }
    }
}

/// Runs the programs in their order, so many at once.
fn at_once<'a>(programs: &[&'a Program], at_once: usize, cpus: usize) -> Result<Vec<Ended<'a>>> {
    let next = AtomicUsize::new(0);
    // One prints at a time.
    let printing = Mutex::new(());
    let work = || -> Result<Vec<Ended<'a>>> {
        let mut ended = Vec::new();
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let threads = if program.is_busy() { cpus } else { cpus + WAITING };
            let begun = Instant::now();
            let (passed, printed) = tests_of(program, threads)?;
            let seconds = begun.elapsed().as_secs_f64();
            let _printing = printing.lock().unwrap_or_else(PoisonError::into_inner);
            terminal::note(&format!("\n-- {} ({seconds:.1} s)\n{}", program.again(), printed.trim()));
            ended.push(Ended { program, passed, seconds, failures: failures_in(&printed).to_owned() });
        }
        Ok(ended)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        let ended = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
        Ok(ended.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}

/// Runs one program in its package's folder, as cargo does: whether it passed, and all that it
/// printed.
fn tests_of(program: &Program, threads: usize) -> Result<(bool, String)> {
    let about = || format!("{} cannot be run", program.path.display());
    // A file and no pipe: what a test leaves running may hold it open, and is not waited for.
    let mut printed = tempfile::tempfile()?;
    let mut command = Command::new(&program.path);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        command.env("RUST_TEST_THREADS", threads.to_string());
    }
    // Golden texts that differ are failures, not files to be reviewed.
    command.env("INSTA_UPDATE", "no").stdin(Stdio::null());
    command.stdout(printed.try_clone()?).stderr(printed.try_clone()?);
    let status = command.status().with_context(about)?;
    let mut bytes = Vec::new();
    printed.rewind()?;
    printed.read_to_end(&mut bytes)?;
    Ok((status.success(), String::from_utf8_lossy(&bytes).into_owned()))
}

/// The part of a test program's output that says why tests failed; empty where all passed.
fn failures_in(printed: &str) -> &str {
    let (heading, list) = ("\nfailures:\n", "\nfailures:\n    ");
    let begin = printed.find(heading).unwrap_or(printed.len());
    &printed[begin..printed.rfind(list).map_or(printed.len(), |end| end.max(begin))]
}

/// The ten programs that took longest, and how long.
fn longest(ended: &mut [Ended<'_>]) -> String {
    ended.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let lines = ended.iter().take(10).map(|ended| {
        let result = if ended.passed { "passed" } else { "FAILED" };
        format!("{result:8} {:6.1} s  {}", ended.seconds, ended.program.again())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn shell(target: &str) -> Program {
        Program::new("dbdyno", target, PathBuf::from("/bin/true"), PathBuf::from("/"))
    }

    #[test]
    fn a_failed_program_is_named_with_the_way_to_run_it_again() {
        let mut programs: Vec<Program> = ["one", "truth", "two"].map(shell).into();
        run(&programs).unwrap();
        programs[2].path = PathBuf::from("/bin/false");
        assert_eq!(
            run(&programs).unwrap_err().to_string(),
            "1 of 3 test programs failed: cargo test -p dbdyno --test two"
        );
        programs[0].path = PathBuf::from("/no/such-program");
        assert_eq!(run(&programs).unwrap_err().to_string(), "/no/such-program cannot be run");
    }

    #[test]
    fn both_outputs_of_a_program_are_reported_in_order_and_it_runs_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let script = "#!/bin/sh\necho \"$RUST_TEST_THREADS\"; pwd >&2; echo last; exit 3\n";
        // Another process writes it: what another test starts at this moment would hold it open,
        // and what is open for writing cannot be run.
        let write = ["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\"", path.to_str().unwrap(), script];
        assert!(Command::new("sh").args(write).status().unwrap().success());
        let folder = folder.path().canonicalize().unwrap();
        let (passed, printed) = tests_of(&Program::new("p", "t", path, folder.clone()), 7).unwrap();
        let threads = std::env::var("RUST_TEST_THREADS").unwrap_or_else(|_| "7".to_owned());
        assert!(!passed);
        assert_eq!(printed, format!("{threads}\n{}\nlast\n", folder.display()));
    }

    #[test]
    fn the_reasons_of_failed_tests_are_found_in_what_a_program_printed() {
        let printed = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\nleft: 1\n\n\nfailures:\n    a\n\ntest result: FAILED.";
        assert_eq!(failures_in(printed), "\nfailures:\n\n---- a stdout ----\nleft: 1\n\n");
        assert_eq!(failures_in("test a ... ok\n\ntest result: ok."), "");
    }

    #[test]
    fn the_longest_come_first() {
        let (one, two) = (shell("one"), shell("two"));
        let mut ended = [
            Ended { program: &one, passed: true, seconds: 2.0, failures: String::new() },
            Ended { program: &two, passed: false, seconds: 34.56, failures: String::new() },
        ];
        insta::assert_snapshot!(longest(&mut ended), @r"
        FAILED     34.6 s  cargo test -p dbdyno --test two
        passed      2.0 s  cargo test -p dbdyno --test one
        ");
    }
}
