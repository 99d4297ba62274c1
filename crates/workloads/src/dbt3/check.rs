//! What a plan asks of the options: checks of their ranges and of what goes together, needs, steps,
//! a forecast.

use std::time::Duration;

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, StepOutline, WorkloadOptions, data_problem};

use crate::dbt3::options::{Dbt3, Part};
use crate::dbt3::queries::{COUNT, joined_tables};
use crate::dbt3::schema::Table;
use crate::dbt3::steps::table_bytes;
use crate::options::{first_problem, range_problem, repeated, table_options_problem};
use crate::step::{StepOptions, forecast, outlines};

impl WorkloadOptions for Dbt3 {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        scale_problem(self)
            .or_else(|| range_problem(self))
            .or_else(|| queries_problem(self))
            .or_else(|| words_problem(self))
            .or_else(|| orders_problem(self))
            .or_else(|| indexes_problem(self))
            .or_else(|| table_options_problem(&self.create_table_options))
            .or_else(|| data_problem(self, false))
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
    }

    fn needs(&self) -> Needs {
        let streams = if self.parts.contains(&Part::Throughput) { self.streams + 1 } else { 1 };
        Needs {
            connections: self.load_connections.max(streams),
            data_bytes: Some(table_bytes(self)),
            data: self.data,
            cold: self.cold.clone(),
            row_streams: true,
            long_operations: true,
            ..Needs::default()
        }
    }

    fn steps(&self) -> Vec<StepOutline> {
        outlines(self)
    }

    fn estimate(&self, size: &Size) -> Forecast {
        forecast(self, size)
    }
}

fn scale_problem(options: &Dbt3) -> Option<Mistake> {
    let is_legal = (0.01..=1000.0).contains(&options.scale_factor);
    let message = format!("scale_factor is {}, but must be 0.01 to 1000", options.scale_factor);
    (!is_legal).then_some(("scale_factor", message))
}

fn words_problem(options: &Dbt3) -> Option<Mistake> {
    let is_short = options.time_limit.is_some_and(|limit| limit.0 < Duration::from_millis(1));
    let twice = "parts holds a part twice: each gives steps of its own names";
    let one_cold = "only the first of several repetitions would be cold: set repetitions = 1 and, for so many cold ones, blocks";
    first_problem([
        (repeated(&options.parts).is_some(), "parts", twice),
        (is_short, "time_limit", "time_limit must be at least 1ms"),
        // Only the first execution after a start is cold.
        (options.cold.is_any() && options.repetitions > 1, "repetitions", one_cold),
    ])
}

fn queries_problem(options: &Dbt3) -> Option<Mistake> {
    let queries = &options.queries;
    if let Some(number) = queries.iter().find(|number| !(1..=COUNT).contains(*number)) {
        return Some(("queries", format!("queries holds {number}, but must be 1 to {COUNT}")));
    }
    let number = repeated(queries)?;
    Some(("queries", format!("queries holds {number} twice: each gives a step of its own name")))
}

fn outer_tables(options: &Dbt3, key: &'static str, name: &str) -> Result<Vec<&'static str>, Mistake> {
    let number = name.strip_prefix('q').and_then(|number| number.parse().ok());
    let known =
        number.filter(|number| options.queries.contains(number) && options.parts.contains(&Part::Queries));
    let unknown = || (key, format!("{key} names {name}, which is none of the plan's queries"));
    known.map(joined_tables).ok_or_else(unknown)
}

fn indexes_problem(options: &Dbt3) -> Option<Mistake> {
    options.indexes.iter().find_map(|(name, indexes)| {
        let tables = match outer_tables(options, "indexes", name) {
            Ok(tables) => tables,
            Err(mistake) => return Some(mistake),
        };
        let is_of = |table: Table| tables.iter().any(|known| known.split(' ').next() == Some(table.name()));
        let unknown = indexes.iter().find(|index| !Table::of_index(index).is_some_and(is_of))?;
        let message = format!(
            "indexes names {unknown} for {name}, whose tables have no such index: {}",
            tables.join(", ")
        );
        Some(("indexes", message))
    })
}

fn orders_problem(options: &Dbt3) -> Option<Mistake> {
    options.join_orders.iter().find_map(|(name, orders)| {
        let tables = match outer_tables(options, "join_orders", name) {
            Ok(tables) => tables,
            Err(mistake) => return Some(mistake),
        };
        let fits = |order: &Vec<String>| {
            let mut given: Vec<&str> = order.iter().map(String::as_str).collect();
            let mut wanted = tables.clone();
            given.sort_unstable();
            wanted.sort_unstable();
            given == wanted
        };
        let is_single = tables.len() < 2;
        let message = match is_single {
            true => format!("{name} has no tables to join in another order"),
            false => format!("an order of {name} must hold each of these once: {}", tables.join(", ")),
        };
        (is_single || !orders.iter().all(fits)).then_some(("join_orders", message))
    })
}

#[cfg(test)]
mod tests {
    use crate::plans::parse;

    fn said(lines: &str) -> String {
        let plan = format!(
            "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.dbt3]\n{lines}\n"
        );
        parse(&plan, "test.toml").map_or_else(|error| error.to_string(), |_| "fine".to_owned())
    }

    #[test]
    fn mistakes_are_named_with_what_to_write() {
        let wrong = [
            "scale_factor = 0",
            "queries = [1, 23]",
            "queries = [1, 1]",
            "queries = [3, \"q3\"]",
            "queries = [\"revenue\"]",
            "queries = [-1]",
            "cold = true\nrepetitions = 5",
            "join_orders = { q1 = [[\"lineitem\"]] }",
            "join_orders = { q3 = [[\"lineitem\", \"orders\"]] }",
            "indexes = { q6 = [\"i_o_custkey\"] }",
            "cold = [\"q30\"]",
            "time_limit = \"0s\"",
        ];
        let all: Vec<String> = wrong.iter().map(|lines| said(lines)).collect();
        insta::assert_snapshot!(all.join("\n"));
        assert_eq!(said("queries = [\"q3\", 5]"), "fine");
        assert_eq!(said("join_orders = { q3 = [[\"lineitem\", \"orders\", \"customer\"]] }"), "fine");
    }
}
