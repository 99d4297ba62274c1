//! Findings as a long table, for spreadsheets and statistics: one row a block, variant and step.

use dbdyno_analyse::metrics::Figures;
use dbdyno_analyse::statistics::{Interval, describe};
use dbdyno_analyse::{
    Findings, GroupFindings, HostCheck, Inference, KindResult, Latency, Lookups, MetricGroup, Ratio,
    Steadiness, StepFindings, StepRun, Validity, VariantStep, Verdict, WorkloadFindings, unique,
};

use crate::evidence::rates::block_ratio;
use crate::evidence::{kinds, reason, state};
use crate::value::Value;

/// The CSV report (RFC 4180 quoting, lines end in `\n`). Numbers are unrounded; `NA` is shown where
/// there is none.
pub(crate) fn csv(findings: &Findings) -> String {
    let names = Names::of(findings);
    let columns = columns(&names);
    let mut text = line(columns.0.iter().map(|(name, _)| name.clone()));
    for (workload, step, variant) in findings.variants_of_steps() {
        for run in &variant.runs {
            let at = At { findings, workload, step, variant, run };
            text.push_str(&line(columns.0.iter().map(|(_, cell)| cell(&at).to_string())));
        }
    }
    text
}

struct At<'a> {
    findings: &'a Findings,
    workload: &'a WorkloadFindings,
    step: &'a StepFindings,
    variant: &'a VariantStep,
    run: &'a StepRun,
}

/// Names in the whole run, each of which has columns of its own.
struct Names<'a> {
    /// Of operations, in the order in which they first appear; of look-ups too.
    kinds: Vec<&'a str>,
    lookups: Vec<&'a str>,
    /// Sorted.
    groupings: Vec<&'a String>,
}

impl<'a> Names<'a> {
    fn of(findings: &'a Findings) -> Self {
        let steps = || findings.workloads.iter().flat_map(|workload| &workload.steps);
        let runs = steps().flat_map(|step| &step.variants).flat_map(|variant| &variant.runs);
        let mut groupings = unique(steps().flat_map(|step| step.groups.keys()));
        groupings.sort();
        Self {
            kinds: unique(steps().flat_map(kinds)),
            lookups: unique(runs.flat_map(|run| &run.lookups).map(|found| found.name.as_str())),
            groupings,
        }
    }
}

/// The end of a column's name, and its figure in what a row has one of at most.
type Column<T> = (&'static str, fn(&T) -> Value);

type Cell<'a> = Box<dyn Fn(&At<'_>) -> Value + 'a>;

#[derive(Default)]
struct Columns<'a>(Vec<(String, Cell<'a>)>);

impl<'a> Columns<'a> {
    fn add<V: Into<Value>>(&mut self, name: impl Into<String>, of: impl Fn(&At<'_>) -> V + 'a) {
        self.0.push((name.into(), Box::new(move |at| of(at).into())));
    }

    /// Columns under `prefix`, of what `of` finds.
    fn table<T>(
        &mut self,
        prefix: &str,
        columns: &'static [Column<T>],
        of: impl for<'x> Fn(&'x At<'x>) -> Option<&'x T> + Copy + 'a,
    ) {
        for (name, figure) in columns {
            self.add(format!("{prefix}{name}"), move |at| of(at).map_or(Value::Text(None), figure));
        }
    }

    /// Both ends of an interval, in `<name>_low` and `<name>_high`.
    fn ends(&mut self, name: &str, of: impl Fn(&At<'_>) -> Option<Interval> + Copy + 'a) {
        self.add(format!("{name}_low"), move |at| Some(of(at)?.low));
        self.add(format!("{name}_high"), move |at| Some(of(at)?.high));
    }
}

fn columns<'a>(names: &Names<'a>) -> Columns<'a> {
    let mut all = Columns::default();
    all.add("run", |at| at.findings.run.run_id.clone());
    all.add("workload", |at| at.workload.name.clone());
    all.add("block", |at| at.run.block);
    all.add("variant", |at| at.variant.variant.clone());
    all.add("step", |at| at.step.name.clone());
    all.add("state", |at| state(&at.run.validity));
    all.add("reason", |at| reason(&at.run.validity));
    all.add("window_seconds", |at| has_run(at).then_some(at.run.window_seconds));
    all.add("rate_per_second", |at| has_run(at).then_some(at.run.rate));
    all.add("ratio_to_base", |at| block_ratio(at.variant, at.run.block));
    over_blocks(&mut all);
    of_run(&mut all);
    for group in MetricGroup::ALL {
        let Some((of, _)) = group.relative else { continue };
        for metric in group.in_tables() {
            let name = format!("{}_to_base_over_blocks", metric.id);
            all.add(name, move |at| of(at.variant.relative.as_ref()?).value(metric));
        }
    }
    names.groupings.iter().for_each(|grouping| of_grouping(&mut all, grouping));
    for &name in &names.lookups {
        let prefix = format!("lookup_{name}_");
        all.table(&prefix, LOOKUPS, move |at| at.run.lookups.iter().find(|found| found.name == name));
    }
    names.kinds.iter().for_each(|kind| of_kind(&mut all, kind));
    all
}

