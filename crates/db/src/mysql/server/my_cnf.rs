//! What a server's option file sets, as far as dbdyno must know it before the server reads it.

use std::path::{Path, PathBuf};

use super::option_file::{self, Item};
use crate::server::{Base, Error};
use dbdyno_products::Release;
use dbdyno_products::mysql::MARIADB;

/// Settings that a data directory is made with and that a later start cannot change, or without
/// which initialising may fail on this machine (native AIO).
const FIXED_AT_INITIALISATION: &[&str] = &[
    "aria_block_size",
    "innodb_checksum_algorithm",
    "innodb_data_file_path",
    "innodb_data_home_dir",
    "innodb_log_block_size",
    "innodb_log_group_home_dir",
    "innodb_page_size",
    "innodb_undo_directory",
    "innodb_undo_tablespaces",
    "innodb_use_native_aio",
    "lower_case_table_names",
];

/// MySQL 5.5 refuses to start when its redo files have another size; later servers make new ones at
/// start, and there the template stays small without them.
const FIXED_IN_MYSQL_55: &[&str] = &["innodb_log_file_size", "innodb_log_files_in_group"];

/// Settings that put a part of the data elsewhere. An absolute path would outlive the data
/// directory and meet the next block's server with files that are not its own.
const DATA_PATHS: &[&str] = &[
    "aria_log_dir_path",
    "innodb_data_home_dir",
    "innodb_doublewrite_dir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "log_bin",
    "relay_log",
    "rocksdb_datadir",
    "rocksdb_wal_dir",
];

/// Includes within includes, as the servers limit them.
const MAX_DEPTH: usize = 10;

/// The settings of the server's groups, in the order of the file, includes followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MyCnf {
    /// Absolute path of the file; `None` for a server without one.
    pub(super) path: Option<PathBuf>,
    /// Names with underscores, and values.
    pub(super) settings: Vec<(String, Option<String>)>,
}

impl MyCnf {
    /// Reads the groups of `path` that a server of `base` reads: `mysqld`, `server`, `mysqld-8.0`,
    /// `mariadb`, ...
    pub(super) fn read(path: &Path, base: &Base) -> Result<Self, Error> {
        let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
        let absolute = path.canonicalize().map_err(|error| wrong(error.to_string()))?;
        if absolute.extension().is_none() && crashes_without_extension(base) {
            let title = &base.title;
            return Err(wrong(format!("{title} crashes on a name without ending; call the file my.cnf")));
        }
        let mut settings = Vec::new();
        collect(&absolute, &groups(base), MAX_DEPTH, &mut settings)?;
        let my_cnf = Self { path: Some(absolute), settings };
        match my_cnf.outside_path() {
            Some(name) => Err(wrong(format!(
                "{name} is an absolute path; dbdyno makes a fresh data directory for each cell and keeps everything \
                 in it: leave the line out or make it relative"
            ))),
            None => Ok(my_cnf),
        }
    }

    /// Whether an option whose name starts with `prefix` is set (underscores; `loose_` and `skip_`
    /// are ignored).
    pub(super) fn sets(&self, prefix: &str) -> bool {
        self.settings.iter().any(|(name, _)| plain(name).starts_with(prefix))
    }

    /// Whether an option whose name starts with `prefix` has a value that contains `word`.
    pub(super) fn mentions(&self, prefix: &str, word: &str) -> bool {
        let has = |value: &Option<String>| value.as_deref().is_some_and(|value| value.contains(word));
        self.settings.iter().any(|(name, value)| plain(name).starts_with(prefix) && has(value))
    }

    /// The settings that the data directory must be made with, as command line options.
    pub(super) fn initial_options(&self, base: &Base) -> Vec<String> {
        let old = base.product != MARIADB && !base.release.at_least(5, 6);
        let wanted = |name: &str| {
            FIXED_AT_INITIALISATION.contains(&plain(name))
                || (old && FIXED_IN_MYSQL_55.contains(&plain(name)))
        };
        let option = |(name, value): &(String, Option<String>)| match value {
            Some(value) => format!("--{name}={value}"),
            None => format!("--{name}"),
        };
        self.settings.iter().filter(|(name, _)| wanted(name)).map(option).collect()
    }

    fn outside_path(&self) -> Option<&str> {
        let absolute = |value: &Option<String>| value.as_deref().is_some_and(|value| value.starts_with('/'));
        self.settings
            .iter()
            .find(|(name, value)| DATA_PATHS.contains(&plain(name)) && absolute(value))
            .map(|(name, _)| name.as_str())
    }
}

/// See [`crate::Family::native_settings`].
pub(in crate::mysql) fn native_settings(
    base: &Base,
    path: &Path,
) -> Result<Vec<(String, Option<String>)>, Error> {
    Ok(MyCnf::read(path, base)?.settings)
}

/// MySQL 5.5.9 takes the length of an ending that is not there; 5.5.34 does not. Where it was
/// mended was not tried.
fn crashes_without_extension(base: &Base) -> bool {
    !base.is_mariadb() && base.release.at_least(5, 5) && base.release < Release([5, 5, 34])
}

