//! Servers in a vendor's tar file: of this machine, or fetched from the vendor's site.

use std::path::{Path, PathBuf};

use super::checksum;
use super::run::{fetching, run};
use super::{Goal, unfetchable};
use crate::Error;

/// Where a tar file is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    Path(&'a Path),
    Url(&'a str),
}

/// Gets the tar file, checks it and unpacks it into the goal's partial folder without its `strip`
/// outermost folders.
pub(super) fn fetch(
    goal: &Goal<'_>,
    place: Place<'_>,
    sha256: Option<&str>,
    strip: u32,
    log: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let archive = match place {
        Place::Path(path) if path.is_file() => path.to_path_buf(),
        Place::Path(path) => {
            return Err(unfetchable(
                goal.entry,
                format!("there is no file {}: correct path in its entry", path.display()),
            ));
        }
        Place::Url(url) => download(goal, url)?,
    };
    checksum::check(goal, &archive, sha256, log)?;
    let mut command = fetching("tar");
    command.args(["-x", "--no-same-owner"]).arg(format!("--strip-components={strip}"));
    command.arg("-f").arg(&archive).arg("-C").arg(goal.partial);
    run(&format!("unpacking {}", archive.display()), &mut command, goal.cancel).map(drop)
}

/// Downloads over HTTPS only, also when the vendor sends elsewhere.
fn download(goal: &Goal<'_>, url: &str) -> Result<PathBuf, Error> {
    let name = url.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("archive");
    let file = goal.downloads.join(name);
    let mut command = fetching("curl");
    command.args(["--fail", "--location", "--proto", "=https", "--silent", "--show-error", "--retry", "2"]);
    command.args(["--connect-timeout", "30", "--output"]).arg(&file).arg(url);
    run(&format!("downloading {url}"), &mut command, goal.cancel)?;
    Ok(file)
}
