//! Opens a connection and logs in: TLS if it is wanted, the start-up message, the proof of the
//! password, and the server's parameters.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fault::{PostgresFault, PostgresServerError};
use super::wire::{PostgresReader, PostgresWire, put, put_sized, put_text};
use super::{LoginOptions, fault};
use crate::error::server_text;
use crate::options::Channel;
use crate::stream::{ByteStream, Stream};
use crate::tls::{Tls, server_end_point};

/// Protocol version 3.0, which all servers from 7.4 on support.
const PROTOCOL_VERSION: u32 = 3 << 16;

/// Highest number of messages in a login. A regular login takes about thirty, most of them
/// parameters.
const LONGEST_LOGIN: usize = 1000;

/// Codes for the server's authentication requests.
const OK: u32 = 0;
const CLEARTEXT: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

/// What the server reports at login about itself and the connection.
#[derive(Debug, Clone, Default)]
pub(super) struct PostgresHandshake {
    /// The server's version: `15.19`, `17.5 (Debian 17.5-1)`.
    pub(super) version: String,
    /// The number of the server's process for this connection.
    pub(super) backend: u32,
    /// The secret with which a client may cancel a statement on this connection.
    pub(super) key: u32,
}

/// Logs in on a new connection, with or without TLS.
pub(super) async fn login<S: ByteStream>(
    wire: &mut PostgresWire<S>,
    options: &LoginOptions,
    channel: Channel,
    binding: Binding,
) -> Result<PostgresHandshake, PostgresFault> {
    put_startup(wire.message(), options);
    wire.reply().await?;
    let mut proof = Proof { options, channel, binding, state: LoginState::Nothing };
    let mut agreed = PostgresHandshake::default();
    let mut body = Vec::with_capacity(256);
    let mut admitted = false;
    for _ in 0..LONGEST_LOGIN {
        match (wire.read(&mut body).await?, admitted) {
            (b'R', false) => {
                admitted = proof.answer(&body, wire.message())?;
                if !admitted && !wire.unsent().is_empty() {
                    wire.reply().await?;
                    wire.wipe();
                }
            }
            (b'E', _) => {
                return Err(PostgresFault::Server(PostgresServerError::Reported(fault::error(&body)?)));
            }
            (b'S', true) => {
                let mut reader = PostgresReader(&body);
                if reader.text()? == b"server_version" {
                    agreed.version = server_text(reader.text()?);
                }
            }
            (b'K', true) => {
                let mut reader = PostgresReader(&body);
                (agreed.backend, agreed.key) = (reader.u32()?, reader.u32()?);
            }
            (b'Z', true) => return Ok(agreed),
            // These are a notice, and a list of requested features that the server lacks. The
            // client requested no feature beyond the plain protocol.
            (b'N' | b'v', _) => {}
            _ => return Err(PostgresFault::Malformed("an unknown message during login")),
        }
    }
    Err(PostgresFault::Malformed("a login without end"))
}

fn put_startup(out: &mut Vec<u8>, options: &LoginOptions) {
    put_sized(out, |body| {
        body.extend_from_slice(&PROTOCOL_VERSION.to_be_bytes());
        let mut pair = |name: &str, value: &str| {
            put_text(body, name.as_bytes());
            put_text(body, value.as_bytes());
        };
        pair("user", &options.user);
        if let Some(database) = &options.database {
            pair("database", database);
        }
        pair("application_name", "dbdyno");
        pair("client_encoding", "UTF8");
        body.push(0);
    });
}

/// Proves to the server that the client knows the password.
struct Proof<'a> {
    options: &'a LoginOptions,
    channel: Channel,
    binding: Binding,
    state: LoginState,
}

/// The stage that the password's proof has reached.
enum LoginState {
    Nothing,
    /// The password or its md5 hash was sent.
    Sent,
    /// SCRAM has begun, and the server has not proven yet that it knows the password.
    Scram(Box<ScramSha256>),
    /// SCRAM is complete: the server has proven that it knows the password too.
    Proven,
}

