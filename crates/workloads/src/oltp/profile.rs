//! Profiles of the classic OLTP workload: the defaults of another version of the original, laid
//! under what a plan says.

use dbdyno_plan::{Table, TableValue};

/// Name of the profile in plans, and its keys with their values.
const SYSBENCH_0_5: (&str, [(&str, TableValue); 3]) = (
    "sysbench-0.5",
    [
        ("protocol", TableValue::Text("text")),
        ("distribution", TableValue::Text("special-whole")),
        ("one_table", TableValue::Flag(true)),
    ],
);

/// Adds the defaults of the profile that the table names, where it says nothing else.
pub(crate) fn lay_under(table: &mut Table<'_>) {
    const KEY: &str = "profile";
    let (name, values) = SYSBENCH_0_5;
    if table.text(KEY) == Some(name) {
        values.into_iter().for_each(|(key, value)| table.set_default(key, value, KEY));
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_plan::Plan;

    use crate::oltp::options::{Distribution, Oltp, OltpProfile};
    use crate::options::Protocol;
    use crate::plans::parse;

    fn plan(text: &str) -> Plan {
        parse(text, "p.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    fn text(options: &str) -> String {
        format!("name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.oltp]\n{options}\n")
    }

    fn oltp(options: &str) -> Oltp {
        plan(&text(options)).workload.options::<Oltp>().unwrap().clone()
    }

    #[test]
    fn the_old_versions_defaults_hold_where_the_plan_says_nothing() {
        let old = oltp("profile = \"sysbench-0.5\"");
        assert_eq!(old.profile, OltpProfile::Sysbench05);
        assert_eq!(
            (old.one_table, old.protocol, old.distribution),
            (true, Protocol::Text, Distribution::SpecialWhole)
        );
        let parameters = (old.special_iterations, old.special_percent, old.special_share);
        assert_eq!(parameters, (12, 1, 75), "the same in all versions");
        let mixed = oltp("distribution = \"uniform\"\none_table = false\nprofile = \"sysbench-0.5\"");
        assert_eq!(
            (mixed.one_table, mixed.protocol, mixed.distribution),
            (false, Protocol::Text, Distribution::Uniform)
        );
        assert_eq!(oltp("profile = \"sysbench-1\""), oltp(""));
    }

    #[test]
    fn what_a_profile_stands_for_is_in_the_resolved_plan() {
        let old = plan(&text("profile = \"sysbench-0.5\""));
        let resolved = toml::to_string(&old).unwrap();
        assert!(resolved.contains("one_table = true"), "{resolved}");
        assert_eq!(plan(&resolved), old);
    }
}
