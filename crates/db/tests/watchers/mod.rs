//! Ends a test's server and removes its files when the test program ends, even if the program is
//! killed.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A script that waits for a word on its input, which says that the server has ended. If the input
/// ends without a word, the test program has ended. The script then ends the server and removes its
/// folder, and repeats the removal while the server is still writing.
const SCRIPT: &str = "\
trap '' HUP INT TERM
read -r word && exit
kill -s \"$1\" \"$2\"
tries=0
until rm -rf \"$3\"; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || exit 1
    sleep 0.1
done
";

/// A process that outlives the test program by a moment. Dropping the value tells the process that
/// the server has ended.
pub(crate) struct Watcher(Child);

impl Watcher {
    /// Starts a process that sends `signal` to `server` and removes `folder` when this program has
    /// ended.
    pub(crate) fn of(server: &Child, signal: &str, folder: &Path) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh", signal, &server.id().to_string()]).arg(folder);
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("a shell"))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(mut input) = self.0.stdin.take() {
            let _ = input.write_all(b"ended\n");
        }
        let _ = self.0.wait();
    }
}
