//! Run, host, variants and the short answer, put into words that every format shares.

use dbdyno_analyse::{
    Colour, Failure, Findings, RunSummary, StepFindings, StepRun, TableRow, VariantSummary, Verdict,
    WorkloadFindings, numbered, parity,
};
use serde_json::Value;

use crate::evidence::explanations;
use crate::medians::opposite;
use crate::number::{fixed, gib, rate};
use crate::set_apart;

/// Heading of every report.
pub(crate) fn title(findings: &Findings) -> String {
    format!("dbdyno: {}", findings.run.name)
}

/// When, with which build, from which seed, and how much of it there is.
pub(crate) fn run_line(run: &RunSummary) -> String {
    let blocks = blocks_text(run);
    let unchecked = match run.unchecked_steps {
        None => String::new(),
        Some(steps) => format!(" · {} without checksums", numbered(steps, "step")),
    };
    format!(
        "Run {} · started {} · {blocks} · {} of {} cells completed{unchecked} · seed {} · dbdyno {} ({}, {} build)",
        run.run_id,
        run.started,
        run.cells_completed,
        run.cells_planned,
        run.seed,
        run.tool.version,
        run.tool.commit,
        run.tool.build
    )
}

/// The blocks of the plan, and those that a budget added.
pub(crate) fn blocks_text(run: &RunSummary) -> String {
    let mut blocks = numbered(run.blocks_planned, "block");
    if let Some(budget) = &run.budget {
        blocks.push_str(&format!(
            " and {} further within {}, analysed {}",
            budget.further_blocks,
            seconds_text(budget.seconds),
            if budget.looks == 1 { "once".to_owned() } else { format!("{} times", budget.looks) }
        ));
    }
    blocks
}

/// `90 s`, `45 min`, `2 h`, `2.5 h`.
fn seconds_text(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7_200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{} h", (s / 360.0).round() / 10.0),
    }
}

/// The machine on one line.
pub(crate) fn host_line(run: &RunSummary) -> String {
    let host = &run.host;
    let mut parts = vec![
        format!("Host {}", host.hostname),
        format!("{} × {}", host.cpus, host.cpu_model),
        format!("{} memory", gib(host.memory_bytes)),
        format!("{}, {}", host.os, host.kernel),
    ];
    parts.push(match (&host.server_cpus, &host.client_cpus) {
        (None, None) => "server and client share all CPUs".to_owned(),
        (server, client) => {
            let cpus = |list: &Option<String>| {
                list.as_ref().map_or("any CPU".to_owned(), |list| format!("CPUs {list}"))
            };
            format!("server on {}, client on {}", cpus(server), cpus(client))
        }
    });
    if let Some(wait) = &host.client_wait {
        let reason =
            host.client_wait_reason.as_ref().map_or(String::new(), |reason| format!(", since {reason}"));
        parts.push(format!("client {wait}s{reason}"));
    }
    let device =
        if host.data_device.is_empty() { String::new() } else { format!(" on device {}", host.data_device) };
    parts.push(format!("data on {}{device}", host.data_filesystem));
    parts.join(" · ")
}

pub(crate) const FAILURES: &str = "Logs of failed cells";

/// The cells that failed and left a log: which and why, and the end of it, line by line and without what steers a terminal.
pub(crate) fn logs(findings: &Findings) -> Vec<(String, String)> {
    let of = |failure: &Failure| {
        format!("block {} {} {}: {}", failure.block, failure.variant, failure.workload, failure.message)
    };
    let plain = |line: &str| line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    let text = |log: &str| log.lines().map(plain).collect::<Vec<_>>().join("\n");
    let failures = findings.failures.iter();
    failures.filter_map(|failure| Some((of(failure), text(failure.log.as_deref()?)))).collect()
}

/// What a variant is, without its name.
pub(crate) fn variant_line(findings: &Findings, variant: &VariantSummary) -> String {
    let mut parts = vec![variant.server.clone()];
    parts.push(match variant.version_text.as_str() {
        "" if has_answered(findings, &variant.name) => "has no version".to_owned(),
        "" => "its version is unknown, it never answered".to_owned(),
        version => version.to_owned(),
    });
    parts.extend(variant.engine.as_ref().map(|engine| format!("engine {engine}")));
    parts.extend(
        variant.memory_limit_bytes.map(|bytes| format!("memory limited to {}", parity::size_text(bytes))),
    );
    parts.push(format!("driver {}", variant.driver));
    parts.extend(variant.encryption.as_ref().map(|encryption| format!("connections {encryption}")));
    if variant.external {
        parts.push("external server: not configured by dbdyno".to_owned());
    }
    parts.join(" · ")
}

