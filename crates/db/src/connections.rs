//! What the connections of a run agreed on, by class: who connected, and how that was encrypted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Encryption {
    /// `TLSv1.3`
    pub version: String,
    /// The cipher suite by its registered name: `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
}

/// Connections of one class that agreed on the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionClass {
    /// The kind of a connection task (`insert`, `query`), or any other user of a connection (`conductor`).
    pub class: String,
    /// `None` = in clear.
    pub encryption: Option<Encryption>,
    pub connections: u32,
}

/// A book that every connection with TLS settings is entered into. Touched when a connection opens,
/// never afterwards.
#[derive(Debug, Default)]
pub struct ConnectionLog(Mutex<BTreeMap<(String, Option<Encryption>), u32>>);

impl ConnectionLog {
    pub fn note(&self, class: &str, encryption: Option<Encryption>) {
        let mut book = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *book.entry((class.to_owned(), encryption)).or_insert(0) += 1;
    }

    /// Takes everything out, sorted by class.
    pub fn take(&self) -> Vec<ConnectionClass> {
        let book = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let entry = |((class, encryption), connections)| ConnectionClass { class, encryption, connections };
        book.into_iter().map(entry).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_class_and_by_what_they_agreed_on() {
        let log = ConnectionLog::default();
        let agreed = Encryption { version: "TLSv1.3".to_owned(), cipher: "A".to_owned() };
        log.note("query", Some(agreed.clone()));
        log.note("insert", None);
        log.note("query", Some(agreed.clone()));
        let class = |class: &str, encryption, connections| ConnectionClass {
            class: class.to_owned(),
            encryption,
            connections,
        };
        assert_eq!(log.take(), [class("insert", None, 1), class("query", Some(agreed), 2)]);
        assert_eq!(log.take(), []);
    }
}
