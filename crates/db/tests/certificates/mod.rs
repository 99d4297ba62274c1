//! A certificate authority and its certificates, made when a test runs.

use std::path::PathBuf;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, date_time_ymd,
};

/// An authority that signs certificates, with a folder for the files.
pub(crate) struct Authority {
    pub(crate) folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM files.
pub(crate) struct Files {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Authority {
    /// Makes a new authority. Each call makes a different authority, even with the same name.
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"))
            .expect("a certificate of an authority");
        let folder = tempfile::Builder::new().prefix("dbdyno-").tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("a file for the authority");
        Self { folder, issuer }
    }

    /// The authority's own certificate.
    pub(crate) fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Signs a certificate for `host`. Its files get the name `name`.
    pub(crate) fn signed(&self, name: &str, host: &str, is_expired: bool) -> Files {
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a host name");
        params.distinguished_name = named(name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        if is_expired {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        let pair = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&pair, &self.issuer).expect("a certificate");
        let [cert, key] = ["pem", "key"].map(|ending| self.folder.path().join(format!("{name}.{ending}")));
        std::fs::write(&cert, certificate.pem()).expect("a file for the certificate");
        std::fs::write(&key, pair.serialize_pem()).expect("a file for the key");
        Files { cert, key }
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