fn has_answered(findings: &Findings, variant: &str) -> bool {
    let mut steps = findings.workloads.iter().flat_map(|workload| &workload.steps);
    let answered = |run: &StepRun| run.kinds.iter().any(|kind| kind.operations > 0);
    steps.any(|step| step.variants.iter().any(|of| of.variant == variant && of.runs.iter().any(answered)))
}

/// For each variant that is not the base, in how many steps it is faster, slower and the same.
pub(crate) fn sentences(run: &RunSummary, workload: &WorkloadFindings) -> Vec<String> {
    if has_verdicts(run, workload) {
        return verdicts(run, workload);
    }
    let rows = workload.summary.relative.rows.iter();
    let rows = rows.filter(|row| row.label != run.base && !row.is_target);
    rows.map(|row| answer(run, workload, row)).collect()
}

/// What the greatest differences are made of, and where medians and ratio disagree.
pub(crate) fn reasons(run: &RunSummary, workload: &WorkloadFindings) -> Vec<String> {
    if !has_verdicts(run, workload) {
        return Vec::new();
    }
    explanations(workload).into_iter().chain(opposite(run, workload)).collect()
}

/// Steps whose rate is the plan's have no interval, however many blocks there are.
fn has_verdicts(run: &RunSummary, workload: &WorkloadFindings) -> bool {
    let mut cells = workload.summary.relative.rows.iter().flat_map(|row| &row.cells);
    cells.any(|cell| cell.interval.is_some()) || workload.most_ratio_blocks(&run.base) > 1
}

/// The steps of each verdict, by name where something differs. Verdicts that no step has are left out.
fn verdicts(run: &RunSummary, workload: &WorkloadFindings) -> Vec<String> {
    let rows = workload.summary.relative.rows.iter();
    let rows = rows.filter(|row| row.label != run.base && !row.is_target);
    rows.map(|row| verdicts_of(run, workload, row)).collect()
}

fn verdicts_of(run: &RunSummary, workload: &WorkloadFindings, row: &TableRow) -> String {
    let relative = &workload.summary.relative;
    let of = |verdict: Verdict| -> Vec<String> {
        let cells = row.cells.iter().zip(&relative.columns);
        let cells = cells.filter(|(cell, _)| cell.verdict == Some(verdict));
        cells.map(|(cell, step)| format!("{step} {}", cell.text)).collect()
    };
    let [faster, slower, same, undecided] =
        [Verdict::Faster, Verdict::Slower, Verdict::Same, Verdict::Undecided].map(of);
    let missed = missed_targets(run, workload, row);
    let mut parts: Vec<String> = set_apart::stalled(run, workload, row).into_iter().collect();
    parts.extend(named("faster", &faster));
    parts.extend(named("slower", &slower));
    parts.extend(counted("same", same.len()));
    match undecided.len() {
        0 => {}
        count if parts.is_empty() => {
            parts.push(format!("no verdict: {} undecided", numbered(count, "step")));
        }
        count => parts.extend(counted("undecided", count)),
    }
    if !missed.is_empty() {
        parts.push(format!(
            "target missed in {} ({}: not slower, but {} kept a background rate that it missed)",
            numbered(missed.len(), "step"),
            missed.join(", "),
            run.base
        ));
    }
    parts.extend(set_apart::paced(run, workload, row));
    // A load whose data are restored afterwards has one, whatever the plan's blocks.
    let once = row.cells.iter().filter(|cell| cell.value.is_some() && cell.verdict.is_none()).count();
    parts.extend(counted("one block only", once));
    parts.extend(counted("no ratio", without_ratio(row)));
    let text = format!("{} against {}: {}.", row.label, run.base, parts.join("; "));
    text + &set_apart::base_stalled(run, workload, row) + &other_misses(run, workload, row)
}

/// `faster in 2 steps (l.i1 2.50, l.i2 9.87)`; of many only some are named. Nothing without a step.
fn named(word: &str, steps: &[String]) -> Option<String> {
    const NAMED: usize = 3;
    let shown = &steps[..steps.len().min(NAMED)];
    let more = if steps.len() > NAMED { ", …" } else { "" };
    let count = numbered(steps.len(), "step");
    (!steps.is_empty()).then(|| format!("{word} in {count} ({}{more})", shown.join(", ")))
}

