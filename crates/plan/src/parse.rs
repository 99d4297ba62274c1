//! Reads a plan: text to [`Plan`], with every mistake named by file, line and column.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::de::Deserializer;

use crate::document::{Document, Texts};
use crate::error::Error;
use crate::explain::explain;
use crate::{Plan, Settle, check};

/// The plan that runs when none is given: SQLite, two variants, about a minute.
pub const QUICKSTART: &str = include_str!("quickstart.toml");

/// Reads and checks the plan file at `path`. Relative paths in it (`config`, `my_cnf`, `postgresql_conf`, `basedir`,
/// `option_file`, `server_public_key`, `data_dir`, the files of `tls`) become absolute, counted from the plan's folder.
///
/// # Errors
/// [`Error::Read`] when the file cannot be read, [`Error::Invalid`] when the plan is wrong.
pub fn read(path: &Path) -> Result<Plan, Error> {
    read_with(path, &[])
}

/// [`read`] with overrides, see [`parse_with`]. Relative paths in overrides count from the plan's folder too.
///
/// # Errors
/// As [`read`].
pub fn read_with(path: &Path, overrides: &[(String, String)]) -> Result<Plan, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let mut plan = parse_with(&text, &path.display().to_string(), overrides)?;
    let absolute = std::path::absolute(path).map_err(failed)?;
    if let Some(folder) = absolute.parent() {
        resolve_paths(&mut plan, folder);
    }
    Ok(plan)
}

/// Parses and checks a plan's text. `origin` names it in errors, usually the file's path. Paths stay as written.
///
/// # Errors
/// [`Error::Invalid`].
pub fn parse(text: &str, origin: &str) -> Result<Plan, Error> {
    parse_with(text, origin, &[])
}

/// [`parse`] with overrides: pairs of a dotted path (`blocks`, `workload.insert-benchmark.clients`,
/// `variant.NAME.my_cnf`) and a value, which is TOML (`4`, `[100, 500]`) or, when it is none, a text (`30s`).
///
/// # Errors
/// [`Error::Invalid`]; a mistake in an override is shown at `--set KEY`.
pub fn parse_with(text: &str, origin: &str, overrides: &[(String, String)]) -> Result<Plan, Error> {
    let texts = Texts::new(text, origin, overrides);
    let document = Document::new(&texts)?;
    let mut plan = Plan::deserialize(Deserializer::from(document.root.clone()))
        .map_err(|error| texts.error(error.span(), explain(error.message())))?;
    if let Some(problem) = check::first_problem(&plan) {
        return Err(Error::Invalid { place: document.place_of(&problem.path), message: problem.message });
    }
    plan.add_again();
    spell_out(&mut plan);
    Ok(plan)
}

/// Short forms and what is left out are written in the long form, so that a record says how a run settled.
fn spell_out(plan: &mut Plan) {
    fn long<Short>(settling: Settle, settle: &mut Option<Settle>, settle_wait: &mut Option<Short>) {
        *settle = Some(settling);
        *settle_wait = None;
    }
    let workload = &mut plan.workload;
    if let Some(of) = &mut workload.insert_benchmark {
        long(of.settling(), &mut of.settle, &mut of.settle_wait);
    }
    if let Some(of) = &mut workload.oltp {
        long(of.settling(), &mut of.settle, &mut of.settle_wait);
    }
    if let Some(of) = &mut workload.microbenchmarks {
        long(of.settling(), &mut of.settle, &mut of.settle_wait);
    }
}

/// The JSON Schema of plan files, made from the types: what editors and other programs check plans with.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(Plan).to_value()
}

fn resolve_paths(plan: &mut Plan, folder: &Path) {
    let resolve = |path: &mut Option<PathBuf>| {
        if let Some(path) = path {
            *path = folder.join(&*path);
        }
    };
    resolve(&mut plan.host.data_dir);
    for variant in &mut plan.variants {
        if let Some(config) = &mut variant.config {
            config.resolve_paths(folder);
        }
        resolve(&mut variant.basedir);
        resolve(&mut variant.my_cnf);
        resolve(&mut variant.postgresql_conf);
        resolve(&mut variant.option_file);
        resolve(&mut variant.server_public_key);
        if let Some(tls) = &mut variant.tls {
            resolve(&mut tls.ca);
            resolve(&mut tls.cert);
            resolve(&mut tls.key);
        }
    }
}
