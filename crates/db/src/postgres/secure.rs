//! Switches a new connection to TLS, where the options ask for it.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::LoginOptions;
use super::fault::PostgresFault;
use crate::options::Channel;
use crate::stream::Stream;
use crate::tls::Tls;
use crate::tls::binding::server_end_point;

/// The request for TLS. It is a message with eight bytes that has a special number in place of the
/// protocol version.
const REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// What SCRAM can bind its proof to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Binding {
    /// Nothing, because there is no TLS or no hash is defined for the certificate.
    Impossible,
    /// The hash of the server's certificate.
    EndPoint(Vec<u8>),
}

/// A connected stream, and how it is protected.
#[derive(Debug)]
pub(super) struct Secured {
    pub(super) stream: Stream,
    pub(super) channel: Channel,
    pub(super) binding: Binding,
}

/// Connects to the server in `options`, with TLS where they ask for it.
pub(super) async fn connected(options: &LoginOptions) -> Result<Secured, PostgresFault> {
    let wanted = options.wanted_tls();
    if wanted.is_some() && Channel::new(options, false).is_local {
        return Err(PostgresFault::Tls(
            "PostgreSQL has no TLS over unix sockets; connect over TCP, or leave tls out".to_owned(),
        ));
    }
    let stream = Stream::connect(&options.address).await?;
    match wanted {
        Some(tls) => secured(stream, tls, options).await,
        None => Ok(in_plaintext(stream, options)),
    }
}

async fn secured(mut stream: Stream, tls: &Tls, options: &LoginOptions) -> Result<Secured, PostgresFault> {
    stream.write_all(&REQUEST).await?;
    stream.flush().await?;
    let mut answer = [0; 64];
    match (stream.read(&mut answer).await?, answer[0]) {
        (0, _) => Err(PostgresFault::Closed),
        (1, b'S') => {
            let stream = tls.secure(stream, &options.address).await?;
            let binding = stream.server_certificate().and_then(server_end_point);
            let binding = binding.map_or(Binding::Impossible, Binding::EndPoint);
            Ok(Secured { stream, channel: Channel::new(options, true), binding })
        }
        (1, b'N') if tls.is_required() => Err(PostgresFault::Tls(
            "the server offers no TLS, which was demanded; set ssl = on with ssl_cert_file and ssl_key_file in its \
             postgresql.conf, or leave tls out"
                .to_owned(),
        )),
        (1, b'N') => Ok(in_plaintext(stream, options)),
        // The server's text arrived without protection, so it is not repeated.
        (_, b'E') => Err(PostgresFault::Tls("the server answered the request for TLS with an error; see its log".to_owned())),
        (_, b'S') => {
            Err(PostgresFault::Malformed("bytes before the beginning of TLS, possibly from an attacker"))
        }
        _ => Err(PostgresFault::Malformed("not the answer of a PostgreSQL server; check the address")),
    }
}

fn in_plaintext(stream: Stream, options: &LoginOptions) -> Secured {
    Secured { stream, channel: Channel::new(options, false), binding: Binding::Impossible }
}

#[cfg(test)]
#[path = "secure_tests.rs"]
mod tests;
