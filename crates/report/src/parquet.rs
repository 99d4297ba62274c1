//! Writes runs as Parquet files in one folder, for DuckDB, pandas and similar tools: observations,
//! comparisons, failures, seconds of the load and of the device, and histograms.
//!
//! Each file has the same first columns, so that the files of many runs can be read as one table
//! and joined. docs/reference/parquet.md documents the columns.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dbdyno_analyse::tables::Key;
use dbdyno_analyse::{
    Agreement, Bound, Cause, Findings, OperationHistogram, RunSummary, StepFindings, StepRun, Validity,
    VariantStep, Verdict, tables as analyse_tables, workload_and_setup,
};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::Error;
use crate::csv::ColumnValue;

pub struct RunRows(Vec<ParquetTable>);

impl RunRows {
    pub fn of(findings: &Findings, histograms: &[OperationHistogram]) -> Self {
        Self(all(findings, histograms))
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
    let mut files: BTreeMap<PathBuf, ParquetFile> = BTreeMap::new();
    for table in runs.into_iter().flat_map(|rows| rows.0).filter(|table| !table.columns.is_empty()) {
        let path = folder.join(format!("{}.parquet", table.name));
        let written = match files.get_mut(&path) {
            Some(file) => file.add(table),
            None => ParquetFile::create(&path, table).map(|file| drop(files.insert(path.clone(), file))),
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

/// Number of rows from which on a row group is written. Readers can skip row groups, and share them
/// among their threads.
const GROUP_ROWS: usize = 1 << 17;

/// A table, column by column. All columns have the same length.
pub(crate) struct ParquetTable {
    pub(crate) name: &'static str,
    /// Names and values of the columns. The values in a column have one type.
    pub(crate) columns: Vec<(&'static str, Vec<ColumnValue>)>,
}

struct ParquetFile {
    writer: SerializedFileWriter<File>,
    /// Rows that are not in the file yet.
    waiting: ParquetTable,
}

impl ParquetTable {
    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, values)| values.len())
    }
}

impl ParquetFile {
    /// Makes the file. `first` has at least one row, which decides each column's type.
    pub(crate) fn create(path: &Path, first: ParquetTable) -> Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(File::create(path)?, schema(&first)?, Arc::new(properties))?;
        Ok(Self { writer, waiting: first })
    }

    pub(crate) fn add(&mut self, table: ParquetTable) -> Result<()> {
        for ((_, values), (_, more)) in self.waiting.columns.iter_mut().zip(table.columns) {
            values.extend(more);
        }
        if self.waiting.rows() >= GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    pub(crate) fn close(mut self) -> Result<()> {
        if self.waiting.rows() > 0 {
            self.write_group()?;
        }
        self.writer.close()?;
        Ok(())
    }

    fn write_group(&mut self) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        for (_, values) in &mut self.waiting.columns {
            let Some(mut writer) = group.next_column()? else { break };
            match &values[0] {
                ColumnValue::Text(_) => put::<ByteArrayType>(&mut writer, values, |value| match value {
                    ColumnValue::Text(text) => text.as_deref().map(ByteArray::from),
                    _ => None,
                })?,
                ColumnValue::Whole(_) => put::<Int64Type>(&mut writer, values, |value| match value {
                    ColumnValue::Whole(number) => *number,
                    _ => None,
                })?,
                ColumnValue::Number(_) => put::<DoubleType>(&mut writer, values, |value| match value {
                    ColumnValue::Number(number) => *number,
                    _ => None,
                })?,
                ColumnValue::Flag(_) => put::<BoolType>(&mut writer, values, |value| match value {
                    ColumnValue::Flag(flag) => *flag,
                    _ => None,
                })?,
            }
            writer.close()?;
            values.clear();
        }
        group.close()?;
        Ok(())
    }
}

fn schema(table: &ParquetTable) -> Result<TypePtr> {
    let field = |(name, values): &(&str, Vec<ColumnValue>)| {
        let (physical, logical) = match values[0] {
            ColumnValue::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ColumnValue::Whole(_) => (Physical::INT64, None),
            ColumnValue::Number(_) => (Physical::DOUBLE, None),
            ColumnValue::Flag(_) => (Physical::BOOLEAN, None),
        };
        let field = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        Ok(Arc::new(field.with_repetition(Repetition::OPTIONAL).build()?))
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder(table.name).with_fields(fields).build()?))
}

