//! A TLS server inside the test. Its certificate is valid or has exactly one flaw.

use std::sync::Arc;

use dbdyno_model::{TlsMode, TlsSettings};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::Tls;

#[path = "../../../tests/certificates/mod.rs"]
mod certificates;

pub(crate) use certificates::{Authority, Files};

/// A flaw in a server's TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    Expired,
    OtherHost,
    UnknownAuthority,
    NoTls,
}

/// A listening server, and the authority that a client must trust.
pub(crate) struct TlsTestServer {
    pub(crate) listener: TcpListener,
    pub(crate) port: u16,
    pub(crate) acceptor: TlsAcceptor,
    /// The authority that clients trust.
    pub(crate) authority: Authority,
}

impl TlsTestServer {
    /// A server for `localhost` with this flaw. With `wants_client` it requests a client
    /// certificate from the same authority.
    pub(crate) async fn new(flaw: Flaw, wants_client: bool) -> Self {
        let (authority, stranger) = (Authority::new("ours"), Authority::new("theirs"));
        let signer = if flaw == Flaw::UnknownAuthority { &stranger } else { &authority };
        let host = if flaw == Flaw::OtherHost { "elsewhere.example" } else { "localhost" };
        let files = signer.signed("server", host, flaw == Flaw::Expired);
        let chain: Vec<_> = CertificateDer::pem_file_iter(&files.cert)
            .expect("a certificate")
            .collect::<Result<_, _>>()
            .expect("PEM");
        let key = PrivateKeyDer::from_pem_file(&files.key).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(authority.ca()).expect("the authority"))
            .expect("an authority");
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = if wants_client {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        } else {
            builder.with_no_client_auth()
        };
        let config = builder.with_single_cert(chain, key).expect("a server's configuration");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        Self { listener, port, acceptor: TlsAcceptor::from(Arc::new(config)), authority }
    }

    /// The TLS settings of a client with this mode.
    pub(crate) fn tls(&self, mode: TlsMode) -> Option<Tls> {
        let ca = (mode == TlsMode::Verify).then(|| self.authority.ca());
        Tls::load(TlsSettings { mode, ca, ..TlsSettings::default() }).expect("good settings")
    }

    /// Does the same as [`Self::tls`] with a client certificate.
    pub(crate) fn tls_with(&self, mode: TlsMode, files: &Files) -> Option<Tls> {
        let ca = (mode == TlsMode::Verify).then(|| self.authority.ca());
        let (cert, key) = (Some(files.cert.clone()), Some(files.key.clone()));
        Tls::load(TlsSettings { mode, ca, cert, key }).expect("good settings")
    }
}

/// The expected result for each mode with each server: encrypted or not, or part of the refusal's
/// text.
pub(crate) const OUTCOMES: &[(Flaw, [Result<bool, &str>; 4])] = &[
    (Flaw::None, [Ok(false), Ok(true), Ok(true), Ok(true)]),
    (Flaw::Expired, [Ok(false), Ok(true), Ok(true), Err("it has expired")]),
    (Flaw::OtherHost, [Ok(false), Ok(true), Ok(true), Err("it is not for localhost")]),
    (Flaw::UnknownAuthority, [Ok(false), Ok(true), Ok(true), Err("no trusted authority has signed it")]),
    (Flaw::NoTls, [Ok(false), Ok(false), Err("does not offer TLS"), Err("does not offer TLS")]),
];
