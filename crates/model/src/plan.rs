//! The types of a plan: variants with their `config`, workloads, blocks and host. The doc comments
//! on fields become the JSON Schema's descriptions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::load::ClientWait;
use crate::profile::Profile;
use crate::{
    Clients, CpuList, Load, PlanBytes, PlanDuration, PlanSize, Report, Section, named, with_defaults,
};

/// Options of workloads by name, as records keep them. In a plan with set-ups the name is
/// `WORKLOAD@SETUP`.
pub type RecordedWorkloads = Map<String, Value>;

// `W` is the type of the plan's workloads. A record keeps their options as plain values. The
// program that runs the workloads has a type for each one's options.
/// A whole plan file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan<W = RecordedWorkloads> {
    /// Short name; it ends the run directory's name. Letters, digits, `-`, `_` and `.`.
    #[schemars(regex(pattern = NAME_PATTERN))]
    pub name: String,
    /// How often every variant runs, each block in a new random order.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 10_000))]
    pub blocks: u32,
    /// Seed of everything random: operations and order.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Differences below this fraction count as none (0.02 = 2 %).
    #[serde(default = "default_margin")]
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub margin: f64,
    /// Name of the variant that the others are compared with; the first one when left out.
    #[serde(default)]
    pub base: Option<String>,
    /// A/A: runs the base under a second name too, `BASE~control`, once in every block. It shows
    /// the differences that this machine reports where there are none, and how much results
    /// scatter.
    #[serde(default)]
    pub aa: bool,
    /// Margins of single steps by pattern of the step's name, in which `*` matches any letters: `{
    /// "scan*" = 0.05 }`. A step's own name goes before a pattern, a pattern with more letters
    /// before one with fewer; other steps have `margin`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub margins: BTreeMap<String, f64>,
    /// Time that the whole run may take: once the plan's blocks are over, further blocks of the
    /// undecided variants are run while there is time. Needs `blocks` of 3 or more.
    #[serde(default)]
    pub budget: Option<PlanDuration>,
    /// How the variants take turns: `"blocks"`, each of them from start to end, or `"alternate"`:
    /// the servers of all of them stay up, and in each block every step runs on one after the
    /// other. For steps that only read.
    #[serde(default)]
    pub design: Design,
    /// What is to happen when the variants are not set alike: nothing, a warning, or no run.
    #[serde(default)]
    pub parity: Parity,
    /// Classes of settings in which the variants are meant to differ, e.g. `["torn-pages",
    /// "binlog"]`: no alarm is made of them. `dbdyno plan` and docs/reference/parity.md name the
    /// classes.
    #[serde(default)]
    pub differs: Vec<String>,
    #[serde(default)]
    pub host: Host,
    #[serde(default)]
    pub load: Load,
    /// Profiles the servers after the plan's blocks, which shows the functions that make the
    /// difference: `true`, or a table.
    #[serde(default, skip_serializing_if = "Profile::is_off")]
    pub profile: Profile,
    /// Hosts that put the load on a server at an address; without it this host does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Clients>,
    /// The variants that are compared: at least one.
    #[serde(rename = "variant")]
    #[schemars(length(min = 1))]
    pub variants: Vec<Variant>,
    pub workload: W,
    /// Sizes and concurrency of the workloads, each under a name; without any, each workload runs
    /// as its table says.
    #[serde(rename = "setup", default, skip_serializing_if = "Vec::is_empty")]
    pub setups: Vec<Setup<W>>,
    /// Your own text for the report.
    #[serde(default, skip_serializing_if = "Report::is_empty")]
    pub report: Report,
    /// Parts of the report with tables of their own, in order.
    #[serde(rename = "section", default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<Section>,
    /// The plan in other sizes, by name: `--size small`.
    #[serde(rename = "size", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, PlanSize>,
}

/// Sizes and concurrency of the workloads under a name. Each variant runs each workload once a
/// block in each set-up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Setup<W> {
    /// Name in tables and reports, e.g. `4u.1t` or `IO-bound`. Letters, digits, `-`, `_` and `.`.
    #[schemars(regex(pattern = NAME_PATTERN))]
    pub name: String,
    /// Options that are laid over those of the plan's own tables: `workload.oltp = { tables = 4 }`.
    #[serde(default, skip_serializing)]
    pub workload: W,
}

