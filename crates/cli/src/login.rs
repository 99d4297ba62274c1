//! Decides how connections to a variant's server are opened: its address, the user, TLS with its
//! keys, and the time limits.

use std::time::Duration;

use dbdyno_db::server::intents::Rendered;
use dbdyno_db::server::{Base, Certificates, credentials, login_at, tls_settings};
use dbdyno_db::{ConnectionSettings, DatabaseServer, Family, Options, Secret, Session, TimeLimits, Tls};
use dbdyno_model::{TlsMode, TlsSettings, Variant, foreign_title};
use dbdyno_plan::Plan;
use dbdyno_products::{ServerAddress, engine_of};
use dbdyno_workloads::takes_streams;
use tokio::runtime::Runtime;

use crate::exit::ExitError;
use crate::{limits, terminal};

const NO_STREAMS: &str = "the server's local_infile is off, so it takes no streamed rows: switch it on with SET GLOBAL local_infile = ON, \
                          or set load_method = \"insert\" where the workload has that option";

/// Logs in to an address and makes sure that dbdyno owns its database, unless nothing will be
/// filled.
pub(crate) fn log_in(plan: &Plan, variant: &Variant, runtime: &Runtime) -> Result<DatabaseServer, ExitError> {
    let (family, options, database) = login(plan, variant)?;
    let mut database_server =
        family.address(options.clone()).database_server(&family.facts().engine_of(variant), false);
    runtime.block_on(async {
        // Existing tables must be there, and their database stays with its owner.
        let is_ours = !plan.workload.use_existing_tables();
        if is_ours {
            family.take_ownership(&options, &database).await.map_err(ExitError::server)?;
        }
        database_server.identify(engine_of(variant).is_some(), is_ours).await.map_err(ExitError::server)?;
        check_room(plan, &database_server).await
    })?;
    if let Some(warning) = foreign_warning(&variant.name, &database_server) {
        terminal::warning(&warning);
    }
    Ok(database_server)
}

/// Refuses an address whose login is wrong or lacks files, without connecting to it.
pub(crate) fn check_login(plan: &Plan, variant: &Variant) -> Result<(), ExitError> {
    login(plan, variant).map(drop).map_err(|ended| ended.of_variant(&variant.name))
}

/// Returns the server at the address of a variant, for a login that another host has checked.
///
/// # Errors
/// Files that the plan names and that this host does not have.
pub(crate) fn database_server_for(
    plan: &Plan,
    variant: &Variant,
    user: &str,
    password: Secret,
) -> Result<DatabaseServer, ExitError> {
    let address = address_of(variant)?;
    let (family, options) = login_at(&address);
    let options = Options { user: user.to_owned(), password, ..options };
    let connection_settings = connection_settings_at_address(plan, variant, &address)?;
    Ok(family
        .address(options.with_connection_settings(connection_settings))
        .database_server(&family.facts().engine_of(variant), false))
}

/// Returns the login at an address with its database, from the plan, its files and its variables.
/// It connects to nothing.
fn login(plan: &Plan, variant: &Variant) -> Result<(Family, Options, String), ExitError> {
    let address = address_of(variant)?;
    let (family, options) = login_at(&address);
    let (options, warnings) =
        credentials(family, options, variant.password_env.as_deref(), variant.option_file.as_deref())
            .map_err(ExitError::usage)?;
    for warning in warnings {
        terminal::warning(&warning);
    }
    let options = options.with_connection_settings(connection_settings_at_address(plan, variant, &address)?);
    Ok((family, options, address.database))
}

fn address_of(variant: &Variant) -> Result<ServerAddress, ExitError> {
    let read = ServerAddress::parse(variant.address.as_deref().unwrap_or_default());
    read.map_err(|why| ExitError::usage(format!("it has an address that {why}")))
}

/// Returns the connection settings of a variant with an address. It reads the files that they name.
fn connection_settings_at_address(
    plan: &Plan,
    variant: &Variant,
    address: &ServerAddress,
) -> Result<ConnectionSettings, ExitError> {
    let said = variant.tls.clone();
    let asked = tls_settings(address, said, variant.option_file.as_deref()).map_err(ExitError::usage)?;
    let tls = Tls::load(asked.unwrap_or(TlsSettings { mode: TlsMode::Off, ..TlsSettings::default() }))
        .map_err(ExitError::usage)?;
    connection_settings(plan, variant, Family::of(address.family), tls).map_err(ExitError::usage)
}

