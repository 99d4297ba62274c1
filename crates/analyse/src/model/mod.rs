//! The types that findings are made of. Other folders compute the values, and the report words
//! them.

mod comparison;
mod context;
pub(crate) mod findings;
mod step_run;
pub(crate) mod steps;
mod verdict;
mod warning;

pub use comparison::{
    Agreement, Aspect, CLOSE, ComparedSide, ComparedStep, Comparison, Difference, Exclusion, ExclusionKind,
    FindingSeen, PublishedComparison, PublishedRow, Seen, Side,
};
pub use context::{
    Cause, CostBreakdown, CostPart, ExecutedPlan, Operator, PlanDifference, RatioContext, StallDifference,
    StallFigure, StatementPlans,
};
pub use findings::{
    Budget, Failure, Findings, RunSummary, SectionFindings, TimeBreakdown, VariantSummary, WorkloadFindings,
};
pub use step_run::{
    Bucket, ClientHeadroom, Composite, DeferredLevel, DeferredWork, DeviceSecond, Execution, GroupMemory,
    KindResult, Latency, Lookups, Schedule, SecondPoint, ServerEvent, ServerEventKind, StatementResult,
    Steadiness, StepRun, TooFewOperations, Validity,
};
pub use steps::{
    ByMachine, FarthestMachine, MachineRatio, PercentileRatio, StepComparison, StepFindings, VariantStep,
    ZeroRates,
};
pub use steps::{MetricGroup, RelativeMetrics};
pub use verdict::{
    Bound, CONFIDENCE, Decided, Effect, ForeignLoad, Inference, LEVEL, Paired, Ratio, Undecided, Verdict,
};
pub use warning::{
    BlockShare, Code, DesignFault, Figure, RestlessLevel, SessionPart, SettingChange, Severity, VariantShare,
    Warning, WorkLeft,
};
