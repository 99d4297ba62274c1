//! MariaDB, MySQL and Percona Server as a [`Family`].

use std::path::{Path, PathBuf};

use dbdyno_drivers::{AnySession, DbError, Options, Session, Target};
use dbdyno_model::TlsSettings;

use super::my_cnf::MyCnf;
use super::{Mysql, abilities, base, claim, login, products, server};
use crate::abilities::Abilities;
use crate::claim::{Claim, refused};
use crate::product::{Base, Family, FamilyFacts, FileLogin, Question, Server, ServerSpec, Work};
use crate::running::Data;
use crate::{Error, Home};

/// Engines that MariaDB and MySQL are built with; the last two only MariaDB.
const BUILT_IN: &[&str] =
    &["innodb", "myisam", "memory", "heap", "csv", "archive", "mrg_myisam", "aria", "sequence"];
const OF_MARIADB: usize = 2;

const FACTS: FamilyFacts = FamilyFacts {
    name: "mysql",
    products: products::ALL,
    options: include_str!("../../data/options-mysql.toml"),
    schemes: &["mysql://", "mariadb://"],
    default_port: 3306,
    socket_prefix: None,
    tls_options: login::TLS_OPTIONS,
    other_place_of_user: " or in the option file's [client]",
    option_file: ("my_cnf", "cnf"),
    superuser: "root",
    first_database: None,
    only_own_certificates: false,
    has_no_tls_on_sockets: false,
    reserved_connections: None,
};

impl Family for Mysql {
    fn facts(&self) -> &'static FamilyFacts {
        &FACTS
    }

    fn login_of_file(&self, path: &Path, _options: &Options) -> Result<FileLogin, Error> {
        login::login_of_file(path)
    }

    fn tls_of_file(&self, path: &Path) -> Result<Option<TlsSettings>, Error> {
        login::tls_of_file(path)
    }

    fn target(&self, options: Options) -> Target {
        Target::Mysql(options)
    }

    fn claim<'a>(&'a self, options: &'a Options, database: &'a str) -> Work<'a, Result<Claim, Error>> {
        Box::pin(async move {
            claim::check(database)?;
            let refused = |source| refused("looking for database", database, source);
            // It may not exist yet, so the first login goes without it.
            let target = self.target(Options { database: None, ..options.clone() });
            let mut endpoint = target.endpoint("innodb", false);
            endpoint.commit_each_statement().await.map_err(refused)?;
            let mut session = endpoint.connect().await.map_err(refused)?;
            let claimed = claim::claim(&mut session, database).await;
            session.close().await;
            claimed
        })
    }

    fn looked_for(&self) -> String {
        base::looked_for()
    }

    fn program_in(&self, path: &Path) -> Option<PathBuf> {
        base::find_program(path).map(|(_, program)| program)
    }

    fn open(&self, path: &Path) -> Result<Option<Base>, Error> {
        base::open(path)
    }

    fn built_in_engines(&self, base: &Base) -> Option<&'static [&'static str]> {
        let others = if base.is_mariadb() { 0 } else { OF_MARIADB };
        Some(&BUILT_IN[..BUILT_IN.len() - others])
    }

    fn native_settings(&self, base: &Base, path: &Path) -> Result<Vec<(String, Option<String>)>, Error> {
        Ok(MyCnf::read(path, base)?.settings)
    }

    fn start(&self, home: Home, spec: &ServerSpec, data: Data) -> Result<Server, Error> {
        server::start(home, spec, data)
    }

    fn folder_of<'a>(
        &'a self,
        session: &'a mut AnySession,
        database: &'a str,
        engine: &'a str,
    ) -> Work<'a, Result<Option<PathBuf>, DbError>> {
        Box::pin(async move {
            // MyRocks keeps the rows of all databases in a folder of its own, and in the others'
            // folders their definitions only.
            let folder = match engine {
                "rocksdb" => {
                    session.rows("SELECT @@rocksdb_datadir").await?.into_iter().flatten().flatten().next()
                }
                _ => None,
            };
            let folder = folder.unwrap_or_else(|| database.to_owned());
            Ok(Some(PathBuf::from(folder.trim_start_matches("./"))))
        })
    }

    fn abilities<'a>(&'a self, question: Question<'a>) -> Work<'a, Result<Abilities, DbError>> {
        Box::pin(abilities::abilities(question))
    }

    fn clients(&self, base: &Base) -> (PathBuf, &'static [&'static str]) {
        let names = if base.is_mariadb() { &["mariadb", "mysql"] } else { &["mysql", "mariadb"] };
        (base.prefix.join("bin"), names)
    }

    fn client_arguments(&self, socket: &Path, version: &str) -> Vec<String> {
        let mut words = ["--no-defaults", "--user=root"].map(str::to_owned).to_vec();
        words.push(format!("--socket={}", socket.display()));
        if version.contains("MariaDB") {
            // From 11.4 on it insists on TLS, which the server has switched off.
            words.push("--skip-ssl".to_owned());
        }
        words
    }
}
