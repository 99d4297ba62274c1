//! Findings as a long table, for spreadsheets and statistics: one row a block, variant and step.

mod before_after_writes;
mod groups;
mod lookups;
mod sweeps;

use dbdyno_analyse::metrics::{Cost, DeviceLoad, Efficiency, Figures, MetricRow};
use dbdyno_analyse::{
    Findings, KindResult, Latency, StepFindings, StepRun, Validity, VariantStep, Verdict, WorkloadFindings,
};

use crate::evidence::rates::block_ratio;
use crate::evidence::{HOST_CHECK, kinds, reason, state};
use crate::number::NOT_AVAILABLE;
use crate::{Error, Format};

/// The CSV report (RFC 4180 quoting, lines end in `\n`). Numbers are unrounded; `NA` is shown where there is none.
#[derive(Debug, Clone, Copy)]
pub struct Csv;

/// Columns before the metrics.
const HEAD: [&str; 15] = [
    "run",
    "workload",
    "block",
    "variant",
    "step",
    "state",
    "reason",
    "window_seconds",
    "rate_per_second",
    "ratio_to_base",
    "ratio_over_blocks",
    "ratio_low",
    "ratio_high",
    "adjusted_p_difference",
    "verdict",
];

/// Columns of the headline's response times, all valid blocks together, and of the ratio of p99 to the base's.
const LATENCY_OVER_BLOCKS: [&str; 9] = [
    "mean_us_over_blocks",
    "p50_us_over_blocks",
    "p95_us_over_blocks",
    "p99_us_over_blocks",
    "max_us_over_blocks",
    "p99_ratio_over_blocks",
    "p99_ratio_low",
    "p99_ratio_high",
    "p99_verdict",
];

/// Columns of how steady the run's seconds were.
const STEADINESS: [&str; 7] = [
    "worst_second_rate",
    "longest_gap_seconds",
    "share_below_half_median",
    "warm_up_seconds",
    "became_steady",
    "period_seconds",
    "two_modes",
];

/// Column of the classes of settings in which a variant is not like the base, meant or not.
const UNLIKE_BASE: &str = "settings_unlike_base";

/// Columns of the background rate that a step must keep.
const TARGET: [&str; 4] = [
    "target_rows_per_second",
    "target_kept_from_share",
    "background_rows_per_second_over_blocks",
    "judged_background_rows_per_second",
];

/// Columns of each kind of operation, after `<kind>_`.
const KIND_COLUMNS: [&str; 9] = [
    "connections",
    "operations",
    "rows",
    "failed",
    "dropped",
    "errors",
    "operations_per_second",
    "rows_per_second",
    "statements_per_second",
];

const LATENCY_COLUMNS: [&str; 7] = ["mean_us", "p50_us", "p90_us", "p95_us", "p99_us", "p999_us", "max_us"];

impl Format for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn extension(&self) -> &'static str {
        "csv"
    }

    fn render(&self, findings: &Findings) -> Result<String, Error> {
        let shared = Shared {
            kinds: all_kinds(findings),
            lookups: lookups::all(findings),
            groupings: groups::groupings(findings),
            has_sweeps: sweeps::are_there(findings),
            has_aging: before_after_writes::are_there(findings),
        };
        let mut text = String::new();
        push_line(&mut text, &header(&shared));
        for workload in &findings.workloads {
            for step in &workload.steps {
                for variant in &step.variants {
                    for run in &variant.runs {
                        push_line(&mut text, &row(findings, workload, step, variant, run, &shared));
                    }
                }
            }
        }
        Ok(text)
    }
}

/// What decides about the columns of all rows.
struct Shared {
    kinds: Vec<String>,
    lookups: Vec<String>,
    groupings: Vec<String>,
    has_sweeps: bool,
    has_aging: bool,
}

/// Kinds of operation of the whole run, in the order in which they first appear.
fn all_kinds(findings: &Findings) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for kind in findings.workloads.iter().flat_map(|workload| &workload.steps).flat_map(kinds) {
        if !names.contains(&kind) {
            names.push(kind);
        }
    }
    names
}

