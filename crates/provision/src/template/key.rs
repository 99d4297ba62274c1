//! What a template depends on: the code that makes it, the build, the settings, the user, the surroundings.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::postgres::PgBase;
use crate::{BaseDir, Error};

/// First value and factor of the hash FNV-1a with 64 bits.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The code that makes data directories: a dbdyno that makes them differently uses no template of another one.
const MAKERS: u64 = {
    let mut hash = fnv1a(OFFSET, include_bytes!("../initialise.rs"));
    hash = fnv1a(hash, include_bytes!("../installer.rs"));
    hash = fnv1a(hash, include_bytes!("../command.rs"));
    hash = fnv1a(hash, include_bytes!("../launch.rs"));
    fnv1a(hash, include_bytes!("../postgres/data.rs"))
};

/// Where a build keeps its own libraries, below its base directory and its prefix.
const LIBRARY_DIRS: [&str; 6] =
    ["lib", "lib64", "libs", "lib/private", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];

/// Variables that installers and servers obey when they make files: locale, time zone (`initdb` writes it into
/// `postgresql.conf`), rights of files. So do all that begin with `LC_`.
const VARIABLES: [&str; 6] = ["LANG", "LANGUAGE", "TZ", "TZDIR", "UMASK", "UMASK_DIR"];

/// An option that initialising obeys, and that leaves no trace in what it makes.
const WITHOUT_TRACE: &str = "innodb_use_native_aio";

/// The time zone of this machine, where no variable names one.
const LOCAL_TIME: &str = "/etc/localtime";

/// What one template is for. Whatever makes another data directory makes another key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// Product and version, for people.
    title: String,
    hash: String,
    build: String,
    base_dir: PathBuf,
}

impl Key {
    /// For MariaDB and MySQL, whose data directory is made with `options`.
    ///
    /// # Errors
    /// When the server program cannot be looked at.
    pub(crate) fn of_mysql(base: &BaseDir, options: &[String]) -> Result<Self, Error> {
        let mut files = libraries(base.path(), base.prefix());
        files.extend(base.installer().map(Path::to_path_buf));
        files.extend(base.share_dir().map(|share| files_in(share, &[".sql"])).unwrap_or_default());
        let build = build(&base.version().text, base.program(), files)?;
        let product = base.product().to_string().to_lowercase().replace(' ', "-");
        let options: Vec<String> =
            options.iter().filter(|option| !option.contains(WITHOUT_TRACE)).cloned().collect();
        Ok(Self::new(format!("{product}-{}", base.version()), base.path(), build, &options, None))
    }

    /// For PostgreSQL, whose data directory `user` makes, where that is not the user of this process.
    ///
    /// # Errors
    /// When the server program cannot be looked at.
    pub(crate) fn of_postgres(base: &PgBase, options: &[String], user: Option<&str>) -> Result<Self, Error> {
        let program = base.program();
        let programs = program.parent().unwrap_or(base.path());
        let prefix = programs.parent().unwrap_or(base.path());
        let mut files = libraries(base.path(), prefix);
        files.push(base.installer());
        // Packages have a folder for each major version.
        let packaged = base.path().join("usr/share/postgresql").join(prefix.file_name().unwrap_or_default());
        for share in [prefix.join("share"), prefix.join("share/postgresql"), packaged] {
            files.extend(files_in(&share, &[".bki", ".sql", ".sample", ".description"]));
        }
        let build = build(base.version(), &program, files)?;
        Ok(Self::new(format!("postgresql-{}", base.version()), base.path(), build, options, user))
    }

    fn new(title: String, base_dir: &Path, build: String, options: &[String], user: Option<&str>) -> Self {
        let own = nix::unistd::geteuid();
        let text = format!(
            "{MAKERS:x}\n{}\n{build}\n{own} {}\n{}\n{}",
            base_dir.display(),
            user.unwrap_or_default(),
            surroundings(env::vars_os().filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
            })),
            options.join("\n"),
        );
        Self { title, hash: hex(text.as_bytes()), build, base_dir: base_dir.to_path_buf() }
    }

    /// The template's folder.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.title, self.hash)
    }

    /// All of the key in 16 digits.
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// The files of the build in 16 digits: another number in the same base directory is a build that was made anew.
    pub(super) fn build(&self) -> &str {
        &self.build
    }

    pub(super) fn base_dir(&self) -> &Path {
        &self.base_dir
    }
}

