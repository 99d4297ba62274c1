//! Finds scripts and the modules that they require, decides which files they may read and write,
//! and keeps what was read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Error, Result};

/// Folders in which Linux distributions install sysbench's own scripts.
const SHARED: [&str; 2] = ["/usr/share/sysbench", "/usr/local/share/sysbench"];

/// Largest file that is read as a script.
const MOST_BYTES: u64 = 16 << 20;

/// A script with its folder, and what was read so far from it and its modules.
#[derive(Debug, Clone)]
pub(crate) struct SysbenchScript {
    /// The name that the plan gives it.
    pub(crate) given: String,
    pub(crate) path: PathBuf,
    pub(crate) text: Arc<str>,
    folders: Arc<[PathBuf]>,
    /// Every file that was read, by its path.
    read: Arc<Mutex<BTreeMap<PathBuf, Arc<str>>>>,
    /// Whether files anywhere may be read and written.
    any_file: bool,
}

/// Returns the file name, without its suffix, of the script that a plan names `given`.
pub(crate) fn stem(given: &str) -> String {
    let stem = Path::new(given).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    stem.unwrap_or_else(|| given.to_owned())
}

impl SysbenchScript {
    /// Finds and reads the script `given`, which is a path, or the name of one of sysbench's own
    /// scripts.
    pub(crate) fn find(given: &str, any_file: bool) -> Result<Self> {
        let path = found(given).ok_or_else(|| {
            let message = format!(
                "no such file, and none of that name in {}: install sysbench's scripts, or give a path",
                SHARED.join(" or ")
            );
            Error::Script { script: given.to_owned(), message }
        })?;
        let text = read(&path).map_err(|message| Error::Script { script: given.to_owned(), message })?;
        let own = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let own = if own.as_os_str().is_empty() { PathBuf::from(".") } else { own };
        let from_environment = std::env::var("LUA_PATH").unwrap_or_default();
        let environment = from_environment.split(';').filter_map(|template| {
            let folder = template.strip_suffix("/?.lua")?;
            (!folder.is_empty()).then(|| PathBuf::from(folder))
        });
        let folders = [own].into_iter().chain(environment).chain(SHARED.map(PathBuf::from)).collect();
        let read = BTreeMap::from([(path.clone(), Arc::clone(&text))]);
        Ok(Self { given: given.to_owned(), path, text, folders, read: Arc::new(Mutex::new(read)), any_file })
    }

    /// Returns `package.path` as a script sees it.
    pub(crate) fn search_path(&self) -> String {
        let templates = self.folders.iter().flat_map(|folder| {
            let folder = folder.display();
            [format!("{folder}/?.lua"), format!("{folder}/?/init.lua")]
        });
        templates.collect::<Vec<_>>().join(";")
    }

    /// Returns the text of a module and its file. The error lists the files that do not exist.
    /// `templates` is the script's `package.path`, and is empty where `name` is a path.
    pub(crate) fn module(&self, name: &str, templates: &str) -> Result<(Arc<str>, PathBuf), String> {
        let candidates: Vec<PathBuf> = if templates.is_empty() {
            let next_to_script = self.folders.first().map(|folder| folder.join(name));
            [PathBuf::from(name)].into_iter().chain(next_to_script).collect()
        } else {
            let name = name.replace('.', "/");
            templates.split(';').map(|template| PathBuf::from(template.replace('?', &name))).collect()
        };
        for path in &candidates {
            if path.is_file() {
                self.may_read(path)?;
                return Ok((self.text_of(path)?, path.clone()));
            }
        }
        let places = candidates.iter().map(|path| format!("no file '{}'", path.display()));
        Err(places.collect::<Vec<_>>().join("\n\t"))
    }

    /// Returns whether the script may open `path` as `mode` says. The error says why not.
    pub(crate) fn may_open(&self, path: &Path, mode: &str) -> Result<(), String> {
        if self.any_file {
            return Ok(());
        }
        if mode.trim_end_matches('b') != "r" {
            let why = "a script writes no files unless the plan's allow = [\"files\"] lets it";
            return Err(format!("{}: {why}", path.display()));
        }
        self.may_read(path)
    }

    fn may_read(&self, path: &Path) -> Result<(), String> {
        let real = |path: &Path| path.canonicalize();
        let wanted = real(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let is_within = |folder: &PathBuf| real(folder).is_ok_and(|folder| wanted.starts_with(folder));
        if self.any_file || self.folders.iter().any(is_within) {
            return Ok(());
        }
        let why = "it is outside the script's folder; the plan's allow = [\"files\"] lets a script read it";
        Err(format!("{}: {why}", path.display()))
    }

    fn text_of(&self, path: &Path) -> Result<Arc<str>, String> {
        let mut files = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = files.get(path) {
            return Ok(Arc::clone(text));
        }
        let text = read(path)?;
        files.insert(path.to_path_buf(), Arc::clone(&text));
        Ok(text)
    }

    /// Returns the files that were read, with their texts.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Arc<str>)> {
        let files = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().map(|(path, text)| (path.clone(), Arc::clone(text))).collect()
    }
}

/// Returns the file that `given` means. For a name without a folder, a file `given.lua` comes
/// before a file that is merely called `given`, such as output that was saved under the name of its
/// script.
fn found(given: &str) -> Option<PathBuf> {
    let [exact, script] = [given.to_owned(), format!("{given}.lua")];
    if given.contains('/') {
        return [exact, script].map(PathBuf::from).into_iter().find(|path| path.is_file());
    }
    let places = |name: &String| {
        let shared = SHARED.iter().map(|folder| Path::new(folder).join(name));
        [PathBuf::from(name)].into_iter().chain(shared).collect::<Vec<_>>()
    };
    [script, exact].iter().flat_map(places).find(|path| path.is_file())
}

/// Reads a whole file as a chunk of Lua. A first line with `#` is for a shell, and becomes a
/// comment.
fn read(path: &Path) -> Result<Arc<str>, String> {
    let problem = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    if path.metadata().map_err(problem)?.len() > MOST_BYTES {
        return Err(format!("{} is not a script: it has more than {MOST_BYTES} bytes", path.display()));
    }
    let bytes = std::fs::read(path).map_err(problem)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(if text.starts_with('#') { format!("--{text}").into() } else { text.into() })
}
