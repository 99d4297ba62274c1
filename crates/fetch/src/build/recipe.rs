//! Recipes: how each product is built. They are data in `recipes.toml`.

use std::path::Path;
use std::sync::LazyLock;

use dbdyno_db::server::find_in_path;
use serde::Deserialize;

/// Compiler flags for functions that perf can follow to their callers.
pub(super) const FLAGS: &str = "-O2 -g -fno-omit-frame-pointer";

static RECIPES: LazyLock<Vec<Recipe>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("recipes.toml"))
        .expect("the data file is a part of the program and is tested");
    file.recipe
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    recipe: Vec<Recipe>,
}

/// How one product is built. The data file says what the fields are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    pub(super) word: String,
    pub(super) product: String,
    pub(super) marker: String,
    tools: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    pub(super) configure: Vec<String>,
    pub(super) configured: String,
    pub(super) build: Vec<String>,
    pub(super) install: Vec<String>,
    pub(super) options: Vec<String>,
    pub(super) job_mb: u64,
    pub(super) disk_mb: u64,
}

impl Recipe {
    /// Returns the recipe of a product by its word. The error lists the words.
    pub(super) fn named(word: &str) -> Result<&'static Self, String> {
        let words = || RECIPES.iter().map(|recipe| recipe.word.as_str()).collect::<Vec<_>>().join(", ");
        RECIPES
            .iter()
            .find(|recipe| recipe.word == word)
            .ok_or_else(|| format!("dbdyno builds {}, and not {word}", words()))
    }

    /// Returns the Debian packages of tools and headers that are not installed.
    pub(super) fn missing(&self) -> Vec<String> {
        let has_header = |name: &str| {
            let folders = ["/usr/include", "/usr/local/include", "/usr/include/x86_64-linux-gnu"];
            folders.iter().any(|folder| Path::new(folder).join(name).exists())
        };
        let tools = self.tools.iter().filter(|(program, _)| find_in_path(program).is_none());
        let headers = self.headers.iter().filter(|(header, _)| !has_header(header));
        tools.chain(headers).map(|(_, package)| package.clone()).collect()
    }

    /// Returns a command of the recipe, with the words in braces replaced.
    pub(super) fn words(command: &[String], values: &[(&str, String)], options: &[String]) -> Vec<String> {
        let mut words = Vec::new();
        for word in command {
            if word == "{options}" {
                words.extend(options.iter().cloned());
                continue;
            }
            let replaced = values
                .iter()
                .fold(word.clone(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value));
            words.push(replaced);
        }
        words
    }
}

/// Returns the word of a build's name, and its revision: `postgres` and `3f2a91c` for
/// `postgres@3f2a91c`. It is `None` for the name of another server.
pub fn build_name(name: &str) -> Option<(&str, &str)> {
    let (word, revision) = name.split_once('@')?;
    (RECIPES.iter().any(|recipe| recipe.word == word) && !revision.is_empty()).then_some((word, revision))
}

#[cfg(test)]
mod tests {
    use dbdyno_products::Product;

    use super::*;

    #[test]
    fn every_recipe_is_of_a_known_product_and_its_commands_have_known_words() {
        for recipe in RECIPES.iter() {
            assert!(Product::named(&recipe.product).is_known(), "{}", recipe.product);
            let values = ["tree", "prefix", "jobs"].map(|name| (name, "x".to_owned()));
            for command in [&recipe.configure, &recipe.build, &recipe.install] {
                let words = Recipe::words(command, &values, &recipe.options);
                assert!(!words.is_empty() && words.iter().all(|word| !word.contains('{')), "{words:?}");
            }
        }
        assert_eq!(Recipe::named("oracle").unwrap_err(), "dbdyno builds postgres, mariadb, mysql, and not oracle");
    }

    #[test]
    fn a_builds_name_has_its_product_and_revision() {
        assert_eq!(build_name("postgres@3f2a91c"), Some(("postgres", "3f2a91c")));
        assert_eq!([build_name("mysql-8.0.31"), build_name("postgres@"), build_name("a@b")], [None; 3]);
    }
}
