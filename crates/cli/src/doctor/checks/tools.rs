//! Checks what dbdyno itself brings and keeps: its build, servers, calibration, and the cache
//! folder.

use std::path::Path;

use dbdyno_record::ClientCalibration;

use crate::doctor::checks::disk::existing;
use crate::doctor::finding::{Finding, good, note, note_if};

pub(crate) fn build(is_debug: bool) -> Finding {
    if is_debug {
        return note("a debug build", "use --release for numbers that count");
    }
    good("a release build")
}

pub(crate) fn cache_folder(folder: Option<&Path>) -> Finding {
    let Some(folder) = folder else {
        return note("none", "set HOME or XDG_CACHE_HOME; servers and calibrations are kept there");
    };
    let nearest = existing(folder);
    // Permissions alone do not show a filesystem that takes no files.
    let trial = nearest.join(format!(".dbdyno-{}", std::process::id()));
    if std::fs::File::create_new(&trial).and_then(|_| std::fs::remove_file(&trial)).is_err() {
        let advice =
            "let this user write there, or set XDG_CACHE_HOME; servers and calibrations are kept there";
        return note(format!("{} cannot be written", nearest.display()), advice);
    }
    let info = dbdyno_sample::host_info(&nearest, None, None);
    let found = format!("{} on {}", folder.display(), info.data_filesystem);
    let is_in_memory = ["tmpfs", "ramfs"].contains(&info.data_filesystem.as_str());
    note_if(is_in_memory, found, "it is in memory: its content is lost at the next boot")
}

pub(crate) fn servers() -> Finding {
    let folder = dbdyno_db::server::servers_dir();
    let names = dbdyno_db::server::list(&folder);
    if names.is_empty() {
        return good(format!("none in {}; plans may name base directories and addresses", folder.display()));
    }
    good(format!("{} in {}", names.join(", "), folder.display()))
}

/// Reports the calibrations. `all` are those of this build and this machine.
pub(crate) fn calibrated(all: &[ClientCalibration]) -> Finding {
    if all.is_empty() {
        let found = "not calibrated for this build of dbdyno";
        return note(found, "dbdyno doctor --client, with the CPUs of your plans");
    }
    let cpus = |calibration: &ClientCalibration| match &calibration.host.client_cpus {
        Some(list) => format!("CPUs {list}"),
        None => "any CPU".to_owned(),
    };
    good(format!("calibrated on {}", all.iter().map(cpus).collect::<Vec<_>>().join(" and on ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;

    #[test]
    fn what_is_missing_is_noted() {
        assert_eq!([build(true).verdict, build(false).verdict], [Verdict::Note, Verdict::Good]);
        assert_eq!(cache_folder(None).verdict, Verdict::Note);
        let unwritable = cache_folder(Some(Path::new("/proc/cache/dbdyno")));
        assert_eq!(
            (unwritable.verdict, unwritable.found.as_str()),
            (Verdict::Note, "/proc cannot be written")
        );
        let folder = tempfile::tempdir().unwrap();
        assert_ne!(
            cache_folder(Some(folder.path())).found,
            format!("{} cannot be written", folder.path().display())
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "the trial is removed");
        assert_eq!(calibrated(&[]).verdict, Verdict::Note);
    }
}
