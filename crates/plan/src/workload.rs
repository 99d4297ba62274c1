//! The workloads of a plan: their tables, the kinds that read these tables, and the options that
//! result. The caller supplies the kinds.

use std::any::Any;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::time::Duration;

use dbdyno_model::{Cold, DataMode};
use dbdyno_products::ALL;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::{Forecast, Plan, Size, StepEstimate};

/// A mistake in a workload's table: the dotted key inside it, and the correction to make.
pub type Mistake = (&'static str, String);

/// A workload that plans can name.
pub trait WorkloadKind: Sync {
    /// Name of its table: `[workload.NAME]`.
    fn name(&self) -> &'static str;

    fn read(&self, table: WorkloadTable<'_>) -> Result<Box<dyn WorkloadOptions>, TableError>;

    /// Returns the table's JSON Schema.
    fn schema(&self, generator: &mut SchemaGenerator) -> Schema;
}

/// The options of one workload in a plan.
pub trait WorkloadOptions: Any + fmt::Debug + Send + Sync + Values {
    /// Returns the first mistake, in the options alone or together with the rest of the plan.
    fn check(&self, plan: &Plan) -> Option<Mistake>;

    /// Replaces short forms by their long forms, so that a record shows every option in full.
    fn spell_out(&mut self);

    /// Returns warnings about legal but doubtful options. Each one is a sentence to show before a
    /// run.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the workload's requirements on servers and on this machine.
    fn needs(&self) -> Needs;

    /// Returns the prepared statements of the step that has the most, over all connections.
    /// `with_begin` says that BEGIN, where it is sent, is a prepared statement too.
    fn prepared_statements(&self, _with_begin: bool) -> u64 {
        0
    }

    /// Returns the steps in the order in which they run.
    fn steps(&self) -> Vec<StepOutline>;

    /// Returns the steps' names.
    fn step_names(&self) -> Vec<String> {
        self.steps().into_iter().map(|step| step.name).collect()
    }

    /// Returns how many of the first steps only make the data. The other steps are measured on
    /// these data, and the data mode determines the state of the data at the start of each.
    fn load_steps(&self) -> usize {
        self.steps().iter().filter(|step| step.loads).count()
    }

    /// Forecasts how long the steps are, the work that they do, and how much disk they need on a
    /// kind of server.
    fn estimate(&self, size: &Size) -> Forecast;
}

/// Options of any type that can be written in the form that records keep.
pub trait Values {
    fn values(&self) -> Map<String, Value>;
}

impl<T: Serialize> Values for T {
    fn values(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }
}

/// A workload's requirements on the run around its steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Connections that its largest step has open at once.
    pub connections: u32,
    /// Approximate bytes that its tables take on disk after the load, on any server. It is `None`
    /// where the workload cannot know.
    pub data_bytes: Option<u64>,
    /// Data that a measured step finds.
    pub data: DataMode,
    pub cold: Cold,
    /// Whether it prepares statements on servers that speak MySQL's protocol.
    pub prepares: bool,
    /// Whether it has the option `use_existing`: it then runs on tables that others made, and makes
    /// none.
    pub existing_tables: bool,
    /// Whether its load streams rows, by LOAD DATA LOCAL where a server has that. Such a server
    /// needs `local_infile` on.
    pub row_streams: bool,
    /// Whether its operations take so long that waking a load thread costs nothing in comparison.
    /// Threads then sleep unless the plan has `client_wait`.
    pub long_operations: bool,
    /// Whether several client hosts can share the connections of its measured steps.
    pub client_hosts: bool,
}

/// A step's properties that are known before it runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepOutline {
    pub name: String,
    /// Whether it only makes the data. Such steps come first.
    pub loads: bool,
    /// Whether the data mode may restore data or restart the server before it. It is false for a
    /// step that continues with the data of the step before it.
    pub begins_group: bool,
    /// Whether its result is left out of every summary.
    pub is_warm_up: bool,
    /// Whether it leaves other rows than it finds, so that later steps depend on it. Otherwise the
    /// step only reads.
    pub changes_data: bool,
    /// Whether the steps after it can run when the server has refused it, because it changes
    /// nothing that they work on.
    pub leaves_data: bool,
    /// Whether the tables are read after it has completed, and compared with the expected contents.
    pub is_checked: bool,
    /// Whether the server comes to rest after it.
    pub rest: Rest,
    /// Time after the barrier, in whole seconds, that counts in no rate.
    pub warmup: Duration,
    /// Longest time that it may take, if there is a limit.
    pub time_cap: Option<Duration>,
    /// Its length, including its warm-up, as far as the length is certain, and the work with which
    /// it ends.
    pub estimate: StepEstimate,
}

/// Whether the server comes to rest between a step and the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Rest {
    #[default]
    Never,
    /// The server rests where the plan asks for it after each writing step. No forecast counts this
    /// rest.
    EachWrite,
    /// The server always rests, unless the plan wants no rest at all. A forecast calls this rest by
    /// the text, such as `after l.i2`.
    Always(String),
}

