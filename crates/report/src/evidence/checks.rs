//! Whether a run's CPU figures can be trusted: what the parts explain of the host's, and what the
//! client reached of what it could.

use dbdyno_analyse::metrics::Figures;
use dbdyno_analyse::{HostCheck, StepFindings};

use super::of_runs;
use crate::document::Table;
use crate::number::{count, fixed, rate};

pub(super) fn host(step: &StepFindings) -> Table {
    let note = "CPU of the whole host compared with the sum over all processes. If unexplained \
                exceeds the bound, do not trust figures of the whole host. Figures of server and \
                client come from their own clocks.";
    let figures = HostCheck::METRICS.iter().map(|metric| (metric.name, metric.unit, metric.meaning)).chain([
        ("unexplained", "% of host", ""),
        ("bound", "%", "5 %, and three standard errors of the host's count of ticks."),
    ]);
    let figures: Vec<_> = figures.collect();
    of_runs(step, ("Host CPU by process", note), &[], &figures, |run| {
        let row = run.host_check.as_ref().map(|check| {
            let parts = check.figures().into_iter().map(|(metric, value)| fixed(value, metric.decimals));
            let unexplained = fixed(Some(100.0 * check.unexplained_share), 1);
            let bound = format!("±{}", fixed(Some(100.0 * check.bound_share), 1));
            parts.chain([unexplained, bound]).collect()
        });
        row.into_iter().collect()
    })
}

/// No rows for runs without a calibration of the client.
pub(super) fn client(step: &StepFindings) -> Table {
    let note = "Statements of all kinds, compared with what this client reached on this host \
                against a server that only answers, with about as many connections. At 90 % or \
                more the step is invalid.";
    let figures = [
        ("statements", "1/s", "Of all kinds of operation together."),
        (
            "client could reach",
            "1/s",
            "From dbdyno doctor --client; ≥: the client was not the limit there, and could do more.",
        ),
        ("with", "connections", "The calibrated number of connections at which it could."),
        ("of that", "%", "Rate reached, as a share of the calibrated rate."),
        (
            "load thread",
            "of time",
            "Part of the time in which the busiest load thread ran or waited for a CPU.",
        ),
    ];
    of_runs(step, ("Client", note), &[], &figures, |run| {
        let row = run.client_reach.map(|reach| {
            let least = if reach.at_least { "≥ " } else { "" };
            vec![
                rate(Some(reach.statements_per_second)),
                format!("{least}{}", rate(Some(reach.could_per_second))),
                count(reach.could_connections),
                fixed(Some(100.0 * reach.share()), 0),
                fixed(run.cost.busiest_load_thread_share, 3),
            ]
        });
        row.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::ClientReach;

    use super::*;
    use crate::fixture;

    #[test]
    fn what_the_client_could_reach_is_next_to_what_it_reached() {
        let mut step = fixture::findings().workloads[0].steps[4].clone();
        assert_eq!(client(&step).rows.len(), 0, "no calibration, no table");
        let reach = ClientReach {
            statements_per_second: 50_000.0,
            connections: 8,
            could_per_second: 200_000.0,
            could_connections: 16,
            at_least: false,
        };
        step.variants[0].runs[0].client_reach = Some(reach);
        step.variants[1].runs[0].client_reach = Some(ClientReach { at_least: true, ..reach });
        let rows: Vec<String> = client(&step).rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        rollback | 50,000 | 200,000 | 16 | 25 | NA
        <b>&" | 50,000 | ≥ 200,000 | 16 | 25 | 0.412
        "#);
    }
}
