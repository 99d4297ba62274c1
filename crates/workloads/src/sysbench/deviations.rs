//! Where a script of sysbench runs otherwise than in sysbench.

use dbdyno_record::Deviation;

use super::options::Sysbench;
use crate::deviations::{binary_logs, deviation, of_state, time_cap};

/// Every respect in which a run with `options` differs from sysbench's.
pub(crate) fn deviations(options: &Sysbench) -> Vec<Deviation> {
    let mut list = vec![
        deviation(
            "random numbers",
            "a generator of its own for each thread, seeded by the time; prepare is never seeded",
            "each event's draws depend on the plan's seed, the step, the connection and the event's number: the same for every variant",
        ),
        deviation(
            "connections",
            "a thread each, blocked while it waits",
            "a Lua state each; those that wait share load threads",
        ),
        deviation(
            "errors",
            "an event that meets an ignored error begins again without end; any other error ends the run; MySQL gets no ROLLBACK",
            "ROLLBACK is sent, an event is tried 1000 times, and 100 failed ones in a row end the step",
        ),
        deviation(
            "values in text",
            "--db-ps-mode=disable puts texts between quotes as they are",
            "quotes in them are doubled",
        ),
        deviation(
            "ffi",
            "all of LuaJIT's ffi",
            "the functions sb_..., sleep and usleep; nothing else can be called through it",
        ),
        deviation(
            "files and programs",
            "whatever the user may do",
            "files of the script's folder can be read; programs and other files are off unless allow names them",
        ),
        deviation("compiler", "LuaJIT compiles", "LuaJIT interprets, so that an endless loop can be ended"),
        binary_logs(false),
    ];
    if !options.use_existing && options.settling().behind().is_some() {
        list.push(deviation(
            "settle",
            "none",
            "the server is brought to rest between its load and the first run",
        ));
    }
    list.push(time_cap(options.time_cap));
    list.extend(of_state(options.data, &options.cold));
    list
}