fn header(shared: &Shared) -> Vec<String> {
    let mut names: Vec<String> = HEAD.map(str::to_owned).to_vec();
    names.extend(LATENCY_OVER_BLOCKS.map(str::to_owned));
    names.extend(MetricRow::in_tables().map(|metric| metric.id.to_owned()));
    names.push("tag".to_owned());
    let of_unit = || Efficiency::in_tables().chain(Cost::in_tables());
    names.extend(of_unit().map(|metric| metric.id.to_owned()));
    names.extend(DeviceLoad::in_tables().map(|metric| format!("device_{}", metric.id)));
    names.extend(HOST_CHECK.iter().map(|column| format!("host_check_{}", column.field)));
    names.extend(["host_check_unexplained_share", "host_check_bound_share"].map(str::to_owned));
    names.push("seconds_on_target".to_owned());
    names.extend(STEADINESS.map(str::to_owned));
    names.push(UNLIKE_BASE.to_owned());
    names.extend(TARGET.map(str::to_owned));
    let compared = MetricRow::in_tables().chain(of_unit());
    names.extend(compared.map(|metric| format!("{}_to_base_over_blocks", metric.id)));
    groups::push_header(&mut names, &shared.groupings);
    if shared.has_sweeps {
        sweeps::push_header(&mut names);
    }
    if shared.has_aging {
        before_after_writes::push_header(&mut names);
    }
    lookups::push_header(&mut names, &shared.lookups);
    for kind in &shared.kinds {
        names.extend(KIND_COLUMNS.iter().map(|column| format!("{kind}_{column}")));
        for time in ["service", "response"] {
            names.extend(LATENCY_COLUMNS.iter().map(|column| format!("{kind}_{time}_{column}")));
        }
    }
    names
}

fn row(
    findings: &Findings,
    workload: &WorkloadFindings,
    step: &StepFindings,
    variant: &VariantStep,
    run: &StepRun,
    shared: &Shared,
) -> Vec<String> {
    let ran = matches!(run.validity, Validity::Valid | Validity::Invalid { .. });
    let mut row = vec![
        findings.run.run_id.clone(),
        workload.name.clone(),
        run.block.to_string(),
        variant.variant.clone(),
        step.name.clone(),
        state(&run.validity).to_owned(),
        reason(&run.validity),
        number(ran.then_some(run.window_seconds)),
        number(ran.then_some(run.rate)),
        number(block_ratio(variant, run.block)),
    ];
    row.extend(over_blocks(variant));
    row.extend(latency_over_blocks(variant));
    push_figures(&mut row, &run.metrics);
    row.push(run.metrics.tag.clone());
    push_figures(&mut row, &run.efficiency);
    push_figures(&mut row, &run.cost);
    push_figures(&mut row, &run.device.unwrap_or_default());
    push_host_check(&mut row, run);
    row.push(number(run.seconds_on_target));
    push_steadiness(&mut row, run);
    row.push(unlike_base(findings, variant));
    row.extend([number(step.target.map(|(rate, _)| rate)), number(step.target.map(|(_, share)| share))]);
    row.extend([number(variant.background_rate), number(run.judged_background_rate)]);
    push_relative(&mut row, variant);
    groups::push(&mut row, workload, step, variant, &shared.groupings);
    if shared.has_sweeps {
        sweeps::push(&mut row, workload, step, variant);
    }
    if shared.has_aging {
        before_after_writes::push(&mut row, workload, step, variant, run);
    }
    lookups::push(&mut row, &shared.lookups, run);
    for name in &shared.kinds {
        push_kind(&mut row, run.kinds.iter().find(|kind| kind.kind == *name));
    }
    row
}

/// What all blocks say together: the same in each of their rows.
fn over_blocks(variant: &VariantStep) -> [String; 5] {
    let ratio = variant.ratio.as_ref();
    let inference = ratio.and_then(|ratio| ratio.inference.as_ref());
    [
        number(ratio.map(|ratio| ratio.value)),
        number(inference.map(|inference| inference.interval.low)),
        number(inference.map(|inference| inference.interval.high)),
        number(inference.map(|inference| inference.q_difference)),
        variant.verdict.map_or(NOT_AVAILABLE, |verdict| verdict.word()).to_owned(),
    ]
}

