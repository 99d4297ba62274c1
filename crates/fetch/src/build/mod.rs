//! Builds servers from the revisions of a git repository.
//!
//! A build has a name such as `postgres@3f2a91c` and lies in the servers folder like any other
//! server. Its files come from a work tree of its own, so the user's checkout stays as it is, and
//! changes in it that are not committed are in no build. Each product and set of options has one
//! build directory, which goes from commit to commit, so that only what changed is compiled. A build
//! that is there is not made again. Compilers run at low priority.

mod recipe;
mod repository;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dbdyno_db::server::{Base, clean_command, find_in_path, list};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use self::recipe::build_name;
use self::recipe::{FLAGS, Recipe};
pub use self::repository::{Repository, Revision};
use crate::actions::{Locked, does_not_run, keep};
use crate::files::{Partial, run};
use crate::scratch::probe;
use crate::{Error, ServerEntry, ServerOrigin};

/// Folder below the servers folder that holds work trees and build directories.
const BUILDS: &str = ".builds";
/// Letters of the hash of options and patch in the names of builds that have some.
const OPTIONS_HASH: usize = 6;
/// Lines of a failed build's output among which the first error is looked for.
const ERROR_MARKS: [&str; 4] = [" error: ", "error:", "Error ", "fatal"];

/// A server that is to be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildRequest {
    /// `postgres`, `mariadb` or `mysql`.
    pub product: String,
    pub repo: PathBuf,
    /// The revision: a hash, branch, tag, or an expression such as `HEAD~3`.
    pub commit: String,
    /// A patch that is applied to the revision.
    pub patch: Option<PathBuf>,
    /// Options in addition to those of the recipe.
    pub options: Vec<String>,
}

/// What a server was built from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildFacts {
    pub repo: PathBuf,
    pub revision: Revision,
    /// SHA-256 of the patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    pub options: Vec<String>,
    pub flags: String,
    /// The compiler's first line about itself.
    pub compiler: String,
}

/// Builds a server, or finds the build that is there. The result is its name and its entry. `log`
/// gets one sentence per action that takes a while.
pub fn build(
    request: &BuildRequest,
    servers_dir: &Path,
    cancel: &AtomicBool,
    log: &mut dyn FnMut(&str),
) -> Result<(String, ServerEntry), Error> {
    let recipe = Recipe::named(&request.product)
        .map_err(|why| Error::Unbuildable { what: request.product.clone(), why })?;
    let repository = Repository::open(&request.repo)?;
    if !repository.path.join(&recipe.marker).exists() && repository.revision(&request.commit).is_ok() {
        let why = format!("it has no {}, so it is not {}'s", recipe.marker, recipe.product);
        return Err(Error::Repository { path: repository.path, why });
    }
    let revision = repository.revision(&request.commit)?;
    let patch = request.patch.as_deref().map(patch_hash).transpose()?;
    let name = name_of(recipe, &revision, patch.as_deref(), &request.options);
    let locked = Locked::open(servers_dir, cancel, log)?;
    let folder = &locked.path;
    if let Some(entry) = ServerEntry::read(folder, &name)?
        && entry.current_answer(&folder.join(&name)).is_some()
    {
        return Ok((name, entry));
    }
    let missing = recipe.missing();
    if !missing.is_empty() {
        let what = format!("building {name}");
        return Err(Error::MissingTools { what, packages: missing.join(" ") });
    }
    let lab = folder.join(BUILDS).join(format!("{}-{}", recipe.word, lab_hash(&repository, &request.options)));
    fs::create_dir_all(lab.join("build")).map_err(Error::io("cannot make", lab.join("build")))?;
    has_space(&lab, recipe)?;
    log(&format!("{name}: checking out {} ({})", revision.short(), revision.subject));
    let tree = lab.join("tree");
    repository.check_out(&revision, &tree, cancel)?;
    if let Some(patch) = &request.patch {
        Repository::patch(&tree, patch, cancel)?;
    }
    let options = [recipe.options.clone(), request.options.clone()].concat();
    let task = BuildTask { recipe, name: &name, lab: &lab, options: &options, cancel };
    let partial = Partial::new(folder, &name)?;
    task.run(&partial.path, log)?;
    let entry = ServerEntry {
        origin: ServerOrigin::Built,
        source: format!("{} of {}: {}", revision.short(), repository.path.display(), revision.subject),
        answer: None,
        build: Some(BuildFacts {
            repo: repository.path.clone(),
            revision,
            patch,
            options,
            flags: FLAGS.to_owned(),
            compiler: compiler(),
        }),
    };
    entry.write(folder, &name)?;
    let server_dir = folder.join(&name);
    partial.complete(&server_dir).inspect_err(|_| drop(ServerEntry::remove(folder, &name)))?;
    log(&format!("{name}: starting it once to read its abilities"));
    let asked = Base::open(&server_dir).and_then(|base| probe(&base));
    let asked = asked.map_err(|source| does_not_run(&name, source));
    Ok((name.clone(), keep(folder, &name, entry, asked, true)?))
}

