//! Charts of one step by topic.
//!
//! * Latency: response times by percentile, over all valid blocks together.
//! * Cost: CPU and IO per operation, stacked by who used it, which is the view `by_user`.
//! * Statistics: the rate of each block as a point, with the variant's median, from the view
//!   `rate_by_block` and the table of rates; and how two factors act on each other.

use dbdyno_analyse::{StepFindings, Validity, VariantSummary, unique};
use serde_json::{Value, json};

use super::{Charts, bound_sign, chart, figure, milliseconds, rate_of, rounded};
use crate::document::{Chart, Table};
use crate::views::details::cost::{CPU_UNIT, IO_UNIT, by_user};
use crate::views::details::statistics::by_block;
use crate::views::details::{self, rate};

/// Draws response times by percentile. It is `None` where no variant has a curve.
pub(super) fn percentiles(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let curves: Vec<(&str, &[(f64, u64)])> = step
        .variants
        .iter()
        .filter_map(|variant| Some((variant.variant.as_str(), variant.latency.as_ref()?.curve.as_slice())))
        .filter(|(_, curve)| curve.len() > 1)
        .collect();
    let mut percentiles: Vec<f64> =
        curves.iter().flat_map(|(_, curve)| curve.iter().map(|(percentile, _)| *percentile)).collect();
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    let line = |(variant, curve): &(&str, &[(f64, u64)])| {
        let of = |percentile: &f64| curve.iter().find(|(known, _)| known == percentile);
        let times: Vec<Option<Value>> = percentiles
            .iter()
            .map(|percentile| of(percentile).map(|(_, time_us)| milliseconds(*time_us)))
            .collect();
        json!({ "variant": charts.variant(variant), "ms": times })
    };
    let series: Vec<Value> = curves.iter().map(line).collect();
    (!series.is_empty()).then(|| {
        chart(
            format!("{}: response time by percentile, ms, all valid blocks together.", step.name),
            json!({ "kind": "percentiles", "percentiles": percentiles, "series": series }),
        )
    })
}

/// Draws CPU and IO per operation. It is `None` where neither was sampled.
pub(super) fn cost(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let table = by_user(step);
    let all = [("CPU, µs per operation", CPU_UNIT), ("device, KiB per operation", IO_UNIT)];
    let panels: Vec<Value> =
        all.into_iter().filter_map(|(title, unit)| cost_panel(&table, title, unit)).collect();
    let variants = table.rows.iter().map(|row| charts.variant(&row[0].text));
    let unit = if step.less_is_better { "" } else { step.rate_label.trim_end_matches("/s") };
    let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
    (!panels.is_empty()).then(|| {
        chart(
            format!("{}: CPU and IO per operation{unit}, by who used it; medians of the blocks.", step.name),
            json!({ "kind": "cost", "variants": variants.collect::<Vec<_>>(), "panels": panels }),
        )
    })
}

/// Makes the panel for the columns with this unit.
fn cost_panel(table: &Table, title: &str, unit: &str) -> Option<Value> {
    let columns = table.columns.iter().enumerate().filter(|(_, column)| column.unit == unit);
    let values = |at: usize| table.rows.iter().map(move |row| row[at].value.map(|value| rounded(value, 4)));
    let parts: Vec<Value> = columns
        .map(|(at, column)| json!({ "name": column.name, "values": values(at).collect::<Vec<_>>() }))
        .collect();
    (!parts.is_empty()).then(|| json!({ "unit": title, "parts": parts }))
}

/// Draws the rate of each block. It is `None` where no variant has two valid blocks.
pub(super) fn blocks(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let (blocks, medians) = (by_block(step).pop()?, rate(step)?);
    let all: Vec<(usize, Vec<Value>)> =
        charts.names.iter().enumerate().map(|(number, name)| (number, block_points(&blocks, name))).collect();
    if all.iter().all(|(_, points)| points.len() < 2) {
        return None;
    }
    let drawn = all.into_iter().filter(|(_, points)| !points.is_empty());
    let series = drawn.map(|(number, points)| {
        let cell = rate_of(&medians, charts.names[number]);
        let median = cell.and_then(|cell| cell.value).map(figure);
        let mut line = json!({ "variant": number, "points": points, "median": median });
        if let Some(sign) = cell.and_then(|cell| bound_sign(cell.bound)) {
            line["sign"] = json!(sign);
        }
        line
    });
    Some(chart(
        format!("{}: {} of each block; a bar is the median.", step.name, step.rate_label),
        json!({ "kind": "blocks", "unit": step.rate_label, "series": series.collect::<Vec<_>>() }),
    ))
}

/// Returns block and rate of each valid run. A time that is only a bound has its sign as a third
/// item.
fn block_points(blocks: &Table, variant: &str) -> Vec<Value> {
    let valid = Validity::Valid.state();
    let rows = blocks.rows_of(variant);
    let rows = rows.filter(|row| blocks.cell(row, "state").is_some_and(|cell| cell.text == valid));
    let point = |row| {
        let (block, rate) = (blocks.cell(row, "block")?, blocks.cell(row, "rate")?);
        let sign = bound_sign(rate.bound).map(|sign| json!(sign));
        let pair = [figure(block.value?), figure(rate.value?)];
        Some(Value::Array(pair.into_iter().chain(sign).collect()))
    };
    rows.filter_map(point).collect()
}

/// Draws the first two factors of the design, with the others at the base's levels. It is `None`
/// for a plan without two factors.
pub(super) fn interaction(charts: &Charts<'_>, step: &StepFindings) -> Option<Chart> {
    let variants = &charts.findings.variants;
    let base = variants.iter().find(|variant| variant.name == charts.findings.run.base)?;
    let mut factors = base.factors.keys();
    let (first, second) = (factors.next()?, factors.next()?);
    let is_shown = |variant: &&VariantSummary| {
        let others = base.factors.iter().filter(|(factor, _)| *factor != first && *factor != second);
        variant.factors.len() == base.factors.len()
            && others.clone().all(|(factor, level)| variant.factors.get(factor) == Some(level))
    };
    let shown: Vec<&VariantSummary> = variants.iter().filter(is_shown).collect();
    let levels = |factor: &str| {
        unique(shown.iter().filter_map(|variant| variant.factors.get(factor)).map(String::as_str))
    };
    let rates = details::rate(step)?;
    let rate = |of_first: &str, of_second: &str| -> Option<f64> {
        let is_it = |variant: &&&VariantSummary| {
            variant.factors.get(first).is_some_and(|level| level == of_first)
                && variant.factors.get(second).is_some_and(|level| level == of_second)
        };
        // A bound is a gap in the line, because a line to it would show an interaction that is not
        // known.
        rate_of(&rates, &shown.iter().find(is_it)?.name).filter(|cell| cell.bound.is_none())?.value
    };
    let across = levels(first);
    let line = |level: &&str| {
        let rates: Vec<Option<Value>> = across.iter().map(|at| rate(at, level).map(figure)).collect();
        json!({ "level": level, "rates": rates })
    };
    let lines: Vec<Value> = levels(second).iter().map(line).collect();
    let is_known = across.iter().any(|at| levels(second).iter().any(|level| rate(at, level).is_some()));
    is_known.then(|| {
        chart(
            format!(
                "{}: {first} and {second} together. If the lines are parallel, the factors do not interact.",
                step.name
            ),
            json!({
                "kind": "interaction",
                "unit": step.rate_label,
                "first": first,
                "second": second,
                "levels": across,
                "lines": lines,
            }),
        )
    })
}
