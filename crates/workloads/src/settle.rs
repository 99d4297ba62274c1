//! Brings a server to rest between load and measurement: by a fixed wait, or until its state is
//! quiet.

use std::time::{Duration, Instant};

use dbdyno_db::{AnySession, Bounds, Quiet, Rest, UpkeepReport, settle};
use dbdyno_model::{Given, PlanDuration, scalar, with_defaults};
use dbdyno_plan::{Mistake, StepEstimate};
use dbdyno_record::{SETTLING, Settling, SettlingSample};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::options::first_problem;
use crate::{Context, Error, Result, Work};

with_defaults! {
    /// `settle = { ... }` of a workload. Keys other than `by` and `after` belong to one of the two
    /// ways.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Settle {
        pub by: SettleBy = SettleBy::State,
        /// `by = "wait"`: length, counted from the start of cleanup; `"original"` is the
        /// original's.
        pub wait: SettleWait = SettleWait::Original,
        /// `by = "state"`: the longest wait after the active work. What was not reached by then is
        /// reported.
        pub cap: PlanDuration = PlanDuration::from_secs(600),
        /// After which steps.
        pub after: SettleAfter = SettleAfter::Load,
        /// `by = "state"`: dirty pages that count as quiet, as a fraction of the buffer pool.
        #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
        pub dirty_share: f64 = 0.02,
        /// `by = "state"`: redo that a restart would apply, as a fraction of all redo (PostgreSQL:
        /// of `max_wal_size`).
        #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
        pub redo_share: f64 = 0.1,
        /// `by = "state"`: transactions that wait for purge (InnoDB).
        pub history_length: u64 = 1000,
        /// `by = "state"`: dead rows, as a fraction of the live ones (PostgreSQL).
        #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
        pub dead_rows_share: f64 = 0.01,
        /// `by = "state"`: what the device of the data directory may write, in MB (10^6 bytes) a
        /// second.
        #[schemars(range(min = 0.0))]
        pub device_mb_per_second: f64 = 8.0,
    }
}

/// What ends the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettleBy {
    /// What the server has put off, and the device's traffic, lie under bounds.
    State,
    /// A time is over.
    Wait,
    /// Nothing: the server is not brought to rest, and what a step leaves undone is done during the
    /// next.
    None,
}

/// After which steps the server is brought to rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettleAfter {
    /// Once, where the original does: after the last step of the load.
    Load,
    /// After each step that writes and has one after it, with the whole cleanup.
    EachWrite,
}

/// Length of a fixed pause: `"original"` or a duration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettleWait {
    /// The workload's own; of the Insert Benchmark min(1200 s, 60 s + 1 s per million loaded rows).
    Original,
    /// A fixed time.
    #[serde(untagged)]
    Fixed(PlanDuration),
}

impl<'de> Deserialize<'de> for SettleWait {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        scalar(deserializer, "\"original\" or a duration such as \"30s\"", |given| match given {
            Given::Text("original") => Ok(Self::Original),
            given => PlanDuration::read(&given).map(Self::Fixed),
        })
    }
}

impl Settle {
    /// Returns the settings of `settle`, or of its short form `settle_wait`, which means a fixed
    /// pause.
    pub(crate) fn chosen(settle: Option<&Self>, wait: Option<SettleWait>) -> Self {
        let fixed = |wait| Self { by: SettleBy::Wait, wait, ..Self::default() };
        settle.cloned().unwrap_or_else(|| wait.map_or_else(Self::default, fixed))
    }

    /// Returns after which steps the server is brought to rest. The result is `None` where nothing
    /// at all is done between steps.
    pub fn after_steps(&self) -> Option<SettleAfter> {
        (self.by != SettleBy::None).then_some(self.after)
    }

    /// Returns the length of a fixed pause. `original` is the length of the workload's own pause.
    pub fn wait_of(&self, original: Duration) -> Duration {
        match (self.by, self.wait) {
            (SettleBy::None, _) => Duration::ZERO,
            (_, SettleWait::Fixed(wait)) => wait.0,
            (_, SettleWait::Original) => original,
        }
    }