/// Of the headline's response times.
fn latency_over_blocks(variant: &VariantStep) -> [String; LATENCY_OVER_BLOCKS.len()] {
    let latency = variant.latency.as_ref();
    let time = |of: fn(&Latency) -> u64| {
        latency.map_or_else(|| NOT_AVAILABLE.to_owned(), |latency| of(latency).to_string())
    };
    let p99 = variant.p99.as_ref();
    let inference = p99.and_then(|p99| p99.ratio.inference.as_ref());
    let verdict = p99.and_then(|p99| p99.verdict);
    [
        number(latency.map(|latency| latency.mean_us)),
        time(|latency| latency.p50_us),
        time(|latency| latency.p95_us),
        time(|latency| latency.p99_us),
        time(|latency| latency.max_us),
        number(p99.map(|p99| p99.ratio.value)),
        number(inference.map(|inference| inference.interval.low)),
        number(inference.map(|inference| inference.interval.high)),
        verdict.map_or(NOT_AVAILABLE, Verdict::word).to_owned(),
    ]
}

fn push_host_check(row: &mut Vec<String>, run: &StepRun) {
    let found = run.host_check.as_ref();
    row.extend(HOST_CHECK.iter().map(|column| number(found.and_then(|check| (column.value)(check)))));
    row.push(number(found.map(|check| check.unexplained_share)));
    row.push(number(found.map(|check| check.bound_share)));
}

/// All metrics against the base: the same in each row of a variant's step.
fn push_relative(row: &mut Vec<String>, variant: &VariantStep) {
    let found = variant.relative.as_ref();
    push_figures(row, found.map_or(&MetricRow::default(), |found| &found.metrics));
    push_figures(row, found.map_or(&Efficiency::default(), |found| &found.efficiency));
    push_figures(row, found.map_or(&Cost::default(), |found| &found.cost));
}

fn push_figures(row: &mut Vec<String>, figures: &impl Figures) {
    row.extend(figures.figures().map(|(_, value)| number(value)));
}

fn push_steadiness(row: &mut Vec<String>, run: &StepRun) {
    let found = run.steadiness.as_ref();
    let count =
        |value: Option<usize>| value.map_or_else(|| NOT_AVAILABLE.to_owned(), |value| value.to_string());
    row.push(number(found.map(|found| found.worst_rate)));
    row.push(count(found.map(|found| found.longest_gap_seconds)));
    row.push(number(found.map(|found| found.share_below_half_median)));
    row.push(count(found.and_then(|found| found.warm_up_seconds)));
    row.push(found.map_or_else(|| NOT_AVAILABLE.to_owned(), |found| (!found.never_steady).to_string()));
    row.push(count(found.and_then(|found| found.period_seconds)));
    row.push(found.map_or_else(|| NOT_AVAILABLE.to_owned(), |found| found.modes.is_some().to_string()));
}

/// Classes of settings in which the variant is not like the base.
fn unlike_base(findings: &Findings, variant: &VariantStep) -> String {
    let Some(parity) = &findings.parity else { return NOT_AVAILABLE.to_owned() };
    parity.differences(&findings.run.base, &variant.variant).join(" ")
}

fn push_kind(row: &mut Vec<String>, kind: Option<&KindResult>) {
    let Some(kind) = kind else {
        let columns = KIND_COLUMNS.len() + 2 * LATENCY_COLUMNS.len();
        row.extend(std::iter::repeat_n(NOT_AVAILABLE.to_owned(), columns));
        return;
    };
    row.push(kind.connections.to_string());
    let counts = [kind.operations, kind.rows, kind.failed, kind.dropped, kind.errors.total()];
    row.extend(counts.map(|count| count.to_string()));
    let rates = [kind.operations_per_second, kind.rows_per_second, kind.statements_per_second];
    row.extend(rates.map(|value| number(Some(value))));
    push_latency(row, &kind.service);
    push_latency(row, &kind.response);
}

