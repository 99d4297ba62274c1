//! What MyRocks owes, from its tables in `information_schema`.

use crate::mysql::Mysql;
use crate::product::{Asked, Debt, permitted};
use crate::{DbError, Session, first_i64};

/// `stat_type` of the engine and the level's name. Sums over all column families.
const COLUMN_FAMILIES: &[(&str, &str)] = &[
    ("CUR_SIZE_ALL_MEM_TABLES", "memtable_bytes"),
    ("MEM_TABLE_FLUSH_PENDING", "flushes_pending"),
    ("COMPACTION_PENDING", "compactions_pending"),
];

pub(super) async fn read(session: &mut Asked<'_, Mysql>, debt: &mut Debt) -> Result<(), DbError> {
    let sql = "SELECT stat_type, sum(value) FROM information_schema.ROCKSDB_CFSTATS GROUP BY stat_type";
    for row in permitted(session.rows(sql).await)?.unwrap_or_default() {
        let mut cells = row.into_iter().flatten();
        let (Some(kind), Some(value)) = (cells.next(), cells.next()) else { continue };
        if let Some((_, name)) = COLUMN_FAMILIES.iter().find(|(known, _)| *known == kind) {
            debt.level(name, value.parse().ok());
        }
    }
    let sql = "SELECT count(*) FROM information_schema.ROCKSDB_ACTIVE_COMPACTION_STATS";
    let running = permitted(session.rows(sql).await)?.and_then(|rows| first_i64(&rows));
    debt.level("compactions_running", running);
    Ok(())
}
