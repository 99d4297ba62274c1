//! Makes the list of steps: load and index, then the sequence at each concurrency level. It also
//! decides between which steps the server comes to rest, and before which steps loaded data may be
//! put back. Estimates are exact for steps that have a length, and guessed for all others.

use std::collections::BTreeMap;
use std::time::Duration;

use dbdyno_plan::{Rest, Size, StepEstimate, StepOutline, grouped, numbered};

use crate::microbenchmarks::options::QueryFamily;
use crate::microbenchmarks::options::{
    MicroLength, MicroLevel, MicroStep, MicroTest as Test, MicrobenchmarksOptions, Moment,
};
use crate::oltp::steps::{ROW_READ, table_bytes, with_warm_up};
use crate::options::Verify;
use crate::settle::{Settle, SettleAfter};
use crate::step::{DataSize, OPERATION, Step, StepOptions, checked};
use crate::workload::capped;

impl StepOptions for MicrobenchmarksOptions {
    /// A step of the sequence. It is `None` for load and index.
    type Kind = Option<MicroLevel>;

    fn list(&self) -> Vec<Step<Option<MicroLevel>>> {
        let levels = self.levels();
        let mut tables: Vec<_> = self.tables_part().list();
        if let Some(last) = tables.last_mut() {
            last.outline.rest = self.rest_between(None, levels.first());
        }
        let tables = tables.into_iter().map(|step| Step { outline: step.outline, kind: None });
        let measured = levels.iter().enumerate().map(|(index, level)| {
            let (warmup, writes) = (self.warmup_of(&level.step), level.step.test.writes());
            let length = self.length(&level.step);
            let outline = StepOutline {
                begins_group: begins_group(&levels, index),
                is_warm_up: level.step.moment.is_warm_up(),
                changes_data: writes,
                is_checked: writes,
                rest: self.rest_between(Some(level), levels.get(index + 1)),
                warmup,
                time_cap: length.map(|length| capped(length.saturating_add(warmup), self.time_cap)),
                ..StepOutline::new(self.level_estimate(level))
            };
            Step { outline, kind: Some(level.clone()) }
        });
        tables.chain(checked(measured.collect(), self.verify)).collect()
    }

    fn settling(&self) -> Settle {
        Settle::chosen(self.settle.as_ref(), self.settle_wait)
    }

    /// Returns min(1200, 60 + loaded rows / 1,000,000) seconds.
    fn original_wait(&self) -> Duration {
        Duration::from_secs((self.loaded_rows() / 1_000_000).saturating_add(60).min(1200))
    }

    fn data_size(&self, size: &Size) -> DataSize {
        let (tables, levels) = (self.tables_part(), self.levels());
        let writing = levels.iter().filter(|level| level.step.test.writes());
        let written = writing.map(|level| self.length(&level.step).unwrap_or_default()).sum();
        let loaded = table_bytes(&tables, size, Duration::ZERO);
        let disk = table_bytes(&tables, size, written);
        DataSize { settled: loaded.saturating_sub(size.log_bytes), loaded, disk }
    }

    fn checks(&self) -> Option<(Verify, &'static str, u64)> {
        Some((self.verify, ROW_READ, self.loaded_rows()))
    }
}

impl MicrobenchmarksOptions {
    /// Returns whether the server is brought to rest between two steps that follow each other in
    /// the plan. `before` is `None` before the first one (after the load), and `after` is `None`
    /// after the last.
    ///
    /// The original brings it to rest after point-query.warm, and after the last step that writes
    /// before the reads. Where the plan puts the loaded data back later, the first rest is right
    /// after the load, so that the restored data are at rest as well. There is no rest after writes
    /// that are thrown away.
    fn rest_between(&self, before: Option<&MicroLevel>, after: Option<&MicroLevel>) -> Rest {
        let Some(after) = after.filter(|_| before.is_none() || !self.data.restores_each_step()) else {
            return Rest::Never;
        };
        let wrote = before.is_none_or(|before| before.step.test.writes());
        let each_write = self.settling().after_steps() == Some(SettleAfter::EachWrite);
        let comes_back = self.data.uses_snapshot() || self.data.restores_each_step();
        let steps = &self.sequence.steps()[before.map_or(0, |before| before.place)..after.place];
        let rests = match before {
            _ if wrote && each_write => true,
            None if comes_back => true,
            Some(_) if comes_back => steps.iter().any(|step| step.settles && step.test.writes()),
            _ => steps.iter().any(|step| step.settles),
        };
        if rests { Rest::Always(format!("before {}", after.name)) } else { Rest::Never }
    }

