//! Tests the keys `data` and `cold` of each workload.

use dbdyno_workloads::plans::parse;

fn read(variant: &str, workload: &str) -> String {
    let text = format!("name = \"p\"\n[[variant]]\nname = \"a\"\n{variant}\n[workload.{workload}\n");
    match parse(&text, "test.toml") {
        Ok(plan) => {
            let (data, cold) = plan.workload.data_of(plan.workload.names()[0]);
            format!("{} {cold:?}", data.name())
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn data_modes_and_cold_steps_are_read_and_mistakes_are_named() {
    let sqlite = "server = \"sqlite\"";
    let theirs = "address = \"mysql://u@h/db\"";
    let all = [
        read(sqlite, "oltp]"),
        read(sqlite, "oltp]\ndata = \"restore-each-step\"\ncold = true"),
        read(sqlite, "insert-benchmark]\ndata = \"restore\"\ncold = [\"qr100\"]"),
        read(sqlite, "insert-benchmark]\ncold = [\"l.i0\"]\nrates = [100]"),
        read(sqlite, "insert-benchmark]\ndata = \"reset\""),
        read(sqlite, "oltp]\ncold = \"yes\""),
        read(sqlite, "oltp]\ndata = \"fresh\""),
        read(sqlite, "microbenchmarks]\ndata = \"restore-each-step\"\ncold = [\"scan\"]"),
        read(sqlite, "microbenchmarks]\ncold = [\"scan.c1\"]\nsteps = [\"scan\", \"delete\"]"),
        read(theirs, "microbenchmarks]\ndata = \"reset\""),
        read(theirs, "oltp]\ndata = \"restart\""),
        read(theirs, "oltp]\ncold = true"),
    ];
    insta::assert_snapshot!(all.join("\n"), @r#"
    preserve All(false)
    restore-each-step All(true)
    restore Steps(["qr100"])
    test.toml:6:8: cold names l.i0, which is no step after the load; there are: l.i1, l.i2, qr100, qp100
    test.toml:6:8: data = "reset" does not fit: each step goes on with the tables of the one before it; use "preserve", "restart" or "restore"
    test.toml:6:8: found string "yes" where true, false or a list of steps such as ["qr100"] is wanted
    test.toml:6:8: `fresh` is not a value of this key; it takes preserve, restart, reset, restore, restore-each-step
    restore-each-step Steps(["scan"])
    test.toml:6:8: cold names scan.c1, which is no step after the load; there are: scan, delete
    test.toml:4:11: variant `a` is an external server, but data = "reset" of microbenchmarks stops and starts the server: leave it out
    test.toml:4:11: variant `a` is an external server, but data = "restart" of oltp stops and starts the server: leave it out
    test.toml:4:11: variant `a` is an external server, but cold of oltp stops and starts the server: leave it out
    "#);
}
