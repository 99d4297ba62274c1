//! Tables of the groups of metrics, run by run, and of every metric of a variant divided by the
//! base's. Further tables have the server's deferred work before and after each run of a step, and
//! the memory of a server with a limit.

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::{MetricGroup, StepFindings, grouped};

use super::of_runs;
use crate::document::{Column, Table};
use crate::number::{fixed, ratio};
use crate::words::{self, table, table_of};

/// Makes the tables of CPU and IO per operation. Each group is followed by its ratios to the base.
pub(crate) fn per_operation(step: &StepFindings) -> Vec<Table> {
    let of_group = |group| Some(tables(step, group).into_iter().chain([ratios_to_base(step, group)?]));
    MetricGroup::ALL.iter().filter_map(of_group).flatten().collect()
}

/// Makes the tables of the data directory's device.
pub(crate) fn device(step: &StepFindings) -> Vec<Table> {
    let groups = MetricGroup::ALL.iter().filter(|group| !group.is_compared);
    groups.flat_map(|group| tables(step, group)).collect()
}

/// Makes the tables with all metrics in a group. They have no rows where the group was not sampled.
fn tables(step: &StepFindings, group: &MetricGroup) -> Vec<Table> {
    let table = table_of(step, group.name);
    match group.name {
        "cost" => vec![
            grid(step, group, table, |metric| !metric.is_last),
            grid(step, group, table_of(step, "wake-ups"), |metric| metric.is_last),
        ],
        _ => vec![grid(step, group, table, |_| true)],
    }
}

fn grid(step: &StepFindings, group: &MetricGroup, mut table: Table, is_shown: fn(&Metric) -> bool) -> Table {
    let has_tag = !table.columns.is_empty();
    let shown = group.in_tables().filter(|metric| is_shown(metric));
    table.columns.splice(0..0, shown.map(Column::from));
    of_runs(step, table, |run| {
        (group.of)(run).map(|group| {
            let shown = group.figures().into_iter().filter(|(metric, _)| is_shown(metric));
            let text = |(metric, value): (&Metric, Option<f64>)| {
                fixed(value.map(|value| metric.factor * value), metric.decimals)
            };
            shown.map(text).chain(has_tag.then(|| run.metrics.tag.clone())).collect()
        })
    })
}

/// Explains the geometric mean over blocks of which one has a 0.
pub(crate) const ZEROS: &str = "a block with 0 on both sides counts as 1; on one side it gives 0, inf or NA";

/// Makes the table of a group's ratios, without metrics that no variant has. It is `None` for a
/// group that is not compared, or that no variant has.
fn ratios_to_base(step: &StepFindings, group: &MetricGroup) -> Option<Table> {
    let title = format!("{}, relative", table(group.name).title);
    let note = format!("Ratio to the base, geometric mean over the blocks; {ZEROS}.");
    let found = step.variants.iter();
    let rows: Vec<_> =
        found.filter_map(|variant| Some((variant, variant.to_base.relative.as_ref()?))).collect();
    let is_known = |metric: &&Metric| rows.iter().any(|(_, ratios)| ratios.of(metric).is_some());
    let known: Vec<&Metric> = group.in_tables().filter(is_known).collect();
    let mut grid = Table::new(&title, &note, ["variant"], known.iter().map(|metric| metric.name));
    for (variant, ratios) in &rows {
        let texts = known.iter().map(|metric| ratio_text(ratios.of(metric)));
        grid.push(std::iter::once(variant.variant.clone()).chain(texts));
    }
    (group.is_compared && !known.is_empty()).then_some(grid)
}

/// Writes a ratio with two decimals, as published, or with three significant figures below 0.1.
pub(crate) fn ratio_text(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_infinite() => "inf".to_owned(),
        value => ratio(value, 2),
    }
}

const MIB: f64 = 1024.0 * 1024.0;

/// Makes the table of deferred work. It has no rows where the work was not recorded.
pub(crate) fn deferred_work(step: &StepFindings) -> Table {
    of_runs(step, table("deferred-work"), |run| {
        let of_deferred_work = run
            .deferred_work
            .iter()
            .flat_map(|deferred_work| deferred_work.levels.iter().map(move |level| (deferred_work, level)));
        // A level that is zero before and after is left out.
        let shown = of_deferred_work.filter(|(_, level)| (level.before, level.after) != (0, 0));
        let row = shown.map(|(deferred_work, level)| {
            let figure = |value: i64| match level.is_bytes() {
                true => fixed(Some(value as f64 / 1e6), 1),
                false => grouped(&value.to_string()),
            };
            let share = deferred_work.share_of_written(level).filter(|_| level.more() > 0);
            vec![
                words::level_words(&level.name).to_owned(),
                figure(level.before),
                figure(level.after),
                figure(level.more()),
                fixed(share.map(|share| 100.0 * share), 0),
            ]
        });
        row.collect::<Vec<_>>()
    })
}

