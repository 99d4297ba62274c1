//! Bench `scripts`: the same script, by the same command line, run by dbdyno and by the program it
//! was written for: client CPU, rate, and memory at many connections.

use std::io::Seek;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::connections::peak;
use super::grid::{Grid, met};
use super::spread::Spread;
use super::sysbench::bare_loop;
use super::sysbench::hosts::{self, Host, PEER_DATABASE};
use super::sysbench::peer::{self, children_cpu_us, transactions};
use super::truth::server::KnownAnswer;
use super::{Measured, Setting, machine, runs};

/// Seconds of each measurement: starting and ending either program is in its CPU time.
const SECONDS: u32 = 10;
const ROWS: u32 = 10_000;
/// pgbench's scale: 100,000 accounts each.
const SCALE: u32 = 1;

struct Case {
    /// Beginning of the server's name.
    server: &'static str,
    /// `sysbench` or `pgbench`, and `dbdyno`'s command of the same name.
    program: &'static str,
    script: &'static str,
    connections: u32,
    /// What is asked of ours over the program's: `None` where it is only shown.
    most_cpu: Option<f64>,
    least_rate: Option<f64>,
    most_memory: Option<f64>,
}

const fn lua(server: &'static str, script: &'static str, connections: u32) -> Case {
    let (most_cpu, least_rate, most_memory) = (Some(0.80), Some(1.0), None);
    Case { server, program: "sysbench", script, connections, most_cpu, least_rate, most_memory }
}

const MARIADB: &str = "mariadb-10.11";
const POSTGRES: &str = "pg-15";
/// Answers at once: the client is what limits the rate.
const KNOWN_ANSWER: &str = "known-answer";
const CASES: &[Case] = &[
    lua(KNOWN_ANSWER, "oltp_point_select", 16),
    lua(KNOWN_ANSWER, "oltp_point_select", 64),
    lua(KNOWN_ANSWER, "oltp_read_write", 16),
    lua(KNOWN_ANSWER, "oltp_read_write", 64),
    lua(MARIADB, "oltp_point_select", 16),
    lua(MARIADB, "oltp_point_select", 64),
    lua(MARIADB, "oltp_read_write", 16),
    lua(MARIADB, "oltp_read_write", 64),
    Case {
        most_cpu: None,
        least_rate: None,
        most_memory: Some(0.60),
        ..lua(MARIADB, "oltp_point_select", 1024)
    },
    lua(POSTGRES, "oltp_point_select", 16),
    lua(POSTGRES, "oltp_read_write", 16),
    Case { program: "pgbench", most_cpu: Some(0.90), ..lua(POSTGRES, "select-only", 16) },
];

impl Case {
    fn what(&self) -> String {
        format!("{} {}, {} connections", self.program, self.script, self.connections)
    }

    /// A point select, which the bare loop does too, on connections that it has time for.
    fn has_floor(&self) -> bool {
        self.server == MARIADB && self.script == "oltp_point_select" && self.connections <= 64
    }

    /// The words after the program's name.
    fn words(&self, target: &BenchServer) -> Vec<String> {
        let connections = self.connections;
        if self.program == "pgbench" {
            let jobs = connections.min(4);
            let options = format!("-n -h {} -U postgres -M prepared", directory(&target.options));
            let load = format!("-b {} -c {connections} -j {jobs} -T {SECONDS} {PEER_DATABASE}", self.script);
            return format!("{options} {load}").split(' ').map(str::to_owned).collect();
        }
        let mut words = vec![self.script.to_owned()];
        words.extend(target.options.iter().cloned());
        words.extend([
            "--tables=1".to_owned(),
            format!("--table-size={ROWS}"),
            format!("--threads={connections}"),
            format!("--time={SECONDS}"),
            "--rand-type=uniform".to_owned(),
            "run".to_owned(),
        ]);
        words
    }
}

#[derive(Debug, Clone, Copy)]
struct Taken {
    /// User and kernel time of the whole process for one event.
    cpu_us: f64,
    rate_per_second: f64,
    peak_bytes: f64,
}

/// A running server, and where sysbench connects to it. It ends when this is dropped.
struct BenchServer {
    title: String,
    options: Vec<String>,
    /// `None` of a known-answer server, which needs no tables.
    host: Option<Host>,
    _answers: Option<KnownAnswer>,
}

