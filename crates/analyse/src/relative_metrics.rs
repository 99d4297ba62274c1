//! Every metric of a variant divided by the base's: the relative version of the metric row, of the costs and of the efficiency.

use serde::Serialize;

use crate::ratio::valid;
use crate::{Cost, Efficiency, MetricRow, StepRun};

/// Ratios to the base under the names of the figures: 1.1 in `cpupq` is a tenth more CPU a query.
#[derive(Debug, Clone, Serialize)]
pub struct RelativeMetrics {
    /// Figures of which the base has none and the variant some, as `metrics.rps`. Their ratio is infinite, for which JSON has no
    /// number: it is there as `null`, like one that is not known.
    pub infinite: Vec<String>,
    pub metrics: MetricRow,
    pub efficiency: Efficiency,
    pub cost: Cost,
}

/// One figure in the blocks in which both have it.
type Pairs<'a> = &'a [(&'a StepRun, &'a StepRun)];

/// Over the blocks in which both are valid; `None` when there is none.
pub(crate) fn relative_metrics<'a>(runs: &'a [StepRun], base: &'a [StepRun]) -> Option<RelativeMetrics> {
    let pair = |run: &'a StepRun| Some((run, valid(base).find(|base| base.block == run.block)?));
    let pairs: Vec<(&StepRun, &StepRun)> = valid(runs).filter_map(pair).collect();
    let mut infinite = Vec::new();
    (!pairs.is_empty()).then(|| RelativeMetrics {
        metrics: metrics(&pairs, &mut infinite),
        efficiency: efficiency(&pairs, &mut infinite),
        cost: cost(&pairs, &mut infinite),
        infinite,
    })
}

/// Geometric mean of the blocks' ratios, as of rates. A figure that is 0 in a block has no logarithm: then the ratio of the
/// sums over the blocks; 0 ÷ 0 is 1 and more ÷ 0 infinite, as in published tables.
fn quotient(pairs: Pairs<'_>, figure: impl Fn(&StepRun) -> Option<f64>) -> Option<f64> {
    let both: Vec<(f64, f64)> =
        pairs.iter().filter_map(|(run, base)| Some((figure(run)?, figure(base)?))).collect();
    let count = both.len() as f64;
    if both.is_empty() {
        return None;
    }
    if both.iter().all(|(new, base)| *new > 0.0 && *base > 0.0) {
        return Some((both.iter().map(|(new, base)| (new / base).ln()).sum::<f64>() / count).exp());
    }
    let (new, base) = both.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    Some(if new == 0.0 && base == 0.0 { 1.0 } else { new / base })
}

/// The ratio as it is; an infinite one under its name in the list as well.
fn noted(ratio: Option<f64>, group: &str, name: &str, infinite: &mut Vec<String>) -> Option<f64> {
    if ratio.is_some_and(f64::is_infinite) {
        infinite.push(format!("{group}.{name}"));
    }
    ratio
}

fn metrics(pairs: Pairs<'_>, infinite: &mut Vec<String>) -> MetricRow {
    let mut of = |name: &str, figure: fn(&MetricRow) -> Option<f64>| {
        noted(quotient(pairs, |run| figure(&run.metrics)), "metrics", name, infinite)
    };
    MetricRow {
        ips: of("ips", |row| row.ips),
        qps: of("qps", |row| row.qps),
        rps: of("rps", |row| row.rps),
        rmbps: of("rmbps", |row| row.rmbps),
        wps: of("wps", |row| row.wps),
        wmbps: of("wmbps", |row| row.wmbps),
        rpq: of("rpq", |row| row.rpq),
        rkbpq: of("rkbpq", |row| row.rkbpq),
        wpi: of("wpi", |row| row.wpi),
        wkbpi: of("wkbpi", |row| row.wkbpi),
        csps: of("csps", |row| row.csps),
        cpups: of("cpups", |row| row.cpups),
        cspq: of("cspq", |row| row.cspq),
        cpupq: of("cpupq", |row| row.cpupq),
        dbgb1: of("dbgb1", |row| row.dbgb1),
        dbgb2: of("dbgb2", |row| row.dbgb2),
        rss: of("rss", |row| row.rss),
        maxop: of("maxop", |row| row.maxop),
        p50: of("p50", |row| row.p50),
        p99: of("p99", |row| row.p99),
        tag: pairs.first().map_or_else(String::new, |(run, _)| run.metrics.tag.clone()),
    }
}

fn efficiency(pairs: Pairs<'_>, infinite: &mut Vec<String>) -> Efficiency {
    let mut of = |name: &str, figure: fn(&Efficiency) -> Option<f64>| {
        noted(quotient(pairs, |run| figure(&run.efficiency)), "efficiency", name, infinite)
    };
    Efficiency {
        o_s: of("o_s", |row| row.o_s),
        cpu_o: of("cpu_o", |row| row.cpu_o),
        cs_o: of("cs_o", |row| row.cs_o),
        r_o: of("r_o", |row| row.r_o),
        rkb_o: of("rkb_o", |row| row.rkb_o),
        wkb_o: of("wkb_o", |row| row.wkb_o),
    }
}

