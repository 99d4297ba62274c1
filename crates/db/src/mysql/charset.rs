//! Makes a session use the character set of a table's text columns, so that the server converts
//! nothing.

use crate::product::permitted;
use crate::{Result, Session};

/// Tells the server that statement texts have the character set of the columns in `table` (a name
/// without quotes), so that it converts none of them. This is only for ASCII texts, which have the
/// same bytes in every character set that a client can use. The session stays unchanged where the
/// columns differ, where the table does not exist, and where the server refuses, as for UTF-16.
pub(crate) async fn as_the_table(session: &mut impl Session, table: &str) -> Result<()> {
    // The database's default does not tell, because CREATE TABLE may name another.
    let asked = format!(
        "SELECT DISTINCT character_set_name FROM information_schema.columns WHERE table_schema = DATABASE() \
         AND table_name = '{table}' AND character_set_name IS NOT NULL"
    );
    let cells = permitted(session.rows(&asked).await)?.unwrap_or_default();
    let [row] = cells.as_slice() else { return Ok(()) };
    let Some(Some(charset)) = row.first() else { return Ok(()) };
    // The first variable is the character set that statements are written in, the second the one to
    // which the server converts their texts.
    let set = format!("SET SESSION character_set_client = {charset}, character_set_connection = {charset}");
    permitted(session.query(set.as_bytes()).await).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Cells, Class, DbError, Param, Statement};

    /// A session whose table has columns in these character sets, and which refuses to use any.
    struct Refusing {
        class: Class,
        charsets: &'static [&'static str],
        sent: Vec<String>,
    }

    impl Session for Refusing {
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

    async fn asked(class: Class, charsets: &'static [&'static str]) -> (Result<()>, Vec<String>) {
        let mut session = Refusing { class, charsets, sent: Vec::new() };
        (as_the_table(&mut session, "sbtest1").await, session.sent)
    }

    #[tokio::test]
    async fn a_refusal_is_no_matter_and_a_lost_connection_is() {
        let (refused, sent) = asked(Class::Fatal, &["utf16"]).await;
        assert_eq!(refused, Ok(()));
        assert_eq!(sent, ["SET SESSION character_set_client = utf16, character_set_connection = utf16"]);
        let (lost, _) = asked(Class::Lost, &["utf16"]).await;
        assert_eq!(lost.unwrap_err().class, Class::Lost);
    }

    #[tokio::test]
    async fn a_session_stays_as_it_is_where_no_one_character_set_is_that_of_all_texts() {
        for charsets in [&[][..], &["latin1", "utf8mb4"]] {
            assert_eq!(asked(Class::Fatal, charsets).await, (Ok(()), Vec::new()), "{charsets:?}");
        }
    }
}
