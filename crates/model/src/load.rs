//! The table `[load]`: how fast connections are opened, how the load client waits for answers, and
//! what happens when a connection is lost.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PlanDuration, named, with_defaults};

with_defaults! {
    /// Connections of every step.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Load {
        /// What happens when a connection is lost in a step: `"fail"` ends the step, `"reconnect"`
        /// opens it again and counts.
        pub lost_connections: LostConnections = LostConnections::Fail,
        /// Pause before a lost connection is opened again; each further one is twice as long. Up to
        /// half of it is taken off by chance.
        pub reconnect_wait: PlanDuration = PlanDuration(Duration::from_millis(100)),
        /// No pause is longer than this.
        pub reconnect_wait_max: PlanDuration = PlanDuration::from_secs(5),
        /// The step fails when a lost connection is not open again after this time.
        pub reconnect_for: PlanDuration = PlanDuration::from_secs(60),
        /// Logins per second before a step; as fast as possible when left out.
        #[schemars(range(min = 0.1, max = 1000000.0))]
        pub connect_rate_per_second: Option<f64> = None,
        /// Longest time for a connection to log in, and in a step to prepare its statements too.
        pub login_timeout: PlanDuration = PlanDuration::from_secs(30),
        /// A step that has no `time_cap` fails when none of its connections has had an answer for
        /// this long: loads, index builds, single queries. Longer than the longest statement.
        pub silence_timeout: PlanDuration = PlanDuration::from_secs(12 * 3600),
    }
}

/// What happens when a connection is lost in a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LostConnections {
    #[default]
    Fail,
    Reconnect,
}

/// Returns the first option that is out of its range: its key inside `[load]`, and the correction
/// to make.
pub fn load_problem(load: &Load) -> Option<(&'static str, String)> {
    /// Without a pause, reconnection attempts would keep busy both the client's CPUs and the
    /// server's accepting of connections.
    const MIN_WAIT: Duration = Duration::from_millis(1);
    if load.reconnect_wait.0 < MIN_WAIT {
        return Some(("reconnect_wait", "reconnect_wait must be at least 1ms".to_owned()));
    }
    for (key, time) in [("login_timeout", load.login_timeout), ("silence_timeout", load.silence_timeout)] {
        if time.0 < Duration::from_secs(1) {
            return Some((key, format!("{key} must be at least 1s")));
        }
    }
    if load.reconnect_wait_max.0 < load.reconnect_wait.0 {
        let message = format!("reconnect_wait_max must be at least reconnect_wait ({})", load.reconnect_wait);
        return Some(("reconnect_wait_max", message));
    }
    if load.reconnect_for.0 < load.reconnect_wait.0 {
        let message = format!("reconnect_for must be at least reconnect_wait ({})", load.reconnect_wait);
        return Some(("reconnect_for", message));
    }
    let rate = load.connect_rate_per_second?;
    let message = "connect_rate_per_second must be a number from 0.1 to 1000000";
    (!(0.1..=1e6).contains(&rate)).then(|| ("connect_rate_per_second", message.to_owned()))
}

named! {
    /// How load threads wait for answers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum ClientWait {
        /// They sleep until an answer wakes them, which costs the server CPU time.
        Sleep = "sleep",
        /// They poll for answers without a pause.
        Spin = "spin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(load: &str) -> String {
        let load: Load = toml::from_str(load).unwrap_or_else(|error| panic!("{error}"));
        load_problem(&load).map_or_else(|| "fine".to_owned(), |(key, message)| format!("{key}: {message}"))
    }

    #[test]
    fn an_option_out_of_range_is_named_with_its_range() {
        let all = [
            "",
            "lost_connections = \"reconnect\"\nreconnect_wait = \"50ms\"",
            "reconnect_wait = \"0s\"",
            "reconnect_wait_max = \"10ms\"",
            "reconnect_for = \"10ms\"",
            "connect_rate_per_second = 500",
            "connect_rate_per_second = 0",
            "connect_rate_per_second = nan",
            "login_timeout = \"10ms\"",
            "silence_timeout = \"0s\"",
        ];
        insta::assert_snapshot!(all.map(problem).join("\n"), @r"
        fine
        fine
        reconnect_wait: reconnect_wait must be at least 1ms
        reconnect_wait_max: reconnect_wait_max must be at least reconnect_wait (100ms)
        reconnect_for: reconnect_for must be at least reconnect_wait (100ms)
        fine
        connect_rate_per_second: connect_rate_per_second must be a number from 0.1 to 1000000
        connect_rate_per_second: connect_rate_per_second must be a number from 0.1 to 1000000
        login_timeout: login_timeout must be at least 1s
        silence_timeout: silence_timeout must be at least 1s
        ");
    }
}
