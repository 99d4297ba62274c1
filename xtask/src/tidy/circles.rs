//! Modules do not import each other in a circle: what is below can be read without what is above.
//!
//! Of two modules next to each other in a folder, one may use the other or the other the one. A
//! folder counts as one module with all that is in it. A module and the folder that it lies in may
//! use each other: the `mod.rs` of a catalogue has the trait that entries implement and the list
//! that names them. Re-exports are followed to where the item is defined. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{Repository, assert_none};

/// From the root of a crate: `["mysql", "packet"]`; the root itself is empty.
pub(super) type Path = Vec<String>;

#[derive(Default)]
pub(super) struct Module {
    /// Names that a `use` brings in, with the path that is written there.
    names: BTreeMap<String, Path>,
    /// Every path that begins with `crate`, `self` or `super`.
    paths: Vec<Path>,
}

/// The modules of a crate, by path.
pub(super) type Crate = BTreeMap<Path, Module>;

/// Reads what a file imports and names.
fn module(text: &str) -> Module {
    let mut module = Module::default();
    let tokens = TokenStream::from_str(text).expect("a source file that compiles");
    read(tokens.into_iter().collect(), &mut module);
    module
}

fn read(tokens: Vec<TokenTree>, module: &mut Module) {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Punct(hash) if hash.as_char() == '#' && is_test(tokens.get(at + 1)) => {
                at += 2 + tokens[at + 2..].iter().position(ends_item).unwrap_or_default();
            }
            TokenTree::Ident(word) if *word == "use" => {
                let end =
                    tokens[at..].iter().position(|token| is_punct(token, ';')).unwrap_or(tokens.len() - at);
                imports(&tokens[at + 1..at + end], &Path::new(), module);
                at += end;
            }
            TokenTree::Ident(word) if *word == "crate" || *word == "self" || *word == "super" => {
                let (path, length) = path(&tokens[at..]);
                if path.len() > 1 {
                    module.paths.push(path);
                }
                at += length - 1;
            }
            TokenTree::Group(group) => read(group.stream().into_iter().collect(), module),
            _ => {}
        }
        at += 1;
    }
}

/// `[cfg(test)]`
fn is_test(token: Option<&TokenTree>) -> bool {
    let text = token.map(ToString::to_string).unwrap_or_default();
    text.replace(' ', "") == "[cfg(test)]"
}

fn ends_item(token: &TokenTree) -> bool {
    let is_body = |group: &proc_macro2::Group| group.delimiter() == Delimiter::Brace;
    matches!(token, TokenTree::Group(group) if is_body(group)) || is_punct(token, ';')
}

fn is_punct(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

/// The path at the beginning of `tokens`, and how many tokens it takes.
fn path(tokens: &[TokenTree]) -> (Path, usize) {
    let mut path = Path::new();
    let mut at = 0;
    while let Some(TokenTree::Ident(word)) = tokens.get(at) {
        path.push(word.to_string());
        at += 1;
        let is_separator = |at: usize| tokens.get(at).is_some_and(|token| is_punct(token, ':'));
        if !(is_separator(at) && is_separator(at + 1)) {
            break;
        }
        at += 2;
    }
    (path, at.max(1))
}

/// The trees of a `use` below `prefix`.
fn imports(tokens: &[TokenTree], prefix: &Path, module: &mut Module) {
    for tree in tokens.split(|token| is_punct(token, ',')) {
        let (own, length) = path(tree);
        let mut whole: Path = prefix.iter().cloned().chain(own).collect();
        match tree.get(length - usize::from(length > tree.len())..).and_then(<[TokenTree]>::first) {
            Some(TokenTree::Group(group)) => {
                imports(&group.stream().into_iter().collect::<Vec<_>>(), &whole, module);
            }
            after => {
                // `a::{self}` is `a`.
                if whole.len() > 1 && whole.last().is_some_and(|last| last == "self") {
                    whole.pop();
                }
                let renamed = match (after, tree.last()) {
                    (Some(TokenTree::Ident(word)), Some(name)) if *word == "as" => Some(name.to_string()),
                    _ => whole.last().cloned(),
                };
                if let Some(name) = renamed {
                    module.paths.push(whole.clone());
                    module.names.insert(name, whole);
                }
            }
        }
    }
}

/// The module that defines what `written` in module `from` names; `None` for what is of another
/// crate.
fn resolve(of: &Crate, from: &Path, written: &[String], depth: u32) -> Option<Path> {
    let (first, mut rest) = written.split_first()?;
    let mut at: Path = match first.as_str() {
        "crate" => Path::new(),
        "self" => from.clone(),
        "super" => from[..from.len().checked_sub(1)?].to_vec(),
        name => {
            let child: Path = from.iter().cloned().chain([name.to_owned()]).collect();
            let is_known = of.contains_key(&child) || of[from].names.contains_key(name);
            rest = is_known.then_some(written)?;
            from.clone()
        }
    };
    for (place, name) in rest.iter().enumerate() {
        if name == "super" {
            at.pop();
            continue;
        }
        at.push(name.clone());
        if of.contains_key(&at) {
            continue;
        }
        at.pop();
        let Some(alias) = of[&at].names.get(name).filter(|_| depth < 9) else { break };
        let onward: Path = alias.iter().chain(&rest[place + 1..]).cloned().collect();
        return resolve(of, &at, &onward, depth + 1);
    }
    Some(at)
}

/// Each module with one whose items it names.
pub(super) fn references(of: &Crate) -> impl Iterator<Item = (&Path, Path)> {
    of.iter().flat_map(move |(from, module)| {
        module.paths.iter().filter_map(move |path| Some((from, resolve(of, from, path, 0)?)))
    })
}

/// Edges between modules of the same folder: folder, from, to.
fn edges(of: &Crate) -> BTreeSet<(Path, String, String)> {
    let mut edges = BTreeSet::new();
    for (from, to) in references(of) {
        let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
            edges.insert((from[..common].to_vec(), a.clone(), b.clone()));
        }
    }
    edges
}

