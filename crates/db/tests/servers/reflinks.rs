//! Tests of copies on a filesystem with reflinks, which is an XFS in a file. A copy takes no space,
//! and writes to a copy do not change the original.
//!
//! Each test runs in its own mount namespace, so the kernel unmounts the filesystem however the
//! test ends.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use crate::support::{ask, base, new_folder, spec};
use dbdyno_db::server::{Server, ServerSpec, Snapshot, prepare_data, remove_data};
use nix::sys::statvfs::statvfs;
use serde_json::json;

static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

/// Environment variable with the mount point. It is set in the copy of this program that can see
/// the filesystem.
const MOUNTED: &str = "DBDYNO_TEST_XFS";

/// A script that makes and mounts the filesystem and then executes the command in its arguments.
const MOUNT: &str = "set -e; truncate -s 1G image; mkfs.xfs -q -m reflink=1 image; mkdir xfs; mount -o loop image xfs; \
                     exec \"$@\"";

/// Runs `check` in the filesystem, for which it starts `test` again in a child process.
fn on_xfs(test: &str, check: impl FnOnce(&Path)) {
    if let Some(mounted) = std::env::var_os(MOUNTED) {
        return check(Path::new(&mounted));
    }
    let folder = new_folder();
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", MOUNT, "sh"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--include-ignored", "--nocapture"]).current_dir(folder.path());
    let ended = command.env(MOUNTED, folder.path().join("xfs")).output().unwrap();
    assert!(
        ended.status.success(),
        "this test needs root, loop devices, XFS in the kernel and mkfs.xfs (`cargo xtask test packages` installs it):\n{}{}",
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr)
    );
}

/// Used bytes in the filesystem, after all writes have been flushed.
fn used(folder: &Path) -> u64 {
    nix::unistd::syncfs(File::open(folder).unwrap()).unwrap();
    let space = statvfs(folder).unwrap();
    (space.blocks() - space.blocks_free()) * space.fragment_size()
}

/// All files below `folder` with their contents.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, bytes);
        }
    }
    found
}

#[test]
#[ignore = "in cargo xtask test --all: a filesystem of its own"]
fn a_copy_of_a_snapshot_takes_no_space_and_is_written_to_without_it() {
    const BYTES: usize = 64 << 20;
    on_xfs("reflinks::a_copy_of_a_snapshot_takes_no_space_and_is_written_to_without_it", |xfs| {
        let data_dir = xfs.join("data");
        prepare_data(&data_dir, &NOT_CANCELLED).unwrap();
        fs::write(data_dir.join("ibdata1"), vec![7; BYTES]).unwrap();
        let snapshot = Snapshot::take(&data_dir, &xfs.join("snapshot"), json!(null), &NOT_CANCELLED).unwrap();
        let before = used(xfs);
        let copied = snapshot.restore(&data_dir, &NOT_CANCELLED).unwrap();
        assert_eq!((copied.files, copied.shared_files, copied.bytes), (1, 1, BYTES as u64));
        let grown = used(xfs) - before;
        assert!(grown < 1 << 20, "the copy took {grown} bytes");

        let half = vec![8; BYTES / 2];
        let file = File::options().write(true).open(data_dir.join("ibdata1")).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &half, 0).unwrap();
        let grown = used(xfs) - before;
        assert!((half.len() as u64..BYTES as u64).contains(&grown), "half of it was written: {grown} bytes");
        assert!(fs::read(xfs.join("snapshot/data/ibdata1")).unwrap() == vec![7; BYTES]);
        snapshot.restore(&data_dir, &NOT_CANCELLED).unwrap();
        assert!(fs::read(data_dir.join("ibdata1")).unwrap() == vec![7; BYTES]);
    });
}

#[test]
#[ignore = "in cargo xtask test --all: a filesystem of its own"]
fn a_server_begins_on_the_blocks_of_its_template_and_leaves_them_as_they_are() {
    on_xfs("reflinks::a_server_begins_on_the_blocks_of_its_template_and_leaves_them_as_they_are", |xfs| {
        let spec = spec(&base(("pg-18.", "pg-18.6")), xfs);
        let spec = ServerSpec { template_dir: xfs.join("templates"), ..spec };
        Server::start(&spec).unwrap().stop().unwrap();
        remove_data(&spec.data_dir).unwrap();
        let (template, before) = (contents(&spec.template_dir), used(xfs));
        let bytes: u64 = template.values().map(|bytes| bytes.len() as u64).sum();
        let server = Server::start(&spec).unwrap();
        let grown = used(xfs) - before;
        assert!(grown < bytes / 4, "{grown} bytes for a copy of {bytes}");
        let rows = ask(
            &server,
            &[
                "CREATE TABLE t AS SELECT generate_series(1, 1000) AS a",
                "CHECKPOINT",
                "SELECT count(*) FROM t",
            ],
        );
        assert_eq!(rows, "1000");
        server.stop().unwrap();
        assert!(contents(&spec.template_dir) == template, "the template has changed");
    });
}
