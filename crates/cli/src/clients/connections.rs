//! How connections of a step are opened and what happens to lost ones: the plan's table `[load]`.

use dbdyno_loadgen::{Connections, Draws, LostConnections, Reconnect};
use dbdyno_plan::Plan;

/// Stream of the draws that spread reconnections; no workload uses it.
const STREAM: u32 = 0x7265_636f;

/// As the plan says.
pub(crate) fn connections(plan: &Plan) -> Connections {
    let load = &plan.load;
    let lost = match load.lost_connections {
        dbdyno_plan::LostConnections::Fail => LostConnections::Fail,
        dbdyno_plan::LostConnections::Reconnect => LostConnections::Reconnect(Reconnect {
            wait: load.reconnect_wait.0,
            wait_max: load.reconnect_wait_max.0,
            give_up_after: load.reconnect_for.0,
            draws: Draws::new(plan.seed, STREAM, 0),
        }),
    };
    Connections { rate_per_second: load.connect_rate_per_second, lost, ..Connections::default() }
}
