//! The types that findings are made of. Other folders compute the values, and the report words
//! them.

mod comparison;
mod context;
mod cost_breakdown;
mod difference;
mod execution;
pub(crate) mod failure;
mod findings;
mod groups;
mod published;
pub(crate) mod runs;
mod state;
mod step_run;
mod steps;
mod undecided;
mod verdict;
mod warning;

pub use comparison::{ComparedSide, ComparedStep, Comparison, Exclusion, ExclusionKind, Side};
pub use context::{
    ExecutedPlan, Operator, PlanDifference, RatioContext, StallDifference, StallFigure, StatementPlans,
};
pub use cost_breakdown::{Cause, CostBreakdown, CostPart};
pub use difference::{Aspect, Difference};
pub use execution::{Composite, Execution};
pub use failure::Failure;
pub use findings::{
    Budget, Findings, RunSummary, SectionFindings, TimeBreakdown, VariantSummary, WorkloadFindings,
};
pub use groups::{MetricGroup, RelativeMetrics};
pub use published::{Agreement, CLOSE, FindingSeen, PublishedComparison, PublishedRow, Seen};
pub use state::{DeferredLevel, DeferredWork, GroupMemory, Lookups, Steadiness};
pub use step_run::{
    Bucket, ClientHeadroom, DeviceSecond, KindResult, Latency, Schedule, SecondPoint, ServerEvent,
    ServerEventKind, StatementResult, StepRun, TooFewOperations, Validity,
};
pub use steps::{
    ByMachine, FarthestMachine, MachineRatio, PercentileRatio, StepComparison, StepFindings, VariantStep,
    ZeroRates,
};
pub use undecided::Undecided;
pub use verdict::{
    Bound, CONFIDENCE, Decided, Effect, ForeignLoad, Inference, LEVEL, Paired, Ratio, Verdict,
};
pub use warning::{
    BlockShare, Code, DesignFault, Figure, RestlessLevel, SessionPart, SettingChange, Severity, VariantShare,
    Warning, WorkLeft,
};
