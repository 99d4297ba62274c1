//! Templates: a data directory is initialised once for each build and its initial settings, then copied.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::my_cnf::MyCnf;
use crate::{BaseDir, Error, datadir, initialise};

/// Part of the key: rises when templates are made differently.
const FORMAT: u32 = 1;

/// The template for a MariaDB or MySQL server.
///
/// # Errors
/// Those of initialising, I/O.
pub(crate) fn of_mysql(base: &BaseDir, my_cnf: &MyCnf, template_dir: &Path) -> Result<PathBuf, Error> {
    let product = base.product().to_string().to_lowercase().replace(' ', "-");
    let (version, program) = (base.version().text.as_str(), base.program());
    let key = key(base.path(), version, program, &my_cnf.initial_options(base))?;
    let name = format!("{product}-{}-{key}", base.version());
    ready(&name, template_dir, |work| initialise::initialise(base, my_cnf, work))
}

/// The template `name` in `template_dir`. If it is not there, `make` makes it in an empty folder and returns where.
///
/// It is made under another name and renamed when done, so that one that is there is whole, whoever makes it and
/// whenever they are killed.
///
/// # Errors
/// Those of `make`, I/O.
pub(crate) fn ready(
    name: &str,
    template_dir: &Path,
    make: impl FnOnce(&Path) -> Result<PathBuf, Error>,
) -> Result<PathBuf, Error> {
    fs::create_dir_all(template_dir).map_err(Error::io("cannot make the template folder", template_dir))?;
    let template_dir =
        template_dir.canonicalize().map_err(Error::io("cannot find the template folder", template_dir))?;
    let template = template_dir.join(name);
    if template.join(datadir::MARK).is_file() {
        return Ok(template);
    }
    // Short: old bootstraps put a socket into it, and paths of sockets are limited. Removed if anything fails.
    let work = tempfile::Builder::new()
        .prefix(".new-")
        .tempdir_in(&template_dir)
        .map_err(Error::io("cannot make a folder in", template_dir.clone()))?;
    let data = make(work.path())?;
    datadir::mark(&data)?;
    match fs::rename(&data, &template) {
        // Somebody else made the same one meanwhile.
        Err(_) if template.join(datadir::MARK).is_file() => Ok(template),
        result => {
            result.map(|()| template.clone()).map_err(Error::io("cannot rename the template to", template))
        }
    }
}

/// The part of a template's name that differs for whatever makes a different data directory: also for a program that
/// was rebuilt in place, which its size and time of change show.
pub(crate) fn key(base: &Path, version: &str, program: &Path, options: &[String]) -> Result<String, Error> {
    let file = fs::metadata(program).map_err(Error::io("cannot look at", program))?;
    let key = format!(
        "{FORMAT}\n{}\n{version}\n{} {}.{}\n{}",
        base.display(),
        file.len(),
        file.mtime(),
        file.mtime_nsec(),
        options.join("\n")
    );
    Ok(format!("{:016x}", fnv1a(key.as_bytes())))
}

/// The hash FNV-1a, 64 bits: the same in each release of the compiler, unlike the standard library's.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
