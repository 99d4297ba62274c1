//! Bench `information`: a budget of time against a fixed number of blocks, on the 42 microbenchmarks of two versions and of one against
//! itself.

use anyhow::{Context, Result};
use dbdyno_provision::{list, servers_dir};
use serde_json::Value;

use super::grid::Grid;
use super::{Measured, Setting, newest_of, runs};
use crate::terminal;

/// Base and new, by the beginnings of their names.
const PAIRS: [[&str; 2]; 3] =
    [["mariadb-10.2", "mariadb-11.4"], ["mysql-5.7", "mysql-8.0"], ["mariadb-11.4", "mariadb-11.4"]];
const FIXED_BLOCKS: u32 = 6;
/// Share of the fixed run's time in which a budget must decide as much.
const MOST_TIME: f64 = 0.60;
/// Share of the time inside of measured windows, at least.
const LEAST_WINDOWS: f64 = 0.70;

/// How a run went.
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
    let mut is_met = true;
    for pair in PAIRS {
        let [base, new] = pair.map(|prefix| newest_of(&servers, prefix));
        let (base, new) = (base?, new?);
        let name = if base == new { format!("{base}, A/A") } else { format!("{base}, {new}") };
        let measured = |rule: &str, top: &str| -> Result<Run> {
            terminal::note(&format!("{name}: {rule}"));
            let folder = setting.folder.join(name.replace(", ", "-").replace('/', ""));
            let plan = plan(&base, &new, top);
            Run::of(&runs::measured(&setting.dbdyno, &folder, rule, &plan, &[])?)
        };
        let fixed = measured("fixed", &format!("blocks = {FIXED_BLOCKS}"))?;
        let budget = MOST_TIME * fixed.seconds;
        let budgeted = measured("budget", &format!("blocks = 3\nbudget = \"{budget:.0}s\""))?;
        grid.rows.push(fixed.row(&name, &format!("{FIXED_BLOCKS} blocks"), None));
        grid.rows.push(budgeted.row(&name, "budget", Some(budgeted.seconds / fixed.seconds)));
        let is_equal = base == new;
        is_met &= budgeted.decided >= fixed.decided && budgeted.seconds <= 1.05 * budget;
        is_met &= fixed.in_windows >= LEAST_WINDOWS && !(is_equal && fixed.differ + budgeted.differ > 0);
    }
    let page = format!(
        "# A budget against a fixed number of blocks\n\nMeasured with `cargo xtask bench information --save`, which writes this \
         page: the 42 microbenchmarks\nwith 100,000 rows, one connection and steps of 10 s, at a margin of 2 %. The budget is \
         {MOST_TIME:.2} of the time\nthat the fixed blocks took. [The rule](../concepts/information.md).\n\n{}\n\n* date: {}; load \
         average of the minute before: {}\n",
        grid.markdown(),
        setting.started.date,
        setting.started.load
    );
    Ok(Measured { table: grid.text() + "\n", page, is_met })
}

fn plan(base: &str, new: &str, top: &str) -> String {
    let again = if base == new { "-again" } else { "" };
    format!(
        "name = \"information\"\n{top}\nmargin = 0.02\n[[variant]]\nname = \"{base}\"\nserver = \"{base}\"\n[[variant]]\nname = \
         \"{new}{again}\"\nserver = \"{new}\"\n[workload.microbenchmarks]\nsequence = \"42\"\ntable_size = 100_000\nconnections = \
         [1]\nread_time = \"10s\"\nwrite_time = \"10s\"\n"
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
