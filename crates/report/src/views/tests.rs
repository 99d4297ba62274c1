//! Tests which views have tables for the fixture of a whole run.

use dbdyno_analyse::Findings;

use super::testing::scope;
use super::*;
use crate::fixture;

#[test]
fn each_kind_of_table_is_shown_only_where_it_has_rows() {
    let titles = |findings: &Findings| {
        let of_rates = OF_WORKLOAD.iter().filter(|view| view.part == ViewPart::Rates);
        let all = of_rates.flat_map(|view| (view.tables)(scope(findings)));
        all.map(|table| table.title.split([':', '(']).next().unwrap_or_default().trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        titles(&fixture::findings()),
        ["Throughput", "Relative throughput", "Background inserts", "Errors"]
    );
    assert_eq!(titles(&fixture::with_groups())[2], "Groups of steps");
    assert_eq!(titles(&fixture::with_sweep())[2], "Connections");
    assert_eq!(titles(&fixture::with_aging())[2], "After ÷ before writes");
    let mut alone = fixture::sized(&["rollback"], 1, 5);
    assert_eq!(titles(&alone), ["Throughput", "Background inserts", "Errors"]);
    alone.workloads[0].steps.truncate(4);
    assert_eq!(titles(&alone), ["Throughput", "Errors"], "loads have no targets");
}
