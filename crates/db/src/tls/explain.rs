//! Turns rustls' errors about a failed handshake into sentences that say what to try.

use std::io;

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

/// Why TLS failed. The result is `None` when the connection broke instead. `host` is the name that
/// the certificate had to be for.
pub(crate) fn explain(error: &io::Error, host: &str) -> Option<String> {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return Some(
            "the server ended the connection during the TLS handshake; it may speak nothing newer than TLS 1.1, or want \
             a client certificate: see its log"
                .to_owned(),
        );
    }
    error.get_ref()?.downcast_ref::<Error>().map(|error| sentence(error, host))
}

fn sentence(error: &Error, host: &str) -> String {
    match error {
        Error::InvalidCertificate(why) => {
            format!("the server's certificate was not accepted: {}", certificate(why, host))
        }
        Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13)
        | Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "the server speaks neither TLS 1.2 nor 1.3, and nothing older is spoken here; leave tls out, or use a \
             server built with a newer TLS library"
                .to_owned()
        }
        Error::InvalidMessage(_) => {
            "what the server sent is no TLS: neither 1.2 nor 1.3, or bytes that came before the handshake"
                .to_owned()
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server wants a client certificate: name its files cert and key".to_owned()
        }
        Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError),
        ) => format!("the server did not accept the client's certificate ({alert:?})"),
        other => format!("the TLS handshake failed: {other}"),
    }
}

fn certificate(why: &CertificateError, host: &str) -> String {
    match why {
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => format!(
            "it is not for {host} (only names and addresses in its subjectAltName count); use one that is, or the mode \
             require, which checks none"
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired; renew it, or use the mode require, which checks none".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet: compare the clocks of both machines".to_owned()
        }
        CertificateError::BadSignature => {
            "it is not signed by the authority that it names; another authority of the same name is in the CA file"
                .to_owned()
        }
        CertificateError::UnknownIssuer => {
            "no trusted authority has signed it; name its authority's file as ca, or use the mode require, \
             which checks none".to_owned()
        }
        other => format!("{other}; use another one, or the mode require, which checks none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_breaks_is_not_blamed_on_tls() {
        assert_eq!(explain(&io::ErrorKind::ConnectionReset.into(), "h"), None);
    }

    #[test]
    fn an_old_server_is_known_by_what_it_lacks() {
        let error = io::Error::other(Error::AlertReceived(AlertDescription::ProtocolVersion));
        insta::assert_snapshot!(explain(&error, "h").expect("of TLS"), @"the server speaks neither TLS 1.2 nor 1.3, and nothing older is spoken here; leave tls out, or use a server built with a newer TLS library");
    }
}
