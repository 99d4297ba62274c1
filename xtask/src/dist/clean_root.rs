//! A Debian with nothing in it: the package is installed there, and run.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{output, run};
use crate::places;

/// Shells read their completions, and a reader of manual pages its page; then the quickstart, for a
/// short while, and its report.
const RUN: &str = "\
set -eu
dbdyno --version
bash -n /usr/share/bash-completion/completions/dbdyno
test -s /usr/share/zsh/vendor-completions/_dbdyno && test -s /usr/share/fish/vendor_completions.d/dbdyno.fish
gzip -dc /usr/share/man/man1/dbdyno-run.1.gz | grep -q '^.TH dbdyno-run'
cd /opt
dbdyno run --set workload.insert-benchmark.load_rows=2000 --set workload.insert-benchmark.write_rows=500 \\
    --set workload.insert-benchmark.read_write_time=1s --set workload.insert-benchmark.settle_wait=0s
dbdyno report latest --format md --output report.md
grep -q qr100 report.md
echo '127.0.0.1 localhost' > /etc/hosts
dbdyno run --address mysql://root@localhost:1/x --workload oltp 2>&1 | grep 'Connection refused'
dbdyno servers list | grep -q mysql-8
";

/// Installs `deb` in a root that debootstrap makes, once, and runs it there.
pub(crate) fn check(deb: &Path) -> Result<()> {
    ensure!(nix::unistd::geteuid().is_root(), "a clean root takes root to enter; run it as root");
    let root = places::cache().join("clean-root");
    if !root.join("usr/bin/dpkg").exists() {
        make(&root)?;
    }
    let chroot = || {
        let mut command = Command::new("chroot");
        command.arg(&root).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/opt").env("LANG", "C.UTF-8");
        command
    };
    fs::copy(deb, root.join("tmp/dbdyno.deb")).with_context(|| format!("cannot copy {}", deb.display()))?;
    let _ = fs::remove_dir_all(root.join("opt/runs"));
    let mounted = Mounted::proc(&root)?;
    run(chroot().args(["dpkg", "--install", "/tmp/dbdyno.deb"]))?;
    let ran = run(chroot().args(["bash", "-c", RUN]));
    let removed = run(chroot().args(["dpkg", "--purge", "dbdyno"]));
    drop(mounted);
    ran.and(removed)
}

/// The root's view of processes, until dropped.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn proc(root: &Path) -> Result<Self> {
        let place = root.join("proc");
        if !place.join("self").exists() {
            run(Command::new("mount").args(["-t", "proc", "proc"]).arg(&place))?;
        }
        Ok(Self(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg(&self.0));
    }
}

fn make(root: &Path) -> Result<()> {
    if let Err(error) = Command::new("debootstrap").arg("--version").output() {
        bail!("debootstrap: {error}; apt-get install debootstrap");
    }
    // The machine's own mirror and release.
    let targets = output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(REPO_URI) $(CODENAME)",
        "Created-By: Packages",
    ]))?;
    let first =
        targets.lines().find(|line| !line.contains("security")).and_then(|line| line.trim().split_once(' '));
    let (mirror, release) = first.context("apt names no mirror; run apt-get update")?;
    let unfinished = root.with_extension("unfinished");
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir_all(&unfinished)?;
    run(Command::new("debootstrap").args(["--variant=minbase", release]).arg(&unfinished).arg(mirror))?;
    fs::rename(&unfinished, root)?;
    Ok(())
}
