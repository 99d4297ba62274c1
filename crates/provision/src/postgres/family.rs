//! PostgreSQL as a [`Family`].

use std::fs;
use std::path::{Path, PathBuf};

use dbdyno_drivers::{AnySession, DbError, Options, Session, Target, first_i64};

use super::{MAINTENANCE, Postgres, SUPERUSER, abilities, base, claim, conf, pass_file, server};
use crate::abilities::Abilities;
use crate::claim::Claim;
use crate::product::{Base, Family, FamilyFacts, FileLogin, Question, Server, ServerSpec, TlsOption, Work};
use crate::release::{ConfigProduct, ProductFacts};
use crate::running::Data;
use crate::{Error, Home};

impl ConfigProduct {
    pub const POSTGRESQL: Self = Self(&ProductFacts {
        word: "postgresql",
        name: "PostgreSQL",
        prefixes: &["pg", "postgresql", "postgres", "pgsql"],
        base: None,
        file_form: ("", ""),
    });
}

const FACTS: FamilyFacts = FamilyFacts {
    name: "postgres",
    products: &[ConfigProduct::POSTGRESQL],
    options: include_str!("../../data/options-postgresql.toml"),
    schemes: &["postgres://", "postgresql://"],
    default_port: 5432,
    socket_prefix: Some(".s.PGSQL."),
    tls_options: &[
        ("sslmode", TlsOption::Mode),
        ("sslrootcert", TlsOption::Ca),
        ("sslcert", TlsOption::Cert),
        ("sslkey", TlsOption::Key),
    ],
    other_place_of_user: "",
    option_file: ("postgresql_conf", "conf"),
    superuser: SUPERUSER,
    first_database: Some(MAINTENANCE),
    only_own_certificates: true,
    has_no_tls_on_sockets: true,
    // Not in the data of options: 3 since there is one.
    reserved_connections: Some(("superuser_reserved_connections", 3)),
};

impl Family for Postgres {
    fn facts(&self) -> &'static FamilyFacts {
        &FACTS
    }

    fn login_of_file(&self, path: &Path, options: &Options) -> Result<FileLogin, Error> {
        let wrong = |why: String| Error::OptionFile { path: path.to_path_buf(), why };
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let password = pass_file::password(&text, options)
            .ok_or_else(|| wrong("no line fits host, port, database and user of the address".to_owned()))?;
        Ok(FileLogin { user: None, password: Some(password) })
    }

    fn target(&self, options: Options) -> Target {
        Target::Postgres(options)
    }

    fn claim<'a>(&'a self, options: &'a Options, database: &'a str) -> Work<'a, Result<Claim, Error>> {
        Box::pin(claim::claim(options, database))
    }

    fn looked_for(&self) -> String {
        base::looked_for()
    }

    fn program_in(&self, path: &Path) -> Option<PathBuf> {
        base::find_programs(path).map(|folder| folder.join("postgres"))
    }

    fn open(&self, path: &Path) -> Result<Option<Base>, Error> {
        base::open(path)
    }

    fn native_settings(&self, _base: &Base, path: &Path) -> Result<Vec<(String, Option<String>)>, Error> {
        conf::conf_settings(path)
    }

    fn start(&self, home: Home, spec: &ServerSpec, data: Data) -> Result<Server, Error> {
        server::start(home, spec, data)
    }

    fn folder_of<'a>(
        &'a self,
        session: &'a mut AnySession,
        database: &'a str,
        _engine: &'a str,
    ) -> Work<'a, Result<Option<PathBuf>, DbError>> {
        Box::pin(async move {
            let oid = format!("SELECT oid FROM pg_database WHERE datname = '{database}'");
            let oid = first_i64(&session.rows(&oid).await?);
            Ok(oid.map(|oid| PathBuf::from(format!("base/{oid}"))))
        })
    }

    fn abilities<'a>(&'a self, question: Question<'a>) -> Work<'a, Result<Abilities, DbError>> {
        Box::pin(abilities::abilities(question))
    }

    fn clients(&self, base: &Base) -> (PathBuf, &'static [&'static str]) {
        (base.program.parent().unwrap_or(&base.path).to_path_buf(), &["psql"])
    }

    fn client_arguments(&self, socket: &Path, _version: &str) -> Vec<String> {
        let folder = self.socket_in_address(socket).display().to_string();
        ["-h", &folder, "-U", SUPERUSER, MAINTENANCE].map(str::to_owned).to_vec()
    }

    fn socket_in_address<'a>(&self, socket: &'a Path) -> &'a Path {
        socket.parent().unwrap_or(socket)
    }
}
