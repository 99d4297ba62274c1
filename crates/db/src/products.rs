//! The list of products. A line here is a value of [`Target`], of [`AnySession`] and of [`Family`], and an
//! arm of each question.

use crate::product::Product;

macro_rules! products {
    ($d:tt $($product:ident = $folder:ident::$session:ident,)*) => {
        #[derive(Debug, Clone)]
        pub enum Target {
            $($product(crate::$folder::Options),)*
        }

        /// A session of any product; the match costs less than a nanosecond and keeps the hot path
        /// free of boxes.
        #[derive(Debug)]
        pub enum AnySession {
            $($product(crate::$folder::$session),)*
        }

        /// Products that are spoken to and served alike.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Family {
            $($product,)*
        }

        impl Family {
            /// In the order in which they are listed to users.
            pub const ALL: &[Self] = &[$(Self::$product,)*];
        }

        /// What `P`, the product of whichever family, says.
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

        /// What the session of whichever product does; `P` is the product.
        macro_rules! each_session {
            ($d any:expr, $d session:ident, $d p:ident => $d done:expr) => {
                match $d any {
                    $($crate::AnySession::$product($d session) => {
                        #[allow(dead_code, reason = "not each question is the product's")]
                        type $d p = $crate::$folder::$product;
                        $d done
                    })*
                }
            };
        }

        /// The same of targets.
        macro_rules! each_target {
            ($d any:expr, $d options:ident, $d p:ident => $d done:expr) => {
                match $d any {
                    $($crate::Target::$product($d options) => {
                        type $d p = $crate::$folder::$product;
                        $d done
                    })*
                }
            };
        }

        pub(crate) use {each_family, each_session, each_target};

        impl Target {
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

/// The product whose statements a database gets that takes any.
pub(crate) type Usual = crate::mysql::Mysql;
