//! Findings as a long table, for spreadsheets and statistics: one row a block, variant and step.

use dbdyno_analyse::metrics::{Cost, DeviceLoad, Efficiency, Figures, MetricRow};
use dbdyno_analyse::statistics::Interval;
use dbdyno_analyse::{
    BeforeAfterWrites, Findings, GroupFindings, Inference, KindResult, Latency, Ratio, StepFindings, StepRun,
    SweepPoint, Validity, VariantStep, Verdict, WorkloadFindings, unique,
};

use crate::evidence::rates::block_ratio;
use crate::evidence::{HOST_CHECK, kind_of, kinds, reason, state};
use crate::number::NOT_AVAILABLE;

/// The CSV report (RFC 4180 quoting, lines end in `\n`). Numbers are unrounded; `NA` is shown where
/// there is none.
pub(crate) fn csv(findings: &Findings) -> String {
    let names = Names::of(findings);
    let columns = columns(findings, &names);
    let mut text = line(columns.0.iter().map(|(name, _)| name.clone()));
    for workload in &findings.workloads {
        for step in &workload.steps {
            for variant in &step.variants {
                for run in &variant.runs {
                    let at = At { findings, workload, step, variant, run };
                    text.push_str(&line(columns.0.iter().map(|(_, cell)| cell(&at))));
                }
            }
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

/// The text of a column in a row.
type Text<'a> = Box<dyn Fn(&At<'_>) -> String + 'a>;

/// The columns with their names.
#[derive(Default)]
struct Columns<'a>(Vec<(String, Text<'a>)>);

impl<'a> Columns<'a> {
    /// `NA` for none.
    fn add<T: ToString>(&mut self, name: impl Into<String>, of: impl Fn(&At<'_>) -> Option<T> + 'a) {
        let text =
            move |at: &At<'_>| of(at).map_or_else(|| NOT_AVAILABLE.to_owned(), |value| value.to_string());
        self.0.push((name.into(), Box::new(text)));
    }

    /// Unrounded; `inf` where the base has 0.
    fn number(&mut self, name: impl Into<String>, of: impl Fn(&At<'_>) -> Option<f64> + 'a) {
        self.add(name, move |at| of(at).filter(|value| !value.is_nan()));
    }

    /// A column for each metric of a group.
    fn figures<G: Figures>(&mut self, name: fn(&str) -> String, of: for<'x> fn(&At<'x>) -> Option<&'x G>) {
        for metric in G::in_tables() {
            self.number(name(metric.id), move |at| of(at)?.value(metric));
        }
    }

    /// Both ends of an interval, in `<name>_low` and `<name>_high`.
    fn ends(&mut self, name: &str, of: impl Fn(&At<'_>) -> Option<Interval> + Copy + 'a) {
        self.number(format!("{name}_low"), move |at| Some(of(at)?.low));
        self.number(format!("{name}_high"), move |at| Some(of(at)?.high));
    }
}

fn columns<'a>(findings: &Findings, names: &Names<'a>) -> Columns<'a> {
    let mut all = Columns::default();
    all.add("run", |at| Some(at.findings.run.run_id.clone()));
    all.add("workload", |at| Some(at.workload.name.clone()));
    all.add("block", |at| Some(at.run.block));
    all.add("variant", |at| Some(at.variant.variant.clone()));
    all.add("step", |at| Some(at.step.name.clone()));
    all.add("state", |at| Some(state(&at.run.validity)));
    all.add("reason", |at| Some(reason(&at.run.validity)));
    all.number("window_seconds", |at| has_run(at).then_some(at.run.window_seconds));
    all.number("rate_per_second", |at| has_run(at).then_some(at.run.rate));
    all.number("ratio_to_base", |at| block_ratio(at.variant, at.run.block));
    over_blocks(&mut all);
    of_run(&mut all);
    all.figures(to_base, |at| Some(&at.variant.relative.as_ref()?.metrics));
    all.figures(to_base, |at| Some(&at.variant.relative.as_ref()?.efficiency));
    all.figures(to_base, |at| Some(&at.variant.relative.as_ref()?.cost));
    names.groupings.iter().for_each(|grouping| of_grouping(&mut all, grouping));
    if findings.workloads.iter().any(|workload| !workload.sweeps.is_empty()) {
        of_sweeps(&mut all);
    }
    if findings.workloads.iter().any(|workload| !workload.aging.is_empty()) {
        of_aging(&mut all);
    }
    for &name in &names.lookups {
        let of = move |at: &At<'_>| at.run.lookups.iter().find(|found| found.name == name).cloned();
        all.add(format!("lookup_{name}_count"), move |at| Some(of(at)?.count));
        all.number(format!("lookup_{name}_seconds"), move |at| Some(of(at)?.seconds));
        all.number(format!("lookup_{name}_mean_seconds"), move |at| Some(of(at)?.mean_seconds));
        all.number(format!("lookup_{name}_max_seconds"), move |at| Some(of(at)?.max_seconds));
    }
    names.kinds.iter().for_each(|kind| of_kind(&mut all, kind));
    all
}

