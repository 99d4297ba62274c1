//! Whether the figures are the client's: what it reached of what it could reach.

use dbdyno_analyse::{ClientReach, StepFindings};

use super::{run_columns, run_labels, runs};
use crate::document::{Column, Table};
use crate::number::{count, fixed, rate};

/// No rows for runs without a calibration of the client.
pub(super) fn grid(step: &StepFindings) -> Table {
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
    ]
    .map(|(name, unit, meaning)| Column::new(name, unit, meaning));
    let mut grid = Table::new("Client", note, run_columns(step), figures);
    for (variant, run) in runs(step) {
        if let Some(reach) = &run.client_reach {
            let mut row = run_labels(step, variant, run);
            row.extend(figures_of(reach));
            row.push(fixed(run.cost.busiest_load_thread_share, 3));
            grid.push(row);
        }
    }
    grid
}

fn figures_of(reach: &ClientReach) -> [String; 4] {
    let least = if reach.at_least { "≥ " } else { "" };
    [
        rate(Some(reach.statements_per_second)),
        format!("{least}{}", rate(Some(reach.could_per_second))),
        count(reach.could_connections),
        fixed(Some(100.0 * reach.share()), 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn what_the_client_could_reach_stands_beside_what_it_reached() {
        let mut step = fixture::findings().workloads[0].steps[4].clone();
        assert_eq!(grid(&step).rows.len(), 0, "no calibration, no table");
        let reach = ClientReach {
            statements_per_second: 50_000.0,
            connections: 8,
            could_per_second: 200_000.0,
            could_connections: 16,
            at_least: false,
        };
        step.variants[0].runs[0].client_reach = Some(reach);
        step.variants[1].runs[0].client_reach = Some(ClientReach { at_least: true, ..reach });
        let rows: Vec<String> = grid(&step).rows.iter().map(|row| row.join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        rollback | 50,000 | 200,000 | 16 | 25 | NA
        <b>&" | 50,000 | ≥ 200,000 | 16 | 25 | 0.412
        "#);
    }
}
