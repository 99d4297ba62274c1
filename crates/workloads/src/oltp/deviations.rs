//! Every respect in which this implementation differs from the original, for the record and the report.

use std::time::Duration;

use dbdyno_plan::Values;
use dbdyno_record::Deviation;
use serde_json::json;

use crate::deviations::of_rows;
use crate::oltp::options::OltpOptions;
use crate::settle::SettleAfter;
use crate::step::StepOptions;

pub(crate) const ROWS: &str = include_str!("deviations.toml");

pub(crate) fn deviations(options: &OltpOptions) -> Vec<Deviation> {
    let mut values = options.values();
    values.insert("rest".to_owned(), json!(rest(options)));
    of_rows(ROWS, &values)
}

/// Returns what is done between steps, and after which ones. It is `None` where nothing is done, as in
/// the original.
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
