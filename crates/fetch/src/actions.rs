//! The actions that change a servers folder: get, add and remove a server. A lock lets only one
//! dbdyno at a time change the folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use dbdyno_db::server::{Base, list};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::build::build_name;
use crate::files::{self, Catalogue, Entry, Partial, Source, check_name};
use crate::scratch::probe;
use crate::{Error, ProbeAnswer, ServerEntry, ServerOrigin, inventory};

/// Puts the server for `entry` into `servers_dir/NAME`, probes it and stores its answers in its
/// server entry. An existing server is not fetched again. It is probed only if its current program
/// was not probed before. `log` gets one sentence per action that takes a while. After an error the
/// fetched files are removed, but a server that existed before stays.
pub fn get(
    entry: &Entry,
    servers_dir: &Path,
    cancel: &AtomicBool,
    log: &mut dyn FnMut(&str),
) -> Result<ServerEntry, Error> {
    let locked = Locked::open(servers_dir, cancel, log)?;
    let folder = &locked.path;
    let server_dir = folder.join(&entry.name);
    let server_entry = ServerEntry::read(folder, &entry.name)?;
    let is_there = Base::is_in(&server_dir);
    if !is_there && fs::symlink_metadata(&server_dir).is_ok() {
        let why = format!("{} exists but holds no server: remove it", server_dir.display());
        return Err(Error::Unfetchable { name: entry.name.clone(), why });
    }
    let server_entry = match (is_there, server_entry) {
        (true, Some(server_entry)) if server_entry.current_answer(&server_dir).is_some() => {
            return Ok(server_entry);
        }
        (true, Some(server_entry)) => server_entry,
        (true, None) => {
            let source = "found in the servers folder".to_owned();
            ServerEntry { origin: ServerOrigin::Found, source, answer: None, build: None }
        }
        (false, _) => fetch_or_link(entry, folder, cancel, log)?,
    };
    log(&format!("{}: starting it once to read its abilities", entry.name));
    let asked = if cancel.load(Ordering::Relaxed) {
        Err(Error::Cancelled { what: format!("getting {}", entry.name) })
    } else {
        first_probe(entry, &server_dir)
    };
    keep(folder, &entry.name, server_entry, asked, !is_there)
}

/// Stores the answers of the server `name` in its server entry. A new server whose probe failed is
/// removed.
pub(super) fn keep(
    folder: &Path,
    name: &str,
    mut server_entry: ServerEntry,
    asked: Result<ProbeAnswer, Error>,
    is_new: bool,
) -> Result<ServerEntry, Error> {
    match asked {
        Ok(answer) => {
            server_entry.answer = Some(answer);
            server_entry.write(folder, name)?;
            Ok(server_entry)
        }
        Err(error) => {
            if is_new {
                remove_files(folder, name)?;
            }
            Err(error)
        }
    }
}

/// Fetches the entry's files into the folder, or links to its base directory. The server entry is
/// written first, so that a killed dbdyno leaves no files of unknown origin.
fn fetch_or_link(
    entry: &Entry,
    folder: &Path,
    cancel: &AtomicBool,
    log: &mut dyn FnMut(&str),
) -> Result<ServerEntry, Error> {
    let (name, source) = (&entry.name, entry.source.to_string());
    if let Source::Basedir { path } = &entry.source {
        let server_entry = ServerEntry { origin: ServerOrigin::Added, source, answer: None, build: None };
        server_entry.write(folder, name)?;
        link(path, &folder.join(name)).inspect_err(|_| drop(ServerEntry::remove(folder, name)))?;
        return Ok(server_entry);
    }
    let server_entry = ServerEntry { origin: ServerOrigin::Got, source, answer: None, build: None };
    server_entry.write(folder, name)?;
    files::fetch(entry, folder, cancel, log).inspect_err(|_| drop(ServerEntry::remove(folder, name)))?;
    Ok(server_entry)
}

fn first_probe(entry: &Entry, server_dir: &Path) -> Result<ProbeAnswer, Error> {
    let base = Base::open(server_dir).map_err(|source| does_not_run(&entry.name, source))?;
    check_version(entry, &base)?;
    probe(&base).map_err(|source| does_not_run(&entry.name, source))
}

pub(super) fn does_not_run(name: &str, source: dbdyno_db::server::Error) -> Error {
    Error::DoesNotRun { name: name.to_owned(), source: Box::new(source) }
}

/// Checks that the program has the product and version in the entry.
pub(super) fn check_version(entry: &Entry, base: &Base) -> Result<(), Error> {
    if base.product.to_string() == entry.product && entry.means(&base.version) {
        return Ok(());
    }
    Err(Error::OtherVersion {
        name: entry.name.clone(),
        wanted: format!("{} {}", entry.product, entry.version),
        answered: base.title.clone(),
    })
}

pub(super) fn link(target: &Path, server_dir: &Path) -> Result<(), Error> {
    // The base directory is opened before the link exists, so that errors name the folder itself.
    let base = Base::open(target)?;
    std::os::unix::fs::symlink(&base.path, server_dir).map_err(Error::io("cannot link", server_dir))
}

