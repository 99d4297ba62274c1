//! The rules for a catalogue entry, beyond its format.

use dbdyno_products::{EMBEDDED, Product};

use super::entry::{Entry, Source};

pub(crate) fn check(entry: &Entry) -> Result<(), String> {
    let Entry { name, product, version, source, .. } = entry;
    check_name(name)?;
    let mut products: Vec<String> = Product::servers().map(|product| product.to_string()).collect();
    products.sort();
    if !products.contains(product) {
        return Err(format!("{name}: no product {product:?}; there are {}", products.join(", ")));
    }
    if !version.starts_with(|sign: char| sign.is_ascii_digit()) {
        return Err(format!(
            "{name}: version {version:?} is no number; write 8.4.6, or 8.4 for any of that line"
        ));
    }
    let is_digit = |sign: char| sign.is_ascii_digit() || ('a'..='f').contains(&sign);
    if let Some(sum) = source.sha256()
        && !(sum.len() == 64 && sum.chars().all(is_digit))
    {
        return Err(format!("{name}: sha256 is not 64 digits of 0-9 and a-f: {sum:?}"));
    }
    match source {
        Source::Tarball { path: Some(_), url: Some(_), .. } => {
            Err(format!("{name}: a tarball has either path or url"))
        }
        Source::Tarball { path: None, url: None, .. } => {
            Err(format!("{name}: give the place of the tarball: path = \"FILE\" or url = \"https://...\""))
        }
        Source::Tarball { url: Some(url), .. } if !url.starts_with("https://") => {
            Err(format!("{name}: url must begin with https://"))
        }
        _ => Ok(()),
    }
}

/// Checks a server's name, which becomes a folder's name and a word in plans.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_fine = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_');
    if !name.starts_with(|sign: char| sign.is_ascii_alphanumeric()) || !name.chars().all(is_fine) {
        return Err(format!(
            "{name:?} is no name for a server: use letters, digits, dots, dashes and underscores"
        ));
    }
    // These words have another meaning where a plan names a server.
    if [EMBEDDED.name, "null"].contains(&name) || name.contains(".partial") || name.ends_with(".toml") {
        return Err(format!("{name} means something else to dbdyno; choose another name"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by_name;

    fn refusal(change: impl FnOnce(&mut Entry)) -> String {
        let mut entry = by_name("mysql-8.4.6").unwrap();
        change(&mut entry);
        check(&entry).unwrap_err()
    }

    fn tarball(path: Option<&str>, url: Option<&str>, sha256: Option<&str>) -> Source {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Source::Tarball { path: path.map(Into::into), url: own(url), sha256: own(sha256), strip: 1 }
    }

    #[test]
    fn each_wrong_value_is_named_with_what_is_right() {
        let messages = [
            refusal(|entry| entry.name = "../x".to_owned()),
            refusal(|entry| entry.name = "sqlite".to_owned()),
            refusal(|entry| entry.product = "Oracle".to_owned()),
            refusal(|entry| entry.version = "latest".to_owned()),
            refusal(|entry| entry.source = tarball(None, None, None)),
            refusal(|entry| entry.source = tarball(Some("a"), Some("https://b"), None)),
            refusal(|entry| entry.source = tarball(None, Some("http://b"), None)),
            refusal(|entry| entry.source = tarball(Some("a"), None, Some("12"))),
        ];
        insta::assert_snapshot!(messages.join("\n"), @r#"
        "../x" is no name for a server: use letters, digits, dots, dashes and underscores
        sqlite means something else to dbdyno; choose another name
        mysql-8.4.6: no product "Oracle"; there are MariaDB, MySQL, Percona Server, PostgreSQL
        mysql-8.4.6: version "latest" is no number; write 8.4.6, or 8.4 for any of that line
        mysql-8.4.6: give the place of the tarball: path = "FILE" or url = "https://..."
        mysql-8.4.6: a tarball has either path or url
        mysql-8.4.6: url must begin with https://
        mysql-8.4.6: sha256 is not 64 digits of 0-9 and a-f: "12"
        "#);
    }
}