/// Makes the table of the memory that the server itself and the page cache of its files take. It
/// has no rows where no server's memory was limited.
pub(crate) fn memory(step: &StepFindings) -> Table {
    of_runs(step, table("limited-memory"), |run| {
        run.group_memory.map(|memory| {
            let sizes = [memory.highest_bytes, memory.own_bytes, memory.page_cache_bytes, memory.dirty_bytes];
            let mebibytes = |bytes: Option<i64>| fixed(bytes.map(|bytes| bytes as f64 / MIB), 1);
            sizes.map(mebibytes).into_iter().chain([fixed(memory.limit_hits_per_second, 1)]).collect()
        })
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{DeferredLevel, DeferredWork, GroupMemory};

    use super::*;
    use crate::fixture::pair;
    use crate::views::testing::{heads, rows};

    #[test]
    fn every_group_has_a_title_and_a_note() {
        let words = |group: &&MetricGroup| crate::words::table(group.name);
        let is_without = |group: &&MetricGroup| words(group).title.is_empty() || words(group).note.is_empty();
        let without: Vec<_> = MetricGroup::ALL.iter().filter(is_without).collect();
        assert!(without.is_empty(), "{:?}", without.iter().map(|group| group.name).collect::<Vec<_>>());
    }

    #[test]
    fn the_columns_have_the_originals_names_in_its_order() {
        let names: Vec<_> = MetricGroup::ALL[0].in_tables().map(|metric| metric.name).collect();
        assert_eq!(
            names.join(" "),
            "ips qps rps rmbps wps wmbps rpq rkbpq wpi wkbpi csps cpups cspq cpupq dbgb1 dbgb2 rss maxop p50 p99"
        );
    }

    #[test]
    fn a_row_has_rates_sizes_times_and_percent_and_an_unseen_device_has_none() {
        let mut step = pair("l.i0", 1.0, 1);
        let device = |step: &StepFindings| device(step).remove(0);
        let expected = "rollback 12.4 256.0 20.6 0.21 3,210.6 185,385.0 57.7 1.50 NA NA 4.82 83.1";
        assert_eq!(device(&step).rows[0].join(" "), expected);
        for run in step.variants.iter_mut().flat_map(|variant| &mut variant.runs) {
            run.device = None;
        }
        assert!(device(&step).rows.is_empty());
    }

    fn grids(step: &StepFindings) -> Vec<Table> {
        MetricGroup::ALL.iter().filter_map(|group| ratios_to_base(step, group)).collect()
    }

    #[test]
    fn zeros_are_shown_as_the_words_say_here_and_in_the_documentation() {
        let shown = [Some(1.0), Some(0.0), Some(f64::INFINITY), None].map(ratio_text);
        assert_eq!(shown, ["1.00", "0.00", "inf", "NA"]);
        let tables = grids(&pair("l.i0", 1.02, 1));
        assert!(tables.iter().all(|table| table.note.contains(ZEROS)));
        let page = include_str!("../../../../../docs/concepts/statistics-methods.md").replace('`', "");
        let words: Vec<&str> = page.split_whitespace().collect();
        assert!(words.join(" ").contains(ZEROS));
    }

    #[test]
    fn each_metric_has_its_ratio_and_the_base_has_none() {
        let text = |grid: &Table| format!("{}\n{}", heads(grid).join(" | "), rows(grid));
        let texts: Vec<String> = grids(&pair("l.i0", 1.02, 1)).iter().map(text).collect();
        insta::assert_snapshot!(texts.join("\n"), @r#"
        variant | ips | rps | cpupq
        <b>&" | 1.02 | inf | 0.98
        variant | cpu/o | o/s
        <b>&" | 0.98 | 1.02
        variant | server
        <b>&" | 0.98
        "#);
    }

    #[test]
    fn deferred_work_is_shown_before_and_after_and_levels_of_zero_are_left_out() {
        let mut step = pair("l.i0", 1.0, 1);
        assert_eq!(deferred_work(&step).rows.len(), 0, "not recorded, no table");
        let level = |name: &str, before, after| DeferredLevel { name: name.to_owned(), before, after };
        step.variants[0].runs[0].deferred_work = Some(DeferredWork {
            levels: vec![
                level("dirty_bytes", 1_000_000, 513_000_000),
                level("history_list_length", 40, 12),
                level("change_buffer_pages", 0, 0),
            ],
            written_bytes: Some(1_024_000_000),
        });
        insta::assert_snapshot!(rows(&deferred_work(&step)), @r"
        rollback | dirty pages | 1.0 | 513.0 | 512.0 | 50
        rollback | transactions to purge | 40 | 12 | -28 | NA
        ");
    }

    #[test]
    fn only_runs_with_a_limit_have_a_row() {
        let mut step = pair("l.i0", 1.0, 1);
        assert_eq!(memory(&step).rows.len(), 0, "no limit, no table");
        step.variants[1].runs[0].group_memory = Some(GroupMemory {
            highest_bytes: Some(256 << 20),
            own_bytes: Some(100 << 20),
            page_cache_bytes: Some((150 << 20) + (1 << 19)),
            dirty_bytes: Some(0),
            limit_hits_per_second: None,
        });
        insta::assert_snapshot!(rows(&memory(&step)), @r#"<b>&" | 256.0 | 100.0 | 150.5 | 0.0 | NA"#);
    }
}
