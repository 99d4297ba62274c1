//! The test programs of the workspace: built by cargo, distinguished by whether they may share the
//! machine.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::command::{cargo, output};

/// Runs the whole tool at its full rate.
const TRUTH: (&str, &str) = ("dbdyno", "truth");

/// Test programs that hold the tool to its clocks: package and target. Each has the machine for
/// itself.
const ALONE: &[(&str, &str)] = &[
    TRUTH,
    ("dbdyno-known-answer", "clients"),
    ("dbdyno-loadgen", "dbdyno_loadgen"),
    ("dbdyno-loadgen", "engine"),
    ("dbdyno-sample", "dbdyno_sample"),
    ("dbdyno-sample", "own_process"),
    ("dbdyno-sample", "sampling"),
];

/// Test programs with most work, longest first: what starts last is short, so that nothing is left
/// to wait for alone.
const LONGEST: &[(&str, &str)] = &[
    ("dbdyno", "servers"),
    ("dbdyno", "engines"),
    ("dbdyno-provision", "servers"),
    ("dbdyno", "browser"),
    ("dbdyno", "commands"),
    ("dbdyno-drivers", "settle_servers"),
    ("dbdyno-provision", "options"),
    ("dbdyno-provision", "life"),
    ("dbdyno-drivers", "postgres_upkeep_servers"),
];

/// One test program, built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    package: String,
    /// Name of the target: that of the library or command for unit tests.
    target: String,
    /// What cargo calls its kind: `test`, `lib`, `bin`.
    kind: String,
    pub(super) path: PathBuf,
    /// Folder of the package, in which its tests run.
    pub(super) folder: PathBuf,
}

impl Program {
    /// One of tests that have a file or folder of their own.
    #[cfg(test)]
    pub(super) fn new(package: &str, target: &str, path: PathBuf, folder: PathBuf) -> Self {
        Self { package: package.to_owned(), target: target.to_owned(), kind: "test".to_owned(), path, folder }
    }

    /// The command line that runs it again.
    pub(super) fn again(&self) -> String {
        let which = match self.kind.as_str() {
            "test" => format!("--test {}", self.target),
            "bin" => format!("--bin {}", self.target),
            _ => "--lib".to_owned(),
        };
        format!("cargo test -p {} {which}", self.package)
    }

    /// Whether its tests fill the CPUs: then no more of them run at once than there are.
    pub(super) fn is_busy(&self) -> bool {
        self.is(&TRUTH)
    }

    /// Whether others at the same time would falsify what it proves.
    pub(super) fn is_alone(&self) -> bool {
        ALONE.iter().any(|name| self.is(name))
    }

    fn is(&self, (package, target): &(&str, &str)) -> bool {
        self.package == *package && self.target == *target
    }
}

/// Builds all test programs of the workspace; those with most work come first.
pub(super) fn build() -> Result<Vec<Program>> {
    let messages = output(&mut cargo(&[
        "test",
        "--locked",
        "--workspace",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]))?;
    let mut programs = of_messages(&messages)?;
    programs.sort_by_key(|program| LONGEST.iter().position(|name| program.is(name)).unwrap_or(LONGEST.len()));
    Ok(programs)
}

/// The programs among cargo's messages, one JSON object a line.
fn of_messages(messages: &str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for line in messages.lines() {
        let message: Value =
            serde_json::from_str(line).with_context(|| format!("cargo printed no JSON: {line}"))?;
        // Other lines report libraries, build scripts and the commands that tests run.
        if message["profile"]["test"] == true && message["executable"].is_string() {
            programs.push(of_message(&message).with_context(|| format!("cargo printed too little: {line}"))?);
        }
    }
    Ok(programs)
}

fn of_message(message: &Value) -> Option<Program> {
    let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
    let target = &message["target"];
    Some(Program {
        // `path+file:///folder/xtask#0.1.0`, and `path+file:///folder/crates/cli#dbdyno@0.1.0`
        // where the names differ.
        package: match message["package_id"].as_str()?.rsplit_once('#')?.1.split_once('@') {
            Some((name, _)) => name.to_owned(),
            None => folder.file_name()?.to_str()?.to_owned(),
        },
        target: target["name"].as_str()?.to_owned(),
        kind: target["kind"][0].as_str()?.to_owned(),
        path: message["executable"].as_str()?.into(),
        folder,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places;

    #[test]
    fn test_programs_are_found_among_what_cargo_tells() {
        let message = |package: &str, kind: &str, target: &str, is_test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"path+file:///d/{package}","manifest_path":"/d/crates/x/Cargo.toml","target":{{"kind":["{kind}"],"name":"{target}"}},"profile":{{"test":{is_test}}},"executable":"/t/{target}"}}"#
            )
        };
        let messages = [
            message("crates/x#dbdyno-x@0.1.0", "test", "servers", true),
            message("crates/x#dbdyno-x@0.1.0", "bin", "dbdyno", false),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            message("crates/x#0.1.0", "lib", "dbdyno_x", true),
        ];
        let found = of_messages(&messages.join("\n")).unwrap();
        let again: Vec<String> = found.iter().map(Program::again).collect();
        assert_eq!(again, ["cargo test -p dbdyno-x --test servers", "cargo test -p x --lib"]);
        assert_eq!(found[0].folder, PathBuf::from("/d/crates/x"));
        assert!(of_messages("warning").is_err());
    }

    /// A program that is renamed must not silently lose the machine that it needs for itself.
    #[test]
    fn programs_that_are_named_here_exist() {
        for (package, target) in ALONE.iter().chain(LONGEST) {
            let folder = places::root().join("crates").join(match *package {
                "dbdyno" => "cli",
                library => library.trim_start_matches("dbdyno-"),
            });
            let is_library = target.replace('_', "-") == *package;
            let tests = [format!("tests/{target}.rs"), format!("tests/{target}/main.rs")];
            assert!(is_library || tests.iter().any(|test| folder.join(test).is_file()), "{package} {target}");
        }
    }
}
