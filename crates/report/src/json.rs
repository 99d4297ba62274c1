//! Writes findings as one JSON object for programs, with the views that a page shows for each
//! workload.

use dbdyno_analyse::parity::What;
use dbdyno_analyse::{Findings, Validity};
use serde::Serialize;
use serde_json::{Value, json};

use crate::document::{Cell, Column, Table};
use crate::notices::add_words;
use crate::parity;
use crate::views::{Scope, VIEWS, run_of_section};

/// Version of the JSON report's shape. The report has the findings as they are and all views of
/// them, with no number rounded. The version rises when a key is removed or changes its meaning;
/// new keys do not raise it.
pub const SCHEMA: u32 = 1;

/// The findings of a run, each workload with its views. Each warning, and each reason why figures
/// are not used, has its words among its figures. Remarks on parity have only the words.
pub(crate) fn findings(findings: &Findings) -> String {
    let mut with_words = findings.clone();
    let of_sections = with_words.sections.iter_mut().flat_map(|section| &mut section.workloads);
    let steps = with_words.workloads.iter_mut().chain(of_sections).flat_map(|workload| &mut workload.steps);
    for run in steps.flat_map(|step| &mut step.variants).flat_map(|variant| &mut variant.runs) {
        if let Validity::Invalid { reasons } = &mut run.validity {
            add_words(reasons);
        }
    }
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
        for (at, workload) in section.workloads.iter().enumerate() {
            let scope = Scope { run: &run, ..Scope::of(findings, workload) };
            value["sections"][number]["workloads"][at]["views"] = views(scope);
        }
    }
    document(&value)
}

/// Every table of every view, as a page shows it.
fn views(scope: Scope<'_>) -> Value {
    let tables = VIEWS.iter().flat_map(|view| (view.tables)(scope).into_iter().map(|found| (view.id, found)));
    tables.map(|(id, found)| table(id, &found)).collect()
}

fn table(view: &str, table: &Table) -> Value {
    let column = |column: &Column| json!({ "name": column.name, "unit": column.unit });
    let row = |row: &Vec<Cell>| row.iter().map(cell).collect::<Value>();
    json!({
        "view": view,
        "title": table.title,
        "note": table.note,
        "columns": table.columns.iter().map(column).collect::<Value>(),
        "rows": table.rows.iter().map(row).collect::<Value>(),
    })
}

/// A table cell: its number where it has one, otherwise its text. If the number has an interval, a
/// verdict or a range over the blocks, it is an object of these.
fn cell(cell: &Cell) -> Value {
    let Some(value) = cell.value.filter(|value| value.is_finite()) else { return json!(cell.text) };
    let mut parts = serde_json::Map::from_iter([("value".to_owned(), json!(value))]);
    if let Some(interval) = cell.interval {
        parts.extend([("low".to_owned(), json!(interval.low)), ("high".to_owned(), json!(interval.high))]);
    }
    if let Some(ends) = cell.spread {
        parts.extend([("least".to_owned(), json!(ends.low)), ("greatest".to_owned(), json!(ends.high))]);
    }
    parts.extend(cell.verdict.map(|verdict| ("verdict".to_owned(), json!(verdict.word()))));
    if parts.len() == 1 { json!(value) } else { Value::Object(parts) }
}

/// One JSON object that has `schema` as its first key.
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
                &["workloads", "steps", "variants", "ratio"],
                &["workloads", "steps", "variants", "ratio", "inference"],
                &["workloads", "steps", "variants", "runs"],
            ] {
                let found = path.iter().fold(vec![&report], |objects, key| below(&objects, key));
                for key in found.iter().filter_map(|one| one.as_object()).flat_map(|object| object.keys()) {
                    assert!(DOCUMENT.contains(&format!("`{key}`")), "{key} of {path:?}");
                }
            }
        }
    }

    /// The values that the objects have under the key. A list gives its items.
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
        let rate = findings.workloads[0].steps[0].variants[0].rate;
        assert_eq!(value["workloads"][0]["steps"][0]["variants"][0]["rate"].as_f64(), rate);
        let validity =
            |step: usize| value["workloads"][0]["steps"][step]["variants"][1]["runs"][0]["validity"].clone();
        assert_eq!(validity(9)["state"], "failed");
        assert_eq!(value["warnings"][1]["figures"]["text"], "Client and server share CPUs 1.");
        let reason = &validity(fixture::INVALID)["reasons"][0];
        let text = "rows of table 1: 399950 instead of 400000";
        assert_eq!((&reason["code"], &reason["figures"]["text"]), (&"quoted".into(), &text.into()));
    }

    #[test]
    fn every_view_is_there_with_the_numbers_behind_its_texts() {
        let findings = fixture::with_blocks(3);
        let value: Value = serde_json::from_str(&super::findings(&findings)).expect("valid JSON");
        let views = value["workloads"][0]["views"].as_array().expect("a list");
        let names = dbdyno_analyse::unique(views.iter().filter_map(|view| view["view"].as_str()));
        assert_eq!(names, ["throughput", "ratios", "targets", "errors", "latency", "efficiency"]);
        let (rates, ratios) = (&views[0], &views[1]);
        assert_eq!(ratios["title"], "Relative throughput");
        assert_eq!(ratios["columns"][2], json!({ "name": "<b>&\"", "unit": "" }));
        let variant = &findings.workloads[0].steps[2].variants[1];
        let (ratio, rate) = (variant.to_base.ratio.as_ref().unwrap(), variant.rate.unwrap());
        let interval = ratio.inference.as_ref().unwrap().interval;
        let expected =
            json!({ "value": ratio.value, "low": interval.low, "high": interval.high, "verdict": "faster" });
        assert_eq!((&ratios["rows"][2][0], &ratios["rows"][2][2]), (&"l.i1".into(), &expected));
        let expected = json!({ "value": rate, "least": rate * 0.99, "greatest": rate * 1.01 });
        assert_eq!((&rates["rows"][2][2], &rates["rows"][7][2]), (&expected, &"invalid".into()));
        assert_eq!(ratios["rows"][2][1], json!(1.0), "the base has no interval");
        let latency = views.iter().find(|view| view["view"] == "latency").expect("it is named above");
        assert_eq!((&latency["columns"][3]["unit"], &latency["rows"][0][4]), (&"ms".into(), &json!(0.096)));
    }

    #[test]
    fn of_a_remark_on_parity_there_are_the_words() {
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