named! {
    /// How the variants of a block take turns.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Design {
        /// Each in a server of its own that starts with its cell and ends with it.
        #[default]
        Blocks = "blocks",
        /// Step by step, in servers that stay up from the first block to the last; their data are
        /// loaded once.
        Alternate = "alternate",
    }
}

/// What is to happen when variants are not set alike in a class of settings that decides results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Parity {
    /// Settings are not compared.
    Off,
    /// Differences are reported before the run, as far as they can be predicted, and in the report.
    #[default]
    Warn,
    /// Nothing is measured: at once when a difference can be predicted, otherwise after each
    /// variant was started once.
    Refuse,
}

with_defaults! {
    /// Where server and client run on this machine.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct Host {
        /// CPUs of the servers that dbdyno starts, e.g. `"0-1"`.
        pub server_cpus: Option<CpuList> = None,
        /// CPUs of the load client, e.g. `"2-3"`.
        pub client_cpus: Option<CpuList> = None,
        /// Where neither list is given: `"own"` gives servers that dbdyno starts and the client
        /// whole cores of their own, the client one for each 64 connections and at most a quarter;
        /// `"shared"` gives both all CPUs.
        pub cpus: Cpus = Cpus::Own,
        /// Threads of the load client; by default as many as the connections need, at most one a
        /// client CPU.
        #[schemars(range(min = 1))]
        pub client_threads: Option<u32> = None,
        /// How load threads wait for answers: `"sleep"` until one wakes them, which costs the
        /// server CPU, or `"spin"`: ask for them without a pause, on CPUs that no server uses. When
        /// left out, `"spin"` where `client_cpus` and `server_cpus` have none in common, otherwise
        /// `"sleep"`.
        pub client_wait: Option<ClientWait> = None,
        /// CPU time that each connection adds after each answer, e.g. `"2us"`: shows whether a
        /// figure depends on the client. None by default.
        pub client_work: Option<PlanDuration> = None,
        /// Folder for data directories; inside the run directory when left out. Its filesystem is
        /// part of what is measured.
        pub data_dir: Option<PathBuf> = None,
        /// What reports call this machine; its host name when left out.
        pub name: Option<String> = None,
        /// Memory of each server that dbdyno starts, e.g. `"2 GB"`: its own and the page cache of
        /// its files. As much as there is when left out.
        pub server_memory: Option<PlanBytes> = None,
        /// What to do where this machine cannot limit the memory: `"refuse"` to run, or `"warn"`
        /// and run without the limit.
        pub no_memory_limit: NoLimit = NoLimit::Refuse,
        /// What to do with machines of a fleet (`--on`) that are of another class than its first
        /// one, by CPU, memory or filesystem: `"refuse"` to measure on them, or `"warn"` and
        /// measure.
        pub unlike_machines: Unlike = Unlike::Refuse,
        /// A server that does not answer this long after it was started is stopped, and its cell
        /// fails.
        pub start_timeout: PlanDuration = PlanDuration::from_secs(120),
        /// A server that has not ended this long after it was asked to is killed; its cell fails if
        /// its data are still needed.
        pub stop_timeout: PlanDuration = PlanDuration::from_secs(300),
        /// A statement outside of the steps that has no answer after this time fails, and its cell
        /// with it: content checks, statistics, upkeep. Statements within steps take as long as
        /// they take. Small queries, such as for a setting, have a minute.
        pub statement_timeout: PlanDuration = PlanDuration::from_secs(3600),
        /// Pause between two cells, in which nothing runs, e.g. `"20m"`: a machine that gets hot is
        /// slower in the next cell. None by default; the originals rest for 10 to 20 minutes
        /// between builds of a server.
        pub rest: PlanDuration = PlanDuration::from_secs(0),
        /// Keep data directories after their cell (for a look at them); they are large.
        pub keep_data: bool = false,
        /// Read counters of host, server and client once per second. When off, the report lacks
        /// CPU, memory, disk and the server's own counters, and cannot show whether the client was
        /// the limit. Turn it off only to measure the cost of sampling.
        pub sampling: bool = true,
    }
}

/// Who gets which CPUs where a plan names none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cpus {
    #[default]
    Own,
    Shared,
}

