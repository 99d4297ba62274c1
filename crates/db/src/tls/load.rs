//! Reads the files that TLS needs, once for all connections, and reports what is wrong with them.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use dbdyno_model::{TlsMode, TlsSettings};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::trust::Anyone;
use super::{Loaded, Tls, TlsPem};
use crate::connections::ConnectionLog;
use crate::{Class, DbError, Result};

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
            (Some(cert), None) => return Err(alone("certificate", cert, "key")),
            (None, Some(key)) => return Err(alone("key", key, "certificate")),
        };
        Self::assembled(settings, roots, identity).map(Some)
    }

    /// Does the same from memory. The result is `None` for [`TlsMode::Off`].
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

    /// Builds the client. Without `roots` it verifies no server, so any server may answer.
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
            None => versions.dangerous().with_custom_certificate_verifier(Arc::new(Anyone::new(&provider))),
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

fn alone(what: &str, path: &Path, other: &str) -> DbError {
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

/// The authorities in `ca`, or those that this machine trusts.
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