/// `same in 3 steps`; nothing without a step.
fn counted(word: &str, steps: usize) -> Option<String> {
    (steps > 0).then(|| format!("{word} in {}", numbered(steps, "step")))
}

/// Steps with another verdict in which only the row's variant missed the background rate.
fn other_misses(run: &RunSummary, workload: &WorkloadFindings, row: &TableRow) -> String {
    let columns = &workload.summary.relative.columns;
    let verdict_of = |step: &str| {
        let mut cells = row.cells.iter().zip(columns);
        cells.find(|(_, column)| *column == step).and_then(|(cell, _)| cell.verdict)
    };
    let mut steps = missed_steps(run, workload, row);
    steps.retain(|step| verdict_of(step) != Some(Verdict::Missed));
    if steps.is_empty() {
        return String::new();
    }
    format!(" It missed the background target in {}, which {} kept.", steps.join(", "), run.base)
}

/// Steps with a ratio to which a missed background rate gave its word: `qr100 1.30`.
fn missed_targets(run: &RunSummary, workload: &WorkloadFindings, row: &TableRow) -> Vec<String> {
    let schedules = set_apart::missed_schedules(run, workload, row);
    let cells = row.cells.iter().zip(&workload.summary.relative.columns);
    let missed = cells.filter(|(cell, _)| cell.verdict == Some(Verdict::Missed));
    let missed = missed.filter(|(_, step)| !schedules.contains(&step.as_str()));
    missed.map(|(cell, step)| format!("{step} {}", cell.text)).collect()
}

/// Cells that say nothing at all.
fn without_ratio(row: &TableRow) -> usize {
    row.cells.iter().filter(|cell| cell.value.is_none() && cell.verdict.is_none()).count()
}

/// Steps in which the row's variant did not keep the background rate that the base kept.
fn missed_steps<'a>(run: &RunSummary, workload: &'a WorkloadFindings, row: &TableRow) -> Vec<&'a str> {
    let missed = workload.steps.iter().filter(|step| step.misses_target_of(&run.base, &row.label));
    missed.map(|step| step.name.as_str()).collect()
}

fn answer(run: &RunSummary, workload: &WorkloadFindings, row: &TableRow) -> String {
    let steps = &workload.summary.relative.columns;
    let missed = missed_steps(run, workload, row);
    let of = |colour: Colour| -> Vec<(f64, &str)> {
        let cells = row.cells.iter().zip(steps).filter(|(cell, _)| cell.colour == colour);
        cells.filter_map(|(cell, step)| Some((cell.value?, step.as_str()))).collect()
    };
    let above = of(Colour::Blue);
    let below = of(Colour::Yellow);
    let paced = row.cells.iter().filter(|cell| cell.verdict == Some(Verdict::Paced)).count();
    let near = of(Colour::None).len().saturating_sub(paced);
    let extreme = |best: Option<&(f64, &str)>, word: &str| {
        best.map_or(String::new(), |(value, step)| format!(" ({word} {} in {step})", fixed(Some(*value), 2)))
    };
    let most = extreme(above.iter().max_by(|a, b| a.0.total_cmp(&b.0)), "up to");
    let least = extreme(below.iter().min_by(|a, b| a.0.total_cmp(&b.0)), "down to");
    let fewer_writes = match above.iter().filter(|(_, step)| missed.contains(step)).count() {
        0 => String::new(),
        all if all == above.len() => ", with fewer background writes than planned".to_owned(),
        some => format!(", in {some} of them with fewer background writes than planned"),
    };
    let mut parts: Vec<String> = set_apart::stalled(run, workload, row).into_iter().collect();
    parts.extend(counted("more than 5 % above", above.len()).map(|text| text + &most + &fewer_writes));
    parts.extend(counted("more than 5 % below", below.len()).map(|text| text + &least));
    parts.extend(counted("within 5 %", near));
    parts.extend(set_apart::paced(run, workload, row));
    parts.extend(counted("no ratio", without_ratio(row)));
    let text = format!("{} against {}: {}.", row.label, run.base, parts.join("; "));
    text + &set_apart::base_stalled(run, workload, row)
}

/// The background rate that a step had to keep, if it had one.
pub(crate) fn target_line(step: &StepFindings) -> Option<String> {
    let (target, share) = step.target?;
    Some(format!(
        "Target of the background writers: {} rows/s over all clients, each client at least {} % \
         of its part.",
        rate(Some(target)),
        fixed(Some(share * 100.0), 0)
    ))
}

