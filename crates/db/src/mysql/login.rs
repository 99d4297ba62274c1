//! Opens a connection and logs in: the server's greeting, the client's answer, and whatever the
//! authentication plugin asks after that.
//!
//! `caching_sha2_password` and `sha256_password` hand the password itself to the server. It is sent
//! as plaintext inside TLS. `caching_sha2_password` also sends it as plaintext over a unix socket,
//! as the protocol says. Otherwise it is encrypted with the server's public key. Over TCP that key
//! must be known, or the user must accept any key, because whoever poses as the server sends a key
//! too.
//!
//! MariaDB's `client_ed25519` and `parsec` sign the server's nonce and never send the password.

use dbdyno_model::ColumnDefinitions;
use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, HandshakePacket, HandshakeResponse};
use mysql_common::proto::{MyDeserialize, MySerialize};

use super::auth::Signer;
use super::fault::MysqlFault;
use super::wire::{Form, MysqlReader, MysqlWire};
use super::{LoginOptions, ServerKey, auth, wire};
use crate::error::server_text;
use crate::options::Channel;
use crate::product::version_numbers;
use crate::stream::{ByteStream, Stream};

/// The capabilities that this client requests. Others are left out on purpose: one text must not
/// hold several statements, and LOAD DATA LOCAL INFILE is allowed only where the options ask for
/// it.
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

/// Highest number of packets that a server may send after the client's first answer. The longest
/// regular login takes five.
const LONGEST_LOGIN: usize = 16;

/// The byte that asks for the server's RSA key, in `caching_sha2_password` and in
/// `sha256_password`.
const KEY_WANTED_BY_CACHING_SHA2: u8 = 2;
const KEY_WANTED_BY_SHA256: u8 = 1;

/// What the server reports at login about itself, and what both sides agreed on.
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

/// Appends the request for TLS. It is the beginning, up to the user, of the answer that will follow
/// inside TLS.
fn put_tls_request(out: &mut Vec<u8>, greeting: &Greeting, options: &LoginOptions) -> Result<(), MysqlFault> {
    const LENGTH: usize = 32;
    let mut whole = Vec::with_capacity(256);
    let mut login = Login::new(greeting, options, Channel::new(options, true));
    put_response(&mut whole, &mut login, greeting, options)?;
    out.extend_from_slice(&whole[..LENGTH.min(whole.len())]);
    whole.fill(0);
    Ok(())
}

/// Appends the client's answer to the greeting.
fn put_response(
    out: &mut Vec<u8>,
    login: &mut Login<'_>,
    greeting: &Greeting,
    options: &LoginOptions,
) -> Result<(), MysqlFault> {
    let mut capabilities = wanted(greeting, options);
    capabilities.set(CapabilityFlags::CLIENT_SSL, login.channel.is_encrypted);
    // Without this flag the server refuses LOAD DATA LOCAL INFILE. Most servers accept the flag
    // even if their greeting did not offer it.
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

/// Returns the capabilities that this client requests and the server has. Where the options do not
/// say, session tracking and results without EOF packets are requested as by the product's own
/// client library. libmysqlclient requests both since 5.7 (`CLIENT_CAPABILITIES` in its
/// `client_settings.h`). MariaDB Connector/C requests only session tracking (`mariadb_com.h`).
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

/// Returns the MariaDB capabilities that this client requests.
fn extended(greeting: &Greeting, options: &LoginOptions) -> MariadbCapabilities {
    match options.connection_settings.column_definitions {
        ColumnDefinitions::Once => greeting.extended & MariadbCapabilities::MARIADB_CLIENT_CACHE_METADATA,
        ColumnDefinitions::Always => MariadbCapabilities::empty(),
    }
}

/// The state of a login: the current plugin, its nonce, and the protection of the channel.
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

    /// Builds the current plugin's first answer.
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
                "the server wants the password in plaintext, which dbdyno sends only over a unix socket or over required TLS (tls mode require or verify); use one of these, or use an account with another authentication plugin"
                    .to_owned(),
            )),
            other => Err(MysqlFault::Login(format!(
                "the account uses the authentication plugin {}, which dbdyno does not support; use an account with \
                 mysql_native_password, caching_sha2_password, client_ed25519 or parsec",
                server_text(other.as_bytes())
            ))),
        }
    }

    /// Returns the password, encrypted with the known key. Where any key is accepted, this returns
    /// `request` instead, which asks for the server's key.
    fn encrypted(&mut self, request: u8) -> Result<Vec<u8>, MysqlFault> {
        match self.server_key {
            ServerKey::Known(pem) => auth::encrypt(self.password, &self.nonce, pem),
            ServerKey::Retrieved => {
                self.awaits_key = true;
                Ok(vec![request])
            }
            ServerKey::Unknown => Err(no_key()),
        }
    }

    /// Returns the password with a final NUL.
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
                0x00 => return wire::ok(payload).map(|_| ()),
                0xff => return Err(wire::server_error(payload)),
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
                "the account's password is stored in the format used before MySQL 4.1, which dbdyno does not support; \
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

    /// Answers a further message of the plugin: its cache knew the hash, it wants the password
    /// itself, or it sends the key.
    fn more(&mut self, data: &[u8]) -> Result<Option<Vec<u8>>, MysqlFault> {
        match (&self.plugin, data) {
            (AuthPlugin::CachingSha2Password, [3]) => Ok(None),
            (AuthPlugin::CachingSha2Password, [4]) if self.channel.is_encrypted || self.channel.is_local => {
                Ok(Some(self.plain()))
            }
            (AuthPlugin::CachingSha2Password, [4]) => self.encrypted(KEY_WANTED_BY_CACHING_SHA2).map(Some),
            (AuthPlugin::CachingSha2Password | AuthPlugin::Sha256Password, [b'-', ..]) if self.awaits_key => {
                self.awaits_key = false;
                auth::encrypt(self.password, &self.nonce, data).map(Some)
            }
            (AuthPlugin::Parsec, salt) => self.signer.signature(self.password, salt).map(Some),
            _ => Err(MysqlFault::Malformed("an unknown request of the authentication plugin")),
        }
    }
}

