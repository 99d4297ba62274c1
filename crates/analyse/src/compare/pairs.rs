//! Finds what a plan asks to compare: which variants with which, which comparisons are corrected
//! together as one family, and with which margin. A step's margin is the plan's general one, or
//! that of the pattern that fits the step's name best.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_model::Section;
use dbdyno_record::{Manifest, workload_and_setup};

/// A set of comparisons over which false discovery is corrected once. It depends on the plan alone,
/// so a comparison has the same result for any base, section or format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// The pairs that the plan compares: each variant with its base, and the pairs in its sections
    /// and its published figures.
    Planned,
    /// The base with the control, which is the base again under a second name. A difference between
    /// them is a false one, so it shows how far the other comparisons can be trusted.
    Control,
    /// All other pairs of variants. They are compared when a reader asks for another base.
    Others,
}

impl Family {
    pub(crate) const ALL: [Self; 3] = [Self::Planned, Self::Control, Self::Others];
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair<'a> {
    pub(crate) base: &'a str,
    pub(crate) variant: &'a str,
    pub(crate) family: Family,
}

/// The base and the variants of a section of the report; `None` where its base is not a variant of
/// the run.
pub(crate) fn variants_of<'a>(
    section: &'a Section,
    manifest: &'a Manifest,
    run_base: &'a str,
) -> Option<(&'a str, Vec<&'a str>)> {
    let wanted = |name: &&str| section.variants.is_empty() || section.variants.iter().any(|one| one == name);
    let variants: Vec<&str> = names(manifest).filter(wanted).collect();
    let base = section.base.as_deref().or_else(|| section.variants.first().map(String::as_str));
    let base = base.unwrap_or(run_base);
    variants.contains(&base).then_some((base, variants))
}

/// Whether a section is about a workload. A section selects workloads by set-up, which is the part
/// of the workload's name after `@`.
pub(crate) fn has_workload(section: &Section, workload: &str) -> bool {
    let setup = workload_and_setup(workload).1.unwrap_or_default();
    section.setups.is_empty() || section.setups.iter().any(|name| name == setup)
}

/// Whether a section is about a step.
pub(crate) fn has_step(section: &Section, step: &str) -> bool {
    section.steps.is_empty() || section.steps.iter().any(|pattern| fits(pattern, step))
}

/// A pair of variants that the plan's published report has figures for, in one set-up or in all.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PublishedPair {
    pub(crate) setup: Option<String>,
    pub(crate) base: String,
    pub(crate) variant: String,
}

/// The sources of the pairs to compare.
#[derive(Clone, Copy)]
pub(crate) struct RequestedPairs<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) sections: &'a [Section],
    pub(crate) published: &'a [PublishedPair],
    /// The base that the reader asks for, or the plan's base.
    pub(crate) base: &'a str,
}

fn names(manifest: &Manifest) -> impl Iterator<Item = &str> {
    manifest.variants.iter().map(|variant| variant.name.as_str())
}

impl<'a> RequestedPairs<'a> {
    /// The pairs to compare in a step, the plan's first.
    pub(crate) fn pairs(self, workload: &str, step: &str) -> Vec<Pair<'a>> {
        let planned = self.planned(workload, step);
        let asked = names(self.manifest).map(|name| (self.base, name));
        let mut all: Vec<(&str, &str)> = planned.clone();
        all.extend(asked.filter(|pair| pair.0 != pair.1 && !planned.contains(pair)));
        let family = |(base, variant): (&str, &str)| {
            let is_pair_of =
                |one: &str, other: &str| [(base, variant), (variant, base)].contains(&(one, other));
            let control = self.manifest.plan.control();
            if control.is_some_and(|control| is_pair_of(self.manifest.base(), control)) {
                return Family::Control;
            }
            let is_planned = planned.iter().any(|(one, other)| is_pair_of(one, other));
            if is_planned { Family::Planned } else { Family::Others }
        };
        // All other pairs are one family. A reader asks for some of them only, but all are tested,
        // so that a result does not depend on the reader's choice.
        if all.iter().any(|pair| family(*pair) == Family::Others) {
            let known: BTreeSet<(&str, &str)> = all.iter().copied().collect();
            for (at, base) in names(self.manifest).enumerate() {
                let others = names(self.manifest).skip(at + 1).map(|variant| (base, variant));
                let is_new = |(base, variant): &(&'a str, &'a str)| {
                    !known.contains(&(*base, *variant)) && !known.contains(&(*variant, *base))
                };
                all.extend(others.filter(is_new));
            }
        }
        let pair = |(base, variant)| Pair { base, variant, family: family((base, variant)) };
        all.into_iter().map(pair).collect()
    }

    /// The pairs as (base, variant), each once.
    fn planned(self, workload: &str, step: &str) -> Vec<(&'a str, &'a str)> {
        let base = self.manifest.base();
        let mut all: Vec<(&str, &str)> = names(self.manifest).map(|name| (base, name)).collect();
        let of_step = |section: &&Section| has_workload(section, workload) && has_step(section, step);
        for section in self.sections.iter().filter(of_step) {
            let (base, variants) = variants_of(section, self.manifest, base).unwrap_or_default();
            all.extend(variants.into_iter().map(|name| (base, name)));
        }
        let setup = workload_and_setup(workload).1;
        let of_setup = |pair: &&PublishedPair| pair.setup.is_none() || pair.setup.as_deref() == setup;
        let is_here = |name: &str| names(self.manifest).any(|own| own == name);
        let published = self.published.iter().filter(of_setup);
        let published = published.filter(|pair| is_here(&pair.base) && is_here(&pair.variant));
        all.extend(published.map(|pair| (pair.base.as_str(), pair.variant.as_str())));
        let mut seen = BTreeSet::new();
        all.retain(|pair| pair.0 != pair.1 && seen.insert(*pair));
        all
    }
}

