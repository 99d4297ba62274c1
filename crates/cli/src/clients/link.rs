//! The connection to one agent, with a thread that serves it.

use std::io;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use dbdyno_loadgen::FromHost;
use dbdyno_record::ToolInfo;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::agent::unix_us;
use super::usage::Used;
use super::wire::{Credentials, FromAgent, ToAgent, converse};
use crate::exit::ExitError;
use crate::host;

/// Longest time that an agent takes for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time without a message after which an agent counts as lost. It sends one each second.
const SILENCE: Duration = Duration::from_secs(20);
/// Time after which a conductor sends a sign of life when it has nothing else to send.
const PULSE: Duration = Duration::from_secs(10);

/// Messages of an agent that do not come from a load thread.
pub(super) enum Answer {
    Hello {
        tool: ToolInfo,
        cpus: u32,
        clock_source: String,
        boot_id: String,
    },
    Pong(Clock),
    Done(Used),
    /// Nothing more will come of the step or of the agent, for this reason.
    Lost(String),
}

/// How an agent's clock differs from this process's clock, by one round trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clock {
    /// The agent's clock minus this process's, in nanoseconds.
    pub(super) ahead_ns: i64,
    /// Half of the round trip, in microseconds.
    pub(super) error_us: u64,
    /// The agent's time of day minus this host's, in microseconds.
    pub(super) offset_us: i64,
}

pub(super) struct Link {
    /// The agent's number.
    pub(super) host: usize,
    pub(super) name: String,
    pub(super) messages: Sender<(usize, FromHost)>,
    pub(super) answers: Sender<(usize, Answer)>,
    /// Moment from which this process counts its times.
    pub(super) zero: Instant,
}

impl Link {
    /// Connects to the agent that listens at `port` of its host, and sends it what comes through
    /// `orders`. It ends when no sender is left.
    pub(super) fn attend(
        self,
        port: u16,
        credentials: Credentials,
        orders: UnboundedReceiver<ToAgent>,
    ) -> Result<(), ExitError> {
        let runtime = host::event_loop()?;
        thread::spawn(move || {
            let why = runtime.block_on(async {
                match connect(&self.name, port, &credentials).await {
                    Ok(stream) => {
                        let message = |order| match order {
                            None => ToAgent::Alive,
                            Some(ToAgent::Ping { .. }) => ToAgent::Ping { sent_ns: self.now_ns() },
                            Some(order) => order,
                        };
                        let take = |received| self.take(received);
                        converse(stream, (SILENCE, PULSE), take, orders, message).await.to_string()
                    }
                    Err(error) => format!("no connection: {error}"),
                }
            });
            self.lost(format!("client host {} was lost: {why}", self.name));
        });
        Ok(())
    }

    fn lost(&self, why: String) {
        let _ = self.messages.send((self.host, FromHost::Lost(why.clone())));
        let _ = self.answers.send((self.host, Answer::Lost(why)));
    }

    fn take(&self, said: FromAgent) {
        let answer = match said {
            FromAgent::Said(message) => {
                let _ = self.messages.send((self.host, FromHost::Message(message)));
                return;
            }
            FromAgent::Failed(why) => return self.lost(format!("client host {}: {why}", self.name)),
            FromAgent::Alive => return,
            FromAgent::Hello { tool, cpus, clock_source, boot_id } => {
                Answer::Hello { tool, cpus, clock_source, boot_id }
            }
            FromAgent::Done(used) => Answer::Done(used),
            FromAgent::Pong { sent_ns, agent_ns, unix_us: its } => {
                let (now_ns, now_us) = (self.now_ns(), unix_us());
                let half_ns = now_ns.saturating_sub(sent_ns) / 2;
                let error_us = half_ns.div_ceil(1000);
                Answer::Pong(Clock {
                    ahead_ns: difference(agent_ns, sent_ns + half_ns),
                    error_us,
                    offset_us: its - (now_us - i64::try_from(error_us).unwrap_or(i64::MAX)),
                })
            }
        };
        let _ = self.answers.send((self.host, answer));
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn difference(one: u64, other: u64) -> i64 {
    i64::try_from(i128::from(one) - i128::from(other)).unwrap_or(i64::MAX)
}

/// Opens a connection in which both sides have proved their identity.
pub(super) async fn connect(
    name: &str,
    port: u16,
    credentials: &Credentials,
) -> io::Result<TlsStream<TcpStream>> {
    let connector = credentials.connector().map_err(io::Error::other)?;
    let server = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let made = async {
        let stream = TcpStream::connect((name, port)).await?;
        stream.set_nodelay(true)?;
        connector.connect(server, stream).await
    };
    timeout(HANDSHAKE, made).await.map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no handshake"))?
}