/// Removes `NAME` from the folder: the base directory, or the link to it, and its server entry. A
/// base directory is renamed first, so that a half-removed one is never taken for a server.
pub(super) fn remove_files(folder: &Path, name: &str) -> Result<(), Error> {
    let server_dir = folder.join(name);
    let is_link = fs::symlink_metadata(&server_dir).is_ok_and(|data| data.is_symlink());
    let partial = match is_link {
        true => {
            fs::remove_file(&server_dir).map_err(Error::io("cannot remove", server_dir))?;
            None
        }
        false if server_dir.exists() => Some(Partial::of(folder, name)?),
        false => None,
    };
    ServerEntry::remove(folder, name)?;
    drop(partial);
    Ok(())
}

/// Gives the server in `base_dir` the name `name`. This makes a link to `base_dir` in `servers_dir`
/// and probes the server. The base directory itself does not change. `log` gets a sentence before
/// the probe. If the same server was added before under that name, it is probed again.
pub fn add(
    name: &str,
    base_dir: &Path,
    servers_dir: &Path,
    catalogue: &Catalogue,
    log: &mut dyn FnMut(&str),
) -> Result<ServerEntry, Error> {
    let taken = |why: String| Error::NameTaken { name: name.to_owned(), why };
    check_name(name).map_err(taken)?;
    let base = Base::open(base_dir)?;
    if let Some(entry) = catalogue.entries.iter().find(|entry| entry.name == name) {
        check_version(entry, &base)
            .map_err(|error| taken(format!("{error}; choose a name that is not in the catalogue")))?;
    }
    let locked = Locked::open(servers_dir, &AtomicBool::new(false), log)?;
    let (folder, server_dir) = (&locked.path, locked.path.join(name));
    let is_new = fs::symlink_metadata(&server_dir).is_err();
    if !is_new && server_dir.canonicalize().ok().as_deref() != Some(&base.path) {
        return Err(taken(format!(
            "{} is another server; choose another name, or `dbdyno servers remove {name}` first",
            server_dir.display()
        )));
    }
    let source = format!("the base directory {}", base.path.display());
    let origin = if is_new { ServerOrigin::Added } else { ServerOrigin::Found };
    let known = ServerEntry::read(folder, name)?.filter(|_| !is_new);
    let server_entry = known.unwrap_or(ServerEntry { origin, source, answer: None, build: None });
    if is_new {
        server_entry.write(folder, name)?;
        link(&base.path, &server_dir)?;
    }
    log(&format!("{name}: starting it once to read its abilities"));
    let asked = probe(&base).map_err(|source| does_not_run(name, source));
    keep(folder, name, server_entry, asked, is_new)
}

/// Removes the server `name` from `servers_dir`, with all files that dbdyno fetched for it. The
/// base directory of an added server stays. `log` gets a sentence if this has to wait for another
/// dbdyno. The removal fails while a process runs from fetched files.
pub fn remove(name: &str, servers_dir: &Path, log: &mut dyn FnMut(&str)) -> Result<ServerEntry, Error> {
    let locked = Locked::open(servers_dir, &AtomicBool::new(false), log)?;
    let (folder, server_dir) = (&locked.path, locked.path.join(name));
    let stays = |why: String| Error::NotRemovable { name: name.to_owned(), why };
    let is_name = check_name(&name.replacen('@', "-", usize::from(build_name(name).is_some()))).is_ok();
    let server_entry = if is_name { ServerEntry::read(folder, name)? } else { None };
    let is_there = is_name && fs::symlink_metadata(&server_dir).is_ok();
    if !is_there && server_entry.is_none() {
        let names = list(folder);
        let help = inventory::suggestions(name, names.iter().map(String::as_str));
        return Err(Error::NotInFolder { name: name.to_owned(), folder: folder.to_path_buf(), help });
    }
    let server_entry =
        server_entry.filter(|server_entry| server_entry.origin != ServerOrigin::Found).ok_or_else(|| {
            stays(format!("dbdyno has neither got nor added it; remove {} yourself", server_dir.display()))
        })?;
    if matches!(server_entry.origin, ServerOrigin::Got | ServerOrigin::Built)
        && let Some(pid) = running_from(&server_dir)
    {
        return Err(stays(format!("process {pid} runs from {}; stop it first", server_dir.display())));
    }
    remove_files(folder, name)?;
    Ok(server_entry)
}

/// Finds a process whose program is in `base_dir`.
fn running_from(base_dir: &Path) -> Option<u32> {
    let base_dir = base_dir.canonicalize().ok()?;
    let names =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).find(|pid: &u32| {
        let program = fs::read_link(format!("/proc/{pid}/exe"));
        program.is_ok_and(|program| program.starts_with(&base_dir))
    })
}

/// Interval between two attempts to lock a folder that another process has locked.
const POLL: Duration = Duration::from_millis(100);

/// A servers folder that no other process changes while the value lives.
pub(super) struct Locked {
    /// The folder's absolute path.
    pub(super) path: PathBuf,
    _lock: Flock<File>,
}

