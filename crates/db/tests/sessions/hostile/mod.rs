//! The sessions against small servers that mean harm, in processes that have 512 MiB of memory: each
//! sends more than that where it can, so that a client which keeps what it should not is ended by
//! the kernel.

mod mysql;
mod postgres;
mod server;

use std::process::Command;

use nix::sys::resource::{Resource, setrlimit};

/// Memory of a whole process, server and client. The limit is one of data that may be written: the
/// allocator reserves 64 MiB of addresses for each thread, and how many threads run is the
/// machine's affair.
const MEMORY: u64 = 512 << 20;

/// Set in the copy of this program that has little memory.
const LIMITED: &str = "DBDYNO_TEST_LITTLE_MEMORY";

/// Does `test`, a closure of the test that calls this, in a copy of this program that has little
/// memory: other tests need more, and servers that they start have the limits of their starter.
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

/// More than the whole process may have.
const TOO_MUCH: usize = 600 << 20;

const PASSWORD: &str = "hunter2 of the test";

/// Runs what waits for a server.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work)
}

/// `bytes` with a few of them changed, removed or added. The same for the same `seed`.
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
