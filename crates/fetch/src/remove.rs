//! Removes a server: the files that dbdyno fetched, or its link to someone else's base directory.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use dbdyno_db::server::list;

use crate::files::check_name;
use crate::get::take_away;
use crate::lock::Locked;
use crate::{Error, Origin, ServerEntry, suggestions};

/// Removes the server `name` from `servers_dir`, with all files that dbdyno fetched for it. The
/// base directory of an added server stays. `log` gets a sentence when it has to wait. It refuses
/// while a server runs from it.
pub fn remove(name: &str, servers_dir: &Path, log: &mut dyn FnMut(&str)) -> Result<ServerEntry, Error> {
    let locked = Locked::open(servers_dir, &AtomicBool::new(false), log)?;
    let (folder, place) = (&locked.path, locked.path.join(name));
    let stays = |why: String| Error::NotRemovable { name: name.to_owned(), why };
    let server_entry = if check_name(name).is_ok() { ServerEntry::read(folder, name)? } else { None };
    let is_there = check_name(name).is_ok() && fs::symlink_metadata(&place).is_ok();
    if !is_there && server_entry.is_none() {
        let names = list(folder);
        let help = suggestions::help(name, names.iter().map(String::as_str));
        return Err(Error::NotInFolder { name: name.to_owned(), folder: folder.to_path_buf(), help });
    }
    let server_entry =
        server_entry.filter(|server_entry| server_entry.origin != Origin::Found).ok_or_else(|| {
            stays(format!("dbdyno has neither got nor added it; remove {} yourself", place.display()))
        })?;
    if server_entry.origin == Origin::Got
        && let Some(pid) = running_from(&place)
    {
        return Err(stays(format!("process {pid} runs from {}; stop it first", place.display())));
    }
    take_away(folder, name)?;
    Ok(server_entry)
}

/// Finds a process whose program lies in `base_dir`.
fn running_from(base_dir: &Path) -> Option<u32> {
    let base_dir = base_dir.canonicalize().ok()?;
    let names =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).find(|pid: &u32| {
        let program = fs::read_link(format!("/proc/{pid}/exe"));
        program.is_ok_and(|program| program.starts_with(&base_dir))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(folder: &Path, name: &str, origin: Option<Origin>) {
        fs::create_dir_all(folder.join(name).join("bin")).unwrap();
        fs::write(folder.join(name).join("bin/mysqld"), "").unwrap();
        if let Some(origin) = origin {
            let server_entry = ServerEntry { origin, source: "x".to_owned(), answer: None };
            server_entry.write(folder, name).unwrap();
        }
    }

    #[test]
    fn what_dbdyno_got_goes_and_what_others_put_there_stays() {
        let desk = tempfile::tempdir().unwrap();
        let folder = desk.path().join("servers");
        put(&folder, "got", Some(Origin::Got));
        put(&folder, "found", Some(Origin::Found));
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
    fn of_an_added_server_only_the_link_goes() {
        let desk = tempfile::tempdir().unwrap();
        let folder = desk.path().join("servers");
        put(desk.path(), "own", None);
        put(&folder, "other", None);
        std::os::unix::fs::symlink(desk.path().join("own"), folder.join("mine")).unwrap();
        ServerEntry { origin: Origin::Added, source: "x".to_owned(), answer: None }
            .write(&folder, "mine")
            .unwrap();
        remove("mine", &folder, &mut |_| {}).unwrap();
        assert!(desk.path().join("own/bin/mysqld").exists());
        assert!(fs::symlink_metadata(folder.join("mine")).is_err() && !folder.join("mine.toml").exists());
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let desk = tempfile::tempdir().unwrap();
        let folder = desk.path().join("servers");
        put(desk.path(), "own", Some(Origin::Got));
        for name in ["../own", "..", ".", "", "/own"] {
            assert!(matches!(remove(name, &folder, &mut |_| {}), Err(Error::NotInFolder { .. })), "{name}");
        }
        assert!(desk.path().join("own/bin/mysqld").exists());
    }

    #[test]
    fn a_server_from_which_a_process_runs_stays() {
        let desk = tempfile::tempdir().unwrap();
        put(desk.path(), "used", Some(Origin::Got));
        let program = desk.path().join("used/bin/mysqld");
        // A separate process writes the file. The kernel runs no program that is open for writing
        // anywhere, and a process that another test starts meanwhile inherits this process's open
        // files.
        let copied = std::process::Command::new("cp")
            .args(["--remove-destination", "/bin/sleep"])
            .arg(&program)
            .status()
            .unwrap();
        assert!(copied.success());
        let mut process = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let refused = remove("used", desk.path(), &mut |_| {});
        process.kill().unwrap();
        process.wait().unwrap();
        let message = refused.unwrap_err().to_string();
        assert!(message.contains(&format!("process {} runs from", process.id())), "{message}");
        remove("used", desk.path(), &mut |_| {}).unwrap();
        assert!(!desk.path().join("used").exists());
    }
}
