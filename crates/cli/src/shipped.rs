//! The plans that ship with dbdyno, and the files that they refer to. Both are the files of the
//! folder `plans`.

use std::path::{Path, PathBuf};

use dbdyno_plan::closest;

use crate::cache_file;
use crate::exit::ExitError;

/// Path below the plans' folder, and text.
type File = (&'static str, &'static str);

const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/plans.rs"));

pub(crate) fn file(name: &str) -> Result<File, ExitError> {
    let is_asked = |(path, _): &&File| *path == name || path.strip_suffix(".toml") == Some(name);
    FILES.iter().find(is_asked).copied().ok_or_else(|| unknown(name))
}

/// Returns name and text of each plan. Plans are in the folder itself, and the files that they
/// refer to are in folders below it.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let plans = FILES.iter().filter(|(path, _)| !path.contains('/'));
    plans.filter_map(|(path, text)| Some((path.strip_suffix(".toml")?, *text)))
}

fn unknown(name: &str) -> ExitError {
    let known: Vec<&str> = names().map(|(name, _)| name).collect();
    let suggestion =
        closest(name, &known).map_or_else(String::new, |suggestion| format!("did you mean {suggestion}? "));
    ExitError::usage(format!("no plan that ships is called {name:?}; {suggestion}`dbdyno plans` lists all"))
}

/// Writes all plans and the files that they refer to into the user's cache folder, and returns the
/// path of the plan of this name.
pub(crate) fn unpacked(name: &str) -> Result<PathBuf, ExitError> {
    let (path, _) = file(name)?;
    let cache = cache_file::folder("XDG_CACHE_HOME", ".cache");
    let folder = cache.unwrap_or_else(std::env::temp_dir).join("dbdyno/plans");
    let write = |(path, text): &File| {
        let file = folder.join(path);
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
        std::fs::write(file, text)
    };
    FILES.iter().try_for_each(write).map_err(|error| {
        let advice = "set XDG_CACHE_HOME to a folder of yours, or use dbdyno plans show";
        ExitError::machine(format!("cannot write the plans to {}: {error}; {advice}", folder.display()))
    })?;
    Ok(folder.join(path))
}