    /// Returns the time that a forecast counts: the pause, or the time until the server has brought
    /// `data_bytes` to rest. The latter is never more than the cap.
    pub(crate) fn forecast(
        &self,
        name: &str,
        where_it_is: &str,
        original: Duration,
        data_bytes: u64,
    ) -> StepEstimate {
        let detail = self.detail(where_it_is);
        match self.by {
            SettleBy::Wait | SettleBy::None => StepEstimate::new(name, &detail, self.wait_of(original)),
            SettleBy::State => StepEstimate::of_work(name, &detail, "server settled", 1.0)
                .and("byte settled", data_bytes as f64, 1)
                .at_most(Some(self.cap.0)),
        }
    }

    /// Returns what replaces the original's fixed pause, for the record. The result is `None` where
    /// the plan has a pause too.
    pub fn in_place_of_a_pause(&self) -> Option<String> {
        match self.by {
            SettleBy::State => Some(format!("until the server is quiet, at most {}", self.cap)),
            SettleBy::None => Some("no cleanup and no pause".to_owned()),
            SettleBy::Wait => None,
        }
    }

    /// Returns the forecast's text for this rest. `where_it_is` says between which steps the
    /// rest is, such as `after l.i2`.
    pub(crate) fn detail(&self, where_it_is: &str) -> String {
        match self.by {
            SettleBy::Wait => format!("cleanup and pause {where_it_is}"),
            SettleBy::None => format!("nothing {where_it_is}"),
            SettleBy::State => format!("cleanup {where_it_is}, until quiet, {} at most", self.cap),
        }
    }
}

/// `settle_wait` and `settle` say the same thing in two ways, so a plan must have only one of them.
pub(crate) fn both_problem(settle: Option<&Settle>, has_wait: bool) -> Option<Mistake> {
    let message =
        "settle_wait is the short form of settle = { by = \"wait\", wait = ... }: write one of the two";
    first_problem([(settle.is_some() && has_wait, "settle_wait", message)])
}

/// Brings the server to rest after `step` as the plan says. `original` is the workload's own pause.
pub(crate) async fn cleanup(
    session: &mut AnySession,
    context: &Context,
    tables: &[String],
    (plan, original): (&Settle, Duration),
    step: &str,
) -> Result<Work> {
    let began = Instant::now();
    let rest = rest(plan, original, context);
    let wait = matches!(plan.by, SettleBy::Wait).then(|| plan.wait_of(original));
    let report = settle(session, &context.database_server.capabilities, tables, rest, context.owned)
        .await
        .map_err(Error::during(format!("cleanup after {step}")))?;
    let mut details = Map::new();
    details.extend(wait.map(|wait| ("wait_seconds".to_owned(), json!(wait.as_secs_f64()))));
    fill(&mut details, report);
    Ok(Work::new("cleanup", began.elapsed(), details))
}

fn rest(plan: &Settle, original: Duration, context: &Context) -> Rest {
    const BYTES_OF_MB: f64 = 1e6;
    match plan.by {
        // Nothing calls this for a plan that wants no cleanup.
        SettleBy::Wait | SettleBy::None => Rest::Wait(plan.wait_of(original)),
        SettleBy::State => Rest::Quiet(Quiet {
            cap: plan.cap.0,
            bounds: Bounds {
                dirty_share: plan.dirty_share,
                redo_share: plan.redo_share,
                history_length: i64::try_from(plan.history_length).unwrap_or(i64::MAX),
                dead_rows_share: plan.dead_rows_share,
                device_bytes_per_second: (plan.device_mb_per_second * BYTES_OF_MB) as i64,
            },
            device: context.device.clone(),
        }),
    }
}

fn fill(details: &mut Map<String, Value>, report: UpkeepReport) {
    details.extend(report.facts.into_iter().map(|(name, value)| (name, json!(value))));
    let seconds = |(name, took): (String, Duration)| (format!("{name}_seconds"), json!(took.as_secs_f64()));
    details.extend(report.parts.into_iter().map(seconds));
    details.insert("settings".to_owned(), json!(report.settings));
    details.insert("notes".to_owned(), json!(report.notes));
    if let Some(settling) = report.settling {
        details.insert(SETTLING.to_owned(), json!(recorded(settling)));
    }
}

