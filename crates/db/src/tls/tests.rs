//! Tests of wrong TLS settings and files.

use super::testing::Authority;
use super::*;
use crate::options::Channel;
use crate::options::LoginOptions;

fn reported(settings: TlsSettings, authority: &Authority) -> String {
    let folder = authority.folder.path().display().to_string();
    Tls::load(settings).expect_err("wrong settings").to_string().replace(&folder, "FOLDER")
}

#[test]
fn missing_empty_and_unusable_files_are_named() {
    let authority = Authority::new("ours");
    let files = authority.signed("client", "client.example", false);
    let other = authority.signed("other", "other.example", false);
    let path = |name: &str| Some(authority.folder.path().join(name));
    std::fs::write(authority.folder.path().join("empty"), "").expect("a file");
    let verify = TlsSettings::default();
    let with = |cert, key| TlsSettings { mode: TlsMode::Require, ca: None, cert, key };
    let wrong = [
        TlsSettings { ca: path("absent"), ..verify.clone() },
        TlsSettings { ca: path("empty"), ..verify },
        TlsSettings { mode: TlsMode::Require, ca: Some(authority.ca()), ..TlsSettings::default() },
        with(Some(files.cert.clone()), None),
        with(None, Some(files.key.clone())),
        with(Some(files.cert.clone()), Some(files.cert.clone())),
        with(Some(files.cert), Some(other.key)),
    ];
    insta::assert_snapshot!(wrong.map(|settings| reported(settings, &authority)).join("\n"), @r"
    TLS: cannot read certificates from FOLDER/absent: I/O error: No such file or directory (os error 2)
    TLS: cannot read certificates from FOLDER/empty: it holds none in PEM form
    TLS: the CA file FOLDER/ca.pem would not be used, as only the mode verify checks certificates; use verify, or leave it out
    TLS: the client certificate FOLDER/client.pem needs its key file too
    TLS: the client key FOLDER/client.key needs its certificate file too
    TLS: no key could be read from FOLDER/client.pem: no items found
    TLS: the client certificate FOLDER/client.pem cannot be used: keys may not be consistent: KeyMismatch
    ");
}

#[test]
fn off_gives_no_tls_and_the_default_mode_is_verify() {
    assert_eq!(Tls::load(TlsSettings { mode: TlsMode::Off, ..TlsSettings::default() }), Ok(None));
    assert_eq!(TlsMode::default(), TlsMode::Verify);
    for mode in TlsMode::ALL {
        assert_eq!(TlsMode::named(mode.name()), Some(mode));
    }
}

#[test]
fn passwords_are_sent_only_over_sockets_and_required_tls() {
    let tls = |mode| Tls::load(TlsSettings { mode, ..TlsSettings::default() }).expect("settings");
    let may = |options: &LoginOptions, encrypted| Channel::new(options, encrypted).may_carry_passwords;
    let (socket, tcp) = (LoginOptions::socket("/s", "u"), LoginOptions::tcp("h", 1, "u"));
    assert!(may(&socket, false) && !may(&tcp, false));
    assert!(may(&tcp.clone().with_tls(tls(TlsMode::Require)), true));
    assert!(!may(&tcp.with_tls(tls(TlsMode::Prefer)), true), "an attacker in between may remove it");
}
