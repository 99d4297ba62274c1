//! Writes one table of many runs as one Parquet file. Columns may be empty in any row, and are
//! compressed with Snappy.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::value::Value;

/// Number of rows from which on a group is written. Readers skip groups, and share them out to
/// their threads.
const GROUP_ROWS: usize = 1 << 17;

/// A table, column by column. All columns have the same length.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Names and values of the columns. The values in a column have one type.
    pub(super) columns: Vec<(&'static str, Vec<Value>)>,
}

pub(super) struct TableFile {
    writer: SerializedFileWriter<File>,
    /// Rows that are not in the file yet.
    waiting: Table,
}

impl Table {
    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, values)| values.len())
    }
}

impl TableFile {
    /// Makes the file. `first` has at least one row, which decides each column's type.
    pub(super) fn create(path: &Path, first: Table) -> Result<Self> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(File::create(path)?, schema(&first)?, Arc::new(properties))?;
        Ok(Self { writer, waiting: first })
    }

    pub(super) fn add(&mut self, table: Table) -> Result<()> {
        for ((_, values), (_, more)) in self.waiting.columns.iter_mut().zip(table.columns) {
            values.extend(more);
        }
        if self.waiting.rows() >= GROUP_ROWS { self.write_group() } else { Ok(()) }
    }

    pub(super) fn close(mut self) -> Result<()> {
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
                Value::Text(_) => put::<ByteArrayType>(&mut writer, values, |value| match value {
                    Value::Text(text) => text.as_deref().map(ByteArray::from),
                    _ => None,
                })?,
                Value::Whole(_) => put::<Int64Type>(&mut writer, values, |value| match value {
                    Value::Whole(number) => *number,
                    _ => None,
                })?,
                Value::Number(_) => put::<DoubleType>(&mut writer, values, |value| match value {
                    Value::Number(number) => *number,
                    _ => None,
                })?,
                Value::Flag(_) => put::<BoolType>(&mut writer, values, |value| match value {
                    Value::Flag(flag) => *flag,
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

fn schema(table: &Table) -> Result<TypePtr> {
    let field = |(name, values): &(&str, Vec<Value>)| {
        let (physical, logical) = match values[0] {
            Value::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Value::Whole(_) => (Physical::INT64, None),
            Value::Number(_) => (Physical::DOUBLE, None),
            Value::Flag(_) => (Physical::BOOLEAN, None),
        };
        let field = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        Ok(Arc::new(field.with_repetition(Repetition::OPTIONAL).build()?))
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder(table.name).with_fields(fields).build()?))
}

/// Writes a column: the values that are there, and for each row whether it has one.
fn put<D: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[Value],
    of: impl Fn(&Value) -> Option<D::T>,
) -> Result<()> {
    let values: Vec<Option<D::T>> = values.iter().map(of).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let known: Vec<D::T> = values.into_iter().flatten().collect();
    writer.typed::<D>().write_batch(&known, Some(&levels), None)?;
    Ok(())
}
