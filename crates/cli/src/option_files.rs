//! The option files that servers are started with: kept in the run, so that all of its cells are told the same.

use std::path::{Path, PathBuf};

/// Folder in the run directory.
pub(crate) const FOLDER: &str = "configs";
/// Ending of the option files of MariaDB and MySQL.
pub(crate) const MY_CNF: &str = "cnf";
/// The same of PostgreSQL.
pub(crate) const CONF: &str = "conf";

/// Writes a variant's option file into `folder`.
///
/// # Errors
/// One sentence.
pub(crate) fn write(folder: &Path, variant: &str, ending: &str, text: &str) -> Result<PathBuf, String> {
    let path = folder.join(format!("{variant}.{ending}"));
    // A server that runs may read its file once more.
    if std::fs::read_to_string(&path).is_ok_and(|there| there == text) {
        return Ok(path);
    }
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| format!("cannot write the option file {}: {error}", path.display()))?;
    Ok(path)
}
