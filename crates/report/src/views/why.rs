//! Tables and sentences on why a variant is slower: the functions, areas and settings that make the
//! difference in CPU time, where an operation's time goes, and flame graphs.

use std::collections::BTreeMap;

use dbdyno_analyse::statistics::Interval;
use dbdyno_analyse::{
    Contribution, FunctionTime, Presence, ProfileDifference, ProfileFault, StepProfile, TimePerOperation,
    VariantProfile, Why,
};

use crate::document::{Block, Column, Table, TableCell, Tone};
use crate::number::{count, fixed, percent};
use crate::words::table;

/// Functions that a sentence names.
const NAMED: usize = 3;
/// Widest flame graph: functions with a smaller part of it than this many pixels are left out.
const MIN_PIXELS: f64 = 0.5;

/// Returns the answers, one sentence for each comparison of a workload: how much CPU time a variant
/// takes more or less, and where.
pub(crate) fn sentences(why: Option<&Why>, workload: &str) -> Vec<String> {
    let steps = why.into_iter().flat_map(|why| &why.steps).filter(|step| step.workload == workload);
    steps.flat_map(|step| step.differences.iter().map(|found| sentence(step, found))).collect()
}

/// Returns the answers of a comparison.
pub(crate) fn sentences_of(steps: &[StepProfile]) -> Vec<String> {
    steps.iter().flat_map(|step| step.differences.iter().map(|found| sentence(step, found))).collect()
}

/// Writes `point-select: ma11.4 takes +10.1 µs of CPU per query (70.7 → 80.8): +2.9 adaptive hash
/// index (ON → OFF), +0.9 rec_get_offsets_func.`
fn sentence(step: &StepProfile, found: &ProfileDifference) -> String {
    let head = format!(
        "{}: {} takes {} µs of CPU per {} ({} → {})",
        step.step,
        found.variant,
        signed(found.difference_us()),
        one_of(&step.unit),
        fixed(Some(found.base_us), 1),
        fixed(Some(found.variant_us), 1),
    );
    let settings = found.settings.iter().map(|setting| {
        let Contribution { name, difference_us, .. } = &setting.own;
        format!("{} {name} ({} → {})", signed(*difference_us), setting.base, setting.variant)
    });
    let functions = found.functions.iter().map(|function| {
        let Contribution { name, difference_us, .. } = &function.own;
        format!("{} {name}", signed(*difference_us))
    });
    let parts: Vec<String> = settings.chain(functions.take(NAMED)).collect();
    if parts.is_empty() {
        return format!("{head}; no function differs significantly.");
    }
    let explained = format!("functions that differ significantly make {:.0} % of it", 100.0 * found.explained);
    format!("{head}: {}; {explained}.", parts.join(", "))
}

/// Returns the name of one unit of a rate: `query` for `queries/s`.
fn one_of(unit: &str) -> String {
    let many = unit.trim_end_matches("/s");
    match (many.strip_suffix("ies"), many.strip_suffix('s')) {
        (Some(stem), _) => format!("{stem}y"),
        (None, Some(stem)) if !stem.is_empty() => stem.to_owned(),
        _ => "operation".to_owned(),
    }
}

fn signed(us: f64) -> String {
    let text = fixed(Some(us.abs()), if us.abs() < 10.0 { 2 } else { 1 });
    format!("{}{text}", if us < 0.0 { "−" } else { "+" })
}

/// Returns everything on why variants differ, step by step. Graphs and lists of single variants are
/// folded.
pub(crate) fn blocks(why: Option<&Why>) -> Vec<Block> {
    let Some(why) = why else {
        let text = "The servers were not profiled; add --profile to the run, or profile = true to its plan.";
        return vec![Block::text(text)];
    };
    why.steps.iter().flat_map(of_step).collect()
}

fn of_step(step: &StepProfile) -> Vec<Block> {
    let mut blocks = vec![Block::heading(3, format!("{}: {}", step.workload, step.step))];
    blocks.extend(step.differences.iter().map(|found| Block::Text(Tone::Strong, sentence(step, found))));
    blocks.extend(step.variants.iter().filter_map(fault_text).map(|text| Block::Text(Tone::Doubt, text)));
    for found in &step.differences {
        blocks.push(Block::Table(functions_table(found)));
        blocks.push(Block::Table(areas_table(found)));
    }
    let times: Vec<(&str, &TimePerOperation)> = step
        .variants
        .iter()
        .filter_map(|profile| Some((profile.variant.as_str(), profile.time.as_ref()?)))
        .collect();
    if !times.is_empty() {
        blocks.push(Block::Table(times_table(&times)));
    }
    blocks.push(Block::Table(profiles_table(step)));
    for found in &step.differences {
        blocks.extend(graph(step, found));
    }
    for profile in step.variants.iter().filter(|profile| !profile.functions.is_empty()) {
        let own = function_table(&format!("Functions of {}", profile.variant), &profile.functions);
        let callers = function_table(&format!("Allocations of {}", profile.variant), &profile.allocations);
        let tables = [own, callers].into_iter().filter(|table| !table.rows.is_empty()).map(Block::Table);
        blocks.push(Block::Fold(format!("All functions of {}", profile.variant), tables.collect()));
    }
    blocks
}

