//! What an entry of the catalogue is.

use crate::cards::Words;
use crate::microbenchmarks::options::{MicroStep, MicroTest, Microbenchmarks as Options};
use crate::oltp::mix::Place;
use crate::oltp::options::Oltp;

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
