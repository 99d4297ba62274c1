//! TLS for connections: the requested settings, their files, which are loaded once, and the
//! handshake over a connected stream.
//!
//! rustls supports only TLS 1.2 and 1.3. Every connection makes a full handshake. Sessions are not
//! resumed, so that the thousandth connection costs as much as the first.

pub(crate) mod binding;
mod explain;
mod load;
#[cfg(test)]
#[path = "tls/tests/testing.rs"]
pub(crate) mod testing;
mod trust;

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio_rustls::TlsConnector;

pub(crate) use explain::explain;

use dbdyno_model::{TlsMode, TlsSettings};

use dbdyno_products::Address;

use crate::connections::ConnectionLog;
use crate::secret::Secret;
use crate::stream::Stream;

/// The contents of the files that [`TlsSettings`] would name, in PEM.
#[derive(Clone)]
pub struct TlsPem {
    /// Certificates of the authorities that [`TlsMode::Verify`] trusts.
    pub authorities: String,
    /// The client's own certificate, for a server that asks for one.
    pub certificate: String,
    /// The key of `certificate`.
    pub key: Secret,
}

impl fmt::Debug for TlsPem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("TlsPem")
    }
}

/// TLS for one login's connections: settings whose files have been read. It is cheap to clone.
#[derive(Clone)]
pub struct Tls(Arc<Loaded>);

struct Loaded {
    settings: TlsSettings,
    config: Arc<ClientConfig>,
    log: ConnectionLog,
}

/// Why a handshake did not produce an encrypted stream.
pub(crate) enum TlsFault {
    /// The connection broke.
    Io(io::Error),
    /// One of the two sides refused.
    Refused(String),
}

impl Tls {
    /// The requested settings.
    pub fn settings(&self) -> &TlsSettings {
        &self.0.settings
    }

    /// What the connections made with these settings agreed on.
    pub fn log(&self) -> &ConnectionLog {
        &self.0.log
    }

    /// Whether a connection to `address` should be encrypted. No one can eavesdrop on a unix
    /// socket, so TLS must be requested explicitly there.
    pub(crate) fn is_wanted_for(&self, address: &Address) -> bool {
        match self.0.settings.mode {
            TlsMode::Off => false,
            TlsMode::Prefer => matches!(address, Address::Tcp { .. }),
            TlsMode::Require | TlsMode::Verify => true,
        }
    }

    /// Whether a server without TLS makes the attempt fail.
    pub(crate) fn is_required(&self) -> bool {
        matches!(self.0.settings.mode, TlsMode::Require | TlsMode::Verify)
    }

    /// Performs the handshake over `stream`, which is connected to `address`.
    pub(crate) async fn secure(&self, stream: Stream, address: &Address) -> Result<Stream, TlsFault> {
        let host = address.host();
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            TlsFault::Refused(format!("{host:?} is no host name that a certificate could be for"))
        })?;
        let connector = TlsConnector::from(Arc::clone(&self.0.config));
        match connector.connect(name, stream).await {
            Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
            Err(error) => Err(explain(&error, host).map_or(TlsFault::Io(error), TlsFault::Refused)),
        }
    }
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        self.0.settings == other.0.settings
    }
}

impl Eq for Tls {}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.settings.fmt(formatter)
    }
}

#[cfg(test)]
mod tests;
