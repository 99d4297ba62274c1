//! Probes a server that is none of the known products for the features that workloads need.
//!
//! Each probe is a few statements on its own tables, in a database that belongs to dbdyno. A probe
//! that fails shows a missing feature, and the entry says what dbdyno does without it. Workloads
//! and runs know nothing about the server beyond these capabilities.

use std::time::Duration;

use crate::{
    AnySession, Capabilities, Class, DatabaseServer, DbError, DeleteForm, Description, IndexDdl, IndexHint,
    KeySource, Param, Result, RowStream, Session, describe,
};

/// The tables that the probes use. The second one refers to the first.
const TABLE: &str = "dbdyno_probe";
const SECOND_TABLE: &str = "dbdyno_probe_2";

/// Time limit for one answer, which takes a server milliseconds. A server that does not answer gets
/// no further probe.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// A feature that the product has and another server may lack.
struct Ability {
    /// Name in records and for people.
    name: &'static str,
    method: Method,
    /// What dbdyno does without the feature. It is empty where a workload that needs the feature
    /// must fail.
    without: fn(&mut Capabilities),
}

/// How a probe finds out whether a feature exists.
enum Method {
    /// Every one of these statements must succeed. The list is empty where the product itself lacks
    /// the feature.
    Statements(fn(&Capabilities) -> Vec<String>),
    /// Two connections each prepare and execute a statement of their own. A server that passes all
    /// connections' statements on over one connection mixes up their names.
    Prepared,
    /// The probe streams a row into a table.
    Stream,
}

/// The features in the order in which dbdyno probes them. An index must exist before a probe hints
/// at it, and the substitute for a missing feature is probed right after that feature.
const ABILITIES: &[Ability] = &[
    Ability {
        name: "transactions",
        method: Method::Statements(|can| vec![can.begin_write.to_owned(), "COMMIT".to_owned()]),
        without: |_| (),
    },
    Ability {
        name: "keys that the server fills in",
        method: Method::Statements(|can| {
            vec![
                format!("CREATE TABLE {SECOND_TABLE} (a {}, b {})", can.auto_key, can.big_int),
                format!("INSERT INTO {SECOND_TABLE} (b) VALUES (1)"),
            ]
        }),
        without: |_| (),
    },
    Ability {
        name: "a sequence for such keys",
        method: Method::Statements(|can| match can.key_source {
            KeySource::Sequence => vec![format!("ALTER SEQUENCE {SECOND_TABLE}_a_seq RESTART WITH 10")],
            KeySource::Table | KeySource::TableCounter => Vec::new(),
        }),
        without: |can| can.key_source = KeySource::Table,
    },
    Ability {
        name: "UNSIGNED and MAX_ROWS",
        method: Method::Statements(|can| match can.unsigned {
            true => vec![
                format!("DROP TABLE IF EXISTS {SECOND_TABLE}"),
                format!(
                    "CREATE TABLE {SECOND_TABLE} (a INTEGER UNSIGNED NOT NULL PRIMARY KEY) MAX_ROWS = 10"
                ),
            ],
            false => Vec::new(),
        }),
        without: |can| can.unsigned = false,
    },
    Ability {
        name: "several indexes in one ALTER TABLE",
        method: Method::Statements(|can| match can.index_ddl {
            IndexDdl::OneAlter => {
                vec![format!("ALTER TABLE {TABLE} ADD INDEX dbdyno_b (b), ADD INDEX dbdyno_c (c)")]
            }
            IndexDdl::AlterEach | IndexDdl::CreateEach => Vec::new(),
        }),
        without: |can| can.index_ddl = IndexDdl::AlterEach,
    },
    Ability {
        name: "indexes with ALTER TABLE",
        method: Method::Statements(|can| match can.index_ddl {
            IndexDdl::AlterEach => vec![format!("ALTER TABLE {TABLE} ADD INDEX dbdyno_b (b)")],
            IndexDdl::OneAlter | IndexDdl::CreateEach => Vec::new(),
        }),
        without: |can| can.index_ddl = IndexDdl::CreateEach,
    },
    Ability {
        name: "indexes",
        method: Method::Statements(|can| match can.index_ddl {
            IndexDdl::CreateEach => vec![format!("CREATE INDEX dbdyno_b ON {TABLE} (b)")],
            IndexDdl::OneAlter | IndexDdl::AlterEach => Vec::new(),
        }),
        without: |_| (),
    },
    Ability {
        name: "index hints",
        method: Method::Statements(|can| match can.index_hint {
            IndexHint::None => Vec::new(),
            hint => vec![format!("SELECT a FROM {TABLE}{} WHERE b = 1", hint.words("dbdyno_b"))],
        }),
        without: |can| can.index_hint = IndexHint::None,
    },
    Ability {
        name: "DELETE with ORDER BY and LIMIT",
        method: Method::Statements(|can| match can.delete_form {
            DeleteForm::OrderLimit => vec![format!("DELETE FROM {TABLE} ORDER BY a LIMIT 1")],
            DeleteForm::InSubquery => Vec::new(),
        }),
        without: |can| can.delete_form = DeleteForm::InSubquery,
    },
    Ability {
        name: "foreign keys",
        method: Method::Statements(|can| match can.foreign_keys {
            true => vec![
                format!("DROP TABLE IF EXISTS {SECOND_TABLE}"),
                format!("CREATE TABLE {SECOND_TABLE} (a {} NOT NULL PRIMARY KEY)", can.big_int),
                format!("ALTER TABLE {SECOND_TABLE} ADD FOREIGN KEY (a) REFERENCES {TABLE} (a)"),
                format!("DROP TABLE {SECOND_TABLE}"),
            ],
            false => Vec::new(),
        }),
        without: |can| can.foreign_keys = false,
    },
    Ability {
        name: "joins in the order of the text",
        method: Method::Statements(|can| {
            let (words, before) = can.ordered_join;
            let select = format!("SELECT count(*) FROM {TABLE} x{words}{TABLE} y");
            [before.to_owned(), select].into_iter().filter(|sql| !sql.is_empty()).collect()
        }),
        without: |can| can.ordered_join = (" CROSS JOIN ", ""),
    },
    Ability {
        name: "vacuum",
        method: Method::Statements(|can| match can.gather_statistics.strip_prefix("VACUUM") {
            Some(_) => vec![format!("{} {TABLE}", can.gather_statistics)],
            None => Vec::new(),
        }),
        without: |can| {
            can.gather_statistics = "ANALYZE";
            can.keeps_arrival_order = false;
            can.vacuumed_tables = false;
        },
    },
    Ability {
        name: "statistics of the optimiser",
        method: Method::Statements(|can| match can.gather_statistics {
            "" => Vec::new(),
            words => vec![format!("{words} {TABLE}")],
        }),
        without: |can| can.gather_statistics = "",
    },
    Ability {
        name: PREPARED,
        method: Method::Prepared,
        without: |can| {
            can.text_queries_by_default = true;
            can.text_writes_by_default = true;
        },
    },
    // This is the last probe, because a server that does not know the command may not notice its
    // end either.
    Ability {
        name: "streamed rows",
        method: Method::Stream,
        without: |can| can.row_stream = RowStream::PreparedRows,
    },
];

