//! What a run's connections agreed on, by class: which connections, and how they were encrypted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Encryption {
    /// The TLS version: `TLSv1.3`.
    pub version: String,
    /// The cipher suite by its registered name: `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
}

/// Connections in one class that agreed on the same encryption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionClass {
    /// The connection task's kind (`insert`, `query`), or any other user of a connection
    /// (`conductor`).
    pub class: String,
    /// What they agreed on; `None` for plaintext.
    pub encryption: Option<Encryption>,
    pub connections: u32,
}

/// Counts every connection with TLS settings by class and encryption. It changes when a connection
/// opens, and never afterwards.
#[derive(Debug, Default)]
pub struct ConnectionLog(Mutex<BTreeMap<(String, Option<Encryption>), u32>>);

impl ConnectionLog {
    pub fn note(&self, class: &str, encryption: Option<Encryption>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((class.to_owned(), encryption)).or_insert(0) += 1;
    }

    /// Takes all entries out, sorted by class.
    pub fn take(&self) -> Vec<ConnectionClass> {
        let counts = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let entry = |((class, encryption), connections)| ConnectionClass { class, encryption, connections };
        counts.into_iter().map(entry).collect()
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
