//! Tables of the server's deferred work before and after each run of a step, and of the memory of a
//! server with a limit.

use dbdyno_analyse::{StepFindings, grouped};

use super::of_runs;
use crate::document::Table;
use crate::levels;
use crate::number::fixed;
use crate::words::table;

const MIB: f64 = 1024.0 * 1024.0;

/// Makes the table of deferred work. It has no rows where the work was not recorded.
pub(in crate::views) fn deferred_work(step: &StepFindings) -> Table {
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
                levels::words(&level.name).to_owned(),
                figure(level.before),
                figure(level.after),
                figure(level.more()),
                fixed(share.map(|share| 100.0 * share), 0),
            ]
        });
        row.collect::<Vec<_>>()
    })
}

/// Makes the table of the server's own memory and its files' page cache. It has no rows where no
/// server's memory was limited.
pub(in crate::views) fn memory(step: &StepFindings) -> Table {
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
    use crate::views::small::rows;

    #[test]
    fn what_was_owed_stands_before_and_after_and_work_that_never_was_is_left_out() {
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