static NO_PATTERNS: BTreeMap<String, f64> = BTreeMap::new();

/// The margins of all steps, as fractions (0.02 = 2 %).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Margins<'a> {
    /// Margin of the steps that no pattern fits.
    pub(crate) general: f64,
    patterns: &'a BTreeMap<String, f64>,
}

impl<'a> Margins<'a> {
    /// The margins in a run's plan.
    pub(crate) fn planned(manifest: &'a Manifest) -> Self {
        Self { general: manifest.plan.margin, patterns: &manifest.plan.margins }
    }

    /// One margin for every step.
    pub(crate) fn all(margin: f64) -> Self {
        Self { general: margin, patterns: &NO_PATTERNS }
    }

    pub(crate) fn of(self, step: &str) -> f64 {
        let fitting = self.patterns.iter().filter(|(pattern, _)| fits(pattern, step));
        let best = fitting.max_by_key(|(pattern, _)| {
            (pattern.as_str() == step, pattern.chars().filter(|letter| *letter != '*').count())
        });
        best.map_or(self.general, |(_, margin)| *margin)
    }
}

/// Margin of a run's step, as a fraction. The step's own name has precedence over a pattern, and a
/// pattern with more letters over one with fewer.
pub fn margin_of(manifest: &Manifest, step: &str) -> f64 {
    Margins::planned(manifest).of(step)
}

/// Patterns of a run's margins that fit no step in its workloads. Such a pattern is a mistake,
/// because it has no effect.
pub fn margins_without_step(manifest: &Manifest) -> Vec<String> {
    let fits_none = |pattern: &&String| {
        !manifest.workloads.iter().flat_map(|workload| &workload.steps).any(|step| fits(pattern, step))
    };
    manifest.plan.margins.keys().filter(fits_none).cloned().collect()
}

/// Whether `name` fits `pattern`, in which `*` stands for any number of letters, including none.
pub fn fits(pattern: &str, name: &str) -> bool {
    let (first, others) =
        pattern.split_once('*').map_or((pattern, None), |(first, rest)| (first, Some(rest)));
    let (Some(mut rest), Some(others)) = (name.strip_prefix(first), others) else {
        return pattern == name;
    };
    let mut parts: Vec<&str> = others.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    // Matching each part as far left as possible leaves the most text for the parts after it.
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::run;

    #[test]
    fn a_star_stands_for_any_letters() {
        for (pattern, name) in [
            ("scan", "scan"),
            ("scan*", "scan"),
            ("scan*", "scan.post"),
            ("*.pre", "point-query.pre"),
            ("*", ""),
            ("q*0*", "qr1000"),
            ("*a*a", "aba"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("scan", "scan.post"), ("scan*", "a scan"), ("a*a", "a"), ("*x*", "abc"), ("", "a")]
        {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn the_closest_pattern_gives_the_margin_and_without_one_it_is_the_general_one() {
        let mut manifest = run(&["a"], 1, Vec::new()).manifest;
        for (pattern, margin) in [("*", 0.03), ("l.*", 0.05), ("l.i0", 0.01), ("l.i*", 0.06)] {
            manifest.plan.margins.insert(pattern.to_owned(), margin);
        }
        let of = |step: &str| margin_of(&manifest, step);
        assert_eq!((of("l.i0"), of("l.i1"), of("l.x"), of("qr100")), (0.01, 0.06, 0.05, 0.03));
        assert_eq!(margins_without_step(&manifest), Vec::<String>::new());
        manifest.plan.margins = BTreeMap::from([("scan*".to_owned(), 0.05)]);
        assert_eq!(margin_of(&manifest, "l.i0"), 0.02);
        assert_eq!(margins_without_step(&manifest), ["scan*"]);
    }
}
