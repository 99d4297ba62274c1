//! Binds a login to its TLS connection with the channel binding `tls-server-end-point` (RFC 5929,
//! section 4).

use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::der::element;

type Hash = fn(&[u8]) -> Vec<u8>;

/// Signature algorithms by the bytes of their object identifiers, with each one's hash. SHA-256
/// replaces MD5 and SHA-1, as the RFC says. An algorithm without one fixed hash (Ed25519,
/// RSASSA-PSS) is missing, because the RFC leaves it open and servers differ.
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

/// The hash of the server's certificate (DER) that both sides put into their proofs. It is `None`
/// when the RFC defines none for it.
pub(crate) fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let oid = signature_algorithm(certificate)?;
    let (_, hash) = ALGORITHMS.iter().find(|(known, _)| *known == oid)?;
    Some(hash(certificate))
}

/// The object identifier in `Certificate { tbsCertificate, signatureAlgorithm { algorithm, .. },
/// signature }`.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    let (fields, _) = element(certificate, SEQUENCE)?;
    let (_, after) = element(fields, SEQUENCE)?;
    let (algorithm, _) = element(after, SEQUENCE)?;
    Some(element(algorithm, OBJECT_IDENTIFIER)?.0)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

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
    fn what_is_no_certificate_has_no_hash() {
        let certificate = signed_with(&PKCS_ECDSA_P256_SHA256);
        // A truncated certificate gives no hash.
        for end in 0..certificate.len() {
            assert_eq!(server_end_point(&certificate[..end]), None, "{end}");
        }
    }
}
