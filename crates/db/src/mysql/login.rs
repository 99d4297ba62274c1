//! The login conversation that opens a connection: greeting, answer, and whatever the
//! authentication plugin asks after that.
//!
//! `caching_sha2_password` and `sha256_password` hand the password itself to the server. It is sent
//! as plaintext inside TLS, and with the former over a unix socket too, as the protocol says.
//! Otherwise it is encrypted with the server's public key. Over TCP that key must be known, or the
//! user must accept any key, because whoever poses as the server sends a key too.
//!
//! MariaDB's `client_ed25519` and `parsec` sign the server's nonce and never send the password.

use dbdyno_model::ColumnDefinitions;
use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::packets::{AuthPlugin, HandshakeResponse};
use mysql_common::proto::MySerialize;

use super::fault::MysqlFault;
use super::greeting::{Greeting, NONCE};
use super::packet::{self, Form, MysqlReader};
use super::sign::Signer;
use super::wire::MysqlWire;
use super::{LoginOptions, ServerKey, rsa};
use crate::excerpt::server_text;
use crate::options::Channel;
use crate::stream::ByteStream;

/// The capabilities that this client requests. Others are left out on purpose: one statement must
/// not hold several, and LOAD DATA LOCAL INFILE is allowed only where the options ask for it.
const WANTED: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS);

/// Largest message size that the client announces. The real limit is the server's
/// `max_allowed_packet`.
const LARGEST_MESSAGE: u32 = 1 << 30;

/// Packets that a login may take after the first answer. The longest regular login takes five.
const LONGEST_LOGIN: usize = 16;

/// The byte that asks for the server's RSA key, in `caching_sha2_password` and in
/// `sha256_password`.
const KEY_WANTED_BY_CACHING_SHA2: u8 = 2;
const KEY_WANTED_BY_SHA256: u8 = 1;

#[derive(Debug, Clone)]
pub(super) struct MysqlHandshake {
    pub(super) version: String,
    pub(super) is_mariadb: bool,
    pub(super) connection_id: u32,
    pub(super) form: Form,
    pub(super) session_track: bool,
}

/// Waits for the server's first packet.
pub(super) async fn greeted<S: ByteStream>(wire: &mut MysqlWire<S>) -> Result<Greeting, MysqlFault> {
    let mut payload = Vec::with_capacity(256);
    wire.read(&mut payload).await?;
    Greeting::parse(&payload)
}

/// Logs in on a connection whose server has sent its greeting, with or without TLS.
pub(super) async fn login<S: ByteStream>(
    wire: &mut MysqlWire<S>,
    greeting: Greeting,
    options: &LoginOptions,
    channel: Channel,
) -> Result<MysqlHandshake, MysqlFault> {
    let mut login = Login::new(&greeting, options, channel);
    put_response(wire.message(), &mut login, &greeting, options)?;
    wire.reply().await?;
    login.converse(wire, &mut Vec::with_capacity(256)).await?;
    wire.wipe();
    let agreed = wanted(&greeting, options);
    let form = Form {
        deprecate_eof: agreed.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
        optional_definitions: extended(&greeting, options)
            == MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA,
    };
    Ok(MysqlHandshake {
        form,
        session_track: agreed.contains(CapabilityFlags::CLIENT_SESSION_TRACK),
        version: greeting.version,
        is_mariadb: greeting.is_mariadb,
        connection_id: greeting.connection_id,
    })
}

/// The request for TLS. It is the start, up to the user, of the answer that will follow inside TLS.
pub(super) fn put_tls_request(
    out: &mut Vec<u8>,
    greeting: &Greeting,
    options: &LoginOptions,
) -> Result<(), MysqlFault> {
    const LENGTH: usize = 32;
    let mut whole = Vec::with_capacity(256);
    let mut login = Login::new(greeting, options, Channel::new(options, true));
    put_response(&mut whole, &mut login, greeting, options)?;
    out.extend_from_slice(&whole[..LENGTH.min(whole.len())]);
    whole.fill(0);
    Ok(())
}

