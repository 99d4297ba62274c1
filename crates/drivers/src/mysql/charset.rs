//! Has a session speak the character set of its database's tables.

use crate::{Class, DbError, Session};

/// Both are meant: what statements are written in, and what their texts are taken for.
const AS_THE_DATABASE: &str = "SET SESSION character_set_client = @@character_set_database, \
     character_set_connection = @@character_set_database";

/// Has the server take the texts of statements for what tables of the current database hold by default, so that it converts
/// none of them. For texts of ASCII only, which are the same bytes in every character set that a client can speak. A server
/// that refuses, as where that is UTF-16, goes on converting.
///
/// # Errors
/// [`Class::Lost`].
pub(crate) async fn as_the_database(session: &mut impl Session) -> Result<(), DbError> {
    match session.query(AS_THE_DATABASE.as_bytes()).await {
        Err(error) if error.class == Class::Lost => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Cells, Param, Statement};

    /// A session that refuses everything.
    struct Refusing(Class);

    impl Session for Refusing {
        async fn query(&mut self, sql: &[u8]) -> Result<Answer, DbError> {
            assert_eq!(sql, AS_THE_DATABASE.as_bytes());
            Err(DbError::new(self.0, "1231", "Variable 'character_set_client' can't be set to 'utf16'"))
        }

        async fn prepare(&mut self, sql: &str) -> Result<Statement, DbError> {
            panic!("{sql} is prepared")
        }

        async fn execute(&mut self, _statement: Statement, _params: &[Param]) -> Result<Answer, DbError> {
            panic!("a statement is executed")
        }

        async fn rows(&mut self, sql: &str) -> Result<Cells, DbError> {
            panic!("{sql} is asked")
        }

        async fn close(self) {}
    }

    #[tokio::test]
    async fn a_refusal_is_no_matter_and_a_lost_connection_is() {
        assert_eq!(as_the_database(&mut Refusing(Class::Fatal)).await, Ok(()));
        let lost = as_the_database(&mut Refusing(Class::Lost)).await.unwrap_err();
        assert_eq!(lost.class, Class::Lost);
    }
}
