//! `client` against a known amount of CPU work. Alone in its process, so that no other test adds to it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::{Duration, Instant};

use dbdyno_sample::{Config, Sampler};
use nix::time::{ClockId, clock_gettime};

mod common;

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
    let recording = common::Recording::new();
    let sampler = Sampler::start(&Config::default(), |header| recording.counters(header)).unwrap();
    sampler.begin(Instant::now());
    common::wait_for("the first sample", || {
        recording.read("client").is_some_and(|client| !client.lines.is_empty())
    });
    let burnt = burn(Duration::from_millis(700))
        + std::thread::spawn(|| burn(Duration::from_millis(700))).join().unwrap();
    sampler.stop().unwrap();

    let client = recording.read("client").unwrap();
    let burnt_us = i64::try_from(burnt.as_micros()).unwrap();
    let cpu_us = client.growth("cpu_us");
    assert!((cpu_us - burnt_us).abs() * 20 <= burnt_us, "{cpu_us} µs seen, {burnt_us} µs burnt");
    let split_us = client.growth("cpu_user_us") + client.growth("cpu_kernel_us");
    assert!((split_us - cpu_us).abs() * 20 <= cpu_us, "{split_us} µs as user and kernel, {cpu_us} µs in all");
    let sampler_us = recording.read("sampler").unwrap().growth("cpu_us");
    assert!(sampler_us > 0 && sampler_us < cpu_us / 20, "{sampler_us} µs of {cpu_us} µs for sampling");
}
