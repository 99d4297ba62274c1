//! Prepares a plan's variants: it opens builds, renders configs, reads option files and tries
//! logins. A plan that cannot run is refused here, before anything runs.
//!
//! A login says how connections to a variant's server are opened: its address, the user, TLS with
//! its keys, and the time limits. The manifest of a run records the result: the plan, the program,
//! the host, the variants and the cells.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use dbdyno_db::server::intents::{ConfigServer, Intents, Rendered, option_at, render};
use dbdyno_db::server::{Base, Certificates, credentials, login_at, servers_dir, tls_settings};
use dbdyno_db::{ConnectionSettings, DatabaseServer, Family, Options, Secret, Session, TimeLimits, Tls};
use dbdyno_fetch::{answer_of, find_named};
use dbdyno_model::{Config, ConfigPart, TlsMode, TlsSettings, Variant, foreign_title};
use dbdyno_plan::{Plan, WaitChoice, cells, client_wait, options_problem, recorded};
use dbdyno_products::{FamilyFacts, ServerAddress, VariantKind, engine_of};
use dbdyno_record::{CellId, FORMAT_VERSION, HostInfo, Manifest, ToolInfo, VariantInfo, WorkloadInfo};
use dbdyno_workloads::{Surroundings, kind_of, takes_streams};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::exit::{ExitError, SERVER, USAGE};
use crate::limits::{self, OTHER_CONNECTIONS};
use crate::{host, terminal, time};

/// A variant whose server can be started or reached.
#[derive(Debug, Clone)]
pub(crate) struct PreparedVariant {
    /// The variant's entry in the record. Its `config` is the text of the option file.
    pub(crate) info: VariantInfo,
    /// How connections to it are opened.
    pub(crate) connection_settings: ConnectionSettings,
    /// Notes on how intents without a setting of their own were applied, and on changes by the
    /// variant's own settings.
    pub(crate) notes: Vec<String>,
    pub(crate) source: ServerSource,
}

/// Where a variant's database comes from.
#[derive(Debug, Clone)]
pub(crate) enum ServerSource {
    /// There is no database, and every statement is answered at once.
    Null,
    /// The database works inside dbdyno, with these settings on every connection.
    Embedded(Vec<(String, String)>),
    /// dbdyno starts a server of this build.
    Started {
        base: Box<Base>,
        config: Box<Rendered>,
        /// Certificates that dbdyno makes for a server that has none.
        certificates: Option<Certificates>,
    },
    /// Others run the server, at this address.
    Address(Box<DatabaseServer>),
}

impl PreparedVariant {
    fn new(variant: &Variant, driver: &str, server: String, source: ServerSource) -> Self {
        let info = VariantInfo {
            name: variant.name.clone(),
            driver: driver.to_owned(),
            server,
            factors: variant.factors.clone(),
            ..VariantInfo::default()
        };
        Self { info, connection_settings: ConnectionSettings::default(), notes: Vec::new(), source }
    }

    fn configured(mut self, config: &Rendered, text: String) -> Self {
        let asked = config.asked.clone().unwrap_or_default();
        self.info.intents = asked.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        self.info.config = text;
        self.notes.clone_from(&config.notes);
        self
    }

    /// Returns the build whose server dbdyno starts.
    pub(crate) fn base(&self) -> Option<&Base> {
        match &self.source {
            ServerSource::Started { base, .. } => Some(base),
            _ => None,
        }
    }

    /// Returns the product of a started server that supports TLS over TCP only, if the server runs
    /// without TLS and therefore on a unix socket.
    pub(crate) fn on_a_socket_for_lack_of_tls(&self) -> Option<String> {
        let base = self.base()?;
        let is_so = base.family.facts().has_no_tls_on_sockets && self.connection_settings.tls.is_none();
        is_so.then(|| base.product.to_string())
    }
}

/// Checks this machine's limits and all variants of a plan. It connects to each address, and takes
/// ownership of its database.
pub(crate) fn prepare(plan: &Plan, runtime: &Runtime) -> Result<Vec<PreparedVariant>, ExitError> {
    limits::check(plan)?;
    host::check_life(plan)?;
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for variant in &plan.variants {
        match prepare_one(plan, variant, runtime) {
            Ok(prepared) => all.push(prepared),
            // A missing server does not end the loop, because those of other variants may be
            // missing too. A mistake in the plan itself is reported first.
            Err(ended) if ended.code == SERVER && !VariantKind::of(variant).is_address() => wrong.push(ended),
            Err(ended) => return Err(ended),
        }
    }
    if wrong.is_empty() { Ok(all) } else { Err(refusal(wrong)) }
}

