//! Computes what the CPU counted for the server in a step, per unit of the headline.

use super::group;
use crate::window::{Hosting, WindowSummary};

const SOURCE: &str = "hardware";

group! {
    /// The server's instructions, cycles and misses. A figure is `None` where the CPU has no such
    /// counter.
    #[derive(Copy)]
    HardwareUse: |step: WindowSummary<'_>| {
        instructions: "instructions", "1/op", 0, Less,
            step.per_unit(SOURCE, &["instructions_user", "instructions_kernel"]),
            "Instructions of the server, in user mode and in the kernel.";
        user_instructions: "user instr.", "1/op", 0, Less, step.per_unit(SOURCE, &["instructions_user"]),
            "Instructions of the server in user mode.";
        kernel_instructions: "kernel instr.", "1/op", 0, Less, step.per_unit(SOURCE, &["instructions_kernel"]),
            "Instructions of the server in the kernel.";
        cycles: "cycles", "1/op", 0, Less, step.per_unit(SOURCE, &["cycles_user", "cycles_kernel"]),
            "Cycles of the server, in user mode and in the kernel.";
        instructions_per_cycle: "IPC", "1/cycle", 2, Neither,
            Some(Self::instructions(step)? / Self::cycles(step).filter(|cycles| *cycles > 0.0)?),
            "Instructions per cycle.";
        cache_misses: "cache misses", "1/op", 1, Less, step.per_unit(SOURCE, &["cache_misses"]),
            "Misses of the last-level cache.";
        branch_misses: "branch misses", "1/op", 1, Less, step.per_unit(SOURCE, &["branch_misses"]),
            "Branches that were predicted wrongly.";
        tlb_misses: "TLB misses", "1/op", 1, Less, step.per_unit(SOURCE, &["tlb_misses"]),
            "Reads of data whose address was in no first-level TLB.";
    }
}

/// Computes the figures; `None` where the CPU counted nothing for the server.
pub(crate) fn hardware(step: &WindowSummary<'_>) -> Option<HardwareUse> {
    let is_counted = step.hosting == Hosting::Process && step.counters.contains_key(SOURCE);
    is_counted.then(|| HardwareUse::of(step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{read_write_step, series, summary, with_counters};

    #[test]
    fn instructions_are_per_operation_and_absent_without_counters() {
        let counted = series(
            SOURCE,
            &["instructions_user", "instructions_kernel", "cycles_user", "cycles_kernel"],
            &[(0, vec![0, 0, 0, 0]), (2_500_000, vec![8_000_000, 2_000_000, 15_000_000, 5_000_000])],
        );
        let step = with_counters(&counted);
        let found = hardware(&summary(&step)).unwrap();
        // The step has 500 queries in its window.
        assert_eq!((found.instructions, found.user_instructions), (Some(20_000.0), Some(16_000.0)));
        assert_eq!((found.instructions_per_cycle, found.branch_misses), (Some(0.5), None));
        assert!(hardware(&summary(&read_write_step())).is_none());
    }
}
