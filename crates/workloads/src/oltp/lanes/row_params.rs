//! A row of the load as parameters of a prepared INSERT; their memory is used again.

use dbdyno_drivers::Param;

use crate::oltp::rows::{RowSource, push_c, push_pad};

/// Parameters of a row.
pub(super) fn columns(with_id: bool) -> usize {
    3 + usize::from(with_id)
}

/// Makes `params`, as many as [`columns`], those of row `row` of table `table`.
pub(super) fn fill(params: &mut [Param], source: &RowSource, table: u32, row: u64) {
    let [id @ .., key, c, pad] = params else { return };
    let (k, mut draws) = source.row(table, row);
    if let [id] = id {
        *id = Param::Int(source.id(row).cast_signed());
    }
    *key = Param::Int(k.cast_signed());
    c.set_text(|text| push_c(&mut draws, text));
    pad.set_text(|text| push_pad(&mut draws, text));
}
