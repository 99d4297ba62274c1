//! Lanes of several kinds as one type.

/// An enum of lanes, which hands each call to the lane inside.
macro_rules! any_lane {
    ($($Kind:ident($Lane:ty),)+) => {
        pub enum AnyLane {
            $($Kind($Lane),)+
        }

        impl Lane for AnyLane {
            async fn open(&mut self) -> Result<(), Failure> {
                match self {
                    $(Self::$Kind(lane) => lane.open().await,)+
                }
            }

            async fn prepare(&mut self, number: u64, notes: &mut Notes) -> Result<(), Failure> {
                match self {
                    $(Self::$Kind(lane) => lane.prepare(number, notes).await,)+
                }
            }

            async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
                match self {
                    $(Self::$Kind(lane) => lane.perform(number).await,)+
                }
            }

            fn timed(&mut self, times: dbdyno_loadgen::OperationTimes) {
                match self {
                    $(Self::$Kind(lane) => lane.timed(times),)+
                }
            }

            fn skipped(&mut self, numbers: std::ops::Range<u64>) {
                match self {
                    $(Self::$Kind(lane) => lane.skipped(numbers),)+
                }
            }

            fn statements(&self) -> &[StatementDone] {
                match self {
                    $(Self::$Kind(lane) => lane.statements(),)+
                }
            }

            async fn close(self) {
                match self {
                    $(Self::$Kind(lane) => lane.close().await,)+
                }
            }
        }
    };
}

pub(crate) use any_lane;
