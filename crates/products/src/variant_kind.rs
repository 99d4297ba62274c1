//! What a variant is, by its server.

use std::path::PathBuf;

use dbdyno_model::Variant;

use crate::EMBEDDED;

/// What a variant is, after checking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VariantKind {
    /// The database works inside dbdyno: each connection has a thread and files of its own.
    Embedded,
    Null,
    /// Base directory of a server that dbdyno starts.
    BaseDir(PathBuf),
    /// Name to be looked up in the servers folder.
    Named(String),
    /// Address of a server that others run.
    Address(String),
}

impl VariantKind {
    /// What the variant is. A variant of a checked plan says exactly one of `server`, `basedir` and
    /// `address`; of an unchecked one, `basedir` goes before `address` and that before `server`.
    pub fn of(variant: &Variant) -> Self {
        match (&variant.basedir, &variant.address, variant.server.as_deref().unwrap_or_default()) {
            (Some(basedir), _, _) => Self::BaseDir(basedir.clone()),
            (None, Some(address), _) => Self::Address(address.clone()),
            (None, None, "null") => Self::Null,
            (None, None, name) if name == EMBEDDED.name => Self::Embedded,
            (None, None, name) => Self::Named(name.to_owned()),
        }
    }

    /// dbdyno starts a server for it.
    pub fn is_started(&self) -> bool {
        matches!(self, Self::BaseDir(_) | Self::Named(_))
    }

    pub fn is_embedded(&self) -> bool {
        *self == Self::Embedded
    }

    /// Others run its server.
    pub fn is_address(&self) -> bool {
        matches!(self, Self::Address(_))
    }
}
