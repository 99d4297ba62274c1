//! Starts a server once with fresh data, to find out its version, its abilities and its settings.

use std::collections::BTreeMap;

use dbdyno_db::server::{Abilities, Base, Error, RuntimeDir, ServerProbe};
use dbdyno_db::{DbError, Description, Family, Session, describe};

use crate::server_entry::fingerprint;
use crate::{Answer, ScratchOptions, ScratchServer};

const ROCKSDB: &str = "ha_rocksdb.so";

/// Starts the server in `base`, probes it and stops it. Its data is made for this and removed.
pub(crate) fn probe(base: &Base) -> Result<Answer, Error> {
    let scratch = start(base)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::io("cannot make an event loop to talk to", &base.path))?;
    let asked = runtime.block_on(talk(&scratch, base));
    let start_ms = u64::try_from(scratch.start_time.as_millis()).unwrap_or(u64::MAX);
    scratch.stop()?;
    let (description, abilities) = asked?;
    let settings = settings(&description);
    let Description { product, version_text: version, .. } = description;
    let program = fingerprint(&base.path).unwrap_or_default();
    Ok(Answer { product, version, program, start_ms, abilities, settings })
}

/// Probes the embedded product, on a new file, for its name, its version and its settings.
pub fn probe_embedded() -> Result<(String, String, BTreeMap<String, String>), Error> {
    let failed =
        |source: DbError| Error::Database { what: format!("asking {}", Family::EMBEDDED.name()), source };
    let cannot = || Error::io("cannot make a folder in", std::env::temp_dir());
    // The folder is removed even if this process is killed.
    let runtime_dir = RuntimeDir::new()?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(cannot())?;
    let database_server = Family::EMBEDDED.open_file(runtime_dir.path(), &[], true).map_err(failed)?;
    let described = runtime.block_on(async { describe(&mut database_server.connect().await?).await });
    let description = described.map_err(failed)?;
    let settings = settings(&description);
    Ok((description.product, description.version_text, settings))
}

/// The server's settings, and a session's settings where the server has none with that name.
fn settings(description: &Description) -> BTreeMap<String, String> {
    let mut settings = description.session.clone();
    settings.extend(description.settings.clone());
    settings
}

/// Starts the server with MyRocks where it is installed, because dbdyno also wants to know whether
/// the plugin loads. If the server does not start with it, dbdyno starts it without.
fn start(base: &Base) -> Result<ScratchServer, Error> {
    if base.has_plugin(ROCKSDB) {
        let options = ScratchOptions { engine: Some("rocksdb".to_owned()), ..ScratchOptions::default() };
        if let Ok(scratch) = ScratchServer::start(base, &options) {
            return Ok(scratch);
        }
    }
    ScratchServer::start(base, &ScratchOptions::default())
}

async fn talk(scratch: &ScratchServer, base: &Base) -> Result<(Description, Abilities), Error> {
    let failed = |source: DbError| Error::Database { what: format!("asking {}", base.title), source };
    let mut session = scratch.database_server().connect().await.map_err(failed)?;
    let description = describe(&mut session).await.map_err(failed)?;
    let log = scratch.log_text()?;
    let probe = ServerProbe { session: &mut session, base, description: &description, log: &log };
    let abilities = base.family.abilities(probe).await.map_err(failed)?;
    session.close().await;
    Ok((description, abilities))
}