/// Name of the feature without which a plan that uses prepared statements cannot run.
const PREPARED: &str = "prepared statements";

/// Name of a feature without a probe. Whether it exists shows when the first table is made.
const ENGINE: &str = "the engine of a table";

impl Capabilities {
    /// Names of the missing features, for [`Capabilities::do_without`].
    pub fn lacks(&self) -> impl Iterator<Item = &str> {
        let missing = self.foreign.iter().flat_map(|foreign| &foreign.missing);
        let engine = self.foreign.is_some() && self.table_suffix.is_empty();
        missing.map(|(name, _)| name.as_str()).chain(engine.then_some(ENGINE))
    }

    /// Whether each connection can prepare its own statements.
    pub fn prepares(&self) -> bool {
        self.lacks().all(|name| name != PREPARED)
    }

    /// Adapts the capabilities to a server that lacks this feature. Another process has probed the
    /// server.
    pub fn do_without(&mut self, missing: &str) {
        if missing == ENGINE {
            self.engine = None;
            self.table_suffix.clear();
        }
        if let Some(ability) = ABILITIES.iter().find(|ability| ability.name == missing) {
            (ability.without)(self);
        }
    }
}

impl DatabaseServer {
    /// Asks the server which product it is. If it is none of the known products,
    /// [`Capabilities::foreign`] names it, and probes in this database set the other capabilities
    /// to what the server can do.
    ///
    /// `names_engine` says that the plan names an engine for the tables. `is_ours` says that dbdyno
    /// may make tables in the database. If it may not, nothing is probed.
    ///
    /// # Errors
    /// It fails without a connection, and for a server that can make no table at all.
    pub async fn identify(&mut self, names_engine: bool, is_ours: bool) -> Result<()> {
        let mut session = self.connect_as("conductor").await?;
        let described = describe(&mut session).await;
        session.close().await;
        let Description { foreign: Some(mut foreign), settings, .. } = described? else { return Ok(()) };
        if settings.is_empty() {
            foreign.missing.push(("settings".to_owned(), "it reports none".to_owned()));
        }
        let (is_programmed, is_proxy) = (foreign.is_programmed, foreign.is_proxy);
        self.capabilities.foreign = Some(foreign);
        if is_programmed {
            return Ok(());
        }
        // Only the product itself has a clause for the engine. Other servers accept and ignore it.
        if !is_proxy && !names_engine {
            self.capabilities.do_without(ENGINE);
        }
        if is_ours { self.probe_abilities().await } else { Ok(()) }
    }

