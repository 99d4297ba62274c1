//! Tests of the formats in general. The findings that other tests render too are in `fixture`.

pub(crate) mod fixture;

use super::*;

#[test]
fn every_format_is_found_by_its_own_name_and_renders_text_that_ends_in_a_newline() {
    let findings = fixture::findings();
    for format in ALL {
        assert_eq!(find(format.name).expect("listed").extension, format.extension);
        let text = (format.render)(&findings);
        assert!(text.ends_with('\n'), "{} ends in a newline", format.name);
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = ALL.iter().map(|format| format.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
}

#[test]
fn an_unknown_format_is_answered_with_the_known_ones() {
    let error = find("pdf").expect_err("no such format").to_string();
    assert_eq!(
        error,
        "no report format is called `pdf`; use one of: terminal, md, html, csv, json, openmetrics, parquet"
    );
}

#[test]
fn a_run_without_any_workload_is_still_a_report_in_every_format() {
    let mut findings = fixture::findings();
    findings.workloads.clear();
    findings.variants.clear();
    for format in ALL {
        assert!(!(format.render)(&findings).is_empty(), "{}", format.name);
    }
}
