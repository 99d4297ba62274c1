//! PostgreSQL data directories: `initdb` makes one for each build and its initial options. It is
//! then copied, given to the user that the server runs as, and configured.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use dbdyno_products::postgres::POSTGRESQL;
use nix::unistd::{User, chown};

use crate::server::launch::{Installer, find_in_path};
use crate::server::template::{Template, TemplateKey};
use crate::server::{Base, Error};

/// Options for `initdb`. The superuser `postgres` needs no password, because the socket is in a
/// folder that no other user may enter. The encoding is UTF-8 and texts are sorted by bytes, as for
/// every product. Nothing is synced, because the copy is.
const INITDB: [&str; 8] = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"];

/// The template for `base` that is made with the options `more`.
pub(super) fn template(
    base: &Base,
    more: &[String],
    runner: &Runner,
    template_dir: &Path,
    cancel: &AtomicBool,
) -> Result<Template, Error> {
    let initdb: Vec<String> = INITDB.iter().map(|option| (*option).to_owned()).chain(more.to_vec()).collect();
    // The key includes the user who made the template, because that user owns it.
    let key = TemplateKey::new(base, include_str!("data.rs"), &initdb, runner.name())?;
    Template::ready(&key, template_dir, cancel, |work| initialise(base, &initdb, runner, work, cancel))
}

/// Makes the data directory `data` in the empty folder `work`. The log is next to it.
fn initialise(
    base: &Base,
    initdb: &[String],
    runner: &Runner,
    work: &Path,
    cancel: &AtomicBool,
) -> Result<(), Error> {
    let data_dir = work.join("data");
    let log = work.join("initialise.log");
    runner.own(work)?;
    let mut line = Vec::new();
    if let Some(setpriv) = runner.setpriv() {
        line.push(setpriv.display().to_string());
        line.extend(runner.options());
        line.push("--".to_owned());
    }
    line.extend(base.installer.iter().map(|initdb| initdb.display().to_string()));
    line.extend(["-D".to_owned(), data_dir.display().to_string()]);
    line.extend_from_slice(initdb);
    Installer { title: base.title.clone(), log: &log, folder: work, tmp_dir: work, cancel }.run(&line, "")
}

/// Fills `data_dir` with a fresh copy of `template` and adds the plan's settings. An existing data
/// directory must belong to dbdyno.
pub(super) fn make(
    data_dir: &Path,
    template: &Template,
    conf: &str,
    runner: &Runner,
    cancel: &AtomicBool,
) -> Result<(), Error> {
    template.copy_to(data_dir, cancel)?;
    // The server insists on this owner and on the right permissions.
    runner.own(data_dir)?;
    let cannot = || Error::io("cannot close to others", data_dir);
    fs::set_permissions(data_dir, fs::Permissions::from_mode(0o700)).map_err(cannot())?;
    let file = data_dir.join("postgresql.conf");
    let text = format!("\n# From the plan:\n{conf}\n");
    let mut opened =
        fs::File::options().append(true).open(&file).map_err(Error::io("cannot open", file.clone()))?;
    opened.write_all(text.as_bytes()).map_err(Error::io("cannot write", file.clone()))
}

/// Users to run as. The first that exists on the machine is chosen.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// Numbers of the capabilities for reading everything that root may read, and for passing that
/// right on.
const DAC_READ_SEARCH: u32 = 2;
const SETPCAP: u32 = 8;

/// The operating system user that PostgreSQL runs as, which is never root, and the program that
/// switches to it.
///
/// When dbdyno is root, PostgreSQL runs as user `postgres`, or as `nobody` where that user does not
/// exist. This user owns the data directory. A folder above it or above the base directory may be
/// closed to this user. Root's home directory is closed, and by default the servers folder is in
/// it. In that case the server gets the right to read everything that root may read
/// (`CAP_DAC_READ_SEARCH`), and a note says so.
#[derive(Debug, Clone)]
pub(super) struct Runner {
    /// The other user; `None` for this process's own user.
    other: Option<User>,
    setpriv: Option<PathBuf>,
    /// A folder that is closed to the other user.
    closed: Option<PathBuf>,
}

impl Runner {
    /// Chooses the user for a server that needs all of `paths`. For a path that does not exist yet,
    /// its parents count.
    pub(super) fn choose(paths: &[&Path]) -> Result<Self, Error> {
        let setpriv = find_in_path("setpriv");
        if !nix::unistd::geteuid().is_root() {
            return Ok(Self { other: None, setpriv, closed: None });
        }
        let no_user = |why: String| Error::NoUser { product: POSTGRESQL.name, why };
        if setpriv.is_none() {
            return Err(no_user("needs setpriv (package util-linux), which is not there".to_owned()));
        }
        let other = CANDIDATES.iter().find_map(|name| User::from_name(name).ok().flatten());
        let other = other.ok_or_else(|| no_user(format!("knows none of {}", CANDIDATES.join(", "))))?;
        let closed = paths.iter().find_map(|path| first_closed_folder(&other, path));
        if let Some(folder) = &closed
            && !may_hand_on_reading()
        {
            return Err(no_user(format!(
                "has user {}, who cannot enter {}; choose other folders (DBDYNO_SERVERS, host.data_dir, TMPDIR), or \
                 open this one: chmod o+x",
                other.name,
                folder.display()
            )));
        }
        Ok(Self { other: Some(other), setpriv, closed })
    }

