//! Every respect in which this implementation differs from the original, for the record and the report.

use dbdyno_plan::Values;
use dbdyno_record::Deviation;

use crate::deviations::{of_rows, of_table_rows, with_rest};
use crate::microbenchmarks::options::MicrobenchmarksOptions;
use crate::oltp;
use crate::step::StepOptions;

pub(crate) fn deviations(options: &MicrobenchmarksOptions) -> Vec<Deviation> {
    let values = with_rest(options.values(), &options.settling(), |wait| wait.to_string());
    let mut list = of_table_rows(oltp::deviations::ROWS, &options.tables_part().values());
    list.extend(of_rows(include_str!("deviations.toml"), &values));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deviations::rows;

    /// Topics of the classic workload that have other names here.
    const OTHERS: [&str; 2] = ["k", "query plans"];

    #[test]
    fn what_always_holds_for_the_classic_workload_holds_here_or_is_known_not_to() {
        let all = rows(oltp::deviations::ROWS, "deviation");
        for always in all.iter().filter(|row| row.always_holds() && !row.topic.is_empty()) {
            let topic = always.topic.as_str();
            assert!(always.of_tables != OTHERS.contains(&topic), "{topic}");
        }
    }

    #[test]
    fn options_of_the_plan_that_the_original_has_not_are_reported() {
        let topics =
            |options: &MicrobenchmarksOptions| deviations(options).into_iter().map(|found| found.topic).collect::<Vec<_>>();
        let default = topics(&MicrobenchmarksOptions::default());
        for topic in ["steps of ids", "binary logs", "time_cap"] {
            assert!(default.iter().any(|one| one == topic), "{topic}");
        }
        assert!(!default.iter().any(|one| one == "zipfian_exponent"));
        let other = MicrobenchmarksOptions { zipfian_exponent: 1.2, operations: Some(9), ..MicrobenchmarksOptions::default() };
        assert!(topics(&other).iter().any(|one| one == "zipfian_exponent"));
        assert!(!topics(&other).iter().any(|one| one == "time_cap"), "steps end with their operations");
    }
}
