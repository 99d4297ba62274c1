//! Bench `planted` checks whether `--profile` finds a function whose cost is known. It builds
//! PostgreSQL with a loop in a function of its own, whose number of turns a setting gives. A small C
//! program measures what a turn costs. In half of the trials the variant has turns and the base has
//! none; in the other half neither has any (A/A).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Bound, Setting, Table};
use crate::debian_source;
use crate::servers::measured;
use crate::workspace::{self, output, run as run_command};

/// Name of the function with the loop.
const FUNCTION: &str = "planted_loop";
/// The loop, in C. The compiler must not shorten it.
const LOOP: &str = "\
static void __attribute__((noinline)) planted_loop(long turns)
{
	volatile unsigned long sum = 1;
	for (long turn = 0; turn < turns; turn++)
		sum = sum * 31 + (unsigned long) turn;
}
";
/// The function of PostgreSQL that executes a prepared statement, and its first line.
const CALLER: &str = "exec_execute_message(const char *portal_name, long max_rows)\n{\n";
/// Cost to plant, in microseconds per query.
const PLANTED_US: f64 = 5.0;
/// Share of the trials in which the function must be found, or nothing in A/A.
const MIN_SHARE: f64 = 0.95;
/// Largest error of the difference that is found, as a share of what was planted.
const NEAR: f64 = 0.05;

pub(super) fn run(setting: &Setting, table: &mut Table) -> Result<Vec<String>> {
    let basedir = server()?;
    let turn_us = turn_us(setting)?;
    let turns = (PLANTED_US / turn_us).round();
    let planted_us = turns * turn_us;
    let (mut found, mut quiet) = (0.0, 0.0);
    for round in 1..=setting.rounds {
        if setting.wants("planted") {
            setting.note_round(round, "planted");
            let differences = differences(setting, &basedir, turns, &format!("planted-{round}"))?;
            let first = &differences["functions"][0];
            let difference_us = first["difference_us"].as_f64().unwrap_or(0.0);
            let [low, high] = ["low", "high"].map(|end| first["interval"][end].as_f64().unwrap_or(f64::NAN));
            let is_near = (difference_us / planted_us - 1.0).abs() <= NEAR || (low..=high).contains(&planted_us);
            let is_first = first["name"] == FUNCTION;
            let others = differences["functions"].as_array().map_or(0, |all| all.len() - usize::from(is_first));
            found += f64::from(u8::from(is_first && is_near && others == 0));
            table.add("planted", "µs per query of the first function", Bound::Shown, [difference_us, planted_us]);
        }
        if setting.wants("A/A") {
            setting.note_round(round, "A/A");
            let differences = differences(setting, &basedir, 0.0, &format!("aa-{round}"))?;
            let decided = differences["functions"].as_array().map_or(0, Vec::len);
            quiet += f64::from(u8::from(decided == 0));
        }
    }
    let trials = f64::from(setting.rounds);
    if setting.wants("planted") {
        table.add("planted", "trials in which it is found, near, and alone", Bound::AtLeast(MIN_SHARE), [found, trials]);
    }
    if setting.wants("A/A") {
        table.add("A/A", "trials in which nothing is decided", Bound::AtLeast(MIN_SHARE), [quiet, trials]);
    }
    let version = output(Command::new(basedir.join("bin/postgres")).arg("--version"))?;
    Ok(vec![format!("server: {}, built with the loop", version.trim()), format!("a turn: {:.3} ns", 1e3 * turn_us)])
}

/// Returns the base directory of the server with the loop, which is built where it is not there yet.
fn server() -> Result<PathBuf> {
    let into = workspace::cache().join("sources/postgres/planted");
    if into.join("bin/postgres").exists() {
        return Ok(into);
    }
    let tree = debian_source::postgres()?;
    let file = tree.join("src/backend/tcop/postgres.c");
    let source = std::fs::read_to_string(&file)?;
    if !source.contains(FUNCTION) {
        let (before, after) = source.split_once(CALLER).context("PostgreSQL's source has another caller")?;
        // The name of a function is on its own line, after the line with its type.
        let (head, kind) = before.trim_end().rsplit_once('\n').context("the function has no type")?;
        let call = "\t{\n\t\tconst char *turns = GetConfigOption(\"planted.turns\", true, false);\n\n\t\tif (turns)\n\t\t\tplanted_loop(atol(turns));\n\t}\n";
        std::fs::write(&file, format!("{head}\n{LOOP}\n{kind}\n{CALLER}{call}{after}"))?;
    }
    workspace::note("building PostgreSQL with the loop");
    debian_source::build(&tree, &into)?;
    Ok(into)
}

/// Measures what a turn of the loop costs, as the least of several runs.
fn turn_us(setting: &Setting) -> Result<f64> {
    const TURNS: u32 = 200_000_000;
    let (source, program) = (setting.folder.join("turn.c"), setting.folder.join("turn"));
    let main = "#include <stdlib.h>\nint main(int count, char **words) { planted_loop(atol(words[1])); return count > 9; }\n";
    std::fs::write(&source, format!("{LOOP}{main}"))?;
    run_command(Command::new("gcc").args(["-O2", "-fno-omit-frame-pointer", "-o"]).arg(&program).arg(&source))?;
    let mut took = Vec::new();
    for _ in 0..5 {
        let began = std::time::Instant::now();
        run_command(Command::new(&program).arg(TURNS.to_string()))?;
        took.push(began.elapsed());
    }
    let least = took.into_iter().min().unwrap_or(Duration::ZERO);
    Ok(least.as_secs_f64() * 1e6 / f64::from(TURNS))
}

/// Runs both variants, and returns what makes the difference.
fn differences(setting: &Setting, basedir: &Path, turns: f64, name: &str) -> Result<Value> {
    let folder = setting.folder.join(name);
    std::fs::create_dir_all(&folder)?;
    let variant = |name: &str, turns: f64| -> Result<String> {
        let config = folder.join(format!("{name}.conf"));
        std::fs::write(&config, format!("shared_buffers = 256MB\nplanted.turns = {turns}\n"))?;
        Ok(format!(
            "[[variant]]\nname = \"{name}\"\nbasedir = \"{}\"\nown_config = \"{}\"\n\n",
            basedir.display(),
            config.display()
        ))
    };
    let plan = folder.join("plan.toml");
    let text = format!(
        "name = \"{name}\"\nblocks = 1\nparity = \"off\"\n\
         profile = {{ steps = [\"point-select*\"], blocks = 5 }}\n\n{}{}\
         [workload.oltp]\ntests = [\"point-select\"]\ntables = 1\ntable_size = 10_000\nconnections = [4]\n\
         time = \"4s\"\nwarmup = \"1s\"\nsettle_wait = \"0s\"\nverify = \"off\"\n",
        variant("base", 0.0)?,
        variant("planted", turns)?
    );
    std::fs::write(&plan, text)?;
    let run = measured(&setting.dbdyno, &[&plan.display().to_string()], &folder.join("runs"), None)?;
    let report = output(Command::new(&setting.dbdyno).arg("report").arg(&run).args(["--format", "json"]))?;
    let report: Value = serde_json::from_str(&report).context("the report is not JSON")?;
    let found = report["why"]["steps"][0]["differences"][0].clone();
    anyhow::ensure!(found.is_object(), "the run in {} has no profile that can be used", run.display());
    Ok(found)
}