/// Turns the plan's connection settings into the driver's, with the result of those on TLS. It
/// reads the files that they name.
pub(crate) fn connection_settings(
    plan: &Plan,
    variant: &Variant,
    family: Family,
    tls: Option<Tls>,
) -> Result<ConnectionSettings, String> {
    let connection_settings = family.connection_settings(&variant.options)?;
    Ok(ConnectionSettings { tls, limits: time_limits(plan), ..connection_settings })
}

/// Returns how long sessions wait for their server. Small queries get a minute at most and a second
/// at least, because their time does not depend on the data.
fn time_limits(plan: &Plan) -> TimeLimits {
    let default = TimeLimits::default();
    let least = Duration::from_secs(1);
    TimeLimits {
        login: plan.load.login_timeout.0,
        answer: plan.host.statement_timeout.0.clamp(least, default.answer),
        ..default
    }
}

/// Returns TLS to a server that dbdyno starts. Certificates are made for it, unless the plan or the
/// server's option file names others.
pub(crate) fn tls_of_started(
    variant: &Variant,
    base: &Base,
    config: &Rendered,
) -> Result<(Option<Tls>, Option<Certificates>), String> {
    let settings = variant.tls.clone().filter(|settings| settings.mode != TlsMode::Off);
    let Some(settings) = settings else { return Ok((None, None)) };
    let facts = base.family.facts();
    let is_named = [&settings.ca, &settings.cert, &settings.key].iter().any(|file| file.is_some())
        || config.sets_itself(facts.certificate_option);
    match is_named {
        true if facts.only_own_certificates => Err(format!(
            "dbdyno makes the certificates of a {} that it starts, and checks them; leave ca, cert and key out of \
             tls, and {} out of own_config",
            base.product, facts.certificate_option
        )),
        true => Ok((Tls::load(settings).map_err(|error| error.to_string())?, None)),
        false => {
            let own = Certificates::new(facts.superuser).map_err(|error| error.to_string())?;
            let tls = Tls::of_pem(settings.mode, &own.for_client()).map_err(|error| error.to_string())?;
            Ok((tls, Some(own)))
        }
    }
}

/// Warns of a server that is none of the products: it says which one it is, and what it cannot do.
fn foreign_warning(variant: &str, database_server: &DatabaseServer) -> Option<String> {
    let foreign = database_server.capabilities.foreign.as_ref().filter(|foreign| !foreign.is_programmed)?;
    let mut text = format!(
        "variant {variant}: {}; its settings are recorded, and no rule says what they mean",
        foreign_title(&foreign.name, &foreign.speaks)
    );
    let missing: Vec<&str> = foreign.missing.iter().map(|(name, _)| name.as_str()).collect();
    if !missing.is_empty() {
        text.push_str(&format!("; asked, it has not: {}", missing.join(", ")));
    }
    Some(text)
}

/// Refuses a server that takes fewer connections than the plan opens, or no rows in the form in
/// which the plan sends them.
async fn check_room(plan: &Plan, database_server: &DatabaseServer) -> Result<(), ExitError> {
    if !database_server.capabilities.prepares()
        && let Some((workload, _)) = plan.workload.iter().find(|(_, options)| options.needs().prepares)
    {
        return Err(ExitError::usage(format!(
            "the server has no prepared statements of each connection's own, which {workload} sends; set protocol = \"text\" \
             there (pgbench: protocol = \"simple\", sysbench: db_ps_mode = \"disable\")"
        )));
    }
    let mut session = database_server.connect().await.map_err(ExitError::server)?;
    let room = limits::check_server(&mut session, plan).await;
    let takes = takes_streams(plan, database_server.capabilities.row_stream, &mut session).await;
    session.close().await;
    room.map_err(ExitError::server)?;
    match takes {
        Ok(true) => Ok(()),
        Ok(false) => Err(ExitError::server(NO_STREAMS)),
        Err(error) => Err(ExitError::server(error)),
    }
}
