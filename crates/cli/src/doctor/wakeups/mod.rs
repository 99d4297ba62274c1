//! What it costs a server here to wake a client that sleeps, CPU by CPU, and what follows for a
//! plan's `[host]`.

mod burn;
mod cores;
mod ping_pong;
mod table;

use dbdyno_plan::{ClientWait, CpuList};
use serde::Serialize;

use crate::exit::ExitError;
use crate::host_files::HostFiles;

pub(crate) use burn::cpu_operations_per_second;
pub(crate) use cores::give_cpus;
pub(crate) use table::{blocks, percent};

/// CPUs between which pairs are measured: all 12 pairs of these take some two seconds.
const MOST_CPUS: usize = 4;
/// Work of the server for an answer in µs: none, that of a cheap statement, that of a dear one. The
/// longer it is, the deeper a client sleeps.
const WORKS_US: [f64; 3] = [0.0, 25.0, 100.0];
/// The one of them that decides.
const DECIDING: usize = 1;
/// Part of the server's CPU time for an answer that spinning must save to be worth it: within that,
/// rates count as the same.
const WORTH_SHARE: f64 = 0.02;
/// Part of its speed that a CPU loses while another one is busy, from which on the two are called
/// one core.
pub(crate) const ONE_CORE_SHARE: f64 = 0.15;

/// A question and its answer, on average.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Exchange {
    pub(crate) round_trip_us: f64,
    pub(crate) server_cpu_us: f64,
}

/// Exchanges for which the server works so long, by how the client waits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Answer {
    pub(crate) work_us: f64,
    pub(crate) asleep: Exchange,
    pub(crate) spinning: Exchange,
}

impl Answer {
    /// CPU time that the server pays for waking the client.
    pub(crate) fn wake_up_us(&self) -> f64 {
        self.asleep.server_cpu_us - self.spinning.server_cpu_us
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Pair {
    pub(crate) server_cpu: u32,
    pub(crate) client_cpu: u32,
    /// By the server's work, the shortest first.
    pub(crate) answers: Vec<Answer>,
    /// Part of its speed that the server's CPU loses while the client's CPU computes without a
    /// pause.
    pub(crate) lost_share: f64,
}

impl Pair {
    pub(crate) fn deciding(&self) -> &Answer {
        &self.answers[DECIDING]
    }
}

/// What follows for a plan's `[host]`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Advice {
    pub(crate) client_wait: ClientWait,
    pub(crate) server_cpus: CpuList,
    pub(crate) client_cpus: CpuList,
    /// Part of the server's CPU time for an answer that a spinning client saves.
    pub(crate) saved_share: f64,
    /// Part of its speed that a CPU of the server loses at worst while one of the client is busy.
    pub(crate) lost_share: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct WakeUps {
    pub(crate) usable_cpus: CpuList,
    /// Every pair of these was measured.
    pub(crate) measured_cpus: CpuList,
    pub(crate) pairs: Vec<Pair>,
    /// `None` on a machine with one CPU, where client and server have to take turns.
    pub(crate) advice: Option<Advice>,
}

/// Measures pairs of `usable` CPUs, in at most a few seconds however many there are.
pub(crate) fn measure(files: &HostFiles, usable: &CpuList) -> Result<WakeUps, ExitError> {
    let chosen = chosen(&usable.0);
    let mut pairs = Vec::new();
    for &server_cpu in &chosen {
        for &client_cpu in chosen.iter().filter(|cpu| **cpu != server_cpu) {
            pairs.push(pair(server_cpu, client_cpu)?);
        }
    }
    let advice = advice(&pairs, cores::sides(files, &usable.0, &pairs, usize::MAX));
    Ok(WakeUps { usable_cpus: usable.clone(), measured_cpus: CpuList(chosen), pairs, advice })
}

fn pair(server_cpu: u32, client_cpu: u32) -> Result<Pair, ExitError> {
    let speed = burn::speed_and_loss(server_cpu, client_cpu)?;
    let works = WORKS_US.map(|work_us| (work_us * speed.rounds_per_us).round() as u64);
    let found = ping_pong::exchanges(server_cpu, client_cpu, &works)?;
    let answer = |(work_us, [asleep, spinning]): (f64, [Exchange; 2])| Answer { work_us, asleep, spinning };
    let answers = WORKS_US.into_iter().zip(found).map(answer).collect();
    Ok(Pair { server_cpu, client_cpu, answers, lost_share: speed.lost_share })
}

/// All, or where they are many the first two, which may be one core, one from the middle, where the
/// second threads of cores or another socket often begin, and the last.
fn chosen(usable: &[u32]) -> Vec<u32> {
    match usable {
        [first, second, .., last] if usable.len() > MOST_CPUS => {
            vec![*first, *second, usable[usable.len() / 2], *last]
        }
        few => few.to_vec(),
    }
}

/// From the pairs with one CPU on each side: what the worst of them loses, and whether waking costs
/// enough on most of them.
fn advice(pairs: &[Pair], (server, client): (Vec<u32>, Vec<u32>)) -> Option<Advice> {
    let across: Vec<&Pair> = pairs
        .iter()
        .filter(|pair| server.contains(&pair.server_cpu) && client.contains(&pair.client_cpu))
        .collect();
    let saved = |pair: &&Pair| pair.deciding().wake_up_us() / pair.deciding().asleep.server_cpu_us;
    let lost_share = across.iter().map(|pair| pair.lost_share).max_by(f64::total_cmp)?;
    let saved_share = median(across.iter().map(saved).collect());
    let client_wait = if saved_share >= WORTH_SHARE { ClientWait::Spin } else { ClientWait::Sleep };
    let (server_cpus, client_cpus) = (CpuList(server), CpuList(client));
    Some(Advice { client_wait, server_cpus, client_cpus, saved_share, lost_share })
}

/// Of at least one value.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = ((values.len() - 1) / 2, values.len() / 2);
    f64::midpoint(values[low], values[high])
}

#[cfg(test)]
mod testing {
    use super::*;

