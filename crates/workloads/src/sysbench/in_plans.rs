//! What a plan asks of the options: mistakes, needs, steps, a forecast.

use std::path::{Path, PathBuf};

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, Speed, StepOutline, WorkloadOptions};

use super::options::Sysbench;
use super::{check, estimate, files};

impl WorkloadOptions for Sysbench {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        check::problem(self)
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
    }

    fn needs(&self) -> Needs {
        let most = self.connections.iter().copied().max().unwrap_or(1);
        Needs {
            connections: most.max(self.prepare_connections),
            data: self.data,
            cold: self.cold.clone(),
            existing_tables: self.use_existing,
            ..Needs::default()
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        files::with_modules(&self.script)
    }

    fn move_files(&mut self, place: &dyn Fn(&Path) -> PathBuf) {
        let script = files::found(&self.script).unwrap_or_else(|| PathBuf::from(&self.script));
        // The name of a script that is not here is no path.
        if script.is_file() || script.is_absolute() {
            self.script = place(&script).display().to_string();
        }
    }

    fn steps(&self) -> Vec<StepOutline> {
        StepOutline::of_names(self.step_names(), self.load_steps())
    }

    fn estimate(&self, speed: &Speed, size: &Size) -> Forecast {
        estimate::estimate(self, speed, size)
    }
}
