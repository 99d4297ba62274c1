//! The login conversation that opens a connection: start-up message, proof of the password, and the
//! server's parameters.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};

use super::LoginOptions;
use super::fault::{PostgresFault, PostgresServerError};
use super::message::{PostgresReader, put, put_sized, put_text};
use super::report;
use super::secure::Binding;
use super::wire::PostgresWire;
use crate::excerpt::server_text;
use crate::options::Channel;
use crate::stream::ByteStream;

/// Protocol version 3.0, which all servers from 7.4 on support.
const PROTOCOL_VERSION: u32 = 3 << 16;

/// Messages that a login may take. A regular one takes about thirty, most of them parameters.
const LONGEST_LOGIN: usize = 1000;

/// Codes for the server's authentication requests.
const OK: u32 = 0;
const CLEARTEXT: u32 = 3;
const MD5: u32 = 5;
const SASL: u32 = 10;
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

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
                return Err(PostgresFault::Server(PostgresServerError::Reported(report::error(&body)?)));
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
            // These are notices, and a list of requested features that the server lacks. The client
            // requested none beyond the plain protocol.
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

/// The stage that the proof has reached.
enum LoginState {
    Nothing,
    /// The password or its md5 hash was sent.
    Sent,
    /// SCRAM continues.
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
                    return Err(cleartext_in_public());
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
                scram
                    .update(reader.0)
                    .map_err(|_| PostgresFault::Malformed("a SCRAM message that is none"))?;
                put(out, b'p', |body| body.extend_from_slice(scram.message()));
            }
            (SASL_FINAL, LoginState::Scram(scram)) => {
                scram.finish(reader.0).map_err(|_| server_without_proof())?;
                self.state = LoginState::Proven;
            }
            (CLEARTEXT | MD5 | SASL | SASL_CONTINUE | SASL_FINAL, _) => {
                return Err(PostgresFault::Malformed("a request for proof out of turn"));
            }
            (other, _) => return Err(unspoken(other)),
        }
        Ok(false)
    }
}

/// Picks the best mechanism in the server's list that this client supports. Over TLS the proof is
/// bound to the server's certificate where the server supports that. Where its list lacks that, the
/// proof says that the client would have supported it. A server that does support it then knows
/// that someone in between has changed its list.
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
            "the server offers the authentication mechanisms {} only, of which dbdyno speaks none; use an account with \
             scram-sha-256 or md5",
            server_text(&offered.join(&b", "[..]))
        ))),
    }
}

fn cleartext_in_public() -> PostgresFault {
    PostgresFault::Login(
        "the server wants the password in plaintext, which goes only over its unix socket or over \
         TLS that is demanded (tls mode require or verify), which others cannot read; ask for one \
         of these, or set the method scram-sha-256 in pg_hba.conf"
            .to_owned(),
    )
}

fn server_without_proof() -> PostgresFault {
    PostgresFault::Login(
        "the server cannot prove that it knows the password: another one may answer in its place".to_owned(),
    )
}

fn unspoken(request: u32) -> PostgresFault {
    let method = match request {
        2 => "Kerberos".to_owned(),
        7 | 8 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("number {other}"),
    };
    PostgresFault::Login(format!(
        "the server wants authentication by {method}, which dbdyno does not speak; set the method scram-sha-256 for \
         this user in pg_hba.conf"
    ))
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