    /// A pair whose server spends 30 µs with a sleeping client.
    pub(super) fn pair(server_cpu: u32, client_cpu: u32, wake_up_us: f64, lost_share: f64) -> Pair {
        let exchange = |round_trip_us, server_cpu_us| Exchange { round_trip_us, server_cpu_us };
        let answer = |work_us: f64| Answer {
            work_us,
            asleep: exchange(work_us + 40.0, work_us + 5.0),
            spinning: exchange(work_us + 12.25, work_us + 5.0 - wake_up_us),
        };
        Pair { server_cpu, client_cpu, answers: WORKS_US.map(answer).to_vec(), lost_share }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::pair;
    use super::*;
    use crate::host;

    #[test]
    fn this_machine_has_every_pair_of_the_chosen_cpus_or_one_cpu() {
        let usable = host::usable_cpus().expect("this process has CPUs");
        let found = measure(&HostFiles::here(), &usable).expect("threads are kept to CPUs");
        let count = found.measured_cpus.0.len();
        assert!(count == usable.0.len().min(MOST_CPUS), "{found:?}");
        let mut covered: Vec<_> = found.pairs.iter().map(|pair| (pair.server_cpu, pair.client_cpu)).collect();
        covered.dedup();
        assert_eq!(covered.len(), count * (count - 1));
        for pair in &found.pairs {
            assert!(pair.server_cpu != pair.client_cpu && pair.lost_share < 1.0, "{pair:?}");
            for exchange in pair.answers.iter().flat_map(|answer| [answer.asleep, answer.spinning]) {
                assert!(exchange.round_trip_us > 0.0 && exchange.server_cpu_us > 0.0, "{pair:?}");
            }
        }
        assert_eq!(found.advice.is_none(), count == 1);
        let Some(advice) = found.advice else { return };
        let mut all = [advice.server_cpus.0, advice.client_cpus.0].concat();
        all.sort_unstable();
        assert_eq!(all, usable.0, "each CPU is on one side");
    }

    #[test]
    fn of_many_cpus_four_are_measured() {
        let all: Vec<u32> = (0..64).collect();
        assert_eq!(
            (chosen(&all), chosen(&all[..4]), chosen(&[7])),
            (vec![0, 1, 32, 63], vec![0, 1, 2, 3], vec![7])
        );
        assert_eq!(chosen(&[0, 2, 4, 6, 8]), [0, 2, 4, 8]);
    }

    #[test]
    fn spinning_is_advised_where_it_saves_the_server_two_percent() {
        let of = |wake_up_us| advice(&[pair(0, 1, wake_up_us, 0.01)], (vec![0], vec![1])).expect("two CPUs");
        assert_eq!((of(0.59).client_wait, of(0.61).client_wait), (ClientWait::Sleep, ClientWait::Spin));
        let spun_slower = of(-3.0);
        assert_eq!((spun_slower.client_wait, spun_slower.saved_share), (ClientWait::Sleep, -0.1));
        let pairs = [pair(0, 1, 3.0, 0.4), pair(1, 0, 0.0, 0.0), pair(0, 2, 3.0, 0.1), pair(1, 2, 3.0, 0.2)];
        let found = advice(&pairs, (vec![0, 1], vec![2])).expect("three CPUs");
        assert_eq!((found.saved_share, found.lost_share), (0.1, 0.2), "of pairs with one CPU on each side");
        assert_eq!(advice(&[], (vec![0], vec![])), None);
    }
}
