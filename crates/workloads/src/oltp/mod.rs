//! The classic OLTP tests are point selects, read-only and read-write transactions, and single
//! writes, on tables `sbtest1..T`.
//!
//! They follow sysbench's oltp_*.lua as of 1.0.20 and 1.1: tables, statements, their mix, order and
//! distributions. Where dbdyno differs, [`deviations`] says so in every record.

pub(crate) mod distribution;
pub(crate) mod load;
pub(crate) mod operation;
pub mod options;
pub(crate) mod rows;
pub(crate) mod sql;
pub(crate) mod steps;
pub(crate) mod tasks;
pub(crate) mod verify;

use std::sync::Arc;
use std::time::Duration;

use dbdyno_db::{AnySession, KeySource};
use dbdyno_loadgen::StepEnd;
use dbdyno_plan::{TableValue, Values, WorkloadTable};
use dbdyno_record::{Check, Deviation, StepSpec};
use serde_json::{Value, json};

use crate::deviations::of_rows;
use crate::oltp::operation::statement_slots;
use crate::oltp::options::{OltpOptions, OltpProfile, OltpTest as Test};
use crate::oltp::steps::{OltpStep, OltpStepKind};
use crate::oltp::tasks::AnyTask;
use crate::oltp::verify::Contents;
use crate::options::Verify;
use crate::settle::SettleAfter;
use crate::step::{StepOptions, WorkloadParts};
use crate::{
    Context, Error, Explained, Original, Result, Steps, Tasks, Work, Workload, WorkloadSummary, summaries,
};

pub struct Oltp {
    pub(crate) shared: Arc<OltpSetup>,
    steps: Vec<OltpStep>,
    pub(crate) contents: Contents,
    /// First id of rows that the client numbers itself.
    first_new_id: i64,
}

/// What all tasks of a cell must know. It is the same for every step.
#[derive(Debug)]
pub(crate) struct OltpSetup {
    pub(crate) options: OltpOptions,
    pub(crate) context: Context,
}

impl OltpSetup {
    /// Returns the name of table `number` (from 1).
    pub(crate) fn table(number: u32) -> String {
        format!("sbtest{number}")
    }

    pub(crate) fn tables(&self) -> Vec<String> {
        (1..=self.options.tables).map(Self::table).collect()
    }

    /// Returns the number that the text of a range query adds to its first id. sysbench 0.5 writes
    /// `BETWEEN 5000 AND 5000+99`. It is `None` for later versions, which send both ids.
    fn added_span(&self) -> Option<u32> {
        (self.options.profile == OltpProfile::Sysbench05).then(|| self.options.range_size - 1)
    }

    /// Returns whether ids come from the client. They do if the plan says so, or if the table has
    /// no primary key and the database assigns ids only to a primary key.
    pub(crate) fn client_ids(&self) -> bool {
        let by_key_only = self.context.database_server.capabilities.key_source == KeySource::Table;
        !self.options.auto_inc || (self.options.secondary && by_key_only)
    }
}

impl Oltp {
    /// Finds the first id that the client gives its own rows in an insert test. It is the one after
    /// the highest id in the tables.
    async fn find_first_new_id(&mut self, index: usize, session: &mut AnySession) -> Result<()> {
        let inserts = matches!(self.steps[index].kind, OltpStepKind::Test { test: Test::Insert, .. });
        if self.shared.client_ids() && inserts {
            self.first_new_id = self.first_new_id.max(self.highest_id(session).await? + 1);
        }
        Ok(())
    }

    /// Returns the highest id in all tables, or 0 when they are empty.
    pub(crate) async fn highest_id(&self, session: &mut AnySession) -> Result<i64> {
        let mut highest = 0;
        for number in 1..=self.shared.options.tables {
            highest = highest.max(load::highest_id(number, session).await?);
        }
        Ok(i64::try_from(highest).unwrap_or(i64::MAX))
    }
}

impl Steps for Oltp {
    fn saved_state(&self) -> Value {
        self.contents.to_json()
    }

