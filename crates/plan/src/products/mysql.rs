//! MariaDB, MySQL and what is like them in plans.

use super::Family;

pub(super) const FAMILY: Family = Family {
    driver: "mysql",
    products: &["MariaDB", "MySQL"],
    schemes: &["mysql://", "mariadb://"],
    password_file: "a MySQL option file",
    option_file_key: "my_cnf",
    option_file: |variant| &variant.my_cnf,
    option_file_mut: |variant| &mut variant.my_cnf,
    keys: &[
        ("engine", |variant| variant.engine.is_some()),
        ("client_charset", |variant| variant.client_charset.is_some()),
        ("column_definitions", |variant| variant.column_definitions.is_some()),
        ("deprecate_eof", |variant| variant.deprecate_eof.is_some()),
        ("session_track", |variant| variant.session_track.is_some()),
    ],
    address_keys: &[
        ("server_public_key", |variant| variant.server_public_key.is_some()),
        ("allow_public_key_retrieval", |variant| variant.allow_public_key_retrieval),
    ],
};
