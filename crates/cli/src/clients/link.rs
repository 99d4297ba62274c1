//! The connection between the conductor of a run and one agent. It carries frames of JSON over TLS.
//! Each side proves its identity by a certificate that was made for this connection. A thread of
//! the conductor serves each connection.

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use std::{io, thread};

use dbdyno_db::{Secret, TlsPem};
use dbdyno_loadgen::{FromHost, HostMessage, HostShare, StepCommand};
use dbdyno_record::ToolInfo;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::clients::agent::{Used, unix_us};
use crate::exit::{BoxedError, ExitError};
use crate::host;

/// Longest wait for the TLS handshake with an agent.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Time without a message after which an agent counts as lost. It sends one each second.
const SILENCE: Duration = Duration::from_secs(20);
/// Time after which the conductor sends a heartbeat when it has nothing else to send.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Messages of an agent that do not come from a load thread.
pub(super) enum AgentAnswer {
    Hello {
        tool: ToolInfo,
        cpus: u32,
        clock_source: String,
        boot_id: String,
    },
    Pong(AgentClock),
    Done(Used),
    /// The agent or its part of the step is lost, for this reason.
    Lost(String),
}

/// The difference between an agent's clock and this process's clock, as one round trip shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AgentClock {
    /// The agent's clock minus this process's, in nanoseconds.
    pub(super) ahead_ns: i64,
    /// Half of the round trip, in microseconds.
    pub(super) error_us: u64,
    /// The agent's time of day minus this host's, in microseconds.
    pub(super) offset_us: i64,
}

pub(super) struct AgentLink {
    /// The agent's number.
    pub(super) host: usize,
    pub(super) name: String,
    pub(super) messages: Sender<(usize, FromHost)>,
    pub(super) answers: Sender<(usize, AgentAnswer)>,
    /// Moment from which this process counts its times.
    pub(super) zero: Instant,
}

impl AgentLink {
    /// Connects to the agent that listens at `port` of its host, and forwards `orders` to it. The
    /// connection ends when `orders` has no sender left.
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
                        converse(stream, (SILENCE, HEARTBEAT), take, orders, message).await.to_string()
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
        let _ = self.answers.send((self.host, AgentAnswer::Lost(why)));
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
                AgentAnswer::Hello { tool, cpus, clock_source, boot_id }
            }
            FromAgent::Done(used) => AgentAnswer::Done(used),
            FromAgent::Pong { sent_ns, agent_ns, unix_us: its } => {
                let (now_ns, now_us) = (self.now_ns(), unix_us());
                let half_ns = now_ns.saturating_sub(sent_ns) / 2;
                let error_us = half_ns.div_ceil(1000);
                AgentAnswer::Pong(AgentClock {
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

/// Longest frame in bytes. No message comes near it, because one second of a step takes some tens
/// of kilobytes.
const LONGEST_FRAME: u32 = 64 << 20;

#[derive(Serialize, Deserialize)]
pub(super) enum ToAgent {
    /// The agent answers this at once.
    Ping {
        sent_ns: u64,
    },
    Step(Box<AgentTask>),
    /// A command to the running step, with times by the agent's own clock.
    Word(StepCommand<u64>),
    Alive,
}

/// A step, and the settings with which the agent runs its part of it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct AgentTask {
    pub(crate) plan: dbdyno_model::Plan,
    pub(crate) variant: String,
    pub(crate) workload: String,
    pub(crate) step: usize,
    /// State of the step's tasks, see [`dbdyno_workloads::Steps::tasks_state`].
    pub(crate) state: Value,
    pub(crate) warmup: Duration,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) sets_autocommit: bool,
    /// The capabilities that the server lacks, by the names that
    /// [`dbdyno_db::Capabilities::do_without`] knows.
    pub(crate) missing: Vec<String>,
    /// Seed of the step's random numbers.
    pub(crate) draws: u64,
    pub(crate) part: HostShare,
}

#[derive(Serialize, Deserialize)]
pub(super) enum FromAgent {
    Hello {
        tool: ToolInfo,
        cpus: u32,
        clock_source: String,
        boot_id: String,
    },
    /// Answer to a ping. `agent_ns` is by the agent's own clock.
    Pong {
        sent_ns: u64,
        agent_ns: u64,
        unix_us: i64,
    },
    Said(HostMessage),
    /// The agent's part of the step is over.
    Done(Used),
    /// The agent's part of the step is over, or never began, for this reason.
    Failed(String),
    Alive,
}

/// The certificate and key of one side, and the authority that it trusts, in PEM. An agent reads
/// them from its standard input.
#[derive(Serialize, Deserialize)]
pub(super) struct Credentials {
    authorities: String,
    certificate: String,
    key: String,
}

impl From<TlsPem> for Credentials {
    fn from(pem: TlsPem) -> Self {
        let TlsPem { authorities, certificate, key } = pem;
        Self { authorities, certificate, key: Secret::reveal(&key).to_owned() }
    }
}

impl Credentials {
    /// Makes the agent's side of TLS.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor, BoxedError> {
        let provider = Arc::new(ring::default_provider());
        let roots = Arc::new(self.roots()?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build()?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(verifier)
            .with_single_cert(certificates(&self.certificate)?, self.key()?)?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Makes the conductor's side of TLS.
    pub(super) fn connector(&self) -> Result<TlsConnector, BoxedError> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(self.roots()?)
            .with_client_auth_cert(certificates(&self.certificate)?, self.key()?)?;
        Ok(TlsConnector::from(Arc::new(config)))
    }

    fn roots(&self) -> Result<RootCertStore, pem::Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(&self.authorities)?);
        Ok(roots)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, pem::Error> {
        PrivateKeyDer::from_pem_slice(self.key.as_bytes())
    }
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, pem::Error> {
    CertificateDer::pem_slice_iter(pem.as_bytes()).collect()
}

/// Talks to the other side until the connection ends, and returns why it ended. `message` turns
/// each order into the message to send. It gets `None` when no order has come for the time `pulse`.
/// `take` gets the other side's messages. The connection ends when none has come for the time
/// `silence`.
pub(super) async fn converse<Received: DeserializeOwned, Sent: Serialize>(
    stream: impl AsyncRead + AsyncWrite,
    (silence, pulse): (Duration, Duration),
    mut take: impl FnMut(Received),
    mut orders: UnboundedReceiver<Sent>,
    message: impl Fn(Option<Sent>) -> Sent,
) -> io::Error {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let listen = async {
        loop {
            match receive(&mut reader, silence).await {
                Ok(received) => take(received),
                Err(error) => return error,
            }
        }
    };
    let talk = async {
        loop {
            let order = match timeout(pulse, orders.recv()).await {
                Ok(None) => return io::Error::other("the run is over"),
                Ok(order) => order,
                Err(_) => None,
            };
            if let Err(error) = send(&mut writer, &message(order)).await {
                return error;
            }
        }
    };
    tokio::select! { why = listen => why, why = talk => why }
}

async fn send(to: &mut (impl AsyncWrite + Unpin), message: &impl Serialize) -> io::Result<()> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - 4).map_err(io::Error::other)?;
    frame[..4].copy_from_slice(&length.to_be_bytes());
    to.write_all(&frame).await?;
    to.flush().await
}

