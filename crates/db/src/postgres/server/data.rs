//! PostgreSQL data directories: `initdb` makes one for each build and its initial options. It is
//! then copied, given to the server's user, and configured.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::user::Runner;
use crate::server::installer::Installer;
use crate::server::template::{Key, Template};
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
    let key = Key::new(base, include_str!("data.rs"), &initdb, runner.name())?;
    Template::ready(&key, template_dir, cancel, |work| initialise(base, &initdb, runner, work, cancel))
}

/// Makes the data directory `data` in the empty folder `work`. The log lies next to it.
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
