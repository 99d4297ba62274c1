//! A variant's settings before and after it runs: read back from its server, or predicted from what
//! its build reported and what was configured.

use dbdyno_products::{
    ConfiguredLine, FamilyFacts, Foreign, KNOWN, Knowledge, Planned, Product, Release, Settings, Subject,
    size, switch,
};
use dbdyno_record::{ServerInfo, VariantInfo};

/// What is known about a server before it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Build {
    /// `MariaDB`, `MySQL`, `Percona Server`, `PostgreSQL`, `SQLite`; empty where it is not known.
    pub product: String,
    /// The version, such as `10.11.19`.
    pub version: String,
    /// The settings that it reported when it was started without an option file; empty where it was
    /// not asked.
    pub settings: Settings,
    /// The command that asks it for its settings.
    pub ask: String,
}

/// A variant whose settings were read back from its server.
pub fn effective(variant: &VariantInfo, server: &ServerInfo, planned: &Planned) -> Subject {
    let mut subject = bare(variant, &server.product, &server.version, planned);
    let of_product = |speaks: &String| Foreign { name: server.product.clone(), speaks: speaks.clone() };
    subject.foreign = server.speaks.as_ref().map(of_product);
    subject.settings = in_words(subject.family, server.settings.clone());
    subject.session = server.session.clone();
    subject.knowledge = match (&subject.foreign, subject.settings.is_empty()) {
        (Some(_), _) => Knowledge::Foreign,
        (None, true) => Knowledge::Unknown,
        (None, false) => Knowledge::Effective,
    };
    subject
}

/// A variant that has not run. Its settings are those that its build reported, and over them those
/// in its configuration. `config` of `variant` is the text of its configuration; an option file
/// rendered from intents will do.
///
/// A build that was not asked has only what is configured. That is enough for
/// [`super::buffer_pool_bytes`] and for no comparison.
pub fn predicted(variant: &VariantInfo, build: Option<&Build>, planned: &Planned) -> Subject {
    let Some(build) = build else { return bare(variant, "", "", planned) };
    let mut subject = bare(variant, &build.product, &build.version, planned);
    subject.settings = in_words(subject.family, build.settings.clone());
    if build.settings.is_empty() {
        subject.ask.clone_from(&build.ask);
        let read = subject.configured.iter().filter(|line| line.is_read);
        subject.settings.extend(read.map(|line| (line.name.clone(), String::new())));
    } else {
        subject.knowledge = Knowledge::Predicted;
    }
    overlay(&mut subject.settings, &subject.configured, subject.family);
    subject
}

fn bare(variant: &VariantInfo, product: &str, version: &str, planned: &Planned) -> Subject {
    let product = Product::named(product);
    let family = product.family();
    let version = Release::parse(version).unwrap_or_default();
    Subject {
        name: variant.name.clone(),
        family,
        product,
        version,
        engine: family.default_engine.map(|_| family.engine_of(&planned.variant)),
        settings: Settings::new(),
        session: Settings::new(),
        configured: (family.lines)(&variant.config, product, version),
        knowledge: Knowledge::Unknown,
        ask: String::new(),
        tls: (!family.is_embedded()).then(|| planned.asks_for_tls()),
        planned: planned.clone(),
        is_external: variant.external,
        foreign: None,
    }
}

/// Settings under the names that the product's configuration uses.
fn in_words(family: &FamilyFacts, mut settings: Settings) -> Settings {
    if let Some(word) = family.word {
        settings.iter_mut().for_each(|(name, value)| *value = word(name, value));
    }
    settings
}

/// Lays what was configured over the settings that a server reported, in the form in which it would
/// report them. Settings that follow a configured one in a way that differs from build to build are
/// removed.
fn overlay(settings: &mut Settings, configured: &[ConfiguredLine], family: &FamilyFacts) {
    let asked = settings.clone();
    let mut names = Vec::new();
    for line in configured.iter().filter(|line| line.is_read) {
        if let Some((name, wanted)) = line.setting(settings) {
            let shown = as_shown(settings.get(&name).map_or("", String::as_str), &wanted);
            settings.insert(name.clone(), shown);
            names.push(name);
        }
    }
    for (follower, leaders) in &KNOWN.follows {
        if !names.contains(follower) && leaders.iter().any(|leader| names.contains(leader)) {
            settings.remove(follower);
        }
    }
    (family.follow)(settings, &asked);
}

/// The wanted value in the form in which the server writes its current one: switches as `ON`, sizes
/// in bytes.
fn as_shown(now: &str, wanted: &str) -> String {
    let is_switch = switch(now).is_some() && now.parse::<f64>().is_err();
    if let (true, Some(is_on)) = (is_switch, switch(wanted)) {
        let word = if is_on { "ON" } else { "OFF" };
        let is_small = now.chars().all(char::is_lowercase);
        return if is_small { word.to_ascii_lowercase() } else { word.to_owned() };
    }
    match (now.parse::<i64>(), size(wanted)) {
        (Ok(_), Some(bytes)) => bytes.to_string(),
        _ => wanted.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parity::testing::configured;

    #[test]
    fn what_is_configured_is_shown_as_the_server_would_show_it() {
        let text = "[mysqld]\ninnodb_buffer_pool_size=200M\nskip-log-bin\ninnodb_io_capacity=3000\n\
                    character_set_server=latin1\nperformance_schema=0\n";
        let settings = configured("a", "MySQL", "8.0.31", text).settings;
        let shown = |name: &str| settings.get(name).map_or("not known", String::as_str);
        let names = ["innodb_buffer_pool_size", "log_bin", "collation_server", "performance_schema"];
        assert_eq!(names.map(shown), ["268435456", "OFF", "latin1_swedish_ci", "OFF"]);
        let followers = ["innodb_io_capacity_max", "character_set_database", "collation_database"];
        assert_eq!(followers.map(shown), ["not known"; 3]);
        let settings = configured("a", "PostgreSQL", "15.1", "fsync = 0\nshared_buffers = 65536").settings;
        assert_eq!((settings["fsync"].as_str(), settings["shared_buffers"].as_str()), ("off", "536870912"));
    }

    #[test]
    fn of_a_build_that_was_not_asked_only_what_is_configured_is_known() {
        let build = Build { product: "MySQL".to_owned(), version: "8.0.31".to_owned(), ..Build::default() };
        let variant = crate::parity::testing::variant("a", "[mysqld]\ninnodb_buffer_pool_size = 1G\n");
        let subject = predicted(&variant, Some(&build), &Planned::default());
        assert_eq!((subject.knowledge.clone(), subject.settings.len()), (Knowledge::Unknown, 1));
        assert_eq!(crate::parity::buffer_pool_bytes(&subject), Some((1 << 30, true)));
        let pool = crate::parity::classes().iter().find(|class| class.id == "buffer-pool").unwrap();
        assert_eq!(pool.of(&subject), None, "it is not compared");
    }
}
