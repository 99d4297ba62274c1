//! Tables of ratios over groups of steps, as published for microbenchmarks: one row per group, one
//! column per figure.

use dbdyno_analyse::{GroupRatios, Ratio, StepFindings, numbered, unique};

use super::cells::{absent, bounded, joined, number, ratio_cell};
use super::{BY_THRESHOLD, Scope, explained};
use crate::document::{Column, Table, TableCell, Tone};
use crate::words::listed;

/// Names of the columns: the figures of published tables, the geometric mean, then the steps with
/// the lowest and the highest ratio.
const COLUMNS: [&str; 9] =
    ["steps", "average", "median", "min", "max", "stddev", "geometric mean", "lowest step", "highest step"];

/// The ratios of one variant in the steps of one group.
pub(super) struct Group<'a> {
    /// Name of the grouping, such as `2024`.
    grouping: &'a str,
    /// Number of connections, where the steps ran with several.
    connections: Option<u32>,
    /// Name of the group, such as `point, part 1`.
    pub(super) name: &'a str,
    pub(super) variant: &'a str,
    pub(super) ratios: GroupRatios<'a>,
}

impl<'a> Group<'a> {
    /// Makes the group of this name from the table's steps.
    fn of(
        steps: &[&'a StepFindings],
        (grouping, connections): (&'a str, Option<u32>),
        name: &'a str,
        variant: &'a str,
    ) -> Self {
        let in_group = steps.iter().filter(|step| step.groups.get(grouping).is_some_and(|own| own == name));
        let members = in_group.map(|step| (*step, step.variant(variant).map(|found| &found.to_base)));
        Self { grouping, connections, name, variant, ratios: GroupRatios::of(variant, members) }
    }

    /// Returns the key of the table that has the group: its grouping and number of connections.
    pub(super) fn table_key(&self) -> (&'a str, Option<u32>) {
        (self.grouping, self.connections)
    }

    /// Returns the table's title, such as `Groups of steps (2024), 16 connections`.
    pub(super) fn table_title(&self) -> String {
        let connections = self.connections.map(|number| format!(", {}", numbered(number, "connection")));
        format!("Groups of steps ({}){}", self.grouping, connections.unwrap_or_default())
    }

    pub(super) fn are_times(&self) -> bool {
        self.ratios.counted.iter().any(|(step, _)| step.less_is_better)
    }

    /// Returns the steps whose ratio is only a bound, because a time limit cut off one of its two
    /// times.
    fn cut_off(&self) -> Vec<&'a str> {
        let cut = self.ratios.counted.iter().filter(|(_, ratio)| ratio.bound.is_some());
        cut.map(|(step, _)| step.name.as_str()).collect()
    }

    /// Names the group's steps that its figures leave out, or count with a bound only. The text is
    /// empty where there are none.
    fn left_out(&self) -> String {
        let (without, cut) = (&self.ratios.without, self.cut_off());
        let not = (!without.is_empty()).then(|| format!("not counted: {}", listed(without)));
        let cut = (!cut.is_empty())
            .then(|| format!("counted with a bound, since a time limit cut it off: {}", listed(&cut)));
        joined([not, cut])
    }
}

/// Returns all groups, ordered by grouping, by number of connections, by variant, and then in the
/// order of published tables or of their steps. The base has no groups, and the control has its own
/// table.
pub(super) fn groups(scope: Scope<'_>) -> Vec<Group<'_>> {
    let mut found = Vec::new();
    for table @ (grouping, connections) in tables_of(scope) {
        let is_member = |step: &&StepFindings| {
            let has_number = |own| connections.is_none() || Some(own) == connections;
            step.groups.contains_key(grouping) && step.sweep_connections().is_none_or(has_number)
        };
        let members: Vec<&StepFindings> = scope.steps().filter(is_member).collect();
        let mut names = unique(members.iter().filter_map(|step| step.groups.get(grouping)));
        in_published_order(&mut names, |name| name);
        let compared = scope.compared().into_iter().filter(|name| scope.run.control.as_deref() != Some(name));
        for variant in compared {
            found.extend(names.iter().map(|name| Group::of(&members, table, name, variant)));
        }
    }
    found
}

/// Returns each grouping together with each number of connections in a sweep, or with `None` where
/// no step is part of a sweep. Groupings are sorted by name. Steps that always run with the same
/// number belong to every table.
fn tables_of(scope: Scope<'_>) -> Vec<(&str, Option<u32>)> {
    let mut groupings = unique(scope.steps().flat_map(|step| step.groups.keys()));
    groupings.sort();
    let numbers = match unique(scope.steps().filter_map(StepFindings::sweep_connections)) {
        numbers if numbers.is_empty() => vec![None],
        numbers => numbers.into_iter().map(Some).collect(),
    };
    let of_grouping = |grouping| numbers.iter().map(move |connections| (grouping, *connections));
    groupings.into_iter().map(String::as_str).flat_map(of_grouping).collect()
}

/// Puts the workload's steps into sets by `name`, in the order of published tables.
pub(crate) fn in_sets<'a>(
    scope: Scope<'a>,
    name: impl Fn(&StepFindings) -> String,
) -> Vec<(String, Vec<&'a StepFindings>)> {
    let mut sets: Vec<(String, Vec<&StepFindings>)> = Vec::new();
    for step in scope.steps() {
        let name = name(step);
        match sets.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(step),
            None => sets.push((name, vec![step])),
        }
    }
    in_published_order(&mut sets, |(_, steps)| steps[0].groups.values().next().map_or("", String::as_str));
    sets
}

