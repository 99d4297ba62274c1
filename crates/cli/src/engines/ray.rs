//! Provides the nodes of a Ray cluster, and starts tasks on them. Each task has all CPUs of its
//! node. Ray has no interface for Rust, so a Python program speaks to it.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;
use std::process::Child;

use dbdyno_db::server::{clean_command, start_detached};

use crate::engines::{Gang, Launcher, cannot_start, printed, variables};
use crate::exit::ExitError;

/// The Python program that speaks to Ray. Its first lines describe its commands.
const PROGRAM: &str = include_str!("ray.py");

/// Environment variable for Ray's authentication mode. Nodes on which it is `token` demand a token.
/// A dbdyno user who sets it to `disabled` accepts a cluster that demands none.
const AUTH_MODE: &str = "RAY_AUTH_MODE";

pub(super) struct Ray {
    address: String,
    /// The nodes that have CPUs.
    nodes: Vec<RayNode>,
}

#[derive(Debug, PartialEq, Eq)]
struct RayNode {
    id: String,
    cpus: String,
    address: String,
    name: String,
    /// Whether the node demands no token, so that anyone who reaches it can run programs on it.
    is_open: bool,
}

impl Ray {
    /// Finds the nodes of the cluster at `address` (`ray://HOST:PORT`). Without an address it takes
    /// the cluster that Ray itself finds, from `RAY_ADDRESS` or on this host. It refuses a cluster
    /// that is open to the network, unless the user accepts that.
    pub(super) fn find(address: Option<&str>) -> Result<Self, ExitError> {
        let address = address.unwrap_or("auto").to_owned();
        let words = command_line(&address, ["nodes".to_owned()]);
        let listed = printed(clean_command(&words[0]).args(&words[1..]).envs(program_variables())).map_err(|said| {
            let why = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let advice = "check that python3 has the cluster's version of Ray (pip install \"ray[client]\"), that the cluster is up, and that its token is set";
            ExitError::machine(format!("cannot ask Ray for its nodes: {why}; {advice}"))
        })?;
        let mut nodes = nodes(&listed);
        let accepts = std::env::var_os(AUTH_MODE).is_some_and(|mode| mode == "disabled");
        if let Some(open) = nodes.iter().find(|node| node.is_open_to_the_network()).filter(|_| !accepts) {
            let why =
                format!("anyone who reaches node {} of this Ray cluster can run programs on it", open.name);
            let advice = format!(
                "start its nodes with {AUTH_MODE}=token and a token, or accept it with {AUTH_MODE}=disabled"
            );
            return Err(ExitError::machine(format!("{why}, as it asks for no token; {advice}")));
        }
        nodes.retain(|node| node.cpus.parse().is_ok_and(|cpus: f64| cpus > 0.0));
        if nodes.is_empty() {
            return Err(ExitError::machine(
                "no node of this Ray cluster has CPUs; see ray status".to_owned(),
            ));
        }
        Ok(Self { address, nodes })
    }
}

/// Returns the command that reserves `hosts` nodes of a cluster with all their CPUs, and how to
/// start a program on each. The cluster must be one that [`Ray::find`] accepts.
pub(super) fn gang(address: Option<&str>, hosts: u32) -> Result<Gang, ExitError> {
    let Ray { address, .. } = Ray::find(address)?;
    let words = command_line(&address, ["reserve".to_owned(), hosts.to_string()]);
    let starting = move |key: &[&str]| {
        let [node] = key else { return None };
        // The program asks Ray for 0 CPUs, because the node's CPUs are reserved already.
        Some(command_line(&address, ["stream", node, "0"].map(str::to_owned)))
    };
    Ok(Gang { words, variables: program_variables(), starting: Box::new(starting) })
}

impl RayNode {
    fn is_open_to_the_network(&self) -> bool {
        self.is_open && !self.address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }
}

/// Returns the command line that runs [`PROGRAM`] with these arguments.
fn command_line(address: &str, words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut line = vec!["python3".to_owned(), "-c".to_owned(), PROGRAM.to_owned(), address.to_owned()];
    line.extend(words);
    line
}

/// Returns the variables for [`PROGRAM`], among them Ray's own, which say how to reach Ray. The
/// program passes on to tasks only those that are neither Ray's nor Python's.
fn program_variables() -> Vec<(OsString, OsString)> {
    let is_of_ray = |name: &str| name == "PYTHONPATH" || name.starts_with("RAY_");
    let own = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_of_ray));
    variables().into_iter().chain(own).collect()
}

/// Returns the nodes that [`PROGRAM`] has printed, sorted by name.
fn nodes(listed: &str) -> Vec<RayNode> {
    let node = |line: &str| {
        let mut words = line.strip_prefix("node ")?.splitn(5, ' ').map(str::to_owned);
        let is_open = words.next()? != "token";
        let (id, cpus, address, name) = (words.next()?, words.next()?, words.next()?, words.next()?);
        Some(RayNode { id, cpus, address, name, is_open })
    };
    let mut nodes: Vec<RayNode> = listed.lines().filter_map(node).collect();
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    nodes
}

impl Launcher for Ray {
    fn machines(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.name.clone()).collect()
    }

    fn start(
        &self,
        machine: usize,
        words: &[String],
        log: &Path,
        is_piped: bool,
    ) -> Result<Child, ExitError> {
        let RayNode { id, cpus, name, .. } = &self.nodes[machine];
        let how = if is_piped { "stream" } else { "run" };
        let mut line = command_line(&self.address, [how.to_owned(), id.clone(), cpus.clone()]);
        line.extend((!is_piped).then(|| log.display().to_string()));
        line.extend_from_slice(words);
        start_detached(&line, &program_variables(), log, is_piped).map_err(|error| cannot_start(name, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_demand_no_token_are_open_unless_only_their_own_host_reaches_them() {
        let listed =
            "a note\nnode open c1 8.0 10.0.0.3 c\nnode token a1 8.0 10.0.0.1 a\nnode open b1 0 127.0.0.1 b\n";
        let nodes = nodes(listed);
        assert_eq!(nodes.iter().map(|node| node.id.as_str()).collect::<Vec<_>>(), ["a1", "b1", "c1"]);
        assert_eq!([0, 1, 2].map(|node: usize| nodes[node].is_open_to_the_network()), [false, false, true]);
    }
}
