//! What one operation of a variant cost, by who used it: medians over its valid blocks.

use crate::model::runs::valid;
use crate::model::{StepRun, VariantStep};
use crate::statistics::describe::median;

/// For one unit of the headline: CPU in µs, IO in KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OperationUse {
    pub server_user_us: Option<f64>,
    pub server_kernel_us: Option<f64>,
    /// With an embedded database it includes the database.
    pub client_us: Option<f64>,
    pub rest_us: Option<f64>,
    pub iowait_us: Option<f64>,
    pub server_read_kib: Option<f64>,
    /// What was read from the device and not by the server.
    pub others_read_kib: Option<f64>,
    pub written_kib: Option<f64>,
}

/// `None` without a valid block.
pub fn operation_use(variant: &VariantStep) -> Option<OperationUse> {
    let of = |figure: &dyn Fn(&StepRun) -> Option<f64>| {
        let known: Vec<f64> = valid(&variant.runs).filter_map(figure).collect();
        median(&known)
    };
    valid(&variant.runs).next()?;
    Some(OperationUse {
        server_user_us: of(&|run| run.cost.server_user_us),
        server_kernel_us: of(&|run| run.cost.server_kernel_us),
        client_us: of(&|run| run.cost.client_cpu_us),
        rest_us: of(&|run| run.cost.rest_cpu_us),
        iowait_us: of(&|run| run.cost.host_iowait_us),
        server_read_kib: of(&|run| run.cost.server_read_kib),
        others_read_kib: of(&|run| {
            let all = an_operation(run, run.device?.read_kib_per_second?)?;
            Some((all - run.cost.server_read_kib.unwrap_or(0.0)).max(0.0))
        }),
        written_kib: of(&|run| an_operation(run, run.device?.written_kib_per_second?)),
    })
}

fn an_operation(run: &StepRun, per_second: f64) -> Option<f64> {
    (run.rate > 0.0).then(|| per_second / run.rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cell, load_step, run, step_run};
    use crate::metrics::{Cost, DeviceLoad};
    use crate::model::Validity;

    #[test]
    fn medians_of_valid_blocks_and_what_others_read() {
        let block = |block: u32, user_us: f64, read: f64| StepRun {
            cost: Cost { server_user_us: Some(user_us), server_read_kib: Some(2.0), ..Cost::default() },
            device: Some(DeviceLoad { read_kib_per_second: Some(read), ..DeviceLoad::default() }),
            ..step_run(block, 100.0)
        };
        let found = crate::analyse(&run(&["a"], 1, vec![cell(1, "a", vec![load_step(1_000)])]));
        let mut variant = found.workloads[0].steps[0].variants[0].clone();
        variant.runs = vec![block(1, 10.0, 500.0), block(2, 30.0, 100.0), block(3, 20.0, 300.0)];
        let of = operation_use(&variant).unwrap();
        assert_eq!((of.server_user_us, of.others_read_kib, of.written_kib), (Some(20.0), Some(1.0), None));
        for run in &mut variant.runs {
            run.validity = Validity::Interrupted;
        }
        assert_eq!(operation_use(&variant), None);
    }
}
