//! Tests of the options `events`, `reconnect` and `ignore_errors`, which sysbench's own OLTP tests
//! have too.

use std::process::Stdio;

use dbdyno_analyse::{KindResult, Validity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::listening::wait_until_it_listens;
use crate::support::{Desk, faults, findings};

/// Returns the headline's figures of the first measured step.
fn first_test(desk: &Desk) -> KindResult {
    let findings = findings(&desk.run_dir());
    let step = findings.workloads[0].steps.iter().find(|step| step.name.contains(".c")).unwrap();
    let run = &step.variants[0].runs[0];
    assert_eq!(run.validity, Validity::Valid, "{:?}", faults(&findings));
    run.kinds[0].clone()
}

fn on_sqlite(options: &str) -> KindResult {
    let desk = Desk::new();
    let text = format!(
        "name = \"test\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n\
         options.pragmas = {{ journal_mode = \"wal\", synchronous = \"off\" }}\n[workload.oltp]\n\
         table_size = 1000\nsettle_wait = \"0s\"\n{options}\n"
    );
    desk.write("p.toml", &text);
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    first_test(&desk)
}

#[test]
fn a_step_ends_with_its_operations_where_the_plan_gives_their_number() {
    let found =
        on_sqlite("tests = [\"read-only\"]\nconnections = [3]\nevents = 100\nwarmup = \"1s\"\ntime = \"1h\"");
    assert_eq!((found.operations, found.failed), (100, 0));
    let point = found.statements.iter().find(|of| of.statement == "point-select").unwrap();
    assert_eq!(point.count, 1000);
}

#[test]
fn connections_are_opened_again_after_a_number_of_operations_and_counted() {
    let options = "connections = [2]\nevents = 100\n";
    for (test, statements) in [("read-write", 17), ("point-select", 1)] {
        let test = format!("tests = [\"{test}\"]\n{options}");
        let found = on_sqlite(&format!("{test}reconnect = 5"));
        let reconnects = found.statements.iter().find(|of| of.statement == "reconnect").unwrap();
        // Each of the two connections has 50 operations.
        assert_eq!((found.operations, reconnects.count, reconnects.service.count), (100, 20, 20), "{test}");
        let others: u64 =
            found.statements.iter().filter(|of| of.statement != "reconnect").map(|of| of.count).sum();
        assert!(others >= 100 * statements, "{test}: {others}");
        let never = on_sqlite(&test);
        assert!(never.statements.iter().all(|of| of.statement != "reconnect"), "{test}");
    }
}

/// Runs 1000 operations of one statement on a server that refuses every 200th statement of a
/// connection with `code`.
fn refused(code: &str, options: &str) -> KindResult {
    let desk = Desk::new();
    let socket = desk.path("answers");
    let mut command = desk.command(&["known-answer", "--protocol", "mysql", "--threads", "1", "--error"]);
    command.arg(format!("{code} every 200")).arg("--socket").arg(&socket);
    let mut server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until_it_listens(&socket);
    let text = format!(
        "name = \"test\"\n[host]\nsampling = false\n[[variant]]\nname = \"a\"\n\
         address = \"mysql://any@localhost/any?socket={}\"\n[workload.oltp]\ntests = [\"update-index\"]\n\
         connections = 1\nevents = 1000\ntable_size = 1\nload_connections = 1\ncreate_secondary = false\n\
         settle_wait = \"0s\"\nverify = \"off\"\n{options}\n",
        socket.display()
    );
    desk.write("p.toml", &text);
    let ended = desk.dbdyno(&["run", "p.toml"]);
    kill(Pid::from_raw(i32::try_from(server.id()).unwrap()), Signal::SIGTERM).unwrap();
    server.wait().unwrap();
    ended.expect_ok();
    first_test(&desk)
}

#[test]
fn errors_of_the_list_begin_an_operation_again_and_all_others_fail_it() {
    let reported = |code: &str, options: &str| {
        let found = refused(code, options);
        (found.failed > 0, found.errors.retry > 0, found.operations + found.failed)
    };
    let (fails, begins_again) = ((true, false, 1000), (false, true, 1000));
    assert_eq!(reported("1213", ""), begins_again);
    assert_eq!(reported("1062", ""), fails);
    assert_eq!(reported("1062", "ignore_errors = [1213, 1062]"), begins_again);
    assert_eq!(reported("1062", "ignore_errors = [\"all\"]"), begins_again);
    assert_eq!(reported("1213", "ignore_errors = [1205, \"40P01\"]"), fails);
}
