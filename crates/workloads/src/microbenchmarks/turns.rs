//! Between the steps of the microbenchmarks: where the server comes to rest, and before which steps
//! loaded data may come back.

use std::time::Duration;

use crate::microbenchmarks::options::{MicroRung, Microbenchmarks};
use crate::settle::{Settle, SettleAfter};

impl Microbenchmarks {
    /// How the server is brought to rest, in the long form.
    pub fn settling(&self) -> Settle {
        Settle::chosen(self.settle.as_ref(), self.settle_wait)
    }

    /// The original's pause, counted from the start of cleanup: min(1200, 60 + loaded rows /
    /// 1,000,000) seconds.
    pub fn original_wait(&self) -> Duration {
        Duration::from_secs((self.loaded_rows() / 1_000_000).saturating_add(60).min(1200))
    }

    /// Whether the server is brought to rest between two steps that follow each other in the plan,
    /// `None` before the first one (after the load) and after the last.
    ///
    /// The original does so after point-query.warm and after the last step that writes before the
    /// reads. Where loaded data come back later, they must be at rest already, so the first rest
    /// lies after the load; and there is none after writes that are thrown away.
    pub fn settles_between(&self, before: Option<&MicroRung>, after: Option<&MicroRung>) -> bool {
        let (Some(after), Some(settle_after)) = (after, self.settling().after_steps()) else { return false };
        match before {
            None if self.use_existing => return false,
            Some(_) if self.data.puts_back_each_step() => return false,
            _ => {}
        }
        let wrote = before.is_none_or(|before| before.step.test.writes());
        if wrote && settle_after == SettleAfter::EachWrite {
            return true;
        }
        let comes_back = self.data.uses_snapshot() || self.data.puts_back_each_step();
        let steps = &self.sequence.steps()[before.map_or(0, |before| before.place)..after.place];
        match before {
            None if comes_back => true,
            Some(_) if comes_back => steps.iter().any(|step| step.settles && step.test.writes()),
            _ => steps.iter().any(|step| step.settles),
        }
    }
}

/// Whether data may be put back, and the server started anew, before step `index` of `rungs`. Not
/// after a step that fills caches for this one, nor between rungs of a step that reads with caches
/// filled so.
pub(crate) fn begins_group(rungs: &[MicroRung], index: usize) -> bool {
    let Some(rung) = rungs.get(index) else { return true };
    let follows_warm_up = |index: usize| index > 0 && rungs[index - 1].step.moment.is_warm_up();
    let first = rungs.iter().position(|other| other.place == rung.place).unwrap_or(index);
    !follows_warm_up(index) && (rung.step.test.writes() || !follows_warm_up(first))
}

#[cfg(test)]
mod tests {
    use dbdyno_model::DataMode;

    use super::*;
    use crate::microbenchmarks::options::MicroSequence;

    fn options(data: DataMode, steps: &[&str]) -> Microbenchmarks {
        let steps = steps.iter().map(|&step| step.to_owned()).collect();
        Microbenchmarks { data, steps, connections: vec![1, 2], ..Microbenchmarks::default() }
    }

    /// Steps after which the server comes to rest.
    fn settled_with(options: &Microbenchmarks) -> Vec<String> {
        let rungs = options.rungs();
        let before = std::iter::once(None).chain(rungs.iter().map(Some));
        let after = rungs.iter().map(Some).chain([None]);
        let is_settled = |(before, after): &(Option<&MicroRung>, _)| options.settles_between(*before, *after);
        let places = before.zip(after).filter(is_settled);
        places.map(|(before, _)| before.map_or("load", |rung| rung.name.as_str()).to_owned()).collect()
    }

    fn settled(data: DataMode, steps: &[&str]) -> Vec<String> {
        settled_with(&options(data, steps))
    }

    #[test]
    fn the_server_comes_to_rest_after_the_load_and_after_the_writes_whatever_is_left_out() {
        for data in [DataMode::Preserve, DataMode::Restart] {
            assert_eq!(settled(data, &["*"]), ["point-query.warm", "read-write_range=100.c2"]);
            assert_eq!(settled(data, &["!*.warm", "!read-write*"]), ["load", "write-only.c2"]);
            assert_eq!(settled(data, &["delete"]), ["load"]);
        }
    }

    #[test]
    fn data_that_come_back_are_at_rest_and_data_that_go_away_need_none() {
        assert_eq!(settled(DataMode::Restore, &["*"]), ["load", "read-write_range=100.c2"]);
        assert_eq!(settled(DataMode::Restore, &["delete"]), ["load"]);
        for data in [DataMode::Reset, DataMode::RestoreEachStep] {
            assert_eq!(settled(data, &["*"]), ["load"]);
        }
    }

    #[test]
    fn after_each_step_that_writes_if_the_plan_asks_for_it_and_the_tables_go_on() {
        let each = |data| {
            let settle = Some(Settle { after: SettleAfter::EachWrite, ..Settle::default() });
            let options =
                options(data, &["point-query.warm", "point-query.pre", "write-only", "delete", "insert"]);
            settled_with(&Microbenchmarks { settle, connections: vec![1], ..options }).join(" ")
        };
        assert_eq!(each(DataMode::Preserve), "load point-query.warm write-only delete");
        assert_eq!(each(DataMode::Restore), "load write-only delete");
        assert_eq!(each(DataMode::RestoreEachStep), "load");
    }

    #[test]
    fn tables_of_others_are_not_brought_to_rest_before_the_first_step() {
        let steps = ["delete".to_owned()].to_vec();
        let existing = Microbenchmarks { use_existing: true, steps, ..Microbenchmarks::default() };
        assert_eq!(settled_with(&existing), [""; 0]);
    }

    #[test]
    fn a_step_keeps_the_caches_that_the_one_before_it_has_filled() {
        let within = |sequence, steps: &[&str]| -> Vec<String> {
            let options = Microbenchmarks { sequence, ..options(DataMode::RestoreEachStep, steps) };
            let rungs = options.rungs();
            let names = (0..rungs.len()).filter(|&index| !begins_group(&rungs, index));
            names.map(|index| rungs[index].name.clone()).collect()
        };
        assert_eq!(within(MicroSequence::FortyTwo, &["*"]), ["point-query.pre.c1", "point-query.pre.c2"]);
        assert_eq!(
            within(MicroSequence::ThirtyTwo, &["*"]).join(" "),
            "scan.warmpre.c1 scan.warmpre.c2 point-query.pre.c1 point-query.pre.c2 scan.warm.c2 scan.c1 scan.c2 \
             points-covered-si.warm.c2 points-covered-si.c1 points-covered-si.c2"
        );
        // Of steps that write only the first follows the warm-up, whose rows the second would not
        // find.
        assert_eq!(within(MicroSequence::ThirtyTwo, &["point-query.warm", "delete"]), ["delete.c1"]);
        assert_eq!(within(MicroSequence::FortyTwo, &["!*.warm"]), [""; 0]);
    }

    #[test]
    fn the_originals_pause_grows_with_the_rows() {
        let seconds = |tables, table_size| {
            Microbenchmarks { tables, table_size, ..Microbenchmarks::default() }.original_wait().as_secs()
        };
        assert_eq!(
            (seconds(1, 50_000_000), seconds(8, 10_000_000), seconds(1, 4_000_000_000)),
            (110, 140, 1200)
        );
    }
}
