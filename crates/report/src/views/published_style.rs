//! The tables of a page in the style of published reports: one row per variant, the base first, and
//! one column per step. Queries that are timed one by one have one table, which names the winner
//! of each. The figures are those of the other views; only rows and columns are exchanged.

use dbdyno_analyse::metrics::Metric;
use dbdyno_analyse::statistics::describe::Group as Figures;
use dbdyno_analyse::{Bound, MetricGroup, StepFindings, Undecided, VariantStep, Verdict, numbered};

use super::cells::{Pivot, headline_cell, known, number, placeholder, steps, variants};
use super::details::has_blocks;
use super::groups::{Group, groups, in_sets};
use super::side_by_side::figure_cell;
use super::sweeps::{Sweep, sweeps};
use super::{OF_WORKLOAD, Scope, ViewPart, cells, explained, of_ratios, shown};
use crate::document::{Block, Column, Table, TableCell, Tone};
use crate::number::fixed;
use crate::words::RELATIVE_QPS;

/// Largest number of steps in one table. Reports with more steps show them group by group.
const MAX_STEPS: usize = 12;

/// The view of a table that has a row per step, and its title in published reports.
const TURNED: [(&str, &str); 3] =
    [("throughput", "Absolute QPS"), ("ratios", RELATIVE_QPS), ("targets", "Background insert rate")];

/// Returns the tables of a workload's rates, and the lines that say why values are missing.
pub(crate) fn rates(scope: Scope<'_>) -> Vec<Block> {
    let mut tables = match scope.are_times() {
        true => vec![times(scope)],
        false => TURNED.iter().flat_map(|(id, title)| by_variant(scope, id, title)).collect(),
    };
    tables.extend(statistics(scope));
    let is_in_other_form = |id: &str| id == "groups" || TURNED.iter().any(|(turned, _)| *turned == id);
    let others = OF_WORKLOAD.iter().filter(|view| view.part == ViewPart::Rates && !is_in_other_form(view.id));
    tables.extend(others.flat_map(|view| (view.tables)(scope)));
    let missing = cells::missing_values(scope);
    let missing = (!missing.is_empty()).then_some(Block::List(Tone::Doubt, missing));
    shown(tables.into_iter()).into_iter().chain(missing).collect()
}

/// Returns the variants in the order of rows: the base, then the others in the order of the plan.
fn in_rows<'a>(scope: Scope<'a>) -> Vec<&'a str> {
    let mut names = scope.variants();
    names.sort_by_key(|name| *name != scope.run.base);
    names
}

/// Turns the view's tables, and splits them into sets of steps where one table would be too wide.
fn by_variant(scope: Scope<'_>, id: &str, title: &str) -> Vec<Table> {
    let views = OF_WORKLOAD.iter().filter(|view| view.id == id);
    let all: Vec<Table> = views.flat_map(|view| (view.tables)(scope)).collect();
    let of_table = |table: Table| {
        let sets = sets(scope, table.rows.len());
        sets.into_iter()
            .filter_map(move |(set, names)| {
                let mut part = table.clone();
                part.rows.retain(|row| names.contains(&row[0].text.as_str()));
                part.title = if set.is_empty() { title.to_owned() } else { format!("{title}: {set}") };
                (!part.rows.is_empty()).then(|| turned(part, scope))
            })
            .collect::<Vec<_>>()
    };
    all.into_iter().flat_map(of_table).collect()
}

/// Turns a table of steps, so that it has a row per variant.
fn turned(table: Table, scope: Scope<'_>) -> Table {
    let mut turned = table.turned("DBMS");
    let order = in_rows(scope);
    let place =
        |row: &Vec<TableCell>| order.iter().position(|name| *name == row[0].text).unwrap_or(order.len());
    turned.rows.sort_by_key(place);
    turned
}

