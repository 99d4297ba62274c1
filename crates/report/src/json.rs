//! Findings as one JSON object, for programs.

use dbdyno_analyse::Findings;
use serde::Serialize;

use crate::Error;

/// Version of the JSON report's shape: the findings as they are, no number rounded. It rises when a key is removed or changes its meaning; new keys do not raise it.
pub const SCHEMA: u32 = 4;

/// One JSON object with `schema` as first key; `about` is what errors name.
///
/// # Errors
/// [`Error::Json`] when it cannot be written as JSON.
pub(crate) fn document(about: &str, content: &impl Serialize) -> Result<String, Error> {
    #[derive(Serialize)]
    struct Document<'a, C: Serialize> {
        schema: u32,
        #[serde(flatten)]
        content: &'a C,
    }
    let document = Document { schema: SCHEMA, content };
    let failed = |source| Error::Json { run_id: about.to_owned(), source };
    Ok(serde_json::to_string_pretty(&document).map_err(failed)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_schema_comes_first_and_the_findings_follow_unrounded() {
        let findings = fixture::findings();
        let text = document("run", &findings).expect("plain data");
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