/// What to do where a memory limit cannot be set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoLimit {
    /// No run, because figures of a server with more memory than the plan allows are wrong.
    #[default]
    Refuse,
    /// The report says that the limit was not set.
    Warn,
}

/// What to do with machines of a fleet that are not alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unlike {
    /// No measurement on them, because a ratio may depend on the machine.
    #[default]
    Refuse,
    /// Any machine may measure a block, and the report says so.
    Warn,
}

/// One thing that is compared: a server with a configuration. Say exactly one of `server`,
/// `basedir` and `address`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(transform = needs_name_and_server)]
pub struct Variant {
    /// Name in tables and reports. Letters, digits, `-`, `_` and `.`.
    #[schemars(regex(pattern = NAME_PATTERN))]
    pub name: String,
    /// `"sqlite"`, `"null"`, or the name of a server in the servers folder (`mariadb-10.11.5`).
    pub server: Option<String>,
    /// Base directory of a MariaDB, MySQL or PostgreSQL server that dbdyno starts with a fresh data
    /// directory.
    pub basedir: Option<PathBuf>,
    /// A database that others run: `mysql://user@host:port/db` or
    /// `mysql://user@localhost/db?socket=/path`, the same with `postgres://`. It is never started,
    /// stopped or wiped. The password comes from `password_env` or `option_file`.
    pub address: Option<String>,
    /// Config intents: the path of a file of them, relative to the plan, a table of them, or a list
    /// of these. They are rendered to the options of the server's product and version; only for
    /// servers that dbdyno starts and SQLite. What `own_config` and `options` set wins over them.
    pub config: Option<Config>,
    /// Name of this variant in published figures; its own when left out.
    pub published: Option<String>,
    /// The server's own option file, relative to the plan; only for servers that dbdyno starts. It
    /// wins over `config`. Settings of PostgreSQL are added to those that `initdb` writes.
    pub own_config: Option<PathBuf>,
    /// Options that only the server's product has, checked by the product: `{ engine = "rocksdb"
    /// }`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// Memory of this variant's server; that of `[host]` when left out. Only for servers that
    /// dbdyno starts.
    pub server_memory: Option<PlanBytes>,
    /// Environment variable that holds the password for `address`.
    pub password_env: Option<String>,
    /// File with the password for `address`: a MySQL option file, whose `[client]` group holds user
    /// and password, or a password file of PostgreSQL.
    pub option_file: Option<PathBuf>,
    /// What this variant is in a factorial design: `{ doublewrite = "off", binlog = "on" }`. When
    /// the variants that have factors are all combinations of their levels, the report shows the
    /// effect of each factor and of each two together.
    pub factors: BTreeMap<String, String>,
    /// Encryption of all connections to a MariaDB, MySQL or PostgreSQL server; none when left out.
    pub tls: Option<TlsSettings>,
}

/// How often a MySQL or MariaDB server sends the column definitions of a prepared statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ColumnDefinitions {
    /// Once where the server can (MariaDB from 10.6): it leaves them out of answers while they are
    /// those that the client knows, as MariaDB's own client library asks it to.
    #[default]
    Once,
    /// With each answer.
    Always,
}

/// How connections are encrypted. `tls = {}` is `tls = { mode = "verify" }`. Files are PEM,
/// relative to the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSettings {
    pub mode: TlsMode,
    /// Certificates of the authorities to trust, only for `verify`; those that the machine trusts
    /// when left out.
    pub ca: Option<PathBuf>,
    /// The client's certificate, for servers that want one; together with `key`.
    pub cert: Option<PathBuf>,
    /// The key of `cert`.
    pub key: Option<PathBuf>,
}

named! {
    /// Whether connections are encrypted, and what the server must prove.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum TlsMode {
        /// In plaintext.
        Off = "off",
        /// Encrypted over TCP where the server can, whichever it is; otherwise in plaintext. Over a
        /// unix socket in plaintext.
        Prefer = "prefer",
        /// Encrypted or not at all; whose certificate it is does not matter.
        Require = "require",
        /// Encrypted, and the certificate must be for the host and by a trusted authority.
        #[default]
        Verify = "verify",
    }
}

