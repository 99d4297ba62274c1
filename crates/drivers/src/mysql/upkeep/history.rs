//! How much InnoDB has still to purge, asked in the way that each version knows.

use std::collections::BTreeMap;

use crate::{Cells, DbError, Session, first_i64};

/// In front of the number in the engine's own report.
const LABEL: &str = "History list length ";

/// Transactions whose old rows InnoDB has still to purge: from the `counters` where MariaDB and
/// Percona Server have it, from `innodb_metrics` in MySQL from 5.6 on. MySQL 5.5 has it in the
/// engine's report only. `None` where it is not reported.
pub(super) async fn history_length(
    session: &mut impl Session,
    counters: &BTreeMap<String, i64>,
) -> Result<Option<i64>, DbError> {
    if let Some(&length) = counters.get("Innodb_history_list_length") {
        return Ok(Some(length));
    }
    if session.rows("SHOW TABLES FROM information_schema LIKE 'INNODB_METRICS'").await?.is_empty() {
        return Ok(from_report(&session.rows("SHOW ENGINE INNODB STATUS").await?));
    }
    let sql = "SELECT count FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'";
    Ok(first_i64(&session.rows(sql).await?))
}

/// The number in the engine's report: one row of type, name and text.
fn from_report(report: &Cells) -> Option<i64> {
    let text = report.first()?.get(2)?.as_deref()?;
    text.lines().find_map(|line| line.strip_prefix(LABEL))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_found_in_the_engines_report() {
        let report = |text: &str| vec![["InnoDB", "", text].map(|cell| Some(cell.to_owned())).to_vec()];
        let text =
            "Purge done for trx's n:o < 305 undo n:o < 0\nHistory list length 17\nLIST OF TRANSACTIONS\n";
        assert_eq!(from_report(&report(text)), Some(17));
        assert_eq!(from_report(&report("no such line")), None);
        assert_eq!(from_report(&Cells::new()), None);
    }
}
