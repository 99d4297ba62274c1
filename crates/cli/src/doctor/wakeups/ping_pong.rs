//! Two pinned threads, a client and a server that works and answers, over a unix socket: what an
//! answer costs the server while the client sleeps, and while it spins.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use dbdyno_plan::{ClientWait, CpuList};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::Exchange;
use super::burn::{burn, thread_cpu};
use crate::exit::ExitError;
use crate::host;

const WAYS: [ClientWait; 2] = [ClientWait::Sleep, ClientWait::Spin];

/// How long the client asks in one way before it changes to another.
const SLICE: Duration = Duration::from_millis(5);
/// Slices of each way; the median counts, so that what disturbs one or two of them does not.
const SLICES: usize = 5;
const WARM_UP: usize = 5;
/// In place of the rounds of work: asks for the server's CPU time.
const CLOCK: u64 = u64::MAX;

/// What an exchange takes of which the server's part is so many rounds of work, by how the client
/// waits: in the order of [`WAYS`] for each of `works`.
pub(super) fn exchanges(server: u32, client: u32, works: &[u64]) -> Result<Vec<[Exchange; 2]>, ExitError> {
    let (near, far) = UnixStream::pair().map_err(failed)?;
    std::thread::scope(|scope| {
        // Each owns its end of the socket: when one of them ends early, so does the other.
        let answering = scope.spawn(move || {
            host::keep_to(&CpuList(vec![server]))?;
            answer(far).map_err(failed)
        });
        let asking = scope.spawn(move || {
            host::keep_to(&CpuList(vec![client]))?;
            Client::new(near).and_then(|mut client| client.measure(works)).map_err(failed)
        });
        let (answered, asked) = (answering.join(), asking.join());
        answered.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        asked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn failed(error: io::Error) -> ExitError {
    ExitError::machine(format!("cannot measure what a wake-up costs: {error}"))
}

/// The server: sleeps until it is asked, as servers do.
fn answer(mut stream: UnixStream) -> io::Result<()> {
    let mut request = [0; 8];
    loop {
        match stream.read_exact(&mut request) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let answer = match u64::from_le_bytes(request) {
            CLOCK => u64::try_from(thread_cpu().as_nanos()).unwrap_or(u64::MAX),
            rounds => burn(rounds),
        };
        stream.write_all(&answer.to_le_bytes())?;
    }
}

struct Client {
    stream: UnixStream,
    epoll: Epoll,
}

impl Client {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        Ok(Self { stream, epoll })
    }

    /// Ways take turns, so that all see the same machine.
    fn measure(&mut self, works: &[u64]) -> io::Result<Vec<[Exchange; 2]>> {
        let mut all: Vec<[Vec<Exchange>; 2]> = works.iter().map(|_| Default::default()).collect();
        for _ in 0..SLICES {
            for (rounds, found) in works.iter().zip(&mut all) {
                for (wait, found) in WAYS.into_iter().zip(found) {
                    found.push(self.slice(wait, *rounds)?);
                }
            }
        }
        Ok(all.into_iter().map(|both| both.map(|slices| median(&slices))).collect())
    }

    /// The mean of as many exchanges as fit.
    fn slice(&mut self, wait: ClientWait, rounds: u64) -> io::Result<Exchange> {
        for _ in 0..WARM_UP {
            self.exchange(wait, rounds)?;
        }
        let cpu_before_ns = self.exchange(wait, CLOCK)?;
        let began = Instant::now();
        let mut count = 0.0;
        while began.elapsed() < SLICE {
            self.exchange(wait, rounds)?;
            count += 1.0;
        }
        let elapsed = began.elapsed();
        let cpu_ns = self.exchange(wait, CLOCK)? - cpu_before_ns;
        Ok(Exchange {
            round_trip_us: elapsed.as_secs_f64() * 1e6 / count,
            server_cpu_us: cpu_ns as f64 / 1e3 / count,
        })
    }

    fn exchange(&mut self, wait: ClientWait, request: u64) -> io::Result<u64> {
        let timeout = match wait {
            ClientWait::Sleep => EpollTimeout::NONE,
            ClientWait::Spin => EpollTimeout::ZERO,
        };
        self.stream.write_all(&request.to_le_bytes())?;
        let mut events = [EpollEvent::empty()];
        while self.epoll.wait(&mut events, timeout)? == 0 {}
        let mut answer = [0; 8];
        self.stream.read_exact(&mut answer)?;
        Ok(u64::from_le_bytes(answer))
    }
}

fn median(slices: &[Exchange]) -> Exchange {
    let of = |figure: fn(&Exchange) -> f64| super::median(slices.iter().map(figure).collect());
    Exchange {
        round_trip_us: of(|exchange| exchange.round_trip_us),
        server_cpu_us: of(|exchange| exchange.server_cpu_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_has_its_price_in_both_ways_and_a_higher_one_with_work() {
        let cpu = host::usable_cpus().expect("this process has CPUs").0[0];
        let found = exchanges(cpu, cpu, &[0, 200_000]).expect("a socket and a CPU");
        assert_eq!(found.len(), 2);
        for exchange in found.iter().flatten() {
            assert!(exchange.server_cpu_us > 0.0 && exchange.round_trip_us > 0.0, "{found:?}");
        }
        for (idle, working) in found[0].iter().zip(&found[1]) {
            assert!(working.server_cpu_us > idle.server_cpu_us, "{found:?}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_without_a_wait() {
        let cpu = host::usable_cpus().expect("this process has CPUs").0[0];
        assert!(exchanges(1_023, cpu, &[0]).is_err() && exchanges(cpu, 1_023, &[0]).is_err());
    }
}