    fn restore_state(&mut self, saved_state: &Value) -> Result<()> {
        self.contents =
            Contents::from_json(saved_state).ok_or_else(|| Error::SavedState(saved_state.to_string()))?;
        self.first_new_id = 0;
        Ok(())
    }

    fn spec(&self, index: usize) -> StepSpec {
        steps::spec(&self.steps[index], &self.shared)
    }

    fn tasks_state(&self, index: usize) -> Option<Value> {
        matches!(self.steps[index].kind, OltpStepKind::Test { .. }).then(|| json!(self.first_new_id))
    }

    fn take_tasks_state(&mut self, state: &Value) {
        self.first_new_id = state.as_i64().unwrap_or_default();
    }

    fn explained(&self, index: usize) -> Vec<Explained> {
        match self.steps[index].kind {
            OltpStepKind::Load | OltpStepKind::Index => Vec::new(),
            OltpStepKind::Test { test, .. } => {
                let statement_slots = statement_slots(test, &self.shared.options, self.shared.client_ids());
                sql::explained(&self.shared, &statement_slots)
            }
        }
    }
}

impl Workload for Oltp {
    const NAME: &'static str = "oltp";
    const PURPOSE: &'static str = "the classic tests on sbtest tables: point selects, read-only and read-write transactions, single \
                                   writes, over sweeps of connections and rates";
    const WORDS: &'static str = include_str!("words.toml");
    const VERSION: u32 = 4;
    const ORIGINAL: Original = Original {
        rest: (
            Duration::ZERO,
            "sysbench runs on one server; drivers of published reports rest for 600 s between versions",
        ),
        transport: "{} over TCP by default, localhost",
    };

    type Options = OltpOptions;
    type ConnectionTask = AnyTask;

    /// Sets those defaults of a profile that the table does not set itself.
    fn add_defaults(table: &mut WorkloadTable<'_>) {
        const KEY: &str = "profile";
        if table.text(KEY) == Some("sysbench-0.5") {
            table.set_default("protocol", TableValue::Text("text"), KEY);
            table.set_default("distribution", TableValue::Text("special-whole"), KEY);
            table.set_default("one_table", TableValue::Flag(true), KEY);
        }
    }

    fn summaries() -> Vec<WorkloadSummary> {
        let options = OltpOptions { tests: Test::ALL.to_vec(), ..OltpOptions::default() };
        summaries::of::<Self>(&options)
    }

    fn follows(options: &OltpOptions) -> &'static str {
        match options.profile {
            OltpProfile::Sysbench1 => "sysbench oltp_*.lua, versions 1.0.20 and 1.1",
            OltpProfile::Sysbench05 => "sysbench oltp.lua, version 0.5",
        }
    }

    fn deviations(options: &OltpOptions) -> Vec<Deviation> {
        deviations(options)
    }

    fn new(options: &OltpOptions, context: Context) -> Self {
        let shared = Arc::new(OltpSetup { options: options.clone(), context });
        Self { shared, steps: options.list(), contents: Contents::default(), first_new_id: 0 }
    }

    fn parts(&self) -> WorkloadParts<'_, OltpOptions> {
        let OltpSetup { options, context } = &*self.shared;
        WorkloadParts { options, context, steps: &self.steps }
    }

    fn tables(&self) -> Option<Vec<String>> {
        Some(self.shared.tables())
    }

    async fn before_step(&mut self, index: usize, session: &mut AnySession) -> Result<Vec<Work>> {
        let mut works = Vec::new();
        if self.steps[index].kind == OltpStepKind::Load {
            works = load::make(&self.shared, session).await?;
        } else if index == 0 {
            let found = load::find(&self.shared, session, false).await?;
            self.contents = found.contents;
            works.push(found.work);
        }
        self.find_first_new_id(index, session).await?;
        Ok(works)
    }

    fn tasks(&self, index: usize) -> Tasks<AnyTask> {
        tasks::of_step(&self.shared, &self.steps[index], self.first_new_id)
    }

    async fn check(&mut self, index: usize, end: &StepEnd, session: &mut AnySession) -> Result<Vec<Check>> {
        let kind = self.steps[index].kind;
        if !self.shared.context.stores_data() || self.shared.options.verify == Verify::Off {
            return Ok(Vec::new());
        }
        self.contents = match kind {
            OltpStepKind::Load => Contents::loaded(&self.shared),
            OltpStepKind::Index => self.contents,
            OltpStepKind::Test { test, .. } => self.contents.after(test, &self.shared, end),
        };
        if !self.parts().is_checked(index) {
            return Ok(Vec::new());
        }
        verify::verify(&self.shared, kind, &mut self.contents, session).await
    }

    async fn after_step(&mut self, index: usize, session: &mut AnySession) -> Result<Vec<Work>> {
        if self.steps[index].kind != OltpStepKind::Load {
            return Ok(Vec::new());
        }
        Ok(load::restart_ids(&self.shared, session).await?.into_iter().collect())
    }
}

