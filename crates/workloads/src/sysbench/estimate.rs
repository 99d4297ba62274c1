//! Forecasts a script's steps. Exact: the length of its runs. What a command takes is not known
//! before it ran.

use std::time::Duration;

use dbdyno_plan::{Forecast, Size, Speed, StepEstimate, numbered, seconds};

use super::options::Sysbench;
use crate::oltp::estimate::OPERATIONS_PER_SECOND;

/// What a command such as `prepare` is taken to last.
const COMMAND: Duration = Duration::from_secs(30);

pub(crate) fn estimate(options: &Sysbench, speed: &Speed, size: &Size) -> Forecast {
    let mut steps = vec![StepEstimate::new("prepare", "server", seconds(speed.prepare_seconds))];
    let shared = options.shared();
    let loads = options.load_steps();
    let mut rungs = shared.test_steps().into_iter();
    let names = options.step_names();
    for (index, command) in options.step_commands().enumerate() {
        if command != "run" {
            steps.push(StepEstimate::new(command, &format!("a command of {}", options.script), COMMAND));
            if index + 1 == loads {
                steps.extend(options.settling().estimate("after the load", Duration::ZERO));
            }
            continue;
        }
        for (name, (_, connections, _)) in names[index..].iter().zip(rungs.by_ref()) {
            let detail = format!("{} of {}", numbered(connections, "connection"), options.script);
            let guessed = options.events.unwrap_or(0) as f64 / f64::from(connections) / OPERATIONS_PER_SECOND;
            let length = shared.length().unwrap_or_else(|| seconds(guessed));
            steps.push(StepEstimate::new(name, &detail, length));
        }
    }
    Forecast { steps, disk_bytes: size.log_bytes, loaded_bytes: 0 }
}
