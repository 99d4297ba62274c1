//! Applies the session settings that a load needs: the character set of a table's text columns, so
//! that the server converts nothing, and consecutive `AUTO_INCREMENT` keys.

use crate::product::permitted;
use crate::{Class, Result, Session, first_i64};

/// Tells the server that statement texts have the character set of the columns in `table` (a name
/// without quotes), so that it converts none of them. This is only for ASCII texts, which have the
/// same bytes in every character set that a client can use. The session stays unchanged where the
/// columns differ, where the table does not exist, and where the server refuses, as for UTF-16.
pub(crate) async fn use_table_charset(session: &mut impl Session, table: &str) -> Result<()> {
    // The database's default is not enough, because CREATE TABLE may name another character set.
    let charsets_sql = format!(
        "SELECT DISTINCT character_set_name FROM information_schema.columns WHERE table_schema = DATABASE() \
         AND table_name = '{table}' AND character_set_name IS NOT NULL"
    );
    let cells = permitted(session.rows(&charsets_sql).await)?.unwrap_or_default();
    let [row] = cells.as_slice() else { return Ok(()) };
    let Some(Some(charset)) = row.first() else { return Ok(()) };
    // The first variable is the character set in which statements are written. The second is the
    // one to which the server converts their texts.
    let set = format!("SET SESSION character_set_client = {charset}, character_set_connection = {charset}");
    permitted(session.query(set.as_bytes()).await).map(drop)
}

/// The statement that sets the key step to 1. A cluster's nodes give out keys in larger steps, so
/// that no two give out the same one. An option file may also ask for that.
const ONE_BY_ONE: &str = "SET SESSION auto_increment_increment = 1, auto_increment_offset = 1";
/// Query for the session's key step.
const STEP: &str = "SELECT @@SESSION.auto_increment_increment";

/// Makes this session's keys increase by 1. MySQL 8.0 before 8.0.18 refuses this to users without
/// the privilege SESSION_VARIABLES_ADMIN, which does not matter if the server's own step is 1.
pub(crate) async fn use_consecutive_keys(session: &mut impl Session) -> Result<()> {
    let Err(mut error) = session.query(ONE_BY_ONE.as_bytes()).await else { return Ok(()) };
    if error.class == Class::Lost {
        return Err(error);
    }
    // A server without this setting always uses a step of 1.
    let Some(step) = permitted(session.rows(STEP).await)? else { return Ok(()) };
    if first_i64(&step) == Some(1) {
        return Ok(());
    }
    error.message.push_str(
        "; the server's auto_increment_increment is not 1, so that ids would have gaps: grant the user \
         SESSION_VARIABLES_ADMIN, or set it to 1",
    );
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Cells, DbError, Param, Statement};

    /// A session whose table has columns in these character sets, and which refuses to use any.
    struct RefusingCharset {
        class: Class,
        charsets: &'static [&'static str],
        sent: Vec<String>,
    }

    impl Session for RefusingCharset {
        async fn query(&mut self, sql: &[u8]) -> Result<Answer> {
            self.sent.push(String::from_utf8_lossy(sql).into_owned());
            Err(DbError::new(self.class, "1231", "Variable 'character_set_client' can't be set to 'utf16'"))
        }

        async fn prepare(&mut self, sql: &str) -> Result<Statement> {
            panic!("{sql} is prepared")
        }

        async fn execute(&mut self, _statement: Statement, _params: &[Param]) -> Result<Answer> {
            panic!("a statement is executed")
        }

        async fn rows(&mut self, sql: &str) -> Result<Cells> {
            assert!(sql.contains("table_name = 'sbtest1'"), "{sql}");
            Ok(self.charsets.iter().map(|charset| vec![Some((*charset).to_owned())]).collect())
        }

        async fn close(self) {}
    }

    async fn charset_outcome(class: Class, charsets: &'static [&'static str]) -> (Result<()>, Vec<String>) {
        let mut session = RefusingCharset { class, charsets, sent: Vec::new() };
        (use_table_charset(&mut session, "sbtest1").await, session.sent)
    }

    #[tokio::test]
    async fn a_refusal_is_ignored_and_a_lost_connection_is_an_error() {
        let (refused, sent) = charset_outcome(Class::Fatal, &["utf16"]).await;
        assert_eq!(refused, Ok(()));
        assert_eq!(sent, ["SET SESSION character_set_client = utf16, character_set_connection = utf16"]);
        let (lost, _) = charset_outcome(Class::Lost, &["utf16"]).await;
        assert_eq!(lost.unwrap_err().class, Class::Lost);
    }

    #[tokio::test]
    async fn a_session_stays_unchanged_where_columns_share_no_character_set() {
        for charsets in [&[][..], &["latin1", "utf8mb4"]] {
            assert_eq!(charset_outcome(Class::Fatal, charsets).await, (Ok(()), Vec::new()), "{charsets:?}");
        }
    }

    /// A session that refuses the SET and answers the query for the step.
    struct RefusingStep {
        class: Class,
        step: &'static str,
    }

    impl Session for RefusingStep {
        async fn query(&mut self, _sql: &[u8]) -> Result<Answer> {
            Err(DbError::new(self.class, "1227", "Access denied"))
        }

        async fn prepare(&mut self, sql: &str) -> Result<Statement> {
            panic!("{sql} is prepared")
        }

        async fn execute(&mut self, _statement: Statement, _params: &[Param]) -> Result<Answer> {
            panic!("a statement is executed")
        }

        async fn rows(&mut self, sql: &str) -> Result<Cells> {
            assert_eq!(sql, STEP);
            Ok(vec![vec![Some(self.step.to_owned())]])
        }

        async fn close(self) {}
    }

    #[tokio::test]
    async fn a_refusal_matters_only_where_keys_go_in_larger_steps() {
        assert_eq!(use_consecutive_keys(&mut RefusingStep { class: Class::Fatal, step: "1" }).await, Ok(()));
        let error =
            use_consecutive_keys(&mut RefusingStep { class: Class::Fatal, step: "3" }).await.unwrap_err();
        insta::assert_snapshot!(error, @"Access denied; the server's auto_increment_increment is not 1, so that ids would have gaps: grant the user SESSION_VARIABLES_ADMIN, or set it to 1 (1227)");
        let lost =
            use_consecutive_keys(&mut RefusingStep { class: Class::Lost, step: "1" }).await.unwrap_err();
        assert_eq!(lost.class, Class::Lost);
    }
}
