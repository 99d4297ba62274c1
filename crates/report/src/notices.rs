//! Warnings, and reasons why figures are not used, in words: one row a code.
//!
//! `{name}` is a figure of the notice, `{place}` its first place (`{Place}` begins a sentence),
//! `{last_place}` its last, `{places}` all of them, `{times_table}` the name of the table of
//! response times. After a colon comes how a figure is written: `1` with one decimal, `1%` as a
//! percentage with one decimal, `p` as a probability, `times` as `once` or `3 times`, `if` not at
//! all, `begins` as a text that begins a sentence, any other word as what is counted: `3 steps`.
//! Places that are `listed` are `a, b and c`, or `a, b and 7 more` with the figure `more`. What is
//! in square brackets is left out where a figure in it is missing. `|` is the end of what is said
//! where there is no room; `first` and `rest` are the parts of a text or list up to there and after
//! it.

use dbdyno_analyse::{BlockShare, CheckPart, Code, Figure, Notice, numbered, p_text};

use crate::levels;
use crate::number::fixed;
use crate::words::{TIMES_TABLE, blocks_text, listed};

const fn row(code: Code) -> &'static str {
    match code {
        Code::DebugBuild => {
            "This run was made by a {build} build of dbdyno: its client is slow and its numbers are not worth comparing."
        }
        Code::UnknownBase => "The base \"{place}\" is not a variant of this run, so there are no ratios.",
        Code::RunGoingOn => {
            "The run is going on: {ended} of {planned} cells have ended[, {under_way} is under way]."
        }
        Code::CellFailed => "Cell failed: {place}: {message}.",
        Code::CellInterrupted => "Cell interrupted: {place}.",
        Code::CellUnfinished => "Cell did not end: {place}; dbdyno was stopped in it.",
        Code::CellRepeated => {
            "Cell repeated: {place} failed ({message}) and was run again, later than its block. Records of the failure: {records}."
        }
        Code::CellToRepeat => {
            "Cell repeated: {place} failed ({message}) and is to run again. Records of the failure: {records}."
        }
        Code::CellsMissing => "{missing} of {planned} cells did not run.",
        Code::RecordsMissing => {
            "Records are missing: {place} completed, and the run directory has none of {steps}."
        }
        Code::CellRecordsMissing => {
            "Records are missing: {place} completed, and its folder is not in the run directory."
        }
        Code::Resumed => "The run was stopped and resumed {times:times}[, in {places:listed}].",
        Code::BlockResumed => {
            "{Place} was interrupted and resumed ({parts}): its ratios may include changes of the machine in between."
        }
        Code::DamagedRecord => "{quoted:begins}",
        Code::InvalidStep => "Invalid, not used: {place}: {reasons}[; and {more_alike} more like these].",
        Code::InvalidSteps => {
            "Invalid, not used: {runs} of {all} runs of steps ({steps:step}, {variants:variant}), first {place}: {reasons}[; and {more_alike} more like these]. Each is named at its step."
        }
        Code::ZeroRate => "{place}: nothing was answered in {blocks} of {of}.",
        Code::Stalled => {
            "{place}: nothing was answered in {blocks} of {of}, and the base answered: stalled, whatever its ratio in other blocks."
        }
        Code::BaseStalled => {
            "{place}: nothing was answered in {blocks} of {of}: no ratio there, and no verdict of faster or same."
        }
        Code::TargetMissed => {
            "{place}: background inserts {rate:0}/s, at least {least:0}/s of {target:0}/s needed[; missed in {missed} of {blocks:block}]; its queries ran with fewer concurrent writes than planned."
        }
        Code::TargetMissedByClient => {
            "{place}: background inserts {rate:0}/s of {target:0}/s, and the slowest client {part:0%} % of its part, at least {share:0%} % needed[; missed in {missed} of {blocks:block}]; its queries ran with fewer concurrent writes than planned."
        }
        Code::TargetMissedInBlocks => {
            "{place}: the background rate was missed in {missed} of {blocks:block}, and kept by the median."
        }
        Code::ScheduleMissed => {
            "{place}: the schedule was not kept: {reached:0}/s of {asked:0}/s were reached[, {dropped:1%} % of the operations dropped][, the queue grew by {queued:1%} % of the operations]; response times are of answered operations only."
        }
        Code::OutageOfSchedule => {
            "Outage in {place}: {seconds:1} s, [{at_least}]{reconnects:reconnect}[, {not_back:connection} not back at the end]; connections were lost for {connection_seconds:1} s in all. Rates include it, and so do response times of operations that were due meanwhile and answered later. Service times do not; failed operations have no time."
        }
        Code::OutageOfClosedLoop => {
            "Outage in {place}: {seconds:1} s, [{at_least}]{reconnects:reconnect}[, {not_back:connection} not back at the end]; connections were lost for {connection_seconds:1} s in all. Rates include it. Service and response times do not: failed operations have no time, and a lost connection sends nothing."
        }
        Code::ClientPause => {
            "dbdyno was paused for at least {seconds:1} s in {place}: its figures include that pause, which the server did not cause."
        }
        Code::ShortSteps => {
            "In {runs:run} fewer operations were answered than there were connections, at worst in {place}: {operations} on {connections:connection}. Rates leave out the operations in flight at the end, and latencies leave out the slow ones: give these steps more time."
        }
        Code::ShortScans => {
            "In {runs:run} fewer scans ended than there were connections, at worst in {place}: {operations} on {connections:connection}. Rates count the part of unfinished scans that lies in the step, but rest on few scans; latencies leave out the slow ones: give these steps more time."
        }
        Code::EmptyDeletes => {
            "{place}: share of deletes that found no row: {shares}. They are cheaper and count in the rate, and a faster variant has more of them, so ratios compare unequal work. Give the step more rows (table_size) or fewer operations."
        }
        Code::Unsettled => {
            "In {place}, {why}[; {times} times in all]. That work ran during the steps after it."
        }
        Code::DeferredWork => {
            "{place} deferred work to later steps: {levels}[; and {more:more step}]. Details: tables `Deferred work`."
        }
        Code::FailedOperations => "{failed} {kind} operations failed ({share:3%} %) in {place}.",
        Code::Recorded => "{quoted:begins}[ ({place})]",
        Code::RecordedOften => "{quoted:begins}[ ({times} times, first in {place})]",
        Code::ServerChanged => "The server of {place} changed during the run: \"{first}\", then \"{other}\".",
        Code::SettingsChanged => {
            "The settings of {place} changed during the run, between {first} and {other}: {changes}. Its blocks are not comparable."
        }
        Code::Encryption => "Encryption of connections differs, which affects every ratio: {connections}.",
        Code::Configuration => {
            "The configurations differ, which affects every ratio: {classes}. See Configuration differences below."
        }
        Code::ExternalServer => {
            "{places}: external server: its CPU, memory and disk are unknown; host figures are of the client's host."
        }
        Code::ExternalServerSeen => {
            "{places}: external server on this host: its process is visible, its data directory is not, so disk figures and sizes are unknown."
        }
        Code::Embedded => {
            "{places}: the database works inside dbdyno, so client CPU and memory are client plus database."
        }
        Code::NoDatabase => "{places}: no database: the figures are those of dbdyno itself.",
        Code::NotCold => {
            "{place} should have started cold but read nothing from storage in {blocks}: its caches were filled before it began (a server may load its buffer pool again when it starts)."
        }
        Code::SharedCpus => "Client and server share CPUs {cpus}.",
        Code::UnpinnedCpus => {
            "Client and server are not pinned to CPUs of their own and take CPU time from each other; see host.server_cpus and host.client_cpus."
        }
        Code::FsyncsUncounted => {
            "{places}: the binary log is synced and the server does not count syncs, so there are no fsyncs per commit. Its performance schema counts them: switch it on, or let dbdyno's user read it."
        }
        Code::CalibrationWrong => {
            "In {runs:run} the client reached more than in its calibration, at worst in {place}: {rate:0} statements/s with {connections:connection}, {share:0%} % of the {could:0}/s with {could_connections}. It was not used for them. Calibrate again on an idle machine (dbdyno doctor --client)."
        }
        Code::Sampling => {
            "Sampling used up to {share:2%} % of a core ({place}); more than {limit:1%} % may disturb the measurement."
        }
        Code::HostCpuUnseen => {
            "The host's CPU is not explained by its parts in {runs:run}, at worst in {place}: {share:0%} % of the host's CPU belongs to no process that was seen (another container or virtual machine, processes hidden from this user). Figures of the whole host (cpups, cpupq, rest) are off by as much. Figures of server and client are not affected."
        }
        Code::HostCpuUncounted => {
            "The host's CPU is not explained by its parts in {runs:run}, at worst in {place}: the processes used {share:0%} % more CPU than the host counted (its ticks miss work that begins and ends between two ticks). Figures of the whole host (cpups, cpupq, rest) are off by as much. Figures of server and client are not affected."
        }
        Code::OtherReads => {
            "Other processes read from the data device: {share:0%} % of all reads at worst, in {place}; more than {limit:0%} % in {runs} of {all} runs of steps. Device figures (rps, rmbps, rpq, rkbpq, r/o, rKB/o) include that, server read does not. Writes by others cannot be separated."
        }
        Code::Steal => {
            "Other virtual machines took CPU time from this one (steal): {share:1%} % of it at worst, in {place}, and more than {limit:0%} % in {runs} of {all} runs of steps. Rates and latencies include it, unequally by block."
        }
        Code::ClientWait => {
            "The load client waited for a CPU: a thread in {share:1%} % of the time at worst, in {place}; in more than {limit:0%} % in {runs} of {all} runs of steps. Rates are lower by up to as much, and latencies longer."
        }
        Code::ControlDiffers => {
            "The base differs from itself ({again}) in {places}: something other than the variants changes the rates, so other differences there may be false too."
        }
        Code::RatesRise => {
            "All steps together: rates rise from block to block (Kendall's tau {tau:2} of the mean over all steps and variants, p {p:p}). The machine has drifted. Ratios are formed within blocks and remain valid."
        }
        Code::RatesFall => {
            "All steps together: rates fall from block to block (Kendall's tau {tau:2} of the mean over all steps and variants, p {p:p}). The machine has drifted. Ratios are formed within blocks and remain valid."
        }
        Code::RateRises => {
            "{place}: the rate rises from block to block (Kendall's tau {tau:2}, adjusted p {adjusted_p:p}). Ratios are formed within blocks and remain valid; rates of early and late blocks differ."
        }
        Code::RateFalls => {
            "{place}: the rate falls from block to block (Kendall's tau {tau:2}, adjusted p {adjusted_p:p}). Ratios are formed within blocks and remain valid; rates of early and late blocks differ."
        }
        Code::MachinesDiffer => {
            "The ratio depends on the machine in {place} (adjusted p {p:p})[, and in {more:other comparison}]. See the table By machine: on other machines it may be another, beyond its interval."
        }
        Code::OddMachine => {
            "Machine {machine} is odd: in {place} its ratio is {ratio:2}, and {others:2} on the others (adjusted p {p:p})[; it is odd in {more:other comparison} too]. Look for what sets it apart."
        }
        Code::OneBlock => {
            "One block: no significance test is possible; a difference may be chance. Use blocks = 5 or more."
        }
        Code::OneBlockMeasured => {
            "One block of {planned} was measured: no significance test is possible; a difference may be chance."
        }
        Code::NoDesign => {
            "The variants' factors are no full factorial design, so there are no effects: {reason}."
        }
        Code::NotComparable => "The runs are not comparable: {difference}.",
        Code::TwoRuns => {
            "Two runs: changes of the machine between them are part of the ratios, and no interval shows them. Better: put both variants into one plan, which interleaves their blocks."
        }
        Code::ChangedBetweenRuns => "Changed between the runs: {changes}.",
        Code::StartedOtherwise => "Different start: {what}: {base} ({place}), {new} ({last_place}).",
        Code::DebugBuildCompared => {
            "Measured with a debug build of dbdyno: its numbers are not worth comparing."
        }
        Code::SeveralTools => {
            "Run {run} was measured by more than one dbdyno: {first}, then {other}. Rates of its blocks may differ by that."
        }
        Code::WithoutChecksums => {
            "Run {run}: {steps:step} without checksums, of an earlier dbdyno; whether their files were changed is not known."
        }
        Code::SettingsDiffer => "Different settings: {difference}.",
        Code::InterimAnalyses => {
            "Interim analyses: {looks}. Verdicts, adjusted p and intervals are corrected for them."
        }
        Code::InterimAnalysesOfVerdicts => {
            "Interim analyses: {looks}. Verdicts and adjusted p are corrected for them, intervals are not."
        }
        Code::AnalysedWhileGoingOn => {
            "Run {run} was analysed {looks:time} while it went on, and its own ratios decided its number of blocks. Figures of two runs are not corrected for that, so false differences are more likely. Better compare runs without a budget."
        }
        Code::NewAnsweredNothing => {
            "{place}: new answered nothing in {blocks} of {of}[, base answered nothing in {base_blocks}][{ratio:if}; the ratio is that of the other blocks]."
        }
        Code::BaseAnsweredNothing => {
            "{place}: base answered nothing in {base_blocks}[{ratio:if}; the ratio is that of the other blocks]."
        }
        Code::NewMissedTarget => {
            "New missed the planned background rate in {places:listed}, which base kept: its queries ran with fewer concurrent writes."
        }
        Code::BothPaced => {
            "The plan fixes the rate in {places:listed}, and both kept it: compare response times in the reports' tables {times_table}."
        }
        Code::NewMissedSchedule => "New did not keep the schedule that base kept in {places:listed}.",
        Code::OneBlockCompared => {
            "One block: there are ratios, but no intervals and no verdicts. Run five blocks or more."
        }
        Code::LeftOutGoingOn => "Run {run} is still going on, and is left out.",
        Code::UnlikeFirst => "Run {run} is not comparable to the first: {difference}.",
        Code::ChangedWithRun => "Changed with run {run}: {changes}.",
        Code::TimesFollowed => {
            "The plan sets the rate, and {places:listed} kept it: there the history follows p99 of response times, and slower means that p99 rose."
        }
        Code::DroppedToZero => "Run {run} dropped to rate zero: {steps}[ and {more} more].",
        Code::TooFewRuns => {
            "{runs} runs are too few to find a change of one series among {series}, however great: that takes {least_runs} or more[, and one of all series at once from {least_runs_of_all} on]."
        }
        Code::Restless => "the server did not settle within {seconds:0} s: {levels}",
        Code::Quoted | Code::DamagedStep => "{text:first}|{text:rest}",
        Code::NoWindow => "no common window was recorded",
        Code::ContentDiffers => "table {place}: {parts:first}|{parts:rest}",
        Code::OperationsLost => {
            "{place}: up to {until_seconds:3} s {due} operations were due but {accounted} are accounted for"
        }
        Code::OperationsOpen => {
            "{place}: the step ended with {waiting} operations waiting and {in_flight} not answered"
        }
        Code::IntervalsEmpty => "intervals.jsonl is missing or empty",
        Code::IntervalsMissing => "intervals.jsonl: {place}: no line",
        Code::IntervalsGap => "intervals.jsonl: {place}: nothing from {from_seconds:6} s to {to_seconds:6} s",
        Code::IntervalsTwice => {
            "intervals.jsonl: {place}: {from_seconds:6} s to {to_seconds:6} s is in it more than once"
        }
        Code::IntervalsShort => {
            "intervals.jsonl: {place}: it ends at {from_seconds:6} s, and the window at {to_seconds:6} s"
        }
        Code::OperationsUnlike => {
            "intervals.jsonl: {place}: it holds {ended} operations, but events.jsonl counts {sent} that its connections sent"
        }
        Code::ConnectionsUnlike => "events.jsonl: {ended} of {of} connections say that they have ended",
        Code::NoBarrier => "events.jsonl: no barrier was recorded",
        Code::TimesUnlike => {
            "histograms.hlog: {place} holds the times of {timed} operations of the window, and intervals.jsonl {done} operations"
        }
        Code::StatementTimesUnlike => {
            "histograms.hlog: {place} holds {timed} times, and events.jsonl {done} statements"
        }
        Code::Paused => {
            "dbdyno was paused for at least {seconds:1} s in the window| (1 s or more at once makes a step invalid): by Ctrl-Z, a frozen container, a paused machine, or lack of CPU"
        }
        Code::AnswerDiffers => {
            "the answer of {query} is not that of {base}|: it begins with {begins}, that of {base} with {base_begins}; the record holds both"
        }
        Code::OperationsFailed => {
            "{share:1%} % of the {kind} operations failed|; at most {most:0%} % may, because rate and response times are of those that were answered ({failed} of {ended} failed[; the first error: {error}])"
        }
        Code::ClientBusy => {
            "the client was the limit: its busiest load thread had work in {share:0%} % of the window| (on a CPU in {on_cpu:0%} %, waiting for one in {waiting:0%} %; {limit:0%} % or more makes a step invalid); give the client more CPUs (host.client_cpus) or threads (host.client_threads), or the server fewer"
        }
        Code::ClientWaited => {
            "the client was the limit: a load thread waited for a CPU in {share:0%} % of the window| ({limit:0%} % or more makes a step invalid), because other programs ran on its CPUs (host.client_cpus), or the threads that make a load's rows; give the client more CPUs"
        }
        Code::ClientAtItsRate => {
            "the client was the limit: {rate:0} statements/s with {connections:connection} are {share:0%} % of the {could:0}/s that it can reach here with {could_connections}| (dbdyno doctor --client; {limit:0%} % or more makes a step invalid); give the client more CPUs (host.client_cpus) or threads (host.client_threads), or the server fewer"
        }
        Code::ClientLate => {
            "the client was late: 1 in 100 of the {kind} operations for which a connection was free was sent {lag_ms:1} ms or more after it was due| (at most {allowed_ms:1} ms are allowed: 1 ms, or {allowed_share:0%} % of the response time's p99 of {response_ms:1} ms); give the client CPUs of its own (host.client_cpus), more threads (host.client_threads), or ask for a lower rate"
        }
        Code::ClientHostBusy => {
            "client host {place} was the limit: its busiest load thread had work in {share:0%} % of the window| ({limit:0%} % or more makes a step invalid); use more client hosts, or hosts with more CPUs"
        }
        Code::ClientHostLate => {
            "client host {place} may have begun late: the start came {late_us} us too late to it, and its clock is known to {clock_error_us} us| (more than {limit_us} us together make a step invalid); give control connections a quicker network"
        }
    }
}

