//! What the descriptions of steps have in common, and how connections are recorded.

use std::time::Duration;

use dbdyno_loadgen::Arrivals;
use dbdyno_record::{Headline, KindSpec, OperationClass, StepSpec, Unit, WindowRule};
use serde_json::{Map, Value, json};

use crate::Philox;

/// More clients than this would make records long and add no information.
const MOST_CLIENTS: u32 = 64;
const LEAST_CLIENTS: u32 = 16;

/// Returns the draws of step `name`. They depend on its name, so that adding a step to a plan or
/// removing one leaves the others as they are.
pub(crate) fn stream(name: &str, seed: u64) -> Philox {
    Philox::new(seed, fnv1a(name.as_bytes()))
}

/// Returns the hash of Fowler, Noll and Vo, variant 1a, 32 bits.
pub(crate) fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// Returns how many clients `connections` are recorded as. Up to 64 each is one client. Above that they
/// form groups of the same size where there is such a size. The connections of a schedule are one
/// client.
pub(crate) fn clients(connections: u32, rate: Option<u32>) -> u32 {
    if rate.is_some() {
        return 1;
    }
    if connections <= MOST_CLIENTS {
        return connections;
    }
    let divides = |count: &u32| connections.is_multiple_of(*count);
    (LEAST_CLIENTS..=MOST_CLIENTS).rev().find(divides).unwrap_or(connections)
}

/// Returns a step of one kind of operation, which the step's figure counts. With `is_timed` the step
/// ends with its time. Otherwise it ends with its operations, which all count.
pub(crate) fn step_spec(
    (name, clients): (&str, u32),
    (unit, label): (Unit, &str),
    is_timed: bool,
    kind: KindSpec,
    options: Map<String, Value>,
) -> StepSpec {
    StepSpec {
        name: name.to_owned(),
        clients,
        headline: Headline { kind: kind.kind.clone(), unit, label: label.to_owned() },
        window: if is_timed { WindowRule::FirstEnded } else { WindowRule::LastEnded },
        kinds: vec![kind],
        options,
        ..StepSpec::default()
    }
}

/// Returns the statements in the text protocol over one connection per client. Each is sent when the
/// one before is answered. The caller sets how many statements an operation has, and with which rows.
pub(crate) fn kind_spec(kind: &str, class: OperationClass, statement: String) -> KindSpec {
    KindSpec {
        kind: kind.to_owned(),
        class,
        connections_per_client: 1,
        arrivals: Arrivals::Closed.to_string(),
        protocol: "text".to_owned(),
        rows_per_operation: 0,
        statements_per_operation: 0,
        user_bytes_per_operation: 0.0,
        statement,
    }
}

/// Returns the protocol of statements, by its name in records.
pub(crate) fn protocol(is_prepared: bool) -> String {
    if is_prepared { "prepared" } else { "text" }.to_owned()
}

/// Adds to the options of a step how long it is, its warm-up and its rate. A step with a number of
/// operations has no time.
pub(crate) fn add_run(
    map: &mut Map<String, Value>,
    (operations, time): (Option<u64>, Duration),
    warmup: Duration,
    rate: Option<u32>,
) {
    match operations {
        Some(operations) => map.insert("operations".to_owned(), json!(operations)),
        None => map.insert("time_seconds".to_owned(), json!(time.as_secs_f64())),
    };
    map.insert("warmup_seconds".to_owned(), json!(warmup.as_secs_f64()));
    map.extend(rate.map(|rate| ("rate_per_second".to_owned(), json!(rate))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draws_of_a_step_depend_on_its_name_and_the_seed() {
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968, "the authors' vector");
        assert_ne!(stream("a.c1", 1), stream("a.c2", 1));
        assert_ne!(stream("a.c1", 1), stream("a.c1", 2));
    }
}