fn push_latency(row: &mut Vec<String>, latency: &Latency) {
    if latency.count == 0 {
        row.extend(std::iter::repeat_n(NOT_AVAILABLE.to_owned(), LATENCY_COLUMNS.len()));
        return;
    }
    row.push(number(Some(latency.mean_us)));
    let values =
        [latency.p50_us, latency.p90_us, latency.p95_us, latency.p99_us, latency.p999_us, latency.max_us];
    row.extend(values.map(|value| value.to_string()));
}

/// Unrounded; `inf` where the base has 0, `NA` for none.
fn number(value: Option<f64>) -> String {
    value.filter(|value| !value.is_nan()).map_or_else(|| NOT_AVAILABLE.to_owned(), |value| value.to_string())
}

fn push_line(text: &mut String, fields: &[String]) {
    let quoted: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
    text.push_str(&quoted.join(","));
    text.push('\n');
}

fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_field_is_quoted_only_when_it_must_be() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,b"), "\"a,b\"");
        assert_eq!(quoted("say \"no\""), "\"say \"\"no\"\"\"");
        assert_eq!(quoted("two\nlines"), "\"two\nlines\"");
    }

    #[test]
    fn every_line_has_as_many_fields_as_the_header() {
        let findings = fixture::findings();
        let shared = Shared {
            kinds: all_kinds(&findings),
            lookups: lookups::all(&findings),
            groupings: vec!["2024".to_owned()],
            has_sweeps: true,
            has_aging: true,
        };
        let columns = header(&shared).len();
        for workload in &findings.workloads {
            for step in &workload.steps {
                for variant in &step.variants {
                    for run in &variant.runs {
                        assert_eq!(row(&findings, workload, step, variant, run, &shared).len(), columns);
                    }
                }
            }
        }
    }

    /// The cells below a head, in the order of the rows.
    fn below(text: &str, head: &str) -> Vec<String> {
        // No name and no text of the fixture before these columns holds a comma or a line feed.
        let column = text.lines().next().and_then(|heads| heads.split(',').position(|name| name == head));
        let column = column.unwrap_or_else(|| panic!("no column {head}"));
        let cell = |line: &str| line.split(',').nth(column).unwrap_or_default().to_owned();
        text.lines().skip(1).take(2).map(cell).collect()
    }

    #[test]
    fn rows_have_their_group_with_its_figures_their_target_and_relative_metrics() {
        let text = Csv.render(&fixture::with_groups()).expect("plain data");
        assert_eq!(below(&text, "group_2024"), ["writes", "writes"]);
        assert_eq!(below(&text, "group_2024_steps"), ["NA", "NA"], "of the base");
        let text: String =
            text.lines().filter(|line| !line.contains(",rollback,")).map(|l| format!("{l}\n")).collect();
        assert_eq!(below(&text, "group_2024_steps"), ["4", "4"]);
        assert_eq!(below(&text, "group_2024_max"), ["9.87", "9.87"]);
        assert_eq!(below(&text, "group_2024_geometric_mean_high"), ["2.31", "2.31"]);
        assert_eq!(below(&text, "ips_to_base_over_blocks"), ["1.02", "1.02"]);
        assert_eq!(below(&text, "rps_to_base_over_blocks"), ["inf", "inf"]);
        assert_eq!(below(&text, "host_check_unexplained_us"), ["5", "5"]);
        assert_eq!(below(&text, "target_rows_per_second"), ["NA", "NA"], "l.i0 has none");
        assert_eq!(below(&text, "lookup_min_id_count"), ["8", "8"]);
        assert_eq!(below(&text, "lookup_min_id_mean_seconds"), ["0.0015", "0.0015"]);
        assert_eq!(below(&text, "lookup_insert_seconds"), ["NA", "NA"], "of l.x only");
    }

    #[test]
    fn the_table_of_the_fixture() {
        let text = Csv.render(&fixture::findings()).expect("plain data");
        assert_eq!(text.lines().count(), 1 + 20);
        insta::assert_snapshot!("csv", text);
    }
}
