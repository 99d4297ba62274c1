//! Reads a plan's text, its overrides (`--set KEY=VALUE`) and its size (`[size.NAME]`) into one
//! tree of TOML values. Each value knows where it was written, so that messages can name the line
//! and column.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::error::{Error, Location};
use crate::setup::{lay_key, name_parts, text};

/// One step of a path into a plan, such as `variant`, `0`, `server`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Segment<'a> {
    Key(&'a str),
    Index(usize),
}

/// One mistake, and the path of the value that it is about.
#[derive(Debug, PartialEq)]
pub(crate) struct Problem<'a> {
    pub(crate) path: Vec<Segment<'a>>,
    pub(crate) message: String,
}

/// The texts that a document is made of. Positions run through all of them: the file comes first,
/// then the overrides, each after a gap of one byte.
pub(crate) struct Texts<'a> {
    origin: &'a str,
    text: &'a str,
    overrides: &'a [(String, String)],
    /// The text `v = VALUE` for each override, after as many blanks as its position needs.
    padded: Vec<String>,
    /// Where each override begins.
    starts: Vec<usize>,
}

/// The tree of TOML values from which a [`crate::Plan`] is made.
pub(crate) struct Document<'a> {
    texts: &'a Texts<'a>,
    pub(crate) root: Spanned<DeTable<'a>>,
}

impl<'a> Texts<'a> {
    pub(crate) fn new(text: &'a str, origin: &'a str, overrides: &'a [(String, String)]) -> Self {
        let (mut padded, mut starts) = (Vec::new(), Vec::new());
        let mut start = text.len() + 1;
        for (_, value) in overrides {
            let line = format!("{}v = {value}", " ".repeat(start));
            starts.push(start);
            start = line.len() + 1;
            padded.push(line);
        }
        Self { origin, text, overrides, padded, starts }
    }

    /// Returns the line and column of a position, or the override that it lies in.
    pub(crate) fn location(&self, offset: usize) -> Location {
        if let Some(index) = self.starts.iter().rposition(|start| *start <= offset) {
            return Location::Override { key: self.overrides[index].0.clone() };
        }
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Location::File {
            origin: self.origin.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// Makes an error `message` at a span, or at the file's start without one.
    pub(crate) fn error(&self, span: Option<Range<usize>>, message: String) -> Error {
        Error::Invalid { location: self.location(span.map_or(0, |span| span.start)), message }
    }
}

impl<'a> Document<'a> {
    /// Parses the file and lays the overrides over it.
    pub(crate) fn new(texts: &'a Texts<'a>) -> Result<Self, Error> {
        let mut root = DeTable::parse(texts.text)
            .map_err(|error| texts.error(error.span(), syntax_message(error.message())))?;
        // `--size` is applied first, so that `--set` on the command line wins over it.
        for (index, (_, name)) in texts.overrides.iter().enumerate().filter(|(_, (key, _))| key == SIZE_KEY) {
            let start = texts.starts[index];
            apply_size(root.get_mut(), name).map_err(|message| texts.error(Some(start..start), message))?;
        }
        let others = texts.overrides.iter().enumerate().filter(|(_, (key, _))| key != SIZE_KEY);
        for (index, (key, value)) in others {
            let start = texts.starts[index];
            let end = texts.padded[index].len();
            let value = parse_value(&texts.padded[index])
                .unwrap_or_else(|| Spanned::new(start..end, DeValue::String(value.as_str().into())));
            set(root.get_mut(), key, start..end, value)
                .map_err(|message| texts.error(Some(start..end), message))?;
        }
        Ok(Self { texts, root })
    }

    fn has(&self, path: &[Segment<'_>]) -> bool {
        self.find(path).1 == path.len()
    }

    /// Returns where the value at `path` was written. For an absent value it is the beginning of
    /// the nearest table around it.
    pub(crate) fn location_of(&self, path: &[Segment<'_>]) -> Location {
        self.texts.location(self.find(path).0.start)
    }

    /// Returns the path at which the value at `path` was written. A set-up's workload is written in
    /// the set-up or in the plan's own table.
    pub(crate) fn as_written<'p>(&self, path: &[Segment<'p>]) -> Vec<Segment<'p>> {
        let [Segment::Key("workload"), Segment::Key(name), rest @ ..] = path else { return path.to_vec() };
        let (workload, Some(setup)) = name_parts(name) else { return path.to_vec() };
        let setups = self.root.get_ref().get("setup").and_then(|setups| setups.get_ref().as_array());
        let is_named = |table: &Spanned<DeValue<'_>>| {
            table.get_ref().as_table().and_then(|table| text(table, "name")) == Some(setup)
        };
        let own = [Segment::Key("workload"), Segment::Key(workload)];
        if let Some(index) = setups.and_then(|setups| setups.iter().position(is_named)) {
            let path = [&[Segment::Key("setup"), Segment::Index(index)], &own[..], rest].concat();
            if self.has(&path) {
                return path;
            }
        }
        if self.has(path) { path.to_vec() } else { [&own[..], rest].concat() }
    }