impl TlsMode {
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// Makes an empty plan, in which every option has its default.
impl<W: Default> Default for Plan<W> {
    fn default() -> Self {
        Self {
            name: String::new(),
            blocks: one(),
            seed: default_seed(),
            margin: default_margin(),
            base: None,
            aa: false,
            margins: BTreeMap::new(),
            budget: None,
            design: Design::default(),
            parity: Parity::default(),
            differs: Vec::new(),
            host: Host::default(),
            load: Load::default(),
            profile: Profile::default(),
            clients: None,
            variants: Vec::new(),
            workload: W::default(),
            setups: Vec::new(),
            report: Report::default(),
            sections: Vec::new(),
            sizes: BTreeMap::new(),
        }
    }
}

impl<W> Plan<W> {
    pub fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// Returns the memory limit of the server of variant `name`.
    pub fn server_memory(&self, name: &str) -> Option<PlanBytes> {
        self.variant(name).and_then(|variant| variant.server_memory).or(self.host.server_memory)
    }

    /// Returns the name of the base variant.
    pub fn base_name(&self) -> &str {
        self.base
            .as_deref()
            .unwrap_or_else(|| self.variants.first().map_or("", |variant| variant.name.as_str()))
    }

    /// Returns the name of the control, which is the base under a second name. It is `None` for a
    /// plan without A/A.
    pub fn control_name(&self) -> Option<String> {
        self.aa.then(|| format!("{}{CONTROL}", self.base_name()))
    }

    /// Returns the control's name if the plan has the control among its variants, as every resolved
    /// plan with A/A does.
    pub fn control(&self) -> Option<&str> {
        let name = self.control_name()?;
        self.variants.iter().map(|variant| variant.name.as_str()).find(|variant| *variant == name)
    }
}

/// The end of the control's name. Names of other variants cannot hold a `~`.
const CONTROL: &str = "~control";

/// The schema's pattern for names of plans and variants. It is the same rule that the check of a
/// plan applies.
const NAME_PATTERN: &str = "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$";

fn needs_name_and_server(schema: &mut Schema) {
    demand(schema, "name");
    let servers = ["server", "basedir", "address"].map(|key| json!({ "required": [key] }));
    schema.insert("oneOf".to_owned(), json!(servers));
}

fn one() -> u32 {
    1
}

fn default_seed() -> u64 {
    1
}

fn default_margin() -> f64 {
    0.02
}

/// How a server is configured, in words that hold for every product. Several parts are laid over
/// each other, intent by intent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "config is the path of a config file, a table of intents such as { buffer_pool = \"1 GiB\" }, or a list of these"
)]
pub enum Config {
    One(ConfigPart),
    /// Later ones win.
    Several(Vec<ConfigPart>),
}

/// One part of a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ConfigPart {
    /// A TOML file of intents, relative to the plan.
    File(PathBuf),
    /// Intents and their values. Those under `where_possible` may be left out.
    Intents(BTreeMap<String, IntentValue>),
}

/// The value of an intent; which kind it must have is the intent's matter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum IntentValue {
    Switch(bool),
    Number(i64),
    Fraction(f64),
    Text(String),
    Table(BTreeMap<String, IntentValue>),
}

impl Config {
    /// Returns the parts in the order in which they are laid over each other.
    pub fn parts(&self) -> &[ConfigPart] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Several(parts) => parts,
        }
    }

    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let parts = match self {
            Self::One(part) => std::slice::from_mut(part),
            Self::Several(parts) => parts.as_mut_slice(),
        };
        parts.iter_mut().filter_map(|part| match part {
            ConfigPart::File(path) => Some(path),
            ConfigPart::Intents(_) => None,
        })
    }
}

/// Returns the title of a server of another product that speaks a known protocol: `PGlite, which
/// speaks PostgreSQL's protocol`.
pub fn foreign_title(name: &str, speaks: &str) -> String {
    // Some names say so already: `unknown server that speaks MySQL's protocol` and `Aurora MySQL`.
    match name.contains(speaks) {
        true => name.to_owned(),
        false => format!("{name}, which speaks {speaks}'s protocol"),
    }
}

/// Makes `key` required in a table's schema. The type itself has an empty text for an absent key,
/// so that dbdyno's own message can say which table lacks it.
pub(crate) fn demand(schema: &mut Schema, key: &str) {
    schema.insert("required".to_owned(), json!([key]));
    let value = schema.pointer_mut(&format!("/properties/{key}"));
    if let Some(value) = value.and_then(Value::as_object_mut) {
        value.remove("default");
    }
}
