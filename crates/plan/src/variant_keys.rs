//! Keys of a variant that name files, and keys that are for the servers of one family of products.

use std::path::PathBuf;

use crate::{Plan, Variant};

/// Whose a key of a variant is.
#[derive(Debug, Clone, Copy)]
pub struct ProductKey {
    pub name: &'static str,
    /// The driver of the family.
    pub family: &'static str,
    /// What a variant must be to have it, and whether this one is.
    pub(crate) only_for: &'static str,
    pub(crate) fits: bool,
}

pub(crate) const STARTED: &str = "a server that dbdyno starts (server or basedir)";
const MYSQL: &str = "a MariaDB or MySQL server";
const MYSQL_ADDRESS: &str = "the address of a MariaDB or MySQL server";

impl Variant {
    /// Those that the variant has.
    pub fn product_keys(&self) -> impl Iterator<Item = ProductKey> {
        let kind = self.kind();
        let is_address = kind.is_address();
        let is_server = kind.is_started() || is_address;
        let of_mysql = [
            ("engine", self.engine.is_some(), MYSQL, is_server),
            ("client_charset", self.client_charset.is_some(), MYSQL, is_server),
            ("column_definitions", self.column_definitions.is_some(), MYSQL, is_server),
            ("deprecate_eof", self.deprecate_eof.is_some(), MYSQL, is_server),
            ("session_track", self.session_track.is_some(), MYSQL, is_server),
            ("server_public_key", self.server_public_key.is_some(), MYSQL_ADDRESS, is_address),
            ("allow_public_key_retrieval", self.allow_public_key_retrieval, MYSQL_ADDRESS, is_address),
        ];
        let fits = kind.is_started();
        let files = self.own_option_files().into_iter().filter_map(move |(name, family, file)| {
            file.as_ref().map(|_| ProductKey { name, family, only_for: STARTED, fits })
        });
        let others = of_mysql.into_iter().filter_map(|(name, is_said, only_for, fits)| {
            is_said.then_some(ProductKey { name, family: "mysql", only_for, fits })
        });
        files.chain(others)
    }

    /// The option file of its server.
    pub fn own_option_file(&self) -> Option<&PathBuf> {
        self.own_option_files().into_iter().find_map(|(_, _, file)| file.as_ref())
    }

    /// Keys of option files, each with the driver of its family and its file. A server reads one of
    /// them.
    pub(crate) fn own_option_files(&self) -> [(&'static str, &'static str, &Option<PathBuf>); 2] {
        [("my_cnf", "mysql", &self.my_cnf), ("postgresql_conf", "postgres", &self.postgresql_conf)]
    }

    pub fn own_option_files_mut(&mut self) -> [(&'static str, &mut Option<PathBuf>); 2] {
        [("my_cnf", &mut self.my_cnf), ("postgresql_conf", &mut self.postgresql_conf)]
    }

    fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        let named = [
            &mut self.basedir,
            &mut self.my_cnf,
            &mut self.postgresql_conf,
            &mut self.option_file,
            &mut self.server_public_key,
        ];
        let tls = self.tls.iter_mut().flat_map(|tls| [&mut tls.ca, &mut tls.cert, &mut tls.key]);
        let config = self.config.iter_mut().flat_map(|config| config.files_mut());
        config.chain(named.into_iter().chain(tls).flatten()).collect()
    }
}

impl Plan {
    /// Paths of what the variants need: option files, files of intents, base directories, keys and
    /// certificates.
    pub fn files_mut(&mut self) -> Vec<&mut PathBuf> {
        self.variants.iter_mut().flat_map(Variant::files_mut).collect()
    }
}
