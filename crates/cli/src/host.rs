//! Checks whether this host can run a plan: its CPUs, its space, and its folders. It reads the
//! kernel's files below a root that tests may move.
//!
//! Where a plan names no CPUs, this module divides the machine's CPUs between servers and client.
//! Each side gets whole cores.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dbdyno_db::server::{Cgroup, RuntimeDir};
use dbdyno_model::{CpuList, Cpus, NoLimit};
use dbdyno_plan::{Basis, Plan, estimate};
use dbdyno_products::VariantKind;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, Pid, access};
use tokio::runtime::Runtime;

use crate::exit::ExitError;
use crate::{host, limits, terminal, time};

/// Unit of a file's block count in bytes, whatever the filesystem's own block size.
const BLOCK_BYTES: u64 = 512;

/// Variable that names the folder of kept templates, unless the command line names one.
const TEMPLATES_VARIABLE: &str = "DBDYNO_TEMPLATES";

/// Writing 3 to this file drops the page cache, and the cached names and inodes (see proc(5)). The
/// kernel drops only what is on the disk already.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Refuses a plan that cannot run on this machine, warns of conditions that make its numbers
/// doubtful, and makes the folders that the run needs. A resumed run already has `held_bytes` of
/// data on the disk, so it needs that much less free space.
pub(crate) fn check(plan: &Plan, out: &Path, held_bytes: u64) -> Result<(), ExitError> {
    if cfg!(debug_assertions) {
        terminal::warning("this is a debug build of dbdyno; use --release for numbers that count");
    }
    check_cpus(plan)?;
    let data_dir = plan.host.data_dir.as_deref().unwrap_or(out);
    for folder in [out, data_dir] {
        std::fs::create_dir_all(folder).map_err(|error| cannot_make(folder, &error))?;
    }
    check_disk(plan, data_dir, held_bytes)
}

/// Returns the error with which [`check`] would refuse a run into `out`. It makes no folder.
pub(crate) fn foresee(plan: &Plan, out: &Path) -> Result<(), ExitError> {
    check_cpus(plan)?;
    let data_dir = plan.host.data_dir.as_deref().unwrap_or(out);
    for folder in [out, data_dir] {
        can_make(folder).map_err(|error| cannot_make(folder, &error))?;
    }
    check_disk(plan, nearest(data_dir), 0)
}

fn cannot_make(folder: &Path, error: &std::io::Error) -> ExitError {
    let advice = "name another one with --out or host.data_dir";
    ExitError::machine(format!("cannot make folder {}: {error}; {advice}", folder.display()))
}

/// Returns the folder itself, or the nearest existing one above it.
fn nearest(folder: &Path) -> &Path {
    let above =
        folder.ancestors().map(|above| if above.as_os_str().is_empty() { Path::new(".") } else { above });
    above.into_iter().find(|above| above.symlink_metadata().is_ok()).unwrap_or(Path::new("."))
}

fn can_make(folder: &Path) -> std::io::Result<()> {
    let found = nearest(folder);
    if found == folder {
        // The error is the same as for making a folder where a file exists.
        let is_folder = found.metadata().is_ok_and(|metadata| metadata.is_dir());
        return if is_folder { Ok(()) } else { Err(Errno::EEXIST.into()) };
    }
    if !found.metadata()?.is_dir() {
        return Err(Errno::ENOTDIR.into());
    }
    Ok(access(found, AccessFlags::W_OK | AccessFlags::X_OK)?)
}

fn check_disk(plan: &Plan, data_dir: &Path, held_bytes: u64) -> Result<(), ExitError> {
    let needed = estimate(plan, &Basis::default()).peak_disk_bytes.saturating_sub(held_bytes);
    let free = free_bytes(data_dir).map_err(|error| {
        ExitError::machine(format!("cannot read the free space of {}: {error}", data_dir.display()))
    })?;
    if needed > free {
        return Err(ExitError::machine(format!(
            "the plan needs about {} in {}, which has {} free; make room, name another folder with host.data_dir, \
                 or plan fewer rows",
            time::bytes(needed),
            data_dir.display(),
            time::bytes(free)
        )));
    }
    Ok(())
}

