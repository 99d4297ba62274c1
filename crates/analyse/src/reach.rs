//! How near a step came to what the client could reach when it was calibrated against a server that only answers.

use dbdyno_record::{ClientCalibration, ClientRate, LimitedBy};

use crate::{ClientReach, KindResult};

/// Share of the client's calibrated rate from which a step is called the client's own.
const LIMIT: f64 = 0.90;

/// Statements a second of a step beside what the client could reach with as many connections; `None` where nothing was
/// calibrated for the driver.
pub(crate) fn reach(
    calibration: &ClientCalibration,
    driver: &str,
    kinds: &[KindResult],
) -> Option<ClientReach> {
    let connections = kinds.iter().map(|kind| kind.connections).sum();
    let could = best_around(&calibration.rates, driver, connections)?;
    Some(ClientReach {
        statements_per_second: kinds.iter().map(|kind| kind.statements_per_second).sum(),
        connections,
        could_per_second: could.statements_per_second,
        could_connections: could.connections,
        at_least: matches!(could.limit, LimitedBy::Server | LimitedBy::Unknown),
    })
}

/// The greater of the rates at the nearest calibrated numbers of connections not above and not below. Taking the lower
/// one alone would condemn sound steps: eight connections reach several times what one does.
fn best_around<'a>(rates: &'a [ClientRate], driver: &str, connections: u32) -> Option<&'a ClientRate> {
    let of_driver = || rates.iter().filter(|rate| rate.driver == driver);
    let below =
        of_driver().filter(|rate| rate.connections <= connections).max_by_key(|rate| rate.connections);
    let above =
        of_driver().filter(|rate| rate.connections >= connections).min_by_key(|rate| rate.connections);
    let both = below.into_iter().chain(above);
    both.max_by(|a, b| a.statements_per_second.total_cmp(&b.statements_per_second))
}

/// Why the step says more about the client than about the server; `None` when it does not, and where the client could do
/// more than what was calibrated.
pub(crate) fn fault(reach: &ClientReach) -> Option<String> {
    let share = reach.statements_per_second / reach.could_per_second;
    (!reach.at_least && share >= LIMIT).then(|| {
        format!(
            "the client was the limit: {:.0} statements/s with {} connections are {:.0} % of the {:.0}/s that it can reach \
             here with {} (dbdyno doctor --client; at most {:.0} % are allowed); give the client more CPUs \
             (host.client_cpus) or threads (host.client_threads), or the server fewer",
            reach.statements_per_second,
            reach.connections,
            100.0 * share,
            reach.could_per_second,
            reach.could_connections,
            100.0 * LIMIT,
        )
    })
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

    fn of(driver: &str, parts: &[(u32, f64)]) -> Option<ClientReach> {
        let kind = |&(connections, statements_per_second): &(u32, f64)| KindResult {
            connections,
            statements_per_second,
            ..KindResult::default()
        };
        reach(&calibration(), driver, &parts.iter().map(kind).collect::<Vec<_>>())
    }

    fn could(connections: u32) -> (u32, f64) {
        let reach = of("mysql", &[(connections, 1.0)]).unwrap();
        (reach.could_connections, reach.could_per_second)
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
        let reach = of("mysql", &[(10, 150_000.0), (6, 31_000.0)]).unwrap();
        insta::assert_snapshot!(fault(&reach).unwrap(), @"the client was the limit: 181000 statements/s with 16 connections are 90 % of the 200000/s that it can reach here with 16 (dbdyno doctor --client; at most 90 % are allowed); give the client more CPUs (host.client_cpus) or threads (host.client_threads), or the server fewer");
        assert_eq!(fault(&of("mysql", &[(16, 179_000.0)]).unwrap()), None);
    }

    #[test]
    fn where_the_answering_server_was_the_limit_the_client_can_do_more() {
        let reach = of("mysql", &[(64, 179_000.0)]).unwrap();
        assert!(reach.at_least);
        assert_eq!(fault(&reach), None);
    }
}