/// Waits for the next message, but not longer than `silence`.
async fn receive<T: DeserializeOwned>(
    from: &mut (impl AsyncRead + Unpin),
    silence: Duration,
) -> io::Result<T> {
    let whole = async {
        let length = from.read_u32().await?;
        if length > LONGEST_FRAME {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
        }
        let mut body = vec![0; length as usize];
        from.read_exact(&mut body).await?;
        Ok(serde_json::from_slice(&body)?)
    };
    let no_word =
        |_| io::Error::new(io::ErrorKind::TimedOut, format!("no message for {} s", silence.as_secs()));
    timeout(silence, whole).await.map_err(no_word)?
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(5);

    #[tokio::test(flavor = "current_thread")]
    async fn messages_arrive_as_they_were_sent_and_anything_else_is_an_error() {
        let (mut one, mut other) = tokio::io::duplex(1 << 16);
        for sent_ns in [0, u64::MAX] {
            send(&mut one, &ToAgent::Ping { sent_ns }).await.unwrap();
            let ToAgent::Ping { sent_ns: came } = receive(&mut other, SILENCE).await.unwrap() else {
                panic!()
            };
            assert_eq!(came, sent_ns);
        }
        let command = ToAgent::Word(StepCommand::End { window_end_ns: Some(7), end_ns: 9 });
        send(&mut one, &command).await.unwrap();
        let ToAgent::Word(came) = receive(&mut other, SILENCE).await.unwrap() else { panic!() };
        assert_eq!(came, StepCommand::End { window_end_ns: Some(7), end_ns: 9 });
        let kind = |received: io::Result<ToAgent>| received.err().unwrap().kind();
        send(&mut one, &"no order").await.unwrap();
        assert_eq!(kind(receive(&mut other, SILENCE).await), io::ErrorKind::InvalidData);
        assert_eq!(kind(receive(&mut other, Duration::from_millis(1)).await), io::ErrorKind::TimedOut);
        one.write_all(&u32::MAX.to_be_bytes()).await.unwrap();
        assert_eq!(kind(receive(&mut other, SILENCE).await), io::ErrorKind::InvalidData);
        drop(one);
        assert_eq!(kind(receive(&mut other, SILENCE).await), io::ErrorKind::UnexpectedEof);
    }
}
