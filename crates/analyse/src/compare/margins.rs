//! Which margin a step has: the plan's general one, or that of the pattern that fits the step's
//! name best.

use std::collections::BTreeMap;

use dbdyno_record::Manifest;

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

/// Margin of a run's step, as a fraction. The step's own name goes before a pattern, and a pattern
/// with more letters before one with fewer.
pub fn margin_of(manifest: &Manifest, step: &str) -> f64 {
    Margins::planned(manifest).of(step)
}

/// Patterns of a run's margins that fit no step in its workloads. They are mistakes, because no one
/// writes a pattern that means nothing.
pub fn margins_without_step(manifest: &Manifest) -> Vec<String> {
    let fits_none = |pattern: &&String| {
        !manifest.workloads.iter().flat_map(|workload| &workload.steps).any(|step| fits(pattern, step))
    };
    manifest.plan.margins.keys().filter(fits_none).cloned().collect()
}

/// Whether `name` fits `pattern`, in which `*` stands for any number of letters, including none.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let (first, others) =
        pattern.split_once('*').map_or((pattern, None), |(first, rest)| (first, Some(rest)));
    let (Some(mut rest), Some(others)) = (name.strip_prefix(first), others) else {
        return pattern == name;
    };
    let mut parts: Vec<&str> = others.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    // Taking the leftmost place of each part leaves most for the others.
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
