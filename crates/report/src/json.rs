//! Findings as one JSON object, for programs.

use dbdyno_analyse::parity::What;
use dbdyno_analyse::{Findings, Validity};
use serde::Serialize;

use crate::notices::add_words;
use crate::parity;

/// Version of the JSON report's shape: the findings as they are, no number rounded. It rises when a
/// key is removed or changes its meaning; new keys do not raise it.
pub const SCHEMA: u32 = 5;

/// The findings of a run. Each warning, and each reason why figures are not used, has its words
/// among its figures; of remarks on parity there are only the words.
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
    document(&with_words)
}

/// One JSON object with `schema` as first key.
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

    use crate::fixture;

    #[test]
    fn the_schema_comes_first_and_the_findings_follow_unrounded() {
        let findings = fixture::findings();
        let text = super::findings(&findings);
        assert!(text.starts_with("{\n  \"schema\": 5,\n  \"run\": {"));
        let value: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
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
    fn of_a_remark_on_parity_there_are_the_words() {
        let mut findings = fixture::findings();
        let mut parity = fixture::parity(&fixture::NAMES);
        parity.remarks.truncate(1);
        parity.remarks[0].what = What::UnknownSettings;
        parity.remarks[0].variants = vec!["a".to_owned()];
        findings.parity = Some(parity);
        let value: serde_json::Value = serde_json::from_str(&super::findings(&findings)).expect("valid JSON");
        assert_eq!(value["parity"]["remarks"][0]["text"], "the settings of a are not known");
    }
}