    /// Returns the span of the value at `path`, or of the nearest one around it, and how many
    /// segments lead to a value.
    fn find(&self, path: &[Segment<'_>]) -> (Range<usize>, usize) {
        let mut span = 0..0;
        let mut table = Some(self.root.get_ref());
        let mut value: Option<&Spanned<DeValue<'_>>> = None;
        for (depth, segment) in path.iter().enumerate() {
            let next = match segment {
                Segment::Key(key) => table.and_then(|table| table.get(*key)),
                Segment::Index(index) => value.and_then(|value| value.get_ref().get(*index)),
            };
            let Some(found) = next else { return (span, depth) };
            // An array of tables has the span of its first header, which says nothing about its
            // elements.
            if !matches!(found.get_ref(), DeValue::Array(_)) || path.last() == Some(segment) {
                span = found.span();
            }
            table = found.get_ref().as_table();
            value = Some(found);
        }
        (span, path.len())
    }
}

/// Parses an override's value as TOML. It is `None` unless the text is exactly one TOML value.
fn parse_value(padded: &str) -> Option<Spanned<DeValue<'_>>> {
    let table = DeTable::parse(padded).ok()?.into_inner();
    if table.len() != 1 {
        return None;
    }
    table.into_iter().next().map(|(_, value)| value)
}

fn syntax_message(message: &str) -> String {
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    format!("this is not TOML: {}", lines.join(", "))
}

/// Sets the value at dotted path `key`, and makes absent tables on the way.
///
/// `variant.NAME.KEY` means the variant of that name, and `setup.NAME.KEY` the set-up. Names may
/// hold dots, so the longest name that fits is taken.
pub(crate) fn set<'a>(
    root: &mut DeTable<'a>,
    key: &'a str,
    span: Range<usize>,
    value: Spanned<DeValue<'a>>,
) -> Result<(), String> {
    for list in ["variant", "setup"] {
        if let Some(rest) = key.strip_prefix(list).and_then(|rest| rest.strip_prefix('.')) {
            let (table, rest) = entry(root, list, rest)?;
            return set_in(table, rest, span, value);
        }
    }
    set_in(root, key, span, value)
}

fn set_in<'a>(
    mut table: &mut DeTable<'a>,
    key: &'a str,
    span: Range<usize>,
    value: Spanned<DeValue<'a>>,
) -> Result<(), String> {
    let (folders, last) = key.rsplit_once('.').unwrap_or(("", key));
    if last.is_empty() || key.starts_with('.') || key.contains("..") {
        return Err("the key must be a dotted path such as blocks or workload.NAME.KEY".to_owned());
    }
    for folder in folders.split('.').filter(|folder| !folder.is_empty()) {
        if !table.contains_key(folder) {
            let empty = Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
            table.insert(Spanned::new(span.clone(), folder.into()), empty);
        }
        table = match table.get_mut(folder).map(Spanned::get_mut) {
            Some(DeValue::Table(inner)) => inner,
            _ => return Err(format!("`{folder}` in the plan is not a table, so it has no keys to set")),
        };
    }
    table.insert(Spanned::new(span, last.into()), value);
    Ok(())
}