pub(crate) const DEVIATIONS: &str = include_str!("deviations.toml");

pub(crate) fn deviations(options: &OltpOptions) -> Vec<Deviation> {
    let mut values = options.values();
    values.insert("rest".to_owned(), json!(rest(options)));
    of_rows(DEVIATIONS, &values)
}

/// Returns what dbdyno does between steps, and after which steps. It is `None` where nothing is
/// done, as in the original.
fn rest(options: &OltpOptions) -> Option<String> {
    let settle = options.settling();
    let when = match (settle.after_steps()?, options.use_existing) {
        (SettleAfter::Load, true) => return None,
        (SettleAfter::Load, false) => "after the load",
        (SettleAfter::EachWrite, true) => "after each step that writes",
        (SettleAfter::EachWrite, false) => "after the load and each step that writes",
    };
    let length = match settle.in_place_of_a_pause() {
        Some(until_quiet) => format!(", then {until_quiet}"),
        None => match settle.wait_of(Duration::ZERO) {
            Duration::ZERO => String::new(),
            wait => format!(", with a pause at least {} s long in all", wait.as_secs_f64()),
        },
    };
    Some(format!(
        "{when}: cleanup (InnoDB flushes dirty pages, vacuum, ANALYZE, a checkpoint, as far as \
         the product has them){length}"
    ))
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::Plan;

    use crate::oltp::options::{Distribution, OltpOptions, OltpProfile};
    use crate::options::Protocol;
    use crate::plans::parse;

    fn plan(text: &str) -> Plan {
        parse(text, "p.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    fn text(options: &str) -> String {
        format!("name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.oltp]\n{options}\n")
    }

    fn oltp(options: &str) -> OltpOptions {
        plan(&text(options)).workload.options::<OltpOptions>().unwrap().clone()
    }

    #[test]
    fn the_profiles_defaults_hold_where_the_plan_sets_none() {
        let old = oltp("profile = \"sysbench-0.5\"");
        assert_eq!(old.profile, OltpProfile::Sysbench05);
        assert_eq!(
            (old.one_table, old.protocol, old.distribution),
            (true, Protocol::Text, Distribution::SpecialWhole)
        );
        let parameters = (old.special_iterations, old.special_percent, old.special_share);
        assert_eq!(parameters, (12, 1, 75), "the same in all versions");
        let mixed = oltp("distribution = \"uniform\"\none_table = false\nprofile = \"sysbench-0.5\"");
        assert_eq!(
            (mixed.one_table, mixed.protocol, mixed.distribution),
            (false, Protocol::Text, Distribution::Uniform)
        );
        assert_eq!(oltp("profile = \"sysbench-1\""), oltp(""));
    }

    #[test]
    fn the_resolved_plan_says_what_a_profile_means() {
        let old = plan(&text("profile = \"sysbench-0.5\""));
        let resolved = toml::to_string(&old).unwrap();
        assert!(resolved.contains("one_table = true"), "{resolved}");
        assert_eq!(plan(&resolved), old);
    }
}
