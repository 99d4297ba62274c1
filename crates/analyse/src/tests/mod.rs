//! Tests for the findings of small runs. The modules have functions that other tests share.

pub(crate) mod fixtures;
pub(crate) mod simulations;

use insta::assert_snapshot;

use super::*;
use crate::fixtures::{cell, load_step, run};

fn two() -> Run {
    let cells = vec![cell(1, "a", vec![load_step(1_000)]), cell(1, "b", vec![load_step(2_000)])];
    run(&["a", "b"], 1, cells)
}

fn ratios(findings: &Findings) -> Vec<f64> {
    findings.workloads[0].steps[0].variants.iter().filter_map(|v| v.to_base.value()).collect()
}

#[test]
fn findings_compare_with_the_planned_base_or_with_the_chosen_one() {
    let run = two();
    assert_eq!(ratios(&analyse(&run)), [1.0, 2.0]);
    let chosen = analyse_with(&run, &Choices { base: Some("b".to_owned()) }).unwrap();
    assert_eq!((ratios(&chosen), chosen.run.base.as_str()), (vec![0.5, 1.0], "b"));
    assert_eq!(ratios(&analyse_with(&run, &Choices::default()).unwrap()), [1.0, 2.0]);
}

#[test]
fn variants_can_be_left_out_and_the_base_with_them() {
    let mut run = two();
    let findings = analyse_only(&mut run, &["b".to_owned()], &Choices::default()).unwrap();
    assert_eq!(
        (findings.run.base.as_str(), findings.variants.len(), findings.run.cells_planned),
        ("b", 1, 1)
    );
    let error = analyse_only(&mut run, &["a".to_owned()], &Choices::default()).unwrap_err();
    assert_snapshot!(error, @r#"run 20240515T120000Z-small has no variant named "a"; its variants are: b"#);
}

#[test]
fn a_base_that_is_no_variant_is_an_error_that_names_the_variants() {
    let error = analyse_with(&two(), &Choices { base: Some("c".to_owned()) }).unwrap_err();
    assert_snapshot!(error, @r#"the run has no variant named "c" to compare with; its variants are: a, b"#);
}

#[test]
fn a_run_without_any_cell_has_findings_too() {
    let findings = analyse(&run(&["a"], 1, Vec::new()));
    assert_eq!(findings.workloads[0].steps.len(), 2);
    assert!(findings.workloads[0].steps[0].variants[0].runs.is_empty());
}
