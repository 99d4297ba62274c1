//! Checks the options of variants that depend on the product, and the keys that add to the
//! experiment: the control, margins of single steps, and a time budget. It also writes product
//! names in sentences, and lists the files that variants name.

use std::path::PathBuf;
use std::time::Duration;

use dbdyno_model::{DataMode, Design, PlanDuration, Variant};
use dbdyno_products::{ALL, FamilyFacts, OptionProblem, VariantKind};
use serde_json::Value;

use crate::Plan;
use crate::explain::{explain, hint};

/// Returns the first mistake in the `options` of a variant whose server is of `family`: the option,
/// and the rest of a sentence that begins with the variant's name.
pub fn options_problem<'v>(variant: &'v Variant, family: &FamilyFacts) -> Option<(&'v str, String)> {
    let (key, problem) = family.options.problem(&variant.options, VariantKind::of(variant).is_address())?;
    let message = match problem {
        OptionProblem::Unknown { known } if known.is_empty() => {
            format!("has options.{key}, and {} has no options", who(family))
        }
        OptionProblem::Unknown { known } => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            format!(
                "has options.{key}, which {} does not have{}; its options: {}",
                who(family),
                hint(key, &known),
                known.join(", ")
            )
        }
        OptionProblem::OfAddresses => {
            format!("has options.{key}, which is only for the address of {}", who(family))
        }
        OptionProblem::Type(message) => {
            format!("has an options.{key} that does not fit: {}", explain(&message, &[]))
        }
        OptionProblem::Value(message) => message,
    };
    Some((key, message))
}

/// Names the family's servers, as `a MariaDB or MySQL server` or `SQLite`.
fn who(family: &FamilyFacts) -> String {
    let names = either(&family.product_names());
    if family.is_embedded() { names } else { format!("a {names} server") }
}

/// Writes `a MariaDB, MySQL or PostgreSQL server`: all products except embedded databases.
pub(crate) fn any_server() -> String {
    let names: Vec<&str> = FamilyFacts::of_servers().flat_map(FamilyFacts::product_names).collect();
    format!("a {} server", either(&names))
}

/// Writes words as `a, b or c`.
pub(crate) fn either(words: &[&str]) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => words.concat(),
    }
}

fn each_file_of(variant: &mut Variant, change: &mut dyn FnMut(&mut PathBuf)) {
    variant.config.iter_mut().flat_map(|config| config.files_mut()).for_each(&mut *change);
    let named = [&mut variant.basedir, &mut variant.own_config, &mut variant.option_file];
    let tls = variant.tls.iter_mut().flat_map(|tls| [&mut tls.ca, &mut tls.cert, &mut tls.key]);
    named.into_iter().chain(tls).flatten().for_each(&mut *change);
    for key in ALL.iter().flat_map(|family| family.options.files) {
        if let Some(Value::String(text)) = variant.options.get_mut(*key) {
            let mut path = PathBuf::from(&*text);
            change(&mut path);
            *text = path.display().to_string();
        }
    }
}

/// Calls `change` with the path of each file that the variants need: option files, files of
/// intents, base directories, keys and certificates.
pub fn each_file(plan: &mut Plan, mut change: impl FnMut(&mut PathBuf)) {
    plan.variants.iter_mut().for_each(|variant| each_file_of(variant, &mut change));
}

/// Fewest blocks before the first interim analysis. With fewer, an analysis would spend part of the
/// permitted error rate and could hardly find anything.
const MIN_BLOCKS_OF_BUDGET: u32 = 3;

/// Adds the control (A/A) after the base. A plan that already has the control stays as it is, so
/// that a resolved plan can be read again.
pub(crate) fn add_control(plan: &mut Plan) {
    let Some(name) = plan.control_name() else { return };
    if plan.variants.iter().any(|variant| variant.name == name) {
        return;
    }
    let base = plan.variants.iter().position(|variant| variant.name == plan.base_name());
    if let Some(place) = base {
        let mut control = plan.variants[place].clone();
        control.name = name;
        plan.variants.insert(place + 1, control);
    }
}

/// Returns the first mistake: its key and a sentence.
pub(crate) fn experiment_problem(plan: &Plan) -> Option<(&'static str, String)> {
    let is_margin = |margin: f64| margin > 0.0 && margin < 1.0;
    if !is_margin(plan.margin) {
        return Some(("margin", "margin must be a fraction between 0 and 1, e.g. 0.02 for 2 %".to_owned()));
    }
    if let Some((pattern, _)) = plan.margins.iter().find(|(_, margin)| !is_margin(**margin)) {
        let message =
            format!("the margin of `{pattern}` must be a fraction between 0 and 1, e.g. 0.05 for 5 %");
        return Some(("margins", message));
    }
    let budget = plan.budget.and_then(|budget| budget_problem(budget, plan.blocks));
    budget.map(|message| ("budget", message)).or_else(|| Some(("design", design_problem(plan)?)))
}

