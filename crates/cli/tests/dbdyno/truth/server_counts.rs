//! Reads a known-answer server's own account, measured with its own clocks, and finds the reported
//! figures that disagree with it.

use dbdyno_analyse::VariantStep;
use serde_json::Value;

use crate::support::Desk;
use crate::truth::{cpu_us, expect};

/// The server's account of the statements that it answered by its program.
#[derive(Debug)]
pub(crate) struct OwnAccount {
    count: u64,
    /// Mean CPU time used for one statement, by the clock of the server's thread.
    burnt_us: f64,
    /// Mean time from reading a statement to having written its answer.
    took_us: f64,
    /// Mean time by which that was longer than programmed.
    late_us: f64,
    /// Longest time from reading a statement to having written its answer.
    pub(crate) longest_us: u64,
}

impl OwnAccount {
    /// Reads the account of the server `name`, which must have ended.
    pub(crate) fn of(desk: &Desk, name: &str) -> Self {
        let text = std::fs::read_to_string(desk.path(&format!("{name}.json"))).unwrap();
        let reported: Value = serde_json::from_str(&text).unwrap();
        let count = reported["actual"]["count"].as_u64().unwrap();
        Self {
            count,
            burnt_us: reported["burnt_seconds"].as_f64().unwrap() * 1e6 / count as f64,
            took_us: reported["actual"]["mean_us"].as_f64().unwrap(),
            late_us: reported["late"]["mean_us"].as_f64().unwrap(),
            longest_us: reported["actual"]["max_us"].as_f64().unwrap() as u64,
        }
    }

    /// Whether the server was late by more than the strict test's tolerances allow in total.
    pub(crate) fn is_late(&self) -> bool {
        self.late_us > 0.001 * self.took_us
    }

    /// The figures reported about a variant that disagree with its server's account. The server
    /// must have answered `operations` statements.
    ///
    /// The client sees the server's time for each operation, plus its own time. The client's own
    /// time is never below 0. In most blocks it is at most three times `late_us`, the servers' mean
    /// lateness, because sending and receiving may each be as late as a server. A single delay of
    /// the client, which no server sees, may affect one block.
    pub(crate) fn false_in(&self, reported: &VariantStep, operations: u64, late_us: f64) -> Vec<String> {
        let name = &reported.variant;
        let mut wrong = Vec::new();
        if self.count != operations {
            wrong.push(format!("{name}: {} statements arrived, not {operations}", self.count));
        }
        expect(&mut wrong, &format!("{name}: CPU per operation"), cpu_us(reported), self.burnt_us, 0.03);
        let mut blocks_us: Vec<f64> = reported.runs.iter().map(|run| 1e6 / run.rate).collect();
        blocks_us.sort_by(f64::total_cmp);
        let (mean_us, median_us) =
            (blocks_us.iter().sum::<f64>() / blocks_us.len() as f64, blocks_us[blocks_us.len() / 2]);
        let longest_us = self.took_us * 1.003 + 3.0 * late_us;
        if mean_us < self.took_us || median_us > longest_us {
            let own = self.took_us;
            wrong.push(format!(
                "{name}: {mean_us:.0} us per operation, {median_us:.0} in the median block, by the server {own:.0}, and at most \
                 {longest_us:.0}"
            ));
        }
        wrong
    }
}

/// The mean lateness of the servers `names` per statement.
pub(crate) fn late_us<'a>(desk: &Desk, names: impl IntoIterator<Item = &'a str>) -> f64 {
    let late: Vec<f64> = names.into_iter().map(|name| OwnAccount::of(desk, name).late_us).collect();
    late.iter().sum::<f64>() / late.len() as f64
}