/// Returns the sets of steps that share a table, each with its name. A table of `count` steps that
/// is narrow enough is one set without a name.
fn sets<'a>(scope: Scope<'a>, count: usize) -> Vec<(String, Vec<&'a str>)> {
    if count <= MAX_STEPS {
        return vec![(String::new(), scope.steps().map(|step| step.name.as_str()).collect())];
    }
    let sweeps = sweeps(scope.workload);
    let names = |steps: &[&'a StepFindings]| steps.iter().map(|step| step.name.as_str()).collect();
    let split = |(name, steps): (String, Vec<&'a StepFindings>)| {
        steps.chunks(MAX_STEPS).map(|steps| (name.clone(), names(steps))).collect::<Vec<_>>()
    };
    in_sets(scope, |step| set_of(step, &sweeps)).into_iter().flat_map(split).collect()
}

/// Names the set that a step belongs to: its group and its number of connections, or the test of
/// its sweep.
fn set_of(step: &StepFindings, sweeps: &[Sweep<'_>]) -> String {
    let Some(group) = step.groups.values().next() else {
        let sweep = sweeps.iter().find(|sweep| sweep.steps.iter().any(|other| other.name == step.name));
        return sweep.map_or_else(String::new, |sweep| sweep.test.clone());
    };
    let connections = step.sweep_connections().map(|number| numbered(number as usize, "connection"));
    std::iter::once(group.clone()).chain(connections).collect::<Vec<_>>().join(", ")
}

/// A time is a draw with the next one unless it is shorter by this fraction at least.
const DRAW: f64 = 0.05;

/// Makes the table of times: seconds of each variant, then percent of the base, then the winner.
fn times(scope: Scope<'_>) -> Table {
    let (names, base) = (in_rows(scope), scope.run.base.as_str());
    let others = || names.iter().filter(|name| **name != base);
    let seconds = names.iter().map(|name| Column::new(name, "s", ""));
    let percent = others().map(|name| Column::new(name, &format!("% of {base}"), ""));
    let note = format!(
        "Median seconds, and percent of the base's. The fastest variant wins a query; a lead of less than \
         {:.0} % is a draw, and so are times that the clock cannot tell apart. undecided: its comparison with \
         {base} is undecided.",
        100.0 * DRAW
    );
    let columns = seconds.chain(percent).chain([Column::words("winner")]);
    let mut table = Table::new("Seconds, relative seconds and winner", &note, ["query"], columns);
    for step in scope.steps() {
        let winner = winner(step, base);
        let of = |name: &&&str| step.variant(name);
        let second = |found: &VariantStep| match found.rate {
            Some(rate) => {
                let is_winner = winner == found.variant;
                let cell = headline_cell(step, rate, found.cut_off);
                if is_winner { TableCell { tone: Tone::Strong, ..cell } } else { cell }
            }
            None => placeholder(scope, found).into(),
        };
        let base_seconds = step.variant(base).filter(|found| !found.cut_off).and_then(|found| found.rate);
        let relative = |found: &VariantStep| match found.rate.zip(base_seconds) {
            Some((seconds, of_base)) if of_base > 0.0 => {
                let percent = 100.0 * seconds / of_base;
                let bound = found.cut_off.then_some(Bound::MoreThan);
                TableCell {
                    bound,
                    ..number(percent, format!("{}{}", cells::sign_of(bound), fixed(Some(percent), 0)))
                }
            }
            _ => cells::absent("no two times to compare"),
        };
        let lacking = || cells::absent("did not run");
        let seconds = names.iter().map(|name| of(&name).map_or_else(lacking, second));
        let percent = others().map(|name| of(&name).map_or_else(lacking, relative));
        let row = std::iter::once(TableCell::from(step.name.as_str())).chain(seconds).chain(percent);
        table.push(row.chain([TableCell::from(winner.clone())]));
    }
    table
}

/// Names the variant with the shortest time, or says that there is none.
fn winner(step: &StepFindings, base: &str) -> String {
    let mut found: Vec<(&VariantStep, f64)> =
        step.variants.iter().filter_map(|variant| Some((variant, variant.rate?))).collect();
    // A time that a limit cut off is longer than its value.
    found.sort_by(|(one, one_s), (other, other_s)| {
        one.cut_off.cmp(&other.cut_off).then(one_s.total_cmp(other_s))
    });
    let [(first, first_s), rest @ ..] = found.as_slice() else { return "n/a".to_owned() };
    if first.cut_off {
        return "none ended".to_owned();
    }
    let Some((second, second_s)) = rest.iter().min_by(|(_, one), (_, other)| one.total_cmp(other)) else {
        return if step.variants.len() > 1 { first.variant.clone() } else { "n/a".to_owned() };
    };
    let pair = [first, second];
    let is_below_clock = |found: &&VariantStep| found.to_base.undecided == Some(Undecided::BelowClock);
    if *first_s > (1.0 - DRAW) * second_s || pair.iter().any(|found| is_below_clock(found)) {
        return "draw".to_owned();
    }
    // Only comparisons with the base have a verdict.
    let compared = if first.variant == base { second } else { first };
    let is_compared = compared.variant != base && step.variant(base).is_some();
    let verdict = is_compared.then_some(compared);
    match verdict.map(|found| found.to_base.verdict) {
        Some(Some(Verdict::Undecided)) => "undecided".to_owned(),
        Some(Some(Verdict::Same)) => "draw".to_owned(),
        Some(None) if has_blocks(step) => "one block".to_owned(),
        _ => first.variant.clone(),
    }
}

/// Makes the summary statistics of published microbenchmark reports: groups as columns, figures as
/// rows, one table per variant.
fn statistics(scope: Scope<'_>) -> Vec<Table> {
    let all = groups(scope);
    let of_variant = |groups: &[Group<'_>]| {
        let first = &groups[0];
        let is_time = groups.iter().any(Group::are_times);
        let title = format!("Summary statistics: {}, {}", first.variant, lower(&first.table_title()));
        let note = format!(
            "{} over the steps of each group. stddev has n - 1 in its divisor.",
            if is_time {
                format!("Seconds ÷ the seconds of {}", scope.run.base)
            } else {
                format!("Relative QPS to {}", scope.run.base)
            }
        );
        let mut table = Table::new(&title, &note, ["figure"], groups.iter().map(|group| group.name));
        let found: Vec<Option<Figures>> = groups.iter().map(|group| group.ratios.figures()).collect();
        for (figure, value) in Figures::PUBLISHED {
            let cell = |group: &Option<Figures>| {
                figure_cell(group.as_ref(), (figure, value), is_time, scope.run.colours)
            };
            table.push(std::iter::once(TableCell::from(figure)).chain(found.iter().map(cell)));
        }
        explained(table, &of_ratios(scope))
    };
    let is_one = |a: &Group<'_>, b: &Group<'_>| a.table_key() == b.table_key() && a.variant == b.variant;
    all.chunk_by(is_one).map(of_variant).collect()
}

/// Writes the first letter small, for a title within a title.
fn lower(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// Makes the table of hardware efficiency: one row per step and variant, under the names of the
/// original report. Metrics that no step has, or that are zero everywhere, are left out.
pub(crate) fn efficiency(scope: Scope<'_>) -> Option<Table> {
    let tables = scope.tables();
    let original = MetricGroup::ALL.iter().filter(|group| group.name == "metrics");
    let metrics = original.flat_map(MetricGroup::in_tables).filter(|metric| !metric.is_last);
    let metrics: Vec<&Metric> = metrics.collect();
    let pivots: Vec<_> = metrics.iter().map(|metric| (*metric, Pivot::of(&tables, metric.id))).collect();
    let (steps, mut names) = (steps(&tables), variants(&tables));
    names.sort_by_key(|name| *name != scope.run.base);
    let has_figures = |(_, pivot): &&(_, Pivot<'_, '_>)| {
        let mut values =
            steps.iter().flat_map(|step| names.iter().filter_map(|name| pivot.value(step, name)));
        values.any(|value| value != 0.0)
    };
    let shown: Vec<_> = pivots.iter().filter(has_figures).collect();
    let note = "Medians of the valid blocks, under the names of the original report.";
    let columns = shown.iter().map(|(metric, _)| Column::from(*metric));
    let mut table = Table::new("Hardware efficiency", note, ["step", "DBMS"], columns);
    for step in &steps {
        for name in &names {
            let cell = |(metric, pivot): &&(&Metric, Pivot<'_, '_>)| {
                let value = pivot.value(step, name).map(|value| metric.factor * value);
                known(value, fixed(value, metric.decimals))
            };
            table.push(
                [TableCell::from(*step), TableCell::from(*name)].into_iter().chain(shown.iter().map(cell)),
            );
        }
    }
    (!table.rows.is_empty() && !shown.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::Findings;

    use super::*;
    use crate::fixture::{self, of_steps, pair, step};
    use crate::views::testing::{heads, rows, scope};

    fn tables(findings: &Findings) -> Vec<Table> {
        let blocks = rates(scope(findings)).into_iter();
        blocks.filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None }).collect()
    }

    #[test]
    fn variants_are_rows_steps_are_columns_and_the_base_is_first() {
        let mut steps = [pair("l.i0", 0.5, 1), pair("l.x", 2.0, 1)];
        steps.iter_mut().for_each(|step| step.variants.reverse());
        let all = tables(&of_steps(steps.to_vec()));
        assert_eq!([&all[0].title, &all[1].title], ["Absolute QPS", "Relative QPS"]);
        assert_eq!(heads(&all[1]), ["DBMS", "l.i0", "l.x"]);
        assert_eq!(rows(&all[1]), "rollback | 1.00 | 1.00\n<b>&\" | 0.50 | 2.00");
    }

    #[test]
    fn many_steps_have_a_table_for_each_group() {
        let of = |number: usize| {
            let group = if number < 8 { "point, part 1" } else { "writes" };
            let groups = [("2024".to_owned(), group.to_owned())].into();
            StepFindings { groups, ..pair(&format!("s{number}"), 2.0, 1) }
        };
        let all = tables(&of_steps((0..14).map(of).collect()));
        let titles: Vec<(&str, usize)> =
            all.iter().map(|table| (table.title.as_str(), table.columns.len())).collect();
        assert_eq!(titles[..2], [("Absolute QPS: point, part 1", 9), ("Absolute QPS: writes", 7)]);
        let statistics = all.iter().find(|table| table.title.starts_with("Summary statistics")).expect("one");
        assert_eq!(heads(statistics), ["figure", "point, part 1", "writes"]);
        let figures: Vec<&str> = statistics.rows.iter().map(|row| row[0].text.as_str()).collect();
        assert_eq!(figures, ["average", "median", "min", "max", "stddev"]);
    }

    /// Returns who wins a query that takes these seconds in the base `old` and in `new`.
    fn winner_of(seconds: [f64; 2], verdict: Option<Verdict>, is_cut_off: bool) -> String {
        let mut found = step("q1", &[("old", &seconds[..1]), ("new", &seconds[1..])]);
        found.less_is_better = true;
        found.variants[1].to_base.verdict = verdict;
        found.variants[1].cut_off = is_cut_off;
        winner(&found, "old")
    }

    #[test]
    fn the_winner_leads_by_five_percent_and_no_verdict_speaks_against_it() {
        assert_eq!(winner_of([10.0, 9.0], None, false), "new");
        assert_eq!(winner_of([10.0, 9.0], Some(Verdict::Faster), false), "new");
        assert_eq!(winner_of([10.0, 9.0], Some(Verdict::Undecided), false), "undecided");
        assert_eq!(winner_of([10.0, 9.6], Some(Verdict::Faster), false), "draw");
        assert_eq!(winner_of([10.0, 11.0], Some(Verdict::Slower), false), "old");
        // The time that was cut off is longer than 9 s, so that only the other one is known.
        assert_eq!(winner_of([10.0, 9.0], None, true), "draw");
        assert_eq!(winner_of([8.0, 9.0], None, true), "old");
    }

    #[test]
    fn hardware_efficiency_has_the_originals_names_and_a_row_for_each_step_and_variant() {
        let findings = fixture::with_blocks(3);
        let table = efficiency(scope(&findings)).expect("there are figures");
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names[..2], ["step", "DBMS"]);
        assert!(["cpupq", "cspq", "wmbps"].iter().all(|name| names.contains(name)), "{names:?}");
        assert_eq!([&table.rows[0][1].text, &table.rows[1][1].text], ["rollback", "<b>&\""]);
        assert!(table.has_values());
    }
}
