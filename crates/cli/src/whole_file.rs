//! Writes files next to records either whole or not at all.

use std::io::Write;
use std::path::Path;
use std::{fs, io};

/// Writes `text` to `path`. It replaces what is there, even a link or a FIFO, and follows no link.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_added_extension("unfinished");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::File::create_new(&unfinished)?.write_all(text.as_bytes())?;
    fs::rename(&unfinished, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_the_place_of_a_file_is_replaced_and_what_it_leads_to_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, path) = (folder.path().join("theirs"), folder.path().join("report.html"));
        fs::write(&theirs, "x").unwrap();
        std::os::unix::fs::symlink(&theirs, &path).unwrap();
        write(&path, "a page").unwrap();
        assert!(path.symlink_metadata().unwrap().is_file());
        assert_eq!(fs::read_to_string(&path).unwrap(), "a page");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "x");
    }
}