fn recorded(settling: dbdyno_db::Settling) -> Settling {
    let sample = |(at, levels)| SettlingSample { at_us: micros(at), levels };
    Settling {
        quiet: settling.is_quiet,
        took_us: micros(settling.took),
        cap_us: micros(settling.cap),
        bounds: settling.bounds,
        before: settling.before,
        missed: settling.missed,
        samples: settling.samples.into_iter().map(sample).collect(),
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::Plan;

    use super::*;
    use crate::insert_benchmark::options::InsertBenchmarkOptions;
    use crate::oltp::options::OltpOptions;
    use crate::plans::parse;
    use crate::step::StepOptions;

    const HEAD: &str = "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n";

    fn plan(workload: &str) -> Plan {
        parse(&format!("{HEAD}{workload}\n"), "p.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    fn error(workload: &str) -> String {
        parse(&format!("{HEAD}{workload}\n"), "p.toml").expect_err("it must be refused").to_string()
    }

    fn insert_benchmark(line: &str) -> Settle {
        let plan = plan(&format!("[workload.insert-benchmark]\n{line}"));
        plan.workload.options::<InsertBenchmarkOptions>().expect("planned").settling()
    }

    #[test]
    fn the_insert_benchmark_settles_by_state_unless_the_plan_names_a_time() {
        assert_eq!(insert_benchmark(""), Settle::default());
        let fixed = insert_benchmark("settle_wait = \"5s\"");
        assert_eq!((fixed.by, fixed.wait_of(Duration::ZERO).as_secs()), (SettleBy::Wait, 5));
        let original = insert_benchmark("settle = { by = \"wait\" }");
        assert_eq!(original.wait_of(Duration::from_secs(92)).as_secs(), 92);
        let capped = insert_benchmark("settle = { cap = \"5m\", after = \"each-write\", dirty_share = 0.5 }");
        let expected = Settle {
            cap: PlanDuration::from_secs(300),
            after: SettleAfter::EachWrite,
            dirty_share: 0.5,
            ..Settle::default()
        };
        assert_eq!(capped, expected);
    }

    #[test]
    fn oltp_settles_by_state_unless_the_plan_names_a_time_or_nothing() {
        let of = |line: &str| -> OltpOptions {
            plan(&format!("[workload.oltp]\n{line}"))
                .workload
                .options::<OltpOptions>()
                .expect("planned")
                .clone()
        };
        assert_eq!(of("").settling().by, SettleBy::State);
        let original = of("settle = { by = \"wait\" }").settling();
        assert_eq!((original.by, original.wait_of(Duration::ZERO)), (SettleBy::Wait, Duration::ZERO));
        assert_eq!(of("settle_wait = \"9s\"").settling().wait_of(Duration::ZERO).as_secs(), 9);
        assert_eq!(of("settle = {}").settling().by, SettleBy::State);
        let nothing = of("settle = { by = \"none\" }").settling();
        assert!(nothing.after_steps().is_none() && nothing.wait_of(Duration::from_secs(60)).is_zero());
    }

    #[test]
    fn a_resolved_plan_has_only_the_long_form_and_reads_back_as_the_same_plan() {
        let first = plan("[workload.insert-benchmark]\nsettle_wait = \"5s\"");
        let text = toml::to_string(&first).expect("a plan is TOML");
        assert!(!text.contains("settle_wait") && text.contains("wait = \"5s\""), "{text}");
        assert_eq!(parse(&text, "again").expect("what was written can be read"), first);
    }

    #[test]
    fn contradictory_and_wrong_values_are_refused_with_their_position() {
        insta::assert_snapshot!(error("[workload.oltp]\nsettle = {}\nsettle_wait = \"1s\""), @r#"p.toml:7:15: settle_wait is the short form of settle = { by = "wait", wait = ... }: write one of the two"#);
        insta::assert_snapshot!(error("[workload.dbt3]\nsettle = { redo_share = 0.0 }"), @"p.toml:6:25: settle.redo_share is 0, but must be above 0 and at most 1");
        insta::assert_snapshot!(error("[workload.insert-benchmark]\nsettle = { redo_share = 0.0 }"), @"p.toml:6:25: settle.redo_share is 0, but must be above 0 and at most 1");
        insta::assert_snapshot!(error("[workload.insert-benchmark]\nsettle = { by = \"states\" }"), @"p.toml:6:17: `states` is not a value of this key (did you mean `state`?); it takes state, wait, none");
        insta::assert_snapshot!(error("[workload.insert-benchmark]\nsettle = { device_mb_per_second = -1.0 }"), @"p.toml:6:35: settle.device_mb_per_second is -1, but must be at least 0");
    }
}