/// A warning in one or more sentences, or a reason as a part of one.
pub fn text(notice: &Notice) -> String {
    worded(notice, &row(notice.code).replace('|', ""))
}

/// What a reason says first, for a place that has no room for its details and for what to do.
pub fn brief(notice: &Notice) -> String {
    worded(notice, row(notice.code).split('|').next().unwrap_or_default())
}

/// Reasons in words, parted by semicolons.
pub fn reasons_text(reasons: &[Notice]) -> String {
    reasons.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// Gives each, and the reasons that it gives, its words as a figure `text`, for readers of JSON.
pub(crate) fn add_words<'a>(reasons: impl IntoIterator<Item = &'a mut Notice>) {
    for reason in reasons {
        let words = text(reason);
        for figure in reason.figures.values_mut() {
            if let Figure::Reasons(inner) = figure {
                add_words(inner);
            }
        }
        reason.figures.insert("text", words.into());
    }
}

fn worded(notice: &Notice, words: &str) -> String {
    let mut text = String::new();
    let mut rest = words;
    while let Some(at) = rest.find('[') {
        text.push_str(&filled(notice, &rest[..at]).0);
        let end = rest[at..].find(']').map_or(rest.len(), |end| at + end);
        let (part, is_whole) = filled(notice, &rest[at + 1..end]);
        text.push_str(if is_whole { &part } else { "" });
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    text.push_str(&filled(notice, rest).0);
    text
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Warnings in words, each in one or more sentences.
pub fn texts<'a>(notices: impl IntoIterator<Item = &'a Notice>) -> Vec<String> {
    notices.into_iter().map(text).collect()
}

/// The words with their figures, and whether the notice has all of them.
fn filled(notice: &Notice, words: &str) -> (String, bool) {
    let (mut text, mut is_whole, mut rest) = (String::new(), true, words);
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let (name, how) = name.split_once(':').unwrap_or((name, ""));
        let value = match name {
            "place" => notice.places.first().cloned(),
            "Place" => notice.places.first().map(|place| capitalised(place)),
            "last_place" => notice.places.last().cloned(),
            "times_table" => Some(TIMES_TABLE.to_owned()),
            "places" if notice.places.is_empty() => None,
            "places" if how == "listed" => Some(places_listed(notice)),
            "places" => Some(notice.places.join(", ")),
            name => notice.figures.get(name).map(|figure| written(figure, how)),
        };
        is_whole &= value.is_some();
        text.push_str(before);
        text.push_str(&value.unwrap_or_default());
        rest = after;
    }
    text.push_str(rest);
    (text, is_whole)
}

