//! MariaDB's authentication plugins that sign a nonce: `client_ed25519`, and `parsec` from MariaDB
//! 11.6 on. They never send the password.

use mysql_common::auth::plugins::client_ed25519::{ClientEd25519, NONCE_BYTES};
use mysql_common::auth::plugins::parsec::Parsec;
use mysql_common::auth::plugins::{ChallengeResponsePlugin, Context};
use mysql_common::packets::AuthPlugin;

use super::fault::MysqlFault;

/// The signing side of a login.
#[derive(Debug, Default)]
pub(super) struct Signer {
    parsec: Parsec,
}

impl Signer {
    /// The answer when the server switches to `plugin`. Its nonce has 32 bytes, sometimes followed
    /// by a NUL. `client_ed25519` signs at once. `parsec` first asks for the salt from which its
    /// key is made.
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
        // This is PBKDF2 with SHA-512 and 2048 rounds, and the public key from its output. It was
        // computed with Python and OpenSSL.
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
