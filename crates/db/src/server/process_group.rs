//! A process group that ends with dbdyno, however dbdyno ends.
//!
//! A signal at the parent's death (`setpriv --pdeathsig`) reaches only the program that was
//! started, and none of its children. The scripts that make data directories start servers
//! themselves, so a group is needed.

use std::io::Result;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::server::launch::calling;

/// Waits for the end of its input and then kills its own group with itself in it. Only dbdyno holds
/// the other end of that input.
const SCRIPT: &str = "read -r _; kill -s KILL 0";

/// A process group whose first member only waits for dbdyno's end. When the value is dropped or
/// dbdyno ends, every process in the group is killed.
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

    /// The number of the group in which a program should be started.
    pub(crate) fn group(&self) -> i32 {
        self.group.as_raw()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // The group exists as long as its first process is not reaped.
        let _ = killpg(self.group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}