/// Says why a profile is not used, or which files have no symbols.
fn fault_text(profile: &VariantProfile) -> Option<String> {
    let name = &profile.variant;
    match &profile.fault {
        Some(ProfileFault::NotProfiled(why)) => return Some(format!("{name} has no profile: {why}.")),
        Some(ProfileFault::Incomplete { share, accepted }) => {
            return Some(format!(
                "The profile of {name} is not used: its samples are {} of the server's CPU time, and at most {} may be missing.",
                percent(*share),
                percent(*accepted)
            ));
        }
        None => {}
    }
    let many = |(file, share): (&String, &f64)| {
        (*share >= 0.01).then(|| format!("{} of the samples are in {file}, which has no symbols", percent(*share)))
    };
    let files: Vec<String> = profile.unnamed.iter().filter_map(many).collect();
    let hint = "a package of debug symbols (-dbgsym, -dbg, debuginfo) names its functions";
    (!files.is_empty()).then(|| format!("{name}: {}; {hint}.", files.join("; ")))
}

/// What makes the difference, function by function. The last rows add up to the whole.
fn functions_table(found: &ProfileDifference) -> Table {
    let mut rows = of_both(table("why-functions"), found);
    rows.title = format!("What makes the difference: {}", found.variant);
    let whole = found.difference_us();
    for function in &found.functions {
        let mut cells = vec![named(&function.own), TableCell::from(function.area.as_str())];
        cells.extend(figures(&function.own, whole));
        rows.push(cells);
    }
    let line = |name: &str, [base, variant]: [Option<f64>; 2], us: f64| {
        let mut cells = vec![TableCell::from(name), TableCell::from("")];
        cells.extend([base, variant].map(|us| us.map_or_else(|| TableCell::from(""), |us| time(us))));
        cells.extend([TableCell::from(signed(us)), TableCell::from(""), share(us, whole)]);
        cells
    };
    rows.push(line("all others", [None, None], found.rest_us));
    rows.push(line("all functions", [Some(found.base_us), Some(found.variant_us)], whole));
    rows
}

/// Names the columns of the base and of the variant.
fn of_both(mut table: Table, found: &ProfileDifference) -> Table {
    for column in &mut table.columns {
        match column.name.as_str() {
            "base" => column.name.clone_from(&found.base),
            "variant" => column.name.clone_from(&found.variant),
            _ => {}
        }
    }
    table
}

fn named(own: &Contribution) -> TableCell {
    let word = match own.presence {
        Presence::Both => return TableCell::from(own.name.as_str()),
        Presence::New => "new",
        Presence::Gone => "gone",
    };
    TableCell::from(format!("{} ({word})", own.name))
}

fn areas_table(found: &ProfileDifference) -> Table {
    let mut rows = of_both(table("why-areas"), found);
    rows.title = format!("The difference by area: {}", found.variant);
    for area in &found.areas {
        let mut cells = vec![TableCell::from(area.name.as_str())];
        cells.extend(figures(area, found.difference_us()));
        rows.push(cells);
    }
    rows
}

/// Base, variant, difference, interval and share of the whole difference. Only what is decided has a
/// colour.
fn figures(own: &Contribution, whole: f64) -> [TableCell; 5] {
    let tone = match own.is_decided() {
        true if own.difference_us > 0.0 => Tone::Worse,
        true => Tone::Better,
        false => Tone::Plain,
    };
    let value = Some(own.difference_us);
    let difference = TableCell { value, ..TableCell::toned(signed(own.difference_us), tone) };
    let interval = own.interval.map_or_else(String::new, interval_text);
    [time(own.base_us), time(own.variant_us), difference, interval.into(), share(own.difference_us, whole)]
}

fn time(us: f64) -> TableCell {
    TableCell { value: Some(us), ..TableCell::from(fixed(Some(us), 2)) }
}

