//! Makes random changes to bytes from a fixed seed, and runs a test in a process with little
//! memory. The tests of everything that reads records use both.

use std::process::Command;

use nix::sys::resource::{Resource, setrlimit};

/// Bytes of address space that the process may have.
const ADDRESSES: u64 = 512 << 20;
const CHILD: &str = "DBDYNO_FUZZ_CHILD";

/// Numbers at the limits of types and plausible values, where a reader is most likely to fail.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "4294967295",
    "4294967296",
    "1000000000000",
    "9007199254740992",
    "9007199254740993",
    "9200000000000000000",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1e308",
    "0.5",
];

/// The generator is SplitMix64: G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number
/// generators, OOPSLA 2014.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new() -> Self {
        Self(17)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Returns `bytes` with one to four changes.
    pub(crate) fn mutated(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(4) {
            self.mutate(&mut bytes);
        }
        bytes
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len());
        let end = (at + 1 + self.below(16)).min(bytes.len());
        match self.below(8) {
            0 if !bytes.is_empty() => bytes[at] = self.next() as u8,
            1 if !bytes.is_empty() => bytes[at] ^= 1 << self.below(8),
            2 => bytes.insert(at, self.next() as u8),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            5 if self.below(8) == 0 => bytes.truncate(at),
            6 => self.copy_line(bytes),
            _ => self.replace_number(bytes, at),
        }
    }

    /// Replaces the next number after `at` by one of [`NUMBERS`].
    fn replace_number(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let Some(from) = bytes[at..].iter().position(u8::is_ascii_digit).map(|from| at + from) else {
            return;
        };
        let length = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = NUMBERS[self.below(NUMBERS.len())];
        bytes.splice(from..from + length, number.bytes());
    }

    /// Replaces a line by a copy of another one.
    fn copy_line(&mut self, bytes: &mut Vec<u8>) {
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let (one, other) = (self.below(lines.len()), self.below(lines.len()));
        lines[one] = lines[other];
        *bytes = lines.join(&b'\n');
    }
}

/// Runs `read` in a separate process. Its argument is the number of inputs to read, which is
/// `inputs` unless `DBDYNO_FUZZ_INPUTS` sets another number. `test` is the full name of the calling
/// test.
pub(crate) fn in_a_small_process(test: &str, inputs: u64, read: impl FnOnce(u64)) {
    let inputs = std::env::var("DBDYNO_FUZZ_INPUTS").map_or(inputs, |inputs| inputs.parse().unwrap());
    if std::env::var_os(CHILD).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        // One arena per thread would take addresses that are never used.
        child.env(CHILD, "1").env("MALLOC_ARENA_MAX", "1").args([
            "--exact",
            test,
            "--include-ignored",
            "--nocapture",
        ]);
        let ended = child.output().unwrap();
        let said =
            String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && said.contains("1 passed"), "{}: {said}", ended.status);
        return;
    }
    setrlimit(Resource::RLIMIT_AS, ADDRESSES, ADDRESSES).unwrap();
    read(inputs);
}
