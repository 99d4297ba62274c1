//! Switches a connection to TLS after the server's greeting, where the options ask for it.

use mysql_common::constants::CapabilityFlags;

use super::LoginOptions;
use super::fault::MysqlFault;
use super::greeting::Greeting;
use super::login::put_tls_request;
use super::wire::MysqlWire;
use crate::options::Channel;
use crate::stream::Stream;

/// Returns the connection to log in on, and how it is protected.
pub(super) async fn secured(
    mut wire: MysqlWire<Stream>,
    greeting: &Greeting,
    options: &LoginOptions,
) -> Result<(MysqlWire<Stream>, Channel), MysqlFault> {
    let Some(tls) = options.wanted_tls() else { return Ok((wire, Channel::new(options, false))) };
    if !greeting.capabilities.contains(CapabilityFlags::CLIENT_SSL) {
        if tls.is_required() {
            return Err(MysqlFault::Tls(
                "the server offers no TLS, which was demanded; give it certificates (ssl_ca, ssl_cert, ssl_key in its \
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

#[cfg(test)]
#[path = "secure_tests.rs"]
mod tests;
