//! Source `interrupts`: interrupts by which one CPU makes another do something, from
//! `/proc/interrupts`.
//!
//! Keys: `<side>_rescheduling` counts interrupts that tell a CPU that a thread was woken for it, or
//! that its thread should give way. `<side>_function_call` counts all other requests to the CPU,
//! including newer kernels' wake-ups of idle CPUs. Each is summed over the CPUs of
//! `server` and of `client`, since the first sample. Where the two share CPUs it is not sampled,
//! because the interrupt may be for either. A CPU that polls while it is idle is woken without an
//! interrupt.
//!
//! x86 names the lines `RES` and `CAL`. ARM and RISC-V number them (`IPI0`), in an order that differs
//! between kernels. All of them end in the same words, so lines are found by these. Counters have 32
//! bits and start again at 0 after the highest value.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{ProcFile, Source, Values, about};
use crate::Error;

/// Kinds of interrupts: their names in keys, and the words at the end of their lines. Kernels before
/// 5.0 have a separate line for a function call that is for one CPU only.
const KINDS: [(&str, &str); 2] =
    [("rescheduling", "rescheduling interrupts"), ("function_call", "function call interrupts")];

/// One count per CPU.
type CpuCounts = HashMap<u32, u32>;

/// Interrupts of the CPUs of one side.
#[derive(Debug)]
struct CpuInterrupts {
    cpus: Vec<u32>,
    keys: [String; KINDS.len()],
    /// The counts as last read.
    last: [CpuCounts; KINDS.len()],
    sums: [i64; KINDS.len()],
}

impl CpuInterrupts {
    fn new(name: &str, cpus: Vec<u32>) -> Self {
        let keys = KINDS.map(|(kind, _)| format!("{name}_{kind}"));
        Self { cpus, keys, last: Default::default(), sums: Default::default() }
    }

