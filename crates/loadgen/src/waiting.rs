//! Reports connections that wait to be opened or to be answered, once they have waited for half a
//! minute. A pooler, locks or a full server may let them wait for ever.

use std::time::{Duration, Instant};

/// With this, whoever watches a run learns about waiting connections within a minute.
const FIRST_WORD: Duration = Duration::from_secs(30);

/// What some connections wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// They wait to be open.
    Open,
    /// They wait for the answer to their first statement.
    FirstAnswer,
}

/// Remembers since when some connections have been waiting.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    since: Option<Instant>,
    is_said: bool,
}

impl Waiting {
    /// Takes how many of `all` wait now. The result is the warning to give, once.
    pub(crate) fn look(&mut self, what: WaitFor, waiting: usize, all: usize, now: Instant) -> Option<String> {
        if waiting == 0 {
            self.since = None;
            return None;
        }
        let lasts = now.saturating_duration_since(*self.since.get_or_insert(now));
        if self.is_said || lasts < FIRST_WORD {
            return None;
        }
        self.is_said = true;
        Some(format!(
            "{waiting} of {all} connections {} {} s; a pooler or max_connections may hold them",
            match what {
                WaitFor::Open => "have not been opened for",
                WaitFor::FirstAnswer => "have had no answer to their first statement for",
            },
            lasts.as_secs()
        ))
    }
}

/// Returns numbers in order with neighbours joined, as in `1, 4 to 9`.
pub(crate) fn ranges(numbers: impl Iterator<Item = u32>) -> String {
    /// More ranges would hide the rest of the message.
    const MOST: usize = 8;
    let mut all: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match all.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => all.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    };
    let texts: Vec<String> = all.iter().take(MOST).map(text).collect();
    texts.join(", ") + if all.len() > MOST { ", ..." } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_wait_for_half_a_minute_are_said_once() {
        let (mut waiting, began) = (Waiting::default(), Instant::now());
        let said: Vec<(u64, String)> = (0..120)
            .filter_map(|second| {
                let now = began + Duration::from_secs(second);
                Some((second, waiting.look(WaitFor::FirstAnswer, 24, 32, now)?))
            })
            .collect();
        let text = "24 of 32 connections have had no answer to their first statement for 30 s; a pooler or max_connections \
                    may hold them";
        assert_eq!(said, [(30, text.to_owned())]);
    }

    #[test]
    fn waits_that_end_in_time_are_not_said() {
        let (mut waiting, began) = (Waiting::default(), Instant::now());
        let waits = |second: u64| usize::from(!second.is_multiple_of(20));
        let looks = (0..120).map(|second| (waits(second), began + Duration::from_secs(second)));
        assert!(looks.into_iter().all(|(waits, now)| waiting.look(WaitFor::Open, waits, 4, now).is_none()));
    }

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(ranges([1, 4, 5, 6, 9, 10].into_iter()), "1, 4 to 6, 9, 10");
        assert_eq!(ranges((0..20).map(|number| 2 * number)), "0, 2, 4, 6, 8, 10, 12, 14, ...");
    }
}
