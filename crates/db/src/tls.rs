//! Encrypts connections with TLS. It loads the files in the settings once, performs the handshake
//! over a connected stream, explains why a handshake failed, and hashes the server's certificate
//! for channel binding.
//!
//! rustls supports only TLS 1.2 and 1.3. TLS sessions are not resumed. Every connection performs a
//! full handshake, so that the thousandth connection costs as much as the first.

#[cfg(test)]
#[path = "tls/tests/testing.rs"]
pub(crate) mod testing;

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

use dbdyno_model::{TlsMode, TlsSettings};
use dbdyno_products::Address;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, PeerIncompatible,
    RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256, Sha384, Sha512};
use tokio_rustls::TlsConnector;

use crate::connections::ConnectionLog;
use crate::options::Secret;
use crate::stream::Stream;
use crate::{Class, DbError, Result};

/// Certificates and a key in PEM, in memory instead of in the files that [`TlsSettings`] names.
#[derive(Clone)]
pub struct TlsPem {
    /// Certificates of the authorities that [`TlsMode::Verify`] trusts.
    pub authorities: String,
    /// The client's own certificate, for a server that requests one.
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
    /// Returns the requested settings.
    pub fn settings(&self) -> &TlsSettings {
        &self.0.settings
    }

    /// Returns the log of the encryption that connections with these settings have negotiated.
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

    /// Whether a connection to a server without TLS fails.
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

/// The client's certificate, and its name in messages.
struct ClientIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    name: String,
}

impl Tls {
    /// Reads the files in `settings`. The result is `None` when they switch TLS off.
    pub fn load(settings: TlsSettings) -> Result<Option<Self>> {
        if settings.mode == TlsMode::Off {
            return Ok(None);
        }
        if let (Some(ca), false) = (&settings.ca, settings.mode == TlsMode::Verify) {
            return Err(wrong(format!(
                "the CA file {} would not be used, as only the mode verify checks certificates; use verify, or leave it out",
                ca.display()
            )));
        }
        let roots = match settings.mode {
            TlsMode::Verify => Some(roots(settings.ca.as_deref())?),
            _ => None,
        };
        let identity = match (&settings.cert, &settings.key) {
            (None, None) => None,
            (Some(cert), Some(key)) => {
                let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                    wrong(format!("no key could be read from {}: {error}", key.display()))
                })?;
                Some(ClientIdentity {
                    chain: certificates(cert)?,
                    key: secret,
                    name: cert.display().to_string(),
                })
            }
            (Some(cert), None) => return Err(without_other("certificate", cert, "key")),
            (None, Some(key)) => return Err(without_other("key", key, "certificate")),
        };
        Self::assembled(settings, roots, identity).map(Some)
    }

    /// Does the same as [`Self::load`] with certificates and a key in memory. The result is `None`
    /// for [`TlsMode::Off`].
    pub fn of_pem(mode: TlsMode, pem: &TlsPem) -> Result<Option<Self>> {
        if mode == TlsMode::Off {
            return Ok(None);
        }
        let unusable = |error: pem::Error| wrong(format!("a certificate in memory cannot be used: {error}"));
        let parsed = |text: &str| -> Result<Vec<CertificateDer<'static>>> {
            CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<_, _>>().map_err(unusable)
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(parsed(&pem.authorities)?);
        let key = PrivateKeyDer::from_pem_slice(pem.key.reveal().as_bytes()).map_err(unusable)?;
        let identity = ClientIdentity { chain: parsed(&pem.certificate)?, key, name: "in memory".to_owned() };
        let settings = TlsSettings { mode, ..TlsSettings::default() };
        Self::assembled(settings, (mode == TlsMode::Verify).then_some(roots), Some(identity)).map(Some)
    }

    /// Builds the client's configuration. Without `roots` the client accepts any server's
    /// certificate.
    fn assembled(
        settings: TlsSettings,
        roots: Option<RootCertStore>,
        identity: Option<ClientIdentity>,
    ) -> Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(wrong)?;
        let trusting = match roots {
            Some(roots) => versions.with_webpki_verifier(verifier(roots, &provider)?),
            None => {
                versions.dangerous().with_custom_certificate_verifier(Arc::new(AnyServer::new(&provider)))
            }
        };
        let mut config = match identity {
            None => trusting.with_no_client_auth(),
            Some(ClientIdentity { chain, key, name }) => trusting
                .with_client_auth_cert(chain, key)
                .map_err(|error| wrong(format!("the client certificate {name} cannot be used: {error}")))?,
        };
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(Loaded { settings, config: Arc::new(config), log: ConnectionLog::default() })))
    }
}

