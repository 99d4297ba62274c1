//! Checks the results of dbt3's steps: each query has an answer, each refresh function changed the
//! rows that it must, and each table has its number of rows. Answers at scale factor 1 are compared
//! with the published ones, and each answer gets a digest. Decimal numbers in an answer may be
//! rounded, and all other values must be equal.

use std::time::Instant;

use dbdyno_db::{AnySession, Cells};
use dbdyno_record::{AnswerDigest, Check};
use tpchgen::q_and_a::answers_sf1;

use crate::Result;
use crate::checks::{check, count, part};
use crate::dbt3::Dbt3Setup;
use crate::dbt3::schema::Dbt3Table;
use crate::dbt3::steps::Dbt3Operation;
use crate::dbt3::tasks::Executed;

/// Checks the executions of a step: the rows that refresh functions changed, and the answers if
/// they are published.
pub(crate) fn executions(ledger: &[Executed], are_published: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    for executed in ledger.iter().filter(|executed| !executed.execution.cut_off) {
        let name = &executed.execution.name;
        if executed.due_rows > 0 {
            let parts = vec![part("rows changed", executed.due_rows.into(), executed.execution.rows.into())];
            checks.push(Check { table: name.clone(), parts, duration_us: 0 });
        } else if are_published {
            let reported =
                executed.difference.as_ref().map_or_else(String::new, |first| format!(": {first}"));
            let wrong = format!("rows that differ from the published answer{reported}");
            let parts = vec![part(&wrong, 0, executed.differing_rows as i128)];
            checks.push(Check { table: format!("answer of {name}"), parts, duration_us: 0 });
        }
    }
    checks
}

/// Returns a failed check where operations of a step have no answer, and `None` where all have one.
pub(crate) fn refused(step: &str, scripts: &[Vec<Dbt3Operation>], ledger: &[Executed]) -> Option<Check> {
    let due: usize = scripts.iter().map(Vec::len).sum();
    let parts = || vec![part("queries answered", due as i128, ledger.len() as i128)];
    (due > ledger.len()).then(|| Check { table: step.to_owned(), parts: parts(), duration_us: 0 })
}

/// Counts the rows of all tables. Refresh functions insert as many rows as they delete, so a table
/// has as many rows after them as after the load.
pub(crate) async fn row_counts(setup: &Dbt3Setup, session: &mut AnySession) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for table in Dbt3Table::ALL {
        let began = Instant::now();
        let found = count(session, table.name()).await?;
        let parts = vec![part("rows", table.rows(setup.options.scale_factor).into(), found)];
        checks.push(check(table.name(), parts, began));
    }
    Ok(checks)
}

/// Number of an answer's rows that are kept with its digest.
const SAMPLE_ROWS: usize = 20;
/// Tolerance for published decimal numbers, which are rounded to two places.
const DECIMAL_TOLERANCE: f64 = 0.005_1;
/// Tolerance for q17, whose published answer differs by 3 cents from the answer of all products.
/// The specification allows a difference of 1 %.
const Q17_TOLERANCE: f64 = 0.05;
/// The highest weight of a row in a digest's sums. The lowest is 1. Rows have different weights so
/// that a digest changes when two rows exchange their values.
const MAX_WEIGHT: u64 = 1000;

/// Returns the columns of query `number` that hold decimal numbers. Each product rounds these in
/// its own way. All other columns are exact: texts, whole numbers, dates.
pub(crate) const fn decimals(number: u8) -> &'static [usize] {
    match number {
        1 => &[2, 3, 4, 5, 6, 7, 8],
        2 | 6 | 14 | 17 | 19 => &[0],
        3 | 5 | 8 | 11 => &[1],
        7 => &[3],
        9 | 22 => &[2],
        10 => &[2, 3],
        15 => &[4],
        18 => &[4, 5],
        _ => &[],
    }
}

/// A row of an answer in two parts: its exact values, and its decimal numbers.
struct AnswerRow {
    exact: Vec<String>,
    decimals: Vec<f64>,
}

impl AnswerRow {
    fn new<'a>(cells: impl Iterator<Item = Option<&'a str>>, decimals: &[usize]) -> Self {
        let mut row = Self { exact: Vec::new(), decimals: Vec::new() };
        for (column, cell) in cells.enumerate() {
            let text = cell.map_or("NULL", str::trim);
            match text.parse() {
                Ok(number) if decimals.contains(&column) => row.decimals.push(number),
                _ => row.exact.push(text.to_owned()),
            }
        }
        row
    }

    /// Returns the 64-bit FNV-1a hash of the exact values.
    fn hash(&self) -> u64 {
        let bytes = self.exact.iter().flat_map(|text| text.bytes().chain([0]));
        bytes
            .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }
}

fn rows(cells: &Cells, number: u8) -> Vec<AnswerRow> {
    let answer_row =
        |row: &Vec<Option<String>>| AnswerRow::new(row.iter().map(Option::as_deref), decimals(number));
    cells.iter().map(answer_row).collect()
}

pub(crate) fn digest(number: u8, cells: &Cells) -> AnswerDigest {
    let mut exact = 0_u64;
    let mut sums = vec![0.0; decimals(number).len()];
    let mut weights = 0_u64;
    for row in rows(cells, number) {
        let hash = row.hash();
        let weight = 1 + hash % MAX_WEIGHT;
        exact = exact.wrapping_add(hash);
        weights += weight;
        for (sum, value) in sums.iter_mut().zip(&row.decimals) {
            *sum += weight as f64 * value;
        }
    }
    let sample = cells.iter().take(SAMPLE_ROWS).cloned().collect();
    // Every product computes averages to at least four decimal places.
    AnswerDigest { exact: format!("{exact:016x}"), sums, tolerance: 1e-4 * weights as f64, sample }
}

