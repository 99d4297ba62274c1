//! The facts about a product family, which is a group of products whose servers dbdyno handles
//! alike.

use dbdyno_model::Variant;

use crate::server_address::TlsOption;
use crate::settings::ConfiguredLine;
use crate::subject::{Derive, Settings};
use crate::variant::{NoOptions, VariantOptions, engine_of};
use crate::{ALL, EMBEDDED, Product, Release, VariantKind};

/// The column values in a query plan's row. `None` is NULL.
pub type PlanRow = Vec<Option<String>>;

/// The facts about a product family, as texts, numbers and pure functions. A fact that a family
/// does not set has its value from [`FamilyFacts::UNKNOWN`].
#[derive(Debug)]
pub struct FamilyFacts {
    /// Name of the family's driver. The parity check's data files use it too.
    pub name: &'static str,
    /// The family's products, in the order of tables.
    pub products: &'static [&'static Product],
    /// The tables' engine when the plan names none, where tables have engines.
    pub default_engine: Option<&'static str>,
    /// The options that its servers have, for config intents, as TOML.
    pub config_options: &'static str,
    /// The start of its option files, and the form of an option with a value in them.
    pub option_file_form: (&'static str, &'static str),
    /// The options that its variants may have.
    pub options: VariantOptions,

    /// Prefixes of its addresses: `mysql://`. A family that works inside dbdyno has none.
    pub schemes: &'static [&'static str],
    pub default_port: u16,
    /// Prefix of a socket's name, for servers whose socket name ends in the port. An address may
    /// then name the folder.
    pub socket_prefix: Option<&'static str>,
    /// Its own names for TLS options in addresses.
    pub tls_options: &'static [(&'static str, TlsOption)],
    /// The kind of file that may contain the password for an address, for messages.
    pub password_file: &'static str,
    /// The place other than the address where a user may be named, for messages.
    pub other_place_of_user: &'static str,

    /// The extension of its servers' option files.
    pub option_file_ending: &'static str,
    /// Whether its servers ignore option files that every user may change.
    pub distrusts_writable_files: bool,
    /// Libraries that the vendor's builds take from the machine, each with its Debian package.
    pub libraries: &'static [(&'static str, &'static str)],
    /// How to find processes that outlive a server's killed first process and may still write. The
    /// pair has their program, and a file by which one of the family's data directories is
    /// recognised.
    pub workers: Option<(&'static str, &'static str)>,
    /// The superuser on servers that dbdyno starts, who has no password.
    pub superuser: &'static str,
    /// The database in which a superuser's session starts before another one exists.
    pub first_database: Option<&'static str>,
    /// The option that names the file with the server's certificate.
    pub certificate_option: &'static str,
    /// Whether a server that dbdyno starts accepts only certificates that dbdyno makes.
    pub only_own_certificates: bool,
    /// Whether a started server has TLS only over TCP.
    pub has_no_tls_on_sockets: bool,
    /// The option for connections that are reserved for superusers, and its default.
    pub reserved_connections: Option<(&'static str, u64)>,

    /// Whether the server chooses a number itself where the configured number is 0.
    pub zero_is_automatic: bool,
    /// Reads an option file as a server with this product and version does.
    pub lines: fn(&str, &Product, Release) -> Vec<ConfiguredLine>,
    /// Turns the value that the server shows for a setting into the configuration's word for it.
    /// The first argument is the setting's name.
    pub word: Option<fn(&str, &str) -> String>,
    /// Updates the settings that depend on configured ones, as the server does. The second argument
    /// has the settings as they were before the configuration was applied.
    pub follow: fn(&mut Settings, &Settings),
    /// The nodes in a query plan from EXPLAIN, one text per node. Costs, row estimates and values
    /// are left out, because they differ from run to run.
    pub plan_nodes: fn(&[PlanRow]) -> Vec<String>,
    /// Classes that combine more than one setting, by their names in the parity check's data files.
    pub classes: &'static [(&'static str, Derive)],
}

impl FamilyFacts {
    pub(crate) const DEFAULT: Self = Self {
        name: "",
        products: &[],
        default_engine: None,
        config_options: "",
        option_file_form: ("", ""),
        options: VariantOptions::of::<NoOptions>(),
        schemes: &[],
        default_port: 0,
        socket_prefix: None,
        tls_options: &[],
        password_file: "",
        other_place_of_user: "",
        option_file_ending: "",
        distrusts_writable_files: false,
        libraries: &[],
        workers: None,
        superuser: "",
        first_database: None,
        certificate_option: "",
        only_own_certificates: false,
        has_no_tls_on_sockets: false,
        reserved_connections: None,
        zero_is_automatic: false,
        lines: |_, _, _| Vec::new(),
        word: None,
        follow: |_, _| (),
        plan_nodes: |rows| rows.iter().map(|row| joined(row)).collect(),
        classes: &[],
    };

    /// The facts for a server that gives programmed answers, or about which nothing is known.
    pub const UNKNOWN: &'static Self = &Self::DEFAULT;

    /// The family whose driver is called `name`.
    pub fn named(name: &str) -> &'static Self {
        ALL.iter().find(|family| family.name == name).copied().unwrap_or(Self::UNKNOWN)
    }

    /// The families that have servers.
    pub fn of_servers() -> impl Iterator<Item = &'static Self> {
        ALL.iter().copied().filter(|family| !family.is_embedded())
    }

    /// The family of the server at `address`, and the rest of the address.
    pub fn of_address(address: &str) -> Option<(&'static Self, &str)> {
        let rest = |family: &Self| family.schemes.iter().find_map(|scheme| address.strip_prefix(scheme));
        ALL.iter().find_map(|family| Some((*family, rest(family)?)))
    }

    /// The family of a variant's server, if the plan alone determines it.
    pub fn of_variant(variant: &Variant) -> Option<&'static Self> {
        match VariantKind::of(variant) {
            VariantKind::Embedded => Some(EMBEDDED),
            VariantKind::Address(address) => Self::of_address(&address).map(|(family, _)| family),
            VariantKind::Named(name) => Product::of_build(&name).map(|(product, _)| product.family()),
            VariantKind::BaseDir(_) | VariantKind::Null => None,
        }
    }

    /// The tables' engine for a variant on this family's server, in lower case. It is empty where
    /// tables have no engine.
    pub fn engine_of(&self, variant: &Variant) -> String {
        engine_of(variant).unwrap_or_else(|| self.default_engine.unwrap_or_default().to_owned())
    }

    /// Whether the family works inside dbdyno and has no servers.
    pub fn is_embedded(&self) -> bool {
        self.schemes.is_empty()
    }

    /// Its products' names for sentences, without the products that count as another one.
    pub fn product_names(&self) -> Vec<&'static str> {
        let own = self.products.iter().filter(|product| product.base.is_none());
        let mut names: Vec<&str> = own.map(|product| product.name).collect();
        names.sort_unstable();
        names
    }
}

/// A query plan row of unknown form, as text.
pub(crate) fn joined(row: &[Option<String>]) -> String {
    row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(" ")
}
