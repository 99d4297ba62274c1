//! The list of products. Each line adds a value to [`DatabaseAddress`], [`AnySession`] and
//! [`Family`], and an arm to each macro that calls a product.

use crate::product::Product;

macro_rules! products {
    ($d:tt $($product:ident = $folder:ident::$session:ident,)*) => {
        #[derive(Debug, Clone)]
        pub enum DatabaseAddress {
            $($product(crate::$folder::Options),)*
        }

        /// A session of any product. Matching on this enum costs less than a nanosecond. A trait
        /// object would cost an allocation per call on the load path.
        #[derive(Debug)]
        pub enum AnySession {
            $($product(crate::$folder::$session),)*
        }

        /// A family of products that dbdyno handles with the same code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Family {
            $($product,)*
        }

        impl Family {
            /// All families, in the order in which they are listed to users.
            pub const ALL: &[Self] = &[$(Self::$product,)*];
        }

        /// Evaluates an expression with `P` as the family's product.
        macro_rules! each_family {
            ($d any:expr, $d p:ident => $d done:expr) => {
                match $d any {
                    $($crate::Family::$product => {
                        type $d p = $crate::$folder::$product;
                        $d done
                    })*
                }
            };
        }

        /// Evaluates an expression with the session, with `P` as its product.
        macro_rules! each_session {
            ($d any:expr, $d session:ident, $d p:ident => $d done:expr) => {
                match $d any {
                    $($crate::AnySession::$product($d session) => {
                        #[allow(dead_code, reason = "not each probe is the product's")]
                        type $d p = $crate::$folder::$product;
                        $d done
                    })*
                }
            };
        }

        /// Evaluates an expression with the address's options, with `P` as its product.
        macro_rules! each_address {
            ($d any:expr, $d options:ident, $d p:ident => $d done:expr) => {
                match $d any {
                    $($crate::DatabaseAddress::$product($d options) => {
                        type $d p = $crate::$folder::$product;
                        $d done
                    })*
                }
            };
        }

        pub(crate) use {each_family, each_session, each_address};

        impl DatabaseAddress {
            pub(crate) async fn connect(&self) -> Result<AnySession, crate::DbError> {
                Ok(match self {
                    $(Self::$product(options) => AnySession::$product(crate::$folder::$product::connect(options).await?),)*
                })
            }
        }
    };
}

products! { $
    Sqlite = sqlite::SqliteSession,
    Mysql = mysql::MysqlSession,
    Postgres = postgres::PostgresSession,
    Null = null::NullSession,
}

/// The product whose SQL dbdyno sends to a database that accepts any SQL.
pub(crate) type Usual = crate::mysql::Mysql;
