//! `dbdyno init` writes a plan with comments, from flags or from a few questions.

use std::path::Path;
use std::time::Duration;

use dbdyno_model::PlanDuration;
use dbdyno_products::{EMBEDDED, FamilyFacts};
use dbdyno_workloads::ALL;
use dbdyno_workloads::plans::{ASKED, marked};
use toml::{Table, Value};

use crate::args::InitArgs;
use crate::exit::ExitError;
use crate::plan::forecast;
use crate::plan::plan_source::{self, options, resolved, save, table};
use crate::terminal;

/// A plan that takes longer than this gets a hint on how to shorten it.
const LONG: Duration = Duration::from_secs(1800);

pub(crate) fn init(args: &InitArgs) -> Result<(), ExitError> {
    if args.file.exists() {
        let message = format!("{} is there already; name another file", args.file.display());
        return Err(ExitError::usage(message));
    }
    let plan = match args.spelt.workload {
        Some(_) => {
            let mut plan = table(&args.spelt)?;
            plan.insert("blocks".to_owned(), i64::from(args.blocks).into());
            if let Some(time) = &args.spelt.time {
                plan_source::say_sizes(&forecast::fit_sizes(&mut plan, &[])?, time);
            }
            plan
        }
        None if terminal::can_ask() => asked(args.blocks)?,
        None => {
            let example = "dbdyno init --server A --server B --workload NAME";
            return Err(ExitError::usage(format!(
                "name what to compare, for instance: {example}; on a terminal it asks"
            )));
        }
    };
    save(&args.file, &text(&args.file, &plan)?)?;
    let estimate = forecast::whole_estimate(&plan)?;
    let file = args.file.display();
    terminal::note(&format!("it takes {}; to run it: dbdyno run {file}", forecast::in_all(&estimate)));
    if args.spelt.workload.is_some() && args.spelt.time.is_none() && estimate.duration > LONG {
        terminal::note("for less: --time, which is the length of a step, and fewer --blocks");
    }
    Ok(())
}

/// Asks the user. An empty answer takes the default.
fn asked(blocks: u32) -> Result<Table, ExitError> {
    let ask = |what: &str, default: &str| -> Result<String, ExitError> {
        let answer = terminal::ask(&format!("{what} [{default}]:"));
        let answer = answer.ok_or_else(|| ExitError::usage("there was no answer, so no plan was written"))?;
        Ok(if answer.is_empty() { default.to_owned() } else { answer })
    };
    let here = dbdyno_db::server::list(&dbdyno_db::server::servers_dir());
    let here = if here.is_empty() { "none".to_owned() } else { here.join(", ") };
    let embedded = EMBEDDED.name;
    let addresses: Vec<String> =
        FamilyFacts::of_servers().map(|family| format!("{}user@host/database", family.schemes[0])).collect();
    terminal::note(&format!(
        "Servers here: {here}. More: dbdyno servers list. Also `{embedded}`, and addresses: {}",
        addresses.join(", ")
    ));
    let variants = ask("What to compare, the base first", embedded)?;
    let (addresses, servers): (Vec<String>, Vec<String>) =
        words(&variants).into_iter().partition(|word| word.contains("://"));
    let variants = plan_source::variants(&servers, &[], &addresses);
    let names: Vec<&str> = ALL.iter().map(|kind| kind.name()).collect();
    let workload = ask(&format!("Workload: {}", names.join(", ")), names.first().unwrap_or(&""))?;
    let mut plan = plan_source::plan_of(variants, &workload, Table::new());
    let blocks = ask("Blocks; verdicts need three or more", &blocks.to_string())?;
    plan.insert("blocks".to_owned(), like(&Value::Integer(0), &blocks));
    let limit = ask("Time that all of it may take", "10m")?;
    let limit = PlanDuration::of_argument(&limit).map_err(ExitError::usage)?;
    forecast::fit_whole(&mut plan, limit.0)?;
    let defaults = options(&resolved(&plan)?, &workload);
    let mut chosen = options(&plan, &workload);
    for key in marked(&workload, ASKED) {
        let Some(default) = defaults.get(&key) else { continue };
        let shown = match default {
            Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
            other => plain(other),
        };
        let answer = ask(&key, &shown)?;
        chosen.insert(key, like(default, &answer));
    }
    plan.insert("workload".to_owned(), Table::from_iter([(workload, chosen.into())]).into());
    Ok(plan)
}

