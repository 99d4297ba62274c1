//! A run's connections. [`ConnectionLog`] counts them by class and by the encryption that they
//! agreed on. [`OpenConnections`] lists those on which a server may still be working, so that
//! dbdyno can cancel statements for which no one waits any longer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// The encryption that they agreed on; `None` for plaintext.
    pub encryption: Option<Encryption>,
    pub connections: u32,
}

/// Counts by class and encryption every connection that has TLS settings. The count changes only
/// when a connection opens.
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

/// What a server needs in order to cancel a connection's statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The server's number for the connection.
    pub(crate) id: u32,
    /// PostgreSQL's secret for the connection; 0 elsewhere.
    pub(crate) key: u32,
}

/// A variant's open connections, and those that were dropped while the server worked. The list
/// changes only when a connection opens or ends. Clones share it.
#[derive(Clone, Default)]
pub struct OpenConnections(Arc<Mutex<BTreeMap<u32, OpenEntry>>>);

#[derive(Debug, Clone, Copy)]
struct OpenEntry {
    ticket: Ticket,
    is_dropped: bool,
}

impl OpenConnections {
    pub(crate) fn enter(&self, ticket: Ticket) {
        self.with(|entries| entries.insert(ticket.id, OpenEntry { ticket, is_dropped: false }));
    }

    /// Removes a connection that has ended with no statement running.
    pub(crate) fn leave(&self, ticket: Ticket) {
        self.with(|entries| entries.remove(&ticket.id));
    }

    /// Notes that a connection was dropped before its answer came.
    pub(crate) fn mark_dropped(&self, ticket: Ticket) {
        self.with(|entries| entries.insert(ticket.id, OpenEntry { ticket, is_dropped: true }));
    }

    /// Takes out the dropped connections and, with `all`, the open ones too.
    pub(crate) fn take(&self, all: bool) -> Vec<Ticket> {
        self.with(|entries| {
            let (taken, kept) =
                std::mem::take(entries).into_iter().partition(|(_, entry)| all || entry.is_dropped);
            *entries = kept;
            let taken: BTreeMap<u32, OpenEntry> = taken;
            taken.into_values().map(|entry| entry.ticket).collect()
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<u32, OpenEntry>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for OpenConnections {
    /// Prints the numbers without the keys, which are secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.with(|entries| entries.keys().copied().collect::<Vec<u32>>());
        write!(formatter, "OpenConnections({ids:?})")
    }
}

impl PartialEq for OpenConnections {
    /// All lists count as equal, because where to connect does not depend on the open connections.
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for OpenConnections {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_class_and_encryption() {
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

    #[test]
    fn take_returns_dropped_connections_and_with_all_the_open_ones_too() {
        let open_connections = OpenConnections::default();
        let ticket = |id| Ticket { id, key: 70 + id };
        (1..=4).for_each(|id| open_connections.enter(ticket(id)));
        open_connections.leave(ticket(1));
        open_connections.mark_dropped(ticket(2));
        assert_eq!(format!("{open_connections:?}"), "OpenConnections([2, 3, 4])");
        assert_eq!(open_connections.take(false), [ticket(2)]);
        assert_eq!(open_connections.take(false), []);
        assert_eq!(open_connections.take(true), [ticket(3), ticket(4)]);
    }
}
