//! The shipped figures: how many microseconds a unit of work takes, by kind of server.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use dbdyno_model::Variant;
use dbdyno_products::{VariantKind, engine_of};
use serde::Deserialize;

use crate::{Size, StepEstimate, seconds};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    time: BTreeMap<String, UnitTimes>,
    size: BTreeMap<String, Size>,
}

/// Microseconds that one unit takes.
#[derive(Debug, Deserialize)]
struct UnitTimes {
    #[serde(default)]
    waits: bool,
    beyond_memory: Option<f64>,
    /// The time by kind of server, and by engine.
    #[serde(flatten)]
    by: BTreeMap<String, f64>,
}

static FIGURES: LazyLock<Figures> =
    LazyLock::new(|| toml::from_str(include_str!("figures.toml")).expect("tests read it"));

const SERVER: &str = "server";
const ADDRESS: &str = "address";
const EMBEDDED: &str = "embedded";
const NULL: &str = "null";

/// The figures that apply to one variant's server.
pub(super) struct ServerFigures {
    kind: &'static str,
    engine: Option<String>,
    /// CPUs that the server may use. It is 1 for a database that lets one connection work at a
    /// time.
    cpus: u32,
    /// How far the data exceed the memory, from 0 (the data fit into the memory) to 1 (the data are
    /// three times the memory, or more).
    beyond_memory: f64,
}

impl ServerFigures {
    pub(super) fn new(variant: &Variant, cpus: u32) -> Self {
        let (kind, cpus) = match VariantKind::of(variant) {
            VariantKind::Embedded => (EMBEDDED, 1),
            VariantKind::Null => (NULL, cpus),
            VariantKind::BaseDir(_) | VariantKind::Named(_) => (SERVER, cpus),
            VariantKind::Address(_) => (ADDRESS, cpus),
        };
        Self { kind, engine: engine_of(variant), cpus: cpus.max(1), beyond_memory: 0.0 }
    }

    /// Sets the sizes of data and memory. Where the memory is unknown, all data count as fitting
    /// into it.
    pub(super) fn with_data(self, data_bytes: u64, memory_bytes: Option<u64>) -> Self {
        let times = memory_bytes.map_or(0.0, |memory| data_bytes as f64 / memory.max(1) as f64);
        Self { beyond_memory: ((times - 1.0) / 2.0).clamp(0.0, 1.0), ..self }
    }

    /// Returns the bytes that data take on disk. A server at an address has no template on this
    /// machine, because others start it.
    pub(super) fn size(&self) -> Size {
        let kind = if self.kind == ADDRESS { SERVER } else { self.kind };
        let size = FIGURES.size.get(kind).copied().unwrap_or_default();
        if self.kind == ADDRESS { Size { template_bytes: 0, ..size } } else { size }
    }

    /// Returns the time that `units` of `figure` take on this number of connections.
    pub(super) fn time(&self, figure: &str, units: f64, connections: u32) -> Duration {
        let Some(row) = FIGURES.time.get(figure) else {
            debug_assert!(false, "figures.toml has no {figure:?}");
            return Duration::ZERO;
        };
        let within = self.within_memory(row);
        let us = match row.beyond_memory {
            Some(beyond) if self.kind != NULL => within + (beyond - within) * self.beyond_memory,
            _ => within,
        };
        let is_one_writer = self.kind == EMBEDDED;
        let most = if row.waits && !is_one_writer { u32::MAX } else { self.cpus };
        seconds(units * us / f64::from(connections.clamp(1, most)) / 1e6)
    }

    fn within_memory(&self, row: &UnitTimes) -> f64 {
        let of = |key: &str| row.by.get(key).copied();
        if self.kind == NULL {
            return of(NULL).unwrap_or(0.0);
        }
        let of_engine = self.engine.as_deref().and_then(of);
        of_engine.or_else(|| of(self.kind)).or_else(|| of(SERVER)).unwrap_or(0.0)
    }

    /// Returns the time of a step: its certain length, and its work.
    pub(super) fn duration(&self, step: &StepEstimate) -> Duration {
        let work = step.work.iter().map(|work| self.time(&work.figure, work.units, work.connections));
        let work = work.fold(Duration::ZERO, Duration::saturating_add);
        step.length.saturating_add(step.work_limit.map_or(work, |limit| work.min(limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake;

    fn of(server: &str, cpus: u32) -> ServerFigures {
        let text = format!("name = \"p\"\n[[variant]]\nname = \"a\"\n{server}\n[workload.fake]\n");
        let plan = fake::parse(&text, "p.toml").unwrap_or_else(|error| panic!("{error}"));
        ServerFigures::new(&plan.variants[0], cpus)
    }

    fn millis(figures: &ServerFigures, figure: &str, units: f64, connections: u32) -> f64 {
        figures.time(figure, units, connections).as_secs_f64() * 1e3
    }

    #[test]
    fn every_figure_has_a_time_for_a_server() {
        for (name, row) in &FIGURES.time {
            assert!(row.by.contains_key(SERVER), "{name}");
            assert!(row.by.values().all(|us| *us >= 0.0), "{name}");
        }
        for kind in [SERVER, EMBEDDED, NULL] {
            assert!(FIGURES.size.contains_key(kind), "{kind}");
        }
    }

    #[test]
    fn an_engine_comes_before_the_kind_and_the_kind_before_any_server() {
        let row = |server: &str| millis(&of(server, 1), "dbt3 row loaded", 1000.0, 1);
        assert_eq!(row("server = \"mysql-5.6.24\""), 4.8);
        assert_eq!(row("server = \"mysql-5.6.24\"\noptions.engine = \"MyISAM\""), 1.5);
        assert_eq!((row("server = \"sqlite\""), row("server = \"null\"")), (3.6, 0.1));
        assert_eq!(row("address = \"mysql://u@h/d\""), 4.8);
        assert_eq!(millis(&of("server = \"null\"", 1), "dbt3 q1", 1.0, 1), 0.0);
    }

    #[test]
    fn connections_share_work_as_far_as_there_are_cpus_and_a_disk_serves_all() {
        let times = |server: &str, cpus, figure: &str| {
            let server = of(server, cpus);
            millis(&server, figure, 8000.0, 1) / millis(&server, figure, 8000.0, 8)
        };
        let (mysql, sqlite) = ("server = \"mysql-5.6.24\"", "server = \"sqlite\"");
        assert_eq!([1, 2, 16].map(|cpus| times(mysql, cpus, "oltp row loaded")), [1.0, 2.0, 8.0]);
        assert_eq!(times(mysql, 2, "commit"), 8.0);
        assert_eq!(times(sqlite, 8, "commit"), 1.0, "one writes at a time");
    }

    #[test]
    fn queries_on_data_beyond_the_memory_take_longer() {
        let with = |data, memory| {
            millis(&of("server = \"mysql-5.6.24\"", 1).with_data(data, memory), "dbt3 q5", 1.0, 1)
        };
        assert_eq!((with(48, None), with(16, Some(16))), (6040.0, 6040.0));
        assert_eq!((with(48, Some(16)), with(480, Some(16))), (95_800.0, 95_800.0));
        assert_eq!(with(32, Some(16)), (6040.0 + 95_800.0) / 2.0);
    }
}
