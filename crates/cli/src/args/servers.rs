//! The command line of `dbdyno servers`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ServersVerb {
    /// List servers that can be downloaded, and those that are here with their features.
    ///
    /// The features come from the server itself, which was started once on fresh data when it was
    /// downloaded or added.
    List {
        /// Only downloaded and added servers.
        #[arg(long)]
        here: bool,
        /// Print JSON instead, with all engines and logins.
        #[arg(long)]
        json: bool,
    },
    /// Download servers of the catalogue.
    ///
    /// Each is downloaded, checked (SHA-256; Debian packages by apt's signature), unpacked, started
    /// once on fresh data and asked what it can do. A failed download leaves no files. A server
    /// that is here is not downloaded again.
    Get {
        /// Names in the catalogue; `dbdyno servers list` shows them.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// Take the tarball from this file, or from this folder under the vendor's file name,
        /// instead of downloading it. It is checked and started as if it had been downloaded.
        #[arg(long, value_name = "FILE|FOLDER")]
        from: Option<PathBuf>,
    },
    /// Name a server that you built or installed, for use in plans.
    ///
    /// It is started once on fresh data and asked what it can do. Its base directory stays where it
    /// is, and as it is. After a rebuild in place, add it again.
    Add {
        /// Name for plans: letters, digits, dots, dashes and underscores.
        name: String,
        /// What `make install`, a binary tarball or a package made: the folder with bin/mysqld,
        /// bin/mariadbd, sbin/mysqld, usr/sbin/mariadbd, bin/postgres or the like.
        #[arg(long, value_name = "DIR")]
        basedir: PathBuf,
    },
    /// Start a server on fresh data, for trying things out, until Ctrl-C.
    ///
    /// It listens on a private unix socket only, and its superuser has no password. When it ends,
    /// its data is removed.
    Start {
        /// A downloaded or added server.
        name: String,
        /// The server's own option file: my.cnf, or settings of postgresql.conf.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    /// Remove a downloaded server, or forget one that was added.
    ///
    /// The base directory of a server that was added stays. Folders that dbdyno did not create are
    /// refused.
    Remove {
        /// A downloaded or added server.
        name: String,
    },
}
