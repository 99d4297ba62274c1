//! Checks the address of a server that others run, above all that no password is in it.

use dbdyno_products::FamilyFacts;

use crate::variant_options::either;

/// What is wrong with an address, as the end of a sentence "... has an address that". It never
/// quotes the address.
pub(crate) fn address_problem(address: &str) -> Option<String> {
    if holds_password(address) {
        let files: Vec<&str> = FamilyFacts::of_servers().map(|family| family.password_file).collect();
        return Some(format!(
            "holds a password: take it out and set password_env = \"NAME\" (an environment variable) or \
             option_file = \"PATH\" ({})",
            files.join(", or ")
        ));
    }
    let Some((_, rest)) = FamilyFacts::of_address(address) else { return Some(wrong_form()) };
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = location.split_once('/').unwrap_or((location, ""));
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // A socket is on this machine, which needs no name.
    let names_socket = query.split('&').any(|pair| pair.starts_with("socket="));
    if (host_and_port.is_empty() && !names_socket)
        || authority.starts_with('@')
        || host_and_port.starts_with(':')
    {
        return Some(wrong_form());
    }
    if database.is_empty() || database.contains('/') {
        return Some("names no database: it must end in /DATABASE".to_owned());
    }
    // In brackets is an IPv6 address, whose colons are no ports.
    let after_host = host_and_port.rsplit_once(']').map_or(host_and_port, |(_, port)| port);
    match after_host.rsplit_once(':') {
        Some((_, port)) if !port.parse::<u16>().is_ok_and(|port| port > 0) => {
            Some("has a port that is not a number from 1 to 65535".to_owned())
        }
        _ => None,
    }
}

fn wrong_form() -> String {
    let schemes: Vec<&str> = FamilyFacts::of_servers().map(|family| family.schemes[0]).collect();
    let (first, others) = schemes.split_first().unwrap_or((&"", &[]));
    format!(
        "is not of the form {first}user@host:port/database or {first}user@localhost/database?socket=/path, or the \
         same with {}",
        either(others)
    )
}

/// A colon in front of an `@` (also where the password itself holds `/` or `?`), or a query key for
/// a password.
fn holds_password(address: &str) -> bool {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let (before_query, query) = rest.split_once('?').unwrap_or((rest, ""));
    let is_secret = |pair: &str| {
        let key = pair.split('=').next().unwrap_or("").to_lowercase();
        matches!(key.as_str(), "password" | "pass" | "passwd" | "pwd" | "sslpassword")
    };
    if query.split('&').any(is_secret) {
        return true;
    }
    if let Some((user, _)) = before_query.rsplit_once('@') {
        return user.contains(':');
    }
    // `user:se?cret@host`: no `@` before the `?`. A true port is all digits.
    let authority = before_query.split('/').next().unwrap_or("");
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_bracketed = authority.starts_with('[');
    let colon = authority.split_once(':').filter(|_| !is_bracketed);
    colon.is_some_and(|(_, port)| !is_port(port)) && rest.contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_addresses_pass() {
        for address in [
            "mysql://root@127.0.0.1:3306/bench",
            "mysql://bench@localhost/bench?socket=/run/mysqld/mysqld.sock",
            "mysql://localhost/bench?socket=/tmp/a@b:c.sock",
            "mysql:///bench?socket=/tmp/a.sock",
            "mysql://root@/bench?socket=/tmp/a.sock",
            "mysql://db.example:3307/bench",
            "mariadb://db.example:3307/bench",
            "mysql://root@[::1]:3306/bench",
            "mysql://root@[::1]/bench",
            "postgres://bench@db.example:5433/bench",
            "postgresql://bench@localhost/bench?socket=/run/postgresql",
        ] {
            assert_eq!(address_problem(address), None, "{address}");
        }
    }

    #[test]
    fn a_password_is_found_wherever_it_hides_and_never_shown() {
        for address in [
            "mysql://root:hunter2@localhost/bench",
            "mysql://root:@localhost/bench",
            "mysql://root:hunt/er2@localhost/bench",
            "mysql://root:hunt?er2@localhost/bench",
            "mysql://root:hunt@er2@localhost/bench",
            "postgres://root:hunter2@localhost/bench",
            "root:hunter2@localhost",
            "mysql://root@localhost/bench?password=hunter2",
            "mysql://root@localhost/bench?socket=/s&PWD=hunter2",
        ] {
            let message = address_problem(address).expect("must be refused");
            assert!(message.starts_with("holds a password"), "{address}: {message}");
            assert!(!message.contains("hunt"), "{message}");
        }
    }

    #[test]
    fn other_mistakes_are_named() {
        let check = |address| address_problem(address).expect("must be refused");
        assert!(check("oracle://root@localhost/bench").starts_with("is not of the form"));
        assert!(check("postgres://root@localhost").starts_with("names no database"));
        assert!(check("mysql://").starts_with("is not of the form"));
        assert!(check("mysql://@localhost/bench").starts_with("is not of the form"));
        assert!(check("mysql://root@localhost").starts_with("names no database"));
        assert!(check("mysql://root@localhost:70000/bench").starts_with("has a port"));
        assert!(check("mysql://root@localhost:abc/bench").starts_with("has a port"));
    }
}
