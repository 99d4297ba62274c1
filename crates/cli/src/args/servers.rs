//! The command line of `dbdyno servers`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Get, list, add, start and remove database servers.
///
/// Servers lie as unpacked base directories in one folder: $DBDYNO_SERVERS, else ~/.cache/dbdyno/servers. A plan names one
/// by its folder: `server = "mysql-8.0.31"`. Nothing is installed on this machine, and any number of versions stand side by
/// side.
///
/// What can be got stands in a catalogue. Entries of your own go into ~/.config/dbdyno/servers.toml, or the file that
/// $DBDYNO_CATALOGUE names.
#[derive(Debug, Parser)]
pub(crate) struct ServersArgs {
    #[command(subcommand)]
    pub(crate) verb: ServersVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersVerb {
    List(ServersListArgs),
    Get(ServersGetArgs),
    Add(ServersAddArgs),
    Start(ServersStartArgs),
    Remove(ServersRemoveArgs),
}

/// List servers that can be got and those that are here, with what each of those can do.
///
/// What a server can do was asked when it was got or added: it was started once on fresh data.
#[derive(Debug, Parser)]
pub(crate) struct ServersListArgs {
    /// Only those that are here.
    #[arg(long)]
    pub(crate) here: bool,
    /// Print JSON instead, with all engines and logins.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Get servers of the catalogue.
///
/// Each is downloaded, checked (SHA-256; Debian packages by apt's signature), unpacked, started once on fresh data and
/// asked what it can do. What fails leaves nothing behind. A server that is here is not downloaded again.
#[derive(Debug, Parser)]
pub(crate) struct ServersGetArgs {
    /// Names in the catalogue; `dbdyno servers list` shows them.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

/// Give a server that you have built or installed a name for plans.
///
/// It is started once on fresh data and asked what it can do. Its base directory stays where it is, and as it is. After a
/// rebuild in place, add it again.
#[derive(Debug, Parser)]
pub(crate) struct ServersAddArgs {
    /// Name for plans: letters, digits, dots, dashes and underscores.
    pub(crate) name: String,
    /// What `make install`, a binary tarball or a package made: the folder with bin/mysqld, bin/mariadbd, sbin/mysqld,
    /// usr/sbin/mariadbd, bin/postgres or the like.
    #[arg(long, value_name = "DIR")]
    pub(crate) basedir: PathBuf,
}

/// Start a server to play with, on fresh data, until Ctrl-C.
///
/// It listens on a private unix socket only, and the user who may do anything has no password. When it ends, its data is
/// removed.
#[derive(Debug, Parser)]
pub(crate) struct ServersStartArgs {
    /// A server that is here.
    pub(crate) name: String,
    /// The server's own option file: my.cnf, or settings of postgresql.conf.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Remove a server that dbdyno has got, or forget one that was added.
///
/// The base directory of a server that was added stays. What somebody else has put into the servers folder is refused.
#[derive(Debug, Parser)]
pub(crate) struct ServersRemoveArgs {
    /// A server that is here.
    pub(crate) name: String,
}