    async fn probe_abilities(&mut self) -> Result<()> {
        let mut session = self.probe_session().await?;
        self.make_table(&mut session).await?;
        let not_probed: Vec<String> = self.capabilities.lacks().map(str::to_owned).collect();
        for ability in ABILITIES {
            if not_probed.iter().any(|name| name == ability.name) {
                (ability.without)(&mut self.capabilities);
                continue;
            }
            let can = self.capabilities.clone();
            let Err(error) = ability.probe(self, &mut session, &can).await else { continue };
            self.note_missing(ability.name, &error);
            (ability.without)(&mut self.capabilities);
            // The probe may have left a transaction or a statement open.
            if error.class == Class::Lost {
                session = self.probe_session().await.map_err(|mut after| {
                    let broken = format!("; the last probe was for {}: {error}", ability.name);
                    after.message.push_str(&broken);
                    after
                })?;
            } else {
                let _ = session.query(b"ROLLBACK").await;
            }
        }
        drop_tables(&mut session).await;
        session.close().await;
        Ok(())
    }

    async fn probe_session(&self) -> Result<AnySession> {
        let mut session = self.connect_to_stream("conductor").await?;
        session.limit_statements(Some(ANSWER_LIMIT));
        Ok(session)
    }

    /// Makes the first table in the same way as workloads do.
    async fn make_table(&mut self, session: &mut AnySession) -> Result<()> {
        drop_tables(session).await;
        let columns = |can: &Capabilities| {
            let number = can.big_int;
            format!("CREATE TABLE {TABLE} (a {number} NOT NULL PRIMARY KEY, b {number}, c {number})")
        };
        let with_engine = columns(&self.capabilities) + &self.capabilities.table_suffix;
        let Err(error) = session.query(with_engine.as_bytes()).await else { return Ok(()) };
        if error.class == Class::Lost || self.capabilities.table_suffix.is_empty() {
            return Err(error);
        }
        session.query(columns(&self.capabilities).as_bytes()).await?;
        self.note_missing(ENGINE, &error);
        self.capabilities.do_without(ENGINE);
        Ok(())
    }

    fn note_missing(&mut self, what: &str, error: &DbError) {
        if let Some(foreign) = &mut self.capabilities.foreign {
            foreign.missing.push((what.to_owned(), error.message.clone()));
        }
    }
}

impl Ability {
    /// Fails where the probe shows that the server lacks the feature.
    async fn probe(
        &self,
        database_server: &DatabaseServer,
        session: &mut AnySession,
        can: &Capabilities,
    ) -> Result<()> {
        match self.method {
            Method::Statements(statements) => {
                for sql in statements(can) {
                    session.query(sql.as_bytes()).await?;
                }
                Ok(())
            }
            Method::Prepared => {
                let sql = format!("SELECT a FROM {TABLE} WHERE a = ?");
                let mut other = database_server.probe_session().await?;
                let statement = session.prepare(&sql).await?;
                let of_other = other.prepare(&sql).await?;
                session.execute(statement, &[Param::Int(1)]).await?;
                other.execute(of_other, &[Param::Int(1)]).await?;
                other.close().await;
                Ok(())
            }
            Method::Stream => {
                let sql = match can.row_stream {
                    RowStream::LocalInfile => {
                        format!("LOAD DATA LOCAL INFILE 'rows' INTO TABLE {TABLE} (a, b)")
                    }
                    RowStream::CopyIn => format!("COPY {TABLE} (a, b) FROM STDIN"),
                    RowStream::PreparedRows => return Ok(()),
                };
                let loaded = session.load_rows(&sql, b"7\t1\n8\t2\n").await?;
                let text = format!("{} of 2 rows arrived", loaded.affected);
                if loaded.affected == 2 { Ok(()) } else { Err(DbError::new(Class::Refused, "", text)) }
            }
        }
    }
}

#[cfg(test)]
pub(super) fn is_ability(name: &str) -> bool {
    ABILITIES.iter().any(|ability| ability.name == name)
}

/// Drops the tables, including those from an earlier run.
async fn drop_tables(session: &mut AnySession) {
    for table in [SECOND_TABLE, TABLE] {
        // A server that cannot drop a missing table reports the problem when the table is made.
        let _ = session.query(format!("DROP TABLE IF EXISTS {table}").as_bytes()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{mysql, postgres};

    #[test]
    fn each_ability_has_its_own_name_and_missing_ones_change_the_capabilities() {
        for (index, ability) in ABILITIES.iter().enumerate() {
            assert!(ABILITIES[..index].iter().all(|other| other.name != ability.name), "{}", ability.name);
        }
        let mut without = mysql::capabilities("innodb", false);
        ABILITIES.iter().for_each(|ability| without.do_without(ability.name));
        assert_eq!(without.index_ddl, IndexDdl::CreateEach);
        assert_eq!((without.index_hint, without.delete_form), (IndexHint::None, DeleteForm::InSubquery));
        assert_eq!((without.row_stream, without.gather_statistics), (RowStream::PreparedRows, ""));
        let mut without = postgres::capabilities();
        without.do_without("vacuum");
        assert_eq!(without.gather_statistics, "ANALYZE");
        without.do_without("no such thing");
        let only = Capabilities {
            gather_statistics: "ANALYZE",
            keeps_arrival_order: false,
            vacuumed_tables: false,
            ..postgres::capabilities()
        };
        assert_eq!(without, only);
    }
}
