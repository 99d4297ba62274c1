//! Rest for SQLite.

use std::time::Instant;

use super::Sqlite;
use crate::product::{Work, cell};
use crate::{DbError, Session};

/// Statistics, then a checkpoint where there is a write-ahead log.
pub(super) async fn run(work: &mut Work<'_, Sqlite>, tables: &[String]) -> Result<(), DbError> {
    for table in tables {
        let part = Instant::now();
        let sql = format!("ANALYZE \"{}\"", table.replace('"', "\"\""));
        work.session.query(sql.as_bytes()).await?;
        work.ended(&format!("analyze {table}"), part);
    }
    if cell(&mut work.session, "PRAGMA journal_mode").await?.as_deref() != Some("wal") {
        return Ok(());
    }
    let part = Instant::now();
    // Answers busy (0 or 1), frames in the log, frames written back; an emptied log has 0 frames.
    let answer = work.session.rows("PRAGMA wal_checkpoint(TRUNCATE)").await?;
    work.ended("checkpoint", part);
    let number = |column: usize| answer.first()?.get(column)?.as_deref()?.parse::<i64>().ok();
    work.fact("wal_frames_left", number(1));
    if number(0) != Some(0) {
        work.report.notes.push("the checkpoint was not complete: another connection was reading".to_owned());
    }
    Ok(())
}