/// Returns the table of `[[list]]` whose name `rest` begins with, and the part of `rest` after the
/// name and the dot.
fn entry<'t, 'a>(
    root: &'t mut DeTable<'a>,
    list: &str,
    rest: &'a str,
) -> Result<(&'t mut DeTable<'a>, &'a str), String> {
    let mut names = Vec::new();
    let mut best: Option<(usize, usize)> = None;
    let entries = match root.get_mut(list).map(Spanned::get_mut) {
        Some(DeValue::Array(entries)) => entries,
        _ => return Err(format!("the plan has no [[{list}]] to set a key of")),
    };
    for (index, table) in entries.iter().enumerate() {
        let Some(name) = table.get_ref().as_table().and_then(|table| text(table, "name")) else { continue };
        let fits = rest.strip_prefix(name).is_some_and(|after| after.starts_with('.'));
        if fits && best.is_none_or(|(_, length)| name.len() > length) {
            best = Some((index, name.len()));
        }
        names.push(format!("`{name}`"));
    }
    let unknown = || {
        let known = names.join(", ");
        format!("write {list}.NAME.KEY with the name of a {list} of the plan; it has {known}")
    };
    let (index, length) = best.ok_or_else(unknown)?;
    match entries.get_mut(index).map(Spanned::get_mut) {
        Some(DeValue::Table(table)) => Ok((table, &rest[length + 1..])),
        _ => Err(unknown()),
    }
}

/// The key of an override that names a size: `--set size=NAME`, for which `--size NAME` is short.
const SIZE_KEY: &str = "size";

/// Lays the size `name` over the plan `root`.
fn apply_size(root: &mut DeTable<'_>, name: &str) -> Result<(), String> {
    let sizes = root.get("size").and_then(|sizes| sizes.get_ref().as_table());
    let known: Vec<String> =
        sizes.into_iter().flatten().map(|(name, _)| name.get_ref().to_string()).collect();
    let found = sizes.and_then(|sizes| sizes.get(name)).map(|size| size.get_ref().clone());
    let Some(DeValue::Table(size)) = found else {
        let known =
            if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
        return Err(format!("the plan has no size `{name}`; {known}"));
    };
    let about = text(&size, "about").unwrap_or_default().to_owned();
    for (key, value) in size {
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("about", _) => {}
            ("variants", DeValue::Array(names)) => {
                let names: Vec<String> =
                    names.iter().filter_map(|name| name.get_ref().as_str()).map(str::to_owned).collect();
                keep_variants(root, &names)?;
            }
            ("config", _) => each(root, "variant", |variant| add_config(variant, &value)),
            (list @ ("setup" | "variant"), DeValue::Table(named)) => {
                for (name, above) in named {
                    let mut found = false;
                    each(root, list, |table| {
                        if text(table, "name") == Some(name.get_ref()) {
                            lay_over_keys(table, above);
                            found = true;
                        }
                    });
                    if !found {
                        return Err(format!(
                            "the size names the {list} `{}`, which the plan lacks",
                            name.get_ref()
                        ));
                    }
                }
            }
            _ => lay_key(root, key, value),
        }
    }
    let size_text = format!("{name}: {about}");
    set(root, "report.size", 0..0, Spanned::new(0..0, DeValue::String(size_text.into())))
}

/// Calls `change` for every table of the list `[[list]]`.
fn each<'a>(root: &mut DeTable<'a>, list: &str, mut change: impl FnMut(&mut DeTable<'a>)) {
    if let Some(DeValue::Array(tables)) = root.get_mut(list).map(Spanned::get_mut) {
        for table in tables.iter_mut() {
            if let DeValue::Table(table) = table.get_mut() {
                change(table);
            }
        }
    }
}

/// Lays the keys of a size over a table. An empty text removes a key.
fn lay_over_keys<'a>(below: &mut DeTable<'a>, above: &Spanned<DeValue<'a>>) {
    let DeValue::Table(above) = above.get_ref() else { return };
    for (key, value) in above.clone() {
        if value.get_ref().as_str() == Some("") {
            below.remove(&**key.get_ref());
            continue;
        }
        lay_key(below, key, value);
    }
}

/// Adds intents to a variant's config. A config with one part becomes a list, whose last part wins.
fn add_config<'a>(variant: &mut DeTable<'a>, intents: &Spanned<DeValue<'a>>) {
    let Some(config) = variant.get_mut("config") else { return };
    match config.get_mut() {
        DeValue::Array(parts) => parts.push(intents.clone()),
        _ => {
            let mut parts = DeArray::new();
            parts.push(config.clone());
            parts.push(intents.clone());
            *config = Spanned::new(config.span(), DeValue::Array(parts));
        }
    }
}

