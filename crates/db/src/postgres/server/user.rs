//! The user that PostgreSQL runs as: never root.
//!
//! When dbdyno is root, PostgreSQL runs as user `postgres`, or as `nobody` where there is none.
//! That user owns the data directory. Folders on the way to it, or to the base directory, may be
//! closed to that user: root's runtime dir is, and the servers folder is there by default. Then the server
//! gets the right to read what root may read (`CAP_DAC_READ_SEARCH`), and the run says so.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dbdyno_products::postgres::POSTGRESQL;
use nix::unistd::{User, chown};

use crate::server::Error;
use crate::server::launch::find_in_path;

/// Users to run as, the first that the machine has.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// Capabilities by their number: to read what root may read, and to hand that on.
const DAC_READ_SEARCH: u32 = 2;
const SETPCAP: u32 = 8;

/// Who the server is, and through what it is started.
#[derive(Debug, Clone)]
pub(super) struct Runner {
    /// `None`: the user of this process.
    other: Option<User>,
    setpriv: Option<PathBuf>,
    /// A folder that is closed to the other user.
    closed: Option<PathBuf>,
}

impl Runner {
    /// Chooses the user for a server that needs all of `paths`; those that do not exist yet count
    /// by their parents.
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

    /// Its options that make the server the chosen user.
    pub(super) fn options(&self) -> Vec<String> {
        let Some(User { uid, gid, .. }) = &self.other else { return Vec::new() };
        let mut options =
            vec![format!("--reuid={uid}"), format!("--regid={gid}"), "--clear-groups".to_owned()];
        if self.closed.is_some() {
            // Without the last one access(2), by which the server looks for its own program, would
            // not see the right.
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

    /// Hands `path` over to the chosen user.
    pub(super) fn own(&self, path: &Path) -> Result<(), Error> {
        match &self.other {
            Some(User { uid, gid, .. }) => chown(path, Some(*uid), Some(*gid))
                .map_err(|errno| Error::io("cannot change the owner of", path)(errno.into())),
            None => Ok(()),
        }
    }

    /// Name of the user, if it is not this process's: what a template is made for.
    pub(super) fn name(&self) -> Option<&str> {
        self.other.as_ref().map(|other| other.name.as_str())
    }

    /// What a reader of the run should know.
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

/// The first folder above `path` that `user` may not enter. Access control lists are not looked at.
fn first_closed_folder(user: &User, path: &Path) -> Option<PathBuf> {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
    folders.reverse();
    folders.into_iter().find(|folder| !may_enter(user, folder)).map(Path::to_path_buf)
}

fn may_enter(user: &User, folder: &Path) -> bool {
    // One that is not there yet is made by us, and open.
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

/// Whether this process has the right to read everything and may give it to a child; containers
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
