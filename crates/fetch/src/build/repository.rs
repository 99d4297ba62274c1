//! A git repository: its revisions, and work trees of them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use dbdyno_db::server::clean_command;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::files::run;

/// Letters of a hash in the names of builds.
const SHORT: usize = 10;

/// A git repository with its full history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    pub path: PathBuf,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    pub hash: String,
    /// RFC 3339.
    pub author_date: String,
    pub author: String,
    pub subject: String,
}

impl Revision {
    /// Returns the hash as names of builds have it.
    pub fn short(&self) -> &str {
        &self.hash[..SHORT.min(self.hash.len())]
    }
}

impl Repository {
    /// Opens the repository that contains the folder `path`. A shallow one is refused, because it
    /// lacks the commits between two revisions.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let refused = |why: String| Error::Repository { path: path.to_path_buf(), why };
        if !path.is_dir() {
            return Err(refused("there is no such folder".to_owned()));
        }
        let here = Self { path: path.to_path_buf() };
        let top = here
            .git(&["rev-parse", "--show-toplevel"])
            .map_err(|_| refused("it is no checkout of a git repository".to_owned()))?;
        let opened = Self { path: PathBuf::from(top.trim()) };
        if opened.git(&["rev-parse", "--is-shallow-repository"])?.trim() == "true" {
            return Err(refused("it is shallow; fetch its history first: git fetch --unshallow".to_owned()));
        }
        Ok(opened)
    }

    fn git(&self, words: &[&str]) -> Result<String, Error> {
        run("reading the repository", self.command().args(words), &AtomicBool::new(false))
    }

    fn command(&self) -> Command {
        let mut command = clean_command("git");
        command.arg("-C").arg(&self.path);
        command
    }

    /// Returns the commit that `name` means: a hash, branch, tag, or an expression such as
    /// `HEAD~3`.
    pub fn revision(&self, name: &str) -> Result<Revision, Error> {
        let commit = format!("{name}^{{commit}}");
        let unknown = || Error::Repository {
            path: self.path.clone(),
            why: format!("it has no revision {name}; see git log, or fetch it first: git fetch"),
        };
        let hash = self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).map_err(|_| unknown())?;
        let found = self.revisions(&["--max-count=1", hash.trim()])?;
        found.into_iter().next().ok_or_else(unknown)
    }

    /// Returns the commits after `good` up to `bad` along first parents, the oldest first.
    pub fn between(&self, good: &Revision, bad: &Revision) -> Result<Vec<Revision>, Error> {
        let refused = |why: String| Error::Repository { path: self.path.clone(), why };
        let range = format!("{}..{}", good.hash, bad.hash);
        let found = self.revisions(&["--first-parent", "--reverse", &range])?;
        let parents = format!("{}^@", found.first().map_or(bad.hash.as_str(), |first| first.hash.as_str()));
        let parents = self.git(&["rev-parse", &parents]).unwrap_or_default();
        match found.is_empty() || parents.lines().next() != Some(good.hash.as_str()) {
            true => Err(refused(format!(
                "{} is not on the way of first parents to {}; choose an older good revision, such as {}",
                good.short(),
                bad.short(),
                self.git(&["merge-base", &good.hash, &bad.hash]).unwrap_or_default().trim()
            ))),
            false => Ok(found),
        }
    }

    fn revisions(&self, words: &[&str]) -> Result<Vec<Revision>, Error> {
        let mut all = vec!["log", "--no-show-signature", "--format=%H%x00%aI%x00%an%x00%s"];
        all.extend(words);
        let parse = |line: &str| {
            let mut fields = line.split('\0').map(str::to_owned);
            Some(Revision {
                hash: fields.next()?,
                author_date: fields.next()?,
                author: fields.next()?,
                subject: fields.next()?,
            })
        };
        Ok(self.git(&all)?.lines().filter_map(parse).collect())
    }

    /// Puts the files of a commit into a work tree of its own at `tree`, which is made where it is
    /// not there yet. Files that the last build has left are kept, so that the next one is short.
    pub(super) fn check_out(&self, revision: &Revision, tree: &Path, cancel: &AtomicBool) -> Result<(), Error> {
        let what = format!("checking out {}", revision.short());
        if !tree.join(".git").exists() {
            // A tree that was removed without git is still in git's list.
            run(&what, self.command().args(["worktree", "prune"]), cancel)?;
            let mut add = self.command();
            add.args(["worktree", "add", "--quiet", "--detach", "--force"]).arg(tree).arg(&revision.hash);
            run(&what, &mut add, cancel)?;
        }
        let own = Self { path: tree.to_path_buf() };
        run(&what, own.command().args(["checkout", "--quiet", "--force", "--detach", &revision.hash]), cancel)?;
        run(&what, own.command().args(["clean", "--quiet", "-d", "--force"]), cancel)?;
        if tree.join(".gitmodules").exists() {
            let update = ["submodule", "update", "--quiet", "--init", "--recursive", "--force"];
            run(&format!("{what}: its submodules"), own.command().args(update), cancel)?;
        }
        Ok(())
    }

    /// Applies a patch to the work tree at `tree`.
    pub(super) fn patch(tree: &Path, patch: &Path, cancel: &AtomicBool) -> Result<(), Error> {
        let own = Self { path: tree.to_path_buf() };
        let what = format!("applying {}", patch.display());
        run(&what, own.command().arg("apply").arg("--").arg(patch), cancel).map(drop)
    }

    /// Whether files differ from the last commit. Such changes are in no build.
    pub fn is_dirty(&self) -> bool {
        self.git(&["status", "--porcelain", "--untracked-files=no"]).is_ok_and(|text| !text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with four commits, of which the last is on a branch of its own.
    fn repository() -> (tempfile::TempDir, Repository) {
        let folder = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let author = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
            let ended = Command::new("git").arg("-C").arg(folder.path()).args(author).args(words).output().unwrap();
            assert!(ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
        };
        git(&["init", "--quiet", "--initial-branch=main"]);
        for number in 1..=3 {
            std::fs::write(folder.path().join("file"), number.to_string()).unwrap();
            git(&["add", "file"]);
            git(&["commit", "--quiet", "--message", &format!("change {number}")]);
        }
        git(&["checkout", "--quiet", "-b", "side", "HEAD~1"]);
        git(&["commit", "--quiet", "--allow-empty", "--message", "aside"]);
        git(&["checkout", "--quiet", "main"]);
        let opened = Repository::open(folder.path()).unwrap();
        (folder, opened)
    }

    #[test]
    fn commits_between_two_revisions_are_in_their_order() {
        let (_folder, repository) = repository();
        let (good, bad) = (repository.revision("main~2").unwrap(), repository.revision("main").unwrap());
        let subjects: Vec<String> =
            repository.between(&good, &bad).unwrap().into_iter().map(|revision| revision.subject).collect();
        assert_eq!(subjects, ["change 2", "change 3"]);
        let side = repository.revision("side").unwrap();
        let refused = repository.between(&side, &bad).unwrap_err().to_string();
        assert!(refused.contains("is not on the way of first parents"), "{refused}");
        assert!(repository.between(&bad, &bad).is_err(), "there is nothing between a commit and itself");
    }

    #[test]
    fn an_unknown_revision_and_a_folder_without_a_repository_are_refused() {
        let (_folder, repository) = repository();
        let refused = repository.revision("v99").unwrap_err().to_string();
        assert!(refused.contains("it has no revision v99"), "{refused}");
        let none = tempfile::tempdir().unwrap();
        let refused = Repository::open(none.path()).unwrap_err().to_string();
        assert!(refused.contains("it is no checkout of a git repository"), "{refused}");
        assert!(Repository::open(&none.path().join("x")).unwrap_err().to_string().contains("no such folder"));
    }

    #[test]
    fn a_shallow_repository_is_refused() {
        let (folder, _) = repository();
        let shallow = tempfile::tempdir().unwrap();
        let source = format!("file://{}", folder.path().display());
        let cloned = Command::new("git")
            .args(["clone", "--quiet", "--depth=1", &source])
            .arg(shallow.path().join("clone"))
            .status()
            .unwrap();
        assert!(cloned.success());
        let refused = Repository::open(&shallow.path().join("clone")).unwrap_err().to_string();
        assert!(refused.contains("it is shallow"), "{refused}");
    }

    #[test]
    fn a_work_tree_follows_from_commit_to_commit_and_the_checkout_stays() {
        let (folder, repository) = repository();
        let tree = folder.path().join("trees/one");
        let cancel = AtomicBool::new(false);
        for (name, text) in [("main~1", "2"), ("main~2", "1"), ("main", "3")] {
            repository.check_out(&repository.revision(name).unwrap(), &tree, &cancel).unwrap();
            assert_eq!(std::fs::read_to_string(tree.join("file")).unwrap(), text);
            std::fs::write(tree.join("file"), "changed by a build").unwrap();
        }
        assert_eq!(std::fs::read_to_string(folder.path().join("file")).unwrap(), "3");
        std::fs::write(folder.path().join("file"), "dirty").unwrap();
        assert!(repository.is_dirty());
    }
}
