//! Processes on this host that stand for agents or keep their hosts.

use std::fs::File;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

/// It ends in this time when its connection or its input does.
const END: Duration = Duration::from_secs(2);

/// The process of an agent, or the one on this host that stands for it. It ends with this value.
pub(super) struct Process(pub(super) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let deadline = Instant::now() + END;
        while matches!(self.0.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                let _ = self.0.kill();
                let _ = self.0.wait();
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A new file for what a program says on standard error.
pub(super) fn log_file(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    // A run that goes on starts its agents anew.
    let _ = std::fs::remove_file(path);
    File::create_new(path)
}