fn wrong(why: impl Display) -> DbError {
    DbError::new(Class::Fatal, "", format!("TLS: {why}"))
}

fn without_other(what: &str, path: &Path, other: &str) -> DbError {
    wrong(format_args!("the client {what} {} needs its {other} file too", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let unreadable =
        |error: &dyn Display| wrong(format!("cannot read certificates from {}: {error}", path.display()));
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?.collect();
    match found {
        Ok(found) if found.is_empty() => Err(unreadable(&"it holds none in PEM form")),
        Ok(found) => Ok(found),
        Err(error) => Err(unreadable(&error)),
    }
}

/// Returns the authorities in `ca`, or those that this machine trusts.
fn roots(ca: Option<&Path>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| {
                    wrong(format!("a certificate in {} cannot be an authority: {error}", path.display()))
                })?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(wrong(
                    "this machine has no list of trusted authorities; name a CA file, or use the mode require",
                ));
            }
        }
    }
    Ok(roots)
}

fn verifier(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build().map_err(wrong)
}

/// A verifier that accepts every certificate. The server must still prove that it has the
/// certificate's key.
#[derive(Debug)]
struct AnyServer(WebPkiSupportedAlgorithms);

impl AnyServer {
    fn new(provider: &CryptoProvider) -> Self {
        Self(provider.signature_verification_algorithms)
    }
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _host: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// Says why TLS failed. The result is `None` when the connection broke instead. `host` is the name
/// that the certificate should have had.
pub(crate) fn explain(error: &io::Error, host: &str) -> Option<String> {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return Some(
            "the server ended the connection during the TLS handshake; it may speak nothing newer than TLS 1.1, or want \
             a client certificate: see its log"
                .to_owned(),
        );
    }
    error.get_ref()?.downcast_ref::<Error>().map(|error| explanation(error, host))
}

fn explanation(error: &Error, host: &str) -> String {
    match error {
        Error::InvalidCertificate(why) => {
            format!("the server's certificate was not accepted: {}", certificate_problem(why, host))
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

fn certificate_problem(why: &CertificateError, host: &str) -> String {
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

type Hash = fn(&[u8]) -> Vec<u8>;

/// Hashes of the signature algorithms, by the bytes of the algorithms' object identifiers. SHA-256
/// replaces MD5 and SHA-1, as RFC 5929 says. Algorithms without one fixed hash (Ed25519,
/// RSASSA-PSS) are not listed, because the RFC does not define their hash and servers differ.
const ALGORITHMS: &[(&[u8], Hash)] = &[
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04], SHA256), // md5WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05], SHA256), // sha1WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b], SHA256), // sha256WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c], SHA384), // sha384WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d], SHA512), // sha512WithRSAEncryption
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01], SHA256),             // ecdsa-with-SHA1
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02], SHA256),       // ecdsa-with-SHA256
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03], SHA384),       // ecdsa-with-SHA384
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04], SHA512),       // ecdsa-with-SHA512
];

const SHA256: Hash = |certificate| Sha256::digest(certificate).to_vec();
const SHA384: Hash = |certificate| Sha384::digest(certificate).to_vec();
const SHA512: Hash = |certificate| Sha512::digest(certificate).to_vec();

