//! Expands `[[setup]]`: a plan's workloads in several sizes, each under a name of its own.
//!
//! A set-up lays options over the plan's tables `[workload.NAME]`. The result is one workload per
//! set-up, which is named `WORKLOAD@SETUP` everywhere: in the plan as records keep it, in cells,
//! folders and findings.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// The separator between a workload's name and that of its set-up.
const AT: char = '@';

/// Splits `name` into the workload and, if it has one, the set-up.
pub fn name_parts(name: &str) -> (&str, Option<&str>) {
    name.split_once(AT).map_or((name, None), |(workload, setup)| (workload, Some(setup)))
}

/// Takes the plan's workload tables out of `root`. In a plan without set-ups they are returned
/// unchanged, otherwise once per set-up, in the order of set-ups.
pub(crate) fn take_workloads<'a>(root: &mut DeTable<'a>) -> Vec<(Spanned<String>, Spanned<DeValue<'a>>)> {
    let tables = take(root, "workload");
    let overlays = take_overlays(root);
    let named = |(name, table): (Spanned<_>, _)| {
        let span = name.span();
        let name: std::borrow::Cow<'a, str> = name.into_inner();
        (Spanned::new(span, name.into_owned()), table)
    };
    let mut all: Vec<_> = tables.into_iter().map(named).collect();
    if overlays.is_empty() {
        return all;
    }
    // A plan from a record has the tables of its set-ups already.
    let (mut done, plain): (Vec<_>, Vec<_>) =
        all.drain(..).partition(|(name, _)| name.get_ref().contains(AT));
    for (setup, tables) in overlays {
        let mut of_setup = plain.clone();
        for (name, table) in tables.into_iter().map(named) {
            match of_setup.iter_mut().find(|(other, _)| other.get_ref() == name.get_ref()) {
                Some((_, below)) => lay_over(below, table),
                None => of_setup.push((name, table)),
            }
        }
        let at_setup = |(name, table): (Spanned<String>, _)| {
            (Spanned::new(name.span(), format!("{}{AT}{setup}", name.get_ref())), table)
        };
        done.extend(of_setup.into_iter().map(at_setup));
    }
    done
}

/// Returns the name and tables of each set-up. The set-up stays in the plan, without its tables.
fn take_overlays<'a>(root: &mut DeTable<'a>) -> Vec<(String, DeTable<'a>)> {
    let Some(DeValue::Array(setups)) = root.get_mut("setup").map(Spanned::get_mut) else { return Vec::new() };
    let mut all = Vec::new();
    for setup in setups.iter_mut() {
        let DeValue::Table(setup) = setup.get_mut() else { continue };
        let Some(name) = text(setup, "name").map(str::to_owned) else { continue };
        all.push((name, take(setup, "workload")));
    }
    all
}

/// Takes the tables at `key`. The key stays, with an empty table.
fn take<'a>(table: &mut DeTable<'a>, key: &str) -> DeTable<'a> {
    match table.get_mut(key).map(Spanned::get_mut) {
        Some(DeValue::Table(tables)) => std::mem::take(tables),
        _ => DeTable::new(),
    }
}

/// Lays tables over each other key by key. Any other value replaces the one below it.
pub(crate) fn lay_over<'a>(below: &mut Spanned<DeValue<'a>>, above: Spanned<DeValue<'a>>) {
    let span = above.span();
    match (below.get_mut(), above.into_inner()) {
        (DeValue::Table(below), DeValue::Table(above)) => {
            above.into_iter().for_each(|(key, value)| lay_key(below, key, value));
        }
        (_, above) => *below = Spanned::new(span, above),
    }
}

/// Lays one key over a table, as [`lay_over`] does.
pub(crate) fn lay_key<'a>(below: &mut DeTable<'a>, key: Spanned<DeString<'a>>, value: Spanned<DeValue<'a>>) {
    match below.get_mut(&**key.get_ref()) {
        Some(below) => lay_over(below, value),
        None => {
            below.insert(key, value);
        }
    }
}

pub(crate) fn text<'t>(table: &'t DeTable<'_>, key: &str) -> Option<&'t str> {
    table.get(key)?.get_ref().as_str()
}

#[cfg(test)]
mod tests {
    use crate::fake::{parse, parse_with};

    const PLAN: &str = "name = \"p\"\n[[variant]]\nname = \"a\"\nserver = \"null\"\n[workload.fake]\nrows = 10\n\
                        deep = { one = 1, two = 2 }\n[[setup]]\nname = \"small\"\n[[setup]]\nname = \"big\"\n\
                        workload.fake = { rows = 99, deep = { two = 3 } }\n";

    #[test]
    fn each_set_up_lays_its_options_over_the_plans() {
        let plan = parse(PLAN, "p.toml").unwrap_or_else(|error| panic!("{error}"));
        let all = plan.workload.iter().map(|(name, options)| {
            format!("{name} {}", serde_json::to_string(&options.values()).expect("plain data"))
        });
        insta::assert_snapshot!(all.collect::<Vec<_>>().join("\n"), @r#"
        fake@small {"rows":10,"deep":{"one":1,"two":2}}
        fake@big {"rows":99,"deep":{"one":1,"two":3}}
        "#);
        let cells = crate::cells(&plan).into_iter().map(|cell| format!("{} {}", cell.variant, cell.workload));
        let mut cells: Vec<String> = cells.collect();
        cells.sort();
        assert_eq!(cells, ["a fake@big", "a fake@small"]);
    }

    #[test]
    fn a_plan_with_set_ups_survives_being_written_down() {
        let plan = parse(PLAN, "p.toml").expect("a plan");
        let text = toml::to_string(&plan).expect("a text");
        assert_eq!(parse(&text, "own output").unwrap_or_else(|error| panic!("{error}\n{text}")), plan);
    }

    #[test]
    fn options_of_a_set_up_can_be_set_on_the_command_line() {
        let overrides = [("setup.big.workload.fake.rows".to_owned(), "7".to_owned())];
        let plan = parse_with(PLAN, "p.toml", &overrides).expect("a plan");
        assert_eq!(
            plan.workload.get("fake@big").map(|options| options.values()["rows"].clone()),
            Some(7.into())
        );
    }

    #[test]
    fn mistakes_in_set_ups_are_shown_where_they_were_made() {
        let error = |from: &str, to: &str| {
            parse(&PLAN.replace(from, to), "p.toml").expect_err("a mistake").to_string()
        };
        insta::assert_snapshot!(error("rows = 99", "rows = 0"), @"p.toml:12:26: rows must be 1 or more");
        insta::assert_snapshot!(error("rows = 10", "rows = 0"), @"p.toml:6:8: rows must be 1 or more");
        insta::assert_snapshot!(error("rows = 99", "lines = 1"), @"p.toml:12:19: unknown key `lines`; known keys here: rows, deep");
        insta::assert_snapshot!(error("\"big\"\n", "\"small\"\n"), @"p.toml:11:8: two set-ups are named `small`: give each its own name");
        insta::assert_snapshot!(error("\"big\"\n", "\"a/b\"\n"), @"p.toml:11:8: the set-up's name `a/b` does not fit: use 1 to 64 letters, digits, `-`, `_` and `.`, not beginning with `.` or `-`");
        let list = error(
            "workload.fake = { rows = 99, deep = { two = 3 } }",
            "workload = [{ fake = { rows = 99 } }]",
        );
        assert!(list.contains("table"), "{list}");
        insta::assert_snapshot!(error("workload.fake = {", "workload.fak = {"), @"p.toml:12:10: unknown key `fak` (did you mean `fake`?)");
    }
}
