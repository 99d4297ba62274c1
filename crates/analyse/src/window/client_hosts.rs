//! CPU time of the client hosts, for steps with several hosts. Each host has measured its own.

use dbdyno_record::{ClientHost, StepEvent};

/// The client hosts of a step, where it has several.
pub(crate) fn all(events: &[StepEvent]) -> impl Iterator<Item = &ClientHost> {
    events.iter().filter_map(|event| match event {
        StepEvent::ClientHost(host) => Some(host),
        _ => None,
    })
}

/// CPU of all client hosts per second, in microseconds; `None` where this host was the client.
pub(crate) fn cpu_us_per_second(events: &[StepEvent]) -> Option<f64> {
    let all: Option<Vec<f64>> = all(events).map(per_second).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

/// CPU per second, in microseconds, of those client hosts that are this machine.
pub(crate) fn here_cpu_us_per_second(events: &[StepEvent]) -> f64 {
    all(events).filter(|host| host.is_here).filter_map(per_second).sum()
}

fn per_second(host: &ClientHost) -> Option<f64> {
    (host.measured_us > 0).then(|| host.cpu_us as f64 * 1e6 / host.measured_us as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::client_host;

    #[test]
    fn cpu_of_client_hosts_is_summed_where_each_was_measured() {
        let host = |measured_us| StepEvent::ClientHost(ClientHost { measured_us, ..client_host() });
        assert_eq!(cpu_us_per_second(&[host(2_000_000), host(2_000_000)]), Some(1e6));
        assert_eq!(cpu_us_per_second(&[host(2_000_000), host(0)]), None);
        assert_eq!(cpu_us_per_second(&[]), None);
        let here = StepEvent::ClientHost(ClientHost { is_here: true, ..client_host() });
        assert_eq!(here_cpu_us_per_second(&[host(2_000_000), here]), 500_000.0);
    }
}
