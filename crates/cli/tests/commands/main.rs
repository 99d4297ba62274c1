//! The command from outside, on SQLite and on nothing: what it prints, what it leaves behind, how it ends.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod bad_input;
mod compare;
mod configs;
mod damage;
mod data_modes;
mod doctor;
mod experiment;
mod full_disk;
mod going_on;
mod help;
mod history;
mod interrupted;
mod known_answer;
mod lists;
mod lost_output;
mod microbenchmark_tables;
mod microbenchmarks;
mod oltp;
mod oltp_options;
mod parity;
mod refused_plans;
mod repeated;
mod resumed;
mod run;
mod servers;
#[path = "../support/mod.rs"]
mod support;

/// A slow and a fast SQLite; neither waits for the disk, so that tests are quick.
const TWO_VARIANTS: &str = "
[[variant]]
name = \"rollback\"
server = \"sqlite\"
pragmas = { journal_mode = \"delete\", synchronous = \"off\" }

[[variant]]
name = \"wal\"
server = \"sqlite\"
pragmas = { journal_mode = \"wal\", synchronous = \"off\" }
";

/// A plan named `test` with these variants; every step is over in a second or less.
fn plan(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.insert-benchmark]\nload_rows = 2000\nwrite_rows = 500\n\
         rates = [100]\nsettle_wait = \"0s\"\n{options}\n"
    )
}

impl support::Desk {
    /// A base directory whose server is this shell script.
    fn fake_server(&self, basedir: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;

        let program = self.write(&format!("{basedir}/bin/mysqld"), &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}
