//! Bench `insert-benchmark`: client CPU for a row and for a query.

mod figures;
mod floor;
mod plans;
mod table;

use anyhow::Result;
use dbdyno_provision::{list, servers_dir};

use super::{Measured, Setting, machine, newest_of, runs};
use figures::Figure;
use plans::CASES;

/// Runs the plans one after the other, several times over.
pub(super) fn run(setting: &Setting) -> Result<Measured> {
    let server = newest_of(&list(&servers_dir()), "mariadb-10.11")?;
    let bare_loop = runs::built_example("spaced_floor")?;
    let mut figures: Vec<Figure> = CASES.iter().map(Figure::new).collect();
    let mut facts = vec![format!("rounds: {}", setting.rounds)];
    for round in 1..=setting.rounds {
        for plan in plans::ALL {
            setting.note_round(round, plan.name);
            let text = plan.text(&server, machine::cpus());
            let folder = setting.folder.join(round.to_string());
            let files = [("bench.cnf", plans::MY_CNF)];
            let report = runs::measured(&setting.dbdyno, &folder, plan.name, &text, &files)?;
            for figure in figures.iter_mut().filter(|figure| figure.case.plan == plan.name) {
                let sample = figure.add(&report)?;
                if let Some(rows) = figure.case.floor_rows {
                    figure.floors_us.push(floor::measured(&bare_loop, rows, sample.rate_per_second)?);
                }
            }
            facts.truncate(1);
            facts.extend(figures::facts(&report));
        }
    }
    Ok(Measured {
        table: table::text(&figures),
        markdown: table::grid(&figures).markdown(),
        facts,
        is_met: figures.iter().all(Figure::is_met),
    })
}
