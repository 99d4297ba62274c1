//! The summary tables: absolute, relative to the base, and background rate against its target.

pub(crate) mod before_after_writes;
pub(crate) mod cells;
pub(crate) mod colours;
pub(crate) mod control;
pub(crate) mod effects;
pub(crate) mod groups;
pub(crate) mod relative;
pub(crate) mod sweeps;

use dbdyno_record::CellRecord;

use crate::compare::fixed_rate::{self, Pace};
use crate::compare::verdicts::Rules;
use crate::model::runs::valid;
use crate::model::{Cell, Colour, GroupFindings, StepFindings, Summary, Sweep, Table, TableRow, VariantStep};
use crate::tables::cells::{missing, rate_text, rows};
use crate::tables::colours::Rated;
use crate::tables::control::control;
use crate::tables::effects::effects;
use crate::tables::relative::relative;
use crate::words::listed;

/// Rows are variants in the plan's order, columns are steps in the workload's.
pub(crate) fn summary(
    steps: &[StepFindings],
    cells: &[&CellRecord],
    (groups, sweeps): (&[GroupFindings], &[Sweep]),
    rules: Rules<'_>,
) -> Summary {
    Summary {
        absolute: absolute(steps, cells, rules.base),
        relative: relative(steps, cells, rules),
        effects: effects(steps, rules),
        groups: groups::tables(groups, rules.base),
        sweeps: sweeps::tables(sweeps, steps, cells),
        aging: None,
        sla: sla(steps, cells),
        control: control(steps, rules),
    }
}

fn absolute(steps: &[StepFindings], cells: &[&CellRecord], base: &str) -> Table {
    let column = |step: &StepFindings| -> Vec<Cell> {
        let is_paced = step.is_paced(base);
        let of_variant = |variant| rated(step, variant).filter(|rated| !(is_paced && rated.kept));
        // A rate that is the plan's is neither high nor low.
        let rated: Vec<_> = step.variants.iter().map(of_variant).collect();
        let colours = colours::absolute(&rated);
        step.variants
            .iter()
            .zip(rated.iter().zip(colours))
            .map(|(variant, (rated, colour))| match variant.rate {
                Some(rate) => Cell {
                    value: Some(rate),
                    text: rate_text(rate),
                    colour,
                    interval: None,
                    verdict: None,
                    misses_target: rated.is_some_and(|rated| !rated.kept),
                    note: absolute_note(step, variant, colour),
                },
                None => missing(variant, cells),
            })
            .collect()
    };
    Table {
        title: "Throughput".to_owned(),
        caption: format!(
            "Rate over the common window of each step{}; the median where there are several blocks.{}",
            labels(steps),
            fixed_rate::absolute_text(steps)
        ),
        columns: steps.iter().map(|step| step.name.clone()).collect(),
        rows: rows(steps, steps.iter().map(column).collect()),
    }
}

/// What the rates of the steps are: `: inserts/s in l.i0 and l.i1, queries/s in qr100`. The label of most steps is that of
/// the others, and comes last.
fn labels(steps: &[StepFindings]) -> String {
    let mut by_label: Vec<(&str, Vec<&str>)> = Vec::new();
    for step in steps.iter().filter(|step| !step.rate_label.is_empty()) {
        match by_label.iter_mut().find(|(label, _)| *label == step.rate_label) {
            Some((_, names)) => names.push(&step.name),
            None => by_label.push((&step.rate_label, vec![&step.name])),
        }
    }
    let most = by_label.iter().map(|(_, names)| names.len()).max().unwrap_or(0);
    let Some(last) = by_label.iter().rposition(|(_, names)| names.len() == most) else {
        return String::new();
    };
    let (label, names) = by_label.remove(last);
    let mut parts: Vec<String> =
        by_label.iter().map(|(label, names)| format!("{label} in {}", listed(names))).collect();
    parts.push(match (parts.len(), names.as_slice()) {
        (0, _) => label.to_owned(),
        (_, [_, _, ..]) => format!("{label} in the others"),
        (_, names) => format!("{label} in {}", listed(names)),
    });
    format!(": {}", parts.join(", "))
}

