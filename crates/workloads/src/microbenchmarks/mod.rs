//! The microbenchmarks are 27 small tests on tables `sbtest1..T`, in the order of the published
//! reports.
//!
//! They follow sysbench.lua and its driver as used for the reports of 2023 to 2026. Tables, rows,
//! draws and connections are those of the classic workload ([`crate::oltp`]). What is sent, in
//! which order and for how long is defined here. Where this differs from the original,
//! [`deviations`] says so in every record.

#[cfg(test)]
mod acceptance_tests;
mod list;
pub mod options;
#[cfg(test)]
#[path = "tests/page.rs"]
mod page;
mod sequence;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use crate::microbenchmarks::options::{MicroLevel, MicroSequence, MicroTest, MicrobenchmarksOptions};
use crate::options::Verify;
use dbdyno_db::AnySession;
use dbdyno_loadgen::StepEnd;
use dbdyno_plan::Values;
use dbdyno_record::{Check, Deviation, StepSpec};
use serde_json::{Value, json};

use crate::deviations::{of_rows, of_table_rows, with_rest};
use crate::microbenchmarks::steps::ReadyStep;
use crate::oltp::steps::OltpStepKind;
use crate::oltp::tasks::AnyTask;
use crate::oltp::verify::Contents;
use crate::oltp::{self, Oltp, verify};
use crate::step::{StepOptions, WorkloadParts};
use crate::summaries::step_description;
use crate::{Context, Explained, Original, Result, Steps, Tasks, Work, Workload, WorkloadSummary, summaries};

/// The workload over one cell.
pub struct Microbenchmarks {
    options: MicrobenchmarksOptions,
    context: Context,
    /// The classic workload that loads and indexes the tables.
    tables: Oltp,
    steps: Vec<crate::Step<Option<MicroLevel>>>,
    contents: Contents,
    /// First id of rows that the client numbers itself.
    first_new_id: i64,
    /// Number of rows in each table that others have filled. It is empty for tables that dbdyno has
    /// filled, which have `table_size` rows.
    found_rows: Arc<[u64]>,
}

impl Microbenchmarks {
    /// Returns step `index`, ready to be described or run. The result is `None` for load and index.
    fn step(&self, index: usize) -> Option<ReadyStep<'_>> {
        self.level(index).map(|level| ReadyStep::new(&self.options, level, &self.context))
    }

    fn test(&self, index: usize) -> Option<MicroTest> {
        self.level(index).map(|level| level.step.test)
    }

    /// Returns the step of the sequence that step `index` runs, with its connections. The result is
    /// `None` for load and index.
    fn level(&self, index: usize) -> Option<&MicroLevel> {
        self.steps[index].kind.as_ref()
    }
}

impl Steps for Microbenchmarks {
    fn saved_state(&self) -> Value {
        self.contents.to_json()
    }

    fn restore_state(&mut self, saved_state: &Value) -> Result<()> {
        self.tables.restore_state(saved_state)?;
        self.contents = self.tables.contents;
        self.first_new_id = 0;
        Ok(())
    }

    fn spec(&self, index: usize) -> StepSpec {
        match self.step(index) {
            Some(step) => step.spec(),
            None => StepSpec { groups: list::of_load(), ..self.tables.spec(index) },
        }
    }

    fn tasks_state(&self, index: usize) -> Option<Value> {
        self.level(index).map(|_| json!([self.first_new_id, self.found_rows[..]]))
    }

    fn take_tasks_state(&mut self, state: &Value) {
        self.first_new_id = state[0].as_i64().unwrap_or_default();
        self.found_rows = state[1].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    }

    fn explained(&self, index: usize) -> Vec<Explained> {
        let explained = |step: ReadyStep<'_>| oltp::sql::explained(&step.setup, &step.statement_slots());
        self.step(index).map_or_else(Vec::new, explained)
    }
}

impl Workload for Microbenchmarks {
    const NAME: &'static str = "microbenchmarks";
    const PURPOSE: &'static str = "27 small tests on sbtest tables in the order of the published reports, the 42 steps of 2024 or the \
                                   32 of 2025: read tests run before the writes and again after them";
    const WORDS: &'static str = include_str!("words.toml");
    const VERSION: u32 = 4;
    const ORIGINAL: Original = Original {
        rest: (Duration::from_secs(600), "600 s between versions of servers"),
        transport: "{} over TCP by default, localhost",
    };

    type Options = MicrobenchmarksOptions;
    type ConnectionTask = AnyTask;

    fn summaries() -> Vec<WorkloadSummary> {
        MicroSequence::ALL.map(summaries_of).into()
    }

