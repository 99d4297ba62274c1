//! Runs the blocks of a plan with `design = "alternate"`. The servers of all variants stay up, and
//! each step of a block runs on one after the other of them. Therefore what slows the machine
//! for some seconds slows them all.

use std::collections::BTreeMap;

use dbdyno_db::{AnySession, Session};
use dbdyno_plan::further_cells;
use dbdyno_record::{CellEvent, CellId, ServerInfo};
use dbdyno_workloads::AnyWorkload;

use crate::conductor::cell::Described;
use crate::conductor::start::Database;
use crate::conductor::steps::CellSteps;
use crate::conductor::{Conductor, OpenCell, Stop, Tally, ending};
use crate::exit::ExitError;
use crate::time;

/// Servers that stay up from block to block, by variant.
#[derive(Default)]
pub(super) struct Up(BTreeMap<String, Server>);

/// A server that stays up, with its workload loaded.
struct Server {
    database: Database,
    session: AnySession,
    workload: Box<dyn AnyWorkload>,
    info: ServerInfo,
    misloaded: Vec<String>,
}

impl Conductor<'_> {
    /// Runs the cells of one block. Every measured step runs on one server after the other, in an
    /// order that is drawn for each step.
    pub(super) fn round(
        &mut self,
        cells: &[CellId],
        up: &mut Up,
        tally: &mut Tally,
    ) -> Result<(), ExitError> {
        let Some(block) = cells.first().map(|cell| cell.block) else { return Ok(()) };
        let mut open = cells.iter().map(|id| self.begun(id)).collect::<Result<Vec<_>, _>>()?;
        self.bring_up(&mut open, up)?;
        for index in self.measured(&mut open, up) {
            for variant in self.drawn(block, index) {
                let Some(cell) =
                    open.iter_mut().find(|cell| cell.id.variant == variant && cell.ended.is_none())
                else {
                    continue;
                };
                if self.cancelled() {
                    cell.ended = Some(ending(Err(Stop::interrupted("between two steps")))?);
                    continue;
                }
                let Some(mut server) = up.0.remove(&variant) else { continue };
                self.progress.cell(cell.id, self.plan.blocks.max(block));
                match self.step_on(cell, &mut server, index) {
                    Ok(()) => {
                        up.0.insert(variant, server);
                    }
                    Err(stop) => self.given_up(cell, stop, server.database)?,
                }
            }
        }
        for mut cell in open {
            let ended = cell.ended.take().unwrap_or_else(|| cell.walked());
            self.ended(cell, ended, tally)?;
        }
        Ok(())
    }

    /// Starts and loads the servers that are not up yet, one after the other.
    fn bring_up(&mut self, open: &mut [OpenCell<'_>], up: &mut Up) -> Result<(), ExitError> {
        for cell in open.iter_mut() {
            if self.cancelled() {
                break;
            }
            self.progress.cell(cell.id, self.plan.blocks.max(cell.id.block));
            // Connections of the look at the variant before the run do not belong to its first
            // cell.
            self.connections(cell.id);
            if let Some(server) = up.0.get(&cell.id.variant) {
                let server = server.info.clone();
                cell.writer.event(&CellEvent::Server { at: time::now(), server })?;
            } else if let Some(server) = self.brought_up(cell)? {
                up.0.insert(cell.id.variant.clone(), server);
            }
        }
        Ok(())
    }

    /// Starts a cell's server and loads its data. It is `None` when that failed, which ends the
    /// cell.
    fn brought_up(&mut self, cell: &mut OpenCell<'_>) -> Result<Option<Server>, ExitError> {
        let database = match self.start(cell, None) {
            Ok(database) => database,
            Err(stop) => {
                cell.ended = Some(ending(Err(stop))?);
                return Ok(None);
            }
        };
        let Described { session, workload, server: info } = match self.described(cell, &database) {
            Ok(described) => described,
            Err(stop) => return self.given_up(cell, stop, database).map(|()| None),
        };
        let mut server = Server { database, session, workload, info, misloaded: Vec::new() };
        for index in 0..server.workload.load_steps() {
            if let Err(stop) = self.step_on(cell, &mut server, index) {
                return self.given_up(cell, stop, server.database).map(|()| None);
            }
        }
        Ok(Some(server))
    }

    fn measured(&self, open: &mut [OpenCell<'_>], up: &mut Up) -> Vec<usize> {
        let Some(cell) = open.iter_mut().find(|cell| up.0.contains_key(&cell.id.variant)) else {
            return Vec::new();
        };
        let Some(server) = up.0.get_mut(&cell.id.variant) else { return Vec::new() };
        let loads = server.workload.load_steps();
        let steps = CellSteps::new(cell, &mut server.database, &mut *server.workload);
        self.steps_of(&steps, loads)
    }

    /// Returns the variants in the random order of a step.
    fn drawn(&self, block: u32, index: usize) -> Vec<String> {
        /// A number above any workload's number of steps.
        const STRIDE: u32 = 10_007;
        let draw = block.wrapping_mul(STRIDE).wrapping_add(index as u32);
        further_cells(self.plan, draw, |_| true).into_iter().map(|cell| cell.variant).collect()
    }

    fn step_on(&mut self, cell: &mut OpenCell<'_>, server: &mut Server, index: usize) -> Result<(), Stop> {
        let mut steps = CellSteps::new(cell, &mut server.database, &mut *server.workload);
        steps.misloaded = std::mem::take(&mut server.misloaded);
        let went = self.one_step(&mut steps, index, &mut server.session, false);
        server.misloaded = steps.misloaded;
        went
    }

    /// Ends a failed cell together with its server. The next block starts a new server.
    fn given_up(&mut self, cell: &mut OpenCell<'_>, stop: Stop, database: Database) -> Result<(), ExitError> {
        let ended = ending(Err(stop))?;
        cell.ended = Some(self.explained(ended, &mut cell.writer, &database)?);
        let odd = self.end_of(database);
        self.warn_of_run(odd)
    }

    pub(super) fn all_down(&mut self, up: Up) -> Result<(), ExitError> {
        for server in up.0.into_values() {
            self.progress.busy("stopping");
            self.runtime.block_on(server.session.close());
            let odd = self.end_of(server.database);
            self.warn_of_run(odd)?;
        }
        Ok(())
    }
}
