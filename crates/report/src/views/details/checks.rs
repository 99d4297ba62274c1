//! Tables that show whether a run's CPU figures can be trusted: how much of the host's time the
//! parts explain, and how near the client came to the rate that it can reach.

use dbdyno_analyse::metrics::Figures;
use dbdyno_analyse::{HostCheck, StepFindings};

use super::of_runs;
use crate::document::{Column, Table};
use crate::number::{count, fixed, rate};
use crate::words::table;

pub(in crate::views) fn host(step: &StepFindings) -> Table {
    let mut table = table("host-check");
    table.columns.splice(0..0, HostCheck::METRICS.iter().map(Column::from));
    of_runs(step, table, |run| {
        run.host_check.as_ref().map(|check| {
            let parts = check.figures().into_iter().map(|(metric, value)| fixed(value, metric.decimals));
            let unexplained = fixed(Some(100.0 * check.unexplained_share), 1);
            let bound = format!("±{}", fixed(Some(100.0 * check.bound_share), 1));
            parts.chain([unexplained, bound]).collect()
        })
    })
}

/// Makes the table of the client. It has no rows for runs without a calibration of the client.
pub(in crate::views) fn client(step: &StepFindings) -> Table {
    of_runs(step, table("client"), |run| {
        run.client_headroom.map(|client_headroom| {
            let least = if client_headroom.at_least { "≥ " } else { "" };
            vec![
                rate(Some(client_headroom.statements_per_second)),
                format!("{least}{}", rate(Some(client_headroom.could_per_second))),
                count(client_headroom.could_connections),
                fixed(Some(100.0 * client_headroom.share()), 0),
                fixed(run.cost.busiest_load_thread_share, 3),
            ]
        })
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::ClientHeadroom;

    use super::*;
    use crate::fixture::pair;
    use crate::views::small::rows;

    #[test]
    fn what_the_client_could_reach_is_next_to_what_it_reached() {
        let mut step = pair("qr100", 1.0, 1);
        assert_eq!(client(&step).rows.len(), 0, "no calibration, no table");
        let client_headroom = ClientHeadroom {
            statements_per_second: 50_000.0,
            connections: 8,
            could_per_second: 200_000.0,
            could_connections: 16,
            at_least: false,
        };
        step.variants[0].runs[0].client_headroom = Some(client_headroom);
        step.variants[1].runs[0].cost.busiest_load_thread_share = Some(0.412);
        step.variants[1].runs[0].client_headroom = Some(ClientHeadroom { at_least: true, ..client_headroom });
        insta::assert_snapshot!(rows(&client(&step)), @r#"
        rollback | 50,000 | 200,000 | 16 | 25 | NA
        <b>&" | 50,000 | ≥ 200,000 | 16 | 25 | 0.412
        "#);
    }
}
