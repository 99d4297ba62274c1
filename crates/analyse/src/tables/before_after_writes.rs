//! The summary's table of what writing does to reads: a row a test, a column a variant.

use dbdyno_record::CellRecord;
use serde_json::{Map, Value};

use crate::compare::ratio::ratio_text;
use crate::compare::zero_rate::blocks_text;
use crate::model::{Aging, AgingVariant, Cell, StepFindings, Table, TableRow};
use crate::tables::cells::{absent, missing};
use crate::tables::colours;

/// Data modes in which each step has tables of its own, so that none ages.
const FRESH: [&str; 2] = ["reset", "restore-each-step"];

/// `None` without a test that ran before and after the steps that write.
pub(crate) fn table(
    aging: &[Aging],
    steps: &[StepFindings],
    cells: &[&CellRecord],
    options: &Map<String, Value>,
) -> Option<Table> {
    let row = |of: &Aging| TableRow {
        label: of.after.clone(),
        is_target: false,
        cells: of.variants.iter().map(|variant| cell(of, variant, steps, cells)).collect(),
    };
    let first = aging.first()?;
    Some(Table {
        title: "After ÷ before writes".to_owned(),
        caption: caption(aging, options),
        columns: first.variants.iter().map(|variant| variant.variant.clone()).collect(),
        rows: aging.iter().map(row).collect(),
    })
}

fn caption(aging: &[Aging], options: &Map<String, Value>) -> String {
    let over = match aging.iter().flat_map(|of| &of.variants).any(|variant| variant.interval.is_some()) {
        true => "the geometric mean over the blocks with its 95 % interval",
        false => "the geometric mean where there are several blocks",
    };
    let mode = options.get("data").and_then(Value::as_str).filter(|mode| FRESH.contains(mode));
    let fresh = mode.map_or_else(String::new, |mode| {
        format!(
            " No writes lie between them in this run: each step began on fresh tables (data = \
                 \"{mode}\")."
        )
    });
    format!(
        "Rate of each test after the steps that write ÷ its rate before them (.pre) in the same \
         block; {over}.{fresh}"
    )
}

fn cell(aging: &Aging, variant: &AgingVariant, steps: &[StepFindings], cells: &[&CellRecord]) -> Cell {
    let left_out = (!variant.without.is_empty()).then(|| {
        format!("without {}, in which one of the two steps answered nothing", blocks_text(&variant.without))
    });
    let Some(ratio) = variant.ratio else {
        return left_out.map_or_else(
            || gap(aging, &variant.variant, steps, cells),
            |_| absent("n/a", "one of the two steps answered nothing".to_owned()),
        );
    };
    let colour = colours::relative(ratio);
    let mut notes = vec![colours::relative_note(colour, "the rate before the writes")];
    notes.extend(left_out);
    notes.retain(|note| !note.is_empty());
    Cell {
        value: Some(ratio),
        colour,
        interval: variant.interval,
        ..absent(&ratio_text(ratio, 2), notes.join("; "))
    }
}

/// Why there is no ratio: what has happened to the first of the two steps that has no rate.
fn gap(aging: &Aging, variant: &str, steps: &[StepFindings], cells: &[&CellRecord]) -> Cell {
    let found = |name: &str| {
        let step = steps.iter().find(|step| step.name == name)?;
        step.variants.iter().find(|found| found.variant == variant)
    };
    let both = [&aging.before, &aging.after].map(|name| (name, found(name)));
    let without_rate =
        both.into_iter().find_map(|(name, found)| Some((name, found.filter(|it| it.rate.is_none())?)));
    match without_rate {
        Some((name, found)) => {
            let cell = missing(found, cells);
            Cell { note: format!("{name}: {}", cell.note), ..cell }
        }
        None => absent("n/a", "no block in which both are valid".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::{Run, StepEvent, StepRecord};

    use super::*;
    use crate::analyse;
    use crate::fixtures::{cell, load_step, run};
    use crate::model::Colour;

    fn step(name: &str, rate: u64) -> StepRecord {
        let mut step = load_step(rate);
        step.name = name.to_owned();
        step.spec.name = name.to_owned();
        step
    }

    fn broken(name: &str) -> StepRecord {
        let mut step = step(name, 1_000);
        step.events.push(StepEvent::Invalid { reason: "clock jumped".to_owned() });
        step
    }

    fn table_of(run: &Run) -> Option<Table> {
        analyse(run).workloads[0].summary.aging.clone()
    }

    /// Two tests of two variants; `b` has gaps.
    fn two() -> Run {
        let of_a = vec![step("p.pre", 10_000), step("q.pre", 1_000), step("p", 7_000), step("q", 1_040)];
        let of_b = vec![broken("p.pre"), step("q.pre", 1_000), step("p", 9_000)];
        run(&["a", "b"], 1, vec![cell(1, "a", of_a), cell(1, "b", of_b)])
    }

    #[test]
    fn tests_are_rows_variants_are_columns_and_gaps_say_which_of_the_two_is_missing() {
        let table = table_of(&two()).unwrap();
        let line = |row: &TableRow| {
            let text = |cell: &Cell| format!("{} {:?} ({})", cell.text, cell.colour, cell.note);
            format!("{}: {}", row.label, row.cells.iter().map(text).collect::<Vec<_>>().join(" | "))
        };
        let text = table.rows.iter().map(line).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(format!("{}\n{text}", table.columns.join(" | ")), @"
        a | b
        p: 0.70 Yellow (more than 5 % below the rate before the writes) | invalid None (p.pre: clock jumped)
        q: 1.04 None () | n/a None (q: did not run)
        ");
        insta::assert_snapshot!(table.caption, @"Rate of each test after the steps that write ÷ its rate before them (.pre) in the same block; the geometric mean where there are several blocks.");
    }

    #[test]
    fn several_blocks_have_an_interval() {
        let of = |block, after| cell(block, "a", vec![step("p.pre", 10_000), step("p", after)]);
        let table = table_of(&run(&["a"], 3, vec![of(1, 8_000), of(2, 8_100), of(3, 7_900)])).unwrap();
        let cell = &table.rows[0].cells[0];
        assert_eq!((cell.text.as_str(), cell.colour, cell.verdict), ("0.80", Colour::Yellow, None));
        let interval = cell.interval.unwrap();
        assert!(0.76 < interval.low && interval.low < 0.79 && 0.81 < interval.high && interval.high < 0.84);
        assert!(table.caption.contains("with its 95 % interval"), "{}", table.caption);
    }

    #[test]
    fn where_each_step_has_fresh_tables_the_caption_says_that_none_has_aged() {
        let mut run = two();
        let options = &mut run.manifest.workloads[0].options;
        options.insert("data".to_owned(), "reset".into());
        let caption = table_of(&run).unwrap().caption;
        assert!(caption.ends_with("each step began on fresh tables (data = \"reset\")."), "{caption}");
    }

    #[test]
    fn a_workload_without_such_a_test_has_no_table() {
        assert!(table_of(&run(&["a"], 1, vec![cell(1, "a", vec![load_step(1_000)])])).is_none());
    }
}
