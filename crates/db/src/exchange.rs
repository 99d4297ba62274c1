//! Tracks whether a connection is in the middle of an exchange, which is a statement and its
//! answer. Every protocol uses this code.

use std::time::Duration;

use dbdyno_products::Address;

use crate::connections::{OpenConnections, Ticket};
use crate::error::{ServerFault, WireFault};
use crate::options::{ConnectionSettings, LoginOptions, TimeLimits};
use crate::{Class, DbError, Result};

/// Hints that fit every product.
pub(crate) const NO_PASSWORD: &str = "; no password was given: set password_env or an option file";
pub(crate) const NO_DATABASE: &str = "; create the database first or name another";
pub(crate) const NO_ROOM: &str = "; raise max_connections or use fewer clients";

/// Connects to the `product` server in `options` with `attempt`, within the options' time limit for
/// a login. `hint` says what to try after the server's error.
pub(crate) async fn connected<T, S: ServerFault>(
    attempt: impl Future<Output = Result<T, WireFault<S>>>,
    (options, product): (&LoginOptions, &str),
    hint: fn(&S, &LoginOptions) -> &'static str,
) -> Result<T> {
    let context = format!("connecting to {}", options.login_text());
    let TimeLimits { login: limit, login_key, .. } = options.connection_settings.limits;
    match tokio::time::timeout(limit, attempt).await {
        Ok(Ok(session)) => Ok(session),
        Ok(Err(fault)) => {
            let fault = fault.explained_by_tls(options.address.host());
            let hint = match (&fault, &options.address) {
                (WireFault::Server(error), _) => hint(error, options),
                (WireFault::Io(_), Address::Socket(_)) => "; is the server running, and is this its socket?",
                (WireFault::Io(_), Address::Tcp { .. }) => {
                    "; is the server running, and are host and port right?"
                }
                _ => "",
            };
            let mut error = fault.into_error(&context);
            error.message.push_str(hint);
            Err(error)
        }
        Err(_) => {
            let advice = format!(
                "is this a {product} server, and does it accept connections? {login_key} may be too short"
            );
            let text = format!("{context}: no answer within {limit:?}; {advice}");
            Err(DbError::new(Class::Lost, "io", text))
        }
    }
}

/// Whether the next answer on a connection belongs to the next statement.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// User and address, for messages.
    pub(crate) login_text: String,
    state: ExchangeState,
    /// The list of open connections that contains this connection, and the connection's ticket.
    entered: Option<(OpenConnections, Ticket)>,
    /// Time limit for a statement outside a step. A session begins with the limit for small
    /// queries.
    pub(crate) limit: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangeState {
    Idle,
    /// An exchange has begun and not ended. The next answer would belong to an earlier statement.
    Begun,
    /// The connection was lost in the middle of an exchange.
    Lost,
}

impl Exchange {
    /// Makes an exchange for a connection that is on no list.
    #[cfg(test)]
    pub(crate) fn new(login_text: String) -> Self {
        Self {
            login_text,
            state: ExchangeState::Idle,
            entered: None,
            limit: Some(TimeLimits::default().answer),
        }
    }

    /// Makes an exchange for a connection whose statements can be cancelled. The connection is on
    /// the settings' list of open connections until it ends.
    pub(crate) fn entered(
        login_text: String,
        connection_settings: &ConnectionSettings,
        ticket: Ticket,
    ) -> Self {
        connection_settings.open_connections.enter(ticket);
        let entered = Some((connection_settings.open_connections.clone(), ticket));
        Self {
            login_text,
            state: ExchangeState::Idle,
            entered,
            limit: Some(connection_settings.limits.answer),
        }
    }

    /// Marks an exchange as begun. The mark stays if the exchange's future is dropped in the
    /// middle.
    pub(crate) fn begin(&mut self) -> Result<()> {
        if self.is_unfinished() {
            return Err(self.abandoned());
        }
        self.state = ExchangeState::Begun;
        Ok(())
    }

    /// The number by which the server knows the connection, where its statements can be cancelled.
    pub(crate) fn ticket(&self) -> Option<Ticket> {
        self.entered.as_ref().map(|(_, ticket)| *ticket)
    }

    pub(crate) fn is_unfinished(&self) -> bool {
        self.state != ExchangeState::Idle
    }

    /// Marks an exchange as ended, unless the connection is lost. A fault is reported with the
    /// statement and the address.
    pub(crate) fn end<T, S: ServerFault>(
        &mut self,
        outcome: Result<T, WireFault<S>>,
        what: impl FnOnce() -> String,
    ) -> Result<T> {
        outcome
            .inspect(|_| self.state = ExchangeState::Idle)
            .inspect_err(|fault| {
                self.state =
                    if fault.class() == Class::Lost { ExchangeState::Lost } else { ExchangeState::Idle };
            })
            .map_err(|fault| fault.into_error(&format!("{} on {}", what(), self.login_text)))
    }

    /// The error for a statement that another session prepared.
    pub(crate) fn unknown_statement(&self, number: usize) -> DbError {
        let text = format!("statement {number} was not prepared by this session to {}", self.login_text);
        DbError::new(Class::Fatal, "params", text)
    }

    /// The error for a wrong number of parameters.
    pub(crate) fn wrong_params(&self, excerpt: &str, wanted: usize, given: usize) -> DbError {
        let text = format!("{excerpt} on {}: takes {wanted} parameters, not {given}", self.login_text);
        DbError::new(Class::Fatal, "params", text)
    }

    fn abandoned(&self) -> DbError {
        let text = format!(
            "connection to {} is not usable: it was lost, or a statement on it was abandoned; connect again",
            self.login_text
        );
        DbError::new(Class::Lost, "io", text)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        match (&self.entered, self.state) {
            (None, _) => {}
            (Some((open_connections, ticket)), ExchangeState::Begun) => {
                open_connections.mark_dropped(*ticket)
            }
            // A lost connection leaves the list too, because the server may soon reuse its number.
            (Some((open_connections, ticket)), ExchangeState::Idle | ExchangeState::Lost) => {
                open_connections.leave(*ticket)
            }
        }
    }
}