/// Refuses a plan whose servers need sockets, cold caches or memory limits that this machine cannot
/// provide.
pub(crate) fn check_life(plan: &Plan) -> Result<(), ExitError> {
    if plan.variants.iter().any(|variant| VariantKind::of(variant).is_started()) {
        // Each server gets a folder like this one for its socket, so making one must succeed.
        RuntimeDir::new().map_err(ExitError::machine)?;
    }
    check_cold(plan)?;
    let mut limits = plan.variants.iter().filter_map(|variant| plan.server_memory(&variant.name));
    let Some(limit) = limits.next() else { return Ok(()) };
    match (Cgroup::with_memory(limit.0), plan.host.no_memory_limit) {
        (Ok(_), _) => Ok(()),
        (Err(error), NoLimit::Refuse) => Err(ExitError::machine(format!(
            "{error}; no_memory_limit = \"warn\" in [host] runs without the limit, and the report says so"
        ))),
        (Err(error), NoLimit::Warn) => {
            terminal::warning(&format!("servers run without their memory limit: {error}"));
            Ok(())
        }
    }
}

/// Refuses a plan with cold steps where caches cannot be dropped.
fn check_cold(plan: &Plan) -> Result<(), ExitError> {
    if !plan.workload.is_cold() {
        return Ok(());
    }
    match File::options().write(true).open(DROP_CACHES) {
        Ok(_) => Ok(()),
        Err(error) => Err(ExitError::machine(format!(
            "cold steps drop the kernel's caches, which needs root ({DROP_CACHES}: {error}); leave cold out"
        ))),
    }
}

/// Syncs all data to the disk and drops the kernel's caches, for all files of this machine.
pub(crate) fn drop_caches() -> Result<(), String> {
    nix::unistd::sync();
    let mut file = File::options()
        .write(true)
        .open(DROP_CACHES)
        .map_err(|error| format!("cannot open {DROP_CACHES}: {error}"))?;
    file.write_all(b"3\n").map_err(|error| format!("cannot drop the kernel's caches: {error}"))
}

pub(crate) fn free_bytes(folder: &Path) -> nix::Result<u64> {
    let space = statvfs(folder)?;
    Ok(space.blocks_available() * space.fragment_size())
}

/// Returns the bytes of the files below `folder`, or 0 where there is none.
pub(crate) fn size_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of_entry = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_of(&entry.path()),
        Ok(found) => found.blocks() * BLOCK_BYTES,
        Err(_) => 0,
    };
    entries.map(of_entry).sum()
}

fn check_cpus(plan: &Plan) -> Result<(), ExitError> {
    let usable = usable_cpus()?;
    for (key, list) in [("server_cpus", &plan.host.server_cpus), ("client_cpus", &plan.host.client_cpus)] {
        for &cpu in list.iter().flat_map(|list| &list.0) {
            if !usable.0.contains(&cpu) {
                return Err(ExitError::machine(format!(
                    "host.{key} names CPU {cpu}, which this process may not use; it may use {usable}"
                )));
            }
        }
    }
    Ok(())
}

/// Returns the CPUs of the servers: the plan's, otherwise all that this process may use. It is
/// `None` when nothing is pinned. It must be called before [`pin_client`], because servers inherit
/// the CPUs of the thread that starts them.
pub(crate) fn server_cpus(plan: &Plan) -> Option<Vec<u32>> {
    if let Some(list) = &plan.host.server_cpus {
        return Some(list.0.clone());
    }
    plan.host.client_cpus.as_ref()?;
    usable_cpus().ok().map(|usable| usable.0)
}

pub(crate) fn usable_cpus() -> Result<CpuList, ExitError> {
    let set = sched_getaffinity(Pid::from_raw(0))
        .map_err(|error| ExitError::machine(format!("cannot read this process's CPUs: {error}")))?;
    let usable = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false));
    Ok(CpuList(usable.filter_map(|cpu| u32::try_from(cpu).ok()).collect()))
}

