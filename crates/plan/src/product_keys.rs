//! Keys of a variant that are for the servers of one product. For which, the product says.

use std::path::PathBuf;

use crate::Variant;

impl Variant {
    /// Those that the variant has.
    pub fn product_keys(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("my_cnf", self.my_cnf.is_some()),
            ("postgresql_conf", self.postgresql_conf.is_some()),
            ("engine", self.engine.is_some()),
            ("client_charset", self.client_charset.is_some()),
            ("column_definitions", self.column_definitions.is_some()),
            ("deprecate_eof", self.deprecate_eof.is_some()),
            ("session_track", self.session_track.is_some()),
            ("server_public_key", self.server_public_key.is_some()),
            ("allow_public_key_retrieval", self.allow_public_key_retrieval),
        ];
        all.into_iter().filter_map(|(key, is_said)| is_said.then_some(key))
    }

    /// The option file of its server.
    pub fn own_option_file(&self) -> Option<&PathBuf> {
        self.my_cnf.as_ref().or(self.postgresql_conf.as_ref())
    }

    /// Keys of option files, each with its file. A server reads one of them.
    pub fn own_option_files_mut(&mut self) -> [(&'static str, &mut Option<PathBuf>); 2] {
        [("my_cnf", &mut self.my_cnf), ("postgresql_conf", &mut self.postgresql_conf)]
    }
}
