//! Writes findings as one JSON object for programs, with the run's facts, the views of its
//! workloads, and the two long tables.

use dbdyno_analyse::parity::What;
use dbdyno_analyse::tables::{ComparisonRow, Observation, Tables};
use dbdyno_analyse::{Findings, Validity};
use serde::Serialize;
use serde_json::{Value, json};

use crate::document::{Column, Table, TableCell};
use crate::parity;
use crate::views::{OF_RUN, OF_WORKLOAD, Scope, run_of_section, side_by_side};
use crate::warnings::add_words;

/// Version of the JSON report's shape. It rises when a key is removed or changes its meaning; new
/// keys do not raise it.
pub const SCHEMA: u32 = 1;

/// Writes a run: its facts and each workload's views, then the two long tables with one line per
/// row. No number is rounded. Each warning, and each reason why figures are not used, has its words
/// among its figures. Remarks on parity have only the words.
pub(crate) fn findings(findings: &Findings) -> String {
    let tables = Tables::of(findings);
    let mut text = format!("{{\n  \"schema\": {SCHEMA}");
    let mut add = |name: &str, value: &str| text.push_str(&format!(",\n  \"{name}\": {value}"));
    let Value::Object(facts) = facts(findings) else { unreachable!("findings are an object") };
    for (name, value) in &facts {
        let lines = serde_json::to_string_pretty(value).expect("a value is JSON");
        add(name, &lines.replace('\n', "\n  "));
    }
    let of_runs = tables.observations.chunk_by(|one, next| one.key == next.key);
    add("observations", &lines(of_runs.map(observed)));
    add("comparisons", &lines(tables.comparisons.iter().map(compared)));
    text + "\n}\n"
}

/// Returns the findings without the contents of the two tables.
fn facts(findings: &Findings) -> Value {
    let mut with_words = findings.clone();
    add_words(&mut with_words.warnings);
    for remark in with_words.parity.iter_mut().flat_map(|parity| &mut parity.remarks) {
        remark.what = What::Words(parity::text(remark));
    }
    let mut value = serde_json::to_value(&with_words).expect("findings are plain data with texts as keys");
    for (at, workload) in findings.workloads.iter().enumerate() {
        value["workloads"][at]["views"] = views(Scope::of(findings, workload));
    }
    for (number, section) in findings.sections.iter().enumerate() {
        let run = run_of_section(&findings.run, section);
        let of_workload = |workload| {
            let scope = Scope { run: &run, ..Scope::of(findings, workload) };
            json!({ "name": workload.name, "views": views(scope) })
        };
        value["sections"][number]["workloads"] = section.workloads.iter().map(of_workload).collect();
        let set_ups = side_by_side(&run, &section.workloads).into_iter().flat_map(|(_, tables)| tables);
        value["sections"][number]["views"] = shown("set_ups", set_ups.collect()).collect();
    }
    value["views"] = OF_RUN.iter().flat_map(|view| shown(view.id, (view.tables)(findings))).collect();
    value
}

fn lines(rows: impl Iterator<Item = Value>) -> String {
    let rows: Vec<String> = rows.map(|row| format!("    {row}")).collect();
    if rows.is_empty() { "[]".to_owned() } else { format!("[\n{}\n  ]", rows.join(",\n")) }
}

