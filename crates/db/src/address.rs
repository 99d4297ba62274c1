//! Where a server listens, and a password that is not printed.

use std::fmt;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Socket(PathBuf),
    Tcp { host: String, port: u16 },
}

impl Address {
    /// The host that a server's certificate must be for.
    pub(crate) fn host(&self) -> &str {
        match self {
            Self::Socket(_) => "localhost",
            Self::Tcp { host, .. } => host,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(formatter, "{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(formatter, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(formatter, "{host}:{port}"),
        }
    }
}

/// A password: it shows as `***` wherever it might be printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `text` out of sight.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The password itself, for those who must hand it on (a login, an option file).
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}
