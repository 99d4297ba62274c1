//! Turns a plan's variants into things that can be started or reached, before anything runs: what is wrong with one of
//! them ends the command at once and not after an hour.

use std::path::PathBuf;

use dbdyno_drivers::mysql::{self, Options};
use dbdyno_drivers::{Endpoint, Session, Target, postgres};
use dbdyno_plan::{Plan, Variant, VariantKind};
use dbdyno_provision::{Base, BaseDir, Family, PgBase, address, credentials, external, find_named};
use dbdyno_record::VariantInfo;
use tokio::runtime::Runtime;

use crate::exit::{Ended, SERVER, USAGE};
use crate::{limits, terminal};

/// A variant that can run.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) source: Source,
    pub(crate) info: VariantInfo,
}

/// Where a variant's database comes from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Sqlite {
        pragmas: Vec<(String, String)>,
    },
    Null,
    /// dbdyno starts it.
    Owned {
        base: Box<BaseDir>,
        my_cnf: Option<PathBuf>,
        engine: String,
    },
    OwnedPostgres {
        base: Box<PgBase>,
        conf: Option<PathBuf>,
    },
    /// Somebody else runs it.
    External {
        options: Options,
        engine: String,
    },
    ExternalPostgres {
        options: Options,
    },
}

const DEFAULT_ENGINE: &str = "innodb";

/// Checks all variants of a plan. An address is connected to, and its database claimed.
///
/// # Errors
/// The first variant that cannot run, with its name.
pub(crate) fn prepare(plan: &Plan, runtime: &Runtime) -> Result<Vec<Prepared>, Ended> {
    plan.variants.iter().map(|variant| prepare_one(plan, variant, runtime)).collect()
}

fn prepare_one(plan: &Plan, variant: &Variant, runtime: &Runtime) -> Result<Prepared, Ended> {
    let engine = variant.engine.clone().unwrap_or_else(|| DEFAULT_ENGINE.to_owned()).to_lowercase();
    let of_variant = |code, error: String| Ended::new(code, format!("variant {}: {error}", variant.name));
    let info = |driver: &str, server: String, config: String, external| VariantInfo {
        name: variant.name.clone(),
        driver: driver.to_owned(),
        server,
        config,
        external,
    };
    match variant.kind() {
        VariantKind::Sqlite => {
            let pragmas: Vec<_> = variant.pragmas.clone().into_iter().collect();
            let config = pragmas.iter().map(|(name, value)| format!("PRAGMA {name} = {value}\n")).collect();
            let info = info("sqlite", "SQLite (embedded)".to_owned(), config, false);
            Ok(Prepared { source: Source::Sqlite { pragmas }, info })
        }
        VariantKind::Null => {
            Ok(Prepared { source: Source::Null, info: info("null", "null".to_owned(), String::new(), false) })
        }
        VariantKind::BaseDir(path) => {
            let base = Base::open(&path).map_err(|error| of_variant(SERVER, error.to_string()))?;
            owned(variant, base, engine, info)
        }
        VariantKind::Named(name) => {
            let base = find_named(&name).map_err(|error| of_variant(SERVER, error.to_string()))?;
            owned(variant, base, engine, info)
        }
        VariantKind::Address(text) => {
            let (family, options) = reach(plan, variant, &text, runtime).map_err(|ended| Ended {
                code: ended.code,
                message: ended.message.map(|message| format!("variant {}: {message}", variant.name)),
            })?;
            let (driver, source) = match family {
                Family::Mysql => ("mysql", Source::External { options, engine }),
                Family::Postgres => ("postgres", Source::ExternalPostgres { options }),
            };
            Ok(Prepared { source, info: info(driver, text, String::new(), true) })
        }
    }
}

