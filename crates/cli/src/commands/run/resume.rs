//! `dbdyno run --resume` checks whether a run can go on without change, and finds the cells that
//! remain to be run.

use std::collections::HashSet;
use std::path::Path;

use dbdyno_analyse::host_class;
use dbdyno_db::server::Snapshot;
use dbdyno_plan::Plan;
use dbdyno_products::{FamilyFacts, VariantKind};
use dbdyno_record::{
    CellEvent, CellId, CellRecord, HostInfo, Manifest, Outcome, Run, RunEvent, RunWriter, VariantInfo,
    load_kept,
};
use dbdyno_report::host_class_words;
use tokio::runtime::Runtime;

use super::{ReadyRun, finish, is_reported, record_warnings, take_locks};
use crate::args::RunArgs;
use crate::commands::report::{LATEST, directory};
use crate::conductor::{
    RunClock, RunTally, data_root, kept_option_file, partial, remove_data_of, remove_data_root, snapshot_dir,
};
use crate::exit::ExitError;
use crate::plan::prepare::{PreparedVariant, host_info, prepare, tool, workloads};
use crate::{fleet, host, terminal, time};

/// Prepares a run for its continuation. The result is `None` for a run that is over. Such a run
/// gets its report if the report is missing. Cells that ended are kept, and records of unfinished
/// cells are set aside. With `--failed`, failed cells run again too. A run is refused when the
/// remaining cells would differ from those that were measured. Where they may differ but need not,
/// `--anyway` lets the run go on. Nothing is written to a run that cannot go on.
pub(super) fn resume(args: &RunArgs, runtime: &Runtime) -> Result<Option<ReadyRun>, ExitError> {
    let RunArgs { anyway, failed: repeats_failed, .. } = *args;
    let dir = &directory(args.resume.as_deref().unwrap_or(Path::new(LATEST)))?;
    let (mut writer, manifest) = RunWriter::resume(dir)?;
    // The order of this manifest includes the blocks that a budget has added.
    let record = Run::open(dir)?;
    let mut order = record.manifest.order.clone();
    order.extend(record.profile_order());
    let order = &order;
    let of_outcome = |outcome: Outcome| {
        let is_so = move |cell: &&CellRecord| cell.outcome() == Some(outcome);
        record.cells.iter().chain(&record.profiled_cells).filter(is_so).map(|cell| &cell.id).collect::<HashSet<&CellId>>()
    };
    let completed = of_outcome(Outcome::Completed);
    let failed = if repeats_failed { HashSet::new() } else { of_outcome(Outcome::Failed) };
    let is_left = |cell: &&CellId| !completed.contains(cell) && !failed.contains(cell);
    let mut cells: Vec<CellId> = order.iter().filter(is_left).cloned().collect();
    let mut plan = dbdyno_workloads::plans::of_record(&manifest.plan)?;
    if args.on.is_some() {
        fleet::check(&plan)?;
        // One machine measures all cells of a block.
        let blocks: HashSet<u32> = cells.iter().map(|cell| cell.block).collect();
        cells = order.iter().filter(|cell| blocks.contains(&cell.block)).cloned().collect();
    } else if !cells.is_empty() && dir.join(fleet::FOLDER).exists() {
        let advice = "go on with such machines: --on ray or slurm";
        return Err(ExitError::usage(format!("this run is one of a fleet; {advice}")));
    }
    let left: HashSet<&CellId> = cells.iter().collect();
    let stay = |ended: &HashSet<&CellId>| ended.difference(&left).count();
    let before = RunTally { completed: stay(&completed), failed: stay(&failed), interrupted: false };
    let data_root = data_root(&plan, dir);
    let is_over = cells.is_empty() && is_over(&record, &plan);
    if !plan.host.keep_data {
        let ended = completed.union(&failed).copied().filter(|cell| !left.contains(cell));
        remove_data_of(ended, &data_root);
    }
    if is_over {
        nothing_left(args, &plan, &data_root, order.len())?;
        return if is_reported(dir) { before.ended() } else { finish(&before, dir, args) }.map(|()| None);
    }
    let program_warning = other_program(&record, &plan, anyway)?;
    if !cells.is_empty() || plan.budget.is_some() {
        host::check(&plan, dir, host::size_of(&data_root))?;
    }
    own_option_files(&mut plan, dir, &manifest)?;
    let variants = prepare(&plan, runtime)?;
    other_variant(&variants, &manifest)?;
    let advisory_locks = take_locks(args, &plan, &variants, runtime)?;
    writer.event(&RunEvent::Started { at: time::now(), resumed: true, tool: tool() })?;
    let clock = RunClock::going_on(&record.events);
    let warnings = program_warning.into_iter().chain(other_host(&plan, dir, &manifest.host));
    let warnings: Vec<String> = warnings.chain(advisory_locks.doubts.iter().cloned()).collect();
    record_warnings(&mut writer, &warnings)?;
    for cell in &cells {
        if let Some(to) = writer.set_aside(cell)? {
            let to = to.display().to_string();
            record_warnings(&mut writer, lost_load(&record, cell, &data_root, &to).as_slice())?;
            writer.event(&RunEvent::CellSetAside { at: time::now(), cell: cell.clone(), to })?;
        }
    }
    let again = record.cells.iter().filter(|cell| cells.contains(&cell.id));
    let again = again.filter(|cell| cell.outcome() == Some(Outcome::Failed)).count();
    let repeated = if again > 0 { format!(", {again} of them failed before") } else { String::new() };
    terminal::note(&format!("resuming: {} of {} cells are left{repeated}", cells.len(), order.len()));
    let partial = partial(&record.events);
    Ok(Some(ReadyRun { plan, variants, writer, manifest, cells, before, clock, advisory_locks, partial }))
}

