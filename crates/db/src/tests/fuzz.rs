//! A test helper for fuzzing. It replays damaged server conversations in a child process with
//! limited memory. An input's number determines the conversation and the damage.
//!
//! `DBDYNO_FUZZ_INPUTS` sets the number of inputs. A failure names its input, and
//! `DBDYNO_FUZZ_FIRST` replays that input.

use std::collections::BTreeMap;
use std::process::Command;

use nix::sys::resource::{Resource, setrlimit};

/// Default number of inputs for each fuzz test. They take a few seconds in a debug build.
const INPUTS: u64 = 10_000;

/// Memory limit for the child process, in bytes.
const ADDRESS_SPACE: u64 = 512 << 20;

/// Environment variable that is set for the child process.
const CHILD: &str = "DBDYNO_FUZZ_CHILD";

/// A server's side of a conversation. It sends one part each time the client has sent something.
pub(crate) type Conversation = Vec<Vec<u8>>;

/// First bytes of lengths, packets, requests and errors.
const TELLING: [u8; 12] = [0, 1, 3, 4, 0x7f, 0x80, 0xfa, 0xfb, 0xfc, 0xfd, 0xfe, 0xff];

/// A random number sequence that depends only on the input's number (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % limit.max(1) as u64) as usize
    }

    /// Lengths of the pieces in which a conversation arrives.
    pub(crate) fn pieces(&mut self) -> Vec<usize> {
        match self.below(3) {
            0 => Vec::new(),
            1 => vec![1 + self.below(9)],
            _ => (0..4).map(|_| 1 + self.below(40)).collect(),
        }
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let end = (at + 1 + self.below(40)).min(bytes.len());
        match self.below(9) {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
            2 | 3 if at < bytes.len() => bytes[at] = TELLING[self.below(TELLING.len())],
            4 => drop(bytes.drain(at..end.min(at + self.below(9)))),
            5 => {
                let more: Vec<u8> = (0..self.below(9)).map(|_| self.below(256) as u8).collect();
                drop(bytes.splice(at..at, more));
            }
            6 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            7 if at + 4 <= bytes.len() => {
                // This writes a length in one of the two byte orders.
                let length = (self.below(1 << 31) >> self.below(32)) as u32;
                let order = [length.to_le_bytes(), length.to_be_bytes()][self.below(2)];
                bytes[at..at + 4].copy_from_slice(&order);
            }
            8 => bytes.truncate(at),
            _ => {}
        }
    }
}

/// Input `number`: one of `conversations` with some damage. One input in sixteen has no damage. The
/// last `rare` conversations cost the client much time, so only one input in a hundred uses them.
fn input(number: u64, conversations: &[Conversation], rare: usize) -> (Conversation, Random) {
    let mut draws = Random(number.wrapping_mul(0xd134_2543_de82_ef95));
    let common = conversations.len() - rare;
    let chosen = match draws.below(100) {
        0 if rare > 0 => common + draws.below(rare),
        _ => draws.below(common),
    };
    let mut conversation = conversations[chosen].clone();
    let damages = if draws.below(16) == 0 { 0 } else { 1 + draws.below(5) };
    for _ in 0..damages {
        let part = draws.below(conversation.len());
        draws.damage(&mut conversation[part]);
    }
    (conversation, draws)
}

/// Passes damaged `conversations` to `play`, which returns a word for each outcome. This happens in
/// a child process, which runs the test `name` again, and that test calls this function. Each word
/// in `endings` must occur.
pub(crate) fn fuzz(
    name: &str,
    conversations: &[Conversation],
    rare: usize,
    endings: &[&str],
    play: impl Fn(&Conversation, &mut Random) -> &'static str,
) {
    if std::env::var_os(CHILD).is_none() {
        let program = std::env::current_exe().expect("the program of this test");
        let child = Command::new(program).args([name, "--exact", "--nocapture"]).env(CHILD, "1").output();
        let child = child.expect("the program runs again");
        let out = String::from_utf8_lossy(&child.stdout);
        let said = format!("{out}{}", String::from_utf8_lossy(&child.stderr));
        assert!(child.status.success() && out.contains("inputs:"), "{name}: {:?}\n{said}", child.status);
        println!("{}", out.lines().filter(|line| line.contains("inputs:")).collect::<Vec<_>>().join("\n"));
        return;
    }
    setrlimit(Resource::RLIMIT_AS, ADDRESS_SPACE, ADDRESS_SPACE).expect("the process can limit itself");
    let said = |name: &str| std::env::var(name).ok().map(|text| text.parse().expect(name));
    let first: u64 = said("DBDYNO_FUZZ_FIRST").unwrap_or(0);
    let count: u64 = said("DBDYNO_FUZZ_INPUTS").unwrap_or(INPUTS);
    let mut met = BTreeMap::new();
    for number in first..first + count {
        let at = Named(number);
        let (conversation, mut draws) = input(number, conversations, rare);
        *met.entry(play(&conversation, &mut draws)).or_insert(0_u64) += 1;
        drop(at);
    }
    println!("{name}: {count} inputs: {met:?}");
    if count >= INPUTS {
        assert!(endings.iter().all(|ending| met.contains_key(ending)), "not all of {endings:?}: {met:?}");
    }
}

/// Prints the number of the input at which a test fails.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("input {0}: DBDYNO_FUZZ_FIRST={0} DBDYNO_FUZZ_INPUTS=1 plays it again", self.0);
        }
    }
}