const LOOKUPS: &[Column<Lookups>] = &[
    ("count", |found| found.count.into()),
    ("seconds", |found| found.seconds.into()),
    ("mean_seconds", |found| found.mean_seconds.into()),
    ("max_seconds", |found| found.max_seconds.into()),
];

fn has_run(at: &At<'_>) -> bool {
    matches!(at.run.validity, Validity::Valid | Validity::Invalid { .. })
}

fn inference(ratio: Option<&Ratio>) -> Option<&Inference> {
    ratio?.inference.as_ref()
}

/// What all blocks say together, the same in each of their rows: the headline, its response times,
/// and the ratio of p99 to the base's.
fn over_blocks(all: &mut Columns<'_>) {
    all.add("ratio_over_blocks", |at| Some(at.variant.ratio.as_ref()?.value));
    all.ends("ratio", |at| Some(inference(at.variant.ratio.as_ref())?.interval));
    all.add("adjusted_p_difference", |at| Some(inference(at.variant.ratio.as_ref())?.q_difference));
    all.add("verdict", |at| at.variant.verdict.map(Verdict::word));
    for (name, time) in LATENCY.iter().filter(|(name, _)| !["p90_us", "p999_us"].contains(name)) {
        all.add(format!("{name}_over_blocks"), move |at| {
            at.variant.latency.as_ref().map_or(Value::Text(None), time)
        });
    }
    all.add("p99_ratio_over_blocks", |at| Some(at.variant.p99.as_ref()?.ratio.value));
    all.ends("p99_ratio", |at| Some(inference(Some(&at.variant.p99.as_ref()?.ratio))?.interval));
    all.add("p99_verdict", |at| at.variant.p99.as_ref()?.verdict.map(Verdict::word));
}

/// Metrics of the run, how steady its seconds were, and the background rate that its step must
/// keep.
fn of_run(all: &mut Columns<'_>) {
    for group in MetricGroup::ALL {
        for metric in group.in_tables() {
            let name = format!("{}{}", group.csv_prefix, metric.id);
            all.add(name, move |at| (group.of)(at.run)?.value(metric));
        }
        if group.name == "metrics" {
            all.add("tag", |at| at.run.metrics.tag.clone());
        }
    }
    for metric in HostCheck::METRICS {
        all.add(format!("host_check_{}", metric.id), move |at| at.run.host_check.as_ref()?.value(metric));
    }
    all.add("host_check_unexplained_share", |at| Some(at.run.host_check.as_ref()?.unexplained_share));
    all.add("host_check_bound_share", |at| Some(at.run.host_check.as_ref()?.bound_share));
    all.add("seconds_on_target", |at| at.run.seconds_on_target);
    all.table("", STEADINESS, |at| at.run.steadiness.as_ref());
    // Classes of settings, meant to differ or not.
    all.add("settings_unlike_base", |at| {
        let parity = at.findings.parity.as_ref()?;
        let differences = parity.differences(&at.findings.run.base, &at.variant.variant);
        Some(differences.into_iter().map(|found| found.class).collect::<Vec<_>>().join(" "))
    });
    all.add("target_rows_per_second", |at| Some(at.step.target?.0));
    all.add("target_kept_from_share", |at| Some(at.step.target?.1));
    all.add("background_rows_per_second_over_blocks", |at| at.variant.background_rate);
    all.add("judged_background_rows_per_second", |at| at.run.judged_background_rate);
}