/// `a, b and c`, `a, b and 7 more`
fn places_listed(notice: &Notice) -> String {
    let more = notice.figures.get("more").map(|more| format!("{} more", written(more, "")));
    listed(&notice.places.iter().map(String::as_str).chain(more.as_deref()).collect::<Vec<_>>())
}

fn written(figure: &Figure, how: &str) -> String {
    match (figure, how) {
        (_, "if") => String::new(),
        // Records hold warnings as text only: one about a cell begins with its place.
        (Figure::Text(text), "begins") if text.starts_with("block ") => capitalised(text),
        (Figure::Text(text), "first") => text[..clause(text)].to_owned(),
        (Figure::Text(text), "rest") => text[clause(text)..].to_owned(),
        (Figure::Text(text), _) => text.clone(),
        (Figure::Parts(parts), "first") => parts.first().map_or_else(String::new, part_text),
        (Figure::Parts(parts), _) => {
            parts.iter().skip(1).map(|part| format!("; {}", part_text(part))).collect()
        }
        (Figure::Row(row), _) if row.is_empty() => "no row".to_owned(),
        (Figure::Row(row), _) => {
            let cells: Vec<&str> = row.iter().map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
            format!("({})", cells.join(", "))
        }
        (Figure::Reasons(reasons), _) => reasons_text(reasons),
        (Figure::Restless(levels), _) => levels::restless(levels),
        (Figure::Deferred(work), _) => work.iter().map(levels::deferred).collect::<Vec<_>>().join("; "),
        (Figure::Blocks(blocks), _) => blocks_text(blocks),
        (Figure::Shares(shares), _) => shares.iter().map(share_text).collect::<Vec<_>>().join(", "),
        (Figure::Count(1), "times") => "once".to_owned(),
        (Figure::Count(count), "times") => format!("{count} times"),
        (Figure::Count(count), "") => count.to_string(),
        (Figure::Count(count), noun) => numbered(*count, noun),
        (Figure::Number(number), "p") => p_text(*number),
        (Figure::Number(number), how) => {
            let decimals = how.trim_end_matches('%').parse().unwrap_or(0);
            fixed(Some(if how.ends_with('%') { 100.0 * number } else { *number }), decimals)
        }
    }
}