/// Writes a column: the values that are there, and whether each row has one.
fn put<D: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[ColumnValue],
    of: impl Fn(&ColumnValue) -> Option<D::T>,
) -> Result<()> {
    let values: Vec<Option<D::T>> = values.iter().map(of).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let known: Vec<D::T> = values.into_iter().flatten().collect();
    writer.typed::<D>().write_batch(&known, Some(&levels), None)?;
    Ok(())
}

pub(crate) fn all(findings: &Findings, histograms: &[OperationHistogram]) -> Vec<ParquetTable> {
    let tables = analyse_tables::Tables::of(findings);
    vec![
        observations(findings, &tables),
        comparisons(findings, &tables),
        failures(findings),
        seconds(findings),
        device_seconds(findings),
        of_histograms(findings, histograms),
    ]
}

impl ParquetTable {
    fn new(name: &'static str) -> Self {
        Self { name, columns: Vec::new() }
    }

    /// Adds a row: the columns that every file begins with, then these values. The first row
    /// decides which columns there are.
    fn push(
        &mut self,
        run: &RunSummary,
        key: [(&'static str, ColumnValue); 4],
        cells: impl IntoIterator<Item = (&'static str, ColumnValue)>,
    ) {
        let of_run = [("run", &run.run_id), ("plan", &run.name), ("started", &run.started)]
            .map(|(name, text)| (name, text.as_str().into()));
        for (at, (name, value)) in of_run.into_iter().chain(key).chain(cells).enumerate() {
            if at == self.columns.len() {
                self.columns.push((name, Vec::new()));
            }
            self.columns[at].1.push(value);
        }
    }
}

/// Returns the columns that say which workload, set-up, step and variant a row is about. `workload`
/// is a workload's name with its set-up, which gets its own column.
fn workload_columns(workload: &str, step: &str, variant: &str) -> [(&'static str, ColumnValue); 4] {
    let (workload, setup) = workload_and_setup(workload);
    of_key(workload, setup, step, variant)
}

fn of_key(
    workload: &str,
    setup: Option<&str>,
    step: &str,
    variant: &str,
) -> [(&'static str, ColumnValue); 4] {
    [
        ("workload", Some(workload).filter(|name| !name.is_empty()).into()),
        ("setup", setup.into()),
        ("step", step.into()),
        ("variant", variant.into()),
    ]
}

fn all_runs(findings: &Findings) -> impl Iterator<Item = (&str, &StepFindings, &VariantStep, &StepRun)> {
    findings.variants_of_steps().flat_map(|(workload, step, variant)| {
        variant.runs.iter().map(move |run| (workload.name.as_str(), step, variant, run))
    })
}

fn valid(run: &StepRun) -> (&'static str, ColumnValue) {
    ("valid", (run.validity == Validity::Valid).into())
}

fn block(run: &StepRun) -> (&'static str, ColumnValue) {
    ("block", run.block.into())
}

fn key_columns(key: &Key<'_>) -> [(&'static str, ColumnValue); 4] {
    [
        ("connections", key.connections.into()),
        ("block", key.block.into()),
        ("machine", key.machine.into()),
        ("source", key.source.name().into()),
    ]
}

fn observations(findings: &Findings, tables: &analyse_tables::Tables<'_>) -> ParquetTable {
    let mut rows = ParquetTable::new("observations");
    for one in &tables.observations {
        let columns = [
            ("valid", one.validity.map(|validity| *validity == Validity::Valid).into()),
            ("state", one.validity.map(Validity::state).into()),
            ("metric", one.metric.as_ref().into()),
            ("unit", one.unit.into()),
            ("value", one.value.into()),
        ];
        let key = &one.key;
        let columns = key_columns(key).into_iter().chain(columns);
        rows.push(&findings.run, of_key(key.workload, key.setup, key.step, key.variant), columns);
    }
    rows
}

fn comparisons(findings: &Findings, tables: &analyse_tables::Tables<'_>) -> ParquetTable {
    let mut rows = ParquetTable::new("comparisons");
    for one in &tables.comparisons {
        let columns = [
            ("base", one.base.into()),
            ("metric", one.metric.into()),
            ("ratio", one.ratio.into()),
            ("bound", one.bound.map(Bound::name).into()),
            ("low", one.interval.map(|interval| interval.low).into()),
            ("high", one.interval.map(|interval| interval.high).into()),
            ("p", one.p().into()),
            ("verdict", one.verdict.map(Verdict::word).into()),
            ("cause", one.cause.map(Cause::name).into()),
            ("agreement", one.agreement.map(Agreement::name).into()),
        ];
        let key = &one.key;
        let columns = key_columns(key).into_iter().chain(columns);
        rows.push(&findings.run, of_key(key.workload, key.setup, key.step, key.variant), columns);
    }
    rows
}

/// Returns the cells that failed. A cell that did not come to a step has no row in any other file.
fn failures(findings: &Findings) -> ParquetTable {
    let mut rows = ParquetTable::new("failures");
    for failure in &findings.failures {
        let (workload, setup) = workload_and_setup(&failure.workload);
        let columns = [("block", failure.block.into()), ("message", failure.message.as_str().into())];
        let key = [
            ("workload", workload.into()),
            ("setup", setup.into()),
            ("step", None::<&str>.into()),
            ("variant", failure.variant.as_str().into()),
        ];
        rows.push(&findings.run, key, columns);
    }
    rows
}

fn seconds(findings: &Findings) -> ParquetTable {
    let mut rows = ParquetTable::new("seconds");
    for (workload, step, variant, run) in all_runs(findings) {
        for point in &run.seconds {
            let columns = [
                block(run),
                valid(run),
                ("kind", point.kind.as_str().into()),
                ("second", point.second.into()),
                ("rate", point.rate.into()),
                ("service_max_us", point.service_max_us.into()),
                ("response_max_us", point.response_max_us.into()),
            ];
            rows.push(&findings.run, workload_columns(workload, &step.name, &variant.variant), columns);
        }
    }
    rows
}

fn device_seconds(findings: &Findings) -> ParquetTable {
    let mut rows = ParquetTable::new("device_seconds");
    for (workload, step, variant, run) in all_runs(findings) {
        for second in &run.device_seconds {
            let columns = [
                block(run),
                valid(run),
                ("second", second.second.into()),
                ("read_kib_per_second", second.read_kib_per_second.into()),
                ("written_kib_per_second", second.written_kib_per_second.into()),
                ("await_ms", second.await_ms.into()),
                ("queue_depth", second.queue_depth.into()),
            ];
            rows.push(&findings.run, workload_columns(workload, &step.name, &variant.variant), columns);
        }
    }
    rows
}

/// Returns one row per range of times, for each histogram.
fn of_histograms(findings: &Findings, histograms: &[OperationHistogram]) -> ParquetTable {
    let mut rows = ParquetTable::new("histograms");
    for histogram in histograms {
        for (from_us, to_us, count) in &histogram.counts {
            let columns = [
                ("block", histogram.block.into()),
                ("kind", histogram.kind.as_str().into()),
                ("clock", histogram.clock.into()),
                ("from_us", (*from_us).into()),
                ("to_us", (*to_us).into()),
                ("count", (*count).into()),
            ];
            rows.push(
                &findings.run,
                workload_columns(&histogram.workload, &histogram.step, &histogram.variant),
                columns,
            );
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;
    use crate::fixture;

    const DOCUMENT: &str = include_str!("../../../docs/reference/parquet.md");

    #[test]
    fn every_file_and_column_is_documented() {
        for table in all(&fixture::findings(), &[]) {
            assert!(DOCUMENT.contains(&format!("`{}.parquet`", table.name)), "{}", table.name);
            for (column, _) in &table.columns {
                assert!(DOCUMENT.contains(&format!("`{column}`")), "{column} of {}", table.name);
            }
        }
    }

    #[test]
    fn files_are_written_into_a_new_folder_and_a_file_of_its_name_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let new_folder = folder.path().join("a/b");
        let rows = |findings| [RunRows::of(&findings, &[])];
        let paths = parquet(rows(fixture::with_blocks(2)), &new_folder).unwrap();
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
