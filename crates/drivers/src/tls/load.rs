//! Reads the files that TLS needs, once for all connections, and says what is wrong with them.

use std::path::Path;
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::trust::Anyone;
use super::{Loaded, Tls, TlsMode, TlsSettings};
use crate::connections::ConnectionLog;
use crate::{Class, DbError};

impl Tls {
    /// Reads the files of `settings`. `None` when they say that nothing is to be encrypted.
    ///
    /// # Errors
    /// [`Class::Fatal`] when a file cannot be read or used, or when the settings contradict each other.
    pub fn load(settings: TlsSettings) -> Result<Option<Self>, DbError> {
        if settings.mode == TlsMode::Off {
            return Ok(None);
        }
        if let (Some(ca), false) = (&settings.ca, settings.mode == TlsMode::Verify) {
            return Err(wrong(format!(
                "the CA file {} would not be used, as only the mode verify checks certificates; say verify, or leave it out",
                ca.display()
            )));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?;
        let trusting = match settings.mode {
            TlsMode::Verify => versions.with_webpki_verifier(verifier(settings.ca.as_deref(), &provider)?),
            _ => versions.dangerous().with_custom_certificate_verifier(Arc::new(Anyone::new(&provider))),
        };
        let mut config = match (&settings.cert, &settings.key) {
            (None, None) => trusting.with_no_client_auth(),
            (Some(cert), Some(key)) => {
                let chain = certificates(cert)?;
                let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| {
                    wrong(format!("no key could be read from {}: {error}", key.display()))
                })?;
                trusting.with_client_auth_cert(chain, secret).map_err(|error| {
                    wrong(format!("the client certificate {} cannot be used: {error}", cert.display()))
                })?
            }
            (Some(cert), None) => {
                return Err(wrong(format!(
                    "the client certificate {} needs its key file too",
                    cert.display()
                )));
            }
            (None, Some(key)) => {
                return Err(wrong(format!(
                    "the client key {} needs its certificate file too",
                    key.display()
                )));
            }
        };
        config.resumption = Resumption::disabled();
        Ok(Some(Self(Arc::new(Loaded { settings, config: Arc::new(config), log: ConnectionLog::default() }))))
    }
}

fn wrong(why: String) -> DbError {
    DbError::new(Class::Fatal, "", format!("TLS: {why}"))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, DbError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        wrong(format!("cannot read certificates from {}: {error}", path.display()))
    };
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| unreadable(&error))?.collect();
    match found {
        Ok(found) if found.is_empty() => Err(unreadable(&"it holds none in PEM form")),
        Ok(found) => Ok(found),
        Err(error) => Err(unreadable(&error)),
    }
}

/// Trusts the authorities of `ca`, or those that this machine trusts.
fn verifier(ca: Option<&Path>, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, DbError> {
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
                    "this machine has no list of trusted authorities; name a CA file, or say require"
                        .to_owned(),
                ));
            }
        }
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| wrong(error.to_string()))
}
