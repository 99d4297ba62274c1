//! How close a step came to the client's highest rate, which was calibrated against a server that
//! only answers.

use dbdyno_record::{ClientCalibration, ClientRate, LimitedBy};

use crate::model::runs::valid_runs;
use crate::model::{ClientHeadroom, Code, KindResult, Warning, WorkloadFindings};

/// Share of the client's calibrated rate from which on a step is said to be limited by the client.
const LIMIT: f64 = 0.90;
/// Above this share the client has done more than the calibration says it can. The calibration is
/// wrong then, not the step. A client without time left is found by its load threads.
const PROVED_WRONG: f64 = 1.0;

/// A step's statements per second compared with what the client can reach with as many connections;
/// `None` where nothing was calibrated for the driver.
pub(crate) fn client_headroom(
    calibration: &ClientCalibration,
    driver: &str,
    kinds: &[KindResult],
) -> Option<ClientHeadroom> {
    let connections = kinds.iter().map(|kind| kind.connections).sum();
    let could = best_around(&calibration.rates, driver, connections)?;
    Some(ClientHeadroom {
        statements_per_second: kinds.iter().map(|kind| kind.statements_per_second).sum(),
        connections,
        could_per_second: could.statements_per_second,
        could_connections: could.connections,
        at_least: could.limit != LimitedBy::Client,
    })
}

/// The higher of the rates at the nearest calibrated numbers of connections: the one not above and
/// the one not below. The lower number alone would condemn valid steps, because eight connections
/// reach several times what one does.
fn best_around<'a>(rates: &'a [ClientRate], driver: &str, connections: u32) -> Option<&'a ClientRate> {
    let of_driver = || rates.iter().filter(|rate| rate.driver == driver);
    let below =
        of_driver().filter(|rate| rate.connections <= connections).max_by_key(|rate| rate.connections);
    let above =
        of_driver().filter(|rate| rate.connections >= connections).min_by_key(|rate| rate.connections);
    let both = below.into_iter().chain(above);
    both.max_by(|a, b| a.statements_per_second.total_cmp(&b.statements_per_second))
}

/// Why the step says more about the client than about the server. `None` when it does not, where
/// the client could do more than what was calibrated, and where it did.
pub(crate) fn fault(client_headroom: &ClientHeadroom) -> Option<Warning> {
    let share = client_headroom.share();
    let fault = || with_rates(Warning::reason(Code::ClientAtItsRate), client_headroom).with("limit", LIMIT);
    (!client_headroom.at_least && (LIMIT..=PROVED_WRONG).contains(&share)).then(fault)
}

fn with_rates(warning: Warning, client_headroom: &ClientHeadroom) -> Warning {
    warning
        .with("rate", client_headroom.statements_per_second)
        .with("connections", client_headroom.connections)
        .with("share", client_headroom.share())
        .with("could", client_headroom.could_per_second)
        .with("could_connections", client_headroom.could_connections)
}

