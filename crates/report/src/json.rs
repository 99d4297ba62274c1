//! Findings as one JSON object, for programs.

use serde::Serialize;

/// Version of the JSON report's shape: the findings as they are, no number rounded. It rises when a
/// key is removed or changes its meaning; new keys do not raise it.
pub const SCHEMA: u32 = 4;

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
    use super::*;
    use crate::fixture;

    #[test]
    fn the_schema_comes_first_and_the_findings_follow_unrounded() {
        let findings = fixture::findings();
        let text = document(&findings);
        assert!(text.starts_with("{\n  \"schema\": 4,\n  \"run\": {"));
        let value: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
        assert_eq!(value["variants"][1]["name"], "<b>&\"");
        let rate = findings.workloads[0].steps[0].variants[0].rate;
        assert_eq!(value["workloads"][0]["steps"][0]["variants"][0]["rate"].as_f64(), rate);
        assert_eq!(
            value["workloads"][0]["steps"][9]["variants"][1]["runs"][0]["validity"]["state"],
            "failed"
        );
    }
}
