//! Puts errors from MySQL-family servers and their protocol into words, and gives each error number
//! a class. The class says whether the operation can be repeated, was only refused, can never
//! succeed, or has lost its connection.

use crate::Class;
use crate::Class::{Fatal, Lost, Refused, Retry};
use crate::error::ServerFault;

pub(super) type MysqlFault = crate::error::WireFault<MysqlServerError>;

#[derive(Debug, thiserror::Error)]
pub(super) enum MysqlServerError {
    #[error("server said: {message}")]
    Reported { code: u16, message: String },
    #[error("the server asked for a local file, which dbdyno never sends; load the rows with INSERT")]
    LocalFile,
    #[error("the statement is not LOAD DATA LOCAL INFILE, so the server takes no rows")]
    NoLocalFile,
}

impl ServerFault for MysqlServerError {
    fn class(&self) -> Class {
        match self {
            Self::Reported { code, .. } => class_of(*code),
            Self::LocalFile | Self::NoLocalFile => Class::Refused,
        }
    }

    fn code(&self) -> String {
        match self {
            Self::Reported { code, .. } => code.to_string(),
            Self::LocalFile | Self::NoLocalFile => "local infile".to_owned(),
        }
    }

    fn advice(&self) -> &'static str {
        match self {
            // sysbench inserts the id 0 and expects the server to give the next id instead.
            Self::Reported { code: 1062, message } if message.starts_with("Duplicate entry '0' for key") => {
                "; if the server's sql_mode contains NO_AUTO_VALUE_ON_ZERO, it stores the id 0 and does not assign the next id: remove that from sql_mode"
            }
            _ => "",
        }
    }
}

/// Error numbers and their classes, sorted by number. A number that is not in this table has the
/// class [`Class::Refused`]. The numbers come from `mysqld_error.h` in MySQL and MariaDB. The
/// exceptions are 3 and 20, which are disk errors from `mysys`, and 2006 and 2013, which are the
/// client library's.
const CLASSES: &[(u16, Class)] = &[
    (3, Fatal),    // EE_WRITE: a file could not be written
    (20, Fatal),   // EE_DISK_FULL
    (1005, Fatal), // ER_CANT_CREATE_TABLE
    (1007, Fatal), // ER_DB_CREATE_EXISTS
    (1016, Fatal), // ER_CANT_OPEN_FILE
    (1017, Fatal), // ER_FILE_NOT_FOUND
    (1020, Retry), // ER_CHECKREAD: MariaDB's innodb_snapshot_isolation saw a newer row
    (1021, Fatal), // ER_DISK_FULL
    (1026, Fatal), // ER_ERROR_ON_WRITE
    (1030, Fatal), // ER_GET_ERRNO: the storage engine failed, for example with 28 (disk full)
    (1036, Fatal), // ER_OPEN_AS_READONLY
    (1037, Fatal), // ER_OUTOFMEMORY
    (1041, Fatal), // ER_OUT_OF_RESOURCES
    (1044, Fatal), // ER_DBACCESS_DENIED_ERROR
    (1045, Fatal), // ER_ACCESS_DENIED_ERROR
    (1046, Fatal), // ER_NO_DB_ERROR
    (1049, Fatal), // ER_BAD_DB_ERROR
    (1050, Fatal), // ER_TABLE_EXISTS_ERROR
    (1051, Fatal), // ER_BAD_TABLE_ERROR
    (1053, Lost),  // ER_SERVER_SHUTDOWN
    (1054, Fatal), // ER_BAD_FIELD_ERROR
    (1064, Fatal), // ER_PARSE_ERROR
    (1065, Fatal), // ER_EMPTY_QUERY
    (1072, Fatal), // ER_KEY_COLUMN_DOES_NOT_EXITS
    (1077, Lost),  // ER_NORMAL_SHUTDOWN
    (1079, Lost),  // ER_SHUTDOWN_COMPLETE
    (1091, Fatal), // ER_CANT_DROP_FIELD_OR_KEY
    (1109, Fatal), // ER_UNKNOWN_TABLE
    (1113, Fatal), // ER_TABLE_MUST_HAVE_COLUMNS
    (1114, Fatal), // ER_RECORD_FILE_FULL: the table is full
    (1115, Fatal), // ER_UNKNOWN_CHARACTER_SET
    (1129, Fatal), // ER_HOST_IS_BLOCKED
    (1130, Fatal), // ER_HOST_NOT_PRIVILEGED
    (1136, Fatal), // ER_WRONG_VALUE_COUNT_ON_ROW
    (1142, Fatal), // ER_TABLEACCESS_DENIED_ERROR
    (1143, Fatal), // ER_COLUMNACCESS_DENIED_ERROR
    (1146, Fatal), // ER_NO_SUCH_TABLE
    (1149, Fatal), // ER_SYNTAX_ERROR
    (1152, Lost),  // ER_ABORTING_CONNECTION
    (1153, Fatal), // ER_NET_PACKET_TOO_LARGE: a statement beyond max_allowed_packet will never fit
    (1156, Lost),  // ER_NET_PACKETS_OUT_OF_ORDER
    (1158, Lost),  // ER_NET_READ_ERROR
    (1159, Lost),  // ER_NET_READ_INTERRUPTED
    (1160, Lost),  // ER_NET_ERROR_ON_WRITE
    (1161, Lost),  // ER_NET_WRITE_INTERRUPTED
    (1176, Fatal), // ER_KEY_DOES_NOT_EXITS: there is no such index for FORCE INDEX
    (1184, Lost),  // ER_NEW_ABORTING_CONNECTION
    (1193, Fatal), // ER_UNKNOWN_SYSTEM_VARIABLE
    (1194, Fatal), // ER_CRASHED_ON_USAGE
    (1195, Fatal), // ER_CRASHED_ON_REPAIR
    (1205, Retry), // ER_LOCK_WAIT_TIMEOUT
    (1210, Fatal), // ER_WRONG_ARGUMENTS
    (1213, Retry), // ER_LOCK_DEADLOCK
    (1227, Fatal), // ER_SPECIFIC_ACCESS_DENIED_ERROR
    (1231, Fatal), // ER_WRONG_VALUE_FOR_VAR
    (1235, Fatal), // ER_NOT_SUPPORTED_YET
    (1238, Fatal), // ER_INCORRECT_GLOBAL_LOCAL_VAR
    (1243, Fatal), // ER_UNKNOWN_STMT_HANDLER
    (1251, Fatal), // ER_NOT_SUPPORTED_AUTH_MODE
    (1273, Fatal), // ER_UNKNOWN_COLLATION
    (1286, Fatal), // ER_UNKNOWN_STORAGE_ENGINE
    (1295, Fatal), // ER_UNSUPPORTED_PS
    (1298, Fatal), // ER_UNKNOWN_TIME_ZONE
    (1305, Fatal), // ER_SP_DOES_NOT_EXIST
    (1390, Fatal), // ER_PS_MANY_PARAM
    (1461, Fatal), // ER_MAX_PREPARED_STMT_COUNT_REACHED
    (1524, Fatal), // ER_PLUGIN_IS_NOT_LOADED
    (1614, Retry), // ER_XA_RBDEADLOCK
    (1698, Fatal), // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
    (1820, Fatal), // ER_MUST_CHANGE_PASSWORD
    (1862, Fatal), // ER_MUST_CHANGE_PASSWORD_LOGIN
    (1878, Fatal), // ER_TEMP_FILE_WRITE_FAILURE: sorting for an index found no space
    (1927, Lost),  // ER_CONNECTION_KILLED (MariaDB)
    (1932, Fatal), // ER_NO_SUCH_TABLE_IN_ENGINE (MariaDB)
    (2006, Lost),  // CR_SERVER_GONE_ERROR
    (2013, Lost),  // CR_SERVER_LOST
    (3101, Retry), // ER_TRANSACTION_ROLLBACK_DURING_COMMIT: group replication found a conflict
    (3118, Fatal), // ER_ACCOUNT_HAS_BEEN_LOCKED
    (3159, Fatal), // ER_SECURE_TRANSPORT_REQUIRED
    (3169, Lost),  // ER_SESSION_WAS_KILLED
    (4031, Lost),  // ER_CLIENT_INTERACTION_TIMEOUT
];