fn plain(name: &str) -> &str {
    let name = name.strip_prefix("loose_").unwrap_or(name);
    name.strip_prefix("skip_").unwrap_or(name)
}

fn groups(base: &Base) -> Vec<String> {
    let Release([major, minor, _]) = base.release;
    let programs: &[&str] = if base.is_mariadb() { &["mysqld", "mariadb", "mariadbd"] } else { &["mysqld"] };
    let mut groups = vec!["server".to_owned()];
    for program in programs {
        groups.push((*program).to_owned());
        groups.push(format!("{program}-{major}.{minor}"));
    }
    groups
}

fn collect(
    path: &Path,
    groups: &[String],
    depth: usize,
    settings: &mut Vec<(String, Option<String>)>,
) -> Result<(), Error> {
    let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
    if depth == 0 {
        return Err(wrong("includes are nested too deeply".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    for item in option_file::parse(&text).map_err(wrong)? {
        match item {
            Item::Setting { group, name, value } if groups.contains(&group) => settings.push((name, value)),
            Item::Setting { .. } => {}
            Item::Include { path, folder: false } => collect(Path::new(&path), groups, depth - 1, settings)?,
            Item::Include { path, folder: true } => {
                for file in option_files_in(Path::new(&path))? {
                    collect(&file, groups, depth - 1, settings)?;
                }
            }
        }
    }
    Ok(())
}

fn option_files_in(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let wrong =
        |error: std::io::Error| Error::OptionFile { path: folder.to_path_buf(), why: error.to_string() };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.extension().is_some_and(|extension| extension == "cnf") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use dbdyno_products::Product;
    use dbdyno_products::mysql::MYSQL;

    use super::*;

    fn read(text: &str, product: &'static Product, version: (u32, u32, u32)) -> Result<MyCnf, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.cnf");
        std::fs::write(&path, text.replace("FOLDER", folder.path().to_str().unwrap())).unwrap();
        std::fs::write(folder.path().join("more.cnf"), "[mysqld]\ninnodb_undo_tablespaces=3\n").unwrap();
        MyCnf::read(&path, &Base::sample(product, version))
    }

    #[test]
    fn only_what_a_data_directory_is_made_with_goes_to_its_making() {
        let text = "[client]\nuser=x\n[mysqld]\ninnodb-page-size=4k\ninnodb_buffer_pool_size=1G\n\
                    innodb_log_file_size=64M\n!include FOLDER/more.cnf\n[mysqld-5.5]\nlower_case_table_names=1\n";
        let options = |version| {
            let base = Base::sample(MYSQL, version);
            read(text, MYSQL, version).unwrap().initial_options(&base).join(" ")
        };
        assert_eq!(options((5, 6, 24)), "--innodb_page_size=4k --innodb_undo_tablespaces=3");
        assert_eq!(
            options((5, 5, 34)),
            "--innodb_page_size=4k --innodb_log_file_size=64M --innodb_undo_tablespaces=3 --lower_case_table_names=1"
        );
    }

    #[test]
    fn groups_of_mariadb_are_read_by_mariadb_only() {
        let text = "[mariadb-10.11]\nssl-cert=x.pem\n";
        assert!(read(text, MARIADB, (10, 11, 5)).unwrap().sets("ssl"));
        assert!(!read(text, MARIADB, (10, 5, 5)).unwrap().sets("ssl"));
        assert!(!read(text, MYSQL, (8, 0, 31)).unwrap().sets("ssl"));
    }

    #[test]
    fn data_outside_the_data_directory_is_refused() {
        let text = "[mysqld]\nloose-innodb_log_group_home_dir = /mnt/redo\n";
        let message = read(text, MYSQL, (8, 0, 31)).unwrap_err().to_string();
        assert!(message.contains("innodb_log_group_home_dir is an absolute path"), "{message}");
        assert!(read("[mysqld]\nlog_bin = binlog\n", MYSQL, (8, 0, 31)).is_ok());
    }

    #[test]
    fn a_name_without_ending_is_refused_where_the_server_would_crash_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("options");
        std::fs::write(&path, "[mysqld]\n").unwrap();
        let read = |version| MyCnf::read(&path, &Base::sample(MYSQL, version));
        let message = read((5, 5, 9)).unwrap_err().to_string();
        assert!(
            message.ends_with("MySQL 5.5.9 crashes on a name without ending; call the file my.cnf"),
            "{message}"
        );
        assert!(read((5, 5, 34)).is_ok() && read((5, 6, 24)).is_ok());
    }

    #[test]
    fn an_absent_file_is_named() {
        let base = Base::sample(MYSQL, (8, 0, 31));
        let message = MyCnf::read(Path::new("/nowhere/my.cnf"), &base).unwrap_err().to_string();
        assert_eq!(message, "option file /nowhere/my.cnf: No such file or directory (os error 2)");
    }
}
