//! Starts a MariaDB or MySQL server.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dbdyno_products::Release;
use nix::sys::signal::Signal;

use super::initialise::{ServerPaths, initial_options, initialise, start_options, tls_options};
use crate::server::base::Base;
use crate::server::intents::Rendered;
use crate::server::running::{
    Data, Running, Server, ServerSpec, Start, absolute_itself, absolute_log, superuser_at,
};
use crate::server::runtime_dir::{TmpDir, can_be_named};
use crate::server::template::{Template, TemplateKey};
use crate::server::{Error, RuntimeDir, datadir, launch};

/// The socket's name in a runtime directory.
const SOCKET: &str = "s";

/// An option that affects initialising but leaves no trace in the data directory.
const WITHOUT_TRACE: &str = "innodb_use_native_aio";

/// Implements [`crate::Family::start`].
pub(in crate::mysql) fn start(
    runtime_dir: RuntimeDir,
    spec: &ServerSpec,
    data: Data,
) -> Result<Server, Error> {
    let base = &spec.base;
    spec.config.file.as_deref().map_or(Ok(()), |path| check_name(path, base))?;
    let socket = runtime_dir.path().join(SOCKET);
    let log = absolute_log(&spec.log)?;
    let data_dir = absolute_itself(&spec.data_dir)?;
    let has_own_tmp_dir = spec.config.sets("tmpdir");
    let is_next_to_data = can_be_named(&datadir::temporary_files(&data_dir));
    let tmp_dir =
        if is_next_to_data { datadir::temporary_files(&data_dir) } else { runtime_dir.empty_tmp_dir()? };
    let places = ServerPaths { data_dir: &data_dir, socket: &socket, tmp_dir: &tmp_dir, log: &log };
    let as_root = nix::unistd::geteuid().is_root();
    let mut options = start_options(spec, places, as_root)?;
    tls_options(base, &spec.config, runtime_dir.tls.as_ref().map(|tls| &tls.files), &mut options);
    if data == Data::Cold {
        // The prefix `--loose-` is for MySQL 5.5, which does not know this option.
        options.options.push("--loose-innodb-buffer-pool-load-at-startup=OFF".to_owned());
    }

    if !is_next_to_data && !has_own_tmp_dir {
        options.notes.push(format!(
            "temporary files are in {}, not next to the data: tmpdir cannot name a folder with \
             a colon",
            tmp_dir.display()
        ));
    }

    match data {
        Data::Fresh => {
            let cancel = &*spec.cancel;
            template(base, &spec.config, &spec.template_dir, cancel)?.copy_to(&data_dir, cancel)?;
        }
        Data::AsItIs | Data::Cold => datadir::check_at_rest(&data_dir, &spec.cancel)?,
    }
    let needs_tmp_dir = is_next_to_data && !has_own_tmp_dir;
    let tmp_dir = if needs_tmp_dir { Some(TmpDir::make(&data_dir, &spec.cancel)?) } else { None };

    let start = Start {
        title: base.title.clone(),
        // A MariaDB server that is asked to end while it starts may wait for ever. No one needs its
        // data once dbdyno has ended, so the server is killed then.
        line: launch::command_line(&base.program, &options.options, Signal::SIGKILL),
        cpus: spec.cpus.as_deref(),
        runtime_dir,
        data_dir,
        tmp_dir,
        log,
        login: superuser_at(base, &socket),
        // The server accepts connections early and sends its greeting once it is ready.
        may_log_in: &|_| true,
        timeout: spec.start_timeout,
        cancel: Arc::clone(&spec.cancel),
        notes: options.notes,
    };
    let running = Running::start(start)?;
    Ok(Server { base: base.clone(), socket, tls_port: None, running })
}

/// Refuses an option file whose name the server cannot handle.
fn check_name(path: &Path, base: &Base) -> Result<(), Error> {
    // MySQL 5.5.9 crashes because it takes the length of a missing file extension. 5.5.34 does not.
    // The versions between them were not tested.
    let crashes_without_ending =
        !base.is_mariadb() && base.release.at_least(5, 5) && base.release < Release([5, 5, 34]);
    match path.extension() {
        None if crashes_without_ending => {
            let why =
                format!("{} crashes on a file name without an extension; name the file my.cnf", base.title);
            Err(Error::OptionFile { path: path.to_path_buf(), why })
        }
        _ => Ok(()),
    }
}

fn template(
    base: &Base,
    config: &Rendered,
    template_dir: &Path,
    cancel: &AtomicBool,
) -> Result<Template, Error> {
    let settings = initial_options(config, base);
    Template::ready(&key(base, &settings)?, template_dir, cancel, |work| {
        initialise(base, settings, work, cancel)
    })
}

fn key(base: &Base, options: &[String]) -> Result<TemplateKey, Error> {
    let options: Vec<String> =
        options.iter().filter(|option| !option.contains(WITHOUT_TRACE)).cloned().collect();
    TemplateKey::new(base, include_str!("initialise.rs"), &options, None)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use dbdyno_products::mysql::{MARIADB, MYSQL};

    #[test]
    fn a_name_without_ending_is_refused_where_the_server_would_crash_on_it() {
        let checked = |version| check_name(Path::new("/x/options"), &Base::sample(MYSQL, version));
        let message = checked((5, 5, 9)).unwrap_err().to_string();
        assert!(
            message
                .ends_with("MySQL 5.5.9 crashes on a file name without an extension; name the file my.cnf"),
            "{message}"
        );
        assert!(checked((5, 5, 34)).is_ok() && checked((5, 6, 24)).is_ok());
    }

    #[test]
    fn the_aio_setting_makes_no_other_template() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        fs::write(folder.path().join("bin/mysqld"), "1").unwrap();
        let base = Base::sample_in(folder.path(), MARIADB, (10, 11, 5));
        let hash = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
            key(&base, &options).unwrap().hash
        };
        assert_eq!(hash(&["--innodb_use_native_aio=0"]), hash(&[]));
        assert_ne!(hash(&["--innodb_use_native_aio=0", "--innodb_page_size=8k"]), hash(&[]));
    }
}
