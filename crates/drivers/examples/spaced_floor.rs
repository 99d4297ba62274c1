//! The floor under a client that waits long for each answer: one thread, one epoll, and on each
//! connection the same bytes again and again, answered by no one's database but after a given time.
//! What a sleep, a wake-up, a read and a write of these sizes cost, and nothing else.
//!
//! `spaced_floor SPACING_US SECONDS SERVER_CPUS BYTES...` opens a connection for each of BYTES,
//! whose requests have that size. A thread for each, on SERVER_CPUS (`0,1`), reads a whole request
//! and answers with 11 bytes SPACING_US after the answer before. Prints
//! `{"round_trips":N,"cpu_us":N,"seconds":N}`: user and kernel time of the client's thread in the
//! window.

use std::env;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

/// Bytes of an answer that says how many rows were changed.
const ANSWER: [u8; 11] = [7, 0, 0, 1, 0, 50, 0, 2, 0, 0, 0];

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [spacing_us, seconds, cpus, sizes @ ..] = arguments.as_slice() else {
        return Err(io::Error::other("usage: spaced_floor SPACING_US SECONDS SERVER_CPUS BYTES..."));
    };
    let spacing = Duration::from_micros(number(spacing_us)?);
    let window = Duration::from_secs(number(seconds)?);
    let cpus: Vec<usize> =
        cpus.split(',').map(|cpu| number(cpu).map(|cpu| cpu as usize)).collect::<io::Result<_>>()?;

    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let mut clients = Vec::new();
    for (index, size) in sizes.iter().enumerate() {
        let bytes = number(size)? as usize;
        let (stream, peer) = UnixStream::pair()?;
        let cpus = cpus.clone();
        // It ends with the process, or when the client's end is closed.
        thread::spawn(move || answer(peer, bytes, spacing, &cpus));
        stream.set_nonblocking(true)?;
        epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, index as u64))?;
        clients.push((stream, vec![b'x'; bytes]));
    }
    for (stream, request) in &mut clients {
        stream.write_all(request)?;
    }
    // The first tenth warms up and is not counted.
    turn(&epoll, &mut clients, window / 10)?;
    let (cpu, began) = (cpu_us()?, Instant::now());
    let round_trips = turn(&epoll, &mut clients, window)?;
    let (cpu, seconds) = (cpu_us()? - cpu, began.elapsed().as_secs_f64());
    writeln!(io::stdout(), "{{\"round_trips\":{round_trips},\"cpu_us\":{cpu},\"seconds\":{seconds:.6}}}")
}

/// Answers are read and requests sent until `window` is over. Returns how many answers came.
fn turn(epoll: &Epoll, clients: &mut [(UnixStream, Vec<u8>)], window: Duration) -> io::Result<u64> {
    let mut events = [EpollEvent::empty(); 16];
    let mut answer = [0; 64];
    let mut round_trips = 0;
    let end = Instant::now() + window;
    while Instant::now() < end {
        let ready = epoll.wait(&mut events, EpollTimeout::from(100u8))?;
        for event in &events[..ready] {
            let (stream, request) = &mut clients[event.data() as usize];
            if stream.read(&mut answer)? != ANSWER.len() {
                return Err(io::Error::other("an answer came in pieces"));
            }
            round_trips += 1;
            stream.write_all(request)?;
        }
    }
    Ok(round_trips)
}

/// Reads requests of `bytes` and answers each, `spacing` after the answer before.
fn answer(mut stream: UnixStream, bytes: usize, spacing: Duration, cpus: &[usize]) -> io::Result<()> {
    let mut allowed = CpuSet::new();
    for &cpu in cpus {
        allowed.set(cpu)?;
    }
    sched_setaffinity(Pid::from_raw(0), &allowed)?;
    let mut request = vec![0; bytes];
    let mut due = Instant::now();
    loop {
        stream.read_exact(&mut request)?;
        due += spacing;
        let now = Instant::now();
        thread::sleep(due.saturating_duration_since(now));
        // What is late is not made up for.
        due = due.max(now);
        stream.write_all(&ANSWER)?;
    }
}

fn number(text: &str) -> io::Result<u64> {
    text.parse().map_err(|error| io::Error::other(format!("{text}: {error}")))
}

/// Of this thread only: the answering ones stand for a server.
fn cpu_us() -> io::Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds())
}