impl StepOutline {
    /// Makes a measured step that changes data, begins on data of its own, and ends only with its
    /// work.
    pub fn new(estimate: StepEstimate) -> Self {
        let name = estimate.name.clone();
        Self { name, begins_group: true, changes_data: true, estimate, ..Self::default() }
    }
}

/// The workloads that plans can name.
pub type Kinds<'a> = &'a [&'a dyn WorkloadKind];

/// A workload by name, with its options. In a plan with set-ups the name is `WORKLOAD@SETUP`.
pub(crate) type Named = (String, Box<dyn WorkloadOptions>);

/// A plan's workloads. Each one is a table `[workload.NAME]`.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, IgnoredAny>")]
pub struct Workloads(Vec<Named>);

impl Workloads {
    /// Keeps the workloads in the order of the caller's kinds.
    pub(crate) fn new(all: Vec<Named>) -> Self {
        Self(all)
    }

    /// Returns names and options of the plan's workloads, in the order of a cell list.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &dyn WorkloadOptions)> {
        self.0.iter().map(|(name, options)| (name.as_str(), &**options))
    }

    pub fn get(&self, name: &str) -> Option<&dyn WorkloadOptions> {
        self.iter().find(|(own, _)| *own == name).map(|(_, options)| options)
    }

    /// Returns the options of type `T`, from the first workload that has them.
    pub fn options<T: WorkloadOptions>(&self) -> Option<&T> {
        self.iter().find_map(|(_, options)| (options as &dyn Any).downcast_ref())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn WorkloadOptions>> {
        self.0.iter_mut().map(|(_, options)| options)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> Vec<&str> {
        self.iter().map(|(name, _)| name).collect()
    }

    /// Returns `data` and `cold` of the workload `name`, or the defaults where the plan lacks it.
    pub fn data_of(&self, name: &str) -> (DataMode, Cold) {
        let needs = self.get(name).map_or_else(Needs::default, WorkloadOptions::needs);
        (needs.data, needs.cold)
    }

    /// Whether some step of the plan begins with empty caches.
    pub fn is_cold(&self) -> bool {
        self.iter().any(|(_, options)| options.needs().cold.is_any())
    }

    /// Returns the connections that the largest step of any workload has open at once.
    pub fn most_connections(&self) -> u32 {
        self.iter().map(|(_, options)| options.needs().connections).max().unwrap_or(0)
    }

    /// Returns the prepared statements of the step that has the most. MySQL and MariaDB limit the
    /// number over all connections.
    pub fn most_prepared_statements(&self, with_begin: bool) -> u64 {
        self.iter().map(|(_, options)| options.prepared_statements(with_begin)).max().unwrap_or(0)
    }

    /// Whether a workload runs on existing tables. dbdyno then owns, makes and marks no database
    /// for it.
    pub fn use_existing_tables(&self) -> bool {
        self.iter().any(|(_, options)| options.needs().existing_tables)
    }

    fn values(&self) -> BTreeMap<&str, Map<String, Value>> {
        self.iter().map(|(name, options)| (name, options.values())).collect()
    }
}

impl PartialEq for Workloads {
    fn eq(&self, other: &Self) -> bool {
        self.values() == other.values()
    }
}

/// Leaves out options that are not set, because TOML cannot write an absent value.
impl Serialize for Workloads {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_map(Some(self.0.len()))?;
        for (name, options) in self.iter() {
            all.serialize_entry(name, &without_nulls(Value::Object(options.values())))?;
        }
        all.end()
    }
}

/// Returns the plan as records keep it.
///
/// # Errors
/// Fails if the plan has a value that JSON cannot write.
pub fn recorded(plan: &Plan) -> Result<dbdyno_model::Plan, serde_json::Error> {
    serde_json::from_value(serde_json::to_value(plan)?)
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let set = map.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(set.map(|(key, value)| (key, without_nulls(value))).collect())
        }
        value => value,
    }
}

/// Accepts only an empty map, because the kinds have already taken their tables out of it.
impl TryFrom<BTreeMap<String, IgnoredAny>> for Workloads {
    type Error = String;

    fn try_from(tables: BTreeMap<String, IgnoredAny>) -> Result<Self, String> {
        match tables.into_keys().next() {
            None => Ok(Self::default()),
            Some(name) => Err(format!("nothing here reads workload {name}")),
        }
    }
}

/// Describes the map without its tables, whose schemas come from the kinds.
impl JsonSchema for Workloads {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Workloads".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "object",
            "additionalProperties": false,
            "properties": {},
            "description": "The workloads of a plan; each is a table `[workload.NAME]`.",
            "minProperties": 1
        })
    }
}

