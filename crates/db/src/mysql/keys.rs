//! Makes the server give a session's rows consecutive `AUTO_INCREMENT` keys.

use crate::product::permitted;
use crate::{Class, Result, Session, first_i64};

/// The statement that sets the key step to 1. A cluster's nodes give out keys in larger steps, so
/// that no two give out the same one. An option file may also ask for that.
const ONE_BY_ONE: &str = "SET SESSION auto_increment_increment = 1, auto_increment_offset = 1";
const STEP: &str = "SELECT @@SESSION.auto_increment_increment";

/// Makes this session's keys increase by 1. MySQL 8.0 before 8.0.18 refuses this to users without
/// the privilege SESSION_VARIABLES_ADMIN, which does not matter if the server's own step is 1.
pub(crate) async fn one_by_one(session: &mut impl Session) -> Result<()> {
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

    /// A session that refuses the SET and answers the query for the step.
    struct Refusing {
        class: Class,
        step: &'static str,
    }

    impl Session for Refusing {
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
        assert_eq!(one_by_one(&mut Refusing { class: Class::Fatal, step: "1" }).await, Ok(()));
        let error = one_by_one(&mut Refusing { class: Class::Fatal, step: "3" }).await.unwrap_err();
        insta::assert_snapshot!(error, @"Access denied; the server's auto_increment_increment is not 1, so that ids would have gaps: grant the user SESSION_VARIABLES_ADMIN, or set it to 1 (1227)");
        let lost = one_by_one(&mut Refusing { class: Class::Lost, step: "1" }).await.unwrap_err();
        assert_eq!(lost.class, Class::Lost);
    }
}
