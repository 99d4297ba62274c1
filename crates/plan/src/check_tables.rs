//! Checks what is said of the tables `sbtest1..T`: their sizes and ids, how they are filled, whose they are.

use crate::{IdType, Oltp, Plan, VariantKind, Workloads};

/// Column `id` is a 32-bit number unless the plan says otherwise.
const MOST_ID: u64 = i32::MAX as u64;
/// No one has the disks for more, and sums of such ids fit into 64 bits for millions of rows.
const MOST_BIG_ID: u64 = 1_000_000_000_000;

/// The first option of the tables out of its range, or that contradicts another: its key inside `[workload.NAME]`, and what to
/// write. `oltp` may be the part of another workload that describes its tables.
pub(crate) fn tables_problem(oltp: &Oltp) -> Option<(&'static str, String)> {
    number_problem(oltp)
        .or_else(|| first_id_problem(oltp))
        .or_else(|| index_problem(oltp))
        .or_else(|| table_options_problem(&oltp.create_table_options))
}

fn number_problem(oltp: &Oltp) -> Option<(&'static str, String)> {
    let numbers = [
        ("tables", oltp.tables.into(), 1, 10_000),
        ("table_size", oltp.table_size, 1, most_id(oltp)),
        ("first_id", oltp.first_id, 1, most_id(oltp)),
        ("load_connections", oltp.load_connections.into(), 1, 1024),
    ];
    let outside = |(_, value, least, greatest): &(&str, u64, u64, u64)| value < least || value > greatest;
    let (key, value, least, greatest) = numbers.into_iter().find(outside)?;
    let is_wider = greatest == MOST_ID && value > greatest;
    let help = if is_wider { WIDER } else { "" };
    Some((key, format!("{key} is {value}, but must be {least} to {greatest}{help}")))
}

const WIDER: &str = "; with id = \"bigint\" it may be greater";

fn most_id(oltp: &Oltp) -> u64 {
    if oltp.id == IdType::Bigint { MOST_BIG_ID } else { MOST_ID }
}

/// Both numbers fit by themselves.
fn first_id_problem(oltp: &Oltp) -> Option<(&'static str, String)> {
    let (last, most) = (oltp.last_id(), most_id(oltp));
    (last > most).then(|| {
        let help = if most == MOST_ID { WIDER } else { "" };
        let message =
            format!("first_id and table_size make {last} the last id, but it must be at most {most}");
        ("first_id", message + help)
    })
}

fn index_problem(oltp: &Oltp) -> Option<(&'static str, String)> {
    (oltp.index_before_load && !oltp.create_secondary).then(|| {
        let message = "index_before_load wants an index on k, and create_secondary = false wants none";
        ("index_before_load", message.to_owned())
    })
}

/// It ends up in a statement, and there is one statement to send.
pub(crate) fn table_options_problem(options: &str) -> Option<(&'static str, String)> {
    options.contains(';').then(|| {
        ("create_table_options", "create_table_options holds `;`: it is part of one statement".to_owned())
    })
}

/// What is wrong with running on tables that are there already: they are those of an address, and no other workload may
/// make its own in the same database. Also names the workload.
pub(crate) fn existing_problem(plan: &Plan) -> Option<(&'static str, (&'static str, String))> {
    let on_existing = on_existing(&plan.workload);
    let workload = *on_existing.first()?;
    let is_address = |kind| matches!(kind, VariantKind::Address(_));
    if let Some(variant) = plan.variants.iter().find(|variant| !is_address(variant.kind())) {
        let message = format!(
            "use_existing is for tables on an external server; variant {} has no address, so it \
             begins with fresh data",
            variant.name
        );
        return Some((workload, ("use_existing", message)));
    }
    let other = plan.workload.names().into_iter().find(|name| !on_existing.contains(name))?;
    let message = format!(
        "use_existing makes nothing in the database, but workload {other} of the same plan would make its tables there"
    );
    Some((workload, ("use_existing", message)))
}

/// Workloads that run on tables of others.
fn on_existing(workloads: &Workloads) -> Vec<&'static str> {
    let microbenchmarks = workloads.microbenchmarks.iter().filter(|options| options.use_existing);
    let oltp = workloads.oltp.iter().filter(|options| options.use_existing);
    microbenchmarks.map(|_| "microbenchmarks").chain(oltp.map(|_| "oltp")).collect()
}

/// Tests that write into tables of others, each workload a sentence.
pub(crate) fn existing_warnings(plan: &Plan) -> Vec<String> {
    let mut found = Vec::new();
    let mut warn = |writes: Vec<String>| {
        if !writes.is_empty() {
            let writes = writes.join(", ");
            found.push(format!("{writes} will change rows of tables that are not dbdyno's (use_existing)"));
        }
    };
    if let Some(options) = plan.workload.microbenchmarks.as_ref().filter(|options| options.use_existing) {
        let rungs = options.rungs().into_iter().filter(|rung| rung.step.test.writes());
        warn(rungs.map(|rung| rung.name).collect());
    }
    if let Some(oltp) = plan.workload.oltp.as_ref().filter(|oltp| oltp.use_existing) {
        warn(oltp.tests.iter().filter(|test| test.writes()).map(|test| test.name().to_owned()).collect());
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::{parse, warnings};

    #[test]
    fn steps_that_write_into_tables_of_somebody_else_are_told() {
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
