//! Encrypts a password with the RSA key that a server sends, after checking that the key can be used.

use mysql_common::crypto::der::{PubKeyFileType, parse_pub_key, pem_to_der};
use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};

use super::fault::Fault;
use super::greeting::NONCE;
use crate::der::element;

/// Bytes of a modulus that are taken: MySQL makes 2048 bits; more than 16384 would be an attack on our time.
const MODULUS: std::ops::RangeInclusive<usize> = 64..=2048;

/// Bytes that OAEP with SHA-1 adds to what it encrypts.
const OAEP: usize = 42;

/// The password with its NUL, mixed with `nonce`, encrypted with the key in `pem`.
pub(super) fn encrypt(password: &str, nonce: &[u8; NONCE], pem: &[u8]) -> Result<Vec<u8>, Fault> {
    let (der, kind) = pem_to_der(pem).map_err(|_| Fault::Malformed("its RSA key is not PEM"))?;
    let octets =
        modulus_octets(&der, kind).ok_or(Fault::Malformed("its RSA key is not a usable public key"))?;
    let mut secret = password.as_bytes().to_vec();
    secret.push(0);
    // A modulus whose top byte is 1 has one octet less for the codec.
    if secret.len() + OAEP + 1 > octets {
        return Err(Fault::Login(format!(
            "the password is too long for the server's RSA key of {octets} bytes"
        )));
    }
    for (byte, mask) in secret.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= mask;
    }
    let (modulus, exponent) =
        parse_pub_key(&der, kind).map_err(|_| Fault::Malformed("its RSA key cannot be read"))?;
    PublicKey::new(modulus, exponent)
        .encrypt_block(&secret, Pkcs1OaepPadding::new(GetRandom))
        .map_err(|error| Fault::Login(format!("the password could not be encrypted: {error}")))
}

/// Length of the modulus, `None` for a key that the codec would stumble over: it trusts every length inside.
fn modulus_octets(der: &[u8], kind: PubKeyFileType) -> Option<usize> {
    let (fields, _) = element(der, 0x30)?;
    let fields = match kind {
        PubKeyFileType::Pkcs1 => fields,
        PubKeyFileType::Pkcs8 => {
            let (_, key) = element(fields, 0x30)?;
            let (bits, _) = element(key, 0x03)?;
            let (0, key) = bits.split_first()? else { return None };
            element(key, 0x30)?.0
        }
    };
    let (modulus, rest) = element(fields, 0x02)?;
    let (exponent, _) = element(rest, 0x02)?;
    let zeros = modulus.iter().take_while(|&&byte| byte == 0).count();
    let octets = modulus.len() - zeros;
    (MODULUS.contains(&octets) && (1..=8).contains(&exponent.len())).then_some(octets)
}

/// A public key of 1024 bits, PKCS#8.
#[cfg(test)]
pub(super) const TEST_KEY: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDqdJV3LgSRpVTL9Us5iCGS+kGt
vGBoAT4BGPBux+2UKxDrAbp3lvFKXVBglnPRnrHZbOSw9psTaYpXAZMGA1cQmFQM
CIriCjG3deaJ0MOQ3n10dkrFuy+jJj0A5mAnxjGT8RleBB6VspUwJ/A8KajR/FwZ
hnqHljNjJDayZAT4sQIDAQAB
-----END PUBLIC KEY-----
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_key_encrypts_to_its_own_length() {
        let sealed = encrypt("secret", &[7; NONCE], TEST_KEY.as_bytes()).expect("a usable key");
        assert_eq!(sealed.len(), 128);
    }

    #[test]
    fn a_password_that_does_not_fit_is_an_error() {
        let long = "x".repeat(100);
        let fault = encrypt(&long, &[7; NONCE], TEST_KEY.as_bytes()).expect_err("more than the key can hold");
        insta::assert_snapshot!(fault, @"the password is too long for the server's RSA key of 128 bytes");
    }

    #[test]
    fn no_damage_to_a_key_causes_a_panic() {
        let (der, kind) = pem_to_der(TEST_KEY).expect("the test's key");
        for end in 0..der.len() {
            assert_eq!(modulus_octets(&der[..end], kind), None, "{end}");
        }
        for at in 0..der.len() {
            for value in [0, 1, 0x7f, 0x80, 0x84, 0xff] {
                let mut broken = der.clone();
                broken[at] = value;
                if modulus_octets(&broken, kind).is_some() {
                    parse_pub_key(&broken, kind).expect("what was checked can be read");
                }
            }
        }
        assert!(matches!(encrypt("a", &[0; NONCE], b"no key"), Err(Fault::Malformed(_))));
    }
}