/// Where the first clause of a text ends.
fn clause(text: &str) -> usize {
    ["; ", " ("].into_iter().filter_map(|mark| text.find(mark)).min().unwrap_or(text.len())
}

fn part_text(part: &CheckPart) -> String {
    format!("{} is {}, must be {}", part.name, part.actual, part.expected)
}

/// `b l.i0 in 2 of 3 blocks`
fn share_text(share: &BlockShare) -> String {
    format!("{} in {} of {}", share.place, share.blocks, numbered(share.of as u64, "block"))
}

#[cfg(test)]
mod tests {
    use dbdyno_analyse::{DeferredWork, RestlessLevel};

    use super::*;

    /// Every name in braces with a figure that suits how it is written.
    fn example(code: Code) -> Notice {
        let mut notice = Notice::new(code).at("block 1 wal l.i0").at("block 2 wal l.i0");
        for part in row(code).split('{').skip(1) {
            let name: &'static str = part.split('}').next().unwrap_or_default();
            let (name, how) = name.split_once(':').unwrap_or((name, ""));
            notice = match how {
                "p" => notice.with(name, 0.012),
                how if how.starts_with(|c: char| c.is_ascii_digit()) => notice.with(name, 0.125),
                "" if name.ends_with("blocks") => notice.with(name, &[2, 5][..]),
                "" if [
                    "ended",
                    "planned",
                    "missing",
                    "runs",
                    "all",
                    "of",
                    "missed",
                    "failed",
                    "operations",
                    "could_connections",
                    "due",
                    "accounted",
                    "waiting",
                    "in_flight",
                    "sent",
                    "timed",
                    "done",
                    "late_us",
                    "clock_error_us",
                    "limit_us",
                    "times",
                    "looks",
                    "series",
                    "least_runs",
                    "least_runs_of_all",
                    "more",
                ]
                .contains(&name) =>
                {
                    notice.with(name, 3_u32)
                }
                "" | "begins" | "first" | "rest" => notice.with(name, format!("<{name}>")),
                _ => notice.with(name, 3_u32),
            };
        }
        notice
    }

    #[test]
    fn the_words_of_every_warning() {
        let lines: Vec<String> =
            Code::ALL.iter().map(|code| format!("{code:?}: {}", text(&example(*code)))).collect();
        assert!(!lines.iter().any(|line| line.contains(['{', '}', '[', '|'])), "{lines:#?}");
        insta::assert_snapshot!("notices", lines.join("\n"));
    }

    #[test]
    fn a_reason_has_a_full_and_a_brief_form() {
        let both = |reason: Notice| format!("{}\n{}", brief(&reason), text(&reason));
        let part = |name: &str, actual| CheckPart { name: name.to_owned(), expected: 13, actual };
        let differs = Notice::reason(Code::ContentDiffers).at("pi1");
        insta::assert_snapshot!(both(differs.with("parts", vec![part("rows", 12), part("sum(price)", -4)])), @r"
        table pi1: rows is 12, must be 13
        table pi1: rows is 12, must be 13; sum(price) is -4, must be 13
        ");
        let row = vec![Some("FRANCE".to_owned()), None];
        let answer = Notice::reason(Code::AnswerDiffers).with("query", "q5").with("base", "a");
        let answer = answer.with("begins", row).with("base_begins", Vec::<Option<String>>::new());
        insta::assert_snapshot!(both(answer), @r"
        the answer of q5 is not that of a
        the answer of q5 is not that of a: it begins with (FRANCE, NULL), that of a with no row; the record holds both
        ");
        let busy = Notice::reason(Code::ClientBusy).with("share", 0.97).with("on_cpu", 0.95);
        insta::assert_snapshot!(both(busy.with("waiting", 0.02).with("limit", 0.9)), @r"
        the client was the limit: its busiest load thread had work in 97 % of the window
        the client was the limit: its busiest load thread had work in 97 % of the window (on a CPU in 95 %, waiting for one in 2 %; 90 % or more makes a step invalid); give the client more CPUs (host.client_cpus) or threads (host.client_threads), or the server fewer
        ");
        insta::assert_snapshot!(both(Notice::quoted("sampling failed: no room (ENOSPC); see the log.")), @r"
        sampling failed: no room
        sampling failed: no room (ENOSPC); see the log
        ");
        insta::assert_snapshot!(both(Notice::quoted("clock jumped")), @r"
        clock jumped
        clock jumped
        ");
    }

    #[test]
    fn reasons_and_levels_are_parts_of_a_sentence() {
        let invalid = Notice::new(Code::InvalidSteps).at("1 a l.i1").with("runs", 4_u32).with("all", 60_u32);
        let invalid = invalid.with("steps", 2_u32).with("variants", 1_u32).with("more_alike", 3_u32);
        let invalid =
            invalid.with("reasons", vec![Notice::reason(Code::NoWindow), Notice::quoted("clock jumped")]);
        let level =
            RestlessLevel { level: "dirty_bytes".to_owned(), value: 120_000_000, quiet_at: 2_600_000 };
        let restless = Notice::reason(Code::Restless).with("seconds", 60.0).with("levels", vec![level]);
        let unsettled = Notice::new(Code::Unsettled).at("1 a l.i1").with("why", vec![restless]);
        let work = DeferredWork {
            level: "dead_rows".to_owned(),
            more: 17,
            share: None,
            written_bytes: None,
            from: "l.i1".to_owned(),
            to: "l.i2".to_owned(),
        };
        let deferred = Notice::new(Code::DeferredWork).at("a").with("levels", vec![work]).with("more", 2_u32);
        insta::assert_snapshot!(texts(&[invalid, unsettled, deferred]).join("\n"), @r"
        Invalid, not used: 4 of 60 runs of steps (2 steps, 1 variant), first 1 a l.i1: no common window was recorded; clock jumped; and 3 more like these. Each is named at its step.
        In 1 a l.i1, the server did not settle within 60 s: dirty pages 120.0 MB (quiet at 2.6 MB). That work ran during the steps after it.
        a deferred work to later steps: 17 more dead rows from l.i1 to l.i2; and 2 more steps. Details: tables `Deferred work`.
        ");
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let missed =
            Notice::new(Code::ScheduleMissed).at("b l.i0").with("reached", 476.0).with("asked", 1_000.0);
        let dropped = missed.clone().with("dropped", 0.524);
        insta::assert_snapshot!(text(&missed), @"b l.i0: the schedule was not kept: 476/s of 1,000/s were reached; response times are of answered operations only.");
        insta::assert_snapshot!(text(&dropped), @"b l.i0: the schedule was not kept: 476/s of 1,000/s were reached, 52.4 % of the operations dropped; response times are of answered operations only.");
        insta::assert_snapshot!(text(&Notice::new(Code::Resumed).with("times", 1_u32)), @"The run was stopped and resumed once.");
    }
}