/// Sorts groups that have parts into the order of published tables: point, range, writes. Others
/// stay in the order in which their steps ran.
fn in_published_order<T>(items: &mut [T], group: impl Fn(&T) -> &str) {
    if items.iter().any(|item| group(item).contains("part ")) {
        items.sort_by(|one, other| group(one).cmp(group(other)));
    }
}

/// Makes one table per grouping and number of connections.
pub(super) fn tables(scope: Scope<'_>) -> Vec<Table> {
    groups(scope).chunk_by(|a, b| a.table_key() == b.table_key()).map(|groups| table(groups, scope)).collect()
}

fn table(groups: &[Group<'_>], scope: Scope<'_>) -> Table {
    let (base, first) = (&scope.run.base, &groups[0]);
    let several = groups.iter().any(|group| group.variant != first.variant);
    let of = if several { "each variant" } else { first.variant };
    let rows: Vec<(&Group<'_>, Vec<TableCell>)> =
        groups.iter().map(|group| (group, cells(group, scope))).collect();
    let interval = match rows.iter().flat_map(|(_, cells)| cells).any(|cell| cell.interval.is_some()) {
        true => " The geometric mean has its 95 % interval over the blocks.",
        false => "",
    };
    let note = format!(
        "Ratios of {of} to {base}, over the steps of each group of the published reports. stddev \
         has n - 1 in its divisor.{interval}"
    );
    let heads = COLUMNS.map(|head| Column { is_words: head.ends_with(" step"), ..Column::new(head, "", "") });
    let mut table = Table::new(&first.table_title(), &note, ["group"], heads);
    for (group, cells) in rows {
        let label =
            if several { format!("{}: {}", group.variant, group.name) } else { group.name.to_owned() };
        table.push(std::iter::once(TableCell::from(label)).chain(cells));
    }
    explained(table, &BY_THRESHOLD)
}

fn cells(group: &Group<'_>, scope: Scope<'_>) -> Vec<TableCell> {
    let ratios = &group.ratios;
    let (Some(figures), Some(ends)) = (ratios.figures(), ratios.ends()) else {
        return COLUMNS.iter().map(|_| absent(&group.left_out())).collect();
    };
    let count = match ratios.without.len() {
        0 => figures.count.to_string(),
        missing => format!("{} of {}", figures.count, figures.count + missing),
    };
    let bounds = group.cut_off().len();
    let is_plain = ratios.without.is_empty() && bounds == 0;
    let count = if bounds == 0 { count } else { format!("{count}, {}", numbered(bounds, "bound")) };
    let (is_time, colours) = (group.are_times(), scope.run.colours);
    let of_all =
        |value: f64, decimals| bounded(ratio_cell(value, decimals, is_time, colours), value, ratios.bound());
    // The lowest and the highest ratio have no colour here, because each is in the table of its
    // step in colour.
    let end = |(step, ratio): &(&StepFindings, Ratio)| TableCell {
        tone: Tone::Plain,
        sign: "",
        note: step.name.clone(),
        ..bounded(ratio_cell(ratio.value, 2, is_time, colours), ratio.value, ratio.bound)
    };
    let geometric = figures.geometric_mean.map(|value| of_all(value, 3));
    let geometric = geometric.map(|cell| TableCell { interval: ratios.interval(), ..cell });
    let [lowest, highest] = ends;
    vec![
        TableCell {
            note: group.left_out(),
            value: is_plain.then_some(figures.count as f64),
            ..TableCell::from(count)
        },
        of_all(figures.average, 2),
        of_all(figures.median, 2),
        end(lowest),
        end(highest),
        figures.deviation.map_or_else(|| absent(""), |value| number(value, format!("{value:.2}"))),
        geometric.unwrap_or_else(|| absent("")),
        TableCell::from(lowest.0.name.as_str()),
        TableCell::from(highest.0.name.as_str()),
    ]
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{Findings, ratio_of_runs};

    use super::*;
    use crate::fixture::{NAMES, of_steps, step};
    use crate::views::testing::{rows, scope};

    /// Makes steps with their groups of 2024. The variant's rate in each block is a multiple of the
    /// base's. A step that the variant did not run has no ratio.
    fn findings(steps: &[(&str, &str, &[f64])]) -> Findings {
        let of = |(name, group, factors): &(&str, &str, &[f64])| {
            let rates: Vec<f64> = factors.iter().map(|factor| 1_000.0 * factor).collect();
            let mut step = step(name, &[(NAMES[0], &[1_000.0; 3][..factors.len()]), (NAMES[1], &rates)]);
            step.groups = [("2024".to_owned(), (*group).to_owned())].into();
            step.connections = name.rsplit(".c").next().and_then(|number| number.parse().ok()).unwrap_or(1);
            let base = step.variants[0].runs.clone();
            step.variants[1].to_base.ratio = ratio_of_runs(&step.variants[1].runs, &base);
            step
        };
        of_steps(steps.iter().map(of).collect())
    }

    #[test]
    fn a_published_group_has_its_published_figures() {
        // This is the published "point, part 2" of one comparison.
        let part = "point, part 2";
        let one = |name, factors: &'static [f64]| (name, part, factors);
        let steps = [
            one("a", &[0.69]),
            one("b", &[0.69]),
            one("c", &[0.72]),
            one("d", &[0.72]),
            one("e", &[0.84]),
            one("f", &[0.84]),
        ];
        let findings = findings(&steps);
        let tables = tables(scope(&findings));
        let [table] = &tables[..] else { panic!("{tables:?}") };
        assert_eq!(table.title, "Groups of steps (2024)");
        assert_eq!(rows(table), "point, part 2 | 6 | 0.75 | 0.72 | 0.69 | 0.84 | 0.07 | 0.747 | a | f");
    }

    #[test]
    fn the_geometric_mean_has_the_interval_of_several_blocks() {
        let findings = findings(&[("a", "reads", &[0.99, 1.0, 1.01]), ("b", "reads", &[1.98, 2.0, 2.02])]);
        let tables = tables(scope(&findings));
        assert!(tables[0].note.ends_with(" over the blocks."), "{}", tables[0].note);
        let interval = tables[0].rows[0][7].interval.expect("of three blocks");
        assert!(interval.low < 2.0_f64.sqrt() && interval.high > 2.0_f64.sqrt(), "{interval:?}");
    }

    #[test]
    fn steps_without_a_ratio_are_named_and_not_counted() {
        let findings = findings(&[("a", "reads", &[2.0]), ("b", "reads", &[])]);
        let tables = tables(scope(&findings));
        let cells: Vec<&str> = tables[0].rows[0].iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(cells[1..6], ["1 of 2", "2.00", "2.00", "2.00", "2.00"]);
        assert_eq!(tables[0].rows[0][1].note, "not counted: b");
    }

    #[test]
    fn each_number_of_connections_has_a_table_and_steps_with_a_fixed_number_are_in_all() {
        let findings = findings(&[("a.c1", "r", &[2.0]), ("a.c16", "r", &[3.0]), ("scan", "r", &[4.0])]);
        let of = groups(scope(&findings)).into_iter().map(|group| {
            let names: Vec<&str> = group.ratios.counted.iter().map(|(step, _)| step.name.as_str()).collect();
            format!("{:?}: {}", group.connections, names.join(" "))
        });
        assert_eq!(of.collect::<Vec<_>>(), ["Some(1): a.c1 scan", "Some(16): a.c16 scan"]);
    }

    #[test]
    fn groups_with_parts_are_in_the_order_of_published_tables() {
        let findings = findings(&[("w", "writes", &[2.0]), ("p", "point, part 1", &[2.0])]);
        let names = |group: Group<'_>| group.name.to_owned();
        let of = groups(scope(&findings)).into_iter().map(names);
        assert_eq!(of.collect::<Vec<_>>(), ["point, part 1", "writes"]);
    }
}
