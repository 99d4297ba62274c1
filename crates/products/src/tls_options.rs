//! Reads TLS options from addresses and option files, in dbdyno's, MySQL's and libpq's terms.

use std::path::PathBuf;

use dbdyno_model::{TlsMode, TlsSettings};

use crate::FamilyFacts;

/// libpq's name for the authorities that this machine trusts.
pub(crate) const SYSTEM_ROOTS: &str = "system";

/// A TLS option in an address or an option file.
#[derive(Debug, Clone, Copy)]
pub enum TlsOption {
    Mode,
    Ca,
    Cert,
    Key,
}

/// Names in addresses that work for every family's servers.
const OURS: &[(&str, TlsOption)] = &[
    ("tls", TlsOption::Mode),
    ("tls_ca", TlsOption::Ca),
    ("tls_cert", TlsOption::Cert),
    ("tls_key", TlsOption::Key),
];

/// The TLS option that `name` stands for in an address for a `family` server. The result is `None`
/// for any other option.
pub(crate) fn option_of(family: &FamilyFacts, name: &str) -> Option<TlsOption> {
    OURS.iter().chain(family.tls_options).find(|(known, _)| *known == name).map(|(_, option)| *option)
}

/// The TLS options from one address or file that have been read so far.
#[derive(Debug, Default)]
pub struct TlsOptions {
    pub mode: Option<TlsMode>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    /// Whether there is any TLS option, even one without a value to keep.
    pub is_given: bool,
}

impl TlsOptions {
    /// Takes an option's value from an address or an option file. The error says what to write
    /// instead.
    pub fn take(&mut self, option: TlsOption, value: &str) -> Result<(), String> {
        self.is_given = true;
        let file = || Some(PathBuf::from(value));
        match option {
            TlsOption::Mode => self.mode = Some(mode(value)?),
            TlsOption::Ca if value == SYSTEM_ROOTS => {}
            TlsOption::Ca => self.ca = file(),
            TlsOption::Cert => self.cert = file(),
            TlsOption::Key => self.key = file(),
        }
        Ok(())
    }

    /// The settings; `None` when no option was given. A user who asks for TLS without a mode gets
    /// verification, which proves who answers.
    pub fn settings(self) -> Option<TlsSettings> {
        let Self { mode, ca, cert, key, is_given } = self;
        is_given.then(|| TlsSettings { mode: mode.unwrap_or_default(), ca, cert, key })
    }
}

/// Reads a mode in dbdyno's, MySQL's or libpq's terms.
fn mode(value: &str) -> Result<TlsMode, String> {
    let word = value.to_ascii_lowercase().replace('-', "_");
    match word.as_str() {
        "disable" | "disabled" => Ok(TlsMode::Off),
        "preferred" => Ok(TlsMode::Prefer),
        "required" => Ok(TlsMode::Require),
        "verify_full" | "verify_identity" => Ok(TlsMode::Verify),
        "allow" => Err("allow begins in plaintext and lets the server decide; use tls=prefer, or tls=off".to_owned()),
        "verify_ca" => Err("verify-ca checks the authority and not the host, which dbdyno does not offer; use \
                            tls=verify with a certificate that names the host, or tls=require to check neither"
            .to_owned()),
        word => TlsMode::named(word).ok_or_else(|| "tls is off, prefer, require or verify".to_owned()),
    }
}