const STEADINESS: &[Column<Steadiness>] = &[
    ("worst_second_rate", |found| found.worst_rate.into()),
    ("longest_gap_seconds", |found| found.longest_gap_seconds.into()),
    ("share_below_half_median", |found| found.share_below_half_median.into()),
    ("warm_up_seconds", |found| found.warm_up_seconds.into()),
    ("became_steady", |found| (!found.never_steady).into()),
    ("period_seconds", |found| found.period_seconds.into()),
    ("two_modes", |found| found.modes.is_some().into()),
];

/// The step's group and its figures: the same in the rows of all of its steps.
fn of_grouping<'a>(all: &mut Columns<'a>, grouping: &'a str) {
    let prefix = format!("group_{grouping}");
    all.add(prefix.as_str(), move |at| at.step.groups.get(grouping).cloned());
    all.add(format!("{prefix}_steps"), move |at| {
        Some(group(at, grouping)?.figures.map_or(0, |figures| figures.count))
    });
    all.table(&format!("{prefix}_"), GROUP, move |at| group(at, grouping)?.figures.as_ref());
    all.ends(&format!("{prefix}_geometric_mean"), move |at| group(at, grouping)?.interval);
}

const GROUP: &[Column<describe::Group>] = &[
    ("average", |group| group.average.into()),
    ("median", |group| group.median.into()),
    ("min", |group| group.min.into()),
    ("max", |group| group.max.into()),
    ("stddev", |group| group.deviation.into()),
    ("geometric_mean", |group| group.geometric_mean.into()),
];

/// `None` also for a step that belongs to the setups of several numbers of connections, which has
/// no figures of its own.
fn group<'x>(at: &At<'x>, grouping: &str) -> Option<&'x GroupFindings> {
    let name = at.step.groups.get(grouping)?;
    let is_meant = |group: &&GroupFindings| {
        group.grouping == grouping
            && group.group == *name
            && group.variant == at.variant.variant
            && (group.steps.iter().any(|(member, _)| *member == at.step.name)
                || group.without.contains(&at.step.name))
    };
    let mut meant = at.workload.groups.iter().filter(is_meant);
    meant.next().filter(|_| meant.next().is_none())
}

fn of_kind<'a>(all: &mut Columns<'a>, name: &'a str) {
    all.table(&format!("{name}_"), KIND, move |at| at.run.kind(name));
    all.table(&format!("{name}_service_"), LATENCY, move |at| {
        Some(&at.run.kind(name)?.service).filter(|times| times.count > 0)
    });
    all.table(&format!("{name}_response_"), LATENCY, move |at| {
        Some(&at.run.kind(name)?.response).filter(|times| times.count > 0)
    });
}

const KIND: &[Column<KindResult>] = &[
    ("connections", |kind| kind.connections.into()),
    ("operations", |kind| kind.operations.into()),
    ("rows", |kind| kind.rows.into()),
    ("failed", |kind| kind.failed.into()),
    ("dropped", |kind| kind.dropped.into()),
    ("errors", |kind| kind.errors.total().into()),
    ("operations_per_second", |kind| kind.operations_per_second.into()),
    ("rows_per_second", |kind| kind.rows_per_second.into()),
    ("statements_per_second", |kind| kind.statements_per_second.into()),
];

const LATENCY: &[Column<Latency>] = &[
    ("mean_us", |latency| latency.mean_us.into()),
    ("p50_us", |latency| latency.p50_us.into()),
    ("p90_us", |latency| latency.p90_us.into()),
    ("p95_us", |latency| latency.p95_us.into()),
    ("p99_us", |latency| latency.p99_us.into()),
    ("p999_us", |latency| latency.p999_us.into()),
    ("max_us", |latency| latency.max_us.into()),
];

fn line(fields: impl Iterator<Item = String>) -> String {
    fields.map(|field| quoted(&field)).collect::<Vec<_>>().join(",") + "\n"
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
        let text = csv(&fixture::with_groups());
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
        let text = csv(&fixture::findings());
        assert_eq!(text.lines().count(), 1 + 20);
        insta::assert_snapshot!("csv", text);
    }
}