    fn follows(_: &MicrobenchmarksOptions) -> &'static str {
        "sysbench.lua and its drivers, as used for the reports of 2023 to 2026"
    }

    fn deviations(options: &MicrobenchmarksOptions) -> Vec<Deviation> {
        deviations(options)
    }

    fn new(options: &MicrobenchmarksOptions, context: Context) -> Self {
        Self {
            tables: Oltp::new(&options.tables_part(), context.clone()),
            steps: options.list(),
            options: options.clone(),
            context,
            contents: Contents::default(),
            first_new_id: 0,
            found_rows: Arc::default(),
        }
    }

    fn parts(&self) -> WorkloadParts<'_, MicrobenchmarksOptions> {
        WorkloadParts { options: &self.options, context: &self.context, steps: &self.steps }
    }

    fn tables(&self) -> Option<Vec<String>> {
        self.tables.tables()
    }

    async fn before_step(&mut self, index: usize, session: &mut AnySession) -> Result<Vec<Work>> {
        let Some(test) = self.test(index) else {
            return self.tables.before_step(index, session).await;
        };
        let mut works = Vec::new();
        if index == 0 {
            let mut levels = self.steps.iter().filter_map(|step| step.kind.as_ref());
            let scans = levels.any(|level| level.step.test == MicroTest::Scan);
            let found = oltp::load::find(&self.tables.shared, session, scans).await?;
            self.found_rows = found.rows.into();
            works.push(found.work);
            self.contents = found.contents;
        }
        if test == MicroTest::Insert && self.tables.shared.client_ids() {
            self.first_new_id = self.tables.highest_id(session).await? + 1;
        }
        Ok(works)
    }

    fn tasks(&self, index: usize) -> Tasks<AnyTask> {
        match self.step(index) {
            Some(step) => step.tasks(self.first_new_id, &self.found_rows),
            None => self.tables.tasks(index),
        }
    }

    async fn check(&mut self, index: usize, end: &StepEnd, session: &mut AnySession) -> Result<Vec<Check>> {
        let Some(test) = self.test(index) else {
            let checks = self.tables.check(index, end, session).await?;
            self.contents = self.tables.contents;
            return Ok(checks);
        };
        if !self.context.stores_data() || self.options.verify == Verify::Off {
            return Ok(Vec::new());
        }
        self.contents = self.contents.after(test.effect(), &self.tables.shared, end);
        if !self.parts().is_checked(index) {
            return Ok(Vec::new());
        }
        let kind = OltpStepKind::Test { test: test.effect(), connections: 1, rate: None };
        verify::verify(&self.tables.shared, kind, &mut self.contents, session).await
    }

    async fn after_step(&mut self, index: usize, session: &mut AnySession) -> Result<Vec<Work>> {
        let Some(test) = self.test(index) else {
            return self.tables.after_step(index, session).await;
        };
        if test != MicroTest::Delete || !self.options.delete_refill {
            return Ok(Vec::new());
        }
        let (rows, work) = steps::refill(&self.tables.shared, session).await?;
        let rows = self.contents.rows.map(|all| all + i128::from(rows));
        self.contents = Contents { rows, k: None, whole: true };
        Ok(vec![work])
    }
}

fn summaries_of(sequence: MicroSequence) -> WorkloadSummary {
    let options = MicrobenchmarksOptions { sequence, ..MicrobenchmarksOptions::default() };
    let workload = Microbenchmarks::new(&options, summaries::context());
    let levels = options.levels();
    let step_summary = |spec: StepSpec| {
        let level = levels.iter().find(|level| level.name == spec.name);
        let description = level.map_or_else(
            || step_description(Oltp::WORDS, &spec.name),
            |level| step_description(Microbenchmarks::WORDS, level.step.test.name()),
        );
        let published = level.map(|level| level.step.published_name()).filter(|name| *name != spec.name);
        summaries::step_summary(&spec, published, description)
    };
    let steps = summaries::specs(&workload).map(step_summary).collect();
    WorkloadSummary { workload: Microbenchmarks::NAME, title: sequence.title(), steps }
}

pub(crate) fn deviations(options: &MicrobenchmarksOptions) -> Vec<Deviation> {
    let values = with_rest(options.values(), &options.settling(), |wait| wait.to_string());
    let mut list = of_table_rows(oltp::DEVIATIONS, &options.tables_part().values());
    list.extend(of_rows(include_str!("deviations.toml"), &values));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deviations::rows;

    /// Topics of the classic workload that do not apply to the microbenchmarks, or for which the
    /// microbenchmarks have their own rows.
    const OTHERS: [&str; 2] = ["k", "query plans"];

    #[test]
    fn deviations_that_the_classic_workload_always_has_are_due_to_its_tables_or_known() {
        let all = rows(oltp::DEVIATIONS, "deviation");
        for always in all.iter().filter(|row| row.always_holds() && !row.topic.is_empty()) {
            let topic = always.topic.as_str();
            assert!(always.of_tables != OTHERS.contains(&topic), "{topic}");
        }
    }

    #[test]
    fn options_that_the_original_does_not_have_are_reported() {
        let topics = |options: &MicrobenchmarksOptions| {
            deviations(options).into_iter().map(|found| found.topic).collect::<Vec<_>>()
        };
        let default = topics(&MicrobenchmarksOptions::default());
        for topic in ["steps of ids", "binary logs", "time_cap"] {
            assert!(default.iter().any(|one| one == topic), "{topic}");
        }
        assert!(!default.iter().any(|one| one == "zipfian_exponent"));
        let other = MicrobenchmarksOptions {
            zipfian_exponent: 1.2,
            operations: Some(9),
            ..MicrobenchmarksOptions::default()
        };
        assert!(topics(&other).iter().any(|one| one == "zipfian_exponent"));
        assert!(!topics(&other).iter().any(|one| one == "time_cap"), "steps end with their operations");
    }
}