/// Compares an answer to query `number` with the published one, which holds for scale factor 1 and
/// the specification's validation parameters. The result is how many rows differ, and the first
/// difference in words.
pub(crate) fn difference(number: u8, cells: &Cells) -> (usize, Option<String>) {
    let mut published = published(number);
    let mut found = rows(cells, number);
    if number == 11 {
        found.iter_mut().for_each(as_published_of_q11);
    }
    for rows in [&mut published, &mut found] {
        rows.sort_by(|a, b| {
            a.exact
                .cmp(&b.exact)
                .then(a.decimals.partial_cmp(&b.decimals).unwrap_or(std::cmp::Ordering::Equal))
        });
    }
    let extra = published.len().abs_diff(found.len());
    let tolerance = if number == 17 { Q17_TOLERANCE } else { DECIMAL_TOLERANCE };
    let unlike = published.iter().zip(&found).filter(|(a, b)| !is_same(a, b, tolerance));
    let unlike: Vec<String> =
        unlike.map(|(a, b)| format!("{} where {} is published", text(b), text(a))).collect();
    let counted = format!("{} rows where {} are published", found.len(), published.len());
    let first = if extra > 0 { Some(counted) } else { unlike.first().cloned() };
    (extra + unlike.len(), first)
}

/// Changes a row to the form of the published answer to q11 in `tpchgen`. There, each key was
/// right-aligned to six characters and then lost its last two.
fn as_published_of_q11(row: &mut AnswerRow) {
    for key in &mut row.exact {
        let aligned = format!("{key:>6}");
        *key = aligned[..aligned.len() - 2].trim().to_owned();
    }
}

fn is_same(published: &AnswerRow, found: &AnswerRow, tolerance: f64) -> bool {
    let is_near = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance + 1e-9 * a.abs();
    published.exact == found.exact
        && published.decimals.len() == found.decimals.len()
        && published.decimals.iter().zip(&found.decimals).all(is_near)
}

fn text(row: &AnswerRow) -> String {
    let numbers = row.decimals.iter().map(|number| format!("{number:.2}"));
    format!("({})", row.exact.iter().cloned().chain(numbers).collect::<Vec<_>>().join(", "))
}

fn published(number: u8) -> Vec<AnswerRow> {
    let text = answers_sf1::answer(number.into()).unwrap_or_default();
    // The first line names the columns.
    let lines = text.lines().filter(|line| !line.trim().is_empty()).skip(1);
    lines.map(|line| AnswerRow::new(line.split('|').map(Some), decimals(number))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_several_queries_needs_an_answer_to_each() {
        let scripts = [vec![Dbt3Operation::Insert { set: 1 }, Dbt3Operation::Delete { set: 1 }]];
        let answered = |count| vec![Executed::default(); count];
        assert!(refused("power", &scripts, &answered(2)).is_none());
        let check = refused("power", &scripts, &answered(1)).unwrap();
        assert!(check.table == "power" && !check.is_ok(), "{check:?}");
        assert!(refused("load", &[], &[]).is_none());
    }

    /// Returns the published answer as a database would give it.
    fn cells(number: u8) -> Cells {
        let text = answers_sf1::answer(number.into()).unwrap();
        let lines = text.lines().filter(|line| !line.trim().is_empty()).skip(1);
        lines.map(|line| line.split('|').map(|cell| Some(cell.trim().to_owned())).collect()).collect()
    }

    #[test]
    fn published_answers_equal_themselves_and_decimal_columns_hold_numbers() {
        for number in 1..=22 {
            let mut cells = cells(number);
            assert!(!cells.is_empty());
            if number == 11 {
                let whole = |key: &Option<String>| Some(format!("{}60", key.as_deref().unwrap_or_default()));
                cells.iter_mut().for_each(|row| row[0] = whole(&row[0]));
            }
            assert_eq!(difference(number, &cells), (0, None), "q{number}");
            let row = &rows(&cells, number)[0];
            assert_eq!(row.decimals.len(), decimals(number).len(), "q{number}");
        }
    }

    #[test]
    fn order_and_rounding_make_no_difference_but_values_and_missing_rows_do() {
        let right = cells(3);
        let mut reordered = right.clone();
        reordered.reverse();
        reordered[0][1] = reordered[0][1].as_ref().map(|revenue| format!("{revenue}004"));
        assert_eq!(difference(3, &reordered), (0, None));
        assert!(digest(3, &right).agrees(&digest(3, &reordered)));
        let mut wrong = right.clone();
        wrong[2][1] = Some("1.00".to_owned());
        let (count, first) = difference(3, &wrong);
        assert_eq!(count, 1);
        assert!(first.unwrap().contains("is published"));
        assert!(!digest(3, &right).agrees(&digest(3, &wrong)));
        let mut short = right.clone();
        short.pop();
        assert!(difference(3, &short).1.unwrap().contains("9 rows where 10 are published"));
        assert!(!digest(3, &right).agrees(&digest(3, &short)));
    }

    #[test]
    fn values_exchanged_between_rows_change_the_digest() {
        // Both columns hold the same values as before, but in other rows.
        let right = cells(11);
        let mut swapped = right.clone();
        let value = swapped[0][1].clone();
        swapped[0][1] = swapped[500][1].clone();
        swapped[500][1] = value;
        assert!(!digest(11, &right).agrees(&digest(11, &swapped)));
    }
}
