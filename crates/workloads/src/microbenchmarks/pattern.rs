//! Chooses names by patterns such as `point-query*` and `!scan`.

/// Returns whether `name` fits `pattern`, in which `*` is any text and `?` one character.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    // This is the other word for the same test.
    let pattern = pattern.replace("non-index", "nonindex");
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // This remembers where the last star stood, and how much of the name it has taken so far.
    let (mut at, mut of, mut star) = (0, 0, None);
    while of < name.len() {
        if pattern.get(at) == Some(&'*') {
            star = Some((at, of));
            at += 1;
        } else if pattern.get(at).is_some_and(|&wanted| wanted == '?' || wanted == name[of]) {
            at += 1;
            of += 1;
        } else if let Some((starred, taken)) = star {
            star = Some((starred, taken + 1));
            at = starred + 1;
            of = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&rest| rest == '*')
}

/// Returns whether `patterns` choose one of these names. The last pattern that fits any of them
/// decides, and a pattern with `!` decides against it. Nothing is chosen at first, unless the first
/// pattern takes names away.
pub(crate) fn chosen(patterns: &[String], names: &[&str]) -> bool {
    let at_first = patterns.first().is_some_and(|pattern| pattern.starts_with('!'));
    patterns.iter().fold(at_first, |is_chosen, pattern| {
        let (adds, pattern) =
            pattern.strip_prefix('!').map_or((true, pattern.as_str()), |rest| (false, rest));
        if names.iter().any(|name| fits(pattern, name)) { adds } else { is_chosen }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_fit_what_they_should() {
        for (pattern, name, expected) in [
            ("scan", "scan", true),
            ("scan", "scan.warm", false),
            ("scan*", "scan.warm", true),
            ("*.pre*", "random-points.pre_range=10", true),
            ("*covered-?i", "points-notcovered-si", true),
            ("*covered-?i", "points-notcovered-pk", false),
            ("*a*b", "xxaxxaxb", true),
            ("*a*b", "xxaxxaxbx", false),
            ("", "scan", false),
            ("**", "", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn the_last_pattern_that_fits_decides() {
        let list = |patterns: &[&str]| patterns.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let points = list(&["point-query*", "scan", "!*.warm"]);
        assert!(chosen(&points, &["point-query.pre"]) && chosen(&points, &["scan"]));
        assert!(!chosen(&points, &["point-query.warm"]) && !chosen(&points, &["delete"]));
        let all_but = list(&["!scan*", "scan.warm"]);
        assert!(
            chosen(&all_but, &["delete"]) && chosen(&all_but, &["scan.warm"]) && !chosen(&all_but, &["scan"])
        );
        assert!(chosen(&list(&["update-inlist_range=100"]), &["update-inlist", "update-inlist_range=100"]));
    }
}
