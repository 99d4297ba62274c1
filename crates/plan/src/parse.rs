//! Reads a plan: it turns text into a [`Plan`] and names every mistake by file, line and column.

use std::path::Path;

use dbdyno_model::{Published, PublishedFigures};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeValue, Deserializer};

use crate::check::figure_problem;
use crate::document::{Document, Texts};
use crate::error::Error;
use crate::explain::{explain, unknown_key};
use crate::setup::{name_parts, take_workloads};
use crate::variant_options::add_control;
use crate::variant_options::each_file;
use crate::workload::Named;
use crate::{Kinds, Plan, TableError, WorkloadTable, Workloads, check};

/// The plan that runs when none is given. It compares two variants of SQLite in about a minute.
pub const QUICKSTART: &str = include_str!("quickstart.toml");

/// Reads and checks the plan file at `path`, whose workloads are of `kinds`, with overrides as in
/// [`parse_with`]. Relative paths in it and in overrides (`config`, `own_config`, `basedir`,
/// `option_file`, `data_dir`, the files of `tls` and of `options`) become absolute, counted from
/// the plan's folder.
pub fn read_with(path: &Path, overrides: &[(String, String)], kinds: Kinds<'_>) -> Result<Plan, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let mut plan = parse_with(&text, &path.display().to_string(), overrides, kinds)?;
    let absolute = std::path::absolute(path).map_err(failed)?;
    if let Some(folder) = absolute.parent() {
        resolve_paths(&mut plan, folder);
    }
    if let Some(Published::File(path)) = &plan.report.published {
        let figures = read_figures(path)?;
        plan.report.published = Some(Published::Figures(Box::new(figures)));
    }
    Ok(plan)
}

/// Parses and checks a plan's text, whose workloads are of `kinds`. `origin` names it in errors,
/// and is usually the file's path. Paths stay as written. An override is a pair: a dotted path
/// (`blocks`, `workload.NAME.KEY`, `variant.NAME.own_config`) and a value. The value is TOML (`4`,
/// `[100, 500]`) or, where it is not, a text (`30s`).
pub fn parse_with(
    text: &str,
    origin: &str,
    overrides: &[(String, String)],
    kinds: Kinds<'_>,
) -> Result<Plan, Error> {
    let texts = Texts::new(text, origin, overrides);
    let document = Document::new(&texts)?;
    let explained = |error: toml::de::Error| texts.error(error.span(), explain(error.message(), kinds));
    let mut root = document.root.clone();
    let tables = take_workloads(root.get_mut());
    let mut plan = Plan::deserialize(Deserializer::from(root)).map_err(explained)?;
    plan.workload = read_workloads(tables, kinds, &texts)?;
    if let Some(problem) = check::first_problem(&plan, kinds) {
        let location = document.location_of(&document.as_written(&problem.path));
        return Err(Error::Invalid { location, message: problem.message });
    }
    add_control(&mut plan);
    plan.workload.iter_mut().for_each(|options| options.spell_out());
    Ok(plan)
}

fn read_workloads(
    tables: Vec<(Spanned<String>, Spanned<DeValue<'_>>)>,
    kinds: Kinds<'_>,
    texts: &Texts<'_>,
) -> Result<Workloads, Error> {
    let mut all: Vec<(usize, Named)> = Vec::new();
    for (name, table) in tables {
        let (workload, _) = name_parts(name.get_ref());
        let Some(place) = kinds.iter().position(|kind| kind.name() == workload) else {
            let known: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
            return Err(texts.error(Some(name.span()), unknown_key(workload, &known)));
        };
        let options = kinds[place].read(WorkloadTable::new(table));
        let explained = |TableError(error)| texts.error(error.span(), explain(error.message(), kinds));
        all.push((place, (name.into_inner(), options.map_err(explained)?)));
    }
    all.sort_by_key(|(place, _)| *place);
    Ok(Workloads::new(all.into_iter().map(|(_, workload)| workload).collect()))
}

/// Reads the published figures from a file.
fn read_figures(path: &Path) -> Result<PublishedFigures, Error> {
    let text =
        std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let origin = path.display().to_string();
    let texts = Texts::new(&text, &origin, &[]);
    let figures: PublishedFigures =
        toml::from_str(&text).map_err(|error| texts.error(error.span(), explain(error.message(), &[])))?;
    match figure_problem(&figures) {
        Some(message) => Err(texts.error(None, message)),
        None => Ok(figures),
    }
}

fn resolve_paths(plan: &mut Plan, folder: &Path) {
    each_file(plan, |path| *path = folder.join(&*path));
    if let Some(path) = &mut plan.host.data_dir {
        *path = folder.join(&*path);
    }
    if let Some(Published::File(path)) = &mut plan.report.published {
        *path = folder.join(&*path);
    }
}
