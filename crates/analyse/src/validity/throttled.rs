//! Checks whether a CPU quota (`cpu.max`, `cfs_quota_us`, a container's limit) kept the client or
//! the server off the CPUs. What was measured is then the quota.
//!
//! For each control group, the kernel counts how long it was throttled, added up over CPUs, and in
//! how many periods of the quota. The share of the time cannot be higher than the share of the
//! periods, so the lower of the two is taken.

use dbdyno_record::{CellRecord, ClientHost, StepRecord, Throttled};
use serde_json::Value;

use crate::model::{Code, Severity, Warning};
use crate::window::Span;
use crate::window::counters::change;
use crate::window::cpu::client_hosts;

/// Largest accepted share of the common window for which a group is throttled. It is the usual
/// margin: a step that was held up for longer may differ from another by the margin through its
/// quota alone.
const LIMIT: f64 = 0.02;
/// Share from which throttling is reported.
const REPORTED: f64 = 0.005;

/// A control group, given by its header and counters.
struct ControlGroup<'a> {
    about: &'a Value,
    /// Share of the window for which it was throttled.
    share: f64,
}

impl ControlGroup<'_> {
    fn is_of(&self, side: &str) -> bool {
        self.about[side].as_bool().unwrap_or(false)
    }

    fn warning(&self, code: Code) -> Warning {
        let who = match (self.is_of("client"), self.is_of("server")) {
            (true, true) => "client and server",
            (true, false) => "the client",
            _ => "the server",
        };
        let group = self.about["name"].as_str().unwrap_or("/");
        let warning = Warning::new(code).with("who", who).with("group", group).with("share", self.share);
        warning.with("limit", LIMIT).with_some("quota_cpus", self.about["quota_cpus"].as_f64())
    }
}

/// Returns the step's groups. The one that was throttled most comes first.
fn groups(step: &StepRecord) -> Vec<ControlGroup<'_>> {
    let window = step.window().map(|(from_us, to_us)| Span::new(from_us, to_us));
    let (Some(window), Some(series)) = (window, step.counters.get("throttling")) else { return Vec::new() };
    let all = series.header.about.get("groups").and_then(Value::as_array);
    let group = |(number, about)| {
        let counter =
            |name: &str| change(&step.counters, "throttling", &[&format!("group-{number}.{name}")], window);
        let of_time = counter("throttled_us")?.per_second() / 1e6;
        let of_periods = [counter("throttled_periods")?.value, counter("periods")?.value];
        Some(ControlGroup { about, share: share(of_time, of_periods) })
    };
    let mut found: Vec<ControlGroup<'_>> = all.into_iter().flatten().enumerate().filter_map(group).collect();
    found.sort_by(|one, other| other.share.total_cmp(&one.share));
    found
}

/// Returns the lower of two shares: the share by time, and throttled periods ÷ all periods.
fn share(of_time: f64, [throttled, periods]: [f64; 2]) -> f64 {
    if periods > 0.0 { of_time.min(throttled / periods) } else { of_time.min(1.0) }
}

/// Returns why the step must not be used, for its group that was throttled most and for each client
/// host.
pub(crate) fn faults(step: &StepRecord) -> Vec<Warning> {
    let worst = groups(step).into_iter().next().filter(|worst| worst.share > LIMIT);
    let reason = |warning: Warning| Warning { severity: Severity::Invalid, ..warning };
    let own = worst.map(|worst| reason(worst.warning(Code::Throttled)));
    let of_host = |host: &ClientHost| {
        let warning = Warning::reason(Code::ClientHostThrottled).at(&host.host);
        warning.with("share", host_share(host)).with("limit", LIMIT)
    };
    let hosts = client_hosts(&step.events).filter(|host| is_host(host));
    own.into_iter().chain(hosts.map(of_host)).collect()
}

/// Returns a warning for less throttling that is still enough to be reported.
pub(crate) fn warning(cell: &CellRecord, step: &StepRecord) -> Option<Warning> {
    let worst = groups(step).into_iter().next()?;
    let place = format!("block {} {} {}", cell.id.block, cell.id.variant, step.name);
    (worst.share > REPORTED && worst.share <= LIMIT).then(|| worst.warning(Code::ThrottledLittle).at(place))
}

