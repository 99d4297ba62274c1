//! Writes the reference page for config intents: intents by product and version, and the options
//! with their defaults.

use super::data::{
    Intent, IntentData, Kind, OptionRange, OptionState, RenderRule, Span, joined, rule_spans, subtracted,
};
use super::value::words_of;
use dbdyno_products::mysql::{MARIADB, MYSQL, PERCONA};
use dbdyno_products::postgres::POSTGRESQL;
use dbdyno_products::sqlite::SQLITE;
use dbdyno_products::{Product, Release};

#[path = "../../../../../../xtask/src/filled.rs"]
mod filled;

/// Marks a range in which no version was compared with a real server.
const UNCHECKED: &str = " †";

const HEAD: &str = "# Config intents

What `config` of a variant can ask for ([how](../guides/configs.md)), and the options of each
product and version. Generated from the data of each product in `crates/products/src`.

`≥8.0.30` is from 8.0.30 on, `<8.0.30` before it. Options and defaults were compared with these
servers. † marks ranges of versions without one; they are as documented.
";

const INTENTS: &str = "
## Intents

Each intent with its value (*size*: `\"1 GiB\"`, *time*: `\"30m\"`, *switch*: `true` or `false`),
meaning, and options by product and version. Percona Server is as MySQL (†) where it is not named.
Values in brackets need no option.
";

const OPTIONS: &str = "
## Defaults that changed

A default holds until the next one. `auto`: computed when the server starts. *Ignored* options are
accepted and do nothing, so no intent uses them. Options with one default in all versions are in
the `config-options.toml` of each product in [crates/products/src](../../crates/products/src).
";

/// The page `docs/reference/config-intents.md`.
fn reference() -> String {
    let data = IntentData::get();
    let mut text = HEAD.to_owned();
    for product in Product::all() {
        let checked = data.checked(product);
        let versions = if checked.is_empty() { "none".to_owned() } else { checked.join(", ") };
        text.push_str(&format!("\n* {product}: {versions}"));
    }
    text.push('\n');
    text.push_str(INTENTS);
    for intent in &data.intents {
        text.push_str(&format!("\n### `{}`\n\n{}. {}\n\n", intent.name, kind(intent), intent.about));
        for (products, cell) in cells(intent) {
            text.push_str(&format!("* {}: {}\n", products.join(", "), cell.replace("<br>", "; ")));
        }
    }
    text.push_str(OPTIONS);
    Product::all().for_each(|product| text.push_str(&options(data, product)));
    filled::filled(&text)
}

fn kind(intent: &Intent) -> String {
    let words: Vec<String> = words_of(intent).iter().map(|word| format!("`\"{word}\"`")).collect();
    match intent.kind {
        Kind::Size if !words_of(intent).contains(&"off") => "Size".to_owned(),
        Kind::Size => "Size, or `\"off\"`".to_owned(),
        Kind::Number => "Number".to_owned(),
        Kind::Switch => "Switch".to_owned(),
        Kind::Duration => "Time".to_owned(),
        Kind::Fraction => "A number from 0 to 1".to_owned(),
        Kind::Word => "Name".to_owned(),
        Kind::Choice => words.join(", "),
    }
}

/// One table cell for each implementation of the intent, with the products that share it.
fn cells(intent: &Intent) -> Vec<(Vec<String>, String)> {
    let mut cells: Vec<(Vec<String>, String)> = Vec::new();
    for product in Product::all() {
        let cell = cell(intent, product);
        if cell == "–" || cell.starts_with("as MySQL") {
            continue;
        }
        match cells.iter_mut().find(|(_, known)| *known == cell) {
            Some((products, _)) => products.push(product.to_string()),
            None => cells.push((vec![product.to_string()], cell)),
        }
    }
    cells
}

/// Options and versions for one product. Options that Percona Server shares with MySQL are not
/// repeated.
fn cell(intent: &Intent, product: &'static Product) -> String {
    let of = |product| (parts(intent, product), absences(intent, product));
    let (parts, absences) = of(product);
    let is_inherited = product == PERCONA && !parts.is_empty();
    if is_inherited && (&parts, &absences) == (&of(MYSQL).0, &of(MYSQL).1) {
        return format!("as MySQL{UNCHECKED}");
    }
    let is_everywhere = parts.iter().any(|(_, spans)| spans.contains(&Span::default()));
    let mut texts: Vec<String> =
        parts.iter().map(|(label, spans)| format!("{label}{}", versions(product, spans))).collect();
    if texts.is_empty() && absences.is_empty() {
        texts.push("–".to_owned());
    }
    if !is_everywhere {
        texts.extend(absences);
    }
    texts.join("<br>")
}

/// The options that the intent sets, each with its versions, in the order of the rules.
fn parts(intent: &Intent, product: &'static Product) -> Vec<(String, Vec<Span>)> {
    let mut parts: Vec<(String, Vec<Span>)> = Vec::new();
    let mut served: Vec<(&RenderRule, Vec<Span>)> = Vec::new();
    let is_of = |rule: &&RenderRule| rule.on.iter().any(|on| on.covers(product));
    for rule in intent.way.iter().chain(&intent.also).filter(is_of) {
        let earlier = served.iter().filter(|(other, _)| serves_all_of(other, rule));
        let earlier: Vec<Span> = earlier.flat_map(|(_, spans)| spans.clone()).collect();
        let spans = subtracted(joined(rule_spans(rule, product, None)), &earlier);
        if spans.is_empty() {
            continue;
        }
        served.push((rule, spans.clone()));
        let label = label(intent, rule);
        match parts.iter_mut().find(|(known, _)| *known == label) {
            Some((_, known)) => *known = joined([known.clone(), spans].concat()),
            None => parts.push((label, spans)),
        }
    }
    parts
}

