//! A family: products whose servers are served alike.

use dbdyno_model::Variant;

use crate::configured::ConfiguredLine;
use crate::engine::engine_of;
use crate::options::{NoOptions, VariantOptions};
use crate::subject::{Derive, Settings};
use crate::tls_options::TlsOption;
use crate::{ALL, EMBEDDED, Product, Release, VariantKind};

/// Cells of a row of a query plan; `None` is NULL.
pub type PlanRow = Vec<Option<String>>;

/// Products that are served alike, in words, numbers and pure functions. What a family does not say
/// is that of [`FamilyFacts::UNKNOWN`].
#[derive(Debug)]
pub struct FamilyFacts {
    /// The name of its driver, and its word in the data files of parity.
    pub name: &'static str,
    /// In the order of tables.
    pub products: &'static [&'static Product],
    /// The engine of tables when nothing is said, where tables have an engine.
    pub default_engine: Option<&'static str>,
    /// The options of its servers, for config intents, as TOML.
    pub config_options: &'static str,
    /// How its option files begin, and each option with a value in them.
    pub option_file_form: (&'static str, &'static str),
    /// What `options` of its variants hold.
    pub options: VariantOptions,

    /// How addresses begin: `mysql://`. None for a family that works inside dbdyno.
    pub schemes: &'static [&'static str],
    pub default_port: u16,
    /// How the name of a socket begins, of servers whose port ends it. An address may then name the
    /// folder.
    pub socket_prefix: Option<&'static str>,
    /// Its own names of TLS options in addresses.
    pub tls_options: &'static [(&'static str, TlsOption)],
    /// Which file can hold the password for an address.
    pub password_file: &'static str,
    /// Where a user is named, if not in the address.
    pub other_place_of_user: &'static str,

    /// The ending of the option files of its servers.
    pub option_file_ending: &'static str,
    /// Its servers pass over option files that all users can write.
    pub distrusts_writable_files: bool,
    /// Libraries that its makers' builds take from the machine, each with its Debian package.
    pub libraries: &'static [(&'static str, &'static str)],
    /// Processes that may outlive a server's killed first one, and still write: their program, and
    /// a file that every data directory has.
    pub workers: Option<(&'static str, &'static str)>,
    /// The superuser of the servers that dbdyno starts, who has no password.
    pub superuser: &'static str,
    /// The database that a superuser's session is in before there is another one.
    pub first_database: Option<&'static str>,
    /// The option with the file of its certificate.
    pub certificate_option: &'static str,
    /// A server that dbdyno starts takes no certificates but those that dbdyno makes.
    pub only_own_certificates: bool,
    /// A started server has TLS over TCP only.
    pub has_no_tls_on_sockets: bool,
    /// The option with the connections that are kept for superusers, and its default.
    pub reserved_connections: Option<(&'static str, u64)>,

    /// The server chooses a number where 0 is configured.
    pub zero_is_automatic: bool,
    /// Reads an option file as a server of this product and version does.
    pub lines: fn(&str, &Product, Release) -> Vec<ConfiguredLine>,
    /// The value that a setting of this name shows, in the words of a configuration.
    pub word: Option<fn(&str, &str) -> String>,
    /// Makes settings follow those that were configured, given what they were before.
    pub follow: fn(&mut Settings, &Settings),
    /// A query plan as EXPLAIN gives it, a text per node, without what differs from run to run:
    /// costs, estimates of rows, values.
    pub plan_nodes: fn(&[PlanRow]) -> Vec<String>,
    /// Classes of settings that are more than one setting, by their names in the data files of
    /// parity.
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

    /// That of a server that answers by program, or of which nothing is known.
    pub const UNKNOWN: &'static Self = &Self::DEFAULT;

    /// The family of the driver `name`.
    pub fn named(name: &str) -> &'static Self {
        ALL.iter().find(|family| family.name == name).copied().unwrap_or(Self::UNKNOWN)
    }

    /// Those that have servers.
    pub fn of_servers() -> impl Iterator<Item = &'static Self> {
        ALL.iter().copied().filter(|family| !family.is_embedded())
    }

    /// The family of the server at `address`, and the rest of the address.
    pub fn of_address(address: &str) -> Option<(&'static Self, &str)> {
        let rest = |family: &Self| family.schemes.iter().find_map(|scheme| address.strip_prefix(scheme));
        ALL.iter().find_map(|family| Some((*family, rest(family)?)))
    }

    /// The family of a variant's server, as far as the plan alone says it.
    pub fn of_variant(variant: &Variant) -> Option<&'static Self> {
        match VariantKind::of(variant) {
            VariantKind::Embedded => Some(EMBEDDED),
            VariantKind::Address(address) => Self::of_address(&address).map(|(family, _)| family),
            VariantKind::Named(name) => Product::of_build(&name).map(|(product, _)| product.family()),
            VariantKind::BaseDir(_) | VariantKind::Null => None,
        }
    }

    /// The engine of the tables of a variant on a server of this family, in small letters; empty
    /// where tables have no engine.
    pub fn engine_of(&self, variant: &Variant) -> String {
        engine_of(variant).unwrap_or_else(|| self.default_engine.unwrap_or_default().to_owned())
    }

    /// It works inside dbdyno and has no servers.
    pub fn is_embedded(&self) -> bool {
        self.schemes.is_empty()
    }

    /// Its products for sentences, by name and without those that are like another one.
    pub fn product_names(&self) -> Vec<&'static str> {
        let own = self.products.iter().filter(|product| product.base.is_none());
        let mut names: Vec<&str> = own.map(|product| product.name).collect();
        names.sort_unstable();
        names
    }
}

/// A row of a query plan of which nothing is known.
pub(crate) fn joined(row: &[Option<String>]) -> String {
    row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect::<Vec<_>>().join(" ")
}
