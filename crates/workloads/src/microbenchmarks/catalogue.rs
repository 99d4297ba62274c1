//! Every microbenchmark with what it is for; one more test is one more entry in the file of its family.

use crate::microbenchmarks::options::{MicroStep, MicroTest, Microbenchmarks as Options};
use crate::oltp::options::Oltp;

use crate::cards::Words;
use crate::microbenchmarks::{points, ranges, transactions, writes};
use crate::oltp::mix::Place;

/// One test: what it sends and what a reader must know.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub test: MicroTest,
    /// What it is for, in a sentence.
    pub purpose: &'static str,
    /// What its parameters are.
    pub parameters: &'static str,
    /// What its name hides; empty when it hides nothing.
    pub trap: &'static str,
    /// The statements of one operation.
    pub(crate) places: fn(&Shape<'_>) -> Vec<Place>,
}

impl Entry {
    pub(crate) fn words(&self) -> Words {
        Words { purpose: self.purpose, parameters: self.parameters, trap: self.trap }
    }
}

/// What the statements of a step follow from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'a> {
    pub(crate) step: &'a MicroStep,
    pub(crate) options: &'a Options,
    /// The mix of a transaction, and the like.
    pub(crate) oltp: &'a Oltp,
    pub(crate) client_ids: bool,
}

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
