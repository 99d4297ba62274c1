//! TLS options of addresses and option files, in dbdyno's own words, MySQL's and libpq's.

use std::path::PathBuf;

use dbdyno_model::{TlsMode, TlsSettings};

use crate::FamilyFacts;

/// libpq's name for the authorities that this machine trusts.
pub(crate) const SYSTEM_ROOTS: &str = "system";

/// A TLS option of an address or an option file.
#[derive(Debug, Clone, Copy)]
pub enum TlsOption {
    Mode,
    Ca,
    Cert,
    Key,
}

/// Words of an address that are known for servers of every family.
const OURS: &[(&str, TlsOption)] = &[
    ("tls", TlsOption::Mode),
    ("tls_ca", TlsOption::Ca),
    ("tls_cert", TlsOption::Cert),
    ("tls_key", TlsOption::Key),
];

/// What `name` in an address of a server of `family` says of TLS; `None` of another option.
pub(crate) fn option_of(family: &FamilyFacts, name: &str) -> Option<TlsOption> {
    OURS.iter().chain(family.tls_options).find(|(known, _)| *known == name).map(|(_, option)| *option)
}

/// The TLS options of one address or file, as far as they were read.
#[derive(Debug, Default)]
pub struct TlsOptions {
    pub mode: Option<TlsMode>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    /// There is an option about TLS, also one without a value to keep.
    pub is_given: bool,
}

impl TlsOptions {
    /// The value of an option as an address or an option file has it. The error says what to write
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

    /// `None` when no option was given. Who asks for TLS without saying how is given proof of who
    /// answers.
    pub fn settings(self) -> Option<TlsSettings> {
        let Self { mode, ca, cert, key, is_given } = self;
        is_given.then(|| TlsSettings { mode: mode.unwrap_or_default(), ca, cert, key })
    }
}

/// A mode in dbdyno's own words, MySQL's or libpq's.
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