pub(super) fn class_of(code: u16) -> Class {
    match CLASSES.binary_search_by_key(&code, |entry| entry.0) {
        Ok(at) => CLASSES[at].1,
        Err(_) => Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_reported_with_context_and_code() {
        let fault = MysqlFault::Server(MysqlServerError::Reported {
            code: 1062,
            message: "Duplicate entry '1' for key 'PRIMARY'".into(),
        });
        insta::assert_snapshot!(fault.into_error("INSERT INTO t ... on /run/a.sock"),
            @"INSERT INTO t ... on /run/a.sock: server said: Duplicate entry '1' for key 'PRIMARY' (1062)");
        let zero = MysqlFault::Server(MysqlServerError::Reported {
            code: 1062,
            message: "Duplicate entry '0' for key 'PRIMARY'".into(),
        });
        insta::assert_snapshot!(zero.into_error("INSERT"), @"INSERT: server said: Duplicate entry '0' for key 'PRIMARY'; if the server's sql_mode contains NO_AUTO_VALUE_ON_ZERO, it stores the id 0 and does not assign the next id: remove that from sql_mode (1062)");
        assert_eq!(MysqlFault::Closed.class(), Class::Lost);
        assert_eq!(MysqlFault::Malformed("x").class(), Class::Lost);
    }

    #[test]
    fn the_table_is_sorted_and_has_no_number_twice() {
        assert!(CLASSES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn each_error_number_has_its_class() {
        let check =
            |class, codes: &[u16]| codes.iter().for_each(|&code| assert_eq!(class_of(code), class, "{code}"));
        check(Retry, &[1020, 1205, 1213]);
        check(Lost, &[1053, 1159, 1160, 1161, 1927, 2006, 2013, 4031]);
        check(Refused, &[1040, 1062, 1203, 1226, 1264, 1290, 1317, 1406, 1969, 3024, 9999, 0]);
        check(Fatal, &[3, 1021, 1030, 1044, 1045, 1049, 1054, 1064, 1114, 1142, 1143, 1146, 1298, 1878]);
    }
}
