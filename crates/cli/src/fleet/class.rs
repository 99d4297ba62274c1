//! Handles machines of another class than the first one. They get no block unless the plan says so.

use std::collections::BTreeMap;
use std::path::Path;

use dbdyno_analyse::host_class;
use dbdyno_model::Unlike;
use dbdyno_record::{HostInfo, Run, RunEvent};
use dbdyno_report::host_class_words;

use crate::exit::ExitError;
use crate::fleet::{Fleet, Machine};

/// The values that make up a machine's class, by name.
pub(crate) type Class = BTreeMap<String, String>;

const HOW_TO_ALLOW: &str = "unlike_machines = \"warn\" in [host], or --set host.unlike_machines=warn";

/// Returns the machine that measured the first block of a resumed run, and its class.
pub(crate) fn first_measured(dir: &Path) -> Option<(String, Class)> {
    let measured = |event| match event {
        RunEvent::BlockMeasured { machine, host, .. } => Some((machine, class(&host))),
        _ => None,
    };
    Run::outline(dir).ok()?.events.into_iter().find_map(measured)
}

/// Says why a run ends before all of its blocks are measured.
pub(super) fn none_is_left() -> ExitError {
    let what = "no machine has the class of the first block's machine";
    let advice = format!("go on with such machines, or start a new run with {HOW_TO_ALLOW}");
    ExitError::machine(format!("{what}; {advice}"))
}

impl Fleet<'_> {
    /// Reads once what a machine is, as soon as its task has written that down. A machine of
    /// another class is reported, and its task ends.
    pub(super) fn look_at(&mut self, machine: &mut Machine) -> Result<(), ExitError> {
        let Some(task) = machine.task.as_ref().filter(|_| !machine.is_known) else { return Ok(()) };
        let Ok(begun) = Run::outline(&task.dir) else { return Ok(()) };
        machine.is_known = true;
        let Some(text) = self.unlike(&machine.name, &begun.manifest.host) else { return Ok(()) };
        if self.plan.host.unlike_machines == Unlike::Warn {
            return self.warn(format!("{text}; rates of its blocks differ by that, and ratios may"));
        }
        machine.is_refused = true;
        task.stop();
        self.warn(format!("{text}; it gets no block; to measure on both: {HOW_TO_ALLOW}"))
    }

    /// Returns how a machine's class differs from the first one's.
    fn unlike(&mut self, machine: &str, host: &HostInfo) -> Option<String> {
        let class = class(host);
        let (first, of_first) = self.first.get_or_insert_with(|| (machine.to_owned(), class.clone()));
        let differs = |(what, value): (&String, &String)| {
            let there = of_first.get(what).filter(|there| *there != value)?;
            Some(format!("{what} {value}, not {there}"))
        };
        let all: Vec<String> = class.iter().filter_map(differs).collect();
        let what = format!("{machine} is a machine of another class than {first}");
        (!all.is_empty()).then(|| format!("{what}: {}", all.join(", ")))
    }
}

/// Returns the class without the CPUs in use, because machines on one host share its CPUs.
fn class(host: &HostInfo) -> Class {
    host_class_words(host_class(&HostInfo { server_cpus: None, client_cpus: None, ..host.clone() }))
}
