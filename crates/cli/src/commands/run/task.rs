//! `dbdyno task` runs one block of a fleet's run as a run of its own, on the machine that the fleet
//! has chosen.

use dbdyno_plan::each_file;
use dbdyno_record::{Manifest, Run};
use tokio::runtime::Runtime;

use super::resume::{other_program, other_variant, own_option_files};
use super::{Name, Ready, conduct, create, stale_files};
use crate::args::TaskArgs;
use crate::conductor::{AdvisoryLocks, partial};
use crate::cores::give_cpus;
use crate::exit::ExitError;
use crate::manifest::manifest;
use crate::prepare::prepare;
use crate::{host, signals};

/// Runs the block. Its records end up in a run directory, from which the fleet takes them.
pub(crate) fn task(args: &TaskArgs) -> Result<(), ExitError> {
    // Servers are started from this thread, as in `run`.
    let runtime = host::event_loop()?;
    let cancel = signals::watch(signals::RUN_STOPS)?;
    stale_files::remove();
    let templates = host::kept_templates(args.templates.as_deref())?;
    signals::idle(true);
    let ready = begin(args, &runtime);
    signals::idle(false);
    conduct(ready?, runtime, cancel, templates, None, |ended| ended)?.ended()
}

/// Prepares the block, and checks what it must have in common with the run.
fn begin(args: &TaskArgs, runtime: &Runtime) -> Result<Ready, ExitError> {
    let record = Run::outline(&args.run)?;
    let of_run = &record.manifest;
    let mut plan = dbdyno_workloads::plans::of_record(&of_run.plan)?;
    other_program(&record, &plan, false)?;
    // The fleet spends the budget.
    plan.budget = None;
    if let Some(files) = &args.files {
        each_file(&mut plan, |path| *path = files.join(path.strip_prefix("/").unwrap_or(path)));
    }
    give_cpus(&mut plan);
    host::check(&plan, &args.out, 0)?;
    own_option_files(&mut plan, &args.run, of_run)?;
    let variants = prepare(&plan, runtime)?;
    other_variant(&variants, of_run)?;
    let advisory_locks = AdvisoryLocks::take(&plan, &variants, false, runtime)?;
    let order = of_run.order.iter().filter(|cell| cell.block == args.block).cloned().collect();
    let own = manifest(&plan, &variants, &args.out)?;
    let manifest = Manifest { run_id: args.name.clone(), order, ..own };
    let ready = create(plan, variants, advisory_locks, manifest, (&args.out, Name::Given))?;
    Ok(Ready { partial: partial(&record.events), ..ready })
}