/// Removes all variants except `names` from the plan, and also sections that are left with fewer
/// than two variants.
fn keep_variants(root: &mut DeTable<'_>, names: &[String]) -> Result<(), String> {
    let kept = |name: &str| names.iter().any(|kept| kept == name);
    let mut found = Vec::new();
    retain(root, "variant", |variant| {
        let name = text(variant, "name").unwrap_or_default().to_owned();
        let is_kept = kept(&name);
        found.push(name);
        is_kept
    });
    if let Some(unknown) = names.iter().find(|name| !found.contains(name)) {
        return Err(format!("the size names the variant `{unknown}`; the plan has {}", found.join(", ")));
    }
    if text(root, "base").is_some_and(|base| !kept(base)) {
        root.remove("base");
    }
    retain(root, "section", |section| {
        let Some(DeValue::Array(variants)) = section.get_mut("variants").map(Spanned::get_mut) else {
            return true;
        };
        let mut left = DeArray::new();
        for variant in variants.iter().filter(|name| name.get_ref().as_str().is_some_and(kept)) {
            left.push(variant.clone());
        }
        *variants = left;
        variants.len() > 1 && text(section, "base").is_none_or(kept)
    });
    Ok(())
}

fn retain<'a>(root: &mut DeTable<'a>, list: &str, mut keep: impl FnMut(&mut DeTable<'a>) -> bool) {
    let Some(DeValue::Array(tables)) = root.get_mut(list).map(Spanned::get_mut) else { return };
    let mut left = DeArray::new();
    for table in tables.iter() {
        let mut table = table.clone();
        let is_kept = match table.get_mut() {
            DeValue::Table(table) => keep(table),
            _ => true,
        };
        if is_kept {
            left.push(table);
        }
    }
    *tables = left;
}

#[cfg(test)]
mod tests {

    use crate::fake::parse_with;

    const PLAN: &str = r#"
    name = "p"
    base = "c"
    [[variant]]
    name = "a"
    server = "mysql-8.0.36"
    config = "a.toml"
    [[variant]]
    name = "b"
    server = "mysql-8.0.36"
    own_config = "b.cnf"
    [[variant]]
    name = "c"
    server = "null"
    [[setup]]
    name = "big"
    workload.fake = { rows = 100 }
    [[section]]
    title = "A and B"
    variants = ["a", "b"]
    [[section]]
    title = "A and C"
    variants = ["a", "c"]
    [workload.fake]
    rows = 10
    [size.small]
    about = "rows / 10"
    variants = ["a", "b"]
    blocks = 3
    config = { redo = "1 MiB" }
    workload.fake = { deep = { one = 1 } }
    setup.big.workload.fake = { rows = 10 }
    variant.b = { server = "mysql-8.0.31", own_config = "" }
    "#;

    fn sized(name: &str) -> Result<crate::Plan, String> {
        let size = ("size".to_owned(), name.to_owned());
        let more = ("blocks".to_owned(), "4".to_owned());
        parse_with(PLAN, "p.toml", &[more, size]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_size_changes_what_it_names_and_an_override_wins_over_it() {
        let plan = sized("small").unwrap_or_else(|error| panic!("{error}"));
        let names: Vec<&str> = plan.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!((names, plan.blocks, plan.base_name()), (vec!["a", "b"], 4, "a"));
        assert_eq!(plan.variants[0].config.as_ref().map(|config| config.parts().len()), Some(2));
        assert_eq!(plan.variants[1].server.as_deref(), Some("mysql-8.0.31"));
        assert_eq!(plan.variants[1].own_config, None, "an empty text takes a key away");
        let options = plan.workload.get("fake@big").map(|options| options.values());
        assert_eq!(options.map(|options| options["rows"].clone()), Some(10.into()));
        let titles: Vec<&str> = plan.sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["A and B"], "a section whose variants do not run is left out");
        assert_eq!(plan.report.size.as_deref(), Some("small: rows / 10"));
        let reread = crate::fake::parse(&toml::to_string(&plan).expect("a text"), "own output");
        assert_eq!(reread.unwrap_or_else(|error| panic!("{error}")), plan);
    }

    #[test]
    fn a_size_that_the_plan_lacks_is_refused_with_those_that_it_has() {
        insta::assert_snapshot!(sized("tiny").expect_err("no such size"), @"--set size: the plan has no size `tiny`; it has small");
    }
}
