//! `dbdyno plan`: what becomes of the variants' intents on their servers.

use dbdyno_analyse::numbered;
use dbdyno_plan::Plan;

use crate::configs::{self, Predicted, VariantConfig};
use crate::exit::{Ended, USAGE};

/// Each variant with intents, and what becomes of them in few words.
pub(crate) fn facts(plan: &Plan) -> Result<Vec<(String, String)>, Ended> {
    let mut facts = Vec::new();
    for (variant, config) in predicted(plan)? {
        match config {
            Predicted::UnknownServer(why) => facts.push((variant, format!("not rendered: {why}"))),
            Predicted::Config(VariantConfig { rendered, notes, .. }) => {
                let options = numbered(rendered.settings.len() + rendered.initdb.len(), "option");
                facts.push((variant, format!("{options} for {}", rendered.title)));
                facts.extend(notes.into_iter().map(|note| (String::new(), note)));
            }
        }
    }
    Ok(facts)
}

/// The option files themselves; empty for a plan without intents.
pub(crate) fn files(plan: &Plan) -> Result<String, Ended> {
    let file = |(variant, config): (String, Predicted)| match config {
        Predicted::UnknownServer(why) => format!("{variant}: not rendered: {why}\n"),
        Predicted::Config(VariantConfig { notes, text, .. }) => {
            let notes: String = notes.iter().map(|note| format!("# note: {note}\n")).collect();
            format!("\n## variant {variant}\n{notes}{text}")
        }
    };
    Ok(predicted(plan)?.into_iter().map(file).collect())
}

/// By name of variant.
fn predicted(plan: &Plan) -> Result<Vec<(String, Predicted)>, Ended> {
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for variant in &plan.variants {
        match configs::predicted(variant) {
            Ok(found) => all.extend(found.map(|config| (variant.name.clone(), config))),
            Err(error) => wrong.push(format!("variant {}: {error}", variant.name)),
        }
    }
    if wrong.is_empty() { Ok(all) } else { Err(Ended::new(USAGE, wrong.join("\n"))) }
}