fn share(us: f64, whole: f64) -> TableCell {
    // Of next to nothing, no share is formed.
    if whole.abs() < 0.01 { TableCell::from("–") } else { TableCell::from(format!("{:.0}", 100.0 * us / whole)) }
}

fn interval_text(interval: Interval) -> String {
    format!("{} to {}", signed(interval.low), signed(interval.high))
}

/// Where an operation's time goes, with one column per variant.
fn times_table(times: &[(&str, &TimePerOperation)]) -> Table {
    let mut rows = table("why-time");
    rows.columns.extend(times.iter().map(|(name, _)| Column::new(name, "µs", "")));
    let mut row = |name: &str, figure: &dyn Fn(&TimePerOperation) -> Option<f64>| {
        let figures: Vec<Option<f64>> = times.iter().map(|(_, time)| figure(time)).collect();
        if figures.iter().any(Option::is_some) {
            let cells = figures.into_iter().map(|us| us.map_or_else(|| TableCell::from("NA"), time));
            rows.push(std::iter::once(TableCell::from(name)).chain(cells));
        }
    };
    row("CPU of the server", &|time| Some(time.cpu_us));
    row("run queue", &|time| time.run_queue_us);
    row("disk IO", &|time| time.io_us);
    let names: BTreeMap<&str, ()> =
        times.iter().flat_map(|(_, time)| &time.waits).map(|wait| (wait.name.as_str(), ())).collect();
    for name in names.into_keys() {
        let of = |time: &TimePerOperation| {
            Some(time.waits.iter().find(|wait| wait.name == name).map_or(0.0, |wait| wait.us))
        };
        row(name, &of);
    }
    row("rest: network, client, waits without a name", &|time| Some(time.rest_us));
    row("service time", &|time| Some(time.service_us));
    rows
}

/// How each variant was profiled, and what the profiler cost.
fn profiles_table(step: &StepProfile) -> Table {
    let mut rows = table("why-profiles");
    for profile in &step.variants {
        let Some(profiler) = &profile.profiler else { continue };
        let cost = |share: Option<f64>| share.map_or_else(|| "NA".to_owned(), |share| signed_percent(share - 1.0));
        rows.push([
            profile.variant.clone(),
            profile.blocks.to_string(),
            count(profile.samples),
            format!("{}, {}/s", profiler.event_sampled, profiler.samples_per_second),
            percent(profile.sampled_share),
            cost(profile.rate_share),
            cost(profile.cpu_share),
        ]);
    }
    rows
}

fn signed_percent(share: f64) -> String {
    format!("{}{}", if share < 0.0 { "−" } else { "+" }, percent(share.abs()))
}

fn function_table(title: &str, functions: &[FunctionTime]) -> Table {
    let mut rows = table("why-function");
    rows.title = title.to_owned();
    for function in functions {
        rows.push([
            TableCell::from(function.function.as_str()),
            TableCell::from(function.area.as_str()),
            time(function.own_us),
            time(function.whole_us),
        ]);
    }
    rows
}

/// Draws the flame graph of a variant. Widths are its CPU time per operation; red takes longer than
/// in the base, blue shorter.
fn graph(step: &StepProfile, found: &ProfileDifference) -> Option<Block> {
    let new = step.variant(&found.variant)?;
    let base = step.variant(&found.base)?;
    let lines = stacks_of_both(base, new);
    let mut options = inferno::flamegraph::Options::default();
    options.title = format!("{}: {} against {}", step.step, new.variant, base.variant);
    options.count_name = format!("ns per {}", one_of(&step.unit));
    options.min_width = MIN_PIXELS;
    options.deterministic = true;
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg).ok()?;
    let svg = String::from_utf8(svg).ok()?;
    let start = svg.find("<svg")?;
    let title = format!("Flame graph: {} against {}", new.variant, base.variant);
    Some(Block::Fold(title.clone(), vec![Block::Graph(title, svg[start..].to_owned())]))
}

/// Returns all stacks of two variants, each with its nanoseconds per operation in the base and in
/// the variant.
fn stacks_of_both(base: &VariantProfile, new: &VariantProfile) -> Vec<String> {
    let mut both = BTreeMap::<&str, [f64; 2]>::new();
    for (side, profile) in [base, new].into_iter().enumerate() {
        let unit_ns = 1e3 * profile.cpu_us / (profile.samples as f64).max(1.0);
        for (stack, samples) in &profile.stacks {
            both.entry(stack).or_default()[side] += unit_ns * *samples as f64;
        }
    }
    both.into_iter().map(|(stack, [base, new])| format!("{stack} {base:.0} {new:.0}")).collect()
}

#[cfg(test)]
#[path = "why_tests.rs"]
mod tests;