/// Each set of modules of one folder that reach each other, as `folder: a, b, c`.
fn circles(of: &Crate) -> Vec<String> {
    let mut graphs: BTreeMap<Path, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (folder, from, to) in edges(of) {
        graphs.entry(folder).or_default().entry(from).or_default().insert(to);
    }
    let mut found = Vec::new();
    for (folder, graph) in &graphs {
        let reached: BTreeMap<&String, BTreeSet<&String>> =
            graph.keys().map(|from| (from, reachable(graph, from))).collect();
        let mut seen = BTreeSet::new();
        for (from, there) in &reached {
            let back = |to: &&&String| reached.get(**to).is_some_and(|back| back.contains(from));
            let circle: Vec<&str> = there.iter().filter(back).map(|name| name.as_str()).collect();
            if !circle.is_empty() && circle.iter().all(|name| seen.insert((*name).to_owned())) {
                found.push(format!("{}: {}", folder.join("/"), circle.join(", ")));
            }
        }
    }
    found
}

/// What `from` reaches in one step or more.
fn reachable<'a>(graph: &'a BTreeMap<String, BTreeSet<String>>, from: &'a String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut ahead = vec![from];
    while let Some(one) = ahead.pop() {
        ahead.extend(graph.get(one).into_iter().flatten().filter(|next| reached.insert(*next)));
    }
    reached
}

/// Path of a module by its file below `src`.
fn place(file: &str) -> Path {
    let path = file.trim_end_matches(".rs");
    let path = path.trim_end_matches("mod").trim_end_matches('/');
    path.split('/').filter(|part| !matches!(*part, "" | "lib" | "main")).map(str::to_owned).collect()
}

/// The wanted crates by the paths of their folders.
pub(super) fn crates(repository: &Repository, is_wanted: impl Fn(&str) -> bool) -> BTreeMap<String, Crate> {
    let mut crates: BTreeMap<String, Crate> = BTreeMap::new();
    for (path, text) in repository.texts(".rs") {
        let Some((name, file)) = path.split_once("/src/") else { continue };
        if is_wanted(name) && !file.ends_with("tests.rs") && !path.contains("/tests/") {
            crates.entry(name.to_owned()).or_default().insert(place(file), module(text));
        }
    }
    crates
}

#[test]
fn modules_do_not_import_each_other_in_a_circle() {
    let crates = crates(&Repository::load(), |_| true);
    let found =
        crates.iter().flat_map(|(name, of)| circles(of).into_iter().map(move |one| (name.as_str(), one)));
    assert_none(&found.map(|(name, one)| format!("{name}, {one}")).collect::<Vec<_>>());
}

#[test]
fn circles_are_found_through_re_exports_and_not_in_tests() {
    let found = |files: &[(&str, &str)]| {
        let of = files.iter().map(|(file, text)| (place(file), module(text))).collect();
        circles(&of)
    };
    let lib = ("lib.rs", "mod a; mod b; pub use a::{A, inner::Deep as Renamed}; pub(crate) use b::B;");
    let a = ("a/mod.rs", "mod inner; use crate::B; pub struct A(B);");
    let inner = ("a/inner.rs", "pub struct Deep;");
    let uses = |text| found(&[lib, a, inner, ("b.rs", text)]);
    assert_eq!(uses("pub struct B(crate::A);"), [": a, b"]);
    assert_eq!(uses("fn f() { g(|| super::a::inner::Deep) } pub struct B;"), [": a, b"]);
    assert_eq!(uses("use crate::{Renamed}; pub struct B;"), [": a, b"]);
    assert!(uses("pub struct B; #[cfg(test)] mod tests { use crate::A; }").is_empty());
    assert!(uses("use std::fmt; pub struct B(fmt::Error);").is_empty());
    let parent = ("a/mod.rs", "mod inner; pub struct A; pub use inner::Deep;");
    assert!(found(&[lib, parent, ("a/inner.rs", "use super::A; pub struct Deep;"), ("b.rs", "")]).is_empty());
}
