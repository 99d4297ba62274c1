//! Files for machines that do not see the run's folder. They travel over the standard input and output of tasks, once to each
//! machine: it keeps them by the hash of their content.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dbdyno_plan::{Plan, VariantKind};
use dbdyno_provision::{calling, servers_dir};
use dbdyno_record::Run;
use sha2::{Digest, Sha256};

use crate::exit::{Ended, MACHINE};
use crate::fleet::{FOLDER, Fleet, Machine, POLL};

/// A machine that is free answers in this time.
const PROBE: Duration = Duration::from_secs(30);

/// What a machine runs; see its first lines.
const PROGRAM: &str = include_str!("shipped.sh");

/// Names in a run directory that no task needs.
const LEFT_OUT: [&str; 5] = ["cells", "aside", "data", "clients", FOLDER];

/// What the tasks of a run need, next to the run's own files.
pub(super) struct Shipment(Vec<Archive>);

/// Files as tar writes them, always the same bytes.
struct Archive {
    folder: PathBuf,
    names: Vec<PathBuf>,
    hash: String,
    bytes: u64,
}

impl Shipment {
    /// dbdyno itself, the files that the plan names, its servers.
    ///
    /// # Errors
    /// Files that cannot be read.
    fn of(mut plan: Plan) -> Result<Self, Ended> {
        let cannot = |error| Ended::new(MACHINE, format!("cannot find dbdyno itself: {error}"));
        let program = std::env::current_exe().map_err(cannot)?;
        let folder = program.parent().unwrap_or(Path::new("/")).to_owned();
        let mut all = vec![Archive::of(folder, vec![program.file_name().unwrap_or_default().into()])?];
        let named: BTreeSet<PathBuf> = plan.files_mut().into_iter().map(|path| path.clone()).collect();
        let below_root = |path: PathBuf| path.strip_prefix("/").map_or(path.clone(), Path::to_path_buf);
        all.push(Archive::of("/".into(), named.into_iter().map(below_root).collect())?);
        let servers: BTreeSet<String> = plan
            .variants
            .iter()
            .filter_map(|variant| match variant.kind() {
                VariantKind::Named(name) => Some(name.clone()),
                _ => None,
            })
            .collect();
        for name in servers {
            let facts = format!("{name}.toml");
            let has_facts = servers_dir().join(&facts).exists();
            let names = [Some(name), has_facts.then_some(facts)].into_iter().flatten();
            all.push(Archive::of(servers_dir(), names.map(PathBuf::from).collect())?);
        }
        Ok(Self(all))
    }

    /// The words that run a task on a machine.
    pub(super) fn words(&self, block: u32, name: &str, templates: Option<&Path>) -> Vec<String> {
        let templates =
            templates.map_or_else(String::new, |folder| format!("--templates={}", folder.display()));
        let mut words = ["sh", "-c", PROGRAM, "dbdyno"].map(str::to_owned).to_vec();
        words.extend([block.to_string(), name.to_owned(), templates]);
        words.extend(self.0.iter().map(|archive| archive.hash.clone()));
        words
    }

    /// Gives the machine of a task what it lacks and the files of the run in `dir`, and takes the records of the task into the folder
    /// of tasks. What fails shows in what the task leaves.
    pub(super) fn attend(self: &Arc<Self>, child: &mut Child, dir: &Path) -> JoinHandle<io::Result<()>> {
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (shipment, dir) = (Arc::clone(self), dir.to_owned());
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
            let mut tar = calling("tar");
            tar.args(["--extract", "--directory"]).arg(dir.join(FOLDER)).stdin(Stdio::piped());
            let mut tar = tar.spawn()?;
            let copied = tar.stdin.take().map(|mut records| io::copy(&mut output, &mut records));
            tar.wait()?;
            copied.transpose().map(drop)
        })
    }
}

impl Fleet<'_> {
    /// Asks all machines at once whether they see the run's folder. What is to travel to those that do not.
    ///
    /// # Errors
    /// When the engine cannot be called, or files cannot be read.
    pub(super) fn shipment(&mut self, machines: &mut [Machine]) -> Result<Option<Shipment>, Ended> {
        if self.launcher.is_here() {
            return Ok(None);
        }
        let run = std::path::absolute(self.writer.dir()).unwrap_or(self.writer.dir().to_owned());
        let words = ["test".to_owned(), "-d".to_owned(), run.join(FOLDER).display().to_string()];
        let mut asked = Vec::new();
        for (number, machine) in machines.iter().enumerate() {
            let log = run.join(FOLDER).join(format!("{}.log", machine.name));
            asked.push(self.launcher.start(number, &words, &log, false)?);
        }
        let deadline = Instant::now() + PROBE;
        while asked.iter_mut().any(|child| matches!(child.try_wait(), Ok(None))) && Instant::now() < deadline
        {
            thread::sleep(POLL);
        }
        for (machine, mut child) in machines.iter_mut().zip(asked) {
            // One that has not answered is to run a task all the same.
            machine.lacks_files = child.try_wait().ok().flatten().is_some_and(|status| !status.success());
            let _ = child.kill();
            let _ = child.wait();
        }
        let lacking = machines.iter().filter(|machine| machine.lacks_files);
        let names = lacking.map(|machine| machine.name.as_str()).collect::<Vec<_>>().join(", ");
        if names.is_empty() {
            return Ok(None);
        }
        self.progress.line(&format!("files travel to {names}: the folder of the run is not there"));
        let record = Run::outline(&run)?;
        let plan = dbdyno_workloads::plans::parse(&record.manifest.plan_toml, "the run's plan")?;
        Shipment::of(plan).map(Some)
    }
}

/// The files of a run that its tasks read.
fn own_files(dir: &Path) -> io::Result<Archive> {
    let names = std::fs::read_dir(dir)?.map(|entry| entry.map(|entry| PathBuf::from(entry.file_name())));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.retain(|name| LEFT_OUT.iter().all(|left_out| name != Path::new(left_out)));
    Ok(Archive { folder: dir.to_owned(), names, hash: String::new(), bytes: 0 })
}

impl Archive {
    fn of(folder: PathBuf, names: Vec<PathBuf>) -> Result<Self, Ended> {
        let mut archive = Self { folder, names, hash: String::new(), bytes: 0 };
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
            Ended::new(MACHINE, format!("{what}; is tar there (package tar), and may you read them?"))
        })?;
        archive.hash = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        archive.bytes = bytes;
        Ok(archive)
    }

    fn read(&self, take: impl FnOnce(&mut dyn Read) -> io::Result<()>) -> io::Result<()> {
        let mut child = self.tar().spawn()?;
        let taken = child.stdout.take().map_or(Ok(()), |mut output| take(&mut output));
        let status = child.wait()?;
        taken?;
        // 1: a file has grown meanwhile, as the run's events do.
        match status.code() {
            Some(0 | 1) => Ok(()),
            _ => Err(io::Error::other(format!("tar: {status}"))),
        }
    }

    /// The same bytes for the same files, whoever owns them and whenever they were written.
    fn tar(&self) -> Command {
        let mut tar = calling("tar");
        tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
        tar.arg("--directory").arg(&self.folder).args(["--files-from=/dev/null", "--"]).args(&self.names);
        tar.stdin(Stdio::null()).stdout(Stdio::piped());
        tar
    }
}

#[cfg(test)]
mod tests {
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
}
