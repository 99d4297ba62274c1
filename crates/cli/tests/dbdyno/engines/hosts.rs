//! Hosts on this one: each has its own network, name, processes and folder `/media`, and no control
//! groups: groups of processes that it does not see would be taken for left behind. They end with
//! the thread that made them, however it ends.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The first process of a host. All others end with it, and it takes note of the end of those that
/// have lost their parent.
const FIRST: &str = "hostname \"$0\" && mount -t tmpfs none /media && mount -t tmpfs none /sys/fs/cgroup && ip link set lo up && echo up && while sleep 1; do :; done";

pub(crate) struct Hosts(Vec<Host>);

struct Host {
    /// Starts the first process and ends it.
    keeper: Child,
    first: Pid,
}

impl Hosts {
    /// Hosts of these names, with the addresses 10.99.0.1 and so on, all on a switch of the first
    /// one.
    pub(crate) fn new(names: &[&str]) -> Self {
        let hosts = Self(names.iter().map(|name| Host::new(name)).collect());
        hosts.network("link add switch type bridge");
        hosts.network("addr add 10.99.0.1/24 dev switch");
        hosts.network("link set switch up");
        for (number, host) in hosts.0.iter().enumerate().skip(1) {
            hosts.network(&format!("link add to-{number} type veth peer name eth0 netns {}", host.first));
            hosts.network(&format!("link set to-{number} master switch up"));
            let own = format!("ip addr add 10.99.0.{}/24 dev eth0 && ip link set eth0 up", number + 1);
            assert!(hosts.command(number, Path::new("/"), &["sh", "-c", &own]).status().unwrap().success());
        }
        hosts
    }

    /// `ip WORDS` in the network of the first host, where process numbers are those of this host.
    pub(crate) fn network(&self, words: &str) {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.0[0].first.to_string(), "--net", "ip"]).args(words.split(' '));
        assert!(command.status().unwrap().success(), "ip {words}");
    }

    /// `words` on the host with this number, in a folder.
    pub(crate) fn command(&self, number: usize, folder: &Path, words: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        // A host that sees no process of others would take what these have in /tmp for left behind.
        command.env("TMPDIR", "/media");
        let target = self.0[number].first.to_string();
        command.args([
            "--pdeathsig",
            "KILL",
            "nsenter",
            "--net",
            "--uts",
            "--ipc",
            "--mount",
            "--pid",
            "--target",
            &target,
        ]);
        command.args(["sh", "-c", "cd \"$0\" && exec \"$@\""]).arg(folder).args(words).stdin(Stdio::null());
        command
    }

    /// The host's own `/media`.
    pub(crate) fn folder(&self, number: usize) -> PathBuf {
        Path::new("/proc").join(self.0[number].first.to_string()).join("root/media")
    }

    /// Pulls the plug.
    pub(crate) fn kill(&self, number: usize) {
        kill(self.0[number].first, Signal::SIGKILL).unwrap();
    }
}

impl Host {
    fn new(name: &str) -> Self {
        let mut command = Command::new("setpriv");
        command.args([
            "--pdeathsig",
            "KILL",
            "unshare",
            "--net",
            "--uts",
            "--ipc",
            "--mount",
            "--pid",
            "--mount-proc",
        ]);
        command.args(["--fork", "--kill-child", "sh", "-c", FIRST, name]).stdout(Stdio::piped());
        let mut keeper = command.stdin(Stdio::null()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "up\n", "a host needs root, and mount and network namespaces");
        let [first] = children(Pid::from_raw(keeper.id().try_into().unwrap()))[..] else {
            panic!("no process")
        };
        Self { keeper, first }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// The process whose command line is such a one, on any host.
pub(crate) fn process(is_it: impl Fn(&[String]) -> bool) -> Option<Pid> {
    let names = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    let line = |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = |line: String| line.split('\0').map(str::to_owned).collect::<Vec<_>>();
    pids.into_iter().find(|pid| is_it(&words(line(pid)))).map(Pid::from_raw)
}

pub(crate) fn children(pid: Pid) -> Vec<Pid> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(|pid| Pid::from_raw(pid.parse().unwrap())).collect()
}

/// The environment that a process was started with.
pub(crate) fn environment(pid: Pid) -> String {
    String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/environ")).unwrap()).into_owned()
}
