//! The command line of `dbdyno doctor`.

use std::path::PathBuf;

use clap::Parser;
use dbdyno_model::{CpuList, PlanDuration};

/// Check whether this machine is fit for measuring, or calibrate the load client on it.
///
/// Without --client it looks at CPUs, memory, the disk under the data, the kernel, limits and other
/// programs, for about three seconds, and prints a line for each check with a verdict (`good`;
/// `note`: figures may be worse or vary more than they need; `bad`: measuring makes no sense) and a
/// remedy. The status is 3 when something is bad. Nothing is changed; a small file is written and
/// removed to time an fsync.
///
/// With --client it runs point selects against servers that only answer (`dbdyno known-answer`,
/// MySQL's and PostgreSQL's protocol), prints the rates, and keeps them in client-calibration.json
/// in the cache folder. `dbdyno run` finds them there and has steps in which the client was the
/// limit marked invalid.
#[derive(Debug, Parser)]
pub(crate) struct DoctorArgs {
    /// Calibrate the load client.
    #[arg(long)]
    pub(crate) client: bool,
    /// Folder for the data; its disk is checked. The current folder when left out.
    #[arg(long, value_name = "DIR", conflicts_with = "client")]
    pub(crate) data_dir: Option<PathBuf>,
    /// CPUs of the client, as `client_cpus` of a plan: "2-3". All when left out.
    #[arg(long, value_name = "CPUS", requires = "client")]
    pub(crate) client_cpus: Option<CpuList>,
    /// CPUs of the server that answers, as `server_cpus` of a plan: "0-1". All when left out.
    #[arg(long, value_name = "CPUS", requires = "client")]
    pub(crate) server_cpus: Option<CpuList>,
    /// Load threads, as `client_threads` of a plan. dbdyno's own choice when left out.
    #[arg(long, value_name = "N", requires = "client")]
    pub(crate) client_threads: Option<u32>,
    /// How load threads wait for answers, as `client_wait` of a plan: "sleep" or "spin". As in a
    /// plan when left out.
    #[arg(long, value_name = "HOW", requires = "client", value_parser = ["sleep", "spin"])]
    pub(crate) client_wait: Option<String>,
    /// Numbers of connections.
    #[arg(
        long,
        value_name = "N,N",
        requires = "client",
        value_delimiter = ',',
        default_value = "1,16,64,256,1024"
    )]
    pub(crate) connections: Vec<u32>,
    /// How long each number of connections is measured; at least a second.
    #[arg(long, value_name = "TIME", requires = "client", value_parser = PlanDuration::of_argument, default_value = "2s")]
    pub(crate) time: PlanDuration,
    /// Print JSON instead.
    #[arg(long)]
    pub(crate) json: bool,
}
