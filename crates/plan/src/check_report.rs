//! Checks what a plan says of its report: sections and published figures.

use dbdyno_model::Published;
use dbdyno_model::PublishedFigures;

use crate::document::{Problem, Segment};
use crate::{Mistake, Plan};

/// Returns the first mistake in a section.
pub(crate) fn section_problem(plan: &Plan) -> Option<Problem<'_>> {
    let variants: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
    let setups: Vec<&str> = plan.setups.iter().map(|setup| setup.name.as_str()).collect();
    let steps: Vec<String> =
        plan.workload.iter().flat_map(|(_, options)| options.steps()).map(|step| step.name).collect();
    let unknown = |name: &String, known: &[&str]| !known.contains(&name.as_str());
    for (index, section) in plan.sections.iter().enumerate() {
        let at = |key, message: String| {
            let path = vec![Segment::Key("section"), Segment::Index(index), Segment::Key(key)];
            Some(Problem { path, message })
        };
        let title = &section.title;
        if title.is_empty() {
            return at("title", "a section needs a title".to_owned());
        }
        if let Some(name) = section.variants.iter().chain(&section.base).find(|name| unknown(name, &variants))
        {
            let key = if section.variants.contains(name) { "variants" } else { "base" };
            let known = variants.join(", ");
            return at(key, format!("section `{title}` names the variant `{name}`; variants: {known}"));
        }
        let is_outside = |base: &&String| !section.variants.is_empty() && !section.variants.contains(base);
        if let Some(base) = section.base.as_ref().filter(is_outside) {
            return at("base", format!("the base `{base}` of section `{title}` is none of its variants"));
        }
        if let Some(name) = section.setups.iter().find(|name| unknown(name, &setups)) {
            let known = if setups.is_empty() { "the plan has none".to_owned() } else { setups.join(", ") };
            return at("setups", format!("section `{title}` names the set-up `{name}`; set-ups: {known}"));
        }
        let fits = |pattern: &str| steps.iter().any(|step| pattern_fits(pattern, step));
        if let Some(pattern) = section.steps.iter().find(|pattern| !steps.is_empty() && !fits(pattern)) {
            return at("steps", format!("`{pattern}` of section `{title}` is no step of this plan"));
        }
    }
    None
}

/// Whether a pattern matches a name. `*` stands for any letters, or for none.
fn pattern_fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len()).filter(|at| name.is_char_boundary(*at)).any(|at| pattern_fits(rest, &name[at..]))
        }),
    }
}

/// Returns the first mistake in published figures: the key inside `[report]`, and what to write.
pub(crate) fn published_problem(plan: &Plan) -> Option<Mistake> {
    match &plan.report.published {
        Some(Published::Figures(published)) => Some(("published", figure_problem(published)?)),
        _ => None,
    }
}

/// Returns a message on the first published figure or finding that cannot be used.
pub(crate) fn figure_problem(published: &PublishedFigures) -> Option<String> {
    let of_steps = published.figures.iter().map(|one| (&one.variant, vec![&one.values]));
    let of_groups = published
        .groups
        .iter()
        .map(|one| (&one.variant, vec![&one.average, &one.median, &one.min, &one.max]));
    let bad = of_steps.chain(of_groups).find_map(|(variant, values)| {
        let bad = |value: &f64| !(value.is_finite() && *value > 0.0);
        let (name, value) = values.into_iter().flatten().find(|(_, value)| bad(value))?;
        Some(format!("the figure {value} of {variant} in {name} is no ratio: write a number above 0"))
    });
    bad.or_else(|| {
        published.findings.iter().find_map(|finding| match finding.than {
            _ if finding.steps.is_empty() => Some(format!("the finding {:?} names no steps", finding.says)),
            Some(than) if !(than.is_finite() && than > 0.0) => Some(format!(
                "the finding {:?} is compared with {than}: write a number above 0",
                finding.says
            )),
            _ => None,
        })
    })
}

/// Names the variants that published figures speak of and that the plan has no variant for. Each
/// name comes once.
pub fn variants_without_figures(plan: &Plan) -> Vec<String> {
    let Some(Published::Figures(published)) = &plan.report.published else { return Vec::new() };
    let of_plan = |name: &str| {
        plan.variants.iter().any(|variant| variant.published.as_deref().unwrap_or(&variant.name) == name)
    };
    let mut names: Vec<String> = Vec::new();
    let pairs = published.figures.iter().flat_map(|one| [&one.base, &one.variant]);
    for name in pairs.chain(published.groups.iter().flat_map(|one| [&one.base, &one.variant])) {
        if !of_plan(name) && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}
