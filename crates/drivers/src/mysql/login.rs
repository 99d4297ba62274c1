//! The conversation that opens a connection: greeting, answer, and whatever the authentication plugin still asks.
//!
//! `caching_sha2_password` and `sha256_password` hand the password itself to the server. Over a unix socket the former
//! sends it plainly, as the server allows; over TCP it is encrypted with the server's public key, which protects it
//! from listeners but not from somebody who poses as the server.

use mysql_common::auth::plugins::caching_sha2_password::scramble_sha256;
use mysql_common::auth::plugins::mysql_native_password::scramble_native;
use mysql_common::constants::CapabilityFlags;
use mysql_common::packets::{AuthPlugin, HandshakeResponse};
use mysql_common::proto::MySerialize;
use tokio::io::{AsyncRead, AsyncWrite};

use super::fault::Fault;
use super::greeting::{Greeting, NONCE};
use super::packet::{self, Reader};
use super::rsa;
use super::wire::Wire;
use super::{Address, Options};

/// What this client can do; the rest is left out on purpose: no local files, no several statements in one.
const WANTED: CapabilityFlags = CapabilityFlags::CLIENT_LONG_PASSWORD
    .union(CapabilityFlags::CLIENT_LONG_FLAG)
    .union(CapabilityFlags::CLIENT_PROTOCOL_41)
    .union(CapabilityFlags::CLIENT_TRANSACTIONS)
    .union(CapabilityFlags::CLIENT_SECURE_CONNECTION)
    .union(CapabilityFlags::CLIENT_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_PS_MULTI_RESULTS)
    .union(CapabilityFlags::CLIENT_DEPRECATE_EOF);

/// Largest message that is announced; the server's own `max_allowed_packet` is what limits.
const LARGEST_MESSAGE: u32 = 1 << 30;

/// Packets that a login may take after the first answer. The longest honest one takes five.
const LONGEST_LOGIN: usize = 16;

/// Asks `caching_sha2_password` and `sha256_password` for the server's RSA key.
const KEY_WANTED_BY_CACHING_SHA2: u8 = 2;
const KEY_WANTED_BY_SHA256: u8 = 1;

/// What a login agreed on.
#[derive(Debug, Clone)]
pub(super) struct Agreed {
    pub(super) version: String,
    pub(super) is_mariadb: bool,
    pub(super) connection_id: u32,
    pub(super) deprecate_eof: bool,
}

/// Logs in on a fresh connection.
pub(super) async fn login<S>(wire: &mut Wire<S>, options: &Options) -> Result<Agreed, Fault>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut payload = Vec::with_capacity(256);
    wire.read(&mut payload).await?;
    let greeting = Greeting::parse(&payload)?;
    let mut login = Login {
        password: options.password.reveal(),
        plain_allowed: matches!(options.address, Address::Socket(_)),
        plugin: spoken_or_native(&greeting.plugin),
        nonce: greeting.nonce,
    };
    let common = greeting.capabilities & WANTED;
    let offers_plugins = greeting.capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH);
    let response = HandshakeResponse::new(
        Some(login.first_answer()?),
        greeting.numbers(),
        Some(options.user.as_bytes()),
        options.database.as_deref().map(str::as_bytes),
        offers_plugins.then(|| login.plugin.clone()),
        common,
        None,
        LARGEST_MESSAGE,
    );
    response.serialize(wire.message());
    wire.reply().await?;
    login.converse(wire, &mut payload).await?;
    wire.wipe();
    Ok(Agreed {
        deprecate_eof: common.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF),
        version: greeting.version,
        is_mariadb: greeting.is_mariadb,
        connection_id: greeting.connection_id,
    })
}

/// The plugin that the first answer is made for. One that is not spoken here may only be the server's default; the server
/// then asks for the account's own.
fn spoken_or_native(plugin: &AuthPlugin<'static>) -> AuthPlugin<'static> {
    match plugin {
        AuthPlugin::CachingSha2Password | AuthPlugin::Sha256Password => plugin.clone(),
        _ => AuthPlugin::MysqlNativePassword,
    }
}

/// One login under way.
struct Login<'a> {
    password: &'a str,
    /// The transport may carry the password itself: nobody but the server's machine sees it.
    plain_allowed: bool,
    plugin: AuthPlugin<'static>,
    nonce: [u8; NONCE],
}

