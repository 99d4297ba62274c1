//! Which part of a step's connections one of several client hosts runs, and which numbers of a shared
//! schedule it takes.

use serde::{Deserialize, Serialize};

/// The connections whose number modulo `hosts` is `host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostShare {
    /// Number of the host, from 0.
    pub host: u32,
    pub hosts: u32,
}

impl HostShare {
    /// Everything, on one host.
    pub const WHOLE: Self = Self { host: 0, hosts: 1 };

    /// Turns the host's own number `number` into its number among those of all hosts.
    pub(crate) fn of_all(self, number: u64) -> u64 {
        number.saturating_mul(u64::from(self.hosts)).saturating_add(u64::from(self.host))
    }

    /// Returns how many of the first `count` numbers of all hosts belong to this host.
    pub(crate) fn among(self, count: u64) -> u64 {
        count.saturating_sub(u64::from(self.host)).div_ceil(u64::from(self.hosts))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn parts_are_all_there_is_and_nothing_twice() {
        for hosts in 1..=5 {
            let parts = (0..hosts).map(|host| HostShare { host, hosts });
            for count in 0..23 {
                assert_eq!(parts.clone().map(|part| part.among(count)).sum::<u64>(), count);
                let numbers = parts.clone().flat_map(|part| {
                    (0..part.among(count)).map(move |number| part.of_all(number)).collect::<Vec<_>>()
                });
                assert_eq!(numbers.collect::<BTreeSet<_>>(), (0..count).collect());
            }
        }
    }
}
