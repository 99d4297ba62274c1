//! Checks what depends on the product of a variant's server: the table `options`. It also writes
//! product names in sentences, and lists the files that variants name.

use std::path::PathBuf;

use dbdyno_model::Variant;
use dbdyno_products::{ALL, FamilyFacts, OptionProblem, VariantKind};
use serde_json::Value;

use crate::Plan;
use crate::explain::{explain, hint};

/// Returns what is wrong with `options` of a variant whose server is of `family`: the option, and
/// the rest of a sentence that begins with the variant's name.
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
