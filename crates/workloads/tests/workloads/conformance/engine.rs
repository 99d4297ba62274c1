//! Runs whole steps through the load engine.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use dbdyno_db::AnySession;
use dbdyno_loadgen::{Connections, Observer, Step, StepEnd, Threads};
use dbdyno_record::{CellId, Check, HostInfo, Manifest, Outcome, RunWriter, StepEvent, StepRecord, ToolInfo};
use dbdyno_workloads::insert_benchmark::InsertBenchmark;
use dbdyno_workloads::{AnyWorkload, Steps, Workload};
use tokio::runtime::Runtime;

struct Quiet;
impl Observer for Quiet {}

fn manifest(name: &str) -> Manifest {
    Manifest {
        format_version: dbdyno_record::FORMAT_VERSION,
        tool: ToolInfo { version: "0".into(), commit: "unknown".into(), build: "debug".into() },
        run_id: name.into(),
        started: "2026-01-01T00:00:00Z".into(),
        plan: dbdyno_model::Plan {
            name: name.into(),
            seed: 1,
            blocks: 1,
            base: Some("a".into()),
            ..dbdyno_model::Plan::default()
        },
        client_calibration: None,
        host: HostInfo::default(),
        variants: Vec::new(),
        workloads: Vec::new(),
        order: Vec::new(),
    }
}

/// Runs step `index` with the work before and after it. The test fails if the step does not
/// complete.
pub(crate) fn run_step(
    workload: &mut InsertBenchmark,
    index: usize,
    session: &mut AnySession,
    runtime: &Runtime,
    blocking: bool,
    folder: &Path,
) -> (StepEnd, Vec<Check>) {
    let (end, checks, _) = record_step(workload, index, session, runtime, blocking, folder);
    (end, checks)
}

/// Runs a step as [`run_step`] does, and also returns its record.
pub(crate) fn record_step(
    workload: &mut InsertBenchmark,
    index: usize,
    session: &mut AnySession,
    runtime: &Runtime,
    blocking: bool,
    folder: &Path,
) -> (StepEnd, Vec<Check>, StepRecord) {
    runtime.block_on(workload.before(index, session)).unwrap();
    let spec = workload.spec(index);
    let writer = RunWriter::create(folder, &manifest(&format!("run-{index}"))).unwrap();
    let cell = CellId { block: 1, variant: "a".into(), workload: "insert-benchmark".into() };
    let mut writer = writer.cell(&cell).unwrap().step(&spec.name).unwrap();
    writer.event(&StepEvent::Started { at: "2026-01-01T00:00:00Z".into(), spec: spec.clone() }).unwrap();
    let cancel = AtomicBool::new(false);
    let step = Step {
        spec: &spec,
        threads: Threads { count: Some(2), blocking, ..Threads::default() },
        connections: Connections::default(),
        warmup: workload.outlines()[index].warmup,
        time_cap: workload.outlines()[index].time_cap,
        cancel: &cancel,
    };
    let end = dbdyno_loadgen::run(step, workload.tasks(index), &mut writer, &mut Quiet).unwrap();
    assert_eq!(end.outcome, Outcome::Completed, "{}: {:?}", spec.name, end.message);
    let checks = runtime.block_on(workload.verify(index, &end, session)).unwrap();
    runtime.block_on(workload.after(index, session)).unwrap();
    writer.sync().unwrap();
    (end, checks, StepRecord::open(writer.dir()))
}