fn has_run(at: &At<'_>) -> bool {
    matches!(at.run.validity, Validity::Valid | Validity::Invalid { .. })
}

fn to_base(id: &str) -> String {
    format!("{id}_to_base_over_blocks")
}

fn inference(ratio: Option<&Ratio>) -> Option<&Inference> {
    ratio?.inference.as_ref()
}

/// What all blocks say together, the same in each of their rows: the headline, its response times,
/// and the ratio of p99 to the base's.
fn over_blocks(all: &mut Columns<'_>) {
    all.number("ratio_over_blocks", |at| Some(at.variant.ratio.as_ref()?.value));
    all.ends("ratio", |at| Some(inference(at.variant.ratio.as_ref())?.interval));
    all.number("adjusted_p_difference", |at| Some(inference(at.variant.ratio.as_ref())?.q_difference));
    all.add("verdict", |at| at.variant.verdict.map(Verdict::word));
    all.number("mean_us_over_blocks", |at| Some(at.variant.latency.as_ref()?.mean_us));
    all.add("p50_us_over_blocks", |at| Some(at.variant.latency.as_ref()?.p50_us));
    all.add("p95_us_over_blocks", |at| Some(at.variant.latency.as_ref()?.p95_us));
    all.add("p99_us_over_blocks", |at| Some(at.variant.latency.as_ref()?.p99_us));
    all.add("max_us_over_blocks", |at| Some(at.variant.latency.as_ref()?.max_us));
    all.number("p99_ratio_over_blocks", |at| Some(at.variant.p99.as_ref()?.ratio.value));
    all.ends("p99_ratio", |at| Some(inference(Some(&at.variant.p99.as_ref()?.ratio))?.interval));
    all.add("p99_verdict", |at| at.variant.p99.as_ref()?.verdict.map(Verdict::word));
}

/// Metrics of the run, how steady its seconds were, and the background rate that its step must
/// keep.
fn of_run(all: &mut Columns<'_>) {
    all.figures::<MetricRow>(str::to_owned, |at| Some(&at.run.metrics));
    all.add("tag", |at| Some(at.run.metrics.tag.clone()));
    all.figures::<Efficiency>(str::to_owned, |at| Some(&at.run.efficiency));
    all.figures::<Cost>(str::to_owned, |at| Some(&at.run.cost));
    all.figures::<DeviceLoad>(|id| format!("device_{id}"), |at| at.run.device.as_ref());
    for column in HOST_CHECK {
        let name = format!("host_check_{}", column.field);
        all.number(name, move |at| (column.value)(at.run.host_check.as_ref()?));
    }
    all.number("host_check_unexplained_share", |at| Some(at.run.host_check.as_ref()?.unexplained_share));
    all.number("host_check_bound_share", |at| Some(at.run.host_check.as_ref()?.bound_share));
    all.number("seconds_on_target", |at| at.run.seconds_on_target);
    all.number("worst_second_rate", |at| Some(at.run.steadiness.as_ref()?.worst_rate));
    all.add("longest_gap_seconds", |at| Some(at.run.steadiness.as_ref()?.longest_gap_seconds));
    all.number("share_below_half_median", |at| Some(at.run.steadiness.as_ref()?.share_below_half_median));
    all.add("warm_up_seconds", |at| at.run.steadiness.as_ref()?.warm_up_seconds);
    all.add("became_steady", |at| Some(!at.run.steadiness.as_ref()?.never_steady));
    all.add("period_seconds", |at| at.run.steadiness.as_ref()?.period_seconds);
    all.add("two_modes", |at| Some(at.run.steadiness.as_ref()?.modes.is_some()));
    // Classes of settings, meant to differ or not.
    all.add("settings_unlike_base", |at| {
        let parity = at.findings.parity.as_ref()?;
        Some(parity.differences(&at.findings.run.base, &at.variant.variant).join(" "))
    });
    all.number("target_rows_per_second", |at| Some(at.step.target?.0));
    all.number("target_kept_from_share", |at| Some(at.step.target?.1));
    all.number("background_rows_per_second_over_blocks", |at| at.variant.background_rate);
    all.number("judged_background_rows_per_second", |at| at.run.judged_background_rate);
}