/// Returns the names of builds whose files are older than `age`.
pub fn builds_older_than(servers_dir: &Path, age: Duration) -> Vec<String> {
    let is_old = |name: &String| {
        let made = fs::metadata(servers_dir.join(format!("{name}.toml"))).and_then(|file| file.modified());
        build_name(name).is_some() && made.is_ok_and(|made| made.elapsed().is_ok_and(|passed| passed >= age))
    };
    let mut names: Vec<String> = list(servers_dir).into_iter().filter(is_old).collect();
    names.sort();
    names
}

/// One build in its build directory.
struct BuildTask<'a> {
    recipe: &'a Recipe,
    name: &'a str,
    /// Folder with the work tree and the build directory.
    lab: &'a Path,
    options: &'a [String],
    cancel: &'a AtomicBool,
}

impl BuildTask<'_> {
    /// Configures and compiles the work tree, and moves the installed files to `into`.
    fn run(&self, into: &Path, log: &mut dyn FnMut(&str)) -> Result<(), Error> {
        // The prefix stays the same from commit to commit, so that only changed files are compiled.
        // Servers find their files relative to their program.
        let prefix = self.lab.join("prefix");
        let staging = self.lab.join("staging");
        let _ = fs::remove_dir_all(&staging);
        let jobs = jobs(self.recipe.job_mb);
        let values = [
            ("tree", self.lab.join("tree").display().to_string()),
            ("prefix", prefix.display().to_string()),
            ("jobs", jobs.to_string()),
        ];
        let recipe = self.recipe;
        if !self.lab.join("build").join(&recipe.configured).exists() {
            log(&format!("{}: configuring", self.name));
            self.command("configuring", &recipe.configure, &values)?;
        }
        log(&format!("{}: compiling, {jobs} at a time", self.name));
        self.command("compiling", &recipe.build, &values)?;
        self.command("installing", &recipe.install, &values)?;
        let installed = staging.join(prefix.strip_prefix("/").unwrap_or(&prefix));
        for entry in fs::read_dir(&installed).map_err(Error::io("cannot read", installed.clone()))?.flatten() {
            let to = into.join(entry.file_name());
            fs::rename(entry.path(), &to).map_err(Error::io("cannot move the build to", to))?;
        }
        let _ = fs::remove_dir_all(&staging);
        Ok(())
    }

    /// Runs a command of the recipe in the build directory. Its output goes to a log there, of which
    /// an error says the first error and the path.
    fn command(&self, what: &str, words: &[String], values: &[(&str, String)]) -> Result<(), Error> {
        let words = Recipe::words(words, values, self.options);
        let mut command = gentle(&words[0]);
        command.args(&words[1..]).current_dir(self.lab.join("build"));
        command.env("DESTDIR", self.lab.join("staging"));
        for (variable, compiler) in [("CC", "gcc"), ("CXX", "g++")] {
            command.env(variable, if find_in_path("ccache").is_some() { format!("ccache {compiler}") } else { compiler.to_owned() });
        }
        command.envs([("CFLAGS", FLAGS), ("CXXFLAGS", FLAGS)]);
        let what = format!("{what} {}", self.name);
        run(&what, &mut command, self.cancel).map(drop).map_err(|error| self.explained(error))
    }

    /// Puts the first error of a compiler in front of the end of its output, and keeps the output.
    fn explained(&self, error: Error) -> Error {
        let Error::Tool { what, command, status, output } = error else { return error };
        let log = self.lab.join(format!("{}.log", self.name));
        // The message has the end of the output too, so a log that cannot be written is no loss.
        let _ = fs::write(&log, &output);
        let is_error = |line: &&str| ERROR_MARKS.iter().any(|mark| line.contains(mark));
        let first = output.lines().find(is_error).map_or(String::new(), |line| format!("first error: {}\n", line.trim()));
        Error::Tool { what, command, status, output: format!("{first}the end of its output, which is in {}:\n{output}", log.display()) }
    }
}

