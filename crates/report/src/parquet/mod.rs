//! A run as Parquet files in one folder, for DuckDB, pandas and their like: seconds, histograms, figures and steps.
//!
//! Each file has the same first columns, so that the files of many runs can be read as one table
//! and joined. Columns are documented in docs/reference/parquet.md.

mod file;
mod tables;

use std::path::{Path, PathBuf};

use dbdyno_analyse::{Findings, OperationHistogram};

use self::file::write;
use crate::Error;

/// Writes all files that have a row into `folder`, which is made where it is not there. Returns their paths.
///
/// # Errors
/// [`Error::Parquet`] with the file that cannot be written.
pub fn parquet(
    findings: &Findings,
    histograms: &[OperationHistogram],
    folder: &Path,
) -> Result<Vec<PathBuf>, Error> {
    let failed = |path: &Path, reason: String| Error::Parquet { path: path.to_owned(), reason };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error.to_string()))?;
    let mut paths = Vec::new();
    for table in tables::all(findings, histograms).into_iter().filter(|table| !table.columns.is_empty()) {
        let path = folder.join(format!("{}.parquet", table.name));
        write(&table, &path).map_err(|error| failed(&path, error.to_string()))?;
        paths.push(path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    const DOCUMENT: &str = include_str!("../../../../docs/reference/parquet.md");

    #[test]
    fn every_file_and_column_is_documented() {
        for table in tables::all(&fixture::findings(), &[]) {
            assert!(DOCUMENT.contains(&format!("`{}.parquet`", table.name)), "{}", table.name);
            for (column, _) in &table.columns {
                assert!(DOCUMENT.contains(&format!("`{column}`")), "{column} of {}", table.name);
            }
        }
    }

    #[test]
    fn files_are_written_into_a_new_folder_and_a_file_in_its_place_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a/b");
        let paths = parquet(&fixture::with_blocks(2), &[], &place).unwrap();
        assert_eq!(paths.len(), 4, "without histograms there is no file of them");
        assert!(paths.iter().all(|path| std::fs::read(path).unwrap().starts_with(b"PAR1")));
        let error = parquet(&fixture::findings(), &[], &paths[0]).unwrap_err().to_string();
        assert!(error.contains("steps.parquet"), "{error}");
    }
}
