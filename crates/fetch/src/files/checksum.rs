//! Checks by its SHA-256 whether a file is the one that the catalogue means.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Goal;
use crate::Error;

/// Bytes that one read takes.
const CHUNK: usize = 1 << 20;

/// Compares `file` with the SHA-256 in its entry. If the entry has none, it logs the file's
/// SHA-256, so that the user can write it into the entry.
pub(super) fn check(goal: &Goal<'_>, file: &Path, log: &mut dyn FnMut(&str)) -> Result<(), Error> {
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

/// A file content's SHA-256, as 64 lower-case hexadecimal digits.
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
    fn the_sum_is_the_published_one() {
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