    fn level_estimate(&self, level: &MicroLevel) -> StepEstimate {
        let on = format!("on {}", numbered(level.connections, "connection"));
        if let Some(length) = self.length(&level.step) {
            let warm_up = self.warmup_of(&level.step);
            let detail = format!("{} {on}", with_warm_up(warm_up, length));
            return StepEstimate::new(&level.name, &detail, length.saturating_add(warm_up));
        }
        let of = |detail: &str| StepEstimate::new(&level.name, detail, Duration::ZERO);
        match self.operations {
            // The step scans each table once, whatever the plan's operations are.
            Some(operations) if level.step.length != MicroLength::OneScan => {
                let detail = format!("{} operations {on}", grouped(operations));
                of(&detail).and(OPERATION, operations as f64, level.connections)
            }
            // Each connection has a table of its own to scan.
            _ => {
                let rows = self.table_size as f64 * f64::from(level.connections);
                of(&format!("each table once {on}")).and(ROW_READ, rows, level.connections)
            }
        }
    }
}

/// Returns whether data may be put back, and the server started again, before step `index` of
/// `levels`. Neither is allowed after a step that fills caches for this one, nor between
/// concurrency levels of a step that reads with caches filled in this way.
fn begins_group(levels: &[MicroLevel], index: usize) -> bool {
    let follows_warm_up = |index: usize| index > 0 && levels[index - 1].step.moment.is_warm_up();
    let first = levels.iter().position(|other| other.place == levels[index].place).unwrap_or(index);
    !follows_warm_up(index) && (levels[index].step.test.writes() || !follows_warm_up(first))
}

/// Name of the grouping in the reports of 2023 and 2024, which has five groups over 42 steps.
const BY_PART: &str = "2024";
/// Name of the grouping in the reports since 2025, which has four groups over 32 steps.
const BY_KIND: &str = "2025";
/// Name of the grouping in the report of January 2021, which has five groups by when a step runs.
/// The load is one of them.
const BY_SEQUENCE: &str = "2021";

pub(crate) fn of_load() -> BTreeMap<String, String> {
    BTreeMap::from([(BY_SEQUENCE.to_owned(), "load".to_owned())])
}

/// Returns the groups of a step. A step that only fills caches has none.
pub(crate) fn of_step(step: &MicroStep) -> BTreeMap<String, String> {
    if step.moment.is_warm_up() {
        return BTreeMap::new();
    }
    let by_kind = (step.moment != Moment::Pre).then(|| by_kind(step.test));
    [(BY_PART, by_part(step.test)), (BY_KIND, by_kind), (BY_SEQUENCE, Some(by_sequence(step)))]
        .into_iter()
        .filter_map(|(grouping, group)| Some((grouping.to_owned(), group?.to_owned())))
        .collect()
}

fn by_part(test: Test) -> Option<&'static str> {
    match (test, test.family()) {
        (Test::RandomPoints, _) => Some("point, part 2"),
        (_, QueryFamily::Points) => Some("point, part 1"),
        (Test::ReadOnly, _) => Some("range, part 2"),
        (Test::ReadOnlyCount, _) | (_, QueryFamily::Transactions) => None,
        (_, QueryFamily::Ranges) => Some("range, part 1"),
        (_, QueryFamily::Writes(_)) => Some("writes"),
    }
}

/// Returns the group by kind. These reports count read-only-simple under aggregation, although it
/// aggregates nothing.
fn by_kind(test: Test) -> &'static str {
    match test.family() {
        QueryFamily::Points => "point",
        QueryFamily::Ranges if test != Test::ReadOnlyCount => "range without aggregation",
        QueryFamily::Ranges | QueryFamily::Transactions => "range with aggregation",
        QueryFamily::Writes(_) => "writes",
    }
}

