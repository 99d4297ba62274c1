//! Profiles of the classic OLTP workload: the defaults of another version of the original, laid under what a plan says.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Name of the profile in plans, its keys, and their values.
const SYSBENCH_0_5: (&str, [(&str, &str); 2], &str) =
    ("sysbench-0.5", [("protocol", "text"), ("distribution", "special-whole")], "one_table");

/// Adds the defaults of the profile that `[workload.oltp]` names, where the plan says nothing else.
pub(crate) fn lay_under(root: &mut DeTable<'_>) {
    let workload = root.get_mut("workload").map(Spanned::get_mut);
    let Some(DeValue::Table(workload)) = workload else { return };
    let Some(DeValue::Table(oltp)) = workload.get_mut("oltp").map(Spanned::get_mut) else { return };
    let Some(profile) = oltp.get("profile") else { return };
    let (name, texts, flag) = SYSBENCH_0_5;
    if profile.get_ref().as_str() != Some(name) {
        return;
    }
    // A mistake in them would be shown where the profile is named.
    let span = profile.span();
    for (key, value) in texts {
        set(oltp, key, &span, DeValue::String(value.into()));
    }
    set(oltp, flag, &span, DeValue::Boolean(true));
}

fn set<'a>(table: &mut DeTable<'a>, key: &'static str, span: &Range<usize>, value: DeValue<'a>) {
    if !table.contains_key(key) {
        table.insert(Spanned::new(span.clone(), key.into()), Spanned::new(span.clone(), value));
    }
}

#[cfg(test)]
mod tests {
    use crate::{Distribution, Oltp, OltpProfile, Plan, Protocol, parse};

    fn plan(text: &str) -> Plan {
        parse(text, "p.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    fn text(options: &str) -> String {
        format!("name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\n[workload.oltp]\n{options}\n")
    }

    fn oltp(options: &str) -> Oltp {
        plan(&text(options)).workload.oltp.unwrap()
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