    /// The program through which the server is started.
    pub(super) fn setpriv(&self) -> Option<&Path> {
        self.setpriv.as_deref()
    }

    /// Options for `setpriv` that make the server run as the chosen user.
    pub(super) fn options(&self) -> Vec<String> {
        let Some(User { uid, gid, .. }) = &self.other else { return Vec::new() };
        let mut options =
            vec![format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".to_owned()];
        if self.closed.is_some() {
            // The last option is needed for access(2), with which the server looks for its own
            // program. It would not see the capability otherwise.
            options.extend(
                [
                    "--inh-caps=+dac_read_search",
                    "--ambient-caps=+dac_read_search",
                    "--securebits=+no_setuid_fixup",
                ]
                .map(str::to_owned),
            );
        }
        options
    }

    /// Gives `path` to the chosen user.
    pub(super) fn own(&self, path: &Path) -> Result<(), Error> {
        match &self.other {
            Some(User { uid, gid, .. }) => chown(path, Some(*uid), Some(*gid))
                .map_err(|errno| Error::io("cannot change the owner of", path)(errno.into())),
            None => Ok(()),
        }
    }

    /// The user's name, unless it is this process's user. It is part of a template's key.
    pub(super) fn name(&self) -> Option<&str> {
        self.other.as_ref().map(|other| other.name.as_str())
    }

    /// Notes on the user for the reader.
    pub(super) fn notes(&self) -> Vec<String> {
        let Some(other) = &self.other else { return Vec::new() };
        let mut note = format!("the server runs as user {}, as PostgreSQL does not run as root", other.name);
        if let Some(folder) = &self.closed {
            note.push_str(&format!(
                "; it may read what root may (CAP_DAC_READ_SEARCH), because {} is closed to that user",
                folder.display()
            ));
        }
        vec![note]
    }
}

/// The first folder above `path` that `user` may not enter. Access control lists are ignored.
fn first_closed_folder(user: &User, path: &Path) -> Option<PathBuf> {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
    folders.reverse();
    folders.into_iter().find(|folder| !may_enter(user, folder)).map(Path::to_path_buf)
}

fn may_enter(user: &User, folder: &Path) -> bool {
    // dbdyno makes a folder that does not exist yet, and makes it open.
    let Ok(metadata) = std::fs::metadata(folder) else { return true };
    let bit = if metadata.uid() == user.uid.as_raw() {
        0o100
    } else if metadata.gid() == user.gid.as_raw() {
        0o010
    } else {
        0o001
    };
    metadata.mode() & bit != 0
}

/// Whether this process has the right to read everything and may pass it to a child. Containers
/// often lack it.
fn may_hand_on_reading() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
    };
    let needed = 1 << DAC_READ_SEARCH | 1 << SETPCAP;
    set("CapEff:") & needed == needed && set("CapBnd:") & 1 << DAC_READ_SEARCH != 0
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use nix::unistd::{Gid, Uid};

    use super::*;

    fn stranger() -> User {
        let root = User::from_uid(Uid::from_raw(0)).unwrap().unwrap();
        let (uid, gid) = (Uid::from_raw(4_000_001), Gid::from_raw(4_000_001));
        User { name: "stranger".to_owned(), uid, gid, ..root }
    }

    #[test]
    fn the_first_closed_folder_on_the_way_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o711)).unwrap();
        let closed = || first_closed_folder(&stranger(), &inner.join("data"));
        assert_eq!(closed(), None);
        std::fs::set_permissions(folder.path().join("a"), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(closed(), Some(folder.path().join("a")));
    }

    #[test]
    fn folders_that_do_not_exist_yet_do_not_close_the_way() {
        assert_eq!(first_closed_folder(&stranger(), Path::new("/nonesuch/a/b")), None);
    }

    #[test]
    fn the_right_to_read_is_handed_on_only_when_a_folder_is_closed() {
        let runner = |closed: Option<&str>| Runner {
            other: Some(stranger()),
            setpriv: Some("/usr/bin/setpriv".into()),
            closed: closed.map(PathBuf::from),
        };
        let open = runner(None).options().join(" ");
        assert_eq!(open, "--reuid=4000001 --regid=4000001 --clear-groups");
        let closed = runner(Some("/root"));
        assert!(closed.options().join(" ").contains("--ambient-caps=+dac_read_search"));
        insta::assert_snapshot!(closed.notes().join("\n"), @"the server runs as user stranger, as PostgreSQL does not run as root; it may read what root may (CAP_DAC_READ_SEARCH), because /root is closed to that user");
        let same = Runner { other: None, setpriv: None, closed: None };
        assert!(same.options().is_empty() && same.notes().is_empty());
    }
}
