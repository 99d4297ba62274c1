//! The command line of `dbdyno known-answer`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use dbdyno_known_answer::{Distribution, Freeze, Half, Refusal, duration};
use dbdyno_model::CpuList;

/// Serve programmed answers to MySQL or PostgreSQL clients, to check dbdyno and other tools against
/// known times.
///
/// The server takes any user, password and database. It looks at the first words of a statement
/// only: a statement that returns rows gets the programmed ones, and everything else succeeds. Each
/// statement takes the CPU time of --burn plus a delay drawn from --delay, so that what a client
/// reports can be compared with what is true. Without them the server answers as fast as it can,
/// and shows what a client can reach.
///
/// It prints one line when it listens, and on Ctrl-C or SIGTERM what it did, as JSON: requests by
/// kind, and the programmed and the actual time of the statements.
#[derive(Debug, Parser)]
#[command(after_long_help = EXAMPLES)]
#[command(override_usage = "dbdyno known-answer [OPTIONS] --protocol NAME <--socket PATH|--port N>")]
#[command(group(clap::ArgGroup::new("address").required(true).args(["socket", "port"])))]
pub(crate) struct KnownAnswerArgs {
    /// Protocol to speak.
    #[arg(long, value_enum)]
    pub(crate) protocol: SpokenProtocol,
    /// Unix socket to listen on. For PostgreSQL it may be a folder, in which the socket is named
    /// .s.PGSQL.5432. A socket on which another server answers is not replaced.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// TCP port to listen on; 0 for any that is free.
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Address of this host for --port, so that other hosts reach it. The server takes any
    /// password.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", conflicts_with = "socket")]
    pub(crate) listen: IpAddr,
    /// Rows of the answer to a SELECT, SHOW or the like.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) rows: u32,
    /// Columns of each row.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) columns: u16,
    /// Bytes of each column.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) bytes: u32,
    /// Delay of each statement: "constant 200us", "uniform 100us 300us", "exponential 200us"
    /// (mean), "lognormal 200us 0.5" (median, sigma of the logarithm), "bimodal 100us 2ms 5%"
    /// (fast, slow, share of slow).
    #[arg(long, value_name = "DELAY", default_value = "none")]
    pub(crate) delay: Distribution,
    /// CPU time of each statement, in addition to the cost of the protocol.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) burn: Duration,
    /// Program executions of prepared statements only. Text is answered at once and without faults,
    /// so that a client's other queries (settings, status, tables) take no programmed time.
    #[arg(long)]
    pub(crate) prepared_only: bool,
    /// Times in which nothing is served: "200ms every 10s", "200ms every 10s at 3s" (the first),
    /// "200ms at 3s" (a single one). They count from the first statement, with "from start" at the
    /// end from the start of the server.
    #[arg(long, value_name = "FREEZE")]
    pub(crate) freeze: Option<Freeze>,
    /// Statements that fail, by the product's code: "1213 every 100", "40P01 every 100", "1213
    /// 0.5%". Statements are counted on each connection.
    #[arg(long, value_name = "ERROR")]
    pub(crate) error: Option<Refusal>,
    /// Close the connection instead of answering its Nth statement.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) disconnect_every: Option<u64>,
    /// Send half of an answer: "every 100" (and close), "every 100 stall 500ms" (and send the rest
    /// later).
    #[arg(long, value_name = "HALF")]
    pub(crate) half: Option<Half>,
    /// Time that a login takes.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(crate) login_delay: Duration,
    /// Refuse connections beyond this number, as the product does.
    #[arg(long, value_name = "N")]
    pub(crate) connection_limit: Option<u64>,
    /// MySQL: end results in the form of before 5.7.5, without CLIENT_DEPRECATE_EOF.
    #[arg(long)]
    pub(crate) old_eof: bool,
    /// CPUs to run on: "0-1", "0,2". All that this process may use when left out.
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus: Option<CpuList>,
    /// Threads, instead of one for each CPU. Connections are assigned to them in turn.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Seed of the random delays. The same seed gives each connection the same delays.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write what was done to this file, instead of to standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) stats: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Example: what sysbench reports of a server with exponential delays of 200 us in the mean. It needs no tables:

  dbdyno known-answer --protocol mysql --socket /tmp/answer.sock \\
      --delay \"exponential 200us\" &
  sysbench oltp_point_select --mysql-socket=/tmp/answer.sock --mysql-user=any \\
      --threads=4 --time=10 run
  kill %1";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SpokenProtocol {
    /// MySQL and MariaDB.
    Mysql,
    /// PostgreSQL.
    Postgres,
}
