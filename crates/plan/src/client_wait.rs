//! Decides how the load client waits for answers. A plan's own choice comes first; otherwise the
//! CPUs and the length of operations decide.

use dbdyno_model::{ClientWait, CpuList, Host};
use dbdyno_products::VariantKind;

use crate::Plan;

/// How load threads wait in a run, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitChoice {
    pub wait: ClientWait,
    pub reason: String,
}

/// Returns the plan's `client_wait`. Without this key, threads spin where the client has CPUs that
/// no server uses and operations are short, because a sleeping thread costs the server CPU for each
/// wake-up. Otherwise they sleep.
pub fn client_wait(plan: &Plan) -> WaitChoice {
    let host = &plan.host;
    if let Some(wait) = host.client_wait {
        return WaitChoice { wait, reason: "the plan says so (host.client_wait)".to_owned() };
    }
    let sleep = |reason: &str| WaitChoice { wait: ClientWait::Sleep, reason: reason.to_owned() };
    if plan.clients.is_some() {
        return sleep("threads of client hosts sleep (clients)");
    }
    let is_here = |kind: VariantKind| kind == VariantKind::Null || kind.is_embedded();
    if plan.variants.iter().all(|variant| is_here(VariantKind::of(variant))) {
        return sleep("the database runs in the load threads");
    }
    if plan.workload.iter().all(|(_, options)| options.needs().long_operations) {
        return sleep("operations take much longer than waking its threads");
    }
    match own_cpus(host) {
        Ok(cpus) => WaitChoice {
            wait: ClientWait::Spin,
            reason: format!("the client has {} to itself (host.client_cpus)", cpus.named()),
        },
        Err(reason) => sleep(&reason),
    }
}

/// Returns the CPUs that both server and client are given, if there are any.
pub(crate) fn shared_cpus(host: &Host) -> Option<CpuList> {
    let (server, client) = (host.server_cpus.as_ref()?, host.client_cpus.as_ref()?);
    let both: Vec<u32> = server.0.iter().copied().filter(|cpu| client.0.contains(cpu)).collect();
    (!both.is_empty()).then_some(CpuList(both))
}

/// Returns the client's CPUs if no server uses them and each load thread has one. Otherwise the
/// error says why this is not so.
fn own_cpus(host: &Host) -> Result<&CpuList, String> {
    let (Some(client), Some(_)) = (&host.client_cpus, &host.server_cpus) else {
        return Err(
            "client and server have no CPUs of their own (host.client_cpus, host.server_cpus)".to_owned()
        );
    };
    if let Some(both) = shared_cpus(host) {
        let both = both.named();
        return Err(format!("server and client share {both} (host.server_cpus, host.client_cpus)"));
    }
    enough_cpus(host, client)?;
    Ok(client)
}

fn enough_cpus(host: &Host, client: &CpuList) -> Result<(), String> {
    match host.client_threads {
        Some(threads) if threads as usize > client.0.len() => Err(format!(
            "{threads} load threads (host.client_threads) have only {} (host.client_cpus)",
            client.named()
        )),
        _ => Ok(()),
    }
}