/// Returns the JSON Schema of plan files with the workloads of `kinds`. Editors and other programs
/// check plans with it.
pub fn json_schema(kinds: &[&dyn WorkloadKind]) -> Value {
    let mut generator = SchemaGenerator::default();
    let mut schema = generator.root_schema_for::<Plan>();
    let tables = kinds.iter().map(|kind| {
        let table = kind.schema(&mut generator);
        (kind.name().to_owned(), json!({ "anyOf": [table, { "type": "null" }], "default": null }))
    });
    let tables: Map<String, Value> = tables.collect();
    let options_of_products = ALL.iter().flat_map(|family| family.options.schemas(&mut generator)).collect();
    let mut all = generator.take_definitions(true);
    all["Workloads"]["properties"] = Value::Object(tables);
    let options = &mut all["Variant"]["properties"]["options"];
    options["additionalProperties"] = Value::Bool(false);
    options["properties"] = Value::Object(options_of_products);
    schema.insert("$defs".to_owned(), Value::Object(all));
    // Line ends of a comment mean nothing to the reader of a description, but empty lines do.
    let mut unwrap_lines = RecursiveTransform(|schema: &mut Schema| {
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.split("\n\n").map(|part| part.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
        }
    });
    unwrap_lines.transform(&mut schema);
    schema.to_value()
}

/// Returns the mistake in `data` and `cold` of a workload: the key, and the correction to make.
/// `is_chain` says that each step continues with the tables of the step before, so that no step can
/// begin on freshly loaded data.
pub fn data_problem(options: &dyn WorkloadOptions, is_chain: bool) -> Option<Mistake> {
    let Needs { data, cold, .. } = options.needs();
    if is_chain && data.restores_each_step() {
        let message = format!(
            "data = \"{}\" does not fit: each step goes on with the tables of the one before it; use \"preserve\", \
             \"restart\" or \"restore\"",
            data.name()
        );
        return Some(("data", message));
    }
    let Cold::Steps(names) = cold else { return None };
    let measured = options.step_names().split_off(options.load_steps());
    let unknown = names.iter().find(|name| !measured.contains(name))?;
    Some((
        "cold",
        format!("cold names {unknown}, which is no step after the load; there are: {}", measured.join(", ")),
    ))
}

/// `[workload.NAME]` as parsed, before it becomes a workload's options.
#[derive(Debug)]
pub struct WorkloadTable<'a>(Spanned<DeValue<'a>>);

/// The reason why a table cannot become options. The error has the position in the file.
#[derive(Debug)]
pub struct TableError(pub(crate) toml::de::Error);

/// Refuses any table with an error at the table's position.
pub(crate) struct Refusal(String);

impl<'a> Visitor<'a> for Refusal {
    type Value = Infallible;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table")
    }

    fn visit_map<A: MapAccess<'a>>(self, _: A) -> Result<Infallible, A::Error> {
        Err(A::Error::custom(self.0))
    }
}

/// Writes the sentence about a part that this build of dbdyno leaves out, with the command that
/// builds it in.
pub fn built_without(part: BuildPart) -> String {
    format!("this dbdyno was built without {}; {} has them", part.what, part.command())
}

/// A part of dbdyno that a build may leave out.
#[derive(Debug, Clone, Copy)]
pub struct BuildPart {
    /// Name in the plural, as a sentence uses it.
    what: &'static str,
    /// Cargo feature that builds it in.
    feature: &'static str,
}

impl BuildPart {
    pub const SCRIPTS: Self = Self { what: "sysbench scripts", feature: "scripts" };
    pub const PARQUET: Self = Self { what: "Parquet files", feature: "parquet" };

    /// Returns the command that runs dbdyno with this part.
    pub fn command(self) -> String {
        format!("`cargo run --release --features {} -- ...`", self.feature)
    }
}

impl<'a> WorkloadTable<'a> {
    pub(crate) fn new(value: Spanned<DeValue<'a>>) -> Self {
        Self(value)
    }

    fn keys(&self) -> Option<&DeTable<'a>> {
        self.0.get_ref().as_table()
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.keys()?.get(key)?.get_ref().as_str()
    }

    /// Sets `key` if the plan does not set it but has the key `cause`. A mistake in the value is
    /// reported at `cause`.
    pub fn set_default(&mut self, key: &'static str, value: TableValue, cause: &str) {
        let DeValue::Table(keys) = self.0.get_mut() else { return };
        let Some(span) = keys.get(cause).map(Spanned::span) else { return };
        if keys.contains_key(key) {
            return;
        }
        let value = match value {
            TableValue::Text(text) => DeValue::String(text.into()),
            TableValue::Flag(flag) => DeValue::Boolean(flag),
        };
        keys.insert(Spanned::new(span.clone(), key.into()), Spanned::new(span, value));
    }

    /// Makes the error for a table that cannot be read, whatever keys it has.
    pub fn refused(self, reason: String) -> TableError {
        let Err(error) = ValueDeserializer::from(self.0).deserialize_any(Refusal(reason));
        TableError(error)
    }

    pub fn read<T: Deserialize<'a>>(self) -> Result<T, TableError> {
        T::deserialize(ValueDeserializer::from(self.0)).map_err(TableError)
    }
}

/// A value that a table gets.
#[derive(Debug, Clone, Copy)]
pub enum TableValue {
    Text(&'static str),
    Flag(bool),
}
