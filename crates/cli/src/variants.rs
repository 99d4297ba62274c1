//! Turns a plan's variants into things that can be started or reached, before anything runs: what
//! is wrong with one of them ends the command at once and not after an hour.

use std::time::Duration;

use dbdyno_db::server::{Base, Certificates, address, credentials, tls_settings};
use dbdyno_db::{Endpoint, Family, Manner, Options, Secret, Session, TimeLimits, Tls};
use dbdyno_fetch::find_named;
use dbdyno_model::{TlsMode, TlsSettings};
use dbdyno_model::{Variant, foreign_title};
use dbdyno_plan::{Plan, options_problem};
use dbdyno_products::{VariantKind, engine_of};
use dbdyno_record::VariantInfo;
use dbdyno_workloads::takes_streams;
use tokio::runtime::Runtime;

use crate::configs::{self, VariantConfig, engine};
use crate::exit::{ExitError, SERVER, USAGE};
use crate::preflight::{self, Configured};
use crate::{limits, terminal};

const NO_STREAMS: &str = "the server's local_infile is off, so it takes no streamed rows: switch it on with SET GLOBAL local_infile = ON, \
                          or set load_method = \"insert\" where the workload has that option";

#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) source: Source,
    pub(crate) info: VariantInfo,
    pub(crate) manner: Manner,
    /// For a server that dbdyno starts and that has none of its own.
    pub(crate) certificates: Option<Certificates>,
}

impl Prepared {
    fn in_process(source: Source, info: VariantInfo) -> Self {
        Self { source, info, manner: Manner::default(), certificates: None }
    }

