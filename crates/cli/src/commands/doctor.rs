//! `dbdyno doctor` checks the fitness of this machine, and calibrates the load client.

use std::path::Path;

use dbdyno_report::document::Block;

use crate::args::DoctorArgs;
use crate::doctor::{blocks, calibrate, finding, fitness, json, store};
use crate::exit::{ExitError, MACHINE};
use crate::terminal;

pub(crate) fn doctor(args: &DoctorArgs) -> Result<(), ExitError> {
    if args.client { client(args) } else { machine(args) }
}

fn client(args: &DoctorArgs) -> Result<(), ExitError> {
    let path = store::path().ok_or_else(|| {
        ExitError::machine("there is no folder to keep the calibration in; set HOME or XDG_CACHE_HOME")
    })?;
    if let Some(busy) = fitness::busy() {
        terminal::warning(&format!(
            "{busy}: other programs run, so the calibration is too low and valid steps may be \
             called invalid; calibrate again when they have ended"
        ));
    }
    let calibration = calibrate::calibrate(args)?;
    store::save(&path, &calibration)?;
    let kept = path.display().to_string();
    if args.json {
        return terminal::out_json(&json(&calibration, &kept));
    }
    terminal::out_blocks(&blocks(&calibration, &kept))
}

fn machine(args: &DoctorArgs) -> Result<(), ExitError> {
    let data_dir = args.data_dir.as_deref().unwrap_or(Path::new("."));
    if !data_dir.is_dir() {
        let looked_at = fitness::existing(data_dir);
        terminal::warning(&format!(
            "folder {} does not exist; the disk checks are for {}, its nearest existing parent",
            data_dir.display(),
            looked_at.display()
        ));
    }
    let findings = fitness::findings(data_dir);
    if args.json {
        terminal::out_json(&findings)?;
    } else {
        terminal::out_blocks(&[Block::Table(finding::table(&findings))])?;
    }
    if findings.iter().any(|found| found.verdict == finding::Verdict::Bad) {
        return Err(ExitError::silent(MACHINE));
    }
    Ok(())
}
