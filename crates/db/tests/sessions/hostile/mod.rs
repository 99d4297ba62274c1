//! Tests of sessions with hostile servers, in processes that may use 512 MiB of memory. The servers
//! send more than that where they can, so a client that keeps too much runs out of memory and the
//! test fails.

mod mysql;
mod postgres;
mod server;

use std::process::Command;

use nix::sys::resource::{Resource, setrlimit};

/// Memory limit of the whole process, which contains server and client. The limit is on writable
/// data and not on address space, because the allocator reserves 64 MiB of addresses per thread and
/// the number of threads depends on the machine.
const MEMORY: u64 = 512 << 20;

/// Environment variable that is set in the copy of this program that has little memory.
const LIMITED: &str = "DBDYNO_TEST_LITTLE_MEMORY";

/// Runs `test`, a closure in the calling test, in a copy of this program that has little memory.
/// The limit is not set in this process, because other tests need more memory and the servers that
/// they start would inherit the limit.
fn in_little_memory<T: FnOnce()>(test: T) {
    if std::env::var_os(LIMITED).is_some() {
        setrlimit(Resource::RLIMIT_DATA, MEMORY, MEMORY).expect("the process can limit itself");
        return test();
    }
    let name = std::any::type_name::<T>();
    let name = name.trim_end_matches("::{{closure}}");
    let (_, name) = name.split_once("::").expect("the test is in a module of this program");
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(["--exact", name, "--include-ignored", "--nocapture"]).env(LIMITED, "1");
    let ended = command.output().expect("this program starts again");
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(ended.status.success() && said.contains("1 passed"), "{name}: {}\n{said}", ended.status);
}

/// Bytes that exceed the whole process's limit.
const TOO_MUCH: usize = 600 << 20;

const PASSWORD: &str = "hunter2 of the test";

/// Runs a future that waits for a server.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work)
}

/// `bytes` with a few of them changed, removed or added. The same `seed` gives the same result.
fn mutated(bytes: &[u8], seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut out = bytes.to_vec();
    for _ in 0..=draw(4) {
        let at = draw(out.len());
        match draw(4) {
            0 => out[at] ^= 1 << draw(8),
            1 => out[at] = [0, 1, 0x7f, 0x80, 0xfb, 0xfe, 0xff][draw(7)],
            2 if out.len() > 1 => drop(out.remove(at)),
            _ => out.insert(at, draw(256) as u8),
        }
    }
    out
}

/// Whether the password is in what a server received.
fn holds_password(received: &[u8]) -> bool {
    received.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes())
}
