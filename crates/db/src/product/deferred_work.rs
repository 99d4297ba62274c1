//! Work that a server has deferred: what it still has to write, purge, merge, compact or vacuum.

use std::collections::BTreeMap;

use super::{LimitedSession, Product};
use crate::{Capabilities, Class, Result};

/// Lowest limit for pages and log. Any idle server has this much, and a share of a small pool or
/// log would fall below it.
const LEAST_BOUND_BYTES: f64 = 1_048_576.0;
/// Lowest limit for dead rows and change buffer pages, for the same reason.
pub(crate) const LEAST_BOUND_COUNT: i64 = 1_000;

/// The work that a server had deferred at one moment.
///
/// The table lists each product's levels. A level is absent, not zero, where a version or the
/// session's rights do not report it.
///
/// | level | engine | meaning |
/// |---|---|---|
/// | `dirty_bytes` | InnoDB | changed pages in the buffer pool that are not yet in the files |
/// | `checkpoint_age_bytes` | InnoDB | redo that a restart would apply: log position minus last checkpoint |
/// | `history_list_length` | InnoDB | transactions whose old rows are not yet purged |
/// | `change_buffer_pages` | InnoDB | pages with index changes that are not yet merged |
/// | `memtable_bytes` | MyRocks | rows that are in no file but the log |
/// | `flushes_pending`, `compactions_pending`, `compactions_running` | MyRocks | work on its files |
/// | `dead_rows` | PostgreSQL | deleted row versions that lie in the tables, as the server estimates |
/// | `wal_since_checkpoint_bytes` | PostgreSQL | log that a restart would apply |
/// | `vacuums_running`, `autovacuum_workers`, `checkpoints_running` | PostgreSQL | work in progress |
/// | `wal_bytes` | SQLite | log pages that are not yet in the database file |
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeferredWork {
    pub levels: BTreeMap<String, i64>,
    /// The totals that levels are shares of: `buffer_pool_bytes`, `redo_capacity_bytes`
    /// (PostgreSQL: `max_wal_size`), `live_rows`, `autocheckpoint_bytes`. In addition,
    /// `merges_by_itself` is 1 where the change buffer is merged in the background.
    pub capacities: BTreeMap<String, i64>,
}

impl DeferredWork {
    pub(crate) fn level(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.levels.insert(name.to_owned(), value.max(0));
        }
    }

    pub(crate) fn capacity(&mut self, name: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.capacities.insert(name.to_owned(), value);
        }
    }

    /// A limit in bytes: a share of the capacity `of`.
    pub(crate) fn share_bytes(&self, share: f64, of: &str) -> Option<i64> {
        let whole = *self.capacities.get(of)? as f64;
        Some((share * whole).max(LEAST_BOUND_BYTES).min(i64::MAX as f64) as i64)
    }
}

/// Reads the server's deferred work. For a server that is not the product it is empty, because that
/// server's levels would mean something else.
pub(crate) async fn owed<P: Product>(
    session: &mut LimitedSession<'_, P>,
    capabilities: &Capabilities,
) -> Result<DeferredWork> {
    match capabilities.counts_as_the_product() {
        true => P::deferred_work(session, capabilities).await,
        false => Ok(DeferredWork::default()),
    }
}

/// Turns a refused query into `None`: the session lacks the rights, or the table does not exist.
pub(crate) fn permitted<T>(answer: Result<T>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.class == Class::Lost => Err(error),
        Err(_) => Ok(None),
    }
}