impl Proof<'_> {
    /// Builds the answer to an authentication request into `out`. The result is `true` when the
    /// server accepts the user.
    fn answer(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<bool, PostgresFault> {
        let password = self.options.password.reveal();
        let mut reader = PostgresReader(body);
        match (reader.u32()?, &mut self.state) {
            (OK, LoginState::Scram(_)) => {
                return Err(PostgresFault::Malformed("a login without the server's part of the proof"));
            }
            (OK, _) => return Ok(true),
            (CLEARTEXT, LoginState::Nothing) => {
                if !self.channel.may_carry_passwords {
                    return Err(plaintext_refused());
                }
                put(out, b'p', |body| put_text(body, password.as_bytes()));
                self.state = LoginState::Sent;
            }
            (MD5, LoginState::Nothing) => {
                let salt = reader.take(4)?;
                let salt = [salt[0], salt[1], salt[2], salt[3]];
                let hash = md5_hash(self.options.user.as_bytes(), password.as_bytes(), salt);
                put(out, b'p', |body| put_text(body, hash.as_bytes()));
                self.state = LoginState::Sent;
            }
            (SASL, LoginState::Nothing) => {
                let (mechanism, bound) = mechanism(reader, &self.binding)?;
                let scram = ScramSha256::new(password.as_bytes(), bound);
                put(out, b'p', |body| {
                    put_text(body, mechanism.as_bytes());
                    // Unlike a message's length, this one does not count itself.
                    body.extend_from_slice(&(scram.message().len() as u32).to_be_bytes());
                    body.extend_from_slice(scram.message());
                });
                self.state = LoginState::Scram(Box::new(scram));
            }
            (SASL_CONTINUE, LoginState::Scram(scram)) => {
                scram.update(reader.0).map_err(|_| PostgresFault::Malformed("a malformed SCRAM message"))?;
                put(out, b'p', |body| body.extend_from_slice(scram.message()));
            }
            (SASL_FINAL, LoginState::Scram(scram)) => {
                scram.finish(reader.0).map_err(|_| server_without_proof())?;
                self.state = LoginState::Proven;
            }
            (CLEARTEXT | MD5 | SASL | SASL_CONTINUE | SASL_FINAL, _) => {
                return Err(PostgresFault::Malformed("an unexpected authentication request"));
            }
            (other, _) => return Err(unsupported_method(other)),
        }
        Ok(false)
    }
}

/// Picks the best mechanism in the server's list that this client supports. Over TLS the proof is
/// bound to the server's certificate where the server supports that. Where the list lacks that
/// binding, the proof says that the client would have supported it. A server that does support it
/// then knows that someone in between has changed its list.
fn mechanism(
    mut offer: PostgresReader<'_>,
    binding: &Binding,
) -> Result<(&'static str, ChannelBinding), PostgresFault> {
    let mut offered = Vec::new();
    while !offer.0.is_empty() {
        match offer.text()? {
            b"" => break,
            name => offered.push(name),
        }
    }
    let offers = |mechanism: &str| offered.contains(&mechanism.as_bytes());
    match binding {
        Binding::EndPoint(hash) if offers(SCRAM_SHA_256_PLUS) => {
            Ok((SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(hash.clone())))
        }
        Binding::EndPoint(_) if offers(SCRAM_SHA_256) => Ok((SCRAM_SHA_256, ChannelBinding::unrequested())),
        Binding::Impossible if offers(SCRAM_SHA_256) => Ok((SCRAM_SHA_256, ChannelBinding::unsupported())),
        _ => Err(PostgresFault::Login(format!(
            "the server offers the authentication mechanisms {} only, none of which dbdyno supports; use an account with \
             scram-sha-256 or md5",
            server_text(&offered.join(&b", "[..]))
        ))),
    }
}

fn plaintext_refused() -> PostgresFault {
    PostgresFault::Login(
        "the server wants the password in plaintext, which dbdyno sends only over a unix socket or over required TLS (tls mode require or verify); use one of these, or set the method scram-sha-256 in pg_hba.conf"
            .to_owned(),
    )
}

fn server_without_proof() -> PostgresFault {
    PostgresFault::Login(
        "the server cannot prove that it knows the password: another server may be answering in its place"
            .to_owned(),
    )
}

fn unsupported_method(request: u32) -> PostgresFault {
    let method = match request {
        2 => "Kerberos".to_owned(),
        7 | 8 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("number {other}"),
    };
    PostgresFault::Login(format!(
        "the server wants authentication by {method}, which dbdyno does not support; set the method scram-sha-256 for \
         this user in pg_hba.conf"
    ))
}

/// The request for TLS. It is a start-up message of eight bytes, with a special number in place of
/// the protocol version.
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
            "the server does not offer TLS, which the plan requires; set ssl = on with ssl_cert_file and ssl_key_file in its \
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
#[path = "login_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "secure_tests.rs"]
mod secure_tests;
