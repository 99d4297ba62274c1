//! Gets servers from a vendor's tar file, from this machine or from the vendor's site.

use std::path::{Path, PathBuf};

use super::checksum;
use super::run::{fetching, run};
use super::{Goal, unfetchable};
use crate::Error;

/// Gets the tar file from `path` or `url`, checks it, and unpacks it into the goal's partial folder
/// without its `strip` outermost folders.
pub(super) fn fetch(
    goal: &Goal<'_>,
    (path, url): (Option<&Path>, Option<&str>),
    strip: u32,
    log: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let archive = match (path, url) {
        (_, Some(url)) => download(goal, url)?,
        (Some(path), None) if path.is_file() => path.to_path_buf(),
        (path, None) => {
            let path = path.unwrap_or(Path::new("")).display();
            let why = format!("there is no file {path}: correct path in its entry");
            return Err(unfetchable(goal.entry, why));
        }
    };
    checksum::check(goal, &archive, log)?;
    untar(goal, &archive, &[&format!("--strip-components={strip}")])
}

/// Unpacks `archive` into the goal's partial folder. The arguments `more` select parts of it.
pub(super) fn untar(goal: &Goal<'_>, archive: &Path, more: &[&str]) -> Result<(), Error> {
    let mut command = fetching("tar");
    command.args(["-x", "--no-same-owner", "-f"]).arg(archive).arg("-C").arg(goal.partial).args(more);
    run(&format!("unpacking {}", archive.display()), &mut command, goal.cancel).map(drop)
}

/// Downloads only over HTTPS, even when the vendor redirects.
fn download(goal: &Goal<'_>, url: &str) -> Result<PathBuf, Error> {
    let name = url.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("archive");
    let file = goal.downloads.join(name);
    let mut command = fetching("curl");
    command.args(["--fail", "--location", "--proto", "=https", "--silent", "--show-error", "--retry", "2"]);
    command.args(["--connect-timeout", "30", "--output"]).arg(&file).arg(url);
    run(&format!("downloading {url}"), &mut command, goal.cancel)?;
    Ok(file)
}
