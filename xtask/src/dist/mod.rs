//! `cargo xtask dist`: what is handed to users: static binaries, Debian packages, archives,
//! checksums.

mod clean_root;
mod package;
mod target;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;

use crate::command::run;
use crate::{places, terminal};

pub(crate) use clean_root::check;
use target::{Target, X86_64};

/// Build what users install: for x86_64 and aarch64 a stripped static binary, its symbols and line
/// tables in a file of their own, a Debian package with manual pages and completions of bash, zsh
/// and fish, and an archive of the same; and checksums of all.
///
/// aarch64 is built with a cross compiler. What is missing for that is named before anything is
/// built.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Only this architecture: `x86_64` or `aarch64`.
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    /// Folder for the files.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also install the x86_64 package in a clean Debian root, and run it there. Needs root and
    /// debootstrap.
    #[arg(long)]
    check: bool,
}

/// A binary may have so many bytes.
const MOST_BYTES: u64 = 25_000_000;

pub(crate) fn go(args: &Args) -> Result<()> {
    let out = args.out.clone().unwrap_or_else(|| places::target().join("dist-files"));
    let targets = chosen(args.arch.as_deref())?;
    let missing: Vec<String> = targets.iter().flat_map(|target| target.missing()).collect();
    if !missing.is_empty() {
        bail!("what is missing here:\n  {}", missing.join("\n  "));
    }
    std::fs::create_dir_all(&out)?;
    // The one that runs here prints the manual pages of all.
    let [native, _] = X86_64.build()?;
    let texts = package::texts(&native)?;
    let mut files = Vec::new();
    for target in &targets {
        let [binary, symbols] = target.build()?;
        let bytes = std::fs::metadata(&binary)?.len();
        if bytes > MOST_BYTES {
            bail!("{} has {bytes} bytes, more than {MOST_BYTES}", binary.display());
        }
        files.extend(package::files(target, &binary, &texts, &out)?);
        std::fs::copy(symbols, out.join(target.symbols_name()))?;
        files.push(target.symbols_name());
        terminal::note(&format!("{}: {:.1} MB", target.arch, bytes as f64 / 1e6));
    }
    sums(&out, &files)?;
    for file in &files {
        terminal::note(&out.join(file).display().to_string());
    }
    if args.check { check(&out.join(package::deb_name(&X86_64))) } else { Ok(()) }
}

fn chosen(arch: Option<&str>) -> Result<Vec<Target>> {
    match arch {
        None => Ok(target::ALL.to_vec()),
        Some(name) => match target::ALL.iter().find(|target| target.arch == name) {
            Some(target) => Ok(vec![*target]),
            None => bail!("no architecture {name}; there are x86_64 and aarch64"),
        },
    }
}

fn sums(out: &std::path::Path, files: &[String]) -> Result<()> {
    let line = "cd \"$1\" && shift && sha256sum \"$@\" > SHA256SUMS";
    let mut command = std::process::Command::new("sh");
    run(command.args(["-c", line, "sh"]).arg(out).args(files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_chosen_by_name() {
        let names = |arch| chosen(arch).unwrap().iter().map(|target| target.arch).collect::<Vec<_>>();
        assert_eq!((names(None), names(Some("aarch64"))), (vec!["x86_64", "aarch64"], vec!["aarch64"]));
        assert_eq!(
            chosen(Some("vax")).unwrap_err().to_string(),
            "no architecture vax; there are x86_64 and aarch64"
        );
    }
}