/// Version, program and further files, by their sizes and times of change: these show that a build was made anew in place.
fn build(version: &str, program: &Path, mut files: Vec<PathBuf>) -> Result<String, Error> {
    fs::metadata(program).map_err(Error::io("cannot look at", program))?;
    files.push(program.to_path_buf());
    files.sort();
    let lines = files.iter().filter_map(|path| {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(format!("{} {} {}.{}\n", path.display(), file.len(), file.mtime(), file.mtime_nsec()))
    });
    Ok(hex(format!("{version}\n{}", lines.collect::<String>()).as_bytes()))
}

fn libraries(base_dir: &Path, prefix: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        LIBRARY_DIRS.iter().flat_map(|name| [base_dir.join(name), prefix.join(name)]).collect();
    folders.sort();
    folders.dedup();
    folders.iter().flat_map(|folder| files_in(folder, &[".so", ".so."])).collect()
}

/// Entries of `folder` whose names end in one of `endings`, or contain it if it ends in a dot.
fn files_in(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let is_wanted = |name: &str| {
        endings.iter().any(|ending| match ending.ends_with('.') {
            true => name.contains(ending),
            false => name.ends_with(ending),
        })
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_wanted))
        .map(|entry| entry.path())
        .collect()
}

/// The environment as far as it shapes data, and the machine's time zone.
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

fn hex(bytes: &[u8]) -> String {
    format!("{:016x}", fnv1a(OFFSET, bytes))
}

/// FNV-1a, which goes on from `hash`: the same in each release of the compiler, unlike the standard library's.
const fn fnv1a(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(PRIME);
        at += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(OFFSET, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(OFFSET, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(OFFSET, b"foobar"), 0x8594_4171_f739_67e8);
    }

    fn touch(path: &Path, text: &str) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        path.to_path_buf()
    }

    #[test]
    fn a_build_is_another_one_when_its_program_a_script_or_a_library_changes() {
        let folder = tempfile::tempdir().unwrap();
        let program = touch(&folder.path().join("bin/mysqld"), "1");
        let script = touch(&folder.path().join("share/mysql_system_tables.sql"), "1");
        let library = touch(&folder.path().join("lib/private/libssl.so.3"), "1");
        touch(&folder.path().join("lib/private/notes.txt"), "1");
        let build = || {
            let mut files = libraries(folder.path(), folder.path());
            files.extend(files_in(&folder.path().join("share"), &[".sql"]));
            assert_eq!(files.len(), 2, "{files:?}");
            super::build("8.0.31", &program, files).unwrap()
        };
        let mut known = vec![build()];
        for path in [&program, &script, &library] {
            fs::write(path, "longer").unwrap();
            known.push(build());
        }
        assert_eq!(build(), known[3], "nothing has changed");
        known.dedup();
        assert_eq!(known.len(), 4, "{known:?}");
        assert!(super::build("8.0.31", Path::new("/nowhere/mysqld"), Vec::new()).is_err());
    }

    #[test]
    fn options_the_user_and_the_base_directory_make_another_key() {
        let key = |base_dir: &str, options: &[&str], user| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            Key::new("mysql-8.0.31".to_owned(), Path::new(base_dir), "build".to_owned(), &options, user)
        };
        let plain = key("/s", &[], None);
        assert_eq!(plain, key("/s", &[], None));
        assert_eq!(plain.name(), format!("mysql-8.0.31-{}", plain.hash()));
        for other in [
            key("/t", &[], None),
            key("/s", &["--innodb_page_size=4k"], None),
            key("/s", &[], Some("nobody")),
        ] {
            assert_ne!(plain.hash(), other.hash());
        }
    }

    #[test]
    fn how_files_are_written_makes_no_other_template() {
        let folder = tempfile::tempdir().unwrap();
        touch(&folder.path().join("bin/mysqld"), "1");
        let base = BaseDir::sample_in(folder.path(), crate::Product::MariaDb, (10, 11, 5));
        let hash = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            Key::of_mysql(&base, &options).unwrap().hash().to_owned()
        };
        assert_eq!(hash(&["--innodb_use_native_aio=0"]), hash(&[]));
        assert_ne!(hash(&["--innodb_use_native_aio=0", "--innodb_page_size=8k"]), hash(&[]));
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