/// The client's answer to the greeting.
fn put_response(
    out: &mut Vec<u8>,
    login: &mut Login<'_>,
    greeting: &Greeting,
    options: &LoginOptions,
) -> Result<(), MysqlFault> {
    let mut capabilities = wanted(greeting, options);
    capabilities.set(CapabilityFlags::CLIENT_SSL, login.channel.is_encrypted);
    // Without this flag the server refuses such a statement. Most servers accept the flag even if
    // their greeting did not offer it.
    capabilities.set(CapabilityFlags::CLIENT_LOCAL_FILES, options.local_infile);
    let offers_plugins = greeting.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH);
    let response = HandshakeResponse::new(
        Some(login.first_answer()?),
        greeting.numbers(),
        Some(options.user.as_bytes()),
        options.database.as_deref().map(str::as_bytes),
        offers_plugins.then(|| login.plugin.clone()),
        capabilities,
        None,
        LARGEST_MESSAGE,
    );
    response.with_mariadb_ext_capabilities(extended(greeting, options)).serialize(out);
    Ok(())
}

/// The requested capabilities that both sides have. If the options do not say, session tracking and
/// results without EOF packets are as in the product's own client library. libmysqlclient requests
/// both since 5.7 (`CLIENT_CAPABILITIES` in its `client_settings.h`), MariaDB Connector/C only
/// session tracking (`mariadb_com.h`).
fn wanted(greeting: &Greeting, options: &LoginOptions) -> CapabilityFlags {
    let mut wanted = WANTED;
    let connection_settings = &options.connection_settings;
    wanted.set(
        CapabilityFlags::CLIENT_DEPRECATE_EOF,
        connection_settings.deprecate_eof.unwrap_or(!greeting.is_mariadb),
    );
    wanted.set(CapabilityFlags::CLIENT_SESSION_TRACK, connection_settings.session_track.unwrap_or(true));
    greeting.capabilities & wanted
}

/// The MariaDB capabilities that are requested.
fn extended(greeting: &Greeting, options: &LoginOptions) -> MariadbCapabilities {
    match options.connection_settings.column_definitions {
        ColumnDefinitions::Once => greeting.extended & MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA,
        ColumnDefinitions::Always => MariadbCapabilities::empty(),
    }
}

struct Login<'a> {
    password: &'a str,
    channel: Channel,
    plugin: AuthPlugin<'static>,
    nonce: [u8; NONCE],
    signer: Signer,
    server_key: &'a ServerKey,
    awaits_key: bool,
}

impl<'a> Login<'a> {
    fn new(greeting: &Greeting, options: &'a LoginOptions, channel: Channel) -> Self {
        let server_key = match &options.connection_settings.server_key {
            ServerKey::Unknown if channel.is_local => &ServerKey::Retrieved,
            key => key,
        };
        // The first answer is for the server's default plugin. This client may not support it, or
        // may not be allowed to ask for the key that it needs. The account's own plugin may then be
        // another one, which the server names next.
        let plugin = match &greeting.plugin {
            AuthPlugin::CachingSha2Password => AuthPlugin::CachingSha2Password,
            AuthPlugin::Sha256Password if channel.is_encrypted || *server_key != ServerKey::Unknown => {
                AuthPlugin::Sha256Password
            }
            _ => AuthPlugin::MysqlNativePassword,
        };
        Self {
            password: options.password.reveal(),
            channel,
            plugin,
            nonce: greeting.nonce,
            signer: Signer::default(),
            server_key,
            awaits_key: false,
        }
    }

    /// The plugin's first answer.
    fn first_answer(&mut self) -> Result<Vec<u8>, MysqlFault> {
        let password = self.password.as_bytes();
        match &self.plugin {
            AuthPlugin::MysqlNativePassword => {
                Ok(scramble_native(&self.nonce, password).map_or(Vec::new(), |hash| hash.to_vec()))
            }
            // A single NUL says that there is no password.
            AuthPlugin::CachingSha2Password => {
                Ok(scramble_sha256(&self.nonce, password).map_or(vec![0], |hash| hash.to_vec()))
            }
            AuthPlugin::Sha256Password if password.is_empty() => Ok(vec![0]),
            AuthPlugin::Sha256Password if self.channel.is_encrypted => Ok(self.plain()),
            AuthPlugin::Sha256Password => self.encrypted(KEY_WANTED_BY_SHA256),
            AuthPlugin::MysqlClearPassword if self.channel.may_carry_passwords => Ok(self.plain()),
            AuthPlugin::MysqlClearPassword => Err(MysqlFault::Login(
                "the server wants the password in plaintext, which goes only over its unix socket \
                 or over TLS that is demanded (tls mode require or verify), which others cannot \
                 read; ask for one of these, or use an account with another authentication plugin"
                    .to_owned(),
            )),
            other => Err(MysqlFault::Login(format!(
                "the account uses the authentication plugin {}, which dbdyno does not speak; use an account with \
                 mysql_native_password, caching_sha2_password, client_ed25519 or parsec",
                server_text(other.as_bytes())
            ))),
        }
    }

