//! Sends a run's files to machines that lack them. They travel over the standard input and output
//! of tasks, once to each machine, which keeps them by the hash of their content.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dbdyno_db::server::{clean_command, servers_dir};
use dbdyno_plan::{Plan, each_file};
use dbdyno_products::VariantKind;
use dbdyno_record::Run;
use sha2::{Digest, Sha256};

use crate::engines::{ask_to_end, running_program, this_program};
use crate::exit::ExitError;
use crate::fleet::{FOLDER, Fleet, Machine, POLL};

/// Longest wait for a machine to report whether it has the files. A machine that does not answer
/// gets the files.
const PROBE: Duration = Duration::from_secs(60);

/// Shell command that tests whether a machine has all files that its arguments name.
const HAS_ALL: &str = "for path; do [ -e \"$path\" ] || exit 1; done";

/// Name of the last entry in a task's records, see [`PROGRAM`].
const END: &str = "end";

/// The shell program that a machine runs. Its first lines describe it.
const PROGRAM: &str = include_str!("shipped.sh");

/// Names in a run directory that no task needs.
const LEFT_OUT: [&str; 5] = ["cells", "aside", "data", "clients", FOLDER];

/// Archives that a run's tasks need in addition to the run's own files.
pub(super) struct Shipment(Vec<Archive>);

/// Files packed by tar. Equal files always give the same bytes.
struct Archive {
    folder: PathBuf,
    names: Vec<PathBuf>,
    /// Further options for tar.
    options: &'static [&'static str],
    hash: String,
    bytes: u64,
}

impl Shipment {
    /// Packs dbdyno itself, the files that the plan names, and its servers.
    fn of(plan: &mut Plan) -> Result<Self, ExitError> {
        let mut all = vec![Archive::of_program(&running_program())?];
        let below_root = |path: PathBuf| path.strip_prefix("/").map_or(path.clone(), Path::to_path_buf);
        all.push(Archive::of("/".into(), named(plan).into_iter().map(below_root).collect())?);
        for name in servers(plan) {
            all.push(Archive::of_server(servers_dir(), &name)?);
        }
        Ok(Self(all))
    }

    pub(super) fn words(&self, block: u32, name: &str, templates: Option<String>) -> Vec<String> {
        let mut words = ["sh", "-c", PROGRAM, "dbdyno"].map(str::to_owned).to_vec();
        words.extend([block.to_string(), name.to_owned(), templates.unwrap_or_default()]);
        words.extend(self.0.iter().map(|archive| archive.hash.clone()));
        words
    }

    /// Sends a task's machine the archives that it lacks and the files of the run in `dir`. It then
    /// takes the task's records into the folder of tasks.
    pub(super) fn attend(
        self: &Arc<Self>,
        child: &mut Child,
        dir: &Path,
        name: &str,
    ) -> JoinHandle<io::Result<()>> {
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (shipment, dir, name) = (Arc::clone(self), dir.to_owned(), name.to_owned());
        thread::spawn(move || {
            let (Some(mut input), Some(output)) = (input, output) else { return Ok(()) };
            let mut output = BufReader::new(output);
            let mut line = String::new();
            output.read_line(&mut line)?;
            let lacks: BTreeSet<&str> = line.split_whitespace().skip(1).collect();
            for archive in shipment.0.iter().filter(|archive| lacks.contains(archive.hash.as_str())) {
                writeln!(input, "{} {}", archive.hash, archive.bytes)?;
                archive.read(|output| io::copy(output, &mut input).map(drop))?;
            }
            let mut own = Vec::new();
            own_files(&dir)?.read(|output| output.read_to_end(&mut own).map(drop))?;
            writeln!(input, "run {}", own.len())?;
            input.write_all(&own)?;
            drop(input);
            take_records(&mut output, &dir.join(FOLDER), &name)
        })
    }
}

/// Takes the records of the task `name`, if there are any, into `folder`. It takes all of them or
/// none.
fn take_records(output: &mut impl BufRead, folder: &Path, name: &str) -> io::Result<()> {
    if output.fill_buf()?.is_empty() {
        return Ok(());
    }
    let log = File::options().append(true).create(true).open(folder.join(format!("{name}.log")))?;
    let partial = folder.join(format!("{name}.partial"));
    std::fs::create_dir(&partial)?;
    let mut tar = clean_command("tar");
    tar.args(["--extract", "--no-same-owner", "--directory"]).arg(&partial);
    let mut tar = tar.stdin(Stdio::piped()).stderr(log).spawn()?;
    if let Some(mut records) = tar.stdin.take() {
        // A failure shows in tar's status.
        let _ = io::copy(output, &mut records);
    }
    let status = tar.wait()?;
    // tar does not notice an archive that was cut off between two files, so the last entry is
    // checked.
    let taken = match status.success() && partial.join(END).exists() {
        true => std::fs::rename(partial.join(name), folder.join(name)),
        false => Err(io::Error::other(format!("its records have not arrived whole: tar: {status}"))),
    };
    std::fs::remove_dir_all(&partial)?;
    taken
}

