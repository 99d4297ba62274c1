//! Tests that servers whose default character set is not compatible with ASCII load the same rows,
//! because every stream and connection names its own character set.

use crate::servers::{MARIADB_10_11, MYSQL_8_0, variant};
use crate::support::{Desk, faults, findings};

const PLAN: &str = "
[workload.dbt3]
scale_factor = 0.01
queries = [1, 6]
[workload.insert-benchmark]
load_rows = 2000
write_rows = 500
rates = [100]
read_write_time = \"1s\"
settle_wait = \"0s\"
[workload.oltp]
tests = [\"point-select\"]
table_size = 1000
connections = [1]
time = \"1s\"
load_method = \"stream\"
settle_wait = \"0s\"
";

#[test]
#[ignore = "in cargo xtask test --all: servers of its own"]
fn servers_with_utf16_as_default_load_every_workload() {
    let desk = Desk::new();
    desk.write("own.cnf", "[mysqld]\ncharacter_set_server = utf16\ncollation_server = utf16_unicode_ci\n");
    let variants = variant("maria", MARIADB_10_11, "own_config = \"own.cnf\"")
        + &variant("mysql", MYSQL_8_0, "own_config = \"own.cnf\"");
    desk.write("p.toml", &format!("name = \"test\"\n{variants}{PLAN}"));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    let findings = findings(&desk.run_dir());
    assert_eq!((faults(&findings), findings.run.cells_completed), (Vec::new(), 6));
}
