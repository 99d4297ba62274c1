//! Where the templates of a run's data directories are: in its own data folder, or in one that is
//! kept and shared by runs.

use std::path::{Path, PathBuf};

use crate::exit::Ended;

/// Names the folder, unless the command line does.
const VARIABLE: &str = "DBDYNO_TEMPLATES";

/// The run's own, in its data folder.
pub(crate) const TEMPLATES: &str = "templates";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Templates {
    pub(crate) folder: PathBuf,
    /// It goes with the run.
    is_own: bool,
}

impl Templates {
    /// `kept`, else a folder of the run's own.
    pub(crate) fn choose(kept: Option<PathBuf>, data_root: &Path) -> Self {
        match kept {
            Some(folder) => Self { folder, is_own: false },
            None => Self { folder: data_root.join(TEMPLATES), is_own: true },
        }
    }

    /// Removes those of this run only. What cannot be removed stays in its data folder.
    pub(crate) fn remove_own(&self) {
        if self.is_own {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// The folder in which templates are to be kept, if the command line or the environment name one;
/// made before anything runs.
pub(crate) fn kept(named: Option<&Path>) -> Result<Option<PathBuf>, Ended> {
    let of_variable = || std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    let Some(folder) = named.map(Path::to_path_buf).or_else(of_variable) else { return Ok(None) };
    std::fs::create_dir_all(&folder).and_then(|()| std::path::absolute(&folder)).map(Some).map_err(|error| {
        let what = format!("cannot make the folder for templates {}: {error}", folder.display());
        Ended::machine(format!("{what}; name another one with --templates or {VARIABLE}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_of_the_run_go_with_it_and_kept_ones_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let (data_root, kept) = (folder.path().join("data"), folder.path().join("kept/below"));
        let kept = super::kept(Some(&kept)).expect("it can be made");
        let (own, kept) = (Templates::choose(None, &data_root), Templates::choose(kept, &data_root));
        std::fs::create_dir_all(&own.folder).expect("a folder");
        own.remove_own();
        kept.remove_own();
        assert!(!own.folder.exists() && kept.folder.exists());
        assert!(own.folder.starts_with(&data_root) && !kept.folder.starts_with(&data_root));
    }
}
