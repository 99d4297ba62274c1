//! Reads the kernel's files of a machine, below a root that tests may move. What does not exist is
//! `None` or empty.

use std::path::PathBuf;

/// The files below a root folder. The root `/` is this machine.
#[derive(Debug, Clone)]
pub(crate) struct HostFiles {
    root: PathBuf,
}

impl HostFiles {
    pub(crate) fn here() -> Self {
        Self { root: PathBuf::from("/") }
    }

    #[cfg(test)]
    pub(crate) fn below(root: &std::path::Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    /// Returns a file's text without the white space around it.
    pub(crate) fn line(&self, path: &str) -> Option<String> {
        Some(self.text(path)?.trim().to_owned())
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.line(path)?.parse().ok()
    }

    /// Returns a value of `/proc/meminfo` in bytes. There kB means 1024 bytes.
    pub(crate) fn meminfo(&self, key: &str) -> Option<u64> {
        let text = self.text("/proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    }

    /// Returns the word in brackets among several: `always [madvise] never`.
    pub(crate) fn chosen(&self, path: &str) -> Option<String> {
        let line = self.line(path)?;
        let (_, rest) = line.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    }

    /// Returns the names in a folder, sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }
}

/// Makes a machine from a few files, for tests of code that reads them.
#[cfg(test)]
pub(crate) fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, HostFiles) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let machine = HostFiles::below(folder.path());
    for (path, text) in files {
        let path = machine.path(path);
        std::fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    (folder, machine)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn files_are_looked_for_below_the_root_and_absent_ones_are_nothing() {
        let (_folder, files) = machine(&[("/sys/a/mode", "x [y] z\n"), ("/proc/n", " 12\n")]);
        assert_eq!((files.chosen("/sys/a/mode").as_deref(), files.number("/proc/n")), (Some("y"), Some(12)));
        assert_eq!((files.line("/proc/absent"), files.names("/sys")), (None, vec!["a".to_owned()]));
        assert!(files.has("/sys/a") && !files.has("/sys/b"));
        assert_eq!(HostFiles::here().path("/proc/loadavg"), Path::new("/proc/loadavg"));
    }
}
