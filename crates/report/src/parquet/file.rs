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

/// A file's worth of rows, column by column; all columns are of one length.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: Vec<(&'static str, Column)>,
}

pub(super) enum Column {
    Text(Vec<Option<String>>),
    Whole(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
}

pub(super) fn write(table: &Table, path: &Path) -> Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema(table)?, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (_, column) in &table.columns {
        let Some(mut writer) = group.next_column()? else { break };
        match column {
            Column::Text(values) => {
                put::<ByteArrayType, _>(&mut writer, values, |text| ByteArray::from(text.as_str()))?;
            }
            Column::Whole(values) => put::<Int64Type, _>(&mut writer, values, |value| *value)?,
            Column::Number(values) => put::<DoubleType, _>(&mut writer, values, |value| *value)?,
            Column::Flag(values) => put::<BoolType, _>(&mut writer, values, |value| *value)?,
        }
        writer.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn schema(table: &Table) -> Result<TypePtr> {
    let field = |(name, column): &(&str, Column)| {
        let (physical, logical) = match column {
            Column::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Column::Whole(_) => (Physical::INT64, None),
            Column::Number(_) => (Physical::DOUBLE, None),
            Column::Flag(_) => (Physical::BOOLEAN, None),
        };
        let field = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        Ok(Arc::new(field.with_repetition(Repetition::OPTIONAL).build()?))
    };
    let fields = table.columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder(table.name).with_fields(fields).build()?))
}

/// The values that are there, and for each row whether one is.
fn put<D: DataType, T>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[Option<T>],
    of: impl Fn(&T) -> D::T,
) -> Result<()> {
    let known: Vec<D::T> = values.iter().flatten().map(of).collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    writer.typed::<D>().write_batch(&known, Some(&levels), None)?;
    Ok(())
}
