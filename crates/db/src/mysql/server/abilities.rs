//! Finds out what a MySQL-family server can do, from queries, its log and its plugin folder.

use crate::{AnySession, DbError, Session, column};

use crate::server::abilities::ServerProbe;
use crate::server::abilities::{Abilities, ThreadPool, TlsAbility};
use crate::server::base::Base;

/// A user that dbdyno creates to see the default login.
const NEW_USER: &str = "'dbdyno'@'localhost'";

pub(in crate::mysql) async fn abilities(probe: ServerProbe<'_>) -> Result<Abilities, DbError> {
    let ServerProbe { session, base, description, log } = probe;
    let setting = |name: &str| description.settings.get(name).map(String::as_str);
    let mut logins = column(
        session,
        "SELECT plugin_name FROM information_schema.plugins \
         WHERE plugin_type = 'AUTHENTICATION' AND plugin_status = 'ACTIVE'",
    )
    .await?;
    logins.sort();
    Ok(Abilities {
        engines: engines(session).await?,
        default_engine: description.engine.clone(),
        thread_pool: thread_pool(base, setting("thread_pool_size").is_some()),
        logins,
        default_login: default_login(session).await?,
        tls: tls(base.is_mariadb() && base.release.at_least(11, 4), setting("have_ssl"), setting("ssl_ca")),
        aio: aio(session, setting("innodb_use_native_aio"), setting("innodb_linux_aio"), log).await?,
        jit: false,
        vector: vector(session, setting("mhnsw_max_cache_size").is_some()).await,
    })
}

async fn engines(session: &mut AnySession) -> Result<Vec<String>, DbError> {
    let rows = session.rows("SHOW ENGINES").await?;
    let usable =
        |row: &Vec<Option<String>>| matches!(row.get(1).and_then(Option::as_deref), Some("YES" | "DEFAULT"));
    let mut engines: Vec<String> =
        rows.into_iter().filter(usable).filter_map(|row| row.into_iter().next().flatten()).collect();
    engines.sort();
    Ok(engines)
}

fn thread_pool(base: &Base, has_setting: bool) -> ThreadPool {
    match has_setting {
        true => ThreadPool::BuiltIn,
        false if base.has_plugin("thread_pool.so") => ThreadPool::Plugin,
        false => ThreadPool::None,
    }
}

/// The default authentication plugin, which shows when a user is created.
async fn default_login(session: &mut AnySession) -> Result<String, DbError> {
    session.query(format!("CREATE USER {NEW_USER} IDENTIFIED BY 'Of-No-Use-1'").as_bytes()).await?;
    let plugins = column(session, "SELECT plugin FROM mysql.user WHERE user = 'dbdyno'").await?;
    session.query(format!("DROP USER {NEW_USER}").as_bytes()).await?;
    // MySQL 5.5 and MariaDB 10.1 leave the column empty for their default plugin.
    Ok(plugins.into_iter().find(|plugin| !plugin.is_empty()).unwrap_or("mysql_native_password".to_owned()))
}

/// The TLS ability. MariaDB is asked with TLS off, because its key may take 20 s to make. Whether
/// it makes one is known from its version.
fn tls(is_new_mariadb: bool, have_ssl: Option<&str>, ssl_ca: Option<&str>) -> TlsAbility {
    // MySQL makes its certificate at initialisation, and its settings then name the files.
    let makes_its_own = is_new_mariadb || ssl_ca.is_some_and(|file| !file.is_empty());
    match have_ssl {
        Some("NO") => TlsAbility::None,
        _ if makes_its_own => TlsAbility::OwnCertificate,
        _ => TlsAbility::WithCertificate,
    }
}

/// The asynchronous I/O methods, the active one first. Servers that can choose have a setting. The
/// others log it when they do not use libaio.
async fn aio(
    session: &mut AnySession,
    native_aio: Option<&str>,
    linux_aio: Option<&str>,
    log: &str,
) -> Result<Vec<String>, DbError> {
    if native_aio != Some("ON") {
        return Ok(Vec::new());
    }
    let in_use = if log.contains("liburing") || log.contains("io_uring") { "io_uring" } else { "libaio" };
    let mut ways = vec![in_use.to_owned()];
    if linux_aio.is_some() {
        let choices = column(
            session,
            "SELECT enum_value_list FROM information_schema.system_variables \
             WHERE variable_name = 'INNODB_LINUX_AIO'",
        )
        .await?;
        let choices = choices.iter().flat_map(|list| list.split(',')).filter(|choice| *choice != "auto");
        let names = choices.map(|choice| if choice == "aio" { "libaio" } else { choice });
        ways.extend(names.filter(|name| *name != in_use).map(str::to_owned));
    }
    Ok(ways)
}

async fn vector(session: &mut AnySession, has_index: bool) -> Option<String> {
    if has_index {
        return Some("index".to_owned());
    }
    // An error means that the function does not exist, which is the answer.
    let has_type = session.rows("SELECT VECTOR_DIM(STRING_TO_VECTOR('[1,2]'))").await.is_ok();
    has_type.then(|| "type".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_goes_by_what_the_build_has_and_by_who_makes_the_certificate() {
        assert_eq!(tls(false, Some("NO"), None), TlsAbility::None);
        assert_eq!(tls(false, Some("DISABLED"), Some("")), TlsAbility::WithCertificate);
        assert_eq!(tls(false, Some("YES"), Some("ca.pem")), TlsAbility::OwnCertificate);
        assert_eq!(tls(false, None, Some("ca.pem")), TlsAbility::OwnCertificate);
        assert_eq!(tls(true, Some("DISABLED"), Some("")), TlsAbility::OwnCertificate);
    }
}
