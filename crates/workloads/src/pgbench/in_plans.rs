//! What a plan asks of the options: mistakes, needs, steps, a forecast.

use std::path::{Path, PathBuf};

use dbdyno_plan::{Forecast, Mistake, Needs, Plan, Size, Speed, StepOutline, WorkloadOptions};

use super::options::Pgbench;
use super::{check, estimate, sources};

impl WorkloadOptions for Pgbench {
    fn check(&self, _: &Plan) -> Option<Mistake> {
        check::problem(self)
    }

    fn spell_out(&mut self) {
        self.settle = Some(self.settling());
    }

    fn needs(&self) -> Needs {
        Needs {
            connections: self.connections.iter().copied().max().unwrap_or(1),
            data: self.data,
            cold: self.cold.clone(),
            existing_tables: self.use_existing,
            ..Needs::default()
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files.iter().filter_map(|file| sources::own_file(file)).map(PathBuf::from).collect()
    }

    fn move_files(&mut self, place: &dyn Fn(&Path) -> PathBuf) {
        for file in &mut self.files {
            if let Some(path) = sources::own_file(file) {
                let weight = file[path.len()..].to_owned();
                *file = format!("{}{weight}", place(Path::new(path)).display());
            }
        }
    }

    fn steps(&self) -> Vec<StepOutline> {
        StepOutline::of_names(self.step_names(), usize::from(self.has_load()))
    }

    fn estimate(&self, speed: &Speed, size: &Size) -> Forecast {
        estimate::estimate(self, speed, size)
    }
}
