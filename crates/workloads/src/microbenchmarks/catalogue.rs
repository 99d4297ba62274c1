//! Every microbenchmark with what it is for; one more test is one more entry in the file of its family.

use crate::microbenchmarks::entry::Entry;
use crate::microbenchmarks::options::MicroTest;
use crate::microbenchmarks::{points, ranges, transactions, writes};

/// Every test by family: points, ranges, transactions that read, writes.
pub const ALL: &[&[Entry]] = &[points::ENTRIES, ranges::ENTRIES, transactions::ENTRIES, writes::ENTRIES];

/// The entry of `test`.
pub fn entry(test: MicroTest) -> &'static Entry {
    ALL.iter()
        .flat_map(|family| family.iter())
        .find(|entry| entry.test == test)
        .expect("a test of this file holds that every test has an entry")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_has_one_entry() {
        let listed: Vec<MicroTest> =
            ALL.iter().flat_map(|family| family.iter()).map(|entry| entry.test).collect();
        assert_eq!(listed.len(), MicroTest::ALL.len());
        for test in MicroTest::ALL {
            assert!(listed.contains(&test), "{test:?}");
            assert!(!entry(test).purpose.is_empty() && !entry(test).parameters.is_empty());
        }
    }
}