fn owned(
    variant: &Variant,
    base: Base,
    engine: String,
    info: impl Fn(&str, String, String, bool) -> VariantInfo,
) -> Result<Prepared, Ended> {
    let refuse = |message: String| Ended::new(USAGE, format!("variant {}: {message}", variant.name));
    let title = base.title();
    let folder = base.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (Variant { my_cnf, postgresql_conf, .. }, is_postgres) = (variant, matches!(base, Base::Postgres(_)));
    let misplaced = [
        ("my_cnf", my_cnf.is_some() && is_postgres, "say postgresql_conf"),
        ("engine", variant.engine.is_some() && is_postgres, "leave it out"),
        ("postgresql_conf", postgresql_conf.is_some() && !is_postgres, "say my_cnf"),
    ];
    if let Some((key, _, help)) = misplaced.into_iter().find(|(_, is_misplaced, _)| *is_misplaced) {
        return Err(refuse(format!("{key} is not for {title}; {help}")));
    }
    let config = match my_cnf.as_ref().or(postgresql_conf.as_ref()) {
        None => String::new(),
        Some(path) => std::fs::read_to_string(path).map_err(|error| {
            let key = if is_postgres { "postgresql_conf" } else { "my_cnf" };
            refuse(format!("cannot read {key} {}: {error}", path.display()))
        })?,
    };
    let (driver, source) = match base {
        Base::Mysql(base) => {
            ("mysql", Source::Owned { base: Box::new(base), my_cnf: my_cnf.clone(), engine })
        }
        Base::Postgres(base) => {
            ("postgres", Source::OwnedPostgres { base: Box::new(base), conf: postgresql_conf.clone() })
        }
    };
    Ok(Prepared { source, info: info(driver, format!("{title} ({folder})"), config, false) })
}

/// Logs in to an address and makes sure that its database is dbdyno's to fill.
fn reach(plan: &Plan, variant: &Variant, text: &str, runtime: &Runtime) -> Result<(Family, Options), Ended> {
    let (family, parsed) = address::parse(text).map_err(|error| Ended::new(USAGE, error))?;
    let (options, warnings) =
        credentials(family, parsed, variant.password_env.as_deref(), variant.option_file.as_deref())
            .map_err(|error| Ended::new(USAGE, error))?;
    for warning in warnings {
        terminal::warning(&warning);
    }
    let Some(database) = options.database.clone() else {
        return Err(Ended::new(USAGE, format!("{text} names no database: let it end in /DATABASE")));
    };
    runtime.block_on(async {
        match family {
            Family::Mysql => claim(&options, &database).await,
            Family::Postgres => external::claim_postgres(&options, &database)
                .await
                .map(|_| ())
                .map_err(|error| Ended::new(SERVER, error)),
        }?;
        check_room(plan, family, &options).await
    })?;
    Ok((family, options))
}

/// Refuses a server that takes fewer connections than the plan opens.
async fn check_room(plan: &Plan, family: Family, options: &Options) -> Result<(), Ended> {
    let (target, capabilities) = match family {
        Family::Mysql => (Target::Mysql(options.clone()), mysql::capabilities(DEFAULT_ENGINE, false)),
        Family::Postgres => (Target::Postgres(options.clone()), postgres::capabilities()),
    };
    let endpoint = Endpoint { target, capabilities };
    let mut session = endpoint.connect().await.map_err(|error| Ended::new(SERVER, error))?;
    let room = limits::check_server(&mut session, &endpoint.target, plan).await;
    session.close().await;
    room.map_err(|message| Ended::new(SERVER, message))
}

/// Claims a database of MariaDB or MySQL. It may not exist yet, so the first login goes without it.
async fn claim(options: &Options, database: &str) -> Result<(), Ended> {
    let endpoint = Endpoint {
        target: Target::Mysql(Options { database: None, ..options.clone() }),
        capabilities: mysql::capabilities(DEFAULT_ENGINE, false),
    };
    let mut session = endpoint.connect().await.map_err(|error| Ended::new(SERVER, error))?;
    let claimed = external::claim(&mut session, database).await;
    session.close().await;
    claimed.map(|_| ()).map_err(|error| Ended::new(SERVER, error))
}