fn by_sequence(step: &MicroStep) -> &'static str {
    match step.test {
        Test::Delete | Test::Insert => "insert and delete",
        test if test.writes() => "write-heavy",
        _ if step.moment == Moment::Pre => "read-only before write-heavy",
        _ => "read-only after write-heavy",
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_model::DataMode;
    use dbdyno_plan::{Basis, estimate};

    use super::*;
    use crate::microbenchmarks::options::MicroSequence;
    use crate::plans::parse;

    fn options(data: DataMode, steps: &[&str]) -> MicrobenchmarksOptions {
        let steps = steps.iter().map(|&step| step.to_owned()).collect();
        MicrobenchmarksOptions { data, steps, connections: vec![1, 2], ..MicrobenchmarksOptions::default() }
    }

    /// Returns the steps after which the server comes to rest.
    fn settled_with(options: &MicrobenchmarksOptions) -> Vec<String> {
        let rested = options.list().into_iter().filter(|step| step.rest != Rest::Never);
        rested.map(|step| step.kind.map_or_else(|| "load".to_owned(), |level| level.name)).collect()
    }

    fn settled(data: DataMode, steps: &[&str]) -> Vec<String> {
        settled_with(&options(data, steps))
    }

    #[test]
    fn the_server_rests_after_the_load_and_after_the_writes_whichever_steps_are_left_out() {
        for data in [DataMode::Preserve, DataMode::Restart] {
            assert_eq!(settled(data, &["*"]), ["point-query.warm", "read-write_range=100.c2"]);
            assert_eq!(settled(data, &["!*.warm", "!read-write*"]), ["load", "write-only.c2"]);
            assert_eq!(settled(data, &["delete"]), ["load"]);
        }
    }

    #[test]
    fn restored_data_are_at_rest_and_discarded_writes_need_no_rest() {
        assert_eq!(settled(DataMode::Restore, &["*"]), ["load", "read-write_range=100.c2"]);
        assert_eq!(settled(DataMode::Restore, &["delete"]), ["load"]);
        for data in [DataMode::Reset, DataMode::RestoreEachStep] {
            assert_eq!(settled(data, &["*"]), ["load"]);
        }
    }

    #[test]
    fn the_server_rests_after_each_write_if_the_plan_asks_for_it_and_the_tables_stay() {
        let each = |data| {
            let settle = Some(Settle { after: SettleAfter::EachWrite, ..Settle::default() });
            let options =
                options(data, &["point-query.warm", "point-query.pre", "write-only", "delete", "insert"]);
            settled_with(&MicrobenchmarksOptions { settle, connections: vec![1], ..options }).join(" ")
        };
        assert_eq!(each(DataMode::Preserve), "load point-query.warm write-only delete");
        assert_eq!(each(DataMode::Restore), "load write-only delete");
        assert_eq!(each(DataMode::RestoreEachStep), "load");
    }

    #[test]
    fn there_is_no_rest_before_the_first_step_on_existing_tables() {
        let steps = ["delete".to_owned()].to_vec();
        let existing =
            MicrobenchmarksOptions { use_existing: true, steps, ..MicrobenchmarksOptions::default() };
        assert_eq!(settled_with(&existing), [""; 0]);
    }

    #[test]
    fn a_step_keeps_the_caches_that_the_one_before_it_has_filled() {
        let within = |sequence, steps: &[&str]| -> Vec<String> {
            let options = MicrobenchmarksOptions { sequence, ..options(DataMode::RestoreEachStep, steps) };
            let within = options.list().into_iter().filter(|step| !step.begins_group);
            within.map(|step| step.name.clone()).collect()
        };
        assert_eq!(within(MicroSequence::FortyTwo, &["*"]), ["point-query.pre.c1", "point-query.pre.c2"]);
        assert_eq!(
            within(MicroSequence::ThirtyTwo, &["*"]).join(" "),
            "scan.warmpre.c1 scan.warmpre.c2 point-query.pre.c1 point-query.pre.c2 scan.warm.c2 scan.c1 scan.c2 \
             points-covered-si.warm.c2 points-covered-si.c1 points-covered-si.c2"
        );
        // Among steps that write, only the first may follow the warm-up, because the second would
        // not find its rows.
        assert_eq!(within(MicroSequence::ThirtyTwo, &["point-query.warm", "delete"]), ["delete.c1"]);
        assert_eq!(within(MicroSequence::FortyTwo, &["!*.warm"]), [""; 0]);
    }

    #[test]
    fn the_originals_pause_grows_with_the_rows() {
        let seconds = |tables, table_size| {
            MicrobenchmarksOptions { tables, table_size, ..MicrobenchmarksOptions::default() }
                .original_wait()
                .as_secs()
        };
        assert_eq!(
            (seconds(1, 50_000_000), seconds(8, 10_000_000), seconds(1, 4_000_000_000)),
            (110, 140, 1200)
        );
    }

    #[test]
    fn steps_take_their_time_and_pauses_are_where_the_original_has_them() {
        let plan = parse(
            "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"mariadb-10.11\"\n[workload.microbenchmarks]\n\
             table_size = 1_000_000\nsettle_wait = \"original\"\nsteps = [\"point-query*\", \"update-*\", \"scan\"]\n",
            "test.toml",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let estimate = estimate(&plan, &Basis::default());
        let line = |step: &StepEstimate| format!("{} | {} | {:.1?}\n", step.name, step.detail, step.duration);
        let table: String = estimate.cells[0].steps.iter().map(line).collect();
        insta::assert_snapshot!(table, @r"
        prepare | server and tables | 3.5s
        load | 1,000,000 rows | 1.3s
        index | 1 index on 1,000,000 rows | 1.1s
        point-query.warm | 5s warm-up and 10m on 1 connection | 605.0s
        settle | cleanup and pause before point-query.pre | 61.0s
        point-query.pre | 5s warm-up and 10m on 1 connection | 605.0s
        update-inlist | 5s warm-up and 15m on 1 connection | 905.0s
        update-index | 5s warm-up and 15m on 1 connection | 905.0s
        update-nonindex | 5s warm-up and 15m on 1 connection | 905.0s
        update-one | 5s warm-up and 15m on 1 connection | 905.0s
        update-zipf | 5s warm-up and 15m on 1 connection | 905.0s
        settle again | cleanup and pause before point-query | 61.0s
        point-query | 5s warm-up and 10m on 1 connection | 605.0s
        scan | each table once on 1 connection | 630.0ms
        verify | 6 checks of 1,000,000 rows | 3.6s
        ");
    }

    #[test]
    fn steps_that_end_with_their_operations_say_so_except_the_one_scan() {
        let detail = |sequence: &str| {
            let plan = parse(
                &format!(
                    "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"mariadb-10.11\"\n[workload.microbenchmarks]\n\
                     table_size = 1000\ntables = 2\noperations = 200\nsteps = [\"scan\", \"delete\"]\nsequence = \"{sequence}\"\n"
                ),
                "test.toml",
            );
            let estimate = estimate(&plan.unwrap_or_else(|error| panic!("{error}")), &Basis::default());
            let steps =
                estimate.cells[0].steps.iter().filter(|step| ["scan", "delete"].contains(&&*step.name));
            steps.map(|step| format!("{}: {}", step.name, step.detail)).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(
            detail("42"),
            "scan: each table once on 2 connections; delete: 200 operations on 1 connection"
        );
        assert_eq!(
            detail("32"),
            "scan: 200 operations on 1 connection; delete: 200 operations on 1 connection"
        );
    }

    /// Returns the numbers of members by group.
    fn counts(sequence: MicroSequence, grouping: &str) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for step in sequence.steps() {
            if let Some(group) = of_step(step).get(grouping) {
                *counts.entry(group.clone()).or_default() += 1;
            }
        }
        counts.iter().map(|(group, count)| format!("{group}: {count}")).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn groups_have_as_many_members_as_in_the_reports() {
        insta::assert_snapshot!(counts(MicroSequence::FortyTwo, BY_PART), @"point, part 1: 11; point, part 2: 6; range, part 1: 9; range, part 2: 6; writes: 10");
        insta::assert_snapshot!(counts(MicroSequence::ThirtyTwo, BY_KIND), @"point: 9; range with aggregation: 8; range without aggregation: 5; writes: 10");
        insta::assert_snapshot!(counts(MicroSequence::FortyTwo, BY_SEQUENCE), @"insert and delete: 2; read-only after write-heavy: 17; read-only before write-heavy: 15; write-heavy: 8");
    }
}