/// Says that a run is over, and removes data that a process killed at its end has left.
fn nothing_left(args: &RunArgs, plan: &Plan, data_root: &Path, cells: usize) -> Result<(), ExitError> {
    if !plan.host.keep_data && data_root.exists() {
        remove_data_root(data_root, host::kept_templates(args.templates.as_deref())?.as_deref());
    }
    terminal::note(&format!("nothing is left to run: {cells} of {cells} cells have ended"));
    Ok(())
}

/// Refuses variants that have changed since the run began.
pub(super) fn other_variant(variants: &[PreparedVariant], of_run: &Manifest) -> Result<(), ExitError> {
    for (now, then) in variants.iter().zip(&of_run.variants) {
        // Not every record has this value, and no config changes it.
        let now_info = VariantInfo { embedded: then.embedded, ..now.info.clone() };
        if now_info != *then {
            let text = format!(
                "variant {} has changed since the run began: its server was {} and is {}, or its config has changed",
                then.name, then.server, now.info.server
            );
            return Err(ExitError::usage(format!("{text}; start a new run")));
        }
    }
    Ok(())
}

/// Whether a run without remaining cells has ended, and its budget, if it has one, is spent.
fn is_over(run: &Run, plan: &Plan) -> bool {
    let has_ended = matches!(run.events.last(), Some(RunEvent::Ended { .. }));
    let is_last_look = |event: &RunEvent| matches!(event, RunEvent::Look { last: true, .. });
    has_ended && (plan.budget.is_none() || run.events.iter().any(is_last_look))
}

/// Checks that this build of dbdyno measures in the same way as the builds that have measured the
/// run so far. Every report shows the blocks side by side, so all of them need the same client. The
/// text is a warning for the report where the build differs and the user goes on anyway. It is
/// `None` when this build has measured a part of the run before.
pub(super) fn other_program(record: &Run, plan: &Plan, anyway: bool) -> Result<Option<String>, ExitError> {
    let (now, then) = (tool(), &record.manifest.tool);
    if now.build != then.build {
        return Err(ExitError::usage(format!(
            "the run was begun by a {} build of dbdyno, and this is a {} build, whose client has \
             other costs; continue with the build that began it, or start a new run",
            then.build, now.build
        )));
    }
    for workload in workloads(plan, &[]) {
        let before = record.manifest.workloads.iter().find(|before| before.name == workload.name);
        let version = before.map(|before| before.version);
        if version != Some(workload.version) {
            let before = version.map_or("none".to_owned(), |version| version.to_string());
            return Err(ExitError::usage(format!(
                "the run was begun with version {before} of {}, this dbdyno has version {}, whose steps differ; go on with \
                 the dbdyno that began it ({} {}), or start a new run",
                workload.name, workload.version, then.version, then.commit
            )));
        }
    }
    if record.tools().any(|tool| *tool == now) {
        return Ok(None);
    }
    let differs = format!(
        "another dbdyno than the one that began it: {} ({}) then, {} ({}) now",
        then.version, then.commit, now.version, now.commit
    );
    if !anyway {
        return Err(ExitError::usage(format!(
            "the run would go on with {differs}; go on with the one that began it, or add --anyway, and the report says so"
        )));
    }
    Ok(Some(format!("the run went on with {differs}; rates of its blocks may differ by that")))
}

/// Lets variants start from the option files that the run has kept, because the user's own files
/// may have changed.
pub(super) fn own_option_files(plan: &mut Plan, dir: &Path, manifest: &Manifest) -> Result<(), ExitError> {
    for variant in &mut plan.variants {
        // A config with intents is rendered again from all of its parts. `other_variant` finds a
        // change in one of them.
        if !VariantKind::of(variant).is_started() || variant.config.is_some() {
            continue;
        }
        let Some(then) = manifest.variants.iter().find(|then| then.name == variant.name) else { continue };
        let Some(own) = &mut variant.own_config else { continue };
        let ending = FamilyFacts::named(&then.driver).option_file_ending;
        let kept = kept_option_file(dir, &then.name, ending, &then.config);
        *own = kept.map_err(ExitError::machine)?;
    }
    Ok(())
}

/// Reports a cell that was set aside after its snapshot was taken. The cell continues from the
/// snapshot, because a load that takes hours is repeated only on request. The load steps are then
/// in no cell of the run.
fn lost_load(record: &Run, cell: &CellId, data_root: &Path, aside: &str) -> Option<String> {
    Snapshot::open(&snapshot_dir(data_root, cell))?;
    let begun = record.cells.iter().find(|begun| begun.id == *cell)?;
    let is_snapshot = |event: &CellEvent| matches!(event, CellEvent::Work { name, .. } if name == "snapshot");
    begun.events.iter().any(is_snapshot).then(|| load_kept(cell, aside))
}

/// Reports how this host differs in class from the host on which the run began, because every
/// report shows the blocks side by side.
fn other_host(plan: &Plan, dir: &Path, then: &HostInfo) -> Option<String> {
    let now = host_info(plan, dir.parent().unwrap_or(dir));
    let [then, now] = [then, &now].map(|host| host_class_words(host_class(host)));
    let differs = |(what, value): (&String, &String)| {
        let now = now.get(what).map_or("unknown", String::as_str);
        (now != value).then(|| format!("{what} {value} then, {now} now"))
    };
    let all: Vec<String> = then.iter().filter_map(differs).collect();
    (!all.is_empty()).then(|| {
        format!(
            "the run was resumed on a host of another class: {}; rates of its blocks differ because of it",
            all.join(", ")
        )
    })
}
