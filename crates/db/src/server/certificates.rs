//! TLS certificates for servers that dbdyno starts: one certificate authority per run, the server
//! and client certificates that it signs, and their files.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::{Secret, TlsPem};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair,
};

use crate::server::Error;

/// Names under which a client may reach dbdyno's own servers: `localhost` over the unix socket,
/// `127.0.0.1` over TCP.
const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];

/// One authority, and the certificates that it has signed for a server and for the client. Every
/// product gets ECDSA keys on P-256, so that handshakes cost the same. The certificates are kept in
/// memory. A server gets them as files in its runtime directory, which are removed with that
/// directory. Making a set takes less than a millisecond. The authority's own key is dropped at
/// once.
#[derive(Debug, Clone)]
pub struct Certificates {
    server: TlsPem,
    client: TlsPem,
}

/// The certificate files that a server's options name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificateFiles {
    pub(crate) authority: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificates {
    /// Makes certificates for a server on this machine. The client's certificate is for the
    /// database user `user`.
    pub fn new(user: &str) -> Result<Self, Error> {
        Self::for_server_at(&HOSTS, user)
    }

    /// Makes certificates for a server that clients reach under these names or addresses.
    pub fn for_server_at(hosts: &[&str], user: &str) -> Result<Self, Error> {
        make(hosts, user).map_err(|error| Error::Certificates { why: error.to_string() })
    }

    /// The client's part: the authority to trust, and its own certificate for a server that asks
    /// for one.
    pub fn for_client(&self) -> TlsPem {
        self.client.clone()
    }

    /// The server's part: the authority to trust, its own certificate and that certificate's key.
    pub fn for_server(&self) -> TlsPem {
        self.server.clone()
    }

    /// Writes the server's part into the new folder `folder`. Only the files' owner may read them.
    pub(crate) fn write(&self, folder: &Path) -> Result<CertificateFiles, Error> {
        let cannot = |path: &Path| Error::io("cannot write", path.to_path_buf());
        fs::create_dir_all(folder).map_err(cannot(folder))?;
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            let opened = fs::File::options().create_new(true).write(true).mode(0o600).open(&path);
            opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(cannot(&path))?;
            Ok(path)
        };
        Ok(CertificateFiles {
            authority: file("ca.pem", &self.server.authorities)?,
            certificate: file("server.pem", &self.server.certificate)?,
            key: file("server.key", self.server.key.reveal())?,
        })
    }
}

fn make(hosts: &[&str], user: &str) -> Result<Certificates, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = named("dbdyno, for one run");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let signed = |name: &str, hosts: &[&str], purpose| {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name = named(name);
        params.extended_key_usages = vec![purpose];
        let pair = KeyPair::generate()?;
        let certificate = params.signed_by(&pair, &issuer)?.pem();
        let key = Secret::new(pair.serialize_pem());
        Ok::<_, rcgen::Error>(TlsPem { authorities: issuer.pem(), certificate, key })
    };
    Ok(Certificates {
        server: signed("server", hosts, ExtendedKeyUsagePurpose::ServerAuth)?,
        client: signed(user, &[], ExtendedKeyUsagePurpose::ClientAuth)?,
    })
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use crate::Tls;
    use dbdyno_model::TlsMode;

    use super::*;

    #[test]
    fn the_client_trusts_the_server_and_only_the_owner_reads_the_servers_key() {
        let certificates = Certificates::new("postgres").unwrap();
        for mode in [TlsMode::Prefer, TlsMode::Require, TlsMode::Verify] {
            Tls::of_pem(mode, &certificates.for_client()).unwrap().unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let files = certificates.write(&folder.path().join("tls")).unwrap();
        assert_eq!(fs::metadata(&files.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&files.authority).unwrap().contains("BEGIN CERTIFICATE"));
        assert!(!format!("{certificates:?} {:?}", certificates.for_client()).contains("BEGIN"));
    }

    #[test]
    fn each_run_has_its_own_authority() {
        let [one, other] = ["postgres", "postgres"].map(|user| Certificates::new(user).unwrap());
        assert_ne!(one.client.authorities, other.client.authorities);
    }
}
