//! Writes runs as Parquet files in one folder, for DuckDB, pandas and similar tools: observations,
//! comparisons, failures, seconds of the load and of the device, and histograms.
//!
//! Each file has the same first columns, so that the files of many runs can be read as one table
//! and joined. docs/reference/parquet.md documents the columns.

mod file;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dbdyno_analyse::{Findings, OperationHistogram};

use self::file::{Table, TableFile};
use crate::Error;

pub struct RunRows(Vec<Table>);

impl RunRows {
    pub fn of(findings: &Findings, histograms: &[OperationHistogram]) -> Self {
        Self(tables::all(findings, histograms))
    }
}

/// Writes all files that have a row into `folder`, which it makes if needed. It returns their
/// paths.
///
/// # Errors
/// [`Error::Parquet`] names the file that cannot be written.
pub fn parquet(runs: impl IntoIterator<Item = RunRows>, folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |path: &Path, reason: String| Error::Parquet { path: path.to_owned(), reason };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error.to_string()))?;
    let mut files: BTreeMap<PathBuf, TableFile> = BTreeMap::new();
    for table in runs.into_iter().flat_map(|rows| rows.0).filter(|table| !table.columns.is_empty()) {
        let path = folder.join(format!("{}.parquet", table.name));
        let written = match files.get_mut(&path) {
            Some(file) => file.add(table),
            None => TableFile::create(&path, table).map(|file| drop(files.insert(path.clone(), file))),
        };
        written.map_err(|error| failed(&path, error.to_string()))?;
    }
    let mut paths = Vec::new();
    for (path, file) in files {
        file.close().map_err(|error| failed(&path, error.to_string()))?;
        paths.push(path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

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
        let rows = |findings| [RunRows::of(&findings, &[])];
        let paths = parquet(rows(fixture::with_blocks(2)), &place).unwrap();
        assert_eq!(paths.len(), 5, "without histograms there is no file of them");
        assert!(paths.iter().all(|path| std::fs::read(path).unwrap().starts_with(b"PAR1")));
        let error = parquet(rows(fixture::findings()), &paths[0]).unwrap_err().to_string();
        assert!(error.contains(".parquet cannot be written: "), "{error}");
    }

    /// Returns the values in one text column, in the order of the file's rows.
    fn texts(path: &Path, column: &str) -> Vec<String> {
        let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap());
        let of_row = |row: parquet::record::Row| {
            let field = row.get_column_iter().find(|(name, _)| *name == column).unwrap().1.to_string();
            field.trim_matches('"').to_owned()
        };
        rows.map(of_row).collect()
    }

    #[test]
    fn the_files_of_many_runs_hold_the_rows_of_each() {
        let folder = tempfile::tempdir().unwrap();
        let name = |number: usize| format!("night-{number:04}");
        let run = |number: usize| {
            let mut findings = fixture::with_blocks(2);
            findings.run.run_id = name(number);
            RunRows::of(&findings, &[])
        };
        let one = parquet([run(0)], &folder.path().join("one")).unwrap();
        let observations = one.iter().position(|path| path.ends_with("observations.parquet")).unwrap();
        // The file has more rows than one group takes.
        let runs = 2 * (1 << 17) / texts(&one[observations], "run").len() + 3;
        let all = parquet((0..runs).map(run), &folder.path().join("all")).unwrap();
        for (one, all) in one.iter().zip(&all) {
            let count = texts(one, "run").len();
            let expected: Vec<String> = (0..runs).flat_map(|number| vec![name(number); count]).collect();
            assert!(texts(all, "run") == expected, "{}", all.display());
            let steps = texts(one, "step");
            let steps: Vec<&String> = std::iter::repeat_n(&steps, runs).flatten().collect();
            assert!(texts(all, "step").iter().eq(steps), "{}", all.display());
        }
        let groups = SerializedFileReader::new(std::fs::File::open(&all[observations]).unwrap())
            .unwrap()
            .num_row_groups();
        assert_eq!(groups, 3);
    }
}
