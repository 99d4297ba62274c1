//! Links between documents lead somewhere.

use super::{Repository, assert_none};

fn complaints(repository: &Repository) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in repository.texts(".md") {
        for link in links(text).filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let goal = if file.is_empty() { path.to_owned() } else { resolved(path, file) };
            if !repository.has_file(&goal) && !repository.has_folder(&goal) {
                complaints.push(format!("{path}: the link {link} leads to nothing"));
            } else if !anchor.is_empty() && !anchors(repository.text(&goal)).any(|there| there == anchor) {
                complaints.push(format!("{path}: the link {link} leads to a heading that is not there"));
            }
        }
    }
    complaints
}

/// Pages of docs/ that no other page leads to.
fn unlinked(repository: &Repository) -> Vec<String> {
    let goals =
        |(from, text)| links(text).map(move |link| resolved(from, link.split('#').next().unwrap_or(link)));
    let pages: Vec<(&str, &str)> = repository.texts(".md").collect();
    let is_linked = |page: &str| {
        let mut others = pages.iter().filter(|(path, _)| *path != page);
        others.any(|other| goals(*other).any(|goal| goal == page))
    };
    let alone = pages.iter().filter(|(path, _)| path.starts_with("docs/") && !is_linked(path));
    alone.map(|(path, _)| format!("{path}: no other page leads to it")).collect()
}

/// Lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    let after = prose(text).flat_map(|line| line.split("](").skip(1));
    after.filter_map(|rest| rest.split_once(')')).map(|(link, _)| link.split(' ').next().unwrap_or(link))
}

/// What the headings of a page are called in links: small letters, blanks as dashes, no other
/// signs.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        title.chars().filter(|sign| sign.is_alphanumeric() || matches!(sign, '-' | '_')).collect()
    })
}

/// The path `link`, which is in the file `from`, from the root.
fn resolved(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn every_link_leads_somewhere_and_every_page_is_led_to() {
    let repository = Repository::load();
    assert_none(&complaints(&repository));
    assert_none(&unlinked(&repository));
}

#[test]
fn a_page_that_only_links_to_itself_is_found() {
    let pages = [
        ("README.md", "[a](docs/x/a.md#part)"),
        ("docs/x/a.md", "[b](../b.md)"),
        ("docs/b.md", ""),
        ("docs/x/c.md", "[c](c.md)"),
    ];
    assert_eq!(unlinked(&Repository::of(&pages)), ["docs/x/c.md: no other page leads to it"]);
}

#[test]
fn links_to_nothing_are_found() {
    let page = "# A page: `x`\n[a](../b.md) [b](b.md#the-heading) [c](nothing.md)\n[d](b.md#gone) [e](#a-page-x) [f](../docs/)\n\
                ```\n[code](is/not/looked/at)\n```\n[web](https://example.org/) [g](#gone)\n";
    let repository = Repository::of(&[("docs/a.md", page), ("docs/b.md", "## The heading\n"), ("b.md", "")]);
    insta::assert_snapshot!(complaints(&repository).join("\n"), @r"
    docs/a.md: the link nothing.md leads to nothing
    docs/a.md: the link b.md#gone leads to a heading that is not there
    docs/a.md: the link #gone leads to a heading that is not there
    ");
}
