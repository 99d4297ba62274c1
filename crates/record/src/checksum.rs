//! Writes and checks `checksums.json` of a finished step, which has the length and CRC-32 of each of
//! its files.
//!
//! A checksum finds a disk that failed, a copy that ended early and a figure that was edited by
//! hand. It is no protection against forgery: a person who changes a file on purpose can write its
//! checksum again, and could do so with any other hash. CRC-32 is therefore enough, and it costs a
//! report no measurable time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::layout::{self, CHECKSUMS, write_whole};

/// Length and checksum of a file of a finished step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checksum {
    bytes: u64,
    /// The CRC-32 that zlib and gzip use, in eight hexadecimal digits.
    crc32: String,
}

/// Writes the checksums of `files`, which are below `dir` and are complete by now.
pub(crate) fn write(dir: &Path, files: &[String]) -> Result<(), Error> {
    let mut sums = BTreeMap::new();
    for name in files {
        let path = dir.join(name);
        let sum = of_file(&path).map_err(|source| Error::Read { path, source })?;
        sums.insert(name, sum);
    }
    write_whole(&dir.join(CHECKSUMS), &sums)
}

/// Returns the checksum of a file. The file is read piece by piece, because the intervals of a long
/// step with many clients are large.
fn of_file(path: &Path) -> std::io::Result<Checksum> {
    let mut file = Summed::new(File::open(path)?);
    std::io::copy(&mut file, &mut std::io::sink())?;
    Ok(file.sum())
}

/// A file whose checksum is computed as it is read.
pub(crate) struct Summed {
    file: File,
    hasher: crc32fast::Hasher,
    bytes: u64,
}

impl Summed {
    pub(crate) fn new(file: File) -> Self {
        Self { file, hasher: crc32fast::Hasher::new(), bytes: 0 }
    }

    /// Returns the checksum of the bytes that were read so far.
    pub(crate) fn sum(self) -> Checksum {
        Checksum { bytes: self.bytes, crc32: format!("{:08x}", self.hasher.finalize()) }
    }
}

impl Read for Summed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}

/// The checksums of a step that is being read, and which of its files were seen.
#[derive(Debug, Default)]
pub(crate) struct Checksums {
    /// The checksums, or `None` for a step that has none, because it did not end or because someone
    /// removed them.
    sums: Option<BTreeMap<String, Checksum>>,
    seen: BTreeSet<String>,
}

impl Checksums {
    /// Returns the checksums in `dir`, or a message that says why they cannot be used.
    pub(crate) fn read(dir: &Path) -> Result<Self, String> {
        let path = dir.join(CHECKSUMS);
        let text =
            layout::read_bounded(&path, layout::CHECKSUMS_MAX_BYTES).map_err(|error| error.to_string())?;
        let Some(text) = text else { return Ok(Self::default()) };
        let sums = serde_json::from_slice(&text)
            .map_err(|error| format!("{} is damaged: {error}", path.display()))?;
        Ok(Self { sums: Some(sums), seen: BTreeSet::new() })
    }

    pub(crate) fn are_there(&self) -> bool {
        self.sums.is_some()
    }

    /// Returns a message if the file `name` of the step in `dir`, whose checksum is now `found`, is
    /// not as it was when the step ended. A file that could not be read to its end has no checksum,
    /// and its read error is reported elsewhere.
    pub(crate) fn fault(&mut self, dir: &Path, name: &str, found: Option<&Checksum>) -> Option<String> {
        let sums = self.sums.as_ref()?;
        self.seen.insert(name.to_owned());
        let found = found?;
        let path = dir.join(name);
        let Some(expected) = sums.get(name) else {
            return Some(format!("{} was not there when the step ended", path.display()));
        };
        (found != expected).then(|| {
            format!(
                "{} was changed after the step had ended: it has {} bytes with CRC-32 {}, and had {} with {}",
                path.display(),
                found.bytes,
                found.crc32,
                expected.bytes,
                expected.crc32
            )
        })
    }

    /// Returns one message for each file that is gone.
    pub(crate) fn missing(&self, dir: &Path) -> Vec<String> {
        let sums = self.sums.iter().flat_map(BTreeMap::keys);
        let missing = sums.filter(|name| !self.seen.contains(*name));
        missing.map(|name| format!("{} is missing", dir.join(name).display())).collect()
    }
}
