//! The original's acceptance checks that need no server. Each test has the number of its check, and
//! its expected figures are constants that no code of the workload computes.

use crate::microbenchmarks::options::{MicroSequence, MicrobenchmarksOptions};
use crate::oltp::options::{Distribution, OltpOptions};
use dbdyno_db::Param;

use crate::Philox;
use crate::microbenchmarks::steps::ReadyStep;
use crate::oltp::distribution::IdDistribution;
use crate::oltp::operation::OltpDraws;
use crate::oltp::operation::OltpOperation;
use crate::oltp::operation::StatementSlot;
use crate::oltp::sql::OltpStatement;
use crate::summaries::context;

const TABLE_SIZE: u64 = 10_000;

/// Calls `use_it` with the step of this name and the statements of its operation.
fn with_step<T>(name: &str, use_it: impl FnOnce(&ReadyStep<'_>, &[StatementSlot]) -> T) -> T {
    let of = |sequence| MicrobenchmarksOptions {
        sequence,
        table_size: TABLE_SIZE,
        ..MicrobenchmarksOptions::default()
    };
    let both = [of(MicroSequence::FortyTwo), of(MicroSequence::ThirtyTwo)];
    let found = both
        .iter()
        .find_map(|options| Some((options, options.levels().into_iter().find(|level| level.name == name)?)));
    let (options, level) = found.unwrap();
    let step = ReadyStep::new(options, &level, &context());
    use_it(&step, &step.statement_slots())
}

/// Returns, for each of 2,000 operations, the integer parameters of its only statement or of its
/// first range.
fn numbers(name: &str) -> Vec<Vec<i64>> {
    with_step(name, |step, places| {
        let mut operation = OltpOperation::new(places, &step.setup, None);
        let stream = Philox::new(1, 1);
        let mut draw = |number| {
            operation.draw(&mut OltpDraws::new(&stream, 1, number), 0);
            let with_numbers =
                operation.statements().iter().find(|ready| is_range(ready.kind) || places.len() == 1);
            let params = with_numbers.unwrap().params.iter();
            params
                .filter_map(|param| if let Param::Int(number) = param { Some(*number) } else { None })
                .collect()
        };
        (0..2_000).map(&mut draw).collect()
    })
}

fn is_range(kind: OltpStatement) -> bool {
    kind.is_range() || matches!(kind, OltpStatement::Range(..))
}

#[test]
fn acceptance_check_1_statements_of_an_operation() {
    let split = |name: &str| {
        with_step(name, |_, places| {
            let count =
                |wanted: fn(OltpStatement) -> bool| places.iter().filter(|place| wanted(place.kind)).count();
            let (writes, others) =
                (count(OltpStatement::is_write), count(OltpStatement::is_transaction_control));
            (places.len(), [places.len() - writes - others, writes, others])
        })
    };
    for name in ["read-only_range=10", "read-only_range=100", "read-only_range=10000"] {
        assert_eq!(split(name), (16, [14, 0, 2]), "{name}");
    }
    for name in ["read-only-simple", "read-only-sum", "read-only-order", "read-only-distinct"] {
        assert_eq!(split(name), (13, [11, 0, 2]), "{name}");
    }
    assert_eq!(split("write-only"), (6, [0, 4, 2]));
    for name in ["read-write_range=10", "read-write_range=100"] {
        assert_eq!(split(name), (20, [14, 4, 2]), "{name}");
    }
    for name in ["point-query", "hot-points", "range-covered-pk", "read-only-count", "scan"] {
        assert_eq!(split(name), (1, [1, 0, 0]), "{name}");
    }
    for name in
        ["update-inlist", "update-index", "update-nonindex", "update-one", "update-zipf", "delete", "insert"]
    {
        assert_eq!(split(name), (1, [0, 1, 0]), "{name}");
    }
}

#[test]
fn acceptance_check_3_shares_of_the_distributions() {
    const DRAWS: u64 = 200_000;
    let share = |law, size: u64, from: u64, to: u64| {
        let options = OltpOptions { distribution: law, ..OltpOptions::default() };
        let (distribution, stream) = (IdDistribution::new(&options, size), Philox::new(3, 3));
        let ids = (0..DRAWS).map(|number| distribution.draw(&mut OltpDraws::new(&stream, 1, number)));
        ids.filter(|id| (from..=to).contains(id)).count() as f64 / DRAWS as f64
    };
    let special = share(Distribution::Special, 100_000, 49_500, 50_500);
    assert!((0.75..=0.765).contains(&special), "special, middle hundredth: {special}");
    let pareto = share(Distribution::Pareto, 100_000, 1, 20_000);
    assert!((0.795..=0.805).contains(&pareto), "pareto, first fifth: {pareto}");
    let zipfian = share(Distribution::Zipfian, 10_000_000, 1, 100);
    assert!((0.065..=0.069).contains(&zipfian), "zipfian, first hundred of ten million: {zipfian}");
}

#[test]
fn acceptance_check_4_hot_ids_and_widths_of_ranges() {
    let hot: Vec<i64> = (5_001..=5_100).collect();
    assert!(numbers("hot-points").iter().all(|ids| *ids == hot));
    let widths = |name: &str, more: i64| {
        for ids in numbers(name) {
            assert!((1..=10_000).contains(&ids[0]) && ids[1] == ids[0] + more, "{name}: {ids:?}");
        }
    };
    for name in ["range-covered-pk", "range-notcovered-pk", "range-covered-si", "range-notcovered-si"] {
        widths(name, 100);
    }
    widths("read-only_range=10", 9);
    widths("read-only_range=100", 99);
    widths("read-only_range=10000", 9_999);
    widths("read-only-count", 999);
    assert!(numbers("update-one").iter().all(|ids| *ids == [1]));
    assert!(numbers("update-inlist").iter().all(|ids| ids.len() == 10));
}