pub(crate) fn event_loop() -> Result<Runtime, ExitError> {
    /// Number of files that an event loop opens. It panics when it cannot open those for signals,
    /// so as many files are opened and closed first. A failure is then an error and no panic.
    const FILES: usize = 12;
    let room: std::io::Result<Vec<File>> = (0..FILES).map(|_| File::open("/dev/null")).collect();
    let room = room.map(drop);
    room.and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build()).map_err(|error| {
        let advice = format!("let this process open more files ({})", limits::files_in_words());
        ExitError::machine(format!("cannot start an event loop: {error}; {advice}"))
    })
}

/// Keeps dbdyno itself off the servers' CPUs. Threads that start later inherit its CPUs, but
/// servers get their own.
pub(crate) fn pin_client(plan: &Plan) -> Result<(), ExitError> {
    plan.host.client_cpus.as_ref().map_or(Ok(()), pin_thread)
}

/// Keeps this thread, and those that it starts, to `cpus`.
pub(crate) fn pin_thread(cpus: &CpuList) -> Result<(), ExitError> {
    let mut set = CpuSet::new();
    for &cpu in &cpus.0 {
        set.set(cpu as usize).map_err(|error| ExitError::machine(format!("no CPU {cpu}: {error}")))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
        .map_err(|error| ExitError::machine(format!("cannot pin to CPUs {cpus}: {error}")))
}

/// Returns the folder in which templates are kept, if the command line or the environment names
/// one. It is made before anything runs.
pub(crate) fn kept_templates(named: Option<&Path>) -> Result<Option<PathBuf>, ExitError> {
    let of_variable =
        || std::env::var_os(TEMPLATES_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let Some(folder) = named.map(Path::to_path_buf).or_else(of_variable) else { return Ok(None) };
    std::fs::create_dir_all(&folder).and_then(|()| std::path::absolute(&folder)).map(Some).map_err(|error| {
        let what = format!("cannot make the folder for templates {}: {error}", folder.display());
        ExitError::machine(format!("{what}; name another one with --templates or {TEMPLATES_VARIABLE}"))
    })
}

/// The files below a root folder. The root `/` is this machine.
#[derive(Debug, Clone)]
pub(crate) struct HostFiles {
    root: PathBuf,
}

impl HostFiles {
    pub(crate) fn here() -> Self {
        Self { root: PathBuf::from("/") }
    }

    #[cfg(test)]
    pub(crate) fn below(root: &std::path::Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(crate) fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.path(path)).ok()
    }

    /// Returns a file's text without the white space around it.
    pub(crate) fn line(&self, path: &str) -> Option<String> {
        Some(self.text(path)?.trim().to_owned())
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.line(path)?.parse().ok()
    }

    /// Returns a value of `/proc/meminfo` in bytes. There kB means 1024 bytes.
    pub(crate) fn meminfo(&self, key: &str) -> Option<u64> {
        let text = self.text("/proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    }

    /// Returns the word in brackets among several: `always [madvise] never`.
    pub(crate) fn chosen(&self, path: &str) -> Option<String> {
        let line = self.line(path)?;
        let (_, rest) = line.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    }

    /// Returns the names in a folder, sorted.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    pub(crate) fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }
}

/// Makes a machine from a few files, for tests of code that reads them.
#[cfg(test)]
pub(crate) fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, HostFiles) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let machine = HostFiles::below(folder.path());
    for (path, text) in files {
        let path = machine.path(path);
        std::fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    (folder, machine)
}

/// The client gets one core out of this many. The client's cores are the last ones.
const CORES_PER_CLIENT_CORE: usize = 4;

/// Variable that, with the value `shared`, leaves servers and client on all CPUs where the plan
/// names none. It is for machines that do other work as well.
const CPUS_VARIABLE: &str = "DBDYNO_CPUS";

/// Connections for which the client gets one core.
const CONNECTIONS_PER_CORE: u32 = 64;

/// Divides the CPUs between the client and the servers that dbdyno starts. It does so only where
/// the plan names no CPUs and this process may use two or more. The CPUs are whole cores of one
/// NUMA node. The client gets the last cores, one per 64 connections and at most a quarter, but at
/// least one.
pub(crate) fn give_cpus(plan: &mut Plan) {
    let is_shared = std::env::var_os(CPUS_VARIABLE).is_some_and(|value| value == "shared");
    let host_options = &plan.host;
    let is_named = host_options.server_cpus.is_some() || host_options.client_cpus.is_some();
    let starts_servers = plan.variants.iter().any(|variant| VariantKind::of(variant).is_started());
    if is_shared || is_named || host_options.cpus == Cpus::Shared || !starts_servers {
        return;
    }
    let Ok(usable) = host::usable_cpus() else { return };
    let most_cores = plan.workload.most_connections().div_ceil(CONNECTIONS_PER_CORE).max(1);
    let (server, client) = sides(&HostFiles::here(), &usable.0, most_cores as usize);
    let fits = plan.host.client_threads.is_none_or(|threads| threads as usize <= client.len());
    if !client.is_empty() && fits {
        (plan.host.server_cpus, plan.host.client_cpus) = (Some(CpuList(server)), Some(CpuList(client)));
    }
}

/// Returns the CPUs of the server and of the client. They are on the NUMA node that has the most
/// usable CPUs. The client gets at most `most` cores, and none where there is one CPU. Where all
/// CPUs are one core, each CPU counts as a core.
fn sides(files: &HostFiles, usable: &[u32], most: usize) -> (Vec<u32>, Vec<u32>) {
    let usable = of_one_node(files, usable);
    let cores = match cores(files, &usable) {
        cores if cores.len() > 1 => cores,
        _ => usable.iter().map(|cpu| vec![*cpu]).collect(),
    };
    if cores.len() < 2 {
        return (usable, Vec::new());
    }
    let for_client = (cores.len() / CORES_PER_CLIENT_CORE).min(most).max(1);
    let (server, client) = cores.split_at(cores.len() - for_client);
    let sorted = |cores: &[Vec<u32>]| {
        let mut cpus = cores.concat();
        cpus.sort_unstable();
        cpus
    };
    (sorted(server), sorted(client))
}

/// Returns the usable CPUs of the NUMA node that has the most of them. It returns all usable CPUs
/// where no node has two.
fn of_one_node(files: &HostFiles, usable: &[u32]) -> Vec<u32> {
    let folder = "/sys/devices/system/node";
    let of_node = |node: String| {
        let list = files.line(&format!("{folder}/{node}/cpulist"))?.parse::<CpuList>().ok()?;
        Some(usable.iter().copied().filter(|cpu| list.0.contains(cpu)).collect::<Vec<u32>>())
    };
    let nodes = files.names(folder).into_iter().filter_map(of_node);
    // The first of equally large nodes wins.
    let largest = nodes.reduce(|best, node| if node.len() > best.len() { node } else { best });
    largest.filter(|node| node.len() > 1).unwrap_or_else(|| usable.to_vec())
}

/// Returns the CPUs of each core, as the kernel reports them, in the order of their first CPUs.
fn cores(files: &HostFiles, usable: &[u32]) -> Vec<Vec<u32>> {
    let mut cores: Vec<(Option<String>, Vec<u32>)> = Vec::new();
    for &cpu in usable {
        let siblings = files.line(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
        match cores.iter_mut().find(|(core, _)| core.is_some() && *core == siblings) {
            Some((_, cpus)) => cpus.push(cpu),
            None => cores.push((siblings, vec![cpu])),
        }
    }
    cores.into_iter().map(|(_, cpus)| cpus).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn plan(host: &str) -> Plan {
        let text = format!("name = \"p\"\n[host]\n{host}\n[[variant]]\nname = \"a\"\nserver = \"null\"\n");
        let text = format!("{text}[workload.insert-benchmark]\n");
        dbdyno_workloads::plans::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_server_keeps_all_cpus_when_only_the_client_is_pinned() {
        assert_eq!(server_cpus(&plan("")), None);
        assert_eq!(server_cpus(&plan("server_cpus = \"1-2\"")), Some(vec![1, 2]));
        let all = server_cpus(&plan("client_cpus = \"0\"")).expect("CPUs are named");
        assert_eq!(all.len(), std::thread::available_parallelism().expect("Linux says").get());
        assert_eq!(usable_cpus().expect("Linux says").0, all);
    }

    #[test]
    fn foresee_returns_the_error_of_check_for_a_folder_that_cannot_be_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("a file");
        for wrong in [file.clone(), file.join("below"), file.join("far/below")] {
            let foreseen = foresee(&plan(""), &wrong).expect_err("it cannot be made").message;
            let found = check(&plan(""), &wrong, 0).expect_err("it cannot be made").message;
            assert_eq!(foreseen, found, "{}", wrong.display());
        }
        let right = folder.path().join("a/b");
        assert!(foresee(&plan(""), &right).is_ok() && !folder.path().join("a").exists());
    }

    #[test]
    fn the_size_of_a_folder_includes_all_folders_below_it() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(size_of(&folder.path().join("nonesuch")), 0);
        let inner = folder.path().join("a/b");
        std::fs::create_dir_all(&inner).expect("folders");
        std::fs::write(inner.join("data"), vec![1; 100_000]).expect("a file");
        std::fs::write(folder.path().join("more"), vec![1; 50_000]).expect("a file");
        assert!(size_of(folder.path()) >= 150_000, "{}", size_of(folder.path()));
    }

    #[test]
    fn files_are_read_below_the_root_and_absent_ones_give_nothing() {
        let (_folder, files) = machine(&[("/sys/a/mode", "x [y] z\n"), ("/proc/n", " 12\n")]);
        assert_eq!((files.chosen("/sys/a/mode").as_deref(), files.number("/proc/n")), (Some("y"), Some(12)));
        assert_eq!((files.line("/proc/absent"), files.names("/sys")), (None, vec!["a".to_owned()]));
        assert!(files.has("/sys/a") && !files.has("/sys/b"));
        assert_eq!(HostFiles::here().path("/proc/loadavg"), Path::new("/proc/loadavg"));
    }

    const TOPOLOGY: &str = "/sys/devices/system/cpu/cpu";

    fn sides_of(siblings: &[&str], usable: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let paths: Vec<String> =
            (0..siblings.len()).map(|cpu| format!("{TOPOLOGY}{cpu}/topology/thread_siblings_list")).collect();
        let files: Vec<(&str, &str)> =
            paths.iter().map(String::as_str).zip(siblings.iter().copied()).collect();
        sides(&machine(&files).1, usable, usize::MAX)
    }

    #[test]
    fn the_client_has_a_quarter_of_the_cores_and_at_least_one() {
        assert_eq!(sides_of(&[], &[0]), (vec![0], vec![]));
        assert_eq!(sides_of(&[], &[0, 1]), (vec![0], vec![1]));
        assert_eq!(sides_of(&[], &[0, 1, 2, 3, 4, 5, 6, 7]), (vec![0, 1, 2, 3, 4, 5], vec![6, 7]));
    }

    #[test]
    fn cores_stay_whole_unless_there_is_only_one() {
        let siblings = ["0,2\n", "1,3\n", "0,2\n", "1,3\n"];
        assert_eq!(sides_of(&siblings, &[0, 1, 2, 3]), (vec![0, 2], vec![1, 3]));
        assert_eq!(sides_of(&siblings, &[0, 3]), (vec![0], vec![3]), "a sibling that may not be used");
        assert_eq!(sides_of(&["0-1\n", "0-1\n"], &[0, 1]), (vec![0], vec![1]), "one core");
    }

    #[test]
    fn of_several_nodes_the_largest_is_used_and_few_connections_need_few_cores() {
        let nodes = [
            ("/sys/devices/system/node/node0/cpulist", "0-3\n"),
            ("/sys/devices/system/node/node1/cpulist", "4-15\n"),
        ];
        let usable: Vec<u32> = (0..16).collect();
        let sides = |files: &[(&str, &str)], most| sides(&machine(files).1, &usable, most);
        assert_eq!(sides(&nodes, 9), ((4..13).collect(), vec![13, 14, 15]));
        assert_eq!(sides(&nodes, 1), ((4..15).collect(), vec![15]));
        assert_eq!(sides(&[], 2), ((0..14).collect(), vec![14, 15]));
    }
}
