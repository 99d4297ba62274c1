//! Assigns functions to areas (parser, B-tree, buffer pool, locks, ...) by the patterns in
//! `areas.toml`. A function that fits no pattern is in the area `other`.

use std::sync::LazyLock;

use serde::Deserialize;

use super::names::Function;
use crate::compare::pairs::fits;

/// The area of functions that fit no pattern.
const OTHER: &str = "other";
const KERNEL_OTHER: &str = "kernel: other";
/// The area of functions without a name.
const UNNAMED: &str = "without symbols";
/// The area of the allocator's functions.
pub(super) const MEMORY: &str = "memory";

static AREAS: LazyLock<Areas> = LazyLock::new(|| {
    toml::from_str(include_str!("areas.toml")).expect("the data file is a part of the program and is tested")
});

/// The areas, in the order in which their patterns are tried.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Areas {
    /// Areas of servers, by family of products.
    mysql: Vec<Area>,
    postgres: Vec<Area>,
    /// Areas of libraries, which all servers use.
    library: Vec<Area>,
    kernel: Vec<Area>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Area {
    name: String,
    functions: Vec<String>,
}

/// Returns the area of a function of a server of this family of products.
pub(super) fn area_of(function: &Function, family: &str) -> &'static str {
    let find = |areas: &'static [Area]| {
        let fits_one = |area: &&Area| area.functions.iter().any(|pattern| fits(pattern, &function.name));
        areas.iter().find(fits_one).map(|area| area.name.as_str())
    };
    if function.is_unnamed() {
        return UNNAMED;
    }
    if function.is_kernel {
        return find(&AREAS.kernel).unwrap_or(KERNEL_OTHER);
    }
    let own = match family {
        "mysql" => find(&AREAS.mysql),
        "postgres" => find(&AREAS.postgres),
        _ => None,
    };
    own.or_else(|| find(&AREAS.library)).unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_in_the_area_that_a_person_who_reads_the_code_would_name() {
        for (frame, family, area) in [
            ("btr_search_guess_on_hash", "mysql", "adaptive hash index"),
            ("btr_cur_t::search_leaf", "mysql", "B-tree"),
            ("rec_get_offsets_func", "mysql", "rows and records"),
            ("row_search_mvcc", "mysql", "rows and records"),
            ("buf_page_get_gen", "mysql", "buffer pool"),
            ("MYSQLparse", "mysql", "parse"),
            ("JOIN::optimize_inner", "mysql", "optimise"),
            ("Item_func_eq::val_int", "mysql", "execute"),
            ("lock_rec_lock", "mysql", "locks"),
            ("log_write_up_to", "mysql", "redo log"),
            ("MYSQL_BIN_LOG::write", "mysql", "binary log and replication"),
            ("trx_purge", "mysql", "undo, purge and snapshots"),
            ("_bt_compare", "postgres", "B-tree"),
            ("heap_hot_search_buffer", "postgres", "rows and records"),
            ("LWLockAcquire", "postgres", "locks"),
            ("XLogInsertRecord", "postgres", "redo log"),
            ("AllocSetAlloc", "postgres", "memory"),
            ("ExecInterpExpr", "postgres", "execute"),
            ("__libc_malloc", "mysql", "memory"),
            ("SSL_write", "mysql", "network"),
            ("__schedule_[k]", "mysql", "kernel: scheduler"),
            ("tcp_sendmsg_[k]", "mysql", "kernel: network"),
            ("ext4_file_write_iter_[k]", "mysql", "kernel: filesystem"),
            ("do_syscall_64_[k]", "mysql", "kernel: system call"),
            ("something_new", "mysql", "other"),
            ("[mysqld]", "mysql", "without symbols"),
        ] {
            assert_eq!(area_of(&Function::of(frame), family), area, "{frame}");
        }
    }
}
