//! Tests that the reported response times of two client hosts agree with the server's own
//! measurement.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Desk, faults_but_clocks, findings};
use crate::truth::{Attempt, Server, expect, on_a_machine_of_its_own, turn, urgent, workload};

const OPERATIONS: u64 = 4_000;

#[test]
#[ignore = "in cargo xtask test --all: clocks"]
fn the_p99_of_two_client_hosts_is_the_servers_own() {
    let _turn = turn();
    on_a_machine_of_its_own(|| {
        let desk = Desk::new();
        let options =
            ["known-answer", "--protocol", "mysql", "--threads", "1", "--prepared-only", "--port", "0"];
        let mut command = urgent(&desk, &options);
        command.args(["--delay", "uniform 20ms 60ms", "--stats"]).arg(desk.path("server.json"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let server = Server(child);
        let (_, port) = line.trim_end().rsplit_once(':').unwrap();
        let clients = format!(
            "[clients]\nhosts = [\"127.0.0.1\", \"127.0.0.1\"]\nstart = {:?}\n",
            env!("CARGO_BIN_EXE_dbdyno")
        );
        let variant = format!("[[variant]]\nname = \"a\"\naddress = \"mysql://any@127.0.0.1:{port}/any\"\n");
        let workload = workload(OPERATIONS).replace("\nconnections = [1]", "\nconnections = [16]");
        desk.write("p.toml", &format!("name = \"hosts\"\n{clients}{variant}{workload}"));
        desk.ended(&mut urgent(&desk, &["run", "p.toml"])).expect_ok();
        drop(server);
        let found = findings(&desk.run_dir());
        assert_eq!(faults_but_clocks(&found), [""; 0]);
        let step = found.workloads[0].steps.iter().find(|step| step.name == "point-query").unwrap();
        let response = &step.variants[0].runs[0].kinds[0].response;
        let own: Value =
            serde_json::from_str(&std::fs::read_to_string(desk.path("server.json")).unwrap()).unwrap();
        let own = &own["actual"];
        assert_eq!((response.count, &own["count"]), (OPERATIONS, &OPERATIONS.into()));
        let mut wrong = Vec::new();
        let p99_us = own["p99_us"].as_f64().unwrap();
        expect(&mut wrong, "p99", response.p99_us as f64, p99_us, 0.03);
        let servers_were_late = own["p99_us"].as_f64().unwrap() > 60_000.0 * 1.01;
        let account = format!("{response:?}\n{own}");
        Attempt { false_of_servers: wrong.clone(), wrong, servers_were_late, account }
    });
}
