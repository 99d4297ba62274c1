//! What a known-answer server says of itself, by its own clocks, and what the tool tells of it that cannot be so.

use dbdyno_analyse::VariantStep;
use serde_json::Value;

use crate::support::Desk;
use crate::{cpu_us, expect};

/// Of the statements that a server answered by its program.
#[derive(Debug)]
pub(crate) struct OwnAccount {
    count: u64,
    /// CPU time burnt for one, by the clock of the server's thread.
    burnt_us: f64,
    /// From reading one to having written its answer: mean.
    took_us: f64,
    /// By how much that was longer than programmed: mean, and the longest.
    late_us: f64,
    latest_us: f64,
}

impl OwnAccount {
    /// Of the server `name`, which has ended.
    pub(crate) fn of(desk: &Desk, name: &str) -> Self {
        let text = std::fs::read_to_string(desk.path(&format!("{name}.json"))).unwrap();
        let told: Value = serde_json::from_str(&text).unwrap();
        let count = told["actual"]["count"].as_u64().unwrap();
        Self {
            count,
            burnt_us: told["burnt_seconds"].as_f64().unwrap() * 1e6 / count as f64,
            took_us: told["actual"]["mean_us"].as_f64().unwrap(),
            late_us: told["late"]["mean_us"].as_f64().unwrap(),
            latest_us: told["late"]["max_us"].as_f64().unwrap(),
        }
    }

    /// All that is told of a variant and not what its server says, which was asked `operations` times in all.
    ///
    /// An operation takes the client as long as the server, and its own time on top: on a machine that is held up, no less
    /// than 0 and no more than three times what the server was late (as long for sending as for receiving, each as the server),
    /// and one hold-up as long as the server's longest.
    pub(crate) fn false_in(&self, told: &VariantStep, operations: u64) -> Vec<String> {
        let name = &told.variant;
        let mut wrong = Vec::new();
        if self.count != operations {
            wrong.push(format!("{name}: {} statements arrived, not {operations}", self.count));
        }
        expect(&mut wrong, &format!("{name}: CPU an operation"), cpu_us(told), self.burnt_us, 0.03);
        let blocks = told.runs.len() as f64;
        let took_us = told.runs.iter().map(|run| 1e6 / run.rate).sum::<f64>() / blocks;
        let longest_us = self.took_us * 1.003 + 3.0 * self.late_us + self.latest_us / operations as f64;
        if !(self.took_us..longest_us).contains(&took_us) {
            let own = self.took_us;
            wrong.push(format!("{name}: {took_us:.0} us an operation, not {own:.0} to {longest_us:.0}"));
        }
        wrong
    }
}