fn rated(step: &StepFindings, variant: &VariantStep) -> Option<Rated> {
    let keeps_pace = step.pace(variant).is_none_or(Pace::is_kept);
    variant.rate.map(|rate| Rated { rate, kept: keeps_pace && !step.misses(variant) })
}

fn absolute_note(step: &StepFindings, variant: &VariantStep, colour: Colour) -> String {
    let mut notes = vec![colours::absolute_note(colour, step.missed_text(variant))];
    if colour == Colour::Red {
        notes.extend(step.missed_text(variant));
    }
    if let Some(pace) = step.pace(variant).filter(|pace| !pace.is_kept()) {
        notes.retain(|_| colour != Colour::Grey);
        notes.push(pace.text());
    }
    let blocks = valid(&variant.runs).count();
    if let (2.., Some(least), Some(greatest)) = (blocks, variant.rate_min, variant.rate_max) {
        notes.push(format!("median of {blocks} blocks, {} to {}", rate_text(least), rate_text(greatest)));
    }
    notes.retain(|note| !note.is_empty());
    notes.join("; ")
}

fn sla(steps: &[StepFindings], cells: &[&CellRecord]) -> Option<Table> {
    let with_target: Vec<(&StepFindings, (f64, f64))> =
        steps.iter().filter_map(|step| Some((step, step.target?))).collect();
    let (_, (_, share)) = *with_target.first()?;
    let cell = |step: &StepFindings, variant: &VariantStep| match variant.background_rate {
        Some(rate) => Cell {
            value: Some(rate),
            text: format!("{:.0}", rate.round()),
            colour: if step.misses(variant) { Colour::Red } else { Colour::None },
            interval: None,
            verdict: None,
            misses_target: false,
            note: step.missed_text(variant).or_else(|| step.missed_blocks_text(variant)).unwrap_or_default(),
        },
        None => missing(variant, cells),
    };
    let columns = with_target
        .iter()
        .map(|(step, _)| step.variants.iter().map(|variant| cell(step, variant)).collect())
        .collect();
    let mut rows = rows(steps, columns);
    rows.push(target_row(&with_target));
    Some(Table {
        title: "Background inserts".to_owned(),
        caption: format!(
            "Rows inserted per second by the background writers of each read-write step, all clients together; the \
             target is kept where each client reaches {:.0} % of its part.",
            100.0 * share
        ),
        columns: with_target.iter().map(|(step, _)| step.name.clone()).collect(),
        rows,
    })
}