impl Fleet<'_> {
    /// Asks all machines at once whether they have the files of the run. It returns the archives
    /// for those that lack some.
    pub(super) fn shipment(&mut self, machines: &mut [Machine]) -> Result<Option<Shipment>, ExitError> {
        let run = std::path::absolute(self.writer.dir()).unwrap_or(self.writer.dir().to_owned());
        let record = Run::outline(&run)?;
        let mut plan = dbdyno_workloads::plans::of_record(&record.manifest.plan)?;
        let program = this_program()?;
        // No machine has a copy of a program whose file was replaced.
        let is_replaced = program == running_program();
        let mut needed = BTreeSet::from([run.join(FOLDER), program]);
        needed.extend(named(&mut plan));
        needed.extend(servers(&plan).into_iter().map(|name| servers_dir().join(name)));
        let mut words = ["sh", "-c", HAS_ALL, "dbdyno"].map(str::to_owned).to_vec();
        words.extend(needed.iter().map(|path| path.display().to_string()));
        let mut asked = Vec::new();
        for (number, machine) in machines.iter().enumerate() {
            let log = run.join(FOLDER).join(format!("{}.log", machine.name));
            asked.push(self.launcher.start(number, &words, &log, false)?);
        }
        let deadline = Instant::now() + PROBE;
        while asked.iter_mut().any(|child| matches!(child.try_wait(), Ok(None)))
            && Instant::now() < deadline
            && !self.cancelled()
        {
            thread::sleep(POLL);
        }
        for (machine, mut child) in machines.iter_mut().zip(asked) {
            match child.try_wait() {
                Ok(Some(status)) => machine.lacks_files = is_replaced || !status.success(),
                // A machine that did not answer is sent the files. A task with files also runs
                // where the machine has them, but a task without files fails where they are
                // missing.
                _ => {
                    machine.lacks_files = true;
                    ask_to_end(&child);
                }
            }
        }
        let lacking = machines.iter().filter(|machine| machine.lacks_files);
        let names = lacking.map(|machine| machine.name.as_str()).collect::<Vec<_>>().join(", ");
        if names.is_empty() || self.cancelled() {
            return Ok(None);
        }
        self.progress
            .line(&format!("files travel to {names}: not all that the run needs is known to be there"));
        Shipment::of(&mut plan).map(Some)
    }
}

/// Returns the files that a plan names, as far as they still exist on this machine. A resumed run
/// has its own copies of option files.
fn named(plan: &mut Plan) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    each_file(plan, |path| found.extend(path.exists().then(|| path.clone())));
    found
}

/// Returns the plan's servers that are in the servers folder.
fn servers(plan: &Plan) -> BTreeSet<String> {
    let name = |kind: VariantKind| match kind {
        VariantKind::Named(name) => Some(name),
        _ => None,
    };
    plan.variants.iter().filter_map(|variant| name(VariantKind::of(variant))).collect()
}

fn own_files(dir: &Path) -> io::Result<Archive> {
    let names = std::fs::read_dir(dir)?.map(|entry| entry.map(|entry| PathBuf::from(entry.file_name())));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.retain(|name| LEFT_OUT.iter().all(|left_out| name != Path::new(left_out)));
    Ok(Archive { folder: dir.to_owned(), names, options: &[], hash: String::new(), bytes: 0 })
}

impl Archive {
    fn of(folder: PathBuf, names: Vec<PathBuf>) -> Result<Self, ExitError> {
        Self::with_options(folder, names, &[])
    }

    /// Packs dbdyno, by the kernel's link to the running program, because its file may have been
    /// replaced.
    fn of_program(link: &Path) -> Result<Self, ExitError> {
        let folder = link.parent().unwrap_or(Path::new("/")).to_owned();
        let names = vec![link.file_name().unwrap_or_default().into()];
        Self::with_options(folder, names, &["--dereference", "--transform=s,^.*$,dbdyno,"])
    }

