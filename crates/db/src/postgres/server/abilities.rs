//! Finds out what a PostgreSQL build can do, from queries to its server.

use crate::{AnySession, DbError, Session, column, first_i64};

use crate::server::abilities::ServerProbe;
use crate::server::abilities::{Abilities, ThreadPool, TlsAbility};

/// The value of the ciphers setting in a server that was built without TLS. Before version 12 there
/// is no other sign.
const NO_CIPHERS: &str = "none";

pub(in crate::postgres) async fn abilities(probe: ServerProbe<'_>) -> Result<Abilities, DbError> {
    let ServerProbe { session, description, .. } = probe;
    let setting = |name: &str| description.settings.get(name).map(String::as_str);
    let [major, ..] = description.version;
    let engines = match major {
        12.. => column(session, "SELECT amname FROM pg_am WHERE amtype = 't' ORDER BY amname").await?,
        _ => vec![description.engine.clone()],
    };
    let jit = match major {
        11.. => first_i64(&session.rows("SELECT pg_jit_available()::int").await?) == Some(1),
        _ => false,
    };
    let default_login = setting("password_encryption").filter(|value| *value != "on").unwrap_or("md5");
    let mut logins = choices(session, "password_encryption").await?;
    if logins.is_empty() {
        logins.push(default_login.to_owned());
    }
    logins.sort();
    Ok(Abilities {
        engines,
        default_engine: description.engine.clone(),
        thread_pool: ThreadPool::None,
        logins,
        default_login: default_login.to_owned(),
        tls: tls(setting("ssl_library"), setting("ssl_ciphers")),
        aio: in_use_first(choices(session, "io_method").await?, setting("io_method")),
        jit,
        vector: pgvector(session).await?,
    })
}

/// The values that a setting can have. The list is empty when the setting does not exist or has no
/// list.
async fn choices(session: &mut AnySession, setting: &str) -> Result<Vec<String>, DbError> {
    column(session, &format!("SELECT unnest(enumvals) FROM pg_settings WHERE name = '{setting}'")).await
}

fn in_use_first(mut choices: Vec<String>, in_use: Option<&str>) -> Vec<String> {
    choices.sort_by_key(|choice| Some(choice.as_str()) != in_use);
    choices
}

fn tls(library: Option<&str>, ciphers: Option<&str>) -> TlsAbility {
    let has_tls = match library {
        Some(library) => !library.is_empty(),
        None => ciphers.is_some_and(|ciphers| ciphers != NO_CIPHERS),
    };
    if has_tls { TlsAbility::WithCertificate } else { TlsAbility::None }
}

async fn pgvector(session: &mut AnySession) -> Result<Option<String>, DbError> {
    let sql = "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'";
    Ok(column(session, sql).await?.pop().map(|version| format!("pgvector {version}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_known_by_the_library_or_by_the_ciphers() {
        assert_eq!(tls(Some("OpenSSL"), Some("HIGH")), TlsAbility::WithCertificate);
        assert_eq!(tls(Some(""), Some("none")), TlsAbility::None);
        assert_eq!(tls(None, Some("HIGH:MEDIUM")), TlsAbility::WithCertificate);
        assert_eq!(tls(None, Some("none")), TlsAbility::None);
    }

    #[test]
    fn the_method_in_use_comes_first() {
        let choices = ["sync", "worker", "io_uring"].map(str::to_owned).to_vec();
        assert_eq!(in_use_first(choices, Some("worker")), ["worker", "sync", "io_uring"]);
    }
}