/// Returns all values that have the same key as one object.
fn observed(values: &[Observation<'_>]) -> Value {
    let mut row = json!(values[0].key);
    if let Some(validity) = values[0].validity {
        row["state"] = validity.state().into();
        match validity {
            Validity::Invalid { reasons } => {
                let mut reasons = reasons.clone();
                add_words(&mut reasons);
                row["reasons"] = json!(reasons);
            }
            Validity::Failed { message } => row["message"] = message.as_str().into(),
            Validity::Valid | Validity::Interrupted => {}
        }
    }
    row["metrics"] = values.iter().map(|one| (one.metric.to_string(), number(one.value))).collect();
    row
}

/// Returns the number, and an integer where it is whole.
fn number(value: f64) -> Value {
    let is_whole = value.fract() == 0.0 && value.abs() < 1e15;
    if is_whole { json!(value as i64) } else { json!(value) }
}

/// Returns a comparison as one object. An infinite ratio is the text `infinite`, because JSON has
/// no number for it.
fn compared(found: &ComparisonRow<'_>) -> Value {
    let mut row = json!(found.key);
    let mut add = |name: &str, value: Option<Value>| value.into_iter().for_each(|value| row[name] = value);
    add("base", Some(found.base.into()));
    add("metric", Some(found.metric.into()));
    add("ratio", found.ratio.map(|ratio| if ratio.is_finite() { json!(ratio) } else { json!("infinite") }));
    add("bound", found.bound.map(|bound| bound.name().into()));
    add("low", found.interval.map(|interval| json!(interval.low)));
    add("high", found.interval.map(|interval| json!(interval.high)));
    add("p", found.p().map(Value::from));
    add("verdict", found.verdict.map(|verdict| verdict.word().into()));
    add("cause", found.cause.map(|cause| cause.name().into()));
    add("agreement", found.agreement.map(|agreement| agreement.name().into()));
    add("inference", found.inference.map(|inference| json!(inference)));
    let Some(details) = found.details else { return row };
    add("undecided", details.undecided.as_ref().map(|why| json!(why)));
    add("decided", details.decided.map(|decided| json!(decided)));
    add("zero_rates", (!details.zero_rates.is_empty()).then(|| json!(details.zero_rates)));
    add("foreign_load", details.foreign_load.map(|found| json!(found)));
    add("cost_breakdown", details.cost_breakdown.as_ref().map(|found| json!(found)));
    add("by_machine", details.by_machine.as_ref().map(|found| json!(found)));
    row
}

/// Returns every view's tables, as a page shows them.
fn views(scope: Scope<'_>) -> Value {
    OF_WORKLOAD.iter().flat_map(|view| shown(view.id, (view.tables)(scope))).collect()
}

fn shown(view: &str, tables: Vec<Table>) -> impl Iterator<Item = Value> {
    tables.into_iter().map(move |found| table(view, &found))
}

fn table(view: &str, table: &Table) -> Value {
    let column = |column: &Column| json!({ "name": column.name, "unit": column.unit });
    let row = |row: &Vec<TableCell>| row.iter().map(cell).collect::<Value>();
    json!({
        "view": view,
        "title": table.title,
        "note": table.note,
        "columns": table.columns.iter().map(column).collect::<Value>(),
        "rows": table.rows.iter().map(row).collect::<Value>(),
    })
}

/// Returns a table cell: its number where it has one, otherwise its text. A value that is only a
/// bound is a text too. If the number has an interval, a verdict or a range over the blocks, the
/// table cell is an object with these.
fn cell(cell: &TableCell) -> Value {
    let value = cell.value.filter(|value| value.is_finite() && cell.bound.is_none());
    let Some(value) = value else { return json!(cell.text) };
    let mut parts = serde_json::Map::from_iter([("value".to_owned(), json!(value))]);
    if let Some(interval) = cell.interval {
        parts.extend([("low".to_owned(), json!(interval.low)), ("high".to_owned(), json!(interval.high))]);
    }
    if let Some(ends) = cell.spread {
        parts.extend([("lowest".to_owned(), json!(ends.low)), ("highest".to_owned(), json!(ends.high))]);
    }
    parts.extend(cell.verdict.map(|verdict| ("verdict".to_owned(), json!(verdict.word()))));
    if parts.len() == 1 { json!(value) } else { Value::Object(parts) }
}

/// Returns one JSON object that has `schema` as its first key.
pub(crate) fn document(content: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Document<'a, C: Serialize> {
        schema: u32,
        #[serde(flatten)]
        content: &'a C,
    }
    let text = serde_json::to_string_pretty(&Document { schema: SCHEMA, content });
    text.expect("findings are plain data with texts as keys") + "\n"
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::parity::What;
    use serde_json::{Value, json};

    use crate::fixture;

    const DOCUMENT: &str = include_str!("../../../docs/reference/report-json.md");

    #[test]
    fn every_key_of_a_report_is_documented() {
        for findings in [fixture::with_blocks(3), fixture::with_groups()] {
            let report: Value = serde_json::from_str(&super::findings(&findings)).expect("valid JSON");
            for path in [
                &[][..],
                &["run"],
                &["variants"],
                &["workloads"],
                &["workloads", "steps"],
                &["workloads", "steps", "variants"],
                &["workloads", "steps", "variants", "runs"],
                &["observations"],
                &["comparisons"],
                &["comparisons", "inference"],
                &["comparisons", "inference", "paired"],
            ] {
                let found = path.iter().fold(vec![&report], |objects, key| below(&objects, key));
                for key in found.iter().filter_map(|one| one.as_object()).flat_map(|object| object.keys()) {
                    assert!(DOCUMENT.contains(&format!("`{key}`")), "{key} of {path:?}");
                }
            }
        }
    }

    /// Returns the values that the objects have under the key. A list gives its items.
    fn below<'a>(objects: &[&'a Value], key: &str) -> Vec<&'a Value> {
        let values = objects.iter().filter_map(|object| object.get(key));
        values
            .flat_map(|value| value.as_array().map_or(vec![value], |items| items.iter().collect()))
            .collect()
    }

    #[test]
    fn the_schema_comes_first_and_the_findings_follow_unrounded() {
        let findings = fixture::findings();
        let text = super::findings(&findings);
        assert!(text.starts_with("{\n  \"schema\": 1,\n  \"run\": {"));
        let value: Value = serde_json::from_str(&text).expect("valid JSON");
        assert_eq!(value["variants"][1]["name"], "<b>&\"");
        assert_eq!(value["warnings"][1]["figures"]["text"], "Client and server share CPUs 1.");
    }

    #[test]
    fn values_are_unrounded_and_a_run_without_them_says_why() {
        let findings = fixture::findings();
        let value: Value = serde_json::from_str(&super::findings(&findings)).expect("valid JSON");
        let rows = value["observations"].as_array().expect("a table");
        let of_step = |step: usize, block: Option<u32>| {
            let name = &findings.workloads[0].steps[step].name;
            let is_it = |row: &&Value| {
                row["step"] == **name && row["variant"] == fixture::NAMES[1] && row["block"] == json!(block)
            };
            rows.iter().find(is_it).unwrap_or_else(|| panic!("no row of {name}"))
        };
        let rate = findings.workloads[0].steps[0].variants[1].rate;
        assert_eq!(of_step(0, None)["metrics"]["rate"].as_f64(), rate);
        assert_eq!(
            (&of_step(0, Some(1))["state"], &of_step(9, Some(1))["state"]),
            (&json!("valid"), &json!("failed"))
        );
        let reason = &of_step(fixture::INVALID, Some(1))["reasons"][0];
        let text = "rows of table 1: 399950 instead of 400000";
        assert_eq!((&reason["code"], &reason["figures"]["text"]), (&"quoted".into(), &text.into()));
    }

    #[test]
    fn a_program_can_tell_an_infinite_ratio_from_one_that_is_not_known() {
        let mut findings = fixture::with_blocks(3);
        let variant = &mut findings.workloads[0].steps[0].variants[1];
        let relative = variant.to_base.relative.as_mut().expect("in the fixture");
        relative.0.insert("rps", f64::INFINITY);
        relative.0.remove("cpupq");
        let value: Value = serde_json::from_str(&super::findings(&findings)).expect("valid JSON");
        let rows = value["comparisons"].as_array().expect("a table");
        let ratio = |metric: &str| rows.iter().find(|row| row["step"] == "l.i0" && row["metric"] == metric);
        assert_eq!((ratio("rps").map(|row| &row["ratio"]), ratio("cpupq")), (Some(&"infinite".into()), None));
    }

    #[test]
    fn every_view_is_there_with_the_numbers_behind_its_texts() {
        let findings = fixture::with_blocks(3);
        let value: Value = serde_json::from_str(&super::findings(&findings)).expect("valid JSON");
        let views = value["workloads"][0]["views"].as_array().expect("a list");
        let names = dbdyno_analyse::unique(views.iter().filter_map(|view| view["view"].as_str()));
        assert_eq!(names, ["summary", "throughput", "ratios", "targets", "errors", "latency", "efficiency"]);
        let (rates, ratios) = (&views[1], &views[2]);
        assert_eq!(ratios["title"], "Relative throughput");
        assert_eq!(ratios["columns"][2], json!({ "name": "<b>&\"", "unit": "" }));
        let variant = &findings.workloads[0].steps[2].variants[1];
        let (ratio, rate) = (variant.to_base.ratio.as_ref().unwrap(), variant.rate.unwrap());
        let interval = ratio.inference.as_ref().unwrap().interval;
        let expected =
            json!({ "value": ratio.value, "low": interval.low, "high": interval.high, "verdict": "faster" });
        assert_eq!((&ratios["rows"][2][0], &ratios["rows"][2][2]), (&"l.i1".into(), &expected));
        let expected = json!({ "value": rate, "lowest": rate * 0.99, "highest": rate * 1.01 });
        assert_eq!((&rates["rows"][2][2], &rates["rows"][7][2]), (&expected, &"invalid".into()));
        assert_eq!(ratios["rows"][2][1], json!(1.0), "the base has no interval");
        let latency = views.iter().find(|view| view["view"] == "latency").expect("it is named above");
        assert_eq!((&latency["columns"][3]["unit"], &latency["rows"][0][4]), (&"ms".into(), &json!(0.096)));
    }

    #[test]
    fn a_remark_on_parity_has_only_its_words() {
        let mut findings = fixture::findings();
        let mut parity = fixture::parity(&fixture::NAMES);
        parity.remarks.truncate(1);
        parity.remarks[0].what = What::UnknownSettings;
        parity.remarks[0].variants = vec!["a".to_owned()];
        findings.parity = Some(parity);
        let value: Value = serde_json::from_str(&super::findings(&findings)).expect("valid JSON");
        assert_eq!(value["parity"]["remarks"][0]["text"], "the settings of a are not known");
    }
}
