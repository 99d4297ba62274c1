//! Test subjects: variants with a few settings.

use std::collections::BTreeMap;

use dbdyno_record::{ServerInfo, VariantInfo};

use super::{Build, Planned, Settings, Subject};

pub(super) fn variant(name: &str, config: &str) -> VariantInfo {
    VariantInfo { name: name.to_owned(), config: config.to_owned(), ..VariantInfo::default() }
}

pub(super) fn server(product: &str, version: &str, settings: Settings) -> ServerInfo {
    ServerInfo { product: product.to_owned(), version: version.to_owned(), settings, ..ServerInfo::default() }
}

/// A variant `a` with these settings and nothing configured.
pub(super) fn effective(product: &str, version: &str, settings: &[(&str, &str)]) -> Subject {
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    super::effective(&variant("a", ""), &server(product, version, settings), &Planned::default())
}

/// A build of the product that was asked for its settings. Its version only decides which groups
/// and rows apply to it.
pub(super) fn build(product: &str, version: &str) -> Build {
    let mut answers: BTreeMap<String, Settings> =
        toml::from_str(include_str!("answers.toml")).expect("the answers");
    let settings = answers.remove(product).unwrap_or_else(|| panic!("no answers of {product}"));
    Build { product: product.to_owned(), version: version.to_owned(), settings, ..Build::default() }
}

/// A variant of this build with this option file. Its predicted settings count as read back from a
/// server.
pub(super) fn configured(name: &str, product: &str, version: &str, config: &str) -> Subject {
    let build = build(product, version);
    let mut subject = super::predicted(&variant(name, config), Some(&build), &Planned::default());
    subject.settings_source = super::SettingsSource::Effective;
    subject
}
