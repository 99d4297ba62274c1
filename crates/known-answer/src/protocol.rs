//! Which protocol a server speaks, and what it allows.

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
    /// Columns that a result may have at most.
    pub(crate) fn most_columns(self) -> u16 {
        match self {
            Self::Mysql => 4096,
            Self::Postgres => 1664,
        }
    }

    /// Whether errors of this code can be sent.
    pub(crate) fn has_code(self, code: &str) -> bool {
        match self {
            Self::Mysql => code.parse::<u16>().is_ok_and(|code| code > 0),
            Self::Postgres => {
                code.len() == 5 && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            }
        }
    }
}
