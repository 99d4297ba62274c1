//! Defines the errors of writing or reading a run directory.

use std::path::PathBuf;

/// An error whose message names the file and, if possible, says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write {path}: {source}{}", advice(source))]
    Write { path: PathBuf, source: std::io::Error },
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error(
        "{path} already exists and records are never overwritten; choose another folder with --out or, for a run, \
         go on with --resume"
    )]
    Exists { path: PathBuf },
    #[error(
        "{path} is a symbolic link, and no record is written through one; remove the link, then go on with --resume"
    )]
    Link { path: PathBuf },
    #[error(
        "{path} is not a regular file, and records are read only from regular files; put a copy of the record in its place"
    )]
    NotRegular { path: PathBuf },
    #[error(
        "{path} has more than {} MiB, which no record of its kind has; put a copy of the record in its place", limit_bytes >> 20
    )]
    TooLarge { path: PathBuf, limit_bytes: u64 },
    #[error("{path} is being written by another dbdyno; wait until it has ended, or stop it")]
    InUse { path: PathBuf },
    #[error(
        "{name:?} cannot name a folder of the run directory; use a name without slashes and control characters"
    )]
    Name { name: String },
    #[error(
        "{path} is not a run directory: it has no manifest.json; give the folder that `dbdyno run` named"
    )]
    NotARun { path: PathBuf },
    #[error(
        "{path} holds no run: the dbdyno that made it was killed before the run began, and nothing was measured; \
         remove it, and start the run again"
    )]
    NotBegun { path: PathBuf },
    #[error("{path} line {line} is damaged: {message}; to read the rest of the run move that file away")]
    Damaged { path: PathBuf, line: usize, message: String },
    #[error(
        "{path} line {line} is damaged: {message}; without it nothing of the run can be read, so put a copy in its place"
    )]
    DamagedManifest { path: PathBuf, line: usize, message: String },
    #[error(
        "histogram {tag} from {from_us} us to {to_us} us: {message}; its log was changed; move \
             it away"
    )]
    Histogram { tag: String, from_us: u64, to_us: u64, message: String },
    #[error("{path} has format version {found}, this dbdyno reads up to {known}; use a newer dbdyno")]
    TooNew { path: PathBuf, found: u32, known: u32 },
}

fn advice(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            "; free space there or choose another folder with --out, then go on with --resume"
        }
        std::io::ErrorKind::FileTooLarge => {
            "; raise the limit on the size of files (ulimit -f), then go on with --resume"
        }
        _ if source.raw_os_error() == Some(nix::errno::Errno::EMFILE as i32) => {
            "; raise the limit on open files (ulimit -n), then go on with --resume"
        }
        _ => "",
    }
}
