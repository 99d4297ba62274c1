//! Checks what is said of the tables `sbtest1..T`: their sizes and ids, how they are filled.

use dbdyno_plan::Mistake;

use crate::oltp::options::{IdType, Oltp};
use crate::options::{first_problem, number_problem, table_options_problem};

/// Column `id` is a 32-bit number unless the plan says otherwise.
const MOST_ID: u64 = i32::MAX as u64;
/// No one has the disks for more, and sums of such ids fit into 64 bits for millions of rows.
const MOST_BIG_ID: u64 = 1_000_000_000_000;

/// The first option of the tables out of its range, or that contradicts another: its key inside
/// `[workload.NAME]`, and what to write. `oltp` may be the part of another workload that describes
/// its tables.
pub(crate) fn tables_problem(oltp: &Oltp) -> Option<Mistake> {
    table_number_problem(oltp)
        .or_else(|| first_id_problem(oltp))
        .or_else(|| {
            let message = "index_before_load wants an index on k, and create_secondary = false wants none";
            first_problem([(oltp.index_before_load && !oltp.create_secondary, "index_before_load", message)])
        })
        .or_else(|| table_options_problem(&oltp.create_table_options))
}

fn table_number_problem(oltp: &Oltp) -> Option<Mistake> {
    let most = most_id(oltp);
    [("table_size", oltp.table_size), ("first_id", oltp.first_id)].into_iter().find_map(|(key, value)| {
        let message = number_problem(key, value, &(1..=most))?;
        let help = if most == MOST_ID && value > most { WIDER } else { "" };
        Some((key, message + help))
    })
}

const WIDER: &str = "; with id = \"bigint\" it may be greater";

fn most_id(oltp: &Oltp) -> u64 {
    if oltp.id == IdType::Bigint { MOST_BIG_ID } else { MOST_ID }
}

/// Both numbers fit by themselves.
fn first_id_problem(oltp: &Oltp) -> Option<Mistake> {
    let (last, most) = (oltp.last_id(), most_id(oltp));
    (last > most).then(|| {
        let help = if most == MOST_ID { WIDER } else { "" };
        let message =
            format!("first_id and table_size make {last} the last id, but it must be at most {most}");
        ("first_id", message + help)
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::warnings;

    use crate::plans::parse;

    #[test]
    fn steps_that_write_into_tables_of_others_are_reported() {
        let plan = parse(
            "name = \"p\"\n[[variant]]\nname = \"a\"\naddress = \"mysql://root@localhost/sbtest\"\n[workload.oltp]\n\
             use_existing = true\ntests = [\"read-only\", \"insert\"]\n[workload.microbenchmarks]\nuse_existing = true\n\
             steps = [\"scan\", \"update-one\"]\n",
            "test.toml",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        insta::assert_snapshot!(warnings(&plan).join("\n"), @r"
        update-one will change rows of tables that are not dbdyno's (use_existing)
        insert will change rows of tables that are not dbdyno's (use_existing)
        ");
    }
}