/// A warning that the calibration is below what steps have reached. Where the client was not the
/// limit of the calibration, a step with more connections that reaches more proves nothing.
pub(crate) fn warning(workloads: &[WorkloadFindings]) -> Option<Warning> {
    let is_wrong = |client_headroom: &ClientHeadroom| {
        let is_bound =
            !client_headroom.at_least || client_headroom.connections <= client_headroom.could_connections;
        is_bound && client_headroom.share() > PROVED_WRONG
    };
    let runs = valid_runs(workloads);
    let wrong: Vec<_> =
        runs.filter_map(|found| Some((found.run.client_headroom.filter(is_wrong)?, found))).collect();
    let (client_headroom, worst) =
        wrong.iter().max_by(|one, other| one.0.share().total_cmp(&other.0.share()))?;
    let warning = Warning::new(Code::CalibrationWrong).at(worst.place()).with("runs", wrong.len());
    Some(with_rates(warning, client_headroom))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn calibration() -> ClientCalibration {
        let mut all = fixtures::calibration(1, 40_000.0);
        let first = all.rates[0].clone();
        let rate = |connections, statements_per_second, limit| ClientRate {
            connections,
            statements_per_second,
            limit,
            ..first.clone()
        };
        all.rates[0].limit = LimitedBy::RoundTrip;
        all.rates.push(rate(16, 200_000.0, LimitedBy::Client));
        all.rates.push(rate(64, 180_000.0, LimitedBy::Server));
        all
    }

    fn of(driver: &str, parts: &[(u32, f64)]) -> Option<ClientHeadroom> {
        let kind = |&(connections, statements_per_second): &(u32, f64)| KindResult {
            connections,
            statements_per_second,
            ..KindResult::default()
        };
        client_headroom(&calibration(), driver, &parts.iter().map(kind).collect::<Vec<_>>())
    }

    fn could(connections: u32) -> (u32, f64) {
        let client_headroom = of("mysql", &[(connections, 1.0)]).unwrap();
        (client_headroom.could_connections, client_headroom.could_per_second)
    }

    #[test]
    fn between_two_calibrated_numbers_of_connections_the_better_one_counts() {
        assert_eq!(could(1), (1, 40_000.0));
        assert_eq!((could(2), could(15), could(16)), ((16, 200_000.0), (16, 200_000.0), (16, 200_000.0)));
        assert_eq!((could(17), could(64), could(5_000)), ((16, 200_000.0), (64, 180_000.0), (64, 180_000.0)));
        assert!(of("postgres", &[(1, 1.0)]).is_none());
    }

    #[test]
    fn a_step_near_what_the_client_can_reach_is_its_fault_with_both_numbers() {
        let client_headroom = of("mysql", &[(10, 150_000.0), (6, 31_000.0)]).unwrap();
        insta::assert_snapshot!(fixtures::shown(&fault(&client_headroom).unwrap()), @"client-at-its-rate connections: 16, could: 200000.0, could_connections: 16, limit: 0.9, rate: 181000.0, share: 0.905");
        assert_eq!(fault(&of("mysql", &[(16, 179_000.0)]).unwrap()), None);
    }

    #[test]
    fn where_the_client_was_not_the_limit_it_can_do_more() {
        // The answering server had no time left, or both waited for each other.
        for (connections, statements_per_second) in [(64, 179_000.0), (1, 39_000.0), (1, 92_000.0)] {
            let client_headroom = of("mysql", &[(connections, statements_per_second)]).unwrap();
            assert!(client_headroom.at_least);
            assert_eq!(fault(&client_headroom), None);
        }
    }

    #[test]
    fn a_calibration_is_no_bound_where_it_was_passed() {
        assert!(fault(&of("mysql", &[(16, 200_000.0)]).unwrap()).is_some());
        assert_eq!(fault(&of("mysql", &[(16, 201_000.0)]).unwrap()), None);
    }

    #[test]
    fn a_calibration_that_steps_have_passed_is_reported_with_the_worst_of_them() {
        let reported = |at: u32, limit| {
            let mut run =
                fixtures::run(&["a"], 1, vec![fixtures::cell(1, "a", vec![fixtures::query_step(230, 50)])]);
            let mut calibration = fixtures::calibration(at, 100.0);
            calibration.rates[0].limit = limit;
            run.manifest.client_calibration = Some(calibration);
            let mut warnings = fixtures::texts(&crate::analyse(&run)).into_iter();
            warnings.find(|text| text.contains("calibration"))
        };
        // 230 queries, 1 insert and no delete per second, over one connection of each.
        insta::assert_snapshot!(reported(3, LimitedBy::RoundTrip).unwrap(), @"calibration-wrong [block 1 a qr100] connections: 3, could: 100.0, could_connections: 3, rate: 231.0, runs: 1, share: 2.31");
        assert!(reported(1, LimitedBy::Client).is_some());
        assert_eq!(
            reported(1, LimitedBy::RoundTrip),
            None,
            "three connections client_headroom more than one"
        );
    }
}
