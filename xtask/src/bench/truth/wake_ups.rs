//! What waking the client costs a server: the same programmed work for a client that sleeps and for
//! one that spins.

use anyhow::Result;

use super::ask::Load;
use super::check::{Bound, Checks};
use super::parts::Round;
use crate::bench::machine;

/// CPU of a request, programmed.
const BURNS_US: [u32; 4] = [5, 10, 20, 40];
const CONNECTIONS: [u32; 3] = [1, 4, 16];
const SECONDS: u32 = 3;
/// How the client waits for answers.
const SPIN: &str = "spin";
const SLEEP: &str = "sleep";

/// CPU a request and ratios between burns, in a closed loop as fast as it goes. The truth of a
/// request is its burn and the protocol's own work: what it costs without a burn while the client
/// spins, over as many connections. Nothing where server and client have no CPUs of their own.
pub(super) fn burns(round: &Round<'_>, checks: &mut Checks) -> Result<()> {
    if machine::halves().1.is_none() {
        return Ok(());
    }
    for connections in CONNECTIONS {
        let (own_us, _) = measure(round, connections, SPIN, 0)?;
        let part = format!("closed loop, {connections} connections, client spins");
        checks.add(&part, "server CPU a query without burn, µs", Bound::Shown, own_us);
        for wait in [SPIN, SLEEP] {
            of_client(round, connections, wait, own_us, checks)?;
        }
    }
    Ok(())
}

fn of_client(
    round: &Round<'_>,
    connections: u32,
    wait: &'static str,
    own_us: f64,
    checks: &mut Checks,
) -> Result<()> {
    let part = format!("closed loop, {connections} connections, client {}s", wait);
    // A client that sleeps is shown as well: what it adds is the server's cost of waking it.
    let near = |truth, share| if wait == SPIN { Bound::Near { truth, share } } else { Bound::Shown };
    let truth = |burn_us: u32| f64::from(burn_us) + own_us;
    let mut all = Vec::new();
    for burn_us in BURNS_US {
        let (server_cpu_us, rate) = measure(round, connections, wait, burn_us)?;
        let figure = format!("server CPU a query, burn {burn_us} µs");
        checks.add(&part, &figure, near(truth(burn_us), 0.05), server_cpu_us);
        checks.add(&part, &format!("queries a second, burn {burn_us} µs"), Bound::Shown, rate);
        all.push((burn_us, server_cpu_us));
    }
    let Some(&(dearest, dearest_us)) = all.last() else { return Ok(()) };
    for &(burn_us, cpu_us) in &all[..all.len() - 1] {
        let figure = format!("burn {burn_us} ÷ burn {dearest}");
        checks.add(&part, &figure, near(truth(burn_us) / truth(dearest), 0.02), cpu_us / dearest_us);
    }
    Ok(())
}

/// CPU of the server for a request, and requests a second.
fn measure(round: &Round<'_>, connections: u32, wait: &'static str, burn_us: u32) -> Result<(f64, f64)> {
    // A burn of 1 ns reads the thread's CPU clock as any other does, and so costs the same calls.
    let burn = if burn_us == 0 { "1ns".to_owned() } else { format!("{burn_us}us") };
    let load = Load { connections, rate: None, seconds: SECONDS, sampling: true, wait: Some(wait) };
    let name = format!("burn-{burn}-c{connections}-{}", wait);
    let answer = round.ask(&name, &["--threads", "1", "--burn", &burn], load)?;
    Ok((answer.number("/cost/server_cpu_us")?, answer.number("/rate")?))
}