    /// Adds the interrupts since the last reading. For a CPU that was not online then, counting
    /// begins now.
    fn add(&mut self, kinds: &[CpuCounts; KINDS.len()]) {
        for ((last, sum), counts) in self.last.iter_mut().zip(&mut self.sums).zip(kinds) {
            for cpu in &self.cpus {
                let Some(now) = counts.get(cpu) else { continue };
                let before = last.insert(*cpu, *now).unwrap_or(*now);
                *sum += i64::from(now.wrapping_sub(before));
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Interrupts {
    file: ProcFile,
    sides: [CpuInterrupts; 2],
}

impl Interrupts {
    pub(crate) fn open(server: Vec<u32>, client: Vec<u32>) -> Result<Self, Error> {
        let sides = [CpuInterrupts::new("server", server), CpuInterrupts::new("client", client)];
        Ok(Self { file: ProcFile::open("/proc/interrupts")?, sides })
    }
}

impl Source for Interrupts {
    fn about(&self) -> Map<String, Value> {
        let [server, client] = &self.sides;
        about([("server_cpus", server.cpus.clone().into()), ("client_cpus", client.cpus.clone().into())])
    }

    fn fill(&mut self, values: &mut Values) -> Result<(), Error> {
        let counts = self.file.parsed("lines of rescheduling and function call interrupts", parse)?;
        for side in &mut self.sides {
            side.add(&counts);
            side.keys.iter().zip(side.sums).for_each(|(key, sum)| values.set(key, sum));
        }
        Ok(())
    }
}

/// Returns the counts of each kind, or `None` where one kind has no line. The first line names the
/// CPUs that are online.
fn parse(text: &str) -> Option<[CpuCounts; KINDS.len()]> {
    let mut lines = text.lines();
    let names = lines.next()?.split_ascii_whitespace();
    let cpus: Vec<u32> = names.map(|name| name.strip_prefix("CPU")?.parse().ok()).collect::<Option<_>>()?;
    let mut kinds: [CpuCounts; KINDS.len()] = Default::default();
    for line in lines {
        let Some(kind) = KINDS.iter().position(|(_, words)| ends_with(line.trim_end(), words)) else {
            continue;
        };
        let counts = line.split_once(':')?.1.split_ascii_whitespace();
        let counts = counts.map_while(|count| count.parse::<u64>().ok().map(low));
        for (cpu, count) in cpus.iter().zip(counts) {
            let sum = kinds[kind].entry(*cpu).or_insert(0);
            *sum = sum.wrapping_add(count);
        }
    }
    kinds.iter().all(|counts| !counts.is_empty()).then_some(kinds)
}

/// Returns the low 32 bits, with which every kernel counts.
fn low(count: u64) -> u32 {
    (count & u64::from(u32::MAX)) as u32
}

/// Returns whether these are the last words of a line, in capitals or not.
fn ends_with(line: &str, words: &str) -> bool {
    let at = line.len().checked_sub(words.len());
    at.and_then(|at| line.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Moment;

    /// Returns the rescheduling and function-call interrupts of each CPU, by its number.
    fn parsed(text: &str) -> Option<Vec<(u32, u32, u32)>> {
        let [rescheduling, calls] = parse(text)?;
        let mut all: Vec<_> = rescheduling.iter().map(|(cpu, count)| (*cpu, *count, calls[cpu])).collect();
        all.sort_unstable();
        Some(all)
    }

    #[test]
    fn x86_of_linux_6_18_and_of_2_6_32() {
        let text = include_str!("../../tests/proc/linux-6.18-two-cpus/interrupts");
        assert_eq!(parsed(text).unwrap(), [(0, 37_865, 108_391), (1, 24_153, 87_601)]);
        let text = include_str!("../../tests/proc/linux-2.6.32/interrupts");
        assert_eq!(parsed(text).unwrap(), [(0, 215_520, 3_127), (1, 209_116, 2_960)]);
        // Earlier kernels began some words with a small letter.
        let older = text.replace("Function call", "function call");
        assert_eq!(parsed(&older), parsed(text));
    }

    #[test]
    fn arm64_of_linux_6_1_with_a_cpu_offline_and_of_3_18_with_calls_of_two_kinds() {
        let text = include_str!("../../tests/proc/linux-6.1-arm64/interrupts");
        assert_eq!(parsed(text).unwrap(), [(0, 51_230, 6_188), (1, 48_127, 7_145), (3, 50_116, 6_920)]);
        let text = include_str!("../../tests/proc/linux-3.18-arm64/interrupts");
        assert_eq!(parsed(text).unwrap(), [(0, 158_220, 356), (1, 168_619, 1_718)]);
    }

    #[test]
    fn the_machine_that_runs_this_test_counts_on_or_says_what_is_missing() {
        let mut source = Interrupts::open(vec![0], vec![1]).unwrap();
        let mut values = Values::default();
        let text = std::fs::read_to_string("/proc/interrupts").unwrap();
        match source.read(Moment::Boundary, &mut values) {
            Ok(at) => assert!(at.is_some() && parse(&text).is_some()),
            Err(error) => {
                assert!(error.to_string().contains("rescheduling") && parse(&text).is_none(), "{error}");
                return;
            }
        }
        assert!(values.map().values().all(|count| *count == 0) && values.map().len() == 4, "{values:?}");
        source.read(Moment::Boundary, &mut values).unwrap();
        assert!(values.map().values().all(|count| *count >= 0), "{values:?}");
    }

    #[test]
    fn a_text_without_these_lines_is_refused() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("           CPU0\n  1:  5  IO-APIC  1-edge  i8042\n"), None);
        assert_eq!(parse("           CPU0\nRES:  5  Rescheduling interrupts\n"), None);
    }

    #[test]
    fn each_side_has_the_interrupts_of_its_cpus_and_a_counter_may_begin_again() {
        let mut side = CpuInterrupts::new("client", vec![1, 3]);
        let counts = |one, three| CpuCounts::from([(0, 7), (1, one), (3, three)]);
        side.add(&[counts(u32::MAX - 4, 100), counts(1, 1)]);
        assert_eq!(side.sums, [0, 0]);
        side.add(&[counts(5, 130), counts(1, 2)]);
        assert_eq!((side.sums, side.keys[1].as_str()), ([40, 1], "client_function_call"));
        side.add(&[CpuCounts::from([(0, 9), (1, 6)]), counts(1, 2)]);
        assert_eq!(side.sums, [41, 1], "CPU 3 is offline");
    }
}
