//! Tests of sysbench scripts that never end, in Lua itself or in a function that Lua calls. The end
//! of the step and the first Ctrl-C must each end them.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::support::{Desk, wait_for};

/// A pattern match that takes Lua's library years.
const PATTERN: &str = "return string.find(string.rep('a', 3000000), '.-.-.-.-.-b')";

/// A sleep of 127 years.
const SLEEP: &str = "return require('ffi').C.sleep(4000000000)";

/// A loop that catches the error by which dbdyno ends a script.
const LOOP: &str = "while true do pcall(function() while true do end end) end";

#[test]
fn an_endless_event_ends_with_its_step() {
    let finalizer = "local p = newproxy(true) getmetatable(p).__gc = function() while true do end end p = nil collectgarbage()";
    const AT_THE_CAP: &str = "not done after its time cap of 2 s";
    for (event, says) in [
        (PATTERN, AT_THE_CAP),
        (SLEEP, AT_THE_CAP),
        (LOOP, AT_THE_CAP),
        (finalizer, "attempt to call global 'newproxy' (a nil value)"),
    ] {
        let desk = Desk::new();
        desk.write("own.lua", &format!("function event() {event} end\n"));
        let words = ["sysbench", "own.lua", "--mysql-socket=none", "--time=1", "--forced-shutdown=1", "run"];
        let ended = desk.dbdyno(&words);
        ended.expect_code(1);
        assert!(ended.err.contains(says), "{event}: {ended:?}");
    }
}

/// Longest time until the run has ended. It is far less than the event's time, the step's time, and
/// the time for which a script may run without a statement.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn the_first_ctrl_c_ends_an_endless_event() {
    for event in [PATTERN, SLEEP, LOOP] {
        let desk = Desk::new();
        let begun = desk.path("begun");
        let begins = format!("io.open('{}', 'w'):close()", begun.display());
        desk.write("own.lua", &format!("function event() {begins} {event} end\n"));
        desk.write(
            "p.toml",
            "name = \"test\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.sysbench]\n\
             script = \"own.lua\"\ncommands = [\"run\"]\nallow = [\"files\"]\ntime = \"100000s\"\n",
        );
        let mut running = desk.start(&mut desk.command(&["run", "p.toml"]));
        wait_for("the event to begin", || {
            running.expect_running("the event");
            begun.exists().then_some(())
        });
        let asked = Instant::now();
        running.signal(Signal::SIGINT);
        let ended = running.wait();
        ended.expect_code(130);
        assert!(asked.elapsed() < SOON, "{event}: it took {:?}", asked.elapsed());
    }
}
