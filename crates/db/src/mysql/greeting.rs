//! Reads a server's first packet: its version, its capabilities, and the nonce for the password.

use mysql_common::constants::{CapabilityFlags, MariadbCapabilities};
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, HandshakePacket};
use mysql_common::proto::MyDeserialize;

use super::fault::MysqlFault;
use super::packet;
use crate::excerpt::server_text;
use crate::product::version_numbers;

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
            Some(0xff) => return Err(packet::server_error(payload)),
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
            extended: extended(&greeting),
            plugin: greeting.auth_plugin().map_or(AuthPlugin::MysqlNativePassword, AuthPlugin::into_owned),
        })
    }

    /// The version's first three numbers. A number that cannot be read is 0.
    pub(super) fn numbers(&self) -> (u16, u16, u16) {
        let [major, minor, patch] =
            version_numbers(&self.version).map(|number| u16::try_from(number).unwrap_or(0));
        (major, minor, patch)
    }
}

/// MariaDB's own capabilities. They are in bytes that the codec calls reserved, and count only
/// where the server does not claim to be MySQL.
fn extended(greeting: &HandshakePacket<'_>) -> MariadbCapabilities {
    if greeting.capabilities().contains(CapabilityFlags::CLIENT_LONG_PASSWORD) {
        return MariadbCapabilities::empty();
    }
    greeting.mariadb_ext_capabilities()
}

/// Refuses a nonce longer than 127 bytes. The codec reads its length as a signed byte and would
/// overflow. No server sends one.
fn check_nonce_length(payload: &[u8]) -> Result<(), MysqlFault> {
    let mut reader = packet::MysqlReader(payload);
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
