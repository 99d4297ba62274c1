//! What SQLite owes: pages of the write-ahead log that are not yet in the database file.

use super::Sqlite;
use crate::product::{Asked, Debt, cell, permitted};
use crate::{DbError, Session};

pub(super) async fn read(session: &mut Asked<'_, Sqlite>, debt: &mut Debt) -> Result<(), DbError> {
    let page_bytes = number(permitted(cell(session, "PRAGMA page_size").await)?.flatten());
    let every = number(permitted(cell(session, "PRAGMA wal_autocheckpoint").await)?.flatten());
    debt.capacity("autocheckpoint_bytes", every.zip(page_bytes).map(|(pages, bytes)| pages * bytes));
    // Looks and does nothing (SQLite 3.51). Answers busy, frames in the log, frames written back;
    // -1 without a log.
    let answer = permitted(session.rows("PRAGMA wal_checkpoint(NOOP)").await)?.unwrap_or_default();
    let column = |index: usize| number(answer.first()?.get(index)?.clone());
    if let (Some(frames @ 0..), Some(done @ 0..), Some(bytes)) = (column(1), column(2), page_bytes) {
        debt.level("wal_bytes", Some((frames - done) * bytes));
    }
    Ok(())
}

fn number(text: Option<String>) -> Option<i64> {
    text?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::sqlite::{self, testing};
    use crate::{Endpoint, Session, Target, debt};

    #[tokio::test]
    async fn what_lies_in_the_log_is_owed_until_a_checkpoint() {
        let folder = testing::folder();
        let options = testing::options(folder.path(), &[("journal_mode", "wal")]);
        let capabilities = sqlite::capabilities();
        let endpoint = Endpoint { target: Target::Sqlite(options), capabilities: capabilities.clone() };
        let mut session = endpoint.connect().await.unwrap();
        for sql in ["CREATE TABLE t (a)", "INSERT INTO t VALUES (1)", "INSERT INTO t VALUES (2)"] {
            session.query(sql.as_bytes()).await.unwrap();
        }
        let owed = debt(&mut session, &capabilities).await.unwrap();
        // The first page and the table's, then the table's twice more, each of 4096 bytes.
        assert!(owed.levels["wal_bytes"] >= 4 * 4096, "{owed:?}");
        assert_eq!(debt(&mut session, &capabilities).await.unwrap(), owed, "looking changes nothing");
        session.rows("PRAGMA wal_checkpoint(TRUNCATE)").await.unwrap();
        assert_eq!(debt(&mut session, &capabilities).await.unwrap().levels["wal_bytes"], 0);
    }

    #[tokio::test]
    async fn without_a_log_nothing_is_owed() {
        let folder = testing::folder();
        let options = testing::options(folder.path(), &[("journal_mode", "delete")]);
        let capabilities = sqlite::capabilities();
        let endpoint = Endpoint { target: Target::Sqlite(options), capabilities: capabilities.clone() };
        let mut session = endpoint.connect().await.unwrap();
        session.query(b"CREATE TABLE t (a)").await.unwrap();
        assert!(debt(&mut session, &capabilities).await.unwrap().levels.is_empty());
    }
}