fn no_key() -> MysqlFault {
    MysqlFault::Login(
        "the server asks for the password itself, which dbdyno never sends over TCP without TLS; set tls = { mode = \
         \"verify\" }, name the server's key with options.server_public_key = \"FILE\", or set options.allow_public_key_retrieval = true, with \
         which a server that poses as this one gets the password"
            .to_owned(),
    )
}

/// Returns the connection to log in on, inside TLS where the options ask for it, and how it is
/// protected.
pub(super) async fn secured(
    mut wire: MysqlWire<Stream>,
    greeting: &Greeting,
    options: &LoginOptions,
) -> Result<(MysqlWire<Stream>, Channel), MysqlFault> {
    let Some(tls) = options.wanted_tls() else { return Ok((wire, Channel::new(options, false))) };
    if !greeting.capabilities.contains(CapabilityFlags::CLIENT_SSL) {
        if tls.is_required() {
            return Err(MysqlFault::Tls(
                "the server does not offer TLS, which the plan requires; give it certificates (ssl_ca, ssl_cert, ssl_key in its \
                 option file), or leave tls out"
                    .to_owned(),
            ));
        }
        return Ok((wire, Channel::new(options, false)));
    }
    put_tls_request(wire.message(), greeting, options)?;
    wire.reply().await?;
    let (stream, sequence) = wire.into_stream()?;
    let stream = tls.secure(stream, &options.address).await?;
    Ok((MysqlWire::resumed(stream, sequence), Channel::new(options, true)))
}

/// Bytes in a nonce, for every authentication plugin that this client supports.
pub(super) const NONCE: usize = 20;

/// MariaDB before 11 puts this before its version, so that old replicas take it for a version that
/// they know.
const MARIADB_PREFIX: &str = "5.5.5-";

/// What a server says about itself when a client connects.
#[derive(Debug, Clone)]
pub(super) struct Greeting {
    /// The version as the server writes it, without MariaDB's prefix: `10.11.19-MariaDB-log`.
    pub(super) version: String,
    pub(super) is_mariadb: bool,
    pub(super) connection_id: u32,
    pub(super) nonce: [u8; NONCE],
    pub(super) capabilities: CapabilityFlags,
    /// MariaDB's own capabilities, from 10.2 on.
    pub(super) extended: MariadbCapabilities,
    pub(super) plugin: AuthPlugin<'static>,
}

impl Greeting {
    /// Reads a greeting, or the error that is sent in its place when there are too many connections
    /// or the host is blocked.
    pub(super) fn parse(payload: &[u8]) -> Result<Self, MysqlFault> {
        match payload.first() {
            Some(0xff) => return Err(wire::server_error(payload)),
            Some(10) => {}
            _ => return Err(MysqlFault::Malformed("not the greeting of a MySQL server; check the address")),
        }
        check_nonce_length(payload)?;
        let greeting = HandshakePacket::deserialize((), &mut ParseBuf(payload))
            .map_err(|_| MysqlFault::Malformed("the greeting ends too early"))?;
        let capabilities = greeting.capabilities();
        if !capabilities
            .contains(CapabilityFlags::CLIENT_PROTOCOL_41 | CapabilityFlags::CLIENT_SECURE_CONNECTION)
        {
            return Err(MysqlFault::Malformed("a server from before MySQL 4.1"));
        }
        let mut nonce = [0; NONCE];
        let second = greeting.scramble_2_ref().unwrap_or_default();
        if second.len() < NONCE - 8 {
            return Err(MysqlFault::Malformed("the greeting's nonce is too short"));
        }
        nonce[..8].copy_from_slice(greeting.scramble_1_ref());
        nonce[8..].copy_from_slice(&second[..NONCE - 8]);
        let reported = server_text(greeting.server_version_ref());
        let version = reported.strip_prefix(MARIADB_PREFIX).unwrap_or(&reported).to_owned();
        Ok(Self {
            is_mariadb: version.len() < reported.len() || version.contains("MariaDB"),
            version,
            connection_id: greeting.connection_id(),
            nonce,
            capabilities,
            extended: mariadb_extension(&greeting),
            plugin: greeting.auth_plugin().map_or(AuthPlugin::MysqlNativePassword, AuthPlugin::into_owned),
        })
    }

