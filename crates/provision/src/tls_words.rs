//! What addresses and option files say of TLS, in our words, MySQL's and libpq's.

use std::path::PathBuf;

use dbdyno_drivers::{TlsMode, TlsSettings};

use crate::product::TlsWord;

/// libpq's name for the authorities that this machine trusts.
pub(crate) const SYSTEM_ROOTS: &str = "system";

/// What has been said so far.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) mode: Option<TlsMode>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    /// Someone spoke of TLS.
    pub(crate) anything: bool,
}

impl Said {
    pub(crate) fn take(&mut self, word: TlsWord, value: &str) -> Result<(), String> {
        self.anything = true;
        let file = || Some(PathBuf::from(value));
        match word {
            TlsWord::Mode => self.mode = Some(mode(value)?),
            TlsWord::Ca if value == SYSTEM_ROOTS => {}
            TlsWord::Ca => self.ca = file(),
            TlsWord::Cert => self.cert = file(),
            TlsWord::Key => self.key = file(),
        }
        Ok(())
    }

    /// `None` when nothing was said. Who asks for TLS without saying how is given proof of who
    /// answers.
    pub(crate) fn settings(self) -> Option<TlsSettings> {
        let Self { mode, ca, cert, key, anything } = self;
        anything.then(|| TlsSettings { mode: mode.unwrap_or_default(), ca, cert, key })
    }
}

/// A mode in our words, MySQL's or libpq's.
fn mode(value: &str) -> Result<TlsMode, String> {
    let word = value.to_ascii_lowercase().replace('-', "_");
    match word.as_str() {
        "disable" | "disabled" => Ok(TlsMode::Off),
        "preferred" => Ok(TlsMode::Prefer),
        "required" => Ok(TlsMode::Require),
        "verify_full" | "verify_identity" => Ok(TlsMode::Verify),
        "allow" => Err("allow begins in clear and lets the server decide; use tls=prefer, or tls=off".to_owned()),
        "verify_ca" => Err("verify-ca checks the authority and not the host, which dbdyno does not offer; use \
                            tls=verify with a certificate that names the host, or tls=require to check neither"
            .to_owned()),
        word => TlsMode::named(word).ok_or_else(|| "tls is off, prefer, require or verify".to_owned()),
    }
}
