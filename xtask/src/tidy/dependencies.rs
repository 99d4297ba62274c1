//! Dependencies: each has a reason, one place that names its version, and one version in the tree.

use super::{Repository, assert_none};

/// Each line of `[workspace.dependencies]` that is not ours ends in a comment.
fn without_reason(repository: &Repository) -> Vec<String> {
    let lines =
        repository.text("Cargo.toml").lines().skip_while(|line| *line != "[workspace.dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('[')).filter(|line| line.contains('='));
    let bare = lines.filter(|line| !line.contains("path = ") && !line.contains(" # "));
    bare.map(|line| format!("Cargo.toml: a dependency without a reason: {line}")).collect()
}

/// Crates take their dependencies from the workspace.
fn with_own_version(repository: &Repository) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in repository.texts("/Cargo.toml") {
        let manifest: toml::Table = text.parse().unwrap();
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let entries = manifest.get(section).and_then(toml::Value::as_table).into_iter().flatten();
            let own = entries.filter(|(_, value)| value.get("workspace").is_none());
            complaints.extend(own.map(|(name, _)| format!("{path}: {name} is not taken from the workspace")));
        }
    }
    complaints
}

/// What we name ourselves is in the tree once.
fn in_several_versions(repository: &Repository) -> Vec<String> {
    let workspace: toml::Table = repository.text("Cargo.toml").parse().unwrap();
    let lock: toml::Table = repository.text("Cargo.lock").parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    let versions =
        |name: &str| packages.iter().filter(|package| package["name"].as_str() == Some(name)).count();
    let direct = workspace["workspace"]["dependencies"].as_table().unwrap().keys();
    let wrong = direct.filter(|name| versions(name) != 1);
    wrong.map(|name| format!("Cargo.lock: {name} in {} versions", versions(name))).collect()
}

#[test]
fn every_dependency_has_a_reason_and_one_version() {
    let repository = Repository::load();
    assert_none(&without_reason(&repository));
    assert_none(&with_own_version(&repository));
    assert_none(&in_several_versions(&repository));
}

#[test]
fn a_bare_line_an_own_version_and_a_second_version_are_found() {
    let workspace =
        "[workspace.dependencies]\nours = { path = \"x\" }\na = \"1\" # why\nb = \"2\"\n\n[lints]\nc = 1\n";
    let package = |name: &str| format!("[[package]]\nname = \"{name}\"\n");
    let lock = [package("ours"), package("a"), package("a"), package("b")].concat();
    let repository = Repository::of(&[
        ("Cargo.toml", workspace),
        ("Cargo.lock", &lock),
        ("crates/x/Cargo.toml", "[dependencies]\na.workspace = true\n[dev-dependencies]\nb = \"2\"\n"),
    ]);
    assert_eq!(without_reason(&repository), ["Cargo.toml: a dependency without a reason: b = \"2\""]);
    assert_eq!(with_own_version(&repository), ["crates/x/Cargo.toml: b is not taken from the workspace"]);
    assert_eq!(in_several_versions(&repository), ["Cargo.lock: a in 2 versions"]);
}
