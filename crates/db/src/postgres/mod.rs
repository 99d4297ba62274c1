//! PostgreSQL: a small client session on its own wire protocol, version 3.
//!
//! A session counts its way through an answer in the input buffer and does not decode it. One
//! statement costs one write and, for an answer that fits the buffer, one read. The formats are
//! from the chapter "Frontend/Backend Protocol" in PostgreSQL's documentation, and are the same
//! from 9.6 to 19. Password hashing is from the crate `postgres-protocol`.

mod cells;
mod classes;
mod copy;
mod deferred_work;
mod execute;
mod fault;
mod login;
mod message;
mod placeholders;
mod product;
mod report;
mod scan;
mod secure;
pub(crate) mod server;
mod session;
mod status;
#[cfg(test)]
#[path = "tests/testing.rs"]
mod testing;
mod upkeep;
mod wire;

use std::path::{Path, PathBuf};

pub use session::PostgresSession;

pub use crate::Secret;
pub use crate::options::{LoginOptions, LoginOptions as Options};
use crate::{Capabilities, DeleteForm, IndexDdl, IndexHint, KeySource, RowStream};

/// The PostgreSQL product.
#[derive(Debug)]
pub(crate) struct Postgres;

/// The socket that a server on `port` makes in the folder `unix_socket_directories`.
/// [`Address::Socket`](crate::Address::Socket) holds this path.
pub fn socket_path(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!(".s.PGSQL.{port}"))
}

/// What PostgreSQL can do, in its own terms. It has no index hints, and no binary log apart from
/// its write-ahead log. Its DELETE has no LIMIT.
pub fn capabilities() -> Capabilities {
    Capabilities {
        auto_key: "bigserial primary key",
        int_key: "SERIAL",
        big_key: "BIGSERIAL",
        big_int: "BIGINT",
        unsigned: false,
        begin_write: "BEGIN",
        datetime: "timestamp without time zone",
        engine: None,
        table_suffix: String::new(),
        index_hint: IndexHint::None,
        delete_form: DeleteForm::InSubquery,
        index_ddl: IndexDdl::CreateEach,
        int_param: "?::int",
        text_writes_by_default: true,
        text_queries_by_default: false,
        blocking: false,
        row_stream: RowStream::CopyIn,
        parallel_writers: true,
        keeps_arrival_order: true,
        drops_binlog: false,
        key_source: KeySource::Sequence,
        contiguous_keys: false,
        gather_statistics: "VACUUM (ANALYZE)",
        typed_values: true,
        foreign_keys: true,
        ordered_join: (" CROSS JOIN ", "SET join_collapse_limit = 1"),
        stores_data: true,
        foreign: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_named_by_its_folder_and_port() {
        assert_eq!(socket_path(Path::new("/run/pg"), 5433), Path::new("/run/pg/.s.PGSQL.5433"));
    }
}
