//! The cost of wake-ups as a table, with what follows from it.

use dbdyno_report::document::{Block, Column, Table};

use super::{ONE_CORE_SHARE, Pair, WORTH_SHARE, WakeUps};

const HEADS: [(&str, &str); 7] = [
    ("server", "on CPU"),
    ("client", "on CPU"),
    ("asleep:", "round trip"),
    ("server's", "CPU"),
    ("spinning:", "round trip"),
    ("server's", "CPU"),
    ("server slowed", "by busy client"),
];

/// The table for people; on a machine with one CPU one sentence.
pub(crate) fn blocks(found: &WakeUps) -> Vec<Block> {
    let (Some(first), Some(advice)) = (found.pairs.first(), &found.advice) else {
        return vec![Block::text(
            "There is one CPU: client and server take turns on it, and a client that spins would keep it from the server. \
             Leave client_wait = \"sleep\".",
        )];
    };
    let title = format!(
        "Cost of an answer (µs), with the client asleep or spinning and {} µs of server work for \
         each answer",
        first.deciding().work_us
    );
    let columns = HEADS.map(|(name, unit)| Column::new(name, unit, "")).to_vec();
    let mut table = Table { title, columns, ..Table::default() };
    found.pairs.iter().for_each(|pair| table.push(row(pair)));
    let mut blocks = vec![Block::Table(table), Block::text("")];
    if found.measured_cpus != found.usable_cpus {
        blocks.push(Block::text(format!(
            "measured between CPUs {} of {}",
            found.measured_cpus, found.usable_cpus
        )));
    }
    let is_across = |pair: &&Pair| {
        advice.server_cpus.0.contains(&pair.server_cpu) && advice.client_cpus.0.contains(&pair.client_cpu)
    };
    let across = found.pairs.iter().find(is_across).unwrap_or(first);
    let costs = across.answers.iter().map(|answer| {
        let cost = match answer.wake_up_us() {
            us if us < 0.05 => "within noise".to_owned(),
            us => format!("{us:.1} µs"),
        };
        format!("{cost} after {} µs of work", answer.work_us)
    });
    blocks.push(Block::text(format!(
        "Waking the client costs the server on CPU {}: {}.",
        across.server_cpu,
        costs.collect::<Vec<_>>().join(", ")
    )));
    blocks.push(Block::text(format!(
        "For [host] of a plan: client_wait = \"{}\", server_cpus = \"{}\", client_cpus = \"{}\".",
        advice.client_wait.name(),
        advice.server_cpus,
        advice.client_cpus
    )));
    blocks.push(Block::text(format!(
        "Spin where it saves the server {:.0} % of its CPU or more, here {}; CPUs that slow each other by {:.0} % or more are called \
one core.",
        100.0 * WORTH_SHARE,
        percent(advice.saved_share),
        100.0 * ONE_CORE_SHARE
    )));
    blocks
}

fn row(pair: &Pair) -> [String; 7] {
    let answer = pair.deciding();
    let us = |us: f64| format!("{us:.1}");
    [
        pair.server_cpu.to_string(),
        pair.client_cpu.to_string(),
        us(answer.asleep.round_trip_us),
        us(answer.asleep.server_cpu_us),
        us(answer.spinning.round_trip_us),
        us(answer.spinning.server_cpu_us),
        percent(pair.lost_share),
    ]
}

/// Whole percents; what is below none is noise.
pub(crate) fn percent(share: f64) -> String {
    let whole = (100.0 * share).round();
    format!("{} %", if whole > 0.0 { whole } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::{ClientWait, CpuList};
    use dbdyno_report::document::terminal;

    use super::super::Advice;
    use super::super::testing::pair;
    use super::*;

    #[test]
    fn the_table_is_aligned_and_says_what_to_take() {
        let found = WakeUps {
            usable_cpus: CpuList((0..16).collect()),
            measured_cpus: CpuList(vec![0, 15]),
            pairs: vec![pair(0, 15, 3.0, -0.002), pair(15, 0, 12.0, 0.41)],
            advice: Some(Advice {
                client_wait: ClientWait::Spin,
                server_cpus: CpuList((0..12).collect()),
                client_cpus: CpuList((12..16).collect()),
                saved_share: 0.1,
                lost_share: -0.002,
            }),
        };
        insta::assert_snapshot!(terminal(&blocks(&found), 140, false), @r#"
        Cost of an answer (µs), with the client asleep or spinning and 25 µs of server work for each answer
        server  client     asleep:  server's   spinning:  server's   server slowed
        on CPU  on CPU  round trip       CPU  round trip       CPU  by busy client
        ──────────────────────────────────────────────────────────────────────────
             0      15        65.0      30.0        37.2      27.0             0 %
            15       0        65.0      30.0        37.2      18.0            41 %

        measured between CPUs 0,15 of 0-15
        Waking the client costs the server on CPU 0: 3.0 µs after 0 µs of work, 3.0 µs after 25 µs of work, 3.0 µs after 100 µs of work.
        For [host] of a plan: client_wait = "spin", server_cpus = "0-11", client_cpus = "12-15".
        Spin where it saves the server 2 % of its CPU or more, here 10 %; CPUs that slow each other by 15 % or more are called one core.
        "#);
        let one = WakeUps { measured_cpus: CpuList(vec![0]), pairs: Vec::new(), advice: None, ..found };
        insta::assert_snapshot!(terminal(&blocks(&one), 200, false), @r#"There is one CPU: client and server take turns on it, and a client that spins would keep it from the server. Leave client_wait = "sleep"."#);
    }
}