/// Joins the errors of several variants into one. Each reason is named once, with the variants that
/// have it.
pub(crate) fn refusal(wrong: Vec<ExitError>) -> ExitError {
    let code = wrong.first().map_or(USAGE, |first| first.code);
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for message in wrong.into_iter().filter_map(|ended| ended.message) {
        let of_variant = message.strip_prefix("variant ").and_then(|rest| rest.split_once(": "));
        let (variant, why) = of_variant.unwrap_or(("", &message));
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, variants)) => variants.push(variant.to_owned()),
            None => reasons.push((why.to_owned(), vec![variant.to_owned()])),
        }
    }
    let line = |(why, variants): (String, Vec<String>)| match &variants[..] {
        [one] if one.is_empty() => why,
        [one] => format!("variant {one}: {why}"),
        several => format!("variants {}: {why}", several.join(", ")),
    };
    ExitError::new(code, reasons.into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

pub(crate) fn prepare_one(
    plan: &Plan,
    variant: &Variant,
    runtime: &Runtime,
) -> Result<PreparedVariant, ExitError> {
    let prepared = match VariantKind::of(variant) {
        VariantKind::Null => Ok(PreparedVariant::new(variant, "null", "null".to_owned(), ServerSource::Null)),
        VariantKind::Embedded => embedded(variant).map_err(ExitError::usage),
        VariantKind::BaseDir(_) | VariantKind::Named(_) => build(variant)
            .map_err(ExitError::server)
            .and_then(|base| started(plan, variant, base).map_err(ExitError::usage)),
        VariantKind::Address(text) => reached(plan, variant, text, runtime),
    };
    prepared.map_err(|ended| ended.of_variant(&variant.name))
}

fn embedded(variant: &Variant) -> Result<PreparedVariant, String> {
    let config = embedded_config(variant)?;
    let settings = config.pragmas();
    let text = settings.iter().map(|(name, value)| format!("PRAGMA {name} = {value}\n")).collect();
    let title = format!("{} (embedded)", Family::EMBEDDED.facts().products[0]);
    let mut prepared =
        PreparedVariant::new(variant, Family::EMBEDDED.name(), title, ServerSource::Embedded(settings));
    prepared.info.embedded = true;
    Ok(prepared.configured(&config, text))
}

/// Prepares a variant whose server dbdyno starts from the build `base`.
fn started(plan: &Plan, variant: &Variant, base: Base) -> Result<PreparedVariant, String> {
    check_options(variant, base.family)?;
    let config = config(variant, &base)?;
    check_connections(plan, variant, &base, &config)?;
    if let Some(doubt) = check_engine(variant, &base, &config)? {
        terminal::warning(&format!("variant {}: {doubt}", variant.name));
    }
    let text = config.text();
    let (tls, certificates) = tls_of_started(variant, &base, &config)?;
    // This is the plan's word for the server. The folder of that name may be a link to a folder
    // with another name.
    let folder = match VariantKind::of(variant) {
        VariantKind::Named(name) => name,
        _ => base.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    let (family, title) = (base.family, format!("{} ({folder})", base.title));
    let source =
        ServerSource::Started { base: Box::new(base), config: Box::new(config.clone()), certificates };
    let mut prepared = PreparedVariant::new(variant, family.name(), title, source).configured(&config, text);
    prepared.connection_settings = connection_settings(plan, variant, family, tls)?;
    Ok(prepared)
}

/// Prepares a variant whose server others run at the address `text`.
fn reached(
    plan: &Plan,
    variant: &Variant,
    text: String,
    runtime: &Runtime,
) -> Result<PreparedVariant, ExitError> {
    let database_server = log_in(plan, variant, runtime)?;
    let driver = database_server.address.name();
    let connection_settings =
        database_server.address.login().map(|login| login.connection_settings.clone()).unwrap_or_default();
    let mut prepared =
        PreparedVariant::new(variant, driver, text, ServerSource::Address(Box::new(database_server)));
    prepared.info.external = true;
    Ok(PreparedVariant { connection_settings, ..prepared })
}

/// Opens the build of a variant whose server dbdyno starts.
fn build(variant: &Variant) -> Result<Base, dbdyno_fetch::Error> {
    match &variant.basedir {
        Some(path) => Ok(Base::open(path)?),
        None => find_named(variant.server.as_deref().unwrap_or_default()),
    }
}

/// Renders the settings of a build's server from the variant's intents and from its own option
/// file, which takes precedence.
fn config(variant: &Variant, base: &Base) -> Result<Rendered, String> {
    let family = base.family;
    let config = rendered(variant, &ConfigServer::of_base(base, &family.facts().engine_of(variant)))?;
    match &variant.own_config {
        Some(path) => config.with_own_config(base, path).map_err(|error| format!("own_config: {error}")),
        None => Ok(config),
    }
}

/// Renders the settings of a variant on the embedded product.
fn embedded_config(variant: &Variant) -> Result<Rendered, String> {
    let own = Family::EMBEDDED.own_settings(&variant.options).into_iter();
    let own = own.map(|(name, value)| (name, Some(value)));
    Ok(rendered(variant, &ConfigServer::embedded())?.with_own(own.collect()))
}

/// Renders the intents of a variant for `server`.
fn rendered(variant: &Variant, server: &ConfigServer) -> Result<Rendered, String> {
    match &variant.config {
        Some(config) => {
            render(server, &intents(config)?).map_err(|error| indented("config", &error.to_string()))
        }
        None => Ok(Rendered::of(server)),
    }
}

/// Merges the parts of a config. Later parts take precedence.
fn intents(config: &Config) -> Result<Intents, String> {
    let mut all = Intents::default();
    for part in config.parts() {
        let read = match part {
            ConfigPart::File(path) => Intents::read(path),
            ConfigPart::Intents(table) => {
                let table = toml::Table::try_from(table).map_err(|error| format!("config: {error}"))?;
                Intents::from_table(&table)
            }
        };
        all = all.overlaid(read.map_err(|error| match part {
            ConfigPart::File(path) if !path.exists() => {
                format!("{error}; `dbdyno plans show configs/small.toml` prints one that ships")
            }
            ConfigPart::File(_) => error.to_string(),
            ConfigPart::Intents(_) => indented("config", &error.to_string()),
        })?);
    }
    Ok(all)
}

/// Writes one line after `title`, or several lines under it.
fn indented(title: &str, text: &str) -> String {
    match text.contains('\n') {
        true => format!("{title}:\n  {}", text.replace('\n', "\n  ")),
        false => format!("{title}: {text}"),
    }
}

/// The config of a variant, as far as it is known before its server has started.
pub(crate) enum Predicted {
    Config(Rendered),
    /// Nothing is known of the server. The text is a sentence that says why.
    UnknownServer(String),
}

/// Predicts the config of `variant` without starting anything. Where the server is not installed,
/// its name is enough. The result is `None` for a variant without intents.
pub(crate) fn predicted(variant: &Variant) -> Result<Option<Predicted>, String> {
    let kind = VariantKind::of(variant);
    let predicted = match &variant.config {
        Some(_) if kind.is_embedded() => Predicted::Config(embedded_config(variant)?),
        Some(asked) if kind.is_started() => {
            // A mistake in the intents is reported before the build is opened, because opening it
            // runs its program.
            intents(asked)?;
            match (build(variant), server_by_name(variant)) {
                (Ok(base), _) => Predicted::Config(config(variant, &base)?),
                (Err(_), Some(server)) => Predicted::Config(by_name(variant, &server)?),
                (Err(error), None) => Predicted::UnknownServer(error.to_string()),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(predicted))
}

/// Renders the config for a server that is not installed.
fn by_name(variant: &Variant, server: &ConfigServer) -> Result<Rendered, String> {
    let mut config = rendered(variant, server)?;
    config
        .notes
        .push(format!("{} is not installed: product and version are taken from its name", server.title));
    Ok(config)
}

/// Returns the product and version that the name of a variant's server shows.
fn server_by_name(variant: &Variant) -> Option<ConfigServer> {
    let family = FamilyFacts::of_variant(variant)?;
    ConfigServer::named(variant.server.as_deref()?, &family.engine_of(variant))
}

/// Returns the size of the server's own page cache by variant, where that is known to be the only
/// cache. Forecasts are made often, so a server's program runs only where the server's name does
/// not say which version it is.
pub(crate) fn only_cache_bytes(plan: &Plan) -> BTreeMap<String, u64> {
    let of = |variant: &Variant| {
        let bytes = intents(variant.config.as_ref()?).ok()?.bytes("buffer_pool")?;
        let of_build = || {
            let base = build(variant).ok()?;
            Some(ConfigServer::of_base(&base, &base.family.facts().engine_of(variant)))
        };
        let server = server_by_name(variant).or_else(of_build)?;
        let is_only = rendered(variant, &server).ok()?.bypasses_page_cache();
        is_only.then(|| (variant.name.clone(), bytes))
    };
    plan.variants.iter().filter(|variant| VariantKind::of(variant).is_started()).filter_map(of).collect()
}

/// Refuses options that the family of the variant's server does not have.
fn check_options(variant: &Variant, family: Family) -> Result<(), String> {
    let problem = options_problem(variant, family.facts());
    problem.map_or(Ok(()), |(_, message)| Err(format!("it {message}")))
}

/// Refuses a server that would take fewer connections than the plan opens. A value that is not a
/// number is left to the server.
fn check_connections(plan: &Plan, variant: &Variant, base: &Base, config: &Rendered) -> Result<(), String> {
    const OPTION: &str = "max_connections";
    let said = config.value(OPTION).map(|(value, intent)| {
        let file = || variant.own_config.as_ref().map_or_else(String::new, |file| file.display().to_string());
        let who = intent.map_or_else(
            || format!("{OPTION} in {}", file()),
            |intent| format!("{OPTION}, by {intent} of its config"),
        );
        (value.to_owned(), who)
    });
    let default = || {
        let range = option_at(base.product, base.release, OPTION)?;
        Some((range.default.clone(), format!("{OPTION}, its default")))
    };
    let reserved = match base.family.facts().reserved_connections {
        None => Some(0),
        Some((option, default)) => {
            config.value(option).map_or(Some(default), |(value, _)| value.parse().ok())
        }
    };
    let most = said.or_else(default).and_then(|(most, who)| Some((most.parse::<u64>().ok()?, who)));
    let need = u64::from(plan.workload.most_connections()) + OTHER_CONNECTIONS;
    match most.zip(reserved) {
        Some(((most, who), reserved)) if need > most.saturating_sub(reserved) => {
            let kept = match reserved {
                0 => String::new(),
                _ => format!(", {reserved} of them kept for superusers"),
            };
            Err(format!(
                "the plan opens {need} connections, and the server would take {most}{kept} ({who}); raise it, or plan fewer connections"
            ))
        }
        _ => Ok(()),
    }
}

/// Refuses an engine that the build is known not to have, because it did not list the engine when
/// it was downloaded or added. It warns of an engine that the build is not known to have.
fn check_engine(variant: &Variant, base: &Base, config: &Rendered) -> Result<Option<String>, String> {
    let (Some(engine), Some(built_in)) = (engine_of(variant), base.family.built_in_engines(base)) else {
        return Ok(None);
    };
    let title = &base.title;
    let is_it = |known: &str| base.family.is_engine(&engine, known);
    let plugin = base.family.engine_plugin(&engine);
    let answer = match VariantKind::of(variant) {
        VariantKind::Named(name) => answer_of(&servers_dir(), &name),
        _ => None,
    };
    match answer.map(|answer| answer.abilities.engines) {
        _ if config.sets("plugin_dir") || config.loads_plugin(&engine) => Ok(None),
        Some(engines) if engines.iter().any(|known| is_it(known)) => Ok(None),
        Some(engines) => Err(format!("{title} has no engine {engine}; it has {}", engines.join(", "))),
        None if built_in.iter().any(|known| is_it(known)) || base.has_plugin(&plugin) => Ok(None),
        None => Ok(Some(format!(
            "engine {engine} is none of those that {title} is built with, and {plugin} is not among its plugins: its cells will fail \
             unless this build has it"
        ))),
    }
}

const NO_STREAMS: &str = "the server's local_infile is off, so it takes no streamed rows: switch it on with SET GLOBAL local_infile = ON, \
                          or set load_method = \"insert\" where the workload has that option";

/// Logs in to an address and makes sure that dbdyno owns its database, unless the plan only uses
/// existing tables.
pub(crate) fn log_in(plan: &Plan, variant: &Variant, runtime: &Runtime) -> Result<DatabaseServer, ExitError> {
    let (family, options, database) = login(plan, variant)?;
    let mut database_server =
        family.address(options.clone()).database_server(&family.facts().engine_of(variant), false);
    runtime.block_on(async {
        // dbdyno does not take ownership of a database whose existing tables it only uses.
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

/// Turns the plan's connection settings into the driver's. `tls` is the loaded TLS configuration.
pub(crate) fn connection_settings(
    plan: &Plan,
    variant: &Variant,
    family: Family,
    tls: Option<Tls>,
) -> Result<ConnectionSettings, String> {
    let connection_settings = family.connection_settings(&variant.options)?;
    Ok(ConnectionSettings { tls, limits: time_limits(plan), ..connection_settings })
}

/// Returns how long sessions wait for their server. Small queries get the plan's time limit, but a
/// minute at most and a second at least, because their time does not depend on the data.
fn time_limits(plan: &Plan) -> TimeLimits {
    let default = TimeLimits::default();
    let shortest = Duration::from_secs(1);
    TimeLimits {
        login: plan.load.login_timeout.0,
        answer: plan.host.statement_timeout.0.clamp(shortest, default.answer),
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

/// Warns of a server that is not one of the known products. The warning names the server and the
/// features that it lacks.
fn foreign_warning(variant: &str, database_server: &DatabaseServer) -> Option<String> {
    let foreign = database_server.capabilities.foreign.as_ref().filter(|foreign| !foreign.is_programmed)?;
    let mut text = format!(
        "variant {variant}: {}; its settings are recorded, and no rule says what they mean",
        foreign_title(&foreign.name, &foreign.speaks)
    );
    let missing: Vec<&str> = foreign.missing.iter().map(|(name, _)| name.as_str()).collect();
    if !missing.is_empty() {
        text.push_str(&format!("; it says that it lacks {}", missing.join(", ")));
    }
    Some(text)
}

/// Refuses a server that takes fewer connections than the plan opens, that prepares no statements
/// where the plan needs them, or that does not take rows in the form in which the plan sends them.
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

pub(crate) fn host_info(plan: &Plan, out: &Path) -> HostInfo {
    let list = |cpus: &Option<dbdyno_model::CpuList>| cpus.as_ref().map(ToString::to_string);
    let data_dir = plan.host.data_dir.as_deref().unwrap_or(out);
    let WaitChoice { wait, reason } = client_wait(plan);
    let known =
        dbdyno_sample::host_info(data_dir, list(&plan.host.server_cpus), list(&plan.host.client_cpus));
    HostInfo {
        hostname: plan.host.name.clone().unwrap_or(known.hostname),
        client_wait: Some(wait.name().to_owned()),
        client_wait_reason: Some(reason),
        ..known
    }
}

pub(crate) fn manifest(plan: &Plan, variants: &[PreparedVariant], out: &Path) -> Result<Manifest, ExitError> {
    let recorded = recorded(plan)
        .map_err(|error| ExitError::ours(format!("the plan cannot be written down: {error}")))?;
    Ok(Manifest {
        format_version: FORMAT_VERSION,
        tool: tool(),
        run_id: format!("{}-{}", time::for_folder(), plan.name),
        started: time::now(),
        plan: recorded,
        client_calibration: None,
        host: host_info(plan, out),
        variants: variants.iter().map(|variant| variant.info.clone()).collect::<Vec<VariantInfo>>(),
        workloads: workloads(plan, variants),
        order: cells(plan)
            .into_iter()
            .map(|cell| CellId { block: cell.block, variant: cell.variant, workload: cell.workload })
            .collect(),
    })
}

/// Describes the workloads in the order in which a plan names them. Without `variants` it leaves
/// out the differences from the original benchmarks that depend on them.
pub(crate) fn workloads(plan: &Plan, variants: &[PreparedVariant]) -> Vec<WorkloadInfo> {
    let on_socket = variants.iter().find_map(PreparedVariant::on_a_socket_for_lack_of_tls);
    let around = Surroundings { rest: plan.host.rest.0, on_socket };
    let info = |(name, options)| kind_of(name)?.info(name, options, &around);
    plan.workload.iter().filter_map(info).collect()
}

pub(crate) fn tool() -> ToolInfo {
    ToolInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: env!("DBDYNO_COMMIT").to_owned(),
        build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_pool_is_the_only_cache_where_the_files_bypass_the_page_cache() {
        let variant = |name: &str, server: &str, config: &str| {
            format!(
                "[[variant]]\nname = \"{name}\"\nserver = \"{server}\"\nconfig = {{ buffer_pool = \"64 MiB\"{config} }}\n"
            )
        };
        let direct = ", where_possible = { flush_method = \"o_direct\" }";
        let text = ["name = \"p\"\n".to_owned()]
            .into_iter()
            .chain([
                variant("direct", "mariadb-11.8.6", direct),
                variant("cached", "mariadb-11.8.6", ", flush_method = \"fsync\""),
                variant("postgres", "postgresql-18.1", direct),
                variant("embedded", "sqlite", direct),
            ])
            .chain(["[workload.oltp]\n".to_owned()]);
        let plan = dbdyno_workloads::plans::parse(&text.collect::<String>(), "p.toml")
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(only_cache_bytes(&plan), BTreeMap::from([("direct".to_owned(), 64 << 20)]));
    }
}
