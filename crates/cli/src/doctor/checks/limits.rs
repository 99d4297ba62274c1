//! Limits of this process that a run with many connections meets.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use dbdyno_plan::grouped;

use crate::doctor::finding::{Finding, bad, good, note};
use crate::time;

/// The most connections that dbdyno is made for, and some room.
const MANY_FILES: u64 = 4096 + 512;
/// Records, logs and sampler of a run with few connections.
const FEW_FILES: u64 = 300;
const MANY_THREADS: u64 = 500;

pub(crate) fn open_files(most: Option<u64>) -> Finding {
    let Some(most) = most else { return good("limit not visible") };
    let found = format!("at most {}", grouped(most));
    match most {
        most if most < FEW_FILES => bad(found, "raise the hard limit (nofile in /etc/security/limits.conf)"),
        most if most < MANY_FILES => note(
            found,
            "enough for fewer connections than 4096; raise the hard limit (nofile in /etc/security/limits.conf)",
        ),
        _ => good(found),
    }
}

pub(crate) fn threads(most: Option<u64>) -> Finding {
    match most {
        None => good("no limit"),
        Some(most @ ..MANY_THREADS) => note(
            format!("at most {}", grouped(most)),
            "a server with many connections needs more; raise ulimit -u, or pids.max of the control group",
        ),
        Some(most) => good(format!("at most {}", grouped(most))),
    }
}

/// Reported, not judged: only servers with large pages or locked memory need more than any system
/// gives.
pub(crate) fn locked_memory() -> Finding {
    let found = match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Err(_) => "limit not visible".to_owned(),
        Ok((_, RLIM_INFINITY)) => "no limit".to_owned(),
        Ok((_, hard)) => {
            format!("at most {}; large pages need as much as the buffer pool", time::bytes(hard))
        }
    };
    good(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Verdict;

    #[test]
    fn few_files_are_bad_and_few_threads_are_noted() {
        let files = [256, 1024, 65_536].map(|most| open_files(Some(most)).verdict);
        assert_eq!(files, [Verdict::Bad, Verdict::Note, Verdict::Good]);
        assert_eq!([threads(Some(100)).verdict, threads(None).verdict], [Verdict::Note, Verdict::Good]);
        assert_eq!(locked_memory().verdict, Verdict::Good);
    }
}
