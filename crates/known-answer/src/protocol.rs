//! The protocol that a server speaks, and the limits that it sets.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// MySQL and MariaDB: handshake version 10, `mysql_native_password` with any password, text and
    /// prepared statements.
    Mysql,
    /// PostgreSQL: version 3.0 without a password, simple and extended queries.
    Postgres,
}

impl Protocol {
    /// Highest number of columns in a result.
    pub(crate) fn most_columns(self) -> u16 {
        match self {
            Self::Mysql => 4096,
            Self::Postgres => 1664,
        }
    }

    /// Whether errors with this code can be sent.
    pub(crate) fn has_code(self, code: &str) -> bool {
        match self {
            Self::Mysql => code.parse::<u16>().is_ok_and(|code| code > 0),
            Self::Postgres => {
                code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            }
        }
    }
}
