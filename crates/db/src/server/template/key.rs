//! The key that identifies a template: the code that makes it, the server build, the settings, the
//! user and the environment.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::server::{Base, Error};

/// Source code that makes data directories for all products. A dbdyno that makes them differently
/// must not use another version's templates.
const MAKERS: [&str; 2] = [include_str!("../installer.rs"), include_str!("../launch.rs")];

/// Variables that installers and servers follow when they make files: locale, time zone (`initdb`
/// writes it into `postgresql.conf`) and file permissions. All variables that begin with `LC_`
/// count too.
const VARIABLES: [&str; 6] = ["LANG", "LANGUAGE", "TZ", "TZDIR", "UMASK", "UMASK_DIR"];

/// This machine's time zone, which applies when no variable names one.
const LOCAL_TIME: &str = "/etc/localtime";

/// What one template is for. Anything that changes the data directory changes the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// Product and version, for people.
    title: String,
    /// Hash over all parts of the key, in 16 digits.
    pub(crate) hash: String,
}

impl Key {
    /// Makes the key for the build `base`, for which the product's code `makers` makes a data
    /// directory with `options`. The key includes `user` where the server does not run as this
    /// process's user.
    pub(crate) fn new(
        base: &Base,
        makers: &str,
        options: &[String],
        user: Option<&str>,
    ) -> Result<Self, Error> {
        let title = base.title.to_lowercase().replace(' ', "-");
        let build = build(&title, &base.program, base.installer.as_deref())?;
        Ok(Self::of(&title, &base.path, &format!("{makers}\n{build}"), options, user))
    }

    fn of(title: &str, base_dir: &Path, made_by: &str, options: &[String], user: Option<&str>) -> Self {
        let own = nix::unistd::geteuid();
        let text = format!(
            "{}\n{}\n{made_by}\n{own} {}\n{}\n{}",
            MAKERS.concat(),
            base_dir.display(),
            user.unwrap_or_default(),
            surroundings(env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
            })),
            options.join("\n"),
        );
        let hash = Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self { title: title.to_owned(), hash }
    }

    /// Name of the template's folder.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.title, self.hash)
    }
}

/// Version, server program and installer, by size and modification time. These show that a build
/// was replaced in place.
fn build(version: &str, program: &Path, installer: Option<&Path>) -> Result<String, Error> {
    fs::metadata(program).map_err(Error::io("cannot look at", program))?;
    let mut text = version.to_owned();
    for path in [Some(program), installer].into_iter().flatten() {
        let Ok(file) = fs::metadata(path) else { continue };
        text.push_str(&format!("\n{} {} {}.{}", path.display(), file.len(), file.mtime(), file.mtime_nsec()));
    }
    Ok(text)
}

/// The environment variables that shape the data, and the machine's time zone.
fn surroundings(variables: impl Iterator<Item = (String, String)>) -> String {
    let mut lines: Vec<String> = variables
        .filter(|(name, _)| VARIABLES.contains(&name.as_str()) || name.starts_with("LC_"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    lines.sort();
    let zone = fs::canonicalize(LOCAL_TIME).map(|path| path.display().to_string()).unwrap_or_default();
    let bytes = fs::metadata(LOCAL_TIME).map_or(0, |file| file.len());
    lines.push(format!("{LOCAL_TIME} {zone} {bytes}"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn touch(path: &Path, text: &str) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        path.to_path_buf()
    }

    #[test]
    fn a_build_is_another_one_when_its_program_or_its_installer_changes() {
        let folder = tempfile::tempdir().unwrap();
        let program = touch(&folder.path().join("bin/mysqld"), "1");
        let installer = touch(&folder.path().join("scripts/mysql_install_db"), "1");
        let build = || super::build("8.0.31", &program, Some(&installer)).unwrap();
        let mut known = vec![build()];
        for path in [&program, &installer] {
            fs::write(path, "longer").unwrap();
            known.push(build());
        }
        assert_eq!(build(), known[2], "nothing has changed");
        known.dedup();
        assert_eq!(known.len(), 3, "{known:?}");
        assert!(super::build("8.0.31", Path::new("/nowhere/mysqld"), None).is_err());
    }

    #[test]
    fn options_the_user_and_the_base_directory_make_another_key() {
        let key = |base_dir: &str, options: &[&str], user| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            Key::of("mysql-8.0.31", Path::new(base_dir), "build", &options, user)
        };
        let plain = key("/s", &[], None);
        assert_eq!(plain, key("/s", &[], None));
        assert_eq!(plain.name(), format!("mysql-8.0.31-{}", plain.hash));
        for other in [
            key("/t", &[], None),
            key("/s", &["--innodb_page_size=4k"], None),
            key("/s", &[], Some("nobody")),
        ] {
            assert_ne!(plain.hash, other.hash);
        }
    }

    #[test]
    fn of_the_environment_only_what_shapes_data_counts() {
        let with = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            surroundings(pairs.collect::<Vec<_>>().into_iter())
        };
        let plain = with(&[("TZ", "UTC"), ("LC_ALL", "C")]);
        assert_eq!(plain, with(&[("LC_ALL", "C"), ("HOME", "/root"), ("TZ", "UTC")]));
        assert_ne!(plain, with(&[("TZ", "Europe/Berlin"), ("LC_ALL", "C")]));
        assert_ne!(plain, with(&[("TZ", "UTC")]));
        assert!(plain.contains("/etc/localtime "), "{plain}");
    }
}
