//! The option files that servers are started with: kept in the run, so that all of its cells are
//! configured equally.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dbdyno_products::FamilyFacts;
use dbdyno_record::small_text;

const WRITABLE_BY_ALL: u32 = 0o002;

pub(crate) const FOLDER: &str = "configs";

pub(crate) fn write(folder: &Path, variant: &str, ending: &str, text: &str) -> Result<PathBuf, String> {
    let path = folder.join(format!("{variant}.{ending}"));
    // A server that runs may read its file once more.
    if small_text(&path, text.len() as u64).is_some_and(|there| there == text) {
        return Ok(path);
    }
    let write = || {
        std::fs::create_dir_all(folder)?;
        std::fs::write(&path, text)?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o644))?;
        Ok(std::fs::metadata(&path)?.permissions().mode())
    };
    let mode = write()
        .map_err(|error: io::Error| format!("cannot write the option file {}: {error}", path.display()))?;
    if mode & WRITABLE_BY_ALL != 0 {
        let families = FamilyFacts::of_servers().filter(|family| family.distrusts_writable_files);
        let distrusting: Vec<&str> = families.flat_map(FamilyFacts::product_names).collect();
        return Err(format!(
            "the option file {} can be written by all users, and {} ignore such files: use a run directory on a \
             filesystem that keeps permissions (--out)",
            path.display(),
            distrusting.join(" and ")
        ));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_file_is_written_by_its_owner_only_whatever_the_umask_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "a", "cnf", "[mysqld]\n").unwrap();
        // As a umask of 0 leaves it.
        std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        let path = write(folder.path(), "a", "cnf", "[mysqld]\nport = 1\n").unwrap();
        assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o644);
    }
}
