//! MySQL, MariaDB and Percona Server: a small client session built on the protocol crate's codecs.
//!
//! A session counts its way through an answer in the input buffer and does not decode it. One
//! statement costs one write and, for an answer that fits the buffer, one read. The formats are
//! from the client/server protocol in the MySQL source documentation, and from the MariaDB
//! knowledge base where MariaDB differs.

mod cells;
mod charset;
mod classes;
mod deferred_work;
mod execute;
mod fault;
mod greeting;
mod keys;
mod locks;
mod login;
mod outgoing;
mod packet;
mod product;
mod rsa;
mod scan;
mod secure;
pub(crate) mod server;
mod session;
mod sign;
mod status;
#[cfg(test)]
#[path = "tests/testing.rs"]
mod testing;
mod upkeep;
mod wire;

pub use session::MysqlSession;

pub use crate::Secret;
pub use crate::options::{ConnectionSettings, LoginOptions, LoginOptions as Options, ServerKey};

use crate::{Capabilities, DeleteForm, IndexDdl, IndexHint, KeySource, RowStream};

/// MySQL, MariaDB and Percona Server as one product.
#[derive(Debug)]
pub(crate) struct Mysql;

/// What a server can do with `engine` tables (`InnoDB`, `ROCKSDB`, ...; case does not matter).
/// `owned` says that dbdyno started the server and may drop its binary logs.
pub fn capabilities(engine: &str, owned: bool) -> Capabilities {
    let rocksdb = engine.eq_ignore_ascii_case("rocksdb");
    Capabilities {
        auto_key: "bigint not null auto_increment primary key",
        int_key: "INTEGER NOT NULL AUTO_INCREMENT",
        big_key: "BIGINT NOT NULL AUTO_INCREMENT",
        big_int: "BIGINT",
        unsigned: true,
        begin_write: "BEGIN",
        datetime: "datetime",
        engine: Some(engine.to_owned()),
        table_suffix: format!(" ENGINE={engine}"),
        index_hint: IndexHint::Force,
        delete_form: DeleteForm::OrderLimit,
        index_ddl: if rocksdb { IndexDdl::AlterEach } else { IndexDdl::OneAlter },
        int_param: "?",
        text_writes_by_default: true,
        text_queries_by_default: true,
        blocking: false,
        row_stream: RowStream::LocalInfile,
        parallel_writers: true,
        keeps_arrival_order: ["myisam", "aria"].iter().any(|heap| engine.eq_ignore_ascii_case(heap)),
        drops_binlog: owned,
        key_source: KeySource::TableCounter,
        contiguous_keys: true,
        gather_statistics: "ANALYZE TABLE",
        typed_values: true,
        foreign_keys: engine.eq_ignore_ascii_case("innodb"),
        ordered_join: (" STRAIGHT_JOIN ", ""),
        stores_data: true,
        foreign: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_follow_the_engine() {
        let innodb = capabilities("InnoDB", true);
        assert_eq!(innodb.table_suffix, " ENGINE=InnoDB");
        assert_eq!(innodb.index_ddl, IndexDdl::OneAlter);
        assert!(innodb.drops_binlog);
        assert!(!innodb.keeps_arrival_order && capabilities("MyISAM", true).keeps_arrival_order);
        let rocksdb = capabilities("ROCKSDB", false);
        assert_eq!(rocksdb.index_ddl, IndexDdl::AlterEach);
        assert!(!rocksdb.drops_binlog);
    }
}
