//! The cleanup between two steps, which every workload uses: active work, then a wait or a quiet state.

use std::time::{Duration, Instant};

use crate::settle::{Settle, SettleBy};
use dbdyno_db::{AnySession, Bounds, Quiet, Rest, UpkeepReport, settle};
use dbdyno_record::{SETTLING, Settling, SettlingSample};
use serde_json::{Map, Value, json};

use crate::{Context, Error, Result, Work};

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
        // A plan that wants no cleanup does not come here.
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
