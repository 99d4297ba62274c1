//! The kind of server that a variant runs on.

use std::path::PathBuf;

use dbdyno_model::Variant;

use crate::EMBEDDED;

/// A variant's kind, after the plan's check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariantKind {
    /// The database works inside dbdyno. Each connection has its own thread and files.
    Embedded,
    Null,
    /// The base directory of a server that dbdyno starts.
    BaseDir(PathBuf),
    /// A name to look up in the servers folder.
    Named(String),
    /// The address of a server that others run.
    Address(String),
}

impl VariantKind {
    /// Determines a variant's kind. In a checked plan it has exactly one of `server`, `basedir` and
    /// `address`. In an unchecked one, `basedir` takes precedence over `address`, and that over
    /// `server`.
    pub fn of(variant: &Variant) -> Self {
        match (&variant.basedir, &variant.address, variant.server.as_deref().unwrap_or_default()) {
            (Some(basedir), _, _) => Self::BaseDir(basedir.clone()),
            (None, Some(address), _) => Self::Address(address.clone()),
            (None, None, "null") => Self::Null,
            (None, None, name) if name == EMBEDDED.name => Self::Embedded,
            (None, None, name) => Self::Named(name.to_owned()),
        }
    }

    /// Whether dbdyno starts a server for it.
    pub fn is_started(&self) -> bool {
        matches!(self, Self::BaseDir(_) | Self::Named(_))
    }

    pub fn is_embedded(&self) -> bool {
        *self == Self::Embedded
    }

    /// Whether others run its server.
    pub fn is_address(&self) -> bool {
        matches!(self, Self::Address(_))
    }
}