/// Returns the hash of the server's certificate (DER) for the channel binding
/// `tls-server-end-point`. Client and server both put it into their SCRAM proofs. The result is
/// `None` when RFC 5929 defines no hash for the certificate.
pub(crate) fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let oid = signature_algorithm(certificate)?;
    let (_, hash) = ALGORITHMS.iter().find(|(known, _)| *known == oid)?;
    Some(hash(certificate))
}

/// Returns the object identifier of the signature's algorithm. A certificate is
/// `Certificate { tbsCertificate, signatureAlgorithm { algorithm, .. }, signature }`.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    let (fields, _) = der_element(certificate, SEQUENCE)?;
    let (_, after) = der_element(fields, SEQUENCE)?;
    let (algorithm, _) = der_element(after, SEQUENCE)?;
    Some(der_element(algorithm, OBJECT_IDENTIFIER)?.0)
}

/// Returns the contents of the DER element with the type `tag` at the front of `der`, and the bytes
/// after it.
pub(crate) fn der_element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let (length, rest) = if short & 0x80 == 0 {
        (usize::from(short), rest)
    } else {
        let count = usize::from(short & 0x7f);
        if !(1..=4).contains(&count) || rest.len() < count {
            return None;
        }
        let (digits, rest) = rest.split_at(count);
        (digits.iter().fold(0, |value, &digit| value << 8 | usize::from(digit)), rest)
    };
    (found == tag && length <= rest.len()).then(|| rest.split_at(length))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    #[test]
    fn a_connection_that_breaks_is_not_blamed_on_tls() {
        assert_eq!(explain(&io::ErrorKind::ConnectionReset.into(), "h"), None);
    }

    #[test]
    fn a_server_that_refuses_tls_1_2_and_1_3_is_said_to_speak_neither() {
        let error = io::Error::other(Error::AlertReceived(AlertDescription::ProtocolVersion));
        insta::assert_snapshot!(explain(&error, "h").expect("of TLS"), @"the server speaks neither TLS 1.2 nor 1.3, and nothing older is spoken here; leave tls out, or use a server built with a newer TLS library");
    }

    fn signed_with(algorithm: &'static rcgen::SignatureAlgorithm) -> Vec<u8> {
        let key = KeyPair::generate_for(algorithm).expect("a key");
        let params = CertificateParams::new(vec!["h".to_owned()]).expect("a name");
        params.self_signed(&key).expect("a certificate").der().to_vec()
    }

    #[test]
    fn the_hash_is_the_one_that_the_certificate_was_signed_with() {
        let certificate = signed_with(&PKCS_ECDSA_P256_SHA256);
        assert_eq!(server_end_point(&certificate), Some(Sha256::digest(&certificate).to_vec()));
        let certificate = signed_with(&PKCS_ECDSA_P384_SHA384);
        assert_eq!(server_end_point(&certificate), Some(Sha384::digest(&certificate).to_vec()));
        assert_eq!(server_end_point(&signed_with(&PKCS_ED25519)), None);
    }

    #[test]
    fn a_truncated_certificate_has_no_hash() {
        let certificate = signed_with(&PKCS_ECDSA_P256_SHA256);
        for end in 0..certificate.len() {
            assert_eq!(server_end_point(&certificate[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_der_element_is_read_only_if_it_is_complete_and_of_the_expected_type() {
        assert_eq!(der_element(b"\x30\x02abrest", 0x30), Some((&b"ab"[..], &b"rest"[..])));
        let long = [&[0x30, 0x82, 0x01, 0x00][..], &[7; 256]].concat();
        assert_eq!(
            der_element(&long, 0x30).map(|(contents, rest)| (contents.len(), rest.len())),
            Some((256, 0))
        );
        for broken in [
            &b""[..],
            b"\x30",
            b"\x30\x03ab",
            b"\x31\x02ab",
            b"\x30\x80ab",
            b"\x30\x85\0\0\0\0\0",
            b"\x30\x84\xff\xff\xff\xffa",
        ] {
            assert_eq!(der_element(broken, 0x30), None, "{broken:?}");
        }
    }
}

#[cfg(test)]
#[path = "tls/tests.rs"]
mod tls_tests;
