//! Reads lists of CPUs, such as `0-3,8`, as plans and the kernel write them.

use std::collections::BTreeSet;

/// Highest CPU number that is accepted. No host has more, so that a higher one is a typing error.
const GREATEST_CPU: u32 = 65_535;

/// The CPUs of a list such as `0-3,8`; `None` when it is not one.
pub(crate) fn cpu_list(list: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > GREATEST_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_read_and_nonsense_is_none() {
        assert_eq!(cpu_list("0-2,8"), Some(BTreeSet::from([0, 1, 2, 8])));
        assert_eq!(cpu_list("all"), None);
        assert_eq!(cpu_list("0-4000000000"), None);
    }
}