/// An option's value as one line of text.
pub(crate) fn option_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_answer_counts_steps_and_names_the_extremes() {
        let findings = fixture::findings();
        insta::assert_snapshot!(sentences(&findings.run, &findings.workloads[0]).join("\n"), @r#"
        <b>&" against rollback: more than 5 % above in 3 steps (up to 9.87 in l.i2); more than 5 % below in 1 step (down to 0.80 in qr1000); within 5 % in 4 steps; no ratio in 2 steps.
        "#);
    }

    #[test]
    fn with_several_blocks_the_answer_is_made_of_verdicts() {
        let findings = fixture::with_blocks(3);
        insta::assert_snapshot!(sentences(&findings.run, &findings.workloads[0]).join("\n"), @r#"
        <b>&" against rollback: faster in 3 steps (l.i1 2.50, l.i2 9.87, qp100 1.30); slower in 1 step (qr1000 0.80); same in 1 step; undecided in 3 steps; no ratio in 2 steps.
        "#);
    }

    /// The second variant wrote half of what the base wrote in these steps.
    fn missed(mut findings: Findings, steps: &[usize]) -> String {
        let workload = &mut findings.workloads[0];
        for step in steps {
            let variant = &mut workload.steps[*step].variants[1];
            variant.judged_background_rate = variant.judged_background_rate.map(|rate| rate / 2.0);
            if variant.verdict == Some(Verdict::Faster) {
                workload.summary.relative.rows[1].cells[*step].verdict = Some(Verdict::Missed);
            }
        }
        sentences(&findings.run, workload)[0].clone()
    }

    #[test]
    fn steps_beside_fewer_writes_than_the_base_kept_up_are_named() {
        insta::assert_snapshot!(missed(fixture::findings(), &[5]), @r#"<b>&" against rollback: more than 5 % above in 3 steps (up to 9.87 in l.i2), in 1 of them with fewer background writes than planned; more than 5 % below in 1 step (down to 0.80 in qr1000); within 5 % in 4 steps; no ratio in 2 steps."#);
        insta::assert_snapshot!(missed(fixture::with_blocks(3), &[5, 6]), @r#"<b>&" against rollback: faster in 2 steps (l.i1 2.50, l.i2 9.87); slower in 1 step (qr1000 0.80); same in 1 step; undecided in 3 steps; target missed in 1 step (qp100 1.30: not slower, but rollback kept a background rate that it missed); no ratio in 2 steps. It missed the background target in qr500, which rollback kept."#);
    }

    #[test]
    fn steps_of_one_block_among_steps_of_several_are_counted() {
        let mut findings = fixture::with_blocks(3);
        for (row, own) in findings.workloads[0].summary.relative.rows.iter_mut().enumerate() {
            (own.cells[0].interval, own.cells[0].verdict) = (None, None);
            assert_eq!(own.cells.len(), 10, "row {row}");
        }
        let told = sentences(&findings.run, &findings.workloads[0]);
        assert!(told[0].ends_with("; one block only in 1 step; no ratio in 2 steps."), "{}", told[0]);
    }

    #[test]
    fn run_host_and_variants_are_one_line_each() {
        let findings = fixture::findings();
        let lines = [
            run_line(&findings.run),
            host_line(&findings.run),
            variant_line(&findings, &findings.variants[1]),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r"
        Run 20240401T101112Z-quickstart · started 2024-04-01T10:11:12Z · 1 block · 1 of 2 cells completed · seed 42 · dbdyno 0.1.0 (abc1234, debug build)
        Host bench1 · 16 × AMD Ryzen 7 7735HS · 32.0 GiB memory · Debian GNU/Linux 12, Linux 6.1.0 · server on CPUs 0-7, client on any CPU · data on xfs on device nvme0n1
        SQLite (embedded) · 3.50.2 · engine b-tree · driver sqlite
        ");
    }

    #[test]
    fn a_limit_on_memory_and_a_server_that_never_answered_are_in_the_variants_line() {
        let mut findings = fixture::findings();
        let mut variant = findings.variants.remove(0);
        variant.memory_limit_bytes = Some(256 << 20);
        variant.version_text.clear();
        assert!(variant_line(&findings, &variant).contains("(embedded) · has no version · "));
        findings.workloads.clear();
        insta::assert_snapshot!(variant_line(&findings, &variant), @"SQLite (embedded) · its version is unknown, it never answered · engine b-tree · memory limited to 256 MiB · driver sqlite");
    }
}
