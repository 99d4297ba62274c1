//! What lists say of a workload: each of its steps as a card.

use std::collections::BTreeMap;

use serde::Serialize;

/// The steps of a workload in their order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cards {
    pub workload: &'static str,
    /// `sequence 42`; empty where there is one order only.
    pub title: &'static str,
    pub steps: Vec<Card>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Card {
    pub step: String,
    /// Its name in published tables, where that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_as: Option<String>,
    /// What it is for, in a sentence.
    pub purpose: String,
    /// One for each kind of connection that it has.
    pub operations: Vec<CardOperation>,
    /// What the parameters of its statements are.
    pub parameters: String,
    /// What its rate counts: `queries/s`.
    pub rate: String,
    /// What its name hides; empty when it hides nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub trap: String,
    /// The groups over which published reports sum steps up.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, String>,
}

/// What one kind of connection sends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CardOperation {
    pub kind: String,
    /// `prepared` or `text`
    pub protocol: String,
    /// The statements of one operation in their order, `?` for parameters, long lists cut short.
    pub statements: Vec<String>,
}
