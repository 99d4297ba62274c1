//! Other spellings that are accepted: a command has `--json` or `--format`, and takes the other one
//! too.

use std::ffi::OsString;

/// Commands with `--format`.
const WITH_FORMATS: [&str; 3] = ["report", "compare", "history"];
/// Commands that print text or, with `--json`, JSON.
const WITH_JSON: [&str; 4] = ["plan", "list", "servers", "doctor"];

/// The words of the command line as the command spells them.
pub(crate) fn accepted(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = words.collect();
    let is_any = |names: &[&str]| {
        let mut plain = all.iter().skip(1).filter_map(|word| word.to_str());
        plain
            .find(|word| WITH_FORMATS.contains(word) || WITH_JSON.contains(word))
            .is_some_and(|word| names.contains(&word))
    };
    if is_any(&WITH_FORMATS) {
        for word in all.iter_mut().filter(|word| *word == "--json") {
            *word = "--format=json".into();
        }
    } else if is_any(&WITH_JSON) {
        if let Some(at) = all.windows(2).position(|pair| pair[0] == "--format" && pair[1] == "json") {
            all.splice(at..at + 2, [OsString::from("--json")]);
        }
        for word in all.iter_mut().filter(|word| *word == "--format=json") {
            *word = "--json".into();
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_takes_both_spellings() {
        for (given, spelt) in [
            ("report latest --json", "report latest --format=json"),
            ("--quiet compare a b --json", "--quiet compare a b --format=json"),
            ("plan x.toml --format json", "plan x.toml --json"),
            ("list runs --format=json", "list runs --json"),
            ("report latest --format md", "report latest --format md"),
            ("run --json", "run --json"),
        ] {
            let words = format!("dbdyno {given}");
            let words = accepted(words.split(' ').map(OsString::from));
            assert_eq!(words.join(" ".as_ref()).to_str(), Some(format!("dbdyno {spelt}").as_str()));
        }
    }
}
