//! Templates of data directories. Each is initialised once, kept in the target folder, and copied
//! for each test.

use std::fs::{self, File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};

/// Makes `data` a copy of the data directory that `make` makes in its argument, for the server
/// `name` with the program `program`. `maker` is the source code that makes the data. Changed code
/// gets a new template.
pub(crate) fn fresh(name: &str, program: &Path, maker: &str, data: &Path, make: impl FnOnce(&Path)) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drivers-templates");
    fs::create_dir_all(&folder).expect("a folder for templates");
    let template = folder.join(format!("{name}-{:016x}", key(program, maker)));
    if !template.is_dir() {
        // The lock makes other tests that need the same template wait until it is made. The
        // template gets its name when it is complete.
        let lock = File::create(folder.join(format!("{name}.lock"))).expect("a file to be locked");
        let _lock = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, errno)| errno).expect("a lock");
        if !template.is_dir() {
            let work = tempfile::Builder::new().prefix("dbdyno-").tempdir().expect("a temporary directory");
            fs::set_permissions(work.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
                .expect("a folder for all");
            make(&work.path().join("data"));
            let unfinished = folder.join(format!("{name}.unfinished"));
            let _ = fs::remove_dir_all(&unfinished);
            copy(&work.path().join("data"), &unfinished);
            fs::rename(&unfinished, &template).expect("the template gets its name");
        }
    }
    copy(&template, data);
}

fn key(program: &Path, maker: &str) -> u64 {
    let file = fs::metadata(program).expect("the server program");
    let mut hasher = DefaultHasher::new();
    (program, file.len(), modified(&file), maker).hash(&mut hasher);
    hasher.finish()
}

fn modified(file: &Metadata) -> (i64, i64) {
    (file.mtime(), file.mtime_nsec())
}

/// Copies a folder with owners and permissions.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").args(["-a", "--reflink=auto"]).args([from, to]).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} could not be copied", from.display());
}