impl BenchServer {
    fn start(setting: &Setting, server: &str) -> Result<Self> {
        if server == KNOWN_ANSWER {
            let answers = KnownAnswer::start(&setting.dbdyno, &[])?;
            let socket = format!("--mysql-socket={}", answers.socket().display());
            let options = ["--db-driver=mysql", &socket, "--mysql-user=root", "--mysql-db=any"];
            return Ok(Self {
                title: "known-answer server".to_owned(),
                options: options.map(str::to_owned).to_vec(),
                host: None,
                _answers: Some(answers),
            });
        }
        let host = hosts::start(server, &setting.folder.join(server))?;
        let (title, options) = (host.title.clone(), host.peer_options.clone());
        Ok(Self { title, options, host: Some(host), _answers: None })
    }

    fn prepare(&self, case: &Case) -> Result<()> {
        let Some(host) = &self.host else { return Ok(()) };
        match case.program {
            "pgbench" => {
                let line =
                    format!("-i -q -s {SCALE} -h {} -U postgres {PEER_DATABASE}", directory(&self.options));
                crate::command::output(Command::new("pgbench").args(line.split(' '))).map(|_| ())
            }
            _ => peer::prepare_anew(host, ROWS),
        }
    }

    /// CPU of a client that does nothing but send and receive, where it is measured.
    fn floor(&self, case: &Case, bare: &Path) -> Result<Option<f64>> {
        let Some(host) = self.host.as_ref().filter(|_| case.has_floor()) else { return Ok(None) };
        Ok(Some(bare_loop(bare, host, (case.connections, SECONDS))?.cpu_us))
    }
}

struct Figure {
    case: &'static Case,
    server: String,
    own: Vec<Taken>,
    peers: Vec<Taken>,
    /// CPU of the bare loop for one query.
    floors: Vec<f64>,
}

impl Figure {
    fn ratio(&self, part: fn(&Taken) -> f64) -> Spread {
        Spread::ratio(&self.own, &self.peers, part)
    }

    /// Ratio and target of each figure, and whether it is met.
    fn parts(&self) -> [(Spread, String, bool); 3] {
        let Case { most_cpu, least_rate, most_memory, .. } = *self.case;
        let part = |ratio: Spread, sign: &str, target: Option<f64>| {
            let Some(target) = target else { return (ratio, String::new(), true) };
            let is_met = if sign == "≤" { ratio.median <= target } else { ratio.median >= target };
            (ratio, format!(", {sign} {target:.2} {}", met(is_met)), is_met)
        };
        [
            part(self.ratio(|taken| taken.cpu_us), "≤", most_cpu),
            part(self.ratio(|taken| taken.rate_per_second), "≥", least_rate),
            part(self.ratio(|taken| taken.peak_bytes), "≤", most_memory),
        ]
    }

    fn row(&self) -> Vec<String> {
        let median = |of: &[Taken], part: fn(&Taken) -> f64| Spread::of(of.iter().map(part)).median;
        let pair = |part: fn(&Taken) -> f64, decimals: usize| {
            format!("{:.*}, {:.*}", decimals, median(&self.own, part), decimals, median(&self.peers, part))
        };
        let [cpu, rate, memory] = self.parts().map(|(ratio, target, _)| ratio.shown(2) + &target);
        let floor = (!self.floors.is_empty()).then(|| {
            let floors = Spread::of(self.floors.iter().copied()).median;
            let over =
                Spread::of(self.floors.iter().zip(&self.peers).map(|(floor, peer)| floor / peer.cpu_us));
            format!("{floors:.1}, {:.2}", over.median)
        });
        vec![
            self.server.clone(),
            self.case.what(),
            pair(|taken| taken.cpu_us, 1),
            cpu,
            floor.unwrap_or_default(),
            pair(|taken| taken.rate_per_second, 0),
            rate,
            pair(|taken| taken.peak_bytes / 1e6, 0),
            memory,
        ]
    }
}

