//! A database server: where to connect, for any kind of database, and what the server can do. It
//! opens sessions.

use crate::options::LoginOptions;
use crate::product::{Product, permitted};
use crate::products::{each_address, each_session};
use crate::{AnySession, Capabilities, ConnectionLog, DatabaseAddress, Result, Session, Tls, first_i64};

/// A database to which sessions can connect. It is cheap to clone and may be sent to any thread.
#[derive(Debug, Clone)]
pub struct DatabaseServer {
    pub address: DatabaseAddress,
    pub capabilities: Capabilities,
}

impl DatabaseAddress {
    /// The family's name.
    pub fn name(&self) -> &'static str {
        each_address!(self, _options, P => P::NAME)
    }

    /// Whether a server consists of its first process and that process' children.
    pub fn is_process_tree(&self) -> bool {
        each_address!(self, _options, P => P::IS_PROCESS_TREE)
    }

    /// How to log in; `None` for an embedded database.
    pub fn login(&self) -> Option<&LoginOptions> {
        each_address!(self, options, P => P::login(options))
    }

    pub fn login_mut(&mut self) -> Option<&mut LoginOptions> {
        each_address!(self, options, P => P::login_mut(options))
    }

    /// Adds the capabilities for `engine` tables (case does not matter), where the product has
    /// several engines. `owned` says that dbdyno started the server and may drop its binary logs.
    pub fn database_server(self, engine: &str, owned: bool) -> DatabaseServer {
        let capabilities = each_address!(&self, _options, P => P::capabilities(engine, owned));
        DatabaseServer { address: self, capabilities }
    }
}

impl DatabaseServer {
    /// Opens one session. The error is [`crate::Class::Lost`] when no one answers or the server is
    /// still starting, `Fatal` when the server refuses user, password or database, and `Refused`
    /// when it has too many connections.
    pub async fn connect(&self) -> Result<AnySession> {
        self.connect_as("other").await
    }

    /// Opens one session and, where TLS was requested, counts what it agreed on under `class`. The
    /// class is a connection task's kind, or any other user of a connection.
    pub async fn connect_as(&self, class: &str) -> Result<AnySession> {
        let session = self.address.connect().await?;
        if let Some(log) = self.connections() {
            log.note(class, session.encryption());
        }
        Ok(session)
    }

    /// Connects like [`DatabaseServer::connect_as`], for a session whose rows get keys from the
    /// server. The keys increase by 1, whatever the server's own settings say.
    pub async fn connect_to_insert(&self, class: &str) -> Result<AnySession> {
        let mut session = self.connect_as(class).await?;
        each_session!(&mut session, session, P => P::begin_to_insert(session).await)?;
        Ok(session)
    }

    /// Connects like [`DatabaseServer::connect_to_insert`], for a session that loads ASCII texts
    /// into `table` and similar tables. Where possible it uses the character set of the table's
    /// columns, so that the server converts no text.
    pub async fn connect_to_load(&self, class: &str, table: &str) -> Result<AnySession> {
        let mut session = self.connect_to_insert(class).await?;
        each_session!(&mut session, session, P => P::begin_to_load(session, table).await)?;
        Ok(session)
    }

    /// Connects like [`DatabaseServer::connect_to_insert`], for a session that may send rows with
    /// [`AnySession::load_rows`].
    pub async fn connect_to_stream(&self, class: &str) -> Result<AnySession> {
        let mut database_server = self.clone();
        if let Some(login) = database_server.address.login_mut() {
            login.local_infile = true;
        }
        database_server.connect_to_insert(class).await
    }

    /// Makes future sessions commit after each statement. It asks one session whether it does, and
    /// lets later ones set it if not (because of the server's `autocommit` or an `init_connect`). A
    /// query is needed, because most versions report to clients that it is on in any case.
    pub async fn commit_each_statement(&mut self) -> Result<()> {
        let Some(probe) = each_address!(&self.address, _options, P => P::COMMITS_EACH) else {
            return Ok(());
        };
        let mut session = self.connect_as("conductor").await?;
        // A server without such a setting commits after each statement.
        let answer = permitted(session.rows(probe).await)?;
        let is_off = answer.as_ref().and_then(first_i64) == Some(0);
        session.close().await;
        if let Some(login) = self.address.login_mut() {
            login.connection_settings.sets_autocommit |= is_off;
        }
        Ok(())
    }

    /// What the connections so far agreed on; `None` where TLS was not requested.
    pub fn connections(&self) -> Option<&ConnectionLog> {
        self.address.login()?.connection_settings.tls.as_ref().map(Tls::log)
    }
}
