//! The products that classes are known for, and their settings by name.

use std::collections::BTreeMap;

/// Settings by name, as the server writes them.
pub type Settings = BTreeMap<String, String>;

/// The products that classes are known for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Product {
    MariaDb,
    MySql,
    PerconaServer,
    Postgres,
    Sqlite,
    /// A server that answers by program, or one that is not known.
    Other,
}

impl Product {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "MariaDB" => Self::MariaDb,
            "MySQL" => Self::MySql,
            "Percona Server" => Self::PerconaServer,
            "PostgreSQL" => Self::Postgres,
            "SQLite" => Self::Sqlite,
            _ => Self::Other,
        }
    }

    /// The name under which the defaults are kept. Percona Server has MySQL's, as far as classes
    /// look.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "MariaDB",
            Self::MySql | Self::PerconaServer => "MySQL",
            Self::Postgres => "PostgreSQL",
            Self::Sqlite => "SQLite",
            Self::Other => "",
        }
    }

    pub(super) fn is_mysql(self) -> bool {
        matches!(self, Self::MariaDb | Self::MySql | Self::PerconaServer)
    }

    /// The word for the family in the data files.
    pub(super) fn family(self) -> &'static str {
        match self {
            Self::MariaDb | Self::MySql | Self::PerconaServer => "mysql",
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
            Self::Other => "",
        }
    }
}
