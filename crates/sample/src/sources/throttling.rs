//! Source `throttling`: how long a CPU quota kept the client or the server off the CPUs. It comes
//! from `cpu.stat` of their control groups and of all parents, in version 1 and 2.
//!
//! Each group that counts throttling has these keys. `group-0.throttled_us` is added up over CPUs,
//! and only when the throttling is over. `group-0.periods` are periods in which something of the
//! group ran. `group-0.throttled_periods` are the throttled ones among them. The header has the
//! groups in this order: their `name`, whether the `client`, the `server` or both are in them,
//! and the quota in CPUs.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Source, Values, about};
use crate::Error;
use crate::control_groups::{ControlGroup, control_groups};

pub(crate) struct Throttling {
    groups: Vec<ThrottledGroup>,
}

struct ThrottledGroup {
    group: ControlGroup,
    of_client: bool,
    of_server: bool,
    keys: [String; 3],
}

impl Throttling {
    /// Returns the groups of this process and of the server's. The result is `None` where no group
    /// counts throttling. The outermost group does not count it, and neither do groups whose CPUs
    /// are not controlled.
    pub(crate) fn of(server_pid: Option<u32>) -> Option<Self> {
        let root = Path::new("/");
        let client = control_groups(root, "self", "cpu");
        let server = server_pid.map_or_else(Vec::new, |pid| control_groups(root, &pid.to_string(), "cpu"));
        let only_servers = server.iter().filter(|group| !client.contains(group));
        let counting = client.iter().chain(only_servers).filter(|group| group.throttled().is_some());
        let group = |(number, group): (usize, &ControlGroup)| ThrottledGroup {
            group: group.clone(),
            of_client: client.contains(group),
            of_server: server.contains(group),
            keys: ["throttled_us", "periods", "throttled_periods"]
                .map(|counter| format!("group-{number}.{counter}")),
        };
        let groups: Vec<ThrottledGroup> = counting.enumerate().map(group).collect();
        (!groups.is_empty()).then_some(Self { groups })
    }
}

impl Source for Throttling {
    fn about(&self) -> Map<String, Value> {
        let group = |group: &ThrottledGroup| {
            json!({
                "name": group.group.name,
                "client": group.of_client,
                "server": group.of_server,
                "quota_cpus": group.group.quota_cpus(),
            })
        };
        about([("groups", self.groups.iter().map(group).collect())])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        for ThrottledGroup { group, keys: [us, periods, throttled_periods], .. } in &self.groups {
            let Some(found) = group.throttled() else { continue };
            values.set(us, found.us);
            values.set(periods, found.periods);
            values.set(throttled_periods, found.throttled_periods);
        }
        Ok(())
    }
}
