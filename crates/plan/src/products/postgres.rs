//! PostgreSQL in plans.

use super::Family;

pub(super) const FAMILY: Family = Family {
    driver: "postgres",
    products: &["PostgreSQL"],
    schemes: &["postgres://", "postgresql://"],
    password_file: "a password file of PostgreSQL",
    option_file_key: "postgresql_conf",
    option_file: |variant| &variant.postgresql_conf,
    option_file_mut: |variant| &mut variant.postgresql_conf,
    keys: &[],
    address_keys: &[],
};
