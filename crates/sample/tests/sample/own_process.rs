//! Tests source `client` with a known amount of CPU work, in a separate process, so that no other
//! test adds to the CPU time.

use std::process::Command;
use std::time::{Duration, Instant};

use dbdyno_sample::{Config, Sampler};
use nix::time::{ClockId, clock_gettime};

use crate::common;

/// Environment variable of the copy of this program that runs only this test.
const OWN: &str = "DBDYNO_TEST_OWN_PROCESS";

fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

fn burn(cpu: Duration) -> Duration {
    let start = thread_cpu();
    let mut sum = 0_u64;
    while thread_cpu() - start < cpu {
        for number in 0..10_000_u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(number));
        }
    }
    thread_cpu() - start
}

#[test]
fn the_cpu_time_of_this_process_is_what_its_threads_burnt_ended_ones_included() {
    const NAME: &str =
        "own_process::the_cpu_time_of_this_process_is_what_its_threads_burnt_ended_ones_included";
    if std::env::var_os(OWN).is_some() {
        return check_burnt_cpu_time();
    }
    let mut own = Command::new(std::env::current_exe().unwrap());
    let ended = own.args(["--exact", NAME, "--nocapture"]).env(OWN, "1").output().unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(ended.status.success() && said.contains("1 passed"), "{}: {said}", ended.status);
}

fn check_burnt_cpu_time() {
    let recording = common::Recording::new();
    let before = thread_cpu();
    let sampler = Sampler::start(&Config::default(), |header| recording.counters(header)).unwrap();
    sampler.begin(Instant::now());
    common::wait_for("the first sample", || {
        recording.read("client").is_some_and(|client| !client.lines.is_empty())
    });
    let burnt_here = burn(Duration::from_millis(700));
    let burnt = burnt_here + std::thread::spawn(|| burn(Duration::from_millis(700))).join().unwrap();
    let report = sampler.stop().unwrap();
    // CPU time that this test and the sampler used in addition. Some of it was before the first
    // sample.
    let others = thread_cpu() - before - burnt_here + report.cpu;

    let client = recording.read("client").unwrap();
    let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap();
    let (burnt_us, others_us) = (micros(burnt), micros(others));
    let cpu_us = client.growth("cpu_us");
    let reported = format!("{cpu_us} µs seen, {burnt_us} µs burnt, {others_us} µs used by others");
    // Times are truncated to whole microseconds.
    assert!(cpu_us + 2 >= burnt_us && cpu_us <= burnt_us + burnt_us / 20 + others_us, "{reported}");
    let split_us = client.growth("cpu_user_us") + client.growth("cpu_kernel_us");
    // CPU time between the readings of the clock and of the ticks is in only one of the two.
    let apart_us = (split_us - cpu_us).abs();
    assert!(apart_us <= burnt_us / 20 + others_us, "{split_us} µs as user and kernel, {reported}");
    let sampler = recording.read("sampler").unwrap();
    let sampler_us = sampler.growth("cpu_us");
    assert!(sampler_us > 0 && sampler_us <= micros(report.cpu), "{sampler_us} µs of {:?}", report.cpu);
}
