//! Proves the password with the plugins that need keys. `caching_sha2_password` and
//! `sha256_password` encrypt it with the server's RSA key. MariaDB's `client_ed25519` and, from
//! MariaDB 11.6 on, `parsec` sign a nonce and never send the password.

use std::path::Path;

use mysql_common::auth::plugins::client_ed25519::{ClientEd25519, NONCE_BYTES};
use mysql_common::auth::plugins::parsec::Parsec;
use mysql_common::auth::plugins::{ChallengeResponsePlugin, Context};
use mysql_common::crypto::der::{PubKeyFileType, parse_pub_key, pem_to_der};
use mysql_common::crypto::rsa::{GetRandom, Pkcs1OaepPadding, PublicKey};
use mysql_common::packets::AuthPlugin;

use super::fault::MysqlFault;
use super::login::NONCE;
#[cfg(test)]
pub(super) use super::testing::TEST_KEY;
#[cfg(test)]
pub(super) use super::testing::WEAK_KEY;
use crate::options::ServerKey;
use crate::tls::der_element;

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

/// XORs the password and its NUL with `nonce`, and encrypts the result with the key in `pem`.
pub(super) fn encrypt(password: &str, nonce: &[u8; NONCE], pem: &[u8]) -> Result<Vec<u8>, MysqlFault> {
    let wrong =
        |why| MysqlFault::Login(format!("the password cannot be encrypted with the server's RSA key: {why}"));
    let (der, kind, octets) = checked(pem).map_err(wrong)?;
    let mut secret = password.as_bytes().to_vec();
    secret.push(0);
    // The 1 is added because the codec counts one octet less when the modulus's top byte is 1.
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

/// Returns the length of the modulus in bits. It is `None` for a key on which the codec would
/// panic, because the codec trusts every length inside.
fn modulus_bits(der: &[u8], kind: PubKeyFileType) -> Option<usize> {
    let (fields, _) = der_element(der, 0x30)?;
    let fields = match kind {
        PubKeyFileType::Pkcs1 => fields,
        PubKeyFileType::Pkcs8 => {
            let (_, key) = der_element(fields, 0x30)?;
            let (bits, _) = der_element(key, 0x03)?;
            let (0, key) = bits.split_first()? else { return None };
            der_element(key, 0x30)?.0
        }
    };
    let (modulus, rest) = der_element(fields, 0x02)?;
    let (exponent, _) = der_element(rest, 0x02)?;
    let zeros = modulus.iter().take_while(|&&byte| byte == 0).count();
    let top = modulus.get(zeros)?.leading_zeros() as usize;
    (1..=8).contains(&exponent.len()).then_some((modulus.len() - zeros) * 8 - top)
}

/// The signing side of a login.
#[derive(Debug, Default)]
pub(super) struct Signer {
    parsec: Parsec,
}

impl Signer {
    /// Builds the answer when the server switches to `plugin`. The nonce has 32 bytes, sometimes
    /// followed by a NUL. `client_ed25519` signs at once. `parsec` first asks for the salt from
    /// which its key is made.
    pub(super) fn first_answer(
        &mut self,
        plugin: &AuthPlugin<'_>,
        password: &str,
        nonce: &[u8],
    ) -> Result<Vec<u8>, MysqlFault> {
        let nonce = nonce
            .get(..NONCE_BYTES)
            .ok_or(MysqlFault::Malformed("an authentication switch with a short nonce"))?;
        match plugin {
            AuthPlugin::Parsec => answer(&mut self.parsec, password, nonce),
            _ => answer(&mut ClientEd25519::default(), password, nonce),
        }
    }

    /// Signs for `parsec` with the key derived from password and `salt`.
    pub(super) fn signature(&mut self, password: &str, salt: &[u8]) -> Result<Vec<u8>, MysqlFault> {
        answer(&mut self.parsec, password, salt)
    }
}

/// Runs one step of `plugin` on the server's `challenge`.
fn answer<P: ChallengeResponsePlugin>(
    plugin: &mut P,
    password: &str,
    challenge: &[u8],
) -> Result<Vec<u8>, MysqlFault> {
    let response = plugin
        .run(Password(password), challenge)
        .map_err(|_| MysqlFault::Malformed("an unknown request of the authentication plugin"))?;
    Ok(response.data().unwrap_or_default().to_vec())
}

/// The login data for the codec. Plugins that sign need only the password.
struct Password<'a>(&'a str);

impl Context for Password<'_> {
    fn pass(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn is_ipc_transport(&self) -> bool {
        false
    }

    fn is_tls_transport(&self) -> bool {
        false
    }

    fn scramble(&self) -> &[u8] {
        &[]
    }

    fn server_key_pem(&self) -> Option<&[u8]> {
        None
    }
}

#[cfg(test)]
mod tests {
    use rustls::crypto::ring::default_provider;

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

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn client_ed25519_signs_the_nonce_with_the_password_as_its_key() {
        // With a password of 32 bytes this is plain Ed25519. The expected value was computed with
        // OpenSSL.
        let nonce: Vec<u8> = (0..32).chain([0]).collect();
        let signature = Signer::default()
            .first_answer(&AuthPlugin::Ed25519, "a password of 32 bytes, exactly.", &nonce)
            .expect("a signature");
        assert_eq!(
            hex(&signature),
            "fe8727a6a5c33ca09e6d4bf8519db3cac0606314d30fa0c5a76f4784f679bf759dbdb67cae83f201de0ea7b2d13acd7ec8ce5143b7e7\
             bd794aa1c65a0f1e7708"
        );
    }

    #[test]
    fn parsec_signs_both_nonces_with_a_key_made_of_password_and_salt() {
        let nonce = [7; 32];
        let mut signer = Signer::default();
        assert_eq!(signer.first_answer(&AuthPlugin::Parsec, "secret", &nonce).expect("a request"), b"");
        let answer = signer.signature("secret", b"P\x01salt of 18 bytes..").expect("a signature");
        let (own_nonce, signature) = answer.split_at(32);
        // The expected public key comes from PBKDF2 with SHA-512 and 2048 rounds. It was computed
        // with Python and OpenSSL.
        let public: Vec<u8> = (0..64)
            .step_by(2)
            .map(|at| &"7187bfae8cd5374bada082ce87b5f91f7bcf71d355d5fef564daecd0b6cfc577"[at..at + 2])
            .map(|digits| u8::from_str_radix(digits, 16).expect("digits"))
            .collect();
        let message = [&nonce[..], own_nonce].concat();
        let verified = |message: &[u8]| {
            let algorithms = default_provider().signature_verification_algorithms.all;
            algorithms.iter().any(|each| each.verify_signature(&public, message, signature).is_ok())
        };
        assert!(verified(&message) && !verified(&nonce));
    }

    #[test]
    fn nonces_and_salts_of_another_length_are_refused() {
        let mut signer = Signer::default();
        assert!(signer.first_answer(&AuthPlugin::Ed25519, "p", &[1; 31]).is_err());
        assert!(signer.signature("p", b"P\x01too early, no nonce.").is_err());
        signer.first_answer(&AuthPlugin::Parsec, "p", &[1; 32]).expect("a request");
        for salt in [&b""[..], b"P\x01short", b"Q\x01salt of 18 bytes..", b"P\x7fsalt of 18 bytes.."] {
            assert!(signer.signature("p", salt).is_err(), "{salt:?}");
        }
    }
}
