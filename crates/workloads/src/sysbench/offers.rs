//! What a script offers: its commands and options. To find this out, the script is loaded once, without
//! a database.

use std::collections::BTreeMap;
use std::sync::Arc;

use dbdyno_plan::Mistake;
use mlua::Table;

use super::SysbenchSetup;
use super::files::SysbenchScript;
use super::machine::{Machine, StateIdentity, error_text};
use crate::Philox;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnOption {
    pub name: String,
    pub description: String,
    /// Kind of the option: `BOOL`, `INT`, `SIZE`, `DOUBLE`, `STRING`, `LIST`, `FILE`.
    pub kind: String,
    pub default: Option<String>,
}

/// What a script says about itself.
#[derive(Debug, Clone)]
pub(crate) struct Offers {
    /// Its options, sorted by name.
    pub(crate) options: Vec<OwnOption>,
    /// Its commands, and whether all connections run each at the same time.
    pub(crate) commands: BTreeMap<String, bool>,
    pub(crate) script: SysbenchScript,
}

impl Offers {
    /// Loads the script of `setup` as for `command`.
    pub(crate) fn of(setup: &Arc<SysbenchSetup>, command: &str) -> Result<Self, Mistake> {
        let options = &setup.options;
        let script = SysbenchScript::find(&options.script, options.allows_files())
            .map_err(|error| ("script", error.to_string()))?;
        let place = StateIdentity { tid: 0, threads: 1, command, stream: Philox::new(0, 0) };
        let mistake = |key, problem: String| (key, format!("script {}: {problem}", script.given));
        let machine = Machine::loaded(setup, &script, place).map_err(|problem| mistake("script", problem))?;
        machine.set_options(place.threads).map_err(|problem| mistake("options", problem))?;
        let offered = machine.options_part().and_then(|(_, offers)| offers.call(()));
        let (list, commands): (Vec<Table>, BTreeMap<String, bool>) =
            offered.map_err(|error| mistake("script", error_text(&error)))?;
        let option = |entry: Table| -> mlua::Result<OwnOption> {
            Ok(OwnOption {
                name: entry.get(1)?,
                description: entry.get(2)?,
                kind: entry.get(3)?,
                default: entry.get(4)?,
            })
        };
        let options = list.into_iter().map(option).collect::<mlua::Result<Vec<_>>>();
        let options = options.map_err(|error| ("script", error_text(&error)))?;
        Ok(Self { options, commands, script })
    }
}
