//! The data model of plans, and of the parts of a plan that records keep. It is plain data that
//! every crate may read.

mod clients;
mod data;
mod load;
mod macros;
mod plan;
mod profile;
mod report;
mod units;

pub use clients::{ClientNames, Clients, On};
pub use data::{Cold, DataMode};
pub use load::{ClientWait, Load, LostConnections, load_problem};
pub use plan::{
    ColumnDefinitions, Config, ConfigPart, Cpus, Design, Host, IntentValue, NoLimit, Parity, Plan,
    RecordedWorkloads, Setup, TlsMode, TlsSettings, Unlike, Variant, foreign_title,
};
pub use profile::{CallChains, Profile, ProfileOptions};
pub use report::{
    Colours, GroupFigures, PlanSize, Published, PublishedFigures, PublishedFinding, Quantity, Relation,
    Report, Section, StepFigures,
};
pub use units::{CpuList, Given, PlanBytes, PlanDuration, ValueError, scalar};
