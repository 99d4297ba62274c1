//! A process group that ends with dbdyno, however dbdyno ends.
//!
//! A signal at the parent's death (`setpriv --pdeathsig`) reaches the program that was started and
//! none of its children. Scripts that make data directories start servers of their own.

use std::io::Result;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::server::launch::calling;

/// Waits for the end of its input, whose other end only dbdyno holds, and kills its own group with
/// itself in it.
const SCRIPT: &str = "read -r _; kill -s KILL 0";

/// A group without members but its process group. A process that is in it when the value is dropped, or
/// when dbdyno ends, is killed.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    child: Child,
    group: Pid,
}

impl ProcessGroup {
    pub(crate) fn start() -> Result<Self> {
        let mut command = calling("sh");
        command.args(["-c", SCRIPT]).process_group(0);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let group = Pid::from_raw(i32::try_from(child.id()).expect("the kernel's process numbers are i32"));
        Ok(Self { child, group })
    }

    /// The group that a program is to be started in.
    pub(crate) fn group(&self) -> i32 {
        self.group.as_raw()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // The group is there as long as its process group is not reaped.
        let _ = killpg(self.group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}