fn absences(intent: &Intent, product: &'static Product) -> Vec<String> {
    let is_of = |on: &Vec<&'static Product>| on.is_empty() || on.iter().any(|on| on.covers(product));
    let absent = intent.absent.iter().filter(|absent| is_of(&absent.on));
    absent.map(|absent| format!("(`{}`)", absent.value)).collect()
}

/// Whether `other`, which comes first, accepts every value that `rule` accepts.
fn serves_all_of(other: &RenderRule, rule: &RenderRule) -> bool {
    let needs_less = other.engine.is_none() && other.plugin.is_none();
    let takes = |word: &String| other.set.is_some() || other.values.contains_key(word);
    needs_less && rule.values.keys().all(takes) && (rule.set.is_none() || other.set.is_some())
}

/// A rule's options, and the values that they apply to, unless they apply to all values.
fn label(intent: &Intent, rule: &RenderRule) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in rule.set.iter().chain(rule.values.values()).flat_map(|set| set.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let options: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let mut text = if options.is_empty() { "no option".to_owned() } else { options.join(", ") };
    let is_whole = matches!(intent.kind, Kind::Choice) && rule.values.len() == words_of(intent).len();
    if rule.set.is_none() && !rule.values.is_empty() && !is_whole {
        let values: Vec<&str> = rule.values.keys().map(String::as_str).collect();
        text.push_str(&format!(" for {}", values.join(", ")));
    }
    if let Some(plugin) = &rule.plugin {
        text.push_str(&format!(", with {plugin}"));
    }
    text
}

fn versions(product: &'static Product, spans: &[Span]) -> String {
    let words = words(spans);
    let words = if words.is_empty() { String::new() } else { format!(" ({words})") };
    let is_unchecked = spans.iter().all(|span| !is_checked(product, *span));
    words + if is_unchecked { UNCHECKED } else { "" }
}

/// Writes `≥5.6.2 <8.0, ≥8.0.30`, and nothing for all versions.
fn words(spans: &[Span]) -> String {
    let words = spans.iter().map(|Span { from, until }| {
        let from = from.map(|from| format!("≥{from}"));
        let until = until.map(|until| format!("<{until}"));
        from.into_iter().chain(until).collect::<Vec<_>>().join(" ")
    });
    words.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}

fn is_checked(product: &'static Product, span: Span) -> bool {
    let checked = IntentData::get().checked(product).iter().filter_map(|text| Release::parse(text));
    checked.into_iter().any(|version| span.contains(version))
}

/// One product's options whose defaults or states changed. Options that Percona Server shares with
/// MySQL are not repeated.
fn options(data: &IntentData, product: &'static Product) -> String {
    let mut text = String::new();
    for name in data.names(product) {
        let ranges = data.ranges(product, name);
        let is_inherited = product == PERCONA && std::ptr::eq(ranges, data.ranges(MYSQL, name));
        if ranges.len() > 1 && !is_inherited {
            let each = ranges.iter().enumerate();
            let defaults: Vec<String> =
                each.map(|(at, range)| default_of(product, range, ranges.get(at + 1))).collect();
            text.push_str(&format!("* `{name}`: {}\n", defaults.join("; ")));
        }
    }
    if text.is_empty() {
        return text;
    }
    format!("\n### {product}\n\n{text}")
}

/// A default, preceded by its versions unless it applies to all versions. The start of `next` is
/// not repeated.
fn default_of(product: &'static Product, range: &OptionRange, next: Option<&OptionRange>) -> String {
    let state = match range.state {
        OptionState::Active => "",
        OptionState::Deprecated => " *deprecated*",
        OptionState::Ignored => " *ignored*",
    };
    let mark = if is_checked(product, range.span) { "" } else { UNCHECKED };
    let is_followed = next.is_some_and(|next| next.span.from == range.span.until);
    let shown = Span { from: range.span.from, until: range.span.until.filter(|_| !is_followed) };
    let versions = format!("{}{mark}{state}", words(&[shown]));
    let default = match range.default.as_str() {
        "" => "(empty)".to_owned(),
        "auto" => "auto".to_owned(),
        value => format!("`{value}`"),
    };
    match versions.trim() {
        "" => default,
        versions => format!("{versions}: {default}"),
    }
}

#[test]
fn the_page_in_docs_is_generated_from_the_data() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/config-intents.md");
    if std::env::var_os("DBDYNO_UPDATE").is_some() {
        std::fs::write(path, reference()).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page == reference(), "{path} is stale: DBDYNO_UPDATE=1 cargo test -p dbdyno-db config_intents");
}

#[test]
fn a_cell_names_options_and_versions_and_marks_unchecked_ranges() {
    let cell = |name: &str, product| cell(IntentData::get().intent(name).unwrap(), product);
    insta::assert_snapshot!(cell("redo", MYSQL), @"`innodb_redo_log_capacity` (≥8.0.30)<br>`innodb_log_file_size`, `innodb_log_files_in_group` (<8.0.30)");
    insta::assert_snapshot!(cell("redo", MARIADB), @"`innodb_log_file_size`, `innodb_log_files_in_group` (<10.5.2)<br>`innodb_log_file_size` (≥10.5.2)");
    insta::assert_snapshot!(cell("binlog_in_engine", MARIADB), @"`binlog_storage_engine`, `log_bin` for true (≥12.3) †<br>no option for false (≥12.3) †<br>(`false`)");
    insta::assert_snapshot!(cell("change_buffer", MARIADB), @"`innodb_change_buffering` (<11.0)<br>(`off`)");
    insta::assert_snapshot!(cell("durability", SQLITE), @"`synchronous`");
    insta::assert_snapshot!(cell("query_cache", POSTGRESQL), @"(`off`)");
}