/// Returns a message if the plan sets `client_wait = "spin"` and cannot have a spinning client.
pub(crate) fn spin_problem(plan: &Plan) -> Option<String> {
    let host = &plan.host;
    if host.client_wait != Some(ClientWait::Spin) {
        return None;
    }
    if plan.clients.is_some() {
        return Some(
            "client_wait = \"spin\" is for a client on one host: leave it or [clients] out".to_owned(),
        );
    }
    let is_elsewhere = plan.variants.iter().all(|variant| VariantKind::of(variant).is_address());
    let why = match (&host.client_cpus, &host.server_cpus) {
        // Only the owner of a server at an address knows on which CPUs it runs.
        (Some(client), None) if is_elsewhere => enough_cpus(host, client).err()?,
        _ => own_cpus(host).err()?,
    };
    Some(format!(
        "client_wait = \"spin\" keeps a client CPU busy with each load thread, but {why}: give client and server CPUs of their own \
         and no more threads than CPUs, or set client_wait = \"sleep\""
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(host: &str, server: &str) -> Result<Plan, String> {
        let text =
            format!("name = \"p\"\n[host]\n{host}\n[[variant]]\nname = \"a\"\n{server}\n[workload.fake]\n");
        crate::fake::parse(&text, "p.toml").map_err(|error| error.to_string())
    }

    const STARTED: &str = "server = \"mariadb-11.4.5\"";
    const ADDRESS: &str = "address = \"mysql://any@localhost/any?socket=/run/s\"";

    #[test]
    fn a_client_with_cpus_of_its_own_spins_and_any_other_sleeps() {
        let choice = |host: &str| {
            let WaitChoice { wait, reason } = plan(host, STARTED).map(|plan| client_wait(&plan)).unwrap();
            format!("{}: {reason}", wait.name())
        };
        let hosts = [
            "",
            "client_cpus = \"1\"",
            "server_cpus = \"0-1\"\nclient_cpus = \"1-2\"",
            "server_cpus = \"0\"\nclient_cpus = \"1\"\nclient_threads = 2",
            "server_cpus = \"0\"\nclient_cpus = \"1-2\"\nclient_threads = 2",
            "server_cpus = \"0\"\nclient_cpus = \"1\"\nclient_wait = \"sleep\"",
            "server_cpus = \"0\"\nclient_cpus = \"1\"\nclient_wait = \"spin\"",
        ];
        insta::assert_snapshot!(hosts.map(choice).join("\n"), @r"
        sleep: client and server have no CPUs of their own (host.client_cpus, host.server_cpus)
        sleep: client and server have no CPUs of their own (host.client_cpus, host.server_cpus)
        sleep: server and client share CPU 1 (host.server_cpus, host.client_cpus)
        sleep: 2 load threads (host.client_threads) have only CPU 1 (host.client_cpus)
        spin: the client has CPUs 1-2 to itself (host.client_cpus)
        sleep: the plan says so (host.client_wait)
        spin: the plan says so (host.client_wait)
        ");
        let embedded = plan("server_cpus = \"0\"\nclient_cpus = \"1\"", "server = \"sqlite\"")
            .map(|plan| client_wait(&plan))
            .unwrap();
        assert_eq!(
            (embedded.wait, embedded.reason.as_str()),
            (ClientWait::Sleep, "the database runs in the load threads")
        );
    }

    #[test]
    fn a_spinning_client_without_cpus_of_its_own_is_refused() {
        let refused =
            |host: &str, server| plan(&format!("client_wait = \"spin\"\n{host}"), server).unwrap_err();
        insta::assert_snapshot!(refused("server_cpus = \"0-1\"\nclient_cpus = \"1\"", STARTED), @r#"p.toml:3:15: client_wait = "spin" keeps a client CPU busy with each load thread, but server and client share CPU 1 (host.server_cpus, host.client_cpus): give client and server CPUs of their own and no more threads than CPUs, or set client_wait = "sleep""#);
        for (host, server, why) in [
            ("", STARTED, "no CPUs of their own"),
            ("client_cpus = \"1\"", STARTED, "no CPUs of their own"),
            ("server_cpus = \"0\"\nclient_cpus = \"1\"\nclient_threads = 3", STARTED, "3 load threads"),
            ("client_cpus = \"1\"\nclient_threads = 3", ADDRESS, "3 load threads"),
            ("server_cpus = \"1\"\nclient_cpus = \"1\"", ADDRESS, "share CPU 1"),
            ("", ADDRESS, "no CPUs of their own"),
        ] {
            let said = refused(host, server);
            assert!(said.contains(why), "{said}");
        }
        assert!(plan("client_wait = \"spin\"\nclient_cpus = \"1\"", ADDRESS).is_ok());
    }
}
