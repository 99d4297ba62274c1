//! The command line of `dbdyno servers`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Get, list, add, start and remove database servers.
///
/// Servers lie as unpacked base directories in one folder: $DBDYNO_SERVERS, else
/// ~/.cache/dbdyno/servers. A plan names one by its folder: `server = "mysql-8.0.31"`. Nothing is
/// installed on this machine, and any number of versions can be kept side by side.
///
/// Servers that can be downloaded are listed in a catalogue. Entries of your own go into
/// ~/.config/dbdyno/servers.toml, or the file that $DBDYNO_CATALOGUE names.
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

/// List servers that can be downloaded, and those that are here with their features.
///
/// The features come from the server itself, which was started once on fresh data when it was
/// downloaded or added.
#[derive(Debug, Parser)]
pub(crate) struct ServersListArgs {
    /// Only downloaded and added servers.
    #[arg(long)]
    pub(crate) here: bool,
    /// Print JSON instead, with all engines and logins.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Download servers of the catalogue.
///
/// Each is downloaded, checked (SHA-256; Debian packages by apt's signature), unpacked, started
/// once on fresh data and asked what it can do. A failed download leaves no files. A server that is
/// here is not downloaded again.
#[derive(Debug, Parser)]
pub(crate) struct ServersGetArgs {
    /// Names in the catalogue; `dbdyno servers list` shows them.
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// Take the tarball from this file, or from this folder under the vendor's file name, instead
    /// of downloading it. It is checked and started as if it had been downloaded.
    #[arg(long, value_name = "FILE|FOLDER")]
    pub(crate) from: Option<PathBuf>,
}

/// Name a server that you built or installed, for use in plans.
///
/// It is started once on fresh data and asked what it can do. Its base directory stays where it is,
/// and as it is. After a rebuild in place, add it again.
#[derive(Debug, Parser)]
pub(crate) struct ServersAddArgs {
    /// Name for plans: letters, digits, dots, dashes and underscores.
    pub(crate) name: String,
    /// What `make install`, a binary tarball or a package made: the folder with bin/mysqld,
    /// bin/mariadbd, sbin/mysqld, usr/sbin/mariadbd, bin/postgres or the like.
    #[arg(long, value_name = "DIR")]
    pub(crate) basedir: PathBuf,
}

/// Start a server on fresh data, for trying things out, until Ctrl-C.
///
/// It listens on a private unix socket only, and its superuser has no password. When it ends, its
/// data is removed.
#[derive(Debug, Parser)]
pub(crate) struct ServersStartArgs {
    /// A downloaded or added server.
    pub(crate) name: String,
    /// The server's own option file: my.cnf, or settings of postgresql.conf.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Remove a downloaded server, or forget one that was added.
///
/// The base directory of a server that was added stays. Folders that dbdyno did not create are
/// refused.
#[derive(Debug, Parser)]
pub(crate) struct ServersRemoveArgs {
    /// A downloaded or added server.
    pub(crate) name: String,
}