    fn with_options(
        folder: PathBuf,
        names: Vec<PathBuf>,
        options: &'static [&'static str],
    ) -> Result<Self, ExitError> {
        let mut archive = Self { folder, names, options, hash: String::new(), bytes: 0 };
        let (mut hash, mut bytes) = (Sha256::new(), 0);
        let read = archive.read(|output| {
            let mut piece = vec![0; 1 << 16];
            loop {
                let count = output.read(&mut piece)?;
                if count == 0 {
                    return Ok(());
                }
                hash.update(&piece[..count]);
                bytes += count as u64;
            }
        });
        read.map_err(|error| {
            let what =
                format!("cannot read files for the machines from {}: {error}", archive.folder.display());
            ExitError::machine(format!("{what}; is tar there (package tar), and may you read them?"))
        })?;
        archive.hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        archive.bytes = bytes;
        Ok(archive)
    }

    /// Packs the server `name` of a servers folder. If the server is a link, it packs the folder to
    /// which the link leads.
    fn of_server(folder: PathBuf, name: &str) -> Result<Self, ExitError> {
        let facts = format!("{name}.toml");
        let has_facts = folder.join(&facts).exists();
        let names = [Some(format!("{name}/.")), has_facts.then_some(facts)].into_iter().flatten();
        Self::of(folder, names.map(PathBuf::from).collect())
    }

    fn read(&self, take: impl FnOnce(&mut dyn Read) -> io::Result<()>) -> io::Result<()> {
        let mut child = self.tar().spawn()?;
        let taken = child.stdout.take().map_or(Ok(()), |mut output| take(&mut output));
        let status = child.wait()?;
        taken?;
        // Status 1 means that a file has grown meanwhile, as the run's events do.
        match status.code() {
            Some(0 | 1) => Ok(()),
            _ => Err(io::Error::other(format!("tar: {status}"))),
        }
    }

    /// Runs tar so that the same files give the same bytes. Owners and times are left out.
    fn tar(&self) -> Command {
        let mut tar = clean_command("tar");
        tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
        tar.args(self.options);
        tar.arg("--directory").arg(&self.folder).args(["--files-from=/dev/null", "--"]).args(&self.names);
        tar.stdin(Stdio::null()).stdout(Stdio::piped());
        tar
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::fs::{DirEntryExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn an_archive_has_the_hash_of_its_content() {
        let hash = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("a")).unwrap();
            std::fs::write(folder.path().join("a/b"), text).unwrap();
            let archive = Archive::of(folder.path().to_owned(), vec!["a".into()]).unwrap();
            assert!(archive.bytes > text.len() as u64 && archive.hash.len() == 64);
            archive.hash
        };
        assert_eq!(hash("one"), hash("one"));
        assert_ne!(hash("one"), hash("two"));
        assert!(Archive::of("/".into(), vec!["no/such/file".into()]).is_err());
        assert_eq!(Archive::of("/".into(), Vec::new()).unwrap().names, Vec::<PathBuf>::new());
    }

    #[test]
    fn a_program_whose_file_was_replaced_is_sent_as_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let (program, kept) = (folder.path().join("sleep"), folder.path().join("kept"));
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut running = Command::new(&program).arg("600").spawn().unwrap();
        std::fs::remove_file(&program).unwrap();
        std::fs::write(&program, "another one").unwrap();
        let archive = Archive::of_program(Path::new(&format!("/proc/{}/exe", running.id())));
        std::fs::create_dir(&kept).unwrap();
        let unpacked = archive.map(|archive| {
            archive.read(|output| {
                let mut tar = clean_command("tar");
                let tar = tar.args(["--extract", "--directory"]).arg(&kept).stdin(Stdio::piped());
                let mut tar = tar.spawn()?;
                tar.stdin.take().map_or(Ok(0), |mut input| io::copy(output, &mut input))?;
                tar.wait().map(drop)
            })
        });
        running.kill().unwrap();
        running.wait().unwrap();
        unpacked.unwrap().unwrap();
        let same = std::fs::read(kept.join("dbdyno")).unwrap() == std::fs::read("/bin/sleep").unwrap();
        assert!(same, "the content is that of the program that runs");
    }

    /// Makes files to send, the folder `run`, and the machine's folder `cache`. The task's record
    /// is the content of the files that it has found.
    fn desk() -> (tempfile::TempDir, Shipment) {
        let desk = tempfile::tempdir().unwrap();
        let path = |name: &str| desk.path().join(name);
        for folder in ["run/fleet", "servers", "build", "cache"] {
            std::fs::create_dir_all(path(folder)).unwrap();
        }
        let program = "#!/bin/sh\nmkdir \"$5/$6\" && \
                       cat \"${2#--files=}/c.toml\" \"$3/plan\" \"$DBDYNO_SERVERS/mine/mysqld\" >\"$5/$6/found\"\n";
        std::fs::write(path("dbdyno"), program).unwrap();
        std::fs::set_permissions(path("dbdyno"), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(path("c.toml"), "config ").unwrap();
        std::fs::write(path("run/plan"), "plan ").unwrap();
        std::fs::write(path("build/mysqld"), "server").unwrap();
        symlink(path("build"), path("servers/mine")).unwrap();
        let archive = |folder: PathBuf, name: &str| Archive::of(folder, vec![name.into()]).unwrap();
        let own = ["dbdyno", "c.toml"].map(|name| archive(path(""), name));
        let server = Archive::of_server(path("servers"), "mine").unwrap();
        let all = own.into_iter().chain([server]).collect();
        (desk, Shipment(all))
    }

    /// Starts the task `name` on a machine, as an engine does.
    fn start(shipment: &Arc<Shipment>, desk: &Path, name: &str) -> (Child, JoinHandle<io::Result<()>>) {
        let words = shipment.words(1, name, None);
        let log = File::create(desk.join(format!("run/fleet/{name}.log"))).unwrap();
        let mut command = clean_command(&words[0]);
        command.args(&words[1..]).env("XDG_CACHE_HOME", desk.join("cache"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let courier = shipment.attend(&mut child, &desk.join("run"), name);
        (child, courier)
    }

    /// Returns names and inode numbers of the entries in a folder.
    fn entries(folder: &Path) -> BTreeSet<(OsString, u64)> {
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        entries.map(|entry| (entry.file_name(), entry.ino())).collect()
    }

    #[test]
    fn files_travel_once_to_a_machine_and_records_come_back() {
        let (desk, shipment) = desk();
        let (desk, shipment) = (desk.path(), Arc::new(shipment));
        let run = |names: &[&str]| {
            let tasks: Vec<_> = names.iter().map(|name| start(&shipment, desk, name)).collect();
            for ((mut child, courier), name) in tasks.into_iter().zip(names) {
                courier.join().unwrap().unwrap();
                assert!(child.wait().unwrap().success());
                let found = std::fs::read_to_string(desk.join(format!("run/fleet/{name}/found"))).unwrap();
                assert_eq!(found, "config plan server");
            }
        };
        run(&["a", "b"]);
        let cache = desk.join("cache/dbdyno/fleet");
        let kept = entries(&cache);
        let names: BTreeSet<_> = kept.iter().filter_map(|(name, _)| name.to_str()).collect();
        let hashes = shipment.0.iter().map(|archive| archive.hash.as_str());
        assert_eq!(names, hashes.chain(["tasks", "tasks.lock"]).collect::<BTreeSet<_>>());
        // The machine does not request files again that it has, so the sources may be removed.
        for name in ["dbdyno", "c.toml", "build/mysqld"] {
            std::fs::remove_file(desk.join(name)).unwrap();
        }
        // A killed task leaves such a folder.
        std::fs::create_dir(cache.join("tasks/left")).unwrap();
        run(&["c"]);
        assert_eq!(entries(&cache), kept);
        assert_eq!(entries(&cache.join("tasks")), BTreeSet::new());
    }

    #[test]
    fn files_that_change_in_transit_are_not_kept() {
        let (desk, mut shipment) = desk();
        let other = "0".repeat(64);
        shipment.0[1].hash.clone_from(&other);
        let (mut child, courier) = start(&Arc::new(shipment), desk.path(), "a");
        // The courier may or may not have noticed that the machine has stopped reading.
        let _ = courier.join().unwrap();
        assert!(!child.wait().unwrap().success());
        let log = std::fs::read_to_string(desk.path().join("run/fleet/a.log")).unwrap();
        assert!(
            log.contains(&format!("error: files have changed on their way, or before: {other}\n")),
            "{log}"
        );
        let cache = desk.path().join("cache/dbdyno/fleet");
        assert!(!cache.join(other).exists() && entries(&cache.join("tasks")).is_empty());
        assert!(!desk.path().join("run/fleet/a").exists());
    }

    #[test]
    fn records_are_taken_when_all_have_arrived() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::create_dir_all(from.join("n")).unwrap();
        std::fs::create_dir(&to).unwrap();
        for name in ["n/a", "n/b", END] {
            std::fs::write(from.join(name), name).unwrap();
        }
        let archive = Archive::of(from, vec!["n".into(), END.into()]).unwrap();
        let mut all = Vec::new();
        archive.read(|output| output.read_to_end(&mut all).map(drop)).unwrap();
        let is_last = |at: &usize| all[*at..].starts_with(b"end\0");
        let last = (0..all.len()).step_by(512).find(is_last).unwrap();
        for cut in (512..=last).step_by(256) {
            let error = take_records(&mut &all[..cut], &to, "n").unwrap_err().to_string();
            assert!(error.starts_with("its records have not arrived whole: "), "{cut}: {error}");
            assert!(!to.join("n").exists() && !to.join("n.partial").exists(), "{cut}");
        }
        take_records(&mut &all[..0], &to, "n").unwrap();
        assert!(!to.join("n").exists());
        take_records(&mut &all[..], &to, "n").unwrap();
        assert_eq!(std::fs::read_to_string(to.join("n/b")).unwrap(), "n/b");
    }
}