    /// The product of a started server that has TLS over TCP only, and all else on a unix socket,
    /// as this one.
    pub(crate) fn on_a_socket_for_lack_of_tls(&self) -> Option<String> {
        let Source::Owned { base, .. } = &self.source else { return None };
        let is_so = base.family.facts().has_no_tls_on_sockets && self.manner.tls.is_none();
        is_so.then(|| base.product.to_string())
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Source {
    Embedded {
        settings: Vec<(String, String)>,
        /// What became of intents that are no setting.
        notes: Vec<String>,
    },
    Null,
    /// dbdyno starts it.
    Owned {
        base: Box<Base>,
        /// It has an option file, whose text is the variant's `config`.
        is_configured: bool,
        /// The intents that the text was rendered from.
        config: Option<Box<VariantConfig>>,
        engine: String,
    },
    External(Box<Endpoint>),
}

/// Checks all variants of a plan. An address is connected to, and its database claimed.
pub(crate) fn prepare(plan: &Plan, runtime: &Runtime) -> Result<Vec<Prepared>, ExitError> {
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for variant in &plan.variants {
        match prepare_one(plan, variant, runtime) {
            Ok(prepared) => all.push(prepared),
            // Others may lack their servers too; what is wrong with the plan is mended first.
            Err(ended) if ended.code == SERVER && !VariantKind::of(variant).is_address() => wrong.push(ended),
            Err(ended) => return Err(ended),
        }
    }
    if wrong.is_empty() { Ok(all) } else { Err(refusal(wrong)) }
}

/// One error of those of several variants; each reason once, with the variants that have it.
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

pub(crate) fn prepare_one(plan: &Plan, variant: &Variant, runtime: &Runtime) -> Result<Prepared, ExitError> {
    let engine = engine(variant);
    let of_variant = |code, error: String| ExitError::new(code, format!("variant {}: {error}", variant.name));
    let info = |driver: &str, server: String, config: String, external| VariantInfo {
        name: variant.name.clone(),
        driver: driver.to_owned(),
        server,
        config,
        external,
        factors: variant.factors.clone(),
        ..VariantInfo::default()
    };
    match VariantKind::of(variant) {
        VariantKind::Embedded => {
            let rendered = configs::for_embedded(variant).map_err(|error| of_variant(USAGE, error))?;
            let of_config = rendered.as_ref().map(|config| config.rendered.pragmas()).unwrap_or_default();
            let own = Family::EMBEDDED.own_settings(&variant.options);
            let settings: Vec<_> = of_config
                .into_iter()
                .filter(|(name, _)| !own.iter().any(|(own, _)| own == name))
                .chain(own.clone())
                .collect();
            let config = settings.iter().map(|(name, value)| format!("PRAGMA {name} = {value}\n")).collect();
            let title = format!("{} (embedded)", Family::EMBEDDED.facts().products[0]);
            let mut info = info(Family::EMBEDDED.name(), title, config, false);
            info.embedded = true;
            info.intents = rendered.as_ref().map(VariantConfig::asked).unwrap_or_default();
            let notes = rendered.map(|config| config.notes).unwrap_or_default();
            Ok(Prepared::in_process(Source::Embedded { settings, notes }, info))
        }
        VariantKind::Null => {
            let info = info("null", "null".to_owned(), String::new(), false);
            Ok(Prepared::in_process(Source::Null, info))
        }
        VariantKind::BaseDir(path) => {
            let base = Base::open(&path).map_err(|error| of_variant(SERVER, error.to_string()))?;
            owned(plan, variant, base, engine, info)
        }
        VariantKind::Named(name) => {
            let base = find_named(&name).map_err(|error| of_variant(SERVER, error.to_string()))?;
            owned(plan, variant, base, engine, info)
        }
        VariantKind::Address(text) => {
            let endpoint =
                reach(plan, variant, &text, runtime).map_err(|ended| self::of_variant(variant, ended))?;
            let manner = endpoint.target.login().map(|login| login.manner.clone()).unwrap_or_default();
            let info = info(endpoint.target.name(), text, String::new(), true);
            let source = Source::External(Box::new(endpoint));
            Ok(Prepared { source, info, manner, certificates: None })
        }
    }
}

fn owned(
    plan: &Plan,
    variant: &Variant,
    base: Base,
    engine: String,
    info: impl Fn(&str, String, String, bool) -> VariantInfo,
) -> Result<Prepared, ExitError> {
    let refuse = |message: String| ExitError::usage(format!("variant {}: {message}", variant.name));
    let title = base.title.clone();
    // The plan's word for it; the folder after the name may be a link to one that is called
    // otherwise.
    let folder = match VariantKind::of(variant) {
        VariantKind::Named(name) => name,
        _ => base.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    check_options(variant, base.family)?;
    // What the server will be given is a copy; its faults are reported with the name of the user's
    // file.
    let own = configs::own_file(variant, &base).map_err(refuse)?;
    let rendered = configs::for_base(variant, &base, own.as_ref()).map_err(refuse)?.map(Box::new);
    let settings = own.as_ref().map(|own| &own.settings[..]).unwrap_or_default();
    let configured = Configured { own: settings, config: rendered.as_deref() };
    preflight::check_connections(plan, variant, &base, &configured).map_err(refuse)?;
    if let Some(doubt) = preflight::check_engine(variant, &base, &configured).map_err(refuse)? {
        terminal::warning(&format!("variant {}: {doubt}", variant.name));
    }
    let is_configured = own.is_some() || rendered.is_some();
    let own = own.map(|own| own.text).unwrap_or_default();
    let config = rendered.as_ref().map_or(own, |rendered| rendered.text.clone());
    let (tls, certificates) = owned_tls(variant, &base, &config).map_err(refuse)?;
    let intents = rendered.as_ref().map(|rendered| rendered.asked()).unwrap_or_default();
    let driver = base.family.name();
    let manner = base.family.manner(&variant.options).map_err(refuse)?;
    let manner = Manner { limits: limits(plan), tls, ..manner };
    let source = Source::Owned { base: Box::new(base), is_configured, config: rendered, engine };
    let info = VariantInfo { intents, ..info(driver, format!("{title} ({folder})"), config, false) };
    Ok(Prepared { source, info, manner, certificates })
}

/// Refuses options that the family of the variant's server does not have.
fn check_options(variant: &Variant, family: Family) -> Result<(), ExitError> {
    match options_problem(variant, family.facts()) {
        Some((_, message)) => Err(ExitError::usage(format!("variant `{}` {message}", variant.name))),
        None => Ok(()),
    }
}

/// TLS to a server that dbdyno starts, with certificates that are made for it, unless the plan or
/// the server's option file names others.
fn owned_tls(
    variant: &Variant,
    base: &Base,
    option_file: &str,
) -> Result<(Option<Tls>, Option<Certificates>), String> {
    let settings = variant.tls.clone().filter(|settings| settings.mode != TlsMode::Off);
    let Some(settings) = settings else { return Ok((None, None)) };
    let names_files = [&settings.ca, &settings.cert, &settings.key].iter().any(|file| file.is_some());
    let line_names = |line: &str| line.trim_start().replace('-', "_").starts_with("ssl_cert");
    let family = base.family;
    if family.facts().only_own_certificates && (names_files || option_file.lines().any(line_names)) {
        return Err(format!(
            "dbdyno makes the certificates of a {} that it starts, and checks them; leave ca, cert and key out of \
             tls, and ssl_cert_file out of own_config",
            base.product
        ));
    }
    if names_files || option_file.lines().any(line_names) {
        return Ok((Tls::load(settings).map_err(|error| error.to_string())?, None));
    }
    let certificates = Certificates::new(family.facts().superuser).map_err(|error| error.to_string())?;
    let tls = Tls::of_pem(settings.mode, &certificates.for_client()).map_err(|error| error.to_string())?;
    Ok((tls, Some(certificates)))
}

/// Logs in to an address and makes sure that its database is dbdyno's to fill, unless nothing will
/// be filled.
fn reach(plan: &Plan, variant: &Variant, text: &str, runtime: &Runtime) -> Result<Endpoint, ExitError> {
    let (family, options, database) = login(variant, text)?;
    let options = options.with_limits(limits(plan));
    let mut endpoint = family.target(options.clone()).endpoint(&engine(variant), false);
    runtime.block_on(async {
        // Existing tables must be there, in a database that stays whose it is.
        let is_ours = !plan.workload.use_existing_tables();
        if is_ours {
            family.claim(&options, &database).await.map_err(ExitError::server)?;
        }
        endpoint.identify(engine_of(variant).is_some(), is_ours).await.map_err(ExitError::server)?;
        check_room(plan, &endpoint).await
    })?;
    if let Some(warning) = foreign_warning(&variant.name, &endpoint) {
        terminal::warning(&warning);
    }
    Ok(endpoint)
}

/// What to know of a server that is none of the products: which it is, and what it cannot do.
fn foreign_warning(variant: &str, endpoint: &Endpoint) -> Option<String> {
    let foreign = endpoint.capabilities.foreign.as_ref().filter(|foreign| !foreign.is_programmed)?;
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

/// The login at an address with its database, as far as the plan, its files and its variables say:
/// no one is connected to.
fn login(variant: &Variant, text: &str) -> Result<(Family, Options, String), ExitError> {
    let (family, parsed) = address::parse(text).map_err(ExitError::usage)?;
    let (options, warnings) =
        credentials(family, parsed, variant.password_env.as_deref(), variant.option_file.as_deref())
            .map_err(ExitError::usage)?;
    for warning in warnings {
        terminal::warning(&warning);
    }
    let options = with_manner(variant, family, text, options)?;
    match options.database.clone() {
        Some(database) => Ok((family, options, database)),
        None => Err(ExitError::usage(format!("{text} names no database: let it end in /DATABASE"))),
    }
}

/// Refuses an address whose login is wrong or lacks files, without connecting to it.
pub(crate) fn check_login(variant: &Variant) -> Result<(), ExitError> {
    let text = variant.address.as_deref().unwrap_or_default();
    match login(variant, text) {
        Ok(_) => Ok(()),
        Err(ended) => Err(of_variant(variant, ended)),
    }
}

fn of_variant(variant: &Variant, ended: ExitError) -> ExitError {
    let message = ended.message.map(|message| format!("variant {}: {message}", variant.name));
    ExitError { code: ended.code, message }
}

/// How long sessions wait for their server. Small questions have a minute at most, and a second at
/// least: their time does not depend on the data.
pub(crate) fn limits(plan: &Plan) -> TimeLimits {
    let default = TimeLimits::default();
    let least = Duration::from_secs(1);
    TimeLimits {
        login: plan.load.login_timeout.0,
        answer: plan.host.statement_timeout.0.clamp(least, default.answer),
        ..default
    }
}

/// The server at the address of a variant, for a login that another host has checked.
///
/// # Errors
/// Files that the plan names and that this host does not have.
pub(crate) fn endpoint_for(
    plan: &Plan,
    variant: &Variant,
    user: &str,
    password: Secret,
) -> Result<Endpoint, ExitError> {
    let text = variant.address.as_deref().unwrap_or_default();
    let (family, options) = address::parse(text).map_err(ExitError::usage)?;
    let options = Options { user: user.to_owned(), password, ..options };
    let options = with_manner(variant, family, text, options)?.with_limits(limits(plan));
    Ok(family.target(options).endpoint(&engine(variant), false))
}

/// A login with the variant's words on connections; reads the files that they name.
fn with_manner(
    variant: &Variant,
    family: Family,
    text: &str,
    options: Options,
) -> Result<Options, ExitError> {
    let said = variant.tls.clone();
    let asked = tls_settings(family, text, said, variant.option_file.as_deref()).map_err(ExitError::usage)?;
    let tls = Tls::load(asked.unwrap_or(TlsSettings { mode: TlsMode::Off, ..TlsSettings::default() }))
        .map_err(ExitError::usage)?;
    let manner = family.manner(&variant.options).map_err(ExitError::usage)?;
    Ok(options.with_manner(Manner { tls, ..manner }))
}

/// Refuses a server that takes fewer connections than the plan opens, or no rows as the plan sends
/// them.
async fn check_room(plan: &Plan, endpoint: &Endpoint) -> Result<(), ExitError> {
    if !endpoint.capabilities.prepares()
        && let Some((workload, _)) = plan.workload.iter().find(|(_, options)| options.needs().prepares)
    {
        return Err(ExitError::usage(format!(
            "the server has no prepared statements of each connection's own, which {workload} sends; set protocol = \"text\" \
             there (pgbench: protocol = \"simple\", sysbench: db_ps_mode = \"disable\")"
        )));
    }
    let mut session = endpoint.connect().await.map_err(ExitError::server)?;
    let room = limits::check_server(&mut session, plan).await;
    let takes = takes_streams(plan, endpoint.capabilities.row_stream, &mut session).await;
    session.close().await;
    room.map_err(ExitError::server)?;
    match takes {
        Ok(true) => Ok(()),
        Ok(false) => Err(ExitError::server(NO_STREAMS)),
        Err(error) => Err(ExitError::server(error)),
    }
}