/// A command that leaves the machine to others: at the lowest priority.
fn gentle(program: &str) -> Command {
    let mut command = clean_command("nice");
    command.args(["-n", "19", program]);
    command
}

/// Returns the number of compilers at once: as many as there are CPUs, and as memory allows.
fn jobs(job_mb: u64) -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: u64 = available.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
    cpus.min((kib / 1024 / job_mb).max(1)).max(1)
}

/// Refuses a build for which there is no space.
fn has_space(folder: &Path, recipe: &Recipe) -> Result<(), Error> {
    let free = nix::sys::statvfs::statvfs(folder)
        .map(|found| found.blocks_available() * found.fragment_size() / 1_000_000)
        .unwrap_or(u64::MAX);
    let is_begun = folder.join("build").join(&recipe.configured).exists();
    let needed = if is_begun { recipe.disk_mb / 4 } else { recipe.disk_mb };
    if free >= needed {
        return Ok(());
    }
    let why = format!(
        "a build takes {needed} MB, and {} has {free} MB left; remove old builds: dbdyno servers remove --older-than 30d",
        folder.display()
    );
    Err(Error::Unbuildable { what: recipe.product.clone(), why })
}

fn compiler() -> String {
    let said = run("asking the compiler", clean_command("gcc").arg("--version"), &AtomicBool::new(false));
    said.ok().and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
}

fn patch_hash(patch: &Path) -> Result<String, Error> {
    let text = fs::read(patch).map_err(Error::io("cannot read", patch))?;
    Ok(hex(&Sha256::digest(text)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the name of a build. Options and a patch are in it as a hash.
fn name_of(recipe: &Recipe, revision: &Revision, patch: Option<&str>, options: &[String]) -> String {
    let own = [patch.unwrap_or_default(), &options.join(" ")].concat();
    let end = match own.trim() {
        "" => String::new(),
        own => format!("-{}", &hex(&Sha256::digest(own))[..OPTIONS_HASH]),
    };
    format!("{}@{}{end}", recipe.word, revision.short())
}

/// Returns a short hash by which build directories of other repositories and options are told apart.
fn lab_hash(repository: &Repository, options: &[String]) -> String {
    let text = format!("{} {}", repository.path.display(), options.join(" "));
    hex(&Sha256::digest(text))[..OPTIONS_HASH].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision() -> Revision {
        Revision {
            hash: "3f2a91c0aa11223344".to_owned(),
            author_date: "2026-01-01T00:00:00+00:00".to_owned(),
            author: "A".to_owned(),
            subject: "change".to_owned(),
        }
    }

    #[test]
    fn builds_with_other_options_or_a_patch_have_other_names() {
        let recipe = Recipe::named("postgres").unwrap();
        let name = |patch, options: &[&str]| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            name_of(recipe, &revision(), patch, &options)
        };
        assert_eq!(name(None, &[]), "postgres@3f2a91c0aa");
        let names = [name(Some("abc"), &[]), name(None, &["--with-llvm"]), name(None, &[])];
        assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2], "{names:?}");
        assert!(names.iter().all(|name| build_name(name).is_some()));
    }

    #[test]
    fn there_is_at_least_one_compiler_however_little_memory_there_is() {
        assert_eq!(jobs(u64::MAX / 2), 1);
        assert!(jobs(1) >= 1);
    }
}
