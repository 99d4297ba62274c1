//! Runs the command `dbdyno` on SQLite, on scripts in place of servers and on known-answer servers,
//! and checks its output, its files and its exit status.

mod bad_input;
mod ci;
mod client_hosts;
mod compare;
mod configs;
mod counting;
mod damage;
mod data_modes;
mod doctor;
mod ending_programs;
mod endless_scripts;
mod ends;
mod experiment;
mod fleet;
mod forecasts;
mod full_disk;
mod going_on;
mod help;
mod history;
mod interrupted;
mod known_answer;
mod links;
mod lists;
mod lost_output;
mod metrics;
mod microbenchmark_tables;
mod microbenchmarks;
mod misloaded;
mod oltp;
mod oltp_options;
mod parity;
mod pgbench;
mod process_limits;
mod quota;
mod recorded;
mod refused_plans;
mod repeated;
mod rests;
mod resumed;
mod run;
mod same_second;
mod servers;
mod spellings;
mod sysbench;
mod terminal;
mod waits;
mod width;

/// Two variants of SQLite. Neither waits for the disk, so that tests are quick.
const TWO_VARIANTS: &str = "
[[variant]]
name = \"rollback\"
server = \"sqlite\"
options.pragmas = { journal_mode = \"delete\", synchronous = \"off\" }

[[variant]]
name = \"wal\"
server = \"sqlite\"
options.pragmas = { journal_mode = \"wal\", synchronous = \"off\" }
";

/// Returns a plan named `test` with these variants, whose loads and index builds take less than a
/// second.
fn plan(variants: &str, options: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.insert-benchmark]\nload_rows = 2000\nwrite_rows = 500\n\
         rates = [100]\nsettle_wait = \"0s\"\n{options}\n"
    )
}

/// Returns a plan named `test` whose only measured step has 10 operations.
fn short_plan(variants: &str) -> String {
    format!(
        "name = \"test\"\n{variants}\n[workload.oltp]\ntests = [\"point-select\"]\ntable_size = 50\n\
         connections = [1]\nevents = 10\nsettle_wait = \"0s\"\n"
    )
}

impl crate::support::Desk {
    /// Writes a shell script that other processes run. A separate process writes it, because the
    /// kernel does not run a program that any process has open for writing. If this process had the
    /// script open, a child that another test starts at that moment would inherit the open file.
    pub(crate) fn write_program(&self, name: &str, script: &str) {
        let text = self.write(&format!("{name}.text"), &format!("#!/bin/sh\n{script}\n"));
        let status = std::process::Command::new("install").arg(text).arg(self.path(name)).status().unwrap();
        assert!(status.success(), "{name} is not written");
    }

    /// Makes a base directory whose server is this shell script.
    fn fake_server(&self, basedir: &str, script: &str) {
        self.write_program(&format!("{basedir}/bin/mysqld"), script);
    }
}