impl Login<'_> {
    /// The plugin's first word.
    fn first_answer(&self) -> Result<Vec<u8>, Fault> {
        let password = self.password.as_bytes();
        match &self.plugin {
            AuthPlugin::MysqlNativePassword => {
                Ok(scramble_native(&self.nonce, password).map_or(Vec::new(), |hash| hash.to_vec()))
            }
            // A lone NUL says that there is no password.
            AuthPlugin::CachingSha2Password => {
                Ok(scramble_sha256(&self.nonce, password).map_or(vec![0], |hash| hash.to_vec()))
            }
            AuthPlugin::Sha256Password if password.is_empty() => Ok(vec![0]),
            AuthPlugin::Sha256Password => Ok(vec![KEY_WANTED_BY_SHA256]),
            AuthPlugin::MysqlClearPassword if self.plain_allowed => Ok(self.plain()),
            AuthPlugin::MysqlClearPassword => Err(Fault::Login(
                "the server wants the password in clear text, which is not sent over TCP; use its unix socket, or \
                 an account with another authentication plugin"
                    .to_owned(),
            )),
            other => Err(Fault::Login(format!(
                "the account uses the authentication plugin {}, which dbdyno does not speak; use an account with \
                 mysql_native_password or caching_sha2_password",
                String::from_utf8_lossy(other.as_bytes())
            ))),
        }
    }

    /// The password with the NUL that ends it.
    fn plain(&self) -> Vec<u8> {
        let mut bytes = self.password.as_bytes().to_vec();
        bytes.push(0);
        bytes
    }

    /// Answers the server until it says yes or no.
    async fn converse<S>(&mut self, wire: &mut Wire<S>, payload: &mut Vec<u8>) -> Result<(), Fault>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        for _ in 0..LONGEST_LOGIN {
            wire.read(payload).await?;
            let answer = match payload[0] {
                0x00 => return packet::ok(payload).map(|_| ()),
                0xff => return Err(packet::server_error(payload)),
                0xfe => Some(self.switch(&payload[1..])?),
                0x01 => self.more(&payload[1..])?,
                _ => return Err(Fault::Malformed("an unknown packet during login")),
            };
            if let Some(answer) = answer {
                wire.message().extend_from_slice(&answer);
                wire.reply().await?;
            }
        }
        Err(Fault::Malformed("a login without end"))
    }

    /// The server wants another plugin, with a nonce of its own.
    fn switch(&mut self, request: &[u8]) -> Result<Vec<u8>, Fault> {
        if request.is_empty() {
            return Err(Fault::Login(
                "the account's password is stored in the format of before MySQL 4.1, which dbdyno does not speak; \
                 set the password anew"
                    .to_owned(),
            ));
        }
        let mut reader = Reader(request);
        self.plugin = AuthPlugin::from_bytes(reader.until_nul()).into_owned();
        let nonce = reader.0.get(..NONCE);
        match (&self.plugin, nonce) {
            (_, Some(nonce)) => self.nonce.copy_from_slice(nonce),
            (
                AuthPlugin::MysqlNativePassword
                | AuthPlugin::CachingSha2Password
                | AuthPlugin::Sha256Password,
                None,
            ) => {
                return Err(Fault::Malformed("an authentication switch with a short nonce"));
            }
            _ => {}
        }
        self.first_answer()
    }

    /// The plugin goes on: its cache knew the hash, wants the password itself, or here is the key.
    fn more(&mut self, data: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
        match (&self.plugin, data) {
            (AuthPlugin::CachingSha2Password, [3]) => Ok(None),
            (AuthPlugin::CachingSha2Password, [4]) if self.plain_allowed => Ok(Some(self.plain())),
            (AuthPlugin::CachingSha2Password, [4]) => Ok(Some(vec![KEY_WANTED_BY_CACHING_SHA2])),
            (AuthPlugin::CachingSha2Password | AuthPlugin::Sha256Password, [b'-', ..]) => {
                rsa::encrypt(self.password, &self.nonce, data).map(Some)
            }
            _ => Err(Fault::Malformed("an unknown request of the authentication plugin")),
        }
    }
}

#[cfg(test)]
#[path = "login_tests.rs"]
mod tests;
