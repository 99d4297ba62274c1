//! Tests that a template is made once, completely or not at all, and by only one process at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::server::Base;
use dbdyno_products::mysql::MYSQL;

static NOT_CANCELLED: AtomicBool = AtomicBool::new(false);

/// A template folder, a base directory with a server program, and a count of how often data were
/// made.
struct Fixture {
    folder: TempDir,
    made: AtomicUsize,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { folder: tempfile::tempdir().unwrap(), made: AtomicUsize::new(0) };
        fs::create_dir_all(fixture.base_dir().join("bin")).unwrap();
        fixture.rebuild("first");
        fixture
    }

    fn base_dir(&self) -> PathBuf {
        self.folder.path().join("base")
    }

    fn rebuild(&self, text: &str) {
        fs::write(self.base_dir().join("bin/mysqld"), text).unwrap();
    }

    fn templates(&self) -> PathBuf {
        self.folder.path().join("templates")
    }

    fn key(&self, option: &str) -> TemplateKey {
        let base = Base::sample_in(&self.base_dir(), MYSQL, (8, 0, 31));
        TemplateKey::new(&base, "", &[option.to_owned()], None).unwrap()
    }

    fn ready(&self, option: &str) -> Template {
        let make = |work: &Path| {
            self.made.fetch_add(1, Ordering::Relaxed);
            made_data(work)
        };
        Template::ready(&self.key(option), &self.templates(), &NOT_CANCELLED, make).unwrap()
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }

    /// Names in the template folder.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.templates()).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn made_data(work: &Path) -> Result<(), Error> {
    let data = work.join(DATA);
    fs::create_dir_all(data.join("mysql")).unwrap();
    fs::write(data.join("mysql/user"), "root").unwrap();
    fs::write(data.join("ibdata1"), "pages").unwrap();
    Ok(())
}

#[test]
fn a_template_is_made_once_and_copied_with_its_marker() {
    let fixture = Fixture::new();
    for name in ["a", "b"] {
        let data_dir = fixture.folder.path().join(name);
        fixture.ready("x").copy_to(&data_dir, &NOT_CANCELLED).unwrap();
        assert_eq!(fs::read_to_string(data_dir.join("mysql/user")).unwrap(), "root");
        assert!(data_dir.join(datadir::MARKER).is_file() && !data_dir.join(ABOUT).exists());
        // A server's writes to its copy must not change the template.
        fs::write(data_dir.join("ibdata1"), "more pages").unwrap();
    }
    fixture.ready("y");
    assert_eq!((fixture.made(), fixture.names().len()), (2, 2));
}

#[test]
fn a_process_waits_for_a_template_that_another_process_makes() {
    let fixture = Fixture::new();
    let make = |work: &Path| {
        fixture.made.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
        made_data(work)
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                Template::ready(&fixture.key("x"), &fixture.templates(), &NOT_CANCELLED, make).unwrap()
            });
        }
    });
    assert_eq!((fixture.made(), fixture.names()), (1, vec![fixture.key("x").name()]));
}

/// `create_dir_all` fails if another process removes the folder at that moment.
#[test]
fn lock_folders_that_others_make_and_remove_cause_no_errors() {
    let fixture = Fixture::new();
    fs::create_dir_all(fixture.templates()).unwrap();
    let (locks, hash) = (fixture.templates(), fixture.key("x").hash);
    let folder = locks.join(format!("{PREFIX}{hash}"));
    let is_over = AtomicBool::new(false);
    let come_and_go = || {
        while !is_over.load(Ordering::Relaxed) {
            let _ = fs::create_dir(&folder);
            let _ = fs::remove_dir(&folder);
        }
    };
    let failed = std::thread::scope(|scope| {
        (0..2).for_each(|_| drop(scope.spawn(come_and_go)));
        let failed = (0..5_000).find_map(|_| make_lock_folder(&folder).err());
        is_over.store(true, Ordering::Relaxed);
        failed
    });
    assert!(failed.is_none(), "{failed:?}");
    drop(TemplateLock::take(&locks, &hash, &NOT_CANCELLED).unwrap());
    fs::write(&folder, "").unwrap();
    assert!(TemplateLock::take(&locks, &hash, &NOT_CANCELLED).is_err(), "a file does not go away");
}

#[test]
fn a_failed_template_leaves_nothing_and_is_made_by_the_next_process() {
    let fixture = Fixture::new();
    let failed = Template::ready(&fixture.key("x"), &fixture.templates(), &NOT_CANCELLED, |work| {
        let _ = made_data(work);
        Err(Error::io("no space left for", work)(std::io::ErrorKind::StorageFull.into()))
    });
    assert!(failed.is_err());
    assert_eq!(fixture.names(), Vec::<String>::new());
    fixture.ready("x");
    assert_eq!(fixture.made(), 1);
}

/// The lock on a killed process's folder is released.
#[test]
fn files_of_a_killed_process_are_not_used_and_are_removed_by_the_next() {
    let fixture = Fixture::new();
    let hash = fixture.key("x").hash.clone();
    for hash in [hash.as_str(), "0123456789abcdef"] {
        made_data(&fixture.templates().join(format!("{PREFIX}{hash}/abcdef"))).unwrap();
    }
    let strangers = fixture.templates().join(".ssh");
    fs::create_dir(&strangers).unwrap();
    fixture.ready("x");
    let whole = vec![".ssh".to_owned(), fixture.key("x").name()];
    assert_eq!((fixture.made(), fixture.names()), (1, whole.clone()));
    // This is the lock folder of a process that was killed right after it had made the template.
    fs::create_dir(fixture.templates().join(format!("{PREFIX}{hash}"))).unwrap();
    fixture.ready("x");
    assert_eq!((fixture.made(), fixture.names()), (1, whole));
}

#[test]
fn a_template_that_is_incomplete_or_has_lost_a_file_is_made_again() {
    let fixture = Fixture::new();
    let folder = fixture.templates().join(fixture.key("x").name());
    let harm: [&dyn Fn(); 4] = [
        &|| fs::remove_file(folder.join(ABOUT)).unwrap(),
        &|| fs::remove_file(folder.join("data/mysql/user")).unwrap(),
        &|| fs::write(folder.join("data/ibdata1"), "").unwrap(),
        &|| fs::remove_file(folder.join("data").join(datadir::MARKER)).unwrap(),
    ];
    fixture.ready("x");
    for (at, harm) in harm.iter().enumerate() {
        harm();
        fixture.ready("x");
        assert_eq!(fixture.made(), at + 2, "harm {at}");
    }
    assert_eq!(fixture.names(), [fixture.key("x").name()]);
}

#[test]
fn a_rebuilt_build_gets_its_own_template() {
    let fixture = Fixture::new();
    fixture.ready("x");
    fixture.rebuild("second build");
    fixture.ready("x");
    assert_eq!((fixture.made(), fixture.names().len()), (2, 2));
}
