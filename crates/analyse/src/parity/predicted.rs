//! How the settings of a variant come to be known: read back from its server, or predicted from what
//! its build answered when it was got and what was configured.

use dbdyno_record::{ServerInfo, VariantInfo};

use super::configured::ConfiguredLine;
use super::products;
use super::remarks::Foreign;
use super::settings::KNOWN;
use super::subject::{Build, Knowledge, Planned, Product, Settings, Subject};
use super::value;

impl Subject {
    /// A variant whose server was read back.
    pub fn effective(variant: &VariantInfo, server: &ServerInfo, planned: &Planned) -> Self {
        let mut subject = Self::bare(variant, &server.product, &server.version, planned);
        let of_product = |speaks: &String| Foreign { name: server.product.clone(), speaks: speaks.clone() };
        subject.foreign = server.speaks.as_ref().map(of_product);
        subject.settings = in_words(subject.product, server.settings.clone());
        subject.session = server.session.clone();
        subject.knowledge = match (&subject.foreign, subject.settings.is_empty()) {
            (Some(_), _) => Knowledge::Foreign,
            (None, true) => Knowledge::Unknown,
            (None, false) => Knowledge::Effective,
        };
        subject
    }

    /// A variant that has not run: its settings are those that its build answered with, and over them
    /// those of its configuration. `config` of `variant` is the text of its configuration; an option
    /// file rendered from intents will do.
    ///
    /// Of a build that was not asked only what is configured is there, which is enough for
    /// [`super::buffer_pool_bytes`] and for no comparison.
    pub fn predicted(variant: &VariantInfo, build: Option<&Build>, planned: &Planned) -> Self {
        let Some(build) = build else { return Self::bare(variant, "", "", planned) };
        let mut subject = Self::bare(variant, &build.product, &build.version, planned);
        subject.settings = in_words(subject.product, build.settings.clone());
        if build.settings.is_empty() {
            subject.ask.clone_from(&build.ask);
            let read = subject.configured.iter().filter(|line| line.is_read);
            subject.settings.extend(read.map(|line| (line.name.clone(), String::new())));
        } else {
            subject.knowledge = Knowledge::Predicted;
        }
        overlay(&mut subject.settings, &subject.configured, subject.product);
        subject
    }

    fn bare(variant: &VariantInfo, product: &str, version: &str, planned: &Planned) -> Self {
        let product = products::of(product);
        let version = parts(version);
        let engine = |default| planned.variant.engine.as_deref().unwrap_or(default).to_ascii_lowercase();
        Self {
            name: variant.name.clone(),
            product,
            version,
            engine: product.engine.map(engine),
            settings: Settings::new(),
            session: Settings::new(),
            configured: (product.lines)(&variant.config, product, version),
            knowledge: Knowledge::Unknown,
            ask: String::new(),
            tls: product.has_tls.then(|| planned.asks_for_tls()),
            planned: planned.clone(),
            is_external: variant.external,
            foreign: None,
        }
    }
}

/// Settings in the words of the product's configuration.
fn in_words(product: &Product, mut settings: Settings) -> Settings {
    if let Some(word) = product.word {
        settings.iter_mut().for_each(|(name, value)| *value = word(name, value));
    }
    settings
}

/// `10.1.23` as three numbers; of `19rc1` the first.
pub(super) fn parts(text: &str) -> [u32; 3] {
    let mut parts = [0; 3];
    for (part, number) in parts.iter_mut().zip(text.split('.')) {
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        *part = number[..digits].parse().unwrap_or(0);
    }
    parts
}

/// Lays what was configured over the settings that a server answered with, as it would show it. What
/// follows a configured setting in a way that differs from build to build is taken out.
fn overlay(settings: &mut Settings, configured: &[ConfiguredLine], product: &Product) {
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
    (product.follow)(settings, &asked);
}

/// Written as the server writes the value that it has now: switches as `ON`, sizes in bytes.
fn as_shown(now: &str, wanted: &str) -> String {
    let is_switch = value::switch(now).is_some() && now.parse::<f64>().is_err();
    if let (true, Some(is_on)) = (is_switch, value::switch(wanted)) {
        let word = if is_on { "ON" } else { "OFF" };
        let is_small = now.chars().all(char::is_lowercase);
        return if is_small { word.to_ascii_lowercase() } else { word.to_owned() };
    }
    match (now.parse::<i64>(), value::size(wanted)) {
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
        let subject = Subject::predicted(&variant, Some(&build), &Planned::default());
        assert_eq!((subject.knowledge.clone(), subject.settings.len()), (Knowledge::Unknown, 1));
        assert_eq!(crate::parity::buffer_pool_bytes(&subject), Some((1 << 30, true)));
        let pool = crate::parity::classes().iter().find(|class| class.id == "buffer-pool").unwrap();
        assert_eq!(pool.of(&subject), None, "it is not compared");
    }
}
