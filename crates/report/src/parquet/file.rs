//! One table as one Parquet file: columns that may be empty in any row, compressed by Snappy.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

/// A file's worth of rows, column by column; all columns are of one length, and there is at least one row.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The values of a column are of one type.
    pub(super) columns: Vec<(&'static str, Vec<Value>)>,
}

pub(super) enum Value {
    Text(Option<String>),
    Whole(Option<i64>),
    Number(Option<f64>),
    Flag(Option<bool>),
}

pub(super) fn write(table: &Table, path: &Path) -> Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema(table)?, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, values) in &table.columns {
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
    }
    group.close()?;
    writer.close()?;
    Ok(())
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

/// The values that are there, and for each row whether one is.
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