/// Returns whether the client was throttled so much that the step is invalid. If so, it did not
/// wait for another program.
pub(crate) fn is_client(step: &StepRecord) -> bool {
    groups(step).iter().any(|group| group.share > LIMIT && group.is_of("client"))
}

/// Returns whether one of several client hosts was throttled so much.
pub(crate) fn is_host(host: &ClientHost) -> bool {
    host_share(host) > LIMIT
}

fn host_share(host: &ClientHost) -> f64 {
    let Throttled { us, periods, throttled_periods } = host.throttled;
    share(us as f64 / host.measured_us.max(1) as f64, [throttled_periods as f64, periods as f64])
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{CounterHeader, CounterLine, CounterSeries, StepEvent};
    use serde_json::{Map, json};

    use super::*;
    use crate::fixtures::{cell, client_host, load_step, shown, shown_all};

    /// Makes a step of 2 s with two groups. Each has its throttled time, periods and throttled
    /// periods.
    fn step(inner: [i64; 3], outer: [i64; 3]) -> StepRecord {
        let groups = json!([
            {"name": "/bench/in", "client": true, "server": false, "quota_cpus": null},
            {"name": "/bench", "client": true, "server": true, "quota_cpus": 0.2},
        ]);
        let header = CounterHeader {
            source: "throttling".to_owned(),
            about: Map::from_iter([("groups".to_owned(), groups)]),
        };
        let names = ["throttled_us", "periods", "throttled_periods"];
        let keys = [0, 1].map(|group| names.map(|name| format!("group-{group}.{name}")));
        let line = |at_us, values: [[i64; 3]; 2]| CounterLine {
            at_us,
            values: keys.iter().flatten().cloned().zip(values.into_iter().flatten()).collect(),
        };
        let before = [[7, 3, 1]; 2];
        let add = |more: [i64; 3]| [0, 1, 2].map(|at| before[0][at] + more[at]);
        let lines = [line(0, before), line(2_000_000, [add(inner), add(outer)])];
        let mut step = load_step(1_000);
        step.counters.insert("throttling".to_owned(), CounterSeries::new(header, &lines));
        step
    }

    #[test]
    fn a_step_under_a_quota_is_invalid_and_names_the_group_and_what_it_allows() {
        let step = step([0, 20, 0], [1_600_000, 20, 20]);
        insta::assert_snapshot!(shown_all(&faults(&step)), @"throttled group: /bench, limit: 0.02, quota_cpus: 0.2, share: 0.8, who: client and server");
        assert!(is_client(&step));
    }

    #[test]
    fn throttling_is_reported_from_half_a_percent_on_and_a_fault_from_two_percent_on() {
        let of = |us| step([0, 20, 0], [us, 20, 20]);
        let found = |step: &StepRecord| {
            (warning(&cell(1, "a", Vec::new()), step).map(|warning| shown(&warning)), faults(step).len())
        };
        assert_eq!(found(&of(9_000)), (None, 0));
        let (reported, faults) = found(&of(30_000));
        insta::assert_snapshot!(reported.unwrap(), @"throttled-little [block 1 a l.i0] group: /bench, limit: 0.02, quota_cpus: 0.2, share: 0.015, who: client and server");
        assert_eq!((faults, is_client(&of(30_000))), (0, false));
        assert_eq!(found(&of(50_000)), (None, 1));
    }

    #[test]
    fn time_that_is_added_up_over_many_cpus_counts_no_more_than_its_periods() {
        // 64 CPUs were throttled for 5 ms at the end of one period, out of 20.
        let found = faults(&step([0, 20, 0], [320_000, 20, 1]));
        assert_eq!(found[0].figures["share"], 0.05.into());
        assert!(faults(&step([0, 20, 0], [320_000, 200, 1])).is_empty());
    }

    #[test]
    fn a_client_host_under_a_quota_makes_the_step_invalid() {
        let mut step = load_step(1_000);
        let throttled = Throttled { us: 400_000, periods: 20, throttled_periods: 3 };
        step.events.push(StepEvent::ClientHost(ClientHost { throttled, ..client_host() }));
        insta::assert_snapshot!(shown_all(&faults(&step)), @"client-host-throttled [c1] limit: 0.02, share: 0.15");
    }
}