fn cost(pairs: Pairs<'_>, infinite: &mut Vec<String>) -> Cost {
    let mut of = |name: &str, figure: fn(&Cost) -> Option<f64>| {
        noted(quotient(pairs, |run| figure(&run.cost)), "cost", name, infinite)
    };
    Cost {
        server_cpu_us: of("server_cpu_us", |cost| cost.server_cpu_us),
        server_user_us: of("server_user_us", |cost| cost.server_user_us),
        server_kernel_us: of("server_kernel_us", |cost| cost.server_kernel_us),
        client_cpu_us: of("client_cpu_us", |cost| cost.client_cpu_us),
        client_user_us: of("client_user_us", |cost| cost.client_user_us),
        client_kernel_us: of("client_kernel_us", |cost| cost.client_kernel_us),
        // Nor is how long answers were not there.
        client_polling_share: None,
        rest_cpu_us: of("rest_cpu_us", |cost| cost.rest_cpu_us),
        host_iowait_us: of("host_iowait_us", |cost| cost.host_iowait_us),
        // What others took is no variant's doing.
        host_steal_share: None,
        server_switches: of("server_switches", |cost| cost.server_switches),
        server_voluntary_switches: of("server_voluntary_switches", |cost| cost.server_voluntary_switches),
        server_involuntary_switches: of("server_involuntary_switches", |cost| {
            cost.server_involuntary_switches
        }),
        server_run_delay_us: of("server_run_delay_us", |cost| cost.server_run_delay_us),
        server_rescheduling_interrupts: of("server_rescheduling_interrupts", |cost| {
            cost.server_rescheduling_interrupts
        }),
        server_function_call_interrupts: of("server_function_call_interrupts", |cost| {
            cost.server_function_call_interrupts
        }),
        client_rescheduling_interrupts: of("client_rescheduling_interrupts", |cost| {
            cost.client_rescheduling_interrupts
        }),
        client_function_call_interrupts: of("client_function_call_interrupts", |cost| {
            cost.client_function_call_interrupts
        }),
        load_voluntary_switches: of("load_voluntary_switches", |cost| cost.load_voluntary_switches),
        fsyncs_per_commit: of("fsyncs_per_commit", |cost| cost.fsyncs_per_commit),
        write_amplification: of("write_amplification", |cost| cost.write_amplification),
        server_read_kib: of("server_read_kib", |cost| cost.server_read_kib),
        // Nor is what others read.
        others_read_share: None,
        sampler_core_share: of("sampler_core_share", |cost| cost.sampler_core_share),
        busiest_load_thread_share: of("busiest_load_thread_share", |cost| cost.busiest_load_thread_share),
        // Nor is what others did on the client's CPUs.
        load_thread_wait_share: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Validity;
    use crate::fixtures::step_run;
    use crate::statistics::simulations::close;

    fn run(block: u32, cpupq: Option<f64>, rps: f64) -> StepRun {
        let mut run = step_run(block, 100.0);
        (run.metrics.cpupq, run.metrics.rps) = (cpupq, Some(rps));
        run
    }

    #[test]
    fn figures_are_paired_by_block_and_averaged_on_a_log_scale() {
        let found = relative_metrics(
            &[run(1, Some(20.0), 1.0), run(2, Some(5.0), 3.0)],
            &[run(2, Some(10.0), 1.0), run(1, Some(10.0), 1.0)],
        )
        .unwrap();
        close(found.metrics.cpupq.unwrap(), 1.0, 1e-12);
        close(found.metrics.rps.unwrap(), 3.0_f64.sqrt(), 1e-12);
    }

    #[test]
    fn nothing_by_nothing_is_no_difference_and_something_by_nothing_is_infinite() {
        let of =
            |new, base| relative_metrics(&[run(1, None, new)], &[run(1, None, base)]).unwrap().metrics.rps;
        assert_eq!(of(0.0, 0.0), Some(1.0));
        assert_eq!(of(2.0, 0.0), Some(f64::INFINITY));
        assert_eq!(of(0.0, 2.0), Some(0.0));
        let two = relative_metrics(
            &[run(1, None, 0.0), run(2, None, 3.0)],
            &[run(1, None, 1.0), run(2, None, 1.0)],
        );
        assert_eq!(two.unwrap().metrics.rps, Some(1.5));
    }

    #[test]
    fn a_program_can_tell_an_infinite_ratio_from_one_that_is_not_known() {
        let (mut new, mut base) = (run(1, None, 2.0), run(1, None, 0.0));
        (new.cost.server_switches, base.cost.server_switches) = (Some(1.0), Some(0.0));
        let found = relative_metrics(&[new], &[base]).unwrap();
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["infinite"], serde_json::json!(["metrics.rps", "cost.server_switches"]));
        assert!(json["metrics"]["rps"].is_null() && json["metrics"]["cpupq"].is_null());
        for name in &found.infinite {
            assert!(json.pointer(&format!("/{}", name.replace('.', "/"))).is_some(), "{name} is a key");
        }
    }

    #[test]
    fn what_one_of_the_two_has_not_is_not_available_and_invalid_runs_do_not_count() {
        let found = relative_metrics(&[run(1, None, 1.0)], &[run(1, Some(10.0), 1.0)]).unwrap();
        assert_eq!(found.metrics.cpupq, None);
        let mut broken = run(1, Some(1.0), 1.0);
        broken.validity = Validity::Interrupted;
        assert!(relative_metrics(&[broken], &[run(1, Some(10.0), 1.0)]).is_none());
    }
}
