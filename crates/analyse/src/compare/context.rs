//! Gives a ratio to the base its context. The context is what else differs between the two
//! variants: query plans, settings and stalls. The cost breakdown splits the ratio into causes: the
//! CPU time per operation, and how much of the CPUs was used.
//!
//! Every run satisfies rate = CPUs × utilisation ÷ CPU time per operation. Both variants have the
//! same CPUs, so the logarithm of the ratio of their rates is ln(ratio of the utilisations) −
//! ln(ratio of the CPU times per operation). The logarithmic mean splits each of these two terms
//! further (Ang, Energy Policy 32, 2004: LMDI-I): ln(x ÷ y) = Σ (xᵢ − yᵢ) ÷ L(x, y), where L(x, y)
//! = (x − y) ÷ ln(x ÷ y). The parts add up to the whole without a remainder, even when some of them
//! are zero.

use dbdyno_record::HostInfo;

use crate::compare::query_plans::plan_differences;
use crate::model::steps::valid;
use crate::model::{
    Cause, CostBreakdown, CostPart, Ratio, RatioContext, StallDifference, StallFigure, Steadiness,
    StepFindings, StepRun,
};
use crate::parity::Parity;
use crate::servers::cpu_list;
use crate::statistics::describe::median;
use crate::window::Hosting;

/// A stall figure, its smallest difference that is reported, and the function that reads it.
type StallMeasure = (StallFigure, f64, fn(&Steadiness) -> Option<f64>);

/// The figures that are compared. The smallest difference is one that a reader of its chart would
/// see.
const STALL_MEASURES: [StallMeasure; 3] = [
    (StallFigure::WorstSecondShare, 0.25, |found| found.worst_share),
    (StallFigure::LongestGapSeconds, 2.0, |found| Some(found.longest_gap_seconds as f64)),
    (StallFigure::ShareBelowHalfMedian, 0.01, |found| Some(found.share_below_half_median)),
];

/// Fills in what else differs from the variant `base` in each step.
pub(crate) fn fill(steps: &mut [StepFindings], base: &str, parity: Option<&Parity>) {
    for step in steps {
        let Some(of_base) = step.variant(base).cloned() else {
            continue;
        };
        for variant in step.variants.iter_mut().filter(|variant| variant.variant != base) {
            let differing = |parity: &Parity| parity.differences(base, &variant.variant);
            variant.context = RatioContext {
                query_plans: plan_differences(&of_base.query_plans, &variant.query_plans),
                settings: parity.map_or_else(Vec::new, differing),
                stalls: stalls(&of_base.runs, &variant.runs),
            };
        }
    }
}

fn stalls(base: &[StepRun], variant: &[StepRun]) -> Vec<StallDifference> {
    let difference = |(figure, threshold, value): &StallMeasure| {
        let median_of = |runs: &[StepRun]| {
            let values: Vec<f64> = valid(runs).filter_map(|run| value(run.steadiness.as_ref()?)).collect();
            median(&values)
        };
        let (base, variant) = (median_of(base)?, median_of(variant)?);
        ((base - variant).abs() >= *threshold).then_some(StallDifference { figure: *figure, base, variant })
    };
    STALL_MEASURES.iter().filter_map(difference).collect()
}

/// How the database used the CPUs in one run. The module's header says how this determines the
/// rate.
#[derive(Debug, Clone, Copy)]
struct Use {
    /// CPU time per operation.
    user_us: f64,
    kernel_us: f64,
    /// The share of the CPUs' time that the database used. The three shares add up to 1.
    used: f64,
    io_wait: f64,
    idle: f64,
}

