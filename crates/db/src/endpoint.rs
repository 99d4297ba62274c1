//! Where to connect: one value for each kind of database, and the session that comes of it.

use crate::options::Options;
use crate::product::{Product, permitted};
use crate::products::{each_session, each_target};
use crate::{AnySession, Capabilities, ConnectionLog, Result, Session, Target, Tls, first_i64};

/// A database that sessions can be opened to. Cheap to clone, may go to any thread.
#[derive(Debug, Clone)]
pub struct Endpoint {
    pub target: Target,
    pub capabilities: Capabilities,
}

impl Target {
    /// The name of its family.
    pub fn name(&self) -> &'static str {
        each_target!(self, _options, P => P::NAME)
    }

    /// A server is its first process and the children of that.
    pub fn is_process_tree(&self) -> bool {
        each_target!(self, _options, P => P::IS_PROCESS_TREE)
    }

    /// How to log in; `None` of an embedded database.
    pub fn login(&self) -> Option<&Options> {
        each_target!(self, options, P => P::login(options))
    }

    pub fn login_mut(&mut self) -> Option<&mut Options> {
        each_target!(self, options, P => P::login_mut(options))
    }

    /// With what the product does with tables of `engine` (case does not matter), where it has
    /// several. `owned` says that dbdyno started the server and may drop its binary logs.
    pub fn endpoint(self, engine: &str, owned: bool) -> Endpoint {
        let capabilities = each_target!(&self, _options, P => P::capabilities(engine, owned));
        Endpoint { target: self, capabilities }
    }
}

impl Endpoint {
    /// Opens one session. [`crate::Class::Lost`] when no one answers or the server still starts,
    /// `Fatal` when it refuses user, password or database, `Refused` when it has too many
    /// connections.
    pub async fn connect(&self) -> Result<AnySession> {
        self.connect_as("other").await
    }

    /// Opens one session and, where TLS was asked for, notes what it agreed on for connections of
    /// `class`: the kind of a connection task, or any other user of a connection.
    pub async fn connect_as(&self, class: &str) -> Result<AnySession> {
        let session = self.target.connect().await?;
        if let Some(log) = self.connections() {
            log.note(class, session.encryption());
        }
        Ok(session)
    }

    /// As [`Endpoint::connect_as`], for a session whose rows get keys from the server: they go up
    /// by 1, whatever the server's own settings say.
    pub async fn connect_to_insert(&self, class: &str) -> Result<AnySession> {
        let mut session = self.connect_as(class).await?;
        each_session!(&mut session, session, P => P::begin_to_insert(session).await)?;
        Ok(session)
    }

    /// As [`Endpoint::connect_to_insert`], for a session that loads `table` and such as it with
    /// texts of ASCII only: where it can, it speaks the character set of its columns, so that the
    /// server converts no text.
    pub async fn connect_to_load(&self, class: &str, table: &str) -> Result<AnySession> {
        let mut session = self.connect_to_insert(class).await?;
        each_session!(&mut session, session, P => P::begin_to_load(session, table).await)?;
        Ok(session)
    }

    /// As [`Endpoint::connect_to_insert`], for a session that may send rows with
    /// [`AnySession::load_rows`].
    pub async fn connect_to_stream(&self, class: &str) -> Result<AnySession> {
        let mut endpoint = self.clone();
        if let Some(login) = endpoint.target.login_mut() {
            login.local_infile = true;
        }
        endpoint.connect_to_insert(class).await
    }

    /// Sees to it that sessions from now on commit after each statement: asks one whether it does,
    /// and has the others say so where it does not (`autocommit` of the server, or an
    /// `init_connect`). Asked, because most versions report to clients that it is on whatever it
    /// is.
    pub async fn commit_each_statement(&mut self) -> Result<()> {
        let Some(question) = each_target!(&self.target, _options, P => P::COMMITS_EACH) else {
            return Ok(());
        };
        let mut session = self.connect_as("conductor").await?;
        // A server that has no such setting commits.
        let answer = permitted(session.rows(question).await)?;
        let is_off = answer.as_ref().and_then(first_i64) == Some(0);
        session.close().await;
        if let Some(login) = self.target.login_mut() {
            login.connection_settings.sets_autocommit |= is_off;
        }
        Ok(())
    }

    /// What the connections made so far agreed on; `None` where TLS was not asked for.
    pub fn connections(&self) -> Option<&ConnectionLog> {
        self.target.login()?.connection_settings.tls.as_ref().map(Tls::log)
    }
}
