//! Checks the table `[clients]`: the hosts that put the load on, and whether they can.

use dbdyno_model::{ClientNames, Clients};
use dbdyno_products::VariantKind;

use crate::Plan;

/// Returns the first mistake: its key inside `[clients]`, and what to write.
pub(crate) fn clients_problem(plan: &Plan) -> Option<(&'static str, String)> {
    let clients = plan.clients.as_ref()?;
    if let Some(problem) = hosts_problem(clients) {
        return Some(problem);
    }
    if clients.start.trim().is_empty() {
        return Some(("start", "start must be a command, as \"ssh {host} dbdyno\"".to_owned()));
    }
    let is_reached =
        |kind: VariantKind| matches!(kind, VariantKind::Address(text) if !text.contains("socket="));
    if let Some(variant) = plan.variants.iter().find(|variant| !is_reached(VariantKind::of(variant))) {
        let name = &variant.name;
        let message = format!(
            "client hosts need servers that they reach: let variant `{name}` have an address with a host"
        );
        return Some(("hosts", message));
    }
    let (name, _) = plan.workload.iter().find(|(_, options)| !options.needs().client_hosts)?;
    Some(("hosts", format!("the connections of workload {name} cannot be shared out to client hosts")))
}

fn hosts_problem(clients: &Clients) -> Option<(&'static str, String)> {
    // A host name reaches a shell when it goes through ssh.
    let is_name = |host: &String| {
        host.starts_with(|first: char| first.is_ascii_alphanumeric() || first == ':')
            && host.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-:_".contains(letter))
    };
    let problem = match (&clients.hosts, &clients.on) {
        (ClientNames::Named(hosts), None) if !hosts.is_empty() && hosts.iter().all(is_name) => return None,
        (ClientNames::Number(1..), Some(_)) => return None,
        (_, None) => {
            "hosts must be one or more names or addresses, as [\"10.0.0.2\"], or a number with on, which finds them"
        }
        (_, Some(_)) => "hosts must be a number, as 4, when on finds them",
    };
    Some(("hosts", problem.to_owned()))
}