    /// The password encrypted with the known key. Where any key is accepted, this is `request`,
    /// which asks for the server's key.
    fn encrypted(&mut self, request: u8) -> Result<Vec<u8>, MysqlFault> {
        match self.server_key {
            ServerKey::Known(pem) => rsa::encrypt(self.password, &self.nonce, pem),
            ServerKey::Retrieved => {
                self.awaits_key = true;
                Ok(vec![request])
            }
            ServerKey::Unknown => Err(no_key()),
        }
    }

    /// The password with a final NUL.
    fn plain(&self) -> Vec<u8> {
        let mut bytes = self.password.as_bytes().to_vec();
        bytes.push(0);
        bytes
    }

    /// Answers the server until it accepts or refuses the login.
    async fn converse<S: ByteStream>(
        &mut self,
        wire: &mut MysqlWire<S>,
        payload: &mut Vec<u8>,
    ) -> Result<(), MysqlFault> {
        for _ in 0..LONGEST_LOGIN {
            wire.read(payload).await?;
            let answer = match payload[0] {
                0x00 => return packet::ok(payload).map(|_| ()),
                0xff => return Err(packet::server_error(payload)),
                0xfe => Some(self.switch(&payload[1..])?),
                0x01 => self.more(&payload[1..])?,
                // MariaDB escapes only data that could be taken for another packet.
                _ if self.plugin == AuthPlugin::Parsec => self.more(payload)?,
                _ => return Err(MysqlFault::Malformed("an unknown packet during login")),
            };
            if let Some(answer) = answer {
                wire.message().extend_from_slice(&answer);
                wire.reply().await?;
            }
        }
        Err(MysqlFault::Malformed("a login without end"))
    }

    /// Switches to another plugin, with its own nonce, as the server asks.
    fn switch(&mut self, request: &[u8]) -> Result<Vec<u8>, MysqlFault> {
        if request.is_empty() {
            return Err(MysqlFault::Login(
                "the account's password is stored in the format of before MySQL 4.1, which dbdyno does not speak; \
                 set the password again"
                    .to_owned(),
            ));
        }
        let mut reader = MysqlReader(request);
        self.plugin = AuthPlugin::from_bytes(reader.until_nul()).into_owned();
        if matches!(self.plugin, AuthPlugin::Ed25519 | AuthPlugin::Parsec) {
            return self.signer.first_answer(&self.plugin, self.password, reader.0);
        }
        let nonce = reader.0.get(..NONCE);
        match (&self.plugin, nonce) {
            (_, Some(nonce)) => self.nonce.copy_from_slice(nonce),
            (AuthPlugin::MysqlNativePassword | AuthPlugin::CachingSha2Password, None)
            | (AuthPlugin::Sha256Password, None) => {
                return Err(MysqlFault::Malformed("an authentication switch with a short nonce"));
            }
            _ => {}
        }
        self.first_answer()
    }

    /// Continues within the plugin: its cache knew the hash, it wants the password itself, or it
    /// sends the key.
    fn more(&mut self, data: &[u8]) -> Result<Option<Vec<u8>>, MysqlFault> {
        match (&self.plugin, data) {
            (AuthPlugin::CachingSha2Password, [3]) => Ok(None),
            (AuthPlugin::CachingSha2Password, [4]) if self.channel.is_encrypted || self.channel.is_local => {
                Ok(Some(self.plain()))
            }
            (AuthPlugin::CachingSha2Password, [4]) => self.encrypted(KEY_WANTED_BY_CACHING_SHA2).map(Some),
            (AuthPlugin::CachingSha2Password | AuthPlugin::Sha256Password, [b'-', ..]) if self.awaits_key => {
                self.awaits_key = false;
                rsa::encrypt(self.password, &self.nonce, data).map(Some)
            }
            (AuthPlugin::Parsec, salt) => self.signer.signature(self.password, salt).map(Some),
            _ => Err(MysqlFault::Malformed("an unknown request of the authentication plugin")),
        }
    }
}

fn no_key() -> MysqlFault {
    MysqlFault::Login(
        "the server asks for the password itself, which goes to no server over TCP without TLS; set tls = { mode = \
         \"verify\" }, name the server's key with options.server_public_key = \"FILE\", or set options.allow_public_key_retrieval = true, with \
         which a server that poses as this one gets the password"
            .to_owned(),
    )
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
