//! Tests that a template is made once, completely or not at all, and by one process at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::server::Base;
use dbdyno_products::mysql::MYSQL;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// A template folder, a base directory with a server program, and a count of how often data were
/// made.
struct Desk {
    folder: TempDir,
    made: AtomicUsize,
}

impl Desk {
    fn new() -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap(), made: AtomicUsize::new(0) };
        fs::create_dir_all(desk.base_dir().join("bin")).unwrap();
        desk.rebuild("first");
        desk
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
        Template::ready(&self.key(option), &self.templates(), &GO_ON, make).unwrap()
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
fn a_template_is_made_once_and_copied_with_its_mark() {
    let desk = Desk::new();
    for name in ["a", "b"] {
        let data_dir = desk.folder.path().join(name);
        desk.ready("x").copy_to(&data_dir, &GO_ON).unwrap();
        assert_eq!(fs::read_to_string(data_dir.join("mysql/user")).unwrap(), "root");
        assert!(data_dir.join(datadir::MARKER).is_file() && !data_dir.join(ABOUT).exists());
        // What a server does with its copy must not change the template.
        fs::write(data_dir.join("ibdata1"), "more pages").unwrap();
    }
    desk.ready("y");
    assert_eq!((desk.made(), desk.names().len()), (2, 2));
}

#[test]
fn who_wants_one_that_another_makes_waits_for_it() {
    let desk = Desk::new();
    let make = |work: &Path| {
        desk.made.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
        made_data(work)
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| Template::ready(&desk.key("x"), &desk.templates(), &GO_ON, make).unwrap());
        }
    });
    assert_eq!((desk.made(), desk.names()), (1, vec![desk.key("x").name()]));
}

/// Making a folder fails where another process removes it at that moment.
#[test]
fn locks_that_come_and_go_at_the_same_time_are_no_errors() {
    let desk = Desk::new();
    fs::create_dir_all(desk.templates()).unwrap();
    let (locks, hash) = (desk.templates(), desk.key("x").hash);
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
    drop(TemplateLock::take(&locks, &hash, &GO_ON).unwrap());
    fs::write(&folder, "").unwrap();
    assert!(TemplateLock::take(&locks, &hash, &GO_ON).is_err(), "a file does not go away");
}

#[test]
fn one_that_could_not_be_made_leaves_nothing_and_is_made_by_the_next() {
    let desk = Desk::new();
    let failed = Template::ready(&desk.key("x"), &desk.templates(), &GO_ON, |work| {
        let _ = made_data(work);
        Err(Error::io("no space left for", work)(std::io::ErrorKind::StorageFull.into()))
    });
    assert!(failed.is_err());
    assert_eq!(desk.names(), Vec::<String>::new());
    desk.ready("x");
    assert_eq!(desk.made(), 1);
}

/// The lock on a killed process's folder is released.
#[test]
fn what_a_killed_maker_left_is_not_used_and_goes_when_a_template_is_wanted_again() {
    let desk = Desk::new();
    let hash = desk.key("x").hash.clone();
    for hash in [hash.as_str(), "0123456789abcdef"] {
        made_data(&desk.templates().join(format!("{PREFIX}{hash}/abcdef"))).unwrap();
    }
    let strangers = desk.templates().join(".ssh");
    fs::create_dir(&strangers).unwrap();
    desk.ready("x");
    let whole = vec![".ssh".to_owned(), desk.key("x").name()];
    assert_eq!((desk.made(), desk.names()), (1, whole.clone()));
    // This process had just made the template when it was killed.
    fs::create_dir(desk.templates().join(format!("{PREFIX}{hash}"))).unwrap();
    desk.ready("x");
    assert_eq!((desk.made(), desk.names()), (1, whole));
}

#[test]
fn one_that_was_cut_short_or_has_lost_something_is_made_anew() {
    let desk = Desk::new();
    let folder = desk.templates().join(desk.key("x").name());
    let harm: [&dyn Fn(); 4] = [
        &|| fs::remove_file(folder.join(ABOUT)).unwrap(),
        &|| fs::remove_file(folder.join("data/mysql/user")).unwrap(),
        &|| fs::write(folder.join("data/ibdata1"), "").unwrap(),
        &|| fs::remove_file(folder.join("data").join(datadir::MARKER)).unwrap(),
    ];
    desk.ready("x");
    for (at, harm) in harm.iter().enumerate() {
        harm();
        desk.ready("x");
        assert_eq!(desk.made(), at + 2, "harm {at}");
    }
    assert_eq!(desk.names(), [desk.key("x").name()]);
}

#[test]
fn a_build_that_was_made_anew_gets_a_template_of_its_own() {
    let desk = Desk::new();
    desk.ready("x");
    desk.rebuild("second build");
    desk.ready("x");
    assert_eq!((desk.made(), desk.names().len()), (2, 2));
}
