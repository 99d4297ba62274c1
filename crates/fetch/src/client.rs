//! Finds the client program with which a person can talk to a started server.

use std::path::{Path, PathBuf};

use dbdyno_db::server::{Base, ask, calling, find_in_path};

/// Program and arguments that open a session on the private `socket` of a `base` server. The
/// program is the build's own client if it has one that runs here, otherwise this machine's. The
/// result is `None` when there is neither.
pub fn client(base: &Base, socket: &Path) -> Option<Vec<String>> {
    let (program, version) =
        programs(base).into_iter().find_map(|program| Some((program.clone(), version(&program)?)))?;
    let mut words = vec![program.display().to_string()];
    words.extend(base.family.client_arguments(socket, &version));
    Some(words)
}

/// Candidates, with the best one first.
fn programs(base: &Base) -> Vec<PathBuf> {
    let (folder, names) = base.family.clients(base);
    let own = names.iter().map(|name| folder.join(name));
    own.chain(names.iter().filter_map(|name| find_in_path(name))).collect()
}

/// What the program prints as its version. Old builds have clients that need libraries which no
/// longer exist; those print none.
fn version(program: &Path) -> Option<String> {
    let output = ask(calling(program).arg("--version")).ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::write_program;

    #[test]
    fn the_builds_own_client_goes_before_that_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, script: &str| write_program(&folder.path().join("bin").join(name), script);
        put("mysqld", "echo 'mysqld  Ver 8.0.31 for Linux on x86_64 (MySQL Community Server - GPL)'");
        put("mysql", "echo 'mysql  Ver 14.14 Distrib 5.6.24, for Linux (x86_64)'");
        let base = Base::open(folder.path()).unwrap();
        let words = client(&base, Path::new("/t/s")).unwrap();
        let own = folder.path().canonicalize().unwrap().join("bin/mysql").display().to_string();
        assert_eq!(words, [own.as_str(), "--no-defaults", "--user=root", "--socket=/t/s"]);
        put("mysql", "echo 'mysql from 11.8.6-MariaDB, client 15.2'");
        assert_eq!(client(&base, Path::new("/t/s")).unwrap().last().unwrap(), "--skip-ssl");
        put("mysql", "exit 127");
        assert_ne!(client(&base, Path::new("/t/s")).map(|words| words[0].clone()), Some(own));
    }
}
