//! Lists of CPUs, as plans and the kernel write them.

use std::collections::BTreeSet;

use dbdyno_plan::CpuList;

/// The CPUs of a list such as `0-3,8`; `None` when it is not one.
pub(crate) fn cpu_list(list: &str) -> Option<BTreeSet<u32>> {
    Some(list.parse::<CpuList>().ok()?.0.into_iter().collect())
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