/// Measures all cases, the order of the two programs changing from round to round.
pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let version = peer::version()?;
    let bare = runs::built_example("epoll_floor")?;
    let (mut figures, mut titles) = (Vec::new(), Vec::new());
    for server in [KNOWN_ANSWER, MARIADB, POSTGRES] {
        let cases: Vec<&Case> =
            CASES.iter().filter(|case| case.server == server && is_wanted(setting, case)).collect();
        if cases.is_empty() {
            continue;
        }
        let target = BenchServer::start(setting, server)?;
        let figure = |case| Figure {
            case,
            server: target.title.clone(),
            own: Vec::new(),
            peers: Vec::new(),
            floors: Vec::new(),
        };
        let mut measured: Vec<Figure> = cases.into_iter().map(figure).collect();
        for round in 1..=setting.rounds {
            for figure in &mut measured {
                let case = figure.case;
                setting.note_round(round, &format!("{}, {}", target.title, case.what()));
                // The second program finds warmer caches: they take turns.
                for is_own in [round % 2 == 0, round % 2 == 1] {
                    target.prepare(case)?;
                    let (name, taken) = match is_own {
                        true => ("dbdyno", &mut figure.own),
                        false => (case.program, &mut figure.peers),
                    };
                    taken.push(measure(setting, &target, case, is_own).with_context(|| name.to_owned())?);
                }
                figure.floors.extend(target.floor(case, &bare)?);
            }
        }
        figures.append(&mut measured);
        titles.push(target.title);
    }
    let grid = Grid { header: HEADER.to_vec(), rows: figures.iter().map(Figure::row).collect() };
    let facts = vec![
        format!("rounds: {} of {SECONDS} s", setting.rounds),
        format!("servers: {}, {}", titles.join(", "), machine::shares()),
        format!("peers: {version}, and pgbench of Debian's PostgreSQL 15"),
    ];
    let is_met = figures.iter().flat_map(Figure::parts).all(|(_, _, is_met)| is_met);
    Ok(Measured::of(&grid, facts, is_met))
}

const HEADER: [&str; 9] = [
    "server",
    "script",
    "client CPU, µs",
    "ratio (range), target",
    "bare loop, µs, ratio",
    "rate, per second",
    "ratio (range), target",
    "memory, MB",
    "ratio (range), target",
];

fn is_wanted(setting: &Setting, case: &Case) -> bool {
    setting.only.as_deref().is_none_or(|only| case.what().contains(only))
}

/// Where pgbench finds PostgreSQL's socket.
fn directory(options: &[String]) -> &str {
    let found = options.iter().find_map(|option| option.strip_prefix("--pgsql-host="));
    found.unwrap_or_default()
}

fn measure(setting: &Setting, target: &BenchServer, case: &Case, is_own: bool) -> Result<Taken> {
    let mut line =
        machine::with_many_files(if is_own { setting.dbdyno.as_os_str() } else { case.program.as_ref() });
    if is_own {
        line.args(["--quiet", case.program]);
    }
    line.args(case.words(target));
    // A file and not a pipe: its text is read when it has ended.
    let mut said = tempfile::tempfile()?;
    line.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said.try_clone()?);
    let before = children_cpu_us()?;
    let child = line.spawn().context("sh cannot be run")?;
    let (peak_bytes, status) = peak::watched(child)?;
    let cpu_us = (children_cpu_us()? - before) as f64;
    said.rewind()?;
    let text = std::io::read_to_string(said)?;
    if !status.success() {
        bail!("{} ended with {status}: {text}", case.what());
    }
    let found = if case.program == "pgbench" { processed(&text) } else { transactions(&text) };
    let (count, rate_per_second) = found.with_context(|| format!("no transactions in: {text}"))?;
    Ok(Taken { cpu_us: cpu_us / count, rate_per_second, peak_bytes })
}

/// Transactions and their rate, from pgbench's report.
fn processed(text: &str) -> Option<(f64, f64)> {
    let after = |head: &str| text.lines().find_map(|line| line.strip_prefix(head));
    let count = after("number of transactions actually processed: ")?;
    let count = count.split(['/', ' ']).next()?.parse().ok()?;
    Some((count, after("tps = ")?.split(' ').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pgbenchs_report_gives_transactions_and_their_rate() {
        let text = "transaction type: <builtin: select only>\nnumber of transactions actually processed: 1234\n\
                    tps = 617.250000 (without initial connection time)\n";
        assert_eq!(processed(text), Some((1234.0, 617.25)));
        assert_eq!(
            processed("number of transactions actually processed: 10/10\ntps = 5 (x)"),
            Some((10.0, 5.0))
        );
        assert_eq!(processed("FATAL"), None);
    }

    #[test]
    fn a_missed_target_is_said_and_one_that_is_not_asked_is_not() {
        let taken = |cpu_us| Taken { cpu_us, rate_per_second: 100.0, peak_bytes: 5e6 };
        let figure = Figure {
            case: &CASES[0],
            server: "MariaDB".to_owned(),
            own: vec![taken(9.0)],
            peers: vec![taken(10.0)],
            floors: vec![8.0],
        };
        assert_eq!(
            figure.row()[2..],
            [
                "9.0, 10.0",
                "0.90 (0.90 to 0.90), ≤ 0.80 MISSED",
                "8.0, 0.80",
                "100, 100",
                "1.00 (1.00 to 1.00), ≥ 1.00 met",
                "5, 5",
                "1.00 (1.00 to 1.00)"
            ]
        );
    }
}