/// The step's group and its figures: the same in the rows of all of its steps.
fn of_grouping<'a>(all: &mut Columns<'a>, grouping: &'a str) {
    let prefix = format!("group_{grouping}");
    let of = move |at: &At<'_>| group(at, grouping)?.figures;
    all.add(prefix.as_str(), move |at| at.step.groups.get(grouping).cloned());
    all.add(format!("{prefix}_steps"), move |at| {
        Some(group(at, grouping)?.figures.map_or(0, |figures| figures.count))
    });
    all.number(format!("{prefix}_average"), move |at| Some(of(at)?.average));
    all.number(format!("{prefix}_median"), move |at| Some(of(at)?.median));
    all.number(format!("{prefix}_min"), move |at| Some(of(at)?.min));
    all.number(format!("{prefix}_max"), move |at| Some(of(at)?.max));
    all.number(format!("{prefix}_stddev"), move |at| of(at)?.deviation);
    all.number(format!("{prefix}_geometric_mean"), move |at| of(at)?.geometric_mean);
    all.ends(&format!("{prefix}_geometric_mean"), move |at| group(at, grouping)?.interval);
}

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

/// The step's rung of its ladder of connections: the same in the rows of all blocks of a variant.
/// The rate is the step's, the median over the blocks.
fn of_sweeps(all: &mut Columns<'_>) {
    all.add("sweep", |at| Some(rung(at)?.0.clone()));
    all.add("sweep_connections", |at| rung(at)?.1);
    all.add("sweep_blocks", |at| Some(rung(at)?.2.map_or(0, |rung| rung.blocks)));
    all.number("sweep_median_rate_per_second", |at| Some(rung(at)?.2?.median_rate));
}

/// The test, the connections, and what the variant reached.
fn rung<'x>(at: &At<'x>) -> Option<(&'x String, Option<u32>, Option<SweepPoint>)> {
    at.workload.sweeps.iter().find_map(|sweep| {
        let place = sweep.steps.iter().position(|name| *name == at.step.name)?;
        let found = sweep.variants.iter().find(|found| found.variant == at.variant.variant);
        let rung = found.and_then(|found| found.rungs.get(place).copied().flatten());
        Some((&sweep.test, sweep.connections.get(place).copied(), rung))
    })
}

/// In the rows of a step after the writes: the step before them, the ratio of the row's block, and
/// what all blocks say together.
fn of_aging(all: &mut Columns<'_>) {
    let found = |at: &At<'_>| {
        let aging = aging(at)?;
        aging.variants.iter().find(|found| found.variant == at.variant.variant).cloned()
    };
    all.add("before_writes_step", |at| Some(aging(at)?.before.clone()));
    all.number("ratio_to_before_writes", move |at| {
        found(at)?.blocks.iter().find(|(block, _)| *block == at.run.block).map(|(_, ratio)| *ratio)
    });
    all.number("ratio_to_before_writes_over_blocks", move |at| found(at)?.ratio);
    all.ends("ratio_to_before_writes", move |at| found(at)?.interval);
}

fn aging<'x>(at: &At<'x>) -> Option<&'x BeforeAfterWrites> {
    at.workload.aging.iter().find(|aging| aging.after == at.step.name)
}

