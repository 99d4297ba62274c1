//! `dbdyno plan`: what becomes of the variants' intents on their servers.

use dbdyno_analyse::numbered;
use dbdyno_plan::{Plan, Variant};

use crate::configs::{self, VariantConfig};
use crate::exit::{Ended, USAGE};

/// A section on configs; empty for a plan without intents. With `whole`, the option files themselves.
///
/// # Errors
/// All variants whose server cannot do what is asked for, or whose config cannot be read.
pub(crate) fn section(plan: &Plan, whole: bool) -> Result<String, Ended> {
    let (mut text, mut wrong) = (String::new(), Vec::new());
    for variant in &plan.variants {
        match configs::foreseen(variant) {
            Ok(None) => {}
            Ok(Some(Ok(config))) if whole => text.push_str(&file(variant, &config)),
            Ok(Some(Ok(config))) => text.push_str(&summary(variant, &config)),
            Ok(Some(Err(error))) => text.push_str(&format!("{}: not rendered: {error}\n", variant.name)),
            Err(error) => wrong.push(format!("variant {}: {error}", variant.name)),
        }
    }
    if !wrong.is_empty() {
        return Err(Ended::new(USAGE, wrong.join("\n")));
    }
    Ok(text)
}

fn summary(variant: &Variant, config: &VariantConfig) -> String {
    let options = config.rendered.settings.len() + config.rendered.initdb.len();
    let title = &config.rendered.title;
    let mut text = format!("{}: {} for {title}\n", variant.name, numbered(options, "option"));
    for note in &config.notes {
        text.push_str(&format!("  {note}\n"));
    }
    text
}

fn file(variant: &Variant, config: &VariantConfig) -> String {
    let notes: String = config.notes.iter().map(|note| format!("# note: {note}\n")).collect();
    format!("\n## variant {}\n{notes}{}", variant.name, config.text)
}