/// Splits the ratio into its causes. The result is `None` when a block of the ratio lacks a CPU
/// figure, for example because no CPU time was sampled.
pub(crate) fn cost_breakdown(
    runs: &[StepRun],
    base: &[StepRun],
    ratio: &Ratio,
    hosting: Hosting,
    cpus: u32,
) -> Option<CostBreakdown> {
    let in_block = |runs: &[StepRun], block: u32| {
        valid(runs).find(|run| run.block == block).and_then(|run| cpu_use(run, hosting, cpus))
    };
    let pairs: Vec<(Use, Use)> = ratio
        .blocks
        .iter()
        .map(|(block, _)| Some((in_block(runs, *block)?, in_block(base, *block)?)))
        .collect::<Option<_>>()?;
    let part = |cause, log: fn(Use, Use) -> f64, value: fn(Use) -> f64| {
        let mean = |of: &dyn Fn(&(Use, Use)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
        CostPart {
            cause,
            base: mean(&|pair| value(pair.1)),
            variant: mean(&|pair| value(pair.0)),
            factor: mean(&|pair| log(pair.0, pair.1)).exp(),
        }
    };
    let parts = vec![
        part(Cause::CpuUser, |new, base| -part_of_cpu(new, base, |cpu| cpu.user_us), |cpu| cpu.user_us),
        part(Cause::CpuKernel, |new, base| -part_of_cpu(new, base, |cpu| cpu.kernel_us), |cpu| cpu.kernel_us),
        part(
            Cause::IoWait,
            |new, base| -part_of_unused(new, base, |cpu| cpu.io_wait),
            |cpu| 100.0 * cpu.io_wait,
        ),
        part(Cause::Idle, |new, base| -part_of_unused(new, base, |cpu| cpu.idle), |cpu| 100.0 * cpu.idle),
    ];
    Some(CostBreakdown { cpus, parts })
}

/// Returns the number of CPUs that the database may use. The result is `None` for a server that
/// cannot be seen, and without a database. A server that others have started may use all CPUs,
/// because the plan does not bind it.
pub(crate) fn cpus(hosting: Hosting, is_external: bool, host: &HostInfo) -> Option<u32> {
    let list = match hosting {
        Hosting::Process if is_external => &None,
        Hosting::Process => &host.server_cpus,
        Hosting::Embedded => &host.client_cpus,
        Hosting::External | Hosting::Nothing => return None,
    };
    list.as_deref().map_or(Some(host.cpus), cpus_in).filter(|cpus| *cpus > 0)
}

/// Returns the number of CPUs in a list like `0-3,8`. A CPU that is named twice counts once.
fn cpus_in(list: &str) -> Option<u32> {
    u32::try_from(cpu_list(list)?.len()).ok()
}

/// Returns the database's use of the CPUs in one run. An embedded database runs in the client's
/// process, so the client's CPU time counts.
fn cpu_use(run: &StepRun, hosting: Hosting, cpus: u32) -> Option<Use> {
    let cost = &run.cost;
    let (user_us, kernel_us) = match hosting {
        Hosting::Process => (cost.server_user_us?, cost.server_kernel_us?),
        _ => (cost.client_user_us?, cost.client_kernel_us?),
    };
    let share = |us: f64| us * run.rate / (1e6 * f64::from(cpus));
    let used = share(user_us + kernel_us);
    // The host counts IO wait in ticks, whereas the CPU time of a process is exact. Together they
    // may slightly exceed the whole.
    let io_wait = share(cost.host_iowait_us?).min((1.0 - used).max(0.0));
    (used > 0.0).then_some(Use { user_us, kernel_us, used, io_wait, idle: 1.0 - used - io_wait })
}

/// Returns what one part of the CPU time per operation adds to the logarithm of the variants' ratio
/// of CPU time per operation.
fn part_of_cpu(new: Use, base: Use, part: fn(Use) -> f64) -> f64 {
    (part(new) - part(base)) / logarithmic_mean(new.user_us + new.kernel_us, base.user_us + base.kernel_us)
}

/// Returns what one part of the unused time takes from the logarithm of the utilisations' ratio.
fn part_of_unused(new: Use, base: Use, part: fn(Use) -> f64) -> f64 {
    (part(new) - part(base)) / logarithmic_mean(new.used, base.used)
}

fn logarithmic_mean(x: f64, y: f64) -> f64 {
    let log = (x / y).ln();
    // For a ratio near 1 the quotient loses its digits. There the arithmetic mean has a relative
    // error of only log² ÷ 12.
    if log.abs() < 1e-6 { f64::midpoint(x, y) } else { (x - y) / log }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::step_run;
    use crate::metrics::Cost;

    fn run(
        block: u32,
        worst_share: f64,
        longest_gap_seconds: usize,
        share_below_half_median: f64,
    ) -> StepRun {
        let steadiness = Steadiness {
            seconds: 60,
            median_rate: 100.0,
            worst_rate: 100.0 * worst_share,
            worst_share: Some(worst_share),
            longest_gap_seconds,
            share_below_half_median,
            warm_up_seconds: None,
            never_steady: false,
            period_seconds: None,
            modes: None,
            low_mode_share: None,
        };
        StepRun { steadiness: Some(steadiness), ..step_run(block, 100.0) }
    }

    #[test]
    fn stalls_that_a_chart_would_show_are_reported_with_the_median_of_the_blocks() {
        let base = [run(1, 0.9, 0, 0.0), run(2, 0.8, 0, 0.001), run(3, 0.1, 9, 0.3)];
        let stalling = [run(1, 0.0, 3, 0.05), run(2, 0.1, 2, 0.04)];
        let found = stalls(&base, &stalling);
        let reported: Vec<_> = found.iter().map(|stall| (stall.figure, stall.base)).collect();
        assert_eq!(
            reported,
            [
                (StallFigure::WorstSecondShare, 0.8),
                (StallFigure::LongestGapSeconds, 0.0),
                (StallFigure::ShareBelowHalfMedian, 0.001)
            ]
        );
        assert!((found[2].variant - 0.045).abs() < 1e-12);
        assert!(stalls(&base, &[run(1, 0.7, 1, 0.005)]).is_empty());
        assert!(stalls(&base, &[step_run(1, 100.0)]).is_empty(), "without seconds");
    }

    fn cost_breakdown_run(block: u32, rate: f64, user_us: f64, kernel_us: f64, iowait_us: f64) -> StepRun {
        let cost = Cost {
            server_user_us: Some(user_us),
            server_kernel_us: Some(kernel_us),
            host_iowait_us: Some(iowait_us),
            ..Cost::default()
        };
        StepRun { cost, ..step_run(block, rate) }
    }

    fn host(server_cpus: &str) -> HostInfo {
        HostInfo { cpus: 8, server_cpus: Some(server_cpus.to_owned()), ..HostInfo::default() }
    }

    fn breakdown_of(new: &[StepRun], base: &[StepRun]) -> CostBreakdown {
        let ratio = crate::compare::ratio::ratio_of_runs(new, base).unwrap();
        let breakdown = cost_breakdown(new, base, &ratio, Hosting::Process, 2).unwrap();
        let product: f64 = breakdown.parts.iter().map(|part| part.factor).product();
        assert!((product / ratio.value - 1.0).abs() < 1e-9, "{product} {}", ratio.value);
        breakdown
    }

    fn factors(breakdown: &CostBreakdown) -> Vec<String> {
        breakdown.parts.iter().map(|part| format!("{:.3}", part.factor)).collect()
    }

    #[test]
    fn more_cpu_per_operation_at_full_use_is_attributed_to_its_mode() {
        // Both runs use the 2 CPUs fully: 100 µs per operation give 20,000/s, and 125 µs give
        // 16,000/s.
        let breakdown = breakdown_of(
            &[cost_breakdown_run(1, 16_000.0, 105.0, 20.0, 0.0)],
            &[cost_breakdown_run(1, 20_000.0, 80.0, 20.0, 0.0)],
        );
        assert_eq!(factors(&breakdown), ["0.800", "1.000", "1.000", "1.000"]);
        assert_eq!((breakdown.cpus, breakdown.parts[0].base, breakdown.parts[0].variant), (2, 80.0, 105.0));
    }

    #[test]
    fn waiting_for_io_is_distinguished_from_other_idleness() {
        // Both runs take 100 µs of CPU time per operation. The base uses the 2 CPUs fully. The
        // variant uses 60 % of them, and they wait for IO 30 % of the time.
        let breakdown = breakdown_of(
            &[cost_breakdown_run(1, 12_000.0, 80.0, 20.0, 50.0)],
            &[cost_breakdown_run(1, 20_000.0, 80.0, 20.0, 0.0)],
        );
        assert_eq!(factors(&breakdown)[..2], ["1.000", "1.000"]);
        let logs: Vec<f64> = breakdown.parts.iter().map(|part| part.factor.ln()).collect();
        assert!((logs[2] / logs[3] - 3.0).abs() < 1e-9, "30 % against 10 %: {logs:?}");
        assert!((breakdown.parts[2].variant - 30.0).abs() < 1e-9);
    }

    #[test]
    fn the_parts_of_several_blocks_multiply_to_the_ratio() {
        let base = [
            cost_breakdown_run(1, 900.0, 700.0, 300.0, 100.0),
            cost_breakdown_run(2, 1_000.0, 650.0, 310.0, 0.0),
        ];
        let new = [
            cost_breakdown_run(1, 990.0, 600.0, 330.0, 20.0),
            cost_breakdown_run(2, 870.0, 640.0, 370.0, 250.0),
        ];
        breakdown_of(&new, &base);
    }

    #[test]
    fn without_every_figure_there_is_no_breakdown() {
        let base = [cost_breakdown_run(1, 900.0, 700.0, 300.0, 100.0)];
        let mut new = base.to_vec();
        new[0].cost.host_iowait_us = None;
        let ratio = crate::compare::ratio::ratio_of_runs(&new, &base).unwrap();
        assert_eq!(cost_breakdown(&new, &base, &ratio, Hosting::Process, 2), None);
    }

    #[test]
    fn cpu_lists_are_counted() {
        assert_eq!([cpus_in("0-1"), cpus_in("0-3, 2,8"), cpus_in("5")], [Some(2), Some(5), Some(1)]);
        assert_eq!([cpus_in("3-1"), cpus_in("x")], [None, None]);
        let of = |hosting, is_external| cpus(hosting, is_external, &host("0-1"));
        assert_eq!((of(Hosting::Process, false), of(Hosting::External, true)), (Some(2), None));
        assert_eq!(of(Hosting::Process, true), Some(host("").cpus), "all of the host's");
    }
}