impl Locked {
    /// Makes the folder if it is missing, waits for its lock, and removes the files that a killed
    /// dbdyno has left in it. `log` gets a sentence if this has to wait for another dbdyno.
    pub(super) fn open(
        servers_dir: &Path,
        cancel: &AtomicBool,
        log: &mut dyn FnMut(&str),
    ) -> Result<Self, Error> {
        fs::create_dir_all(servers_dir).map_err(Error::io("cannot make the servers folder", servers_dir))?;
        let path = servers_dir.canonicalize().map_err(Error::io("cannot find", servers_dir))?;
        let file = path.join(".lock");
        let mut opened = File::create(&file).map_err(Error::io("cannot make", file.clone()))?;
        let mut is_reported = false;
        let lock = loop {
            match Flock::lock(opened, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => break lock,
                Err((unlocked, Errno::EWOULDBLOCK)) => opened = unlocked,
                Err((_, errno)) => return Err(Error::io("cannot lock", file)(errno.into())),
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled { what: format!("waiting for {}", path.display()) });
            }
            if !is_reported {
                log(&format!("waiting until another dbdyno is done in {}", path.display()));
                is_reported = true;
            }
            sleep(POLL);
        };
        files::sweep(&path)?;
        Ok(Self { path, _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, origin: Option<ServerOrigin>) {
        fs::create_dir_all(folder.join(name).join("bin")).unwrap();
        fs::write(folder.join(name).join("bin/mysqld"), "").unwrap();
        if let Some(origin) = origin {
            let server_entry = ServerEntry { origin, source: "x".to_owned(), answer: None, build: None };
            server_entry.write(folder, name).unwrap();
        }
    }

    #[test]
    fn a_fetched_server_is_removed_and_one_that_others_put_there_stays() {
        let work = tempfile::tempdir().unwrap();
        let folder = work.path().join("servers");
        put(&folder, "got", Some(ServerOrigin::Got));
        put(&folder, "found", Some(ServerOrigin::Found));
        put(&folder, "foreign", None);
        remove("got", &folder, &mut |_| {}).unwrap();
        assert!(!folder.join("got").exists() && !folder.join("got.toml").exists());
        for name in ["found", "foreign"] {
            let message = remove(name, &folder, &mut |_| {}).unwrap_err().to_string();
            assert!(message.starts_with(&format!("{name} stays: dbdyno has neither got")), "{message}");
            assert!(folder.join(name).exists());
        }
    }

    #[test]
    fn only_the_link_to_an_added_server_is_removed() {
        let work = tempfile::tempdir().unwrap();
        let folder = work.path().join("servers");
        put(work.path(), "own", None);
        put(&folder, "other", None);
        std::os::unix::fs::symlink(work.path().join("own"), folder.join("mine")).unwrap();
        ServerEntry { origin: ServerOrigin::Added, source: "x".to_owned(), answer: None, build: None }
            .write(&folder, "mine")
            .unwrap();
        remove("mine", &folder, &mut |_| {}).unwrap();
        assert!(work.path().join("own/bin/mysqld").exists());
        assert!(fs::symlink_metadata(folder.join("mine")).is_err() && !folder.join("mine.toml").exists());
    }

    #[test]
    fn no_name_reaches_outside_the_folder() {
        let work = tempfile::tempdir().unwrap();
        let folder = work.path().join("servers");
        put(work.path(), "own", Some(ServerOrigin::Got));
        for name in ["../own", "..", ".", "", "/own"] {
            assert!(matches!(remove(name, &folder, &mut |_| {}), Err(Error::NotInFolder { .. })), "{name}");
        }
        assert!(work.path().join("own/bin/mysqld").exists());
    }

    #[test]
    fn a_server_from_which_a_process_runs_stays() {
        let work = tempfile::tempdir().unwrap();
        put(work.path(), "used", Some(ServerOrigin::Got));
        let program = work.path().join("used/bin/mysqld");
        // A separate process writes the file. The kernel does not run a program that any process
        // has open for writing, and a process that another test starts meanwhile inherits this
        // process's open files.
        let copied = std::process::Command::new("cp")
            .args(["--remove-destination", "/bin/sleep"])
            .arg(&program)
            .status()
            .unwrap();
        assert!(copied.success());
        let mut process = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let refused = remove("used", work.path(), &mut |_| {});
        process.kill().unwrap();
        process.wait().unwrap();
        let message = refused.unwrap_err().to_string();
        assert!(message.contains(&format!("process {} runs from", process.id())), "{message}");
        remove("used", work.path(), &mut |_| {}).unwrap();
        assert!(!work.path().join("used").exists());
    }

    #[test]
    fn a_second_process_reports_that_it_waits_and_can_be_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = AtomicBool::new(false);
        let first = Locked::open(folder.path(), &cancel, &mut |_| {}).unwrap();
        let mut said = Vec::new();
        let second = Locked::open(folder.path(), &cancel, &mut |line| {
            said.push(line.to_owned());
            cancel.store(true, Ordering::Relaxed);
        });
        assert!(matches!(second, Err(Error::Cancelled { .. })));
        assert_eq!(said.len(), 1, "{said:?}");
        drop(first);
        assert!(Locked::open(folder.path(), &cancel, &mut |_| {}).is_ok());
    }
}
