//! Bench `information`: a budget of time against a fixed number of blocks, on the 42
//! microbenchmarks of two versions and of one against itself.

use anyhow::{Context, Result};
use dbdyno_provision::{list, servers_dir};
use serde_json::Value;

use super::grid::Grid;
use super::{Measured, Setting, newest_of, runs};
use crate::terminal;

/// Base and new, by the beginnings of their names.
const PAIRS: [[&str; 2]; 3] =
    [["mariadb-10.2", "mariadb-11.4"], ["mysql-5.7", "mysql-8.0"], ["mariadb-11.4", "mariadb-11.4"]];
const FIXED_BLOCKS: u32 = 9;
struct Lengths {
    seconds: u32,
    warmup_seconds: u32,
}

/// Of the pairs, so that all of them fit into two hours.
const SHORT: Lengths = Lengths { seconds: 1, warmup_seconds: 0 };
/// Of the run whose share of time in windows has a target.
const LONG: Lengths = Lengths { seconds: 10, warmup_seconds: 2 };
/// Share of the fixed run's time in which a budget must decide as much.
const MOST_TIME: f64 = 0.60;
/// Share of the time inside of measured windows, at least.
const LEAST_WINDOWS: f64 = 0.70;

struct Run {
    seconds: f64,
    in_windows: f64,
    comparisons: usize,
    decided: usize,
    differ: usize,
}

impl Run {
    fn of(report: &Value) -> Result<Self> {
        let seconds = |name: &str| {
            let found = report["run"]["time"][name].as_f64();
            found.with_context(|| format!("the report has no {name} of the run"))
        };
        let steps = report["workloads"][0]["steps"].as_array().context("the report has no steps")?;
        let words: Vec<&str> = steps
            .iter()
            .filter_map(|step| step["variants"].as_array())
            .flatten()
            .filter_map(|variant| variant["verdict"].as_str())
            .collect();
        let count = |of: &[&str]| words.iter().filter(|word| of.contains(word)).count();
        let total = seconds("total_seconds")?;
        Ok(Self {
            seconds: total,
            in_windows: seconds("windows_seconds")? / total,
            comparisons: words.len(),
            decided: words.len() - count(&["undecided", "invalid"]),
            differ: count(&["faster", "slower"]),
        })
    }

    fn row(&self, pair: &str, rule: &str, share: Option<f64>) -> Vec<String> {
        vec![
            pair.to_owned(),
            rule.to_owned(),
            format!("{:.0}", self.seconds),
            share.map_or_else(String::new, |share| format!("{share:.2}")),
            format!("{} of {}", self.decided, self.comparisons),
            self.differ.to_string(),
            format!("{:.2}", self.in_windows),
        ]
    }
}

pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let servers = list(&servers_dir());
    let mut grid = Grid {
        header: vec!["servers", "rule", "seconds", "of fixed", "decided", "differ", "in windows"],
        rows: Vec::new(),
    };
    let single = newest_of(&servers, "mariadb-11.4")?;
    let rule = format!("1 block, {} s", LONG.seconds);
    let long = measured(setting, &single, &rule, &plan("blocks = 1", &[&single], &LONG))?;
    grid.rows.push(long.row(&single, &rule, None));
    let mut is_met = long.in_windows >= LEAST_WINDOWS;
    let mut budget = 0.0;
    for pair in PAIRS {
        let [base, new] = pair.map(|prefix| newest_of(&servers, prefix));
        let (base, new) = (base?, new?);
        let of_pair = |top: &str| plan(top, &[&base, &new], &SHORT);
        let of_budget = |seconds: f64| of_pair(&format!("blocks = 3\nbudget = \"{seconds:.0}s\""));
        if base == new {
            let name = format!("{base}, A/A");
            let run = measured(setting, &name, "budget", &of_budget(budget))?;
            grid.rows.push(run.row(&name, "budget", None));
            is_met &= run.differ == 0;
            continue;
        }
        let name = format!("{base}, {new}");
        let rule = format!("{FIXED_BLOCKS} blocks");
        let fixed = measured(setting, &name, &rule, &of_pair(&format!("blocks = {FIXED_BLOCKS}")))?;
        budget = MOST_TIME * fixed.seconds;
        let run = measured(setting, &name, "budget", &of_budget(budget))?;
        grid.rows.push(fixed.row(&name, &rule, None));
        grid.rows.push(run.row(&name, "budget", Some(run.seconds / fixed.seconds)));
        is_met &= run.decided >= fixed.decided && run.seconds <= 1.05 * budget;
    }
    Ok(Measured::of(&grid, Vec::new(), is_met))
}

fn measured(setting: &Setting, servers: &str, rule: &str, plan: &str) -> Result<Run> {
    terminal::note(&format!("{servers}: {rule}"));
    let folder = |text: &str| text.replace(", ", "-").replace('/', "").replace(' ', "-");
    let place = setting.folder.join(folder(servers));
    Run::of(&runs::measured(&setting.dbdyno, &place, &folder(rule), plan, &[])?)
}

/// A server that comes twice is compared with itself.
fn plan(top: &str, servers: &[&str], lengths: &Lengths) -> String {
    let variant = |(at, server): (usize, &&str)| {
        let again = if servers[..at].contains(server) { "-again" } else { "" };
        format!("[[variant]]\nname = \"{server}{again}\"\nserver = \"{server}\"\n")
    };
    let variants: String = servers.iter().enumerate().map(variant).collect();
    let Lengths { seconds, warmup_seconds } = lengths;
    format!(
        "name = \"information\"\n{top}\nmargin = 0.02\n{variants}[workload.microbenchmarks]\nsequence = \"42\"\ntable_size = \
         100_000\nconnections = [1]\nread_time = \"{seconds}s\"\nwrite_time = \"{seconds}s\"\nwarmup = \"{warmup_seconds}s\"\n"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_undecided_or_invalid_is_not_decided_and_the_base_is_no_comparison() {
        let variants = |word: &str| json!({ "variants": [{ "verdict": null }, { "verdict": word }] });
        let steps: Vec<Value> = ["faster", "same", "undecided", "invalid", "slower"].map(variants).into();
        let time = json!({ "total_seconds": 200.0, "windows_seconds": 150.0 });
        let report = json!({ "run": { "time": time }, "workloads": [{ "steps": steps }] });
        let run = Run::of(&report).unwrap();
        assert_eq!((run.comparisons, run.decided, run.differ, run.in_windows), (5, 3, 2, 0.75));
        assert!(Run::of(&json!({ "run": {} })).is_err());
    }
}