/// Refuses a plan that cannot have `design = "alternate"`. Servers that stay up can serve only one
/// workload, and its steps must leave the data as they are.
fn design_problem(plan: &Plan) -> Option<String> {
    if plan.design == Design::Blocks {
        return None;
    }
    let refused = |why: String| Some(format!("design = \"alternate\" does not fit: {why}; leave it out"));
    if let Some(outside) = plan.variants.iter().find(|variant| VariantKind::of(variant).is_address()) {
        return refused(format!("variant {} is an external server, and dbdyno must start all", outside.name));
    }
    let mut workloads = plan.workload.iter();
    let (name, options) = workloads.next()?;
    if workloads.next().is_some() {
        return refused("the plan has several workloads, and each server serves one".to_owned());
    }
    let needs = options.needs();
    if needs.data != DataMode::Preserve || needs.cold.is_any() {
        return refused(format!("`data` and `cold` of {name} stop servers between steps"));
    }
    let steps = options.steps();
    let writes = steps.iter().find(|step| !step.loads && step.changes_data)?;
    refused(format!("step {} of {name} changes the data that all later blocks read", writes.name))
}

fn budget_problem(budget: PlanDuration, blocks: u32) -> Option<String> {
    if budget.0 < Duration::from_secs(1) {
        return Some("budget must be at least 1s".to_owned());
    }
    (blocks < MIN_BLOCKS_OF_BUDGET).then(|| {
        format!(
            "a budget needs blocks = {MIN_BLOCKS_OF_BUDGET} or more, not {blocks}: its first look is after the plan's \
             blocks, and with fewer it would find nothing"
        )
    })
}

#[cfg(test)]
mod tests {
    use dbdyno_products::VariantKind;

    use crate::fake::{parse, parse_with};

    const PLAN: &str = "name = \"p\"\nbase = \"b\"\n[[variant]]\nname = \"a\"\nserver = \"null\"\n[[variant]]\nname = \"b\"\n\
                        server = \"sqlite\"\n[workload.fake]\n";

    fn names(top: &str) -> String {
        let plan = parse(&format!("{top}\n{PLAN}"), "p.toml").unwrap_or_else(|error| panic!("{error}"));
        plan.variants.iter().map(|variant| variant.name.clone()).collect::<Vec<_>>().join(" ")
    }

    fn error(top: &str) -> String {
        parse(&format!("{top}\n{PLAN}"), "p.toml").expect_err("a mistake").to_string()
    }

    #[test]
    fn the_control_is_added_on_request_and_only_once() {
        assert_eq!((names(""), names("aa = true")), ("a b".to_owned(), "a b b~control".to_owned()));
        let overrides = [("aa".to_owned(), "true".to_owned())];
        let plan = parse_with(PLAN, "p.toml", &overrides).expect("a plan");
        assert_eq!((plan.base_name(), VariantKind::of(&plan.variants[2])), ("b", VariantKind::Embedded));
        let reread = parse(&toml::to_string(&plan).expect("a text"), "resolved").expect("a plan");
        assert_eq!(reread, plan);
    }

    #[test]
    fn no_other_variant_can_have_the_name_of_the_control() {
        let text = PLAN.replace("name = \"a\"", "name = \"b~control\"");
        let error = parse(&text, "p.toml").expect_err("a mistake").to_string();
        assert!(error.contains("the variant name `b~control` does not fit"), "{error}");
    }

    #[test]
    fn impossible_margins_and_budgets_are_refused() {
        insta::assert_snapshot!(error("margins = { \"qr*\" = 5 }"), @"p.toml:1:11: the margin of `qr*` must be a fraction between 0 and 1, e.g. 0.05 for 5 %");
        insta::assert_snapshot!(error("budget = \"2h\""), @"p.toml:1:10: a budget needs blocks = 3 or more, not 1: its first look is after the plan's blocks, and with fewer it would find nothing");
        insta::assert_snapshot!(error("budget = \"1ms\"\nblocks = 3"), @"p.toml:1:10: budget must be at least 1s");
        assert_eq!(names("budget = \"90m\"\nblocks = 3\nmargins = { \"l.i*\" = 0.05 }"), "a b");
    }
}
