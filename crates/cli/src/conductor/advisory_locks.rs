//! Takes the locks of a run. It makes the run known on this host, so that other runs see it. It
//! takes advisory locks on databases at addresses, so that no other run makes and drops tables in
//! them.

use std::time::Duration;

use dbdyno_db::{AdvisoryLock, DatabaseServer, DbError, LockAttempt};
use dbdyno_plan::Plan;
use tokio::runtime::Runtime;

use crate::exit::ExitError;
use crate::other_runs::OtherRuns;
use crate::prepare::{Prepared, Source};

/// Time that it waits for a lock, because the other run may be just about to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The locks of a run. They end with its connections, however it ends.
#[derive(Debug, Default)]
pub(crate) struct AdvisoryLocks {
    kept: Vec<LockedDatabase>,
    pub(crate) others: OtherRuns,
    /// Other runs on this host, and databases that could not be locked, with the reason.
    pub(crate) doubts: Vec<String>,
}

/// One locked database of one or several variants.
#[derive(Debug)]
struct LockedDatabase {
    database_server: DatabaseServer,
    variants: Vec<String>,
    advisory_lock: AdvisoryLock,
}

impl AdvisoryLocks {
    /// Locks the databases of all variants that have an address, and makes the run known on this
    /// host.
    pub(crate) fn take(
        plan: &Plan,
        variants: &[Prepared],
        alone: bool,
        runtime: &Runtime,
    ) -> Result<Self, ExitError> {
        let (others, doubt) = OtherRuns::enter(&plan.name, alone)?;
        let mut advisory_locks = Self { kept: Vec::new(), others, doubts: Vec::from_iter(doubt) };
        for variant in variants {
            let Some(database_server) = database_server(variant) else { continue };
            let name = &variant.info.name;
            let refuse = |why: String| ExitError::server(format!("variant {name}: {why}"));
            let attempt = runtime
                .block_on(advisory_locks.asked(&database_server))
                .map_err(|error| refuse(error.to_string()))?;
            match attempt {
                LockAttempt::Taken(advisory_lock) => {
                    advisory_locks.kept.push(LockedDatabase {
                        database_server,
                        variants: vec![name.clone()],
                        advisory_lock: *advisory_lock,
                    });
                }
                LockAttempt::By(owner) => {
                    match advisory_locks.kept.iter_mut().find(|kept| kept.advisory_lock.owner().is(&owner)) {
                        Some(kept) => kept.variants.push(name.clone()),
                        None => {
                            let advice = "wait until that has ended, or name another database; if there is none any more, end that connection";
                            return Err(refuse(format!(
                                "{}; {advice}",
                                in_use(&database_server, &owner.to_string())
                            )));
                        }
                    }
                }
                LockAttempt::Impossible(Some(why)) => advisory_locks.doubts.push(format!(
                    "variant {name}: {} could not be locked, so another run of dbdyno may use it \
                     at the same time: {why}",
                    of(&database_server)
                )),
                LockAttempt::Impossible(None) => {}
            }
        }
        Ok(advisory_locks)
    }

    /// Requests the lock on the database. It waits for it unless another variant of this run has
    /// it.
    async fn asked(&self, database_server: &DatabaseServer) -> Result<LockAttempt, DbError> {
        match database_server.take_advisory_lock(Duration::ZERO).await? {
            LockAttempt::By(owner) if !self.kept.iter().any(|kept| kept.advisory_lock.owner().is(&owner)) => {
                database_server.take_advisory_lock(PATIENCE).await
            }
            attempt => Ok(attempt),
        }
    }

    /// Makes sure that the variant's database is locked. It returns what to report where the lock
    /// was lost.
    pub(crate) async fn renew(&mut self, variant: &str) -> Result<Option<String>, String> {
        let Some(kept) = self.of_variant(variant) else { return Ok(None) };
        if kept.advisory_lock.is_kept().await {
            return Ok(None);
        }
        match kept.database_server.take_advisory_lock(PATIENCE).await {
            Ok(LockAttempt::Taken(advisory_lock)) => {
                kept.advisory_lock = *advisory_lock;
                Ok(Some(format!(
                    "the connection that held the lock on {} was lost, and the lock was taken again: another run of dbdyno could have \
                     used the database meanwhile",
                    of(&kept.database_server)
                )))
            }
            // The server has not yet noticed that our own connection is gone, so no other run can
            // have had the lock.
            Ok(LockAttempt::By(owner)) if owner.is(kept.advisory_lock.owner()) => Ok(None),
            Ok(LockAttempt::By(owner)) => Err(format!(
                "{}; the connection that held the lock on it was lost",
                in_use(&kept.database_server, &owner.to_string())
            )),
            // The next connection finds out whether the server is gone.
            Ok(LockAttempt::Impossible(_)) | Err(_) => Ok(None),
        }
    }

    /// Returns what to report where others are at work in the variant's database. A killed run may
    /// for example have left statements there.
    pub(crate) async fn company(&mut self, variant: &str) -> Option<String> {
        let kept = self.of_variant(variant)?;
        let others = kept.advisory_lock.others_at_work().await;
        (!others.is_empty()).then(|| {
            format!(
                "other statements were running in {} when the cell began, and its figures include \
                 their cost: {}",
                of(&kept.database_server),
                others.join("; ")
            )
        })
    }

    fn of_variant(&mut self, variant: &str) -> Option<&mut LockedDatabase> {
        self.kept.iter_mut().find(|kept| kept.variants.iter().any(|name| name == variant))
    }

    /// Releases all locks.
    pub(crate) async fn release(self) {
        for kept in self.kept {
            kept.advisory_lock.release().await;
        }
    }
}

/// Returns where to reach the servers that others run.
pub(crate) fn elsewhere(variants: &[Prepared]) -> Vec<DatabaseServer> {
    variants.iter().filter_map(database_server).collect()
}

fn database_server(variant: &Prepared) -> Option<DatabaseServer> {
    match &variant.source {
        Source::Address(database_server) => Some((**database_server).clone()),
        Source::Embedded(_) | Source::Null | Source::Started { .. } => None,
    }
}

/// Writes `database bench at 127.0.0.1:3306`.
fn of(database_server: &DatabaseServer) -> String {
    let Some(login) = database_server.address.login() else { return String::new() };
    format!("database {} at {}", login.database.as_deref().unwrap_or_default(), login.address)
}

fn in_use(database_server: &DatabaseServer, owner: &str) -> String {
    format!("{} is in use by another run of dbdyno ({owner})", of(database_server))
}