fn words(text: &str) -> Vec<String> {
    text.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Writes a value without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Turns an answer into a value of the default's kind. The plan's check refuses a value that does
/// not fit.
fn like(default: &Value, answer: &str) -> Value {
    let number = |word: &str| word.parse::<i64>().map_or_else(|_| word.into(), Value::Integer);
    match default {
        Value::Array(_) if answer.contains("..") => answer.into(),
        Value::Array(_) => words(answer).iter().map(|word| number(word)).collect::<Vec<_>>().into(),
        Value::Integer(_) => number(answer),
        _ => answer.into(),
    }
}

/// Writes the plan as TOML with explanatory comments.
fn text(file: &Path, plan: &Table) -> Result<String, ExitError> {
    let resolved = resolved(plan)?;
    let file = file.display();
    let line = |key: &str, value: &Value| format!("{key} = {value}\n");
    let mut text = format!(
        "# What it would run and how long that takes: dbdyno plan {file}\n\
         # Every key: docs/reference/plan-file.md, or dbdyno plan --schema\n"
    );
    text += &plan.get("name").map_or(String::new(), |name| line("name", name));
    text +=
        "\n# Each variant runs once in a block, in random order. Verdicts need three blocks, better five.\n";
    text += &plan.get("blocks").map_or(String::new(), |blocks| line("blocks", blocks));
    text += "\n# The first variant is the base of all ratios. `config = \"FILE\"` sets servers of all products alike.\n";
    for variant in plan.get("variant").and_then(Value::as_array).into_iter().flatten() {
        text += "[[variant]]\n";
        let keys = variant.as_table().into_iter().flatten();
        text += &keys.map(|(key, value)| line(key, value)).collect::<String>();
        text += "\n";
    }
    for (workload, chosen) in plan.get("workload").and_then(Value::as_table).into_iter().flatten() {
        text += &format!("# Each step of it: dbdyno list workloads {workload}\n[workload.{workload}]\n");
        let chosen = chosen.as_table().cloned().unwrap_or_default();
        text += &chosen.iter().map(|(key, value)| line(key, value)).collect::<String>();
        text += "\n# The other options, with their defaults:\n";
        let others = options(&resolved, workload);
        let others = others.iter().filter(|(key, _)| !chosen.contains_key(*key));
        text += &others.map(|(key, value)| format!("# {}", line(key, value))).collect::<String>();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_plan_and_its_comments_are_the_defaults() {
        let name = ALL[0].name();
        let variants = plan_source::variants(&["sqlite".to_owned()], &[], &["mysql://u@h/d".to_owned()]);
        let mut plan = plan_source::plan_of(variants, name, Table::new());
        plan.insert("blocks".to_owned(), 5.into());
        let text = text(Path::new("p.toml"), &plan).unwrap();
        assert_eq!(text.parse::<Table>().unwrap(), plan, "{text}");
        let whole: String = text
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.contains(" = ") && !rest.contains('`') => format!("{rest}\n"),
                _ => format!("{line}\n"),
            })
            .collect();
        let uncommented = resolved(&whole.parse().unwrap()).unwrap();
        assert_eq!(uncommented, resolved(&plan).unwrap(), "{whole}");
    }

    #[test]
    fn answers_become_values_of_the_defaults_kind() {
        let numbers = Value::Array(vec![1.into()]);
        assert_eq!(like(&numbers, "1, 16"), Value::Array(vec![1.into(), 16.into()]));
        assert_eq!(like(&numbers, "1..64"), Value::from("1..64"));
        assert_eq!(like(&Value::from("30s"), "10s"), Value::from("10s"));
        assert_eq!((like(&1.into(), "5"), like(&1.into(), "five")), (5.into(), Value::from("five")));
    }
}