/// The end of a column's name, and its figure.
type Named<T, V> = (&'static str, fn(&T) -> V);
type Clock = (&'static str, fn(&KindResult) -> &Latency);

fn of_kind<'a>(all: &mut Columns<'a>, name: &'a str) {
    let counts: [Named<KindResult, u64>; 6] = [
        ("connections", |kind| kind.connections.into()),
        ("operations", |kind| kind.operations),
        ("rows", |kind| kind.rows),
        ("failed", |kind| kind.failed),
        ("dropped", |kind| kind.dropped),
        ("errors", |kind| kind.errors.total()),
    ];
    for (column, of) in counts {
        all.add(format!("{name}_{column}"), move |at| kind_of(at.run, name).map(of));
    }
    let rates: [Named<KindResult, f64>; 3] = [
        ("operations_per_second", |kind| kind.operations_per_second),
        ("rows_per_second", |kind| kind.rows_per_second),
        ("statements_per_second", |kind| kind.statements_per_second),
    ];
    for (column, of) in rates {
        all.number(format!("{name}_{column}"), move |at| kind_of(at.run, name).map(of));
    }
    let clocks: [Clock; 2] = [("service", |kind| &kind.service), ("response", |kind| &kind.response)];
    let times: [Named<Latency, u64>; 6] = [
        ("p50_us", |latency| latency.p50_us),
        ("p90_us", |latency| latency.p90_us),
        ("p95_us", |latency| latency.p95_us),
        ("p99_us", |latency| latency.p99_us),
        ("p999_us", |latency| latency.p999_us),
        ("max_us", |latency| latency.max_us),
    ];
    for (clock, latency) in clocks {
        let prefix = format!("{name}_{clock}");
        all.number(format!("{prefix}_mean_us"), move |at| {
            kind_of(at.run, name).map(latency).filter(has_any).map(|latency| latency.mean_us)
        });
        for (column, time) in times {
            all.add(format!("{prefix}_{column}"), move |at| {
                kind_of(at.run, name).map(latency).filter(has_any).map(time)
            });
        }
    }
}

fn has_any(latency: &&Latency) -> bool {
    latency.count > 0
}

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

    /// The columns whose names begin so, of the second block of each variant in a step.
    fn cells(findings: &Findings, step_name: &str, prefix: &str) -> Vec<String> {
        let names = Names::of(findings);
        let columns = columns(findings, &names);
        let workload = &findings.workloads[0];
        let step = workload.steps.iter().find(|step| step.name == step_name).expect("in the fixture");
        let of_variant = |variant: &VariantStep| {
            let run = &variant.runs[1.min(variant.runs.len() - 1)];
            let at = At { findings, workload, step, variant, run };
            let meant = columns.0.iter().filter(|(name, _)| name.contains(prefix));
            meant.map(|(_, cell)| cell(&at)).collect::<Vec<_>>().join(",")
        };
        step.variants.iter().map(of_variant).collect()
    }

    #[test]
    fn the_step_behind_the_writes_has_the_ratio_of_its_block_and_that_of_all() {
        let findings = fixture::with_aging();
        let cells = |step: &str| cells(&findings, step, "before_writes");
        assert_eq!(cells("qp500"), ["qp100,0.99,1,0.98,1.02"; 2]);
        assert_eq!(cells("qr500")[1], "qr100,NA,NA,NA,NA", "of the variant with a gap");
        assert_eq!(cells("qr100"), ["NA,NA,NA,NA,NA"; 2], "the step before them");
    }

    #[test]
    fn a_step_of_a_ladder_has_its_test_its_rung_and_the_rate_of_its_variant() {
        let mut findings = fixture::with_sweep();
        let mut cells = |step: &str| {
            step.clone_into(&mut findings.workloads[0].steps[0].name);
            cells(&findings, step, "sweep")
        };
        assert_eq!(cells("read-only.c4"), ["read-only,4,2,4000", "read-only,4,2,4800"]);
        assert_eq!(
            cells("read-only.c1024")[1],
            "read-only,1024,0,NA",
            "of the variant that did not get so far"
        );
        assert_eq!(cells("l.i0"), ["NA,NA,NA,NA"; 2], "a step of no ladder");
    }

    #[test]
    fn runs_without_ladders_and_writes_between_tests_have_no_such_columns() {
        let findings = fixture::findings();
        assert_eq!(cells(&findings, "l.i0", "sweep"), ["", ""]);
        assert_eq!(cells(&findings, "l.i0", "before_writes"), ["", ""]);
    }
}
