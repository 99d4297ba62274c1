//! Simulated hosts on this machine. Each has its own network, host name, processes and folder
//! `/media`. None has control groups, because dbdyno would take a group whose processes it cannot
//! see for a stale one. All hosts end with the thread that made them, however that thread ends.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The script of a host's first process. All other processes of the host end with it, and it reaps
/// those that have lost their parent.
const FIRST: &str = "hostname \"$0\" && mount -t tmpfs none /media && mount -t tmpfs none /sys/fs/cgroup && ip link set lo up && echo up && while sleep 1; do :; done";

pub(crate) struct Hosts(Vec<Host>);

struct Host {
    /// The parent of the first process. The host ends with it.
    keeper: Child,
    first: Pid,
}

impl Hosts {
    /// Makes hosts with these names and the addresses 10.99.0.1, 10.99.0.2 and so on. A bridge on
    /// the first host connects them.
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

    /// Runs `ip WORDS` in the first host's network. Process ids in `words` are those of this
    /// machine.
    pub(crate) fn network(&self, words: &str) {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.0[0].first.to_string(), "--net", "ip"]).args(words.split(' '));
        assert!(command.status().unwrap().success(), "ip {words}");
    }

    /// The command `words` on the host with this number, in `folder`.
    pub(crate) fn command(&self, number: usize, folder: &Path, words: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        // All hosts share /tmp but do not see each other's processes. In /tmp a host would take
        // another host's files for stale ones.
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

    /// The path of the host's `/media` as seen from this machine.
    pub(crate) fn folder(&self, number: usize) -> PathBuf {
        Path::new("/proc").join(self.0[number].first.to_string()).join("root/media")
    }

    /// Ends the host at once, as if its power had failed.
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

/// The first process on any host whose command line satisfies `is_it`.
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