    /// Returns the version's first three numbers. A number that is missing or too large is 0.
    pub(super) fn numbers(&self) -> (u16, u16, u16) {
        let [major, minor, patch] =
            version_numbers(&self.version).map(|number| u16::try_from(number).unwrap_or(0));
        (major, minor, patch)
    }
}

/// Reads MariaDB's own capabilities, which are in bytes that the codec calls reserved. They do not
/// count where the server says by `CLIENT_LONG_PASSWORD` that it is MySQL.
fn mariadb_extension(greeting: &HandshakePacket<'_>) -> MariadbCapabilities {
    if greeting.capabilities().contains(CapabilityFlags::CLIENT_LONG_PASSWORD) {
        return MariadbCapabilities::empty();
    }
    greeting.mariadb_ext_capabilities()
}

/// Refuses a nonce longer than 127 bytes. The codec reads its length as a signed byte and would
/// overflow. No server sends one.
fn check_nonce_length(payload: &[u8]) -> Result<(), MysqlFault> {
    let mut reader = wire::MysqlReader(payload);
    reader.u8()?;
    reader.until_nul();
    reader.take(20)?; // connection id, first part of the nonce, filler, capabilities, collation, status
    if reader.u8()? > 127 { Err(MysqlFault::Malformed("the greeting's nonce is too long")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A greeting as `version` would send it, with `plugin` at its end.
    fn bytes(version: &str, plugin: &[u8]) -> Vec<u8> {
        let mut payload = vec![10];
        payload.extend_from_slice(version.as_bytes());
        payload.extend_from_slice(b"\0\x07\0\0\0abcdefgh\0\xff\xf7\x08\x02\0\x0f\x80\x15");
        payload.extend_from_slice(&[0; 10]);
        payload.extend_from_slice(b"ijklmnopqrst\0");
        payload.extend_from_slice(plugin);
        payload
    }

    #[test]
    fn products_and_versions_are_distinguished() {
        let check = |text: &str, version: &str, is_mariadb, numbers| {
            let greeting = Greeting::parse(&bytes(text, b"mysql_native_password\0")).expect(text);
            assert_eq!(greeting.version, version);
            assert_eq!(greeting.is_mariadb, is_mariadb);
            assert_eq!(greeting.numbers(), numbers);
            assert_eq!(greeting.connection_id, 7);
            assert_eq!(&greeting.nonce, b"abcdefghijklmnopqrst");
        };
        check("5.5.5-10.11.19-MariaDB-log", "10.11.19-MariaDB-log", true, (10, 11, 19));
        check("11.8.6-MariaDB", "11.8.6-MariaDB", true, (11, 8, 6));
        check("8.0.31", "8.0.31", false, (8, 0, 31));
        check("5.6.24-enterprise", "5.6.24-enterprise", false, (5, 6, 24));
        check("99999.1", "99999.1", false, (0, 1, 0));
    }

    #[test]
    fn the_plugin_name_may_lack_its_nul_as_in_mysql_5_5_9() {
        let greeting = Greeting::parse(&bytes("5.5.9", b"mysql_native_password")).expect("a greeting");
        assert_eq!(greeting.plugin, AuthPlugin::MysqlNativePassword);
    }

    #[test]
    fn greetings_cut_anywhere_and_hostile_lengths_are_errors() {
        let whole = bytes("8.0.31", b"caching_sha2_password\0");
        let needed = whole.len() - b"caching_sha2_password\0".len();
        for end in 0..needed {
            assert!(Greeting::parse(&whole[..end]).is_err(), "{end}");
        }
        let mut hostile = whole.clone();
        hostile[1 + 7 + 20] = 0x80;
        assert!(matches!(Greeting::parse(&hostile), Err(MysqlFault::Malformed(_))));
    }

    #[test]
    fn an_error_in_place_of_a_greeting_is_reported() {
        let fault = Greeting::parse(b"\xff\x10\x04Too many connections").expect_err("an error packet");
        assert_eq!(fault.class(), crate::Class::Refused);
        insta::assert_snapshot!(fault, @"server said: Too many connections");
    }
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod login_tests;

#[cfg(test)]
#[path = "secure_tests.rs"]
mod secure_tests;
