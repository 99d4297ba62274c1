//! Encrypts a password with a server's RSA key, after checking that the key is usable.

use std::path::Path;

use mysql_common::crypto::der::{PubKeyFileType, parse_pub_key, pem_to_der};
use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};

use super::fault::MysqlFault;
use super::greeting::NONCE;
use crate::der::element;
use crate::options::ServerKey;

#[cfg(test)]
pub(super) use super::testing::{TEST_KEY, WEAK_KEY};

/// Accepted key sizes in bits. MySQL makes 2048-bit keys. A shorter key can be broken, and one
/// beyond 16384 bits would only cost the client time.
const BITS: std::ops::RangeInclusive<usize> = 2048..=16384;

/// Bytes that OAEP with SHA-1 adds to the plaintext.
const OAEP: usize = 42;

impl ServerKey {
    /// Loads the key in the PEM file `path`.
    pub fn load(path: &Path) -> Result<Self, String> {
        let wrong = |why: String| format!("server_public_key {}: {why}", path.display());
        let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
        checked(&pem).map_err(wrong)?;
        Ok(Self::Known(pem.into()))
    }
}

/// Mixes the password and its NUL with `nonce`, and encrypts them with the key in `pem`.
pub(super) fn encrypt(password: &str, nonce: &[u8; NONCE], pem: &[u8]) -> Result<Vec<u8>, MysqlFault> {
    let wrong =
        |why| MysqlFault::Login(format!("the password cannot be encrypted with the server's RSA key: {why}"));
    let (der, kind, octets) = checked(pem).map_err(wrong)?;
    let mut secret = password.as_bytes().to_vec();
    secret.push(0);
    // When the modulus' top byte is 1, the codec counts one octet less.
    if secret.len() + OAEP + 1 > octets {
        return Err(wrong(format!("the password is too long for a key of {octets} bytes")));
    }
    for (byte, mask) in secret.iter_mut().zip(nonce.iter().cycle()) {
        *byte ^= mask;
    }
    let (modulus, exponent) =
        parse_pub_key(&der, kind).map_err(|_| MysqlFault::Malformed("its RSA key cannot be read"))?;
    PublicKey::new(modulus, exponent)
        .encrypt_block(&secret, Pkcs1OaepPadding::new(GetRandom))
        .map_err(|error| wrong(error.to_string()))
}

/// Returns the key in `pem` as the codec reads it, with its modulus size in bytes. The error says
/// what is wrong with it.
fn checked(pem: &[u8]) -> Result<(Vec<u8>, PubKeyFileType, usize), String> {
    let (der, kind) = pem_to_der(pem).map_err(|_| "it is no public key in PEM".to_owned())?;
    match modulus_bits(&der, kind) {
        None => Err("it is no usable RSA public key".to_owned()),
        Some(bits) if !BITS.contains(&bits) => {
            Err(format!("it has {bits} bits, where dbdyno wants {} to {}", BITS.start(), BITS.end()))
        }
        Some(bits) => Ok((der, kind, bits.div_ceil(8))),
    }
}

/// Length of the modulus in bits. It is `None` for a key that the codec would fail on, because the
/// codec trusts every length inside.
fn modulus_bits(der: &[u8], kind: PubKeyFileType) -> Option<usize> {
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
    let top = modulus.get(zeros)?.leading_zeros() as usize;
    (1..=8).contains(&exponent.len()).then_some((modulus.len() - zeros) * 8 - top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_key_encrypts_to_its_own_length() {
        let sealed = encrypt("secret", &[7; NONCE], TEST_KEY.as_bytes()).expect("a usable key");
        assert_eq!(sealed.len(), 256);
    }

    #[test]
    fn a_password_that_does_not_fit_is_an_error() {
        let long = "x".repeat(300);
        let fault = encrypt(&long, &[7; NONCE], TEST_KEY.as_bytes()).expect_err("more than the key can hold");
        insta::assert_snapshot!(fault, @"the password cannot be encrypted with the server's RSA key: the password is too long for a key of 256 bytes");
    }

    #[test]
    fn a_short_key_encrypts_nothing() {
        let fault = encrypt("secret", &[7; NONCE], WEAK_KEY.as_bytes()).expect_err("a key of 512 bits");
        insta::assert_snapshot!(fault, @"the password cannot be encrypted with the server's RSA key: it has 512 bits, where dbdyno wants 2048 to 16384");
    }

    #[test]
    fn a_file_holds_a_usable_key_or_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let load = |text: &str| {
            std::fs::write(file.path(), text).expect("written");
            ServerKey::load(file.path())
                .map_err(|why| why.replace(&file.path().display().to_string(), "FILE"))
        };
        assert_eq!(load(TEST_KEY), Ok(ServerKey::Known(TEST_KEY.as_bytes().into())));
        insta::assert_snapshot!(load(WEAK_KEY).expect_err("too short"), @"server_public_key FILE: it has 512 bits, where dbdyno wants 2048 to 16384");
        insta::assert_snapshot!(load("hunter2").expect_err("no key"), @"server_public_key FILE: it is no public key in PEM");
        let none = ServerKey::load(Path::new("/nonesuch/key.pem")).expect_err("no file");
        insta::assert_snapshot!(none, @"server_public_key /nonesuch/key.pem: No such file or directory (os error 2)");
    }

    #[test]
    fn no_damage_to_a_key_causes_a_panic() {
        let (der, kind) = pem_to_der(TEST_KEY).expect("the test's key");
        for end in 0..der.len() {
            assert_eq!(modulus_bits(&der[..end], kind), None, "{end}");
        }
        for at in 0..der.len() {
            for value in [0, 1, 0x7f, 0x80, 0x84, 0xff] {
                let mut broken = der.clone();
                broken[at] = value;
                if modulus_bits(&broken, kind).is_some() {
                    parse_pub_key(&broken, kind).expect("what was checked can be read");
                }
            }
        }
        assert!(matches!(encrypt("a", &[0; NONCE], b"no key"), Err(MysqlFault::Login(_))));
    }
}
