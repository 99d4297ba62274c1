//! The file of calibrations in the user's cache folder.

use std::path::{Path, PathBuf};

use dbdyno_plan::Plan;
use dbdyno_record::{CalibratedHost, ClientCalibration, HostInfo, ToolInfo};

use crate::cache_file;
use crate::exit::ExitError;

/// Version of the file's schema. A file of another version counts as absent and is written again.
const FORMAT: u32 = 2;

/// Returns the path of `client-calibration.json` in `dbdyno` below `$XDG_CACHE_HOME`, otherwise
/// below `~/.cache`. It is `None` without a home directory.
pub(crate) fn path() -> Option<PathBuf> {
    let cache = cache_file::folder("XDG_CACHE_HOME", ".cache")?;
    Some(cache.join("dbdyno/client-calibration.json"))
}

/// Returns the parts of `host` and `plan` that the client's rate depends on.
pub(crate) fn calibrated_host(host: &HostInfo, plan: &Plan) -> CalibratedHost {
    CalibratedHost {
        cpu_model: host.cpu_model.clone(),
        cpus: host.cpus,
        client_cpus: host.client_cpus.clone(),
        server_cpus: host.server_cpus.clone(),
        client_threads: plan.host.client_threads,
        client_wait: host.client_wait.clone(),
    }
}

/// Returns all that is stored. A file that cannot be read or understood counts as empty, because a
/// calibration can be repeated.
pub(crate) fn load(path: &Path) -> Vec<ClientCalibration> {
    cache_file::load(path, FORMAT)
}

pub(crate) fn find(path: &Path, tool: &ToolInfo, host: &CalibratedHost) -> Option<ClientCalibration> {
    load(path).into_iter().find(|calibration| calibration.holds_for(tool, host))
}

/// Adds a calibration. It replaces one for the same client, and those of other builds, which no
/// longer apply.
pub(crate) fn save(path: &Path, new: &ClientCalibration) -> Result<(), ExitError> {
    let mut calibrations = load(path);
    calibrations.retain(|old| old.tool == new.tool && !old.holds_for(&new.tool, &new.host));
    calibrations.push(new.clone());
    cache_file::save(path, FORMAT, calibrations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(commit: &str, client_cpus: &str, at: &str) -> ClientCalibration {
        let host = CalibratedHost { client_cpus: Some(client_cpus.to_owned()), ..CalibratedHost::default() };
        let tool =
            ToolInfo { version: "1".to_owned(), commit: commit.to_owned(), build: "release".to_owned() };
        ClientCalibration { at: at.to_owned(), tool, host, rates: Vec::new() }
    }

    #[test]
    fn a_calibration_is_found_again_and_replaced_by_a_newer_one_of_the_same_client() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("dbdyno/c.json");
        let all = || load(&path).into_iter().map(|stored| stored.at).collect::<Vec<_>>();
        assert!(all().is_empty());
        for (cpus, at) in [("0", "first"), ("1", "second"), ("0", "third")] {
            save(&path, &calibration("a", cpus, at)).expect("a writable folder");
        }
        assert_eq!(all(), ["second", "third"]);
        let wanted = calibration("a", "0", "");
        assert_eq!(find(&path, &wanted.tool, &wanted.host).expect("stored").at, "third");
        let other = calibration("b", "0", "fourth");
        assert!(find(&path, &other.tool, &other.host).is_none());
        save(&path, &other).expect("a writable folder");
        assert_eq!(all(), ["fourth"]);
    }

    #[test]
    fn a_file_that_is_not_understood_holds_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("c.json");
        for text in ["{", "[]", r#"{"format":2,"calibrations":[]}"#] {
            std::fs::write(&path, text).expect("a file");
            assert!(load(&path).is_empty(), "{text}");
        }
    }
}