fn target_row(with_target: &[(&StepFindings, (f64, f64))]) -> TableRow {
    let cell = |target: f64| Cell {
        value: Some(target),
        text: format!("{target:.0}"),
        colour: Colour::Grey,
        interval: None,
        verdict: None,
        misses_target: false,
        note: "target".to_owned(),
    };
    let cells = with_target.iter().map(|(_, (target, _))| cell(*target)).collect();
    TableRow { label: "target".to_owned(), is_target: true, cells }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::Outcome;

    use insta::assert_snapshot;

    use super::*;
    use crate::fixtures::{cell, ended, failed_cell, load_step, query_step, run};

    /// A table as text: one line a row, each cell `text colour (note)`.
    fn text(table: &Table) -> String {
        let cell = |cell: &Cell| format!("{} {:?} ({})", cell.text, cell.colour, cell.note);
        let line = |row: &TableRow| {
            let cells: Vec<_> = row.cells.iter().map(cell).collect();
            format!("{}{}: {}\n", row.label, if row.is_target { "*" } else { "" }, cells.join(" | "))
        };
        format!("{}\n{}", table.columns.join(" | "), table.rows.iter().map(line).collect::<String>())
    }

    fn tables(run: &dbdyno_record::Run) -> Summary {
        crate::analyse(run).workloads.remove(0).summary
    }

    #[test]
    fn the_three_tables_of_four_variants() {
        let mut invalid = load_step(5_000);
        invalid.events.push(dbdyno_record::StepEvent::Invalid { reason: "clock jumped".to_owned() });
        let found = tables(&run(
            &["a", "b", "c", "d"],
            1,
            vec![
                cell(1, "a", vec![load_step(1_000), query_step(400, 200)]),
                cell(1, "b", vec![load_step(2_000), query_step(390, 150)]),
                cell(1, "c", vec![invalid, query_step(100, 200)]),
                failed_cell(1, "d", vec![load_step(1_050)], "server died"),
            ],
        ));
        assert_snapshot!(text(&found.absolute), @r"
        l.i0 | qr100
        a: 1000 Red (lowest quarter of this step) | 400 Green (highest quarter of this step)
        b: 2000 Green (highest quarter of this step) | 390 Grey (background inserts 150/s, at least 190/s of 200/s needed)
        c: invalid None (clock jumped) | 100 Red (lowest quarter of this step)
        d: 1050 Red (lowest quarter of this step) | failed None (the cell failed before or in this step: server died)
        ");
        assert_snapshot!(text(&found.relative), @r"
        l.i0 | qr100
        a: 1.00 None () | 1.00 None ()
        b: 2.00 Blue (more than 5 % above a) | 0.98 None (background inserts 150/s, at least 190/s of 200/s needed)
        c: invalid None (clock jumped) | 0.25 Yellow (more than 5 % below a)
        d: 1.05 None () | failed None (the cell failed before or in this step: server died)
        ");
        assert_snapshot!(text(found.sla.as_ref().unwrap()), @r"
        qr100
        a: 200 None ()
        b: 150 Red (background inserts 150/s, at least 190/s of 200/s needed)
        c: 200 None ()
        d: failed None (the cell failed before or in this step: server died)
        target*: 200 Grey (target)
        ");
    }

    #[test]
    fn several_blocks_show_the_median_and_say_so() {
        let cells = vec![
            cell(1, "a", vec![load_step(1_000)]),
            cell(2, "a", vec![load_step(1_200)]),
            cell(1, "b", vec![load_step(2_000)]),
            cell(2, "b", vec![ended(load_step(2_400), Outcome::Failed, "disk full")]),
        ];
        let found = tables(&run(&["a", "b"], 2, cells));
        assert_snapshot!(text(&found.absolute), @r"
        l.i0 | qr100
        a: 1100 Red (lowest quarter of this step; median of 2 blocks, 1000 to 1200) | n/a None (did not run)
        b: 2000 Green (highest quarter of this step) | n/a None (did not run)
        ");
        assert_snapshot!(text(&found.relative), @r"
        l.i0 | qr100
        a: 1.00 None () | n/a None (did not run)
        b: 2.00 Blue (more than 5 % above a) | n/a None (did not run)
        ");
    }

    #[test]
    fn a_missed_target_in_the_lowest_quarter_is_red_and_says_both() {
        let cells = vec![cell(1, "a", vec![query_step(400, 200)]), cell(1, "b", vec![query_step(100, 150)])];
        let found = tables(&run(&["a", "b"], 1, cells));
        let cell = &found.absolute.rows[1].cells[1];
        assert_eq!(cell.colour, Colour::Red);
        assert_snapshot!(
            cell.note,
            @"lowest quarter of this step; background inserts 150/s, at least 190/s of 200/s needed"
        );
    }

    #[test]
    fn a_base_that_never_ran_leaves_rates_without_ratios() {
        let found = tables(&run(&["a", "b"], 1, vec![cell(1, "b", vec![load_step(2_000)])]));
        assert_snapshot!(text(&found.relative), @r"
        l.i0 | qr100
        a: n/a None (did not run) | n/a None (did not run)
        b: n/a None (no block in which a is valid too) | n/a None (did not run)
        ");
    }

    #[test]
    fn a_workload_without_targets_has_no_table_of_them() {
        let found = tables(&run(&["a"], 1, vec![cell(1, "a", vec![load_step(2_000)])]));
        assert!(found.sla.is_none());
    }

    #[test]
    fn slow_rates_keep_their_decimals() {
        assert_eq!([2.345, 23.45, 234.5678].map(rate_text), ["2.35", "23.4", "235"]);
    }
}
