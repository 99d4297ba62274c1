//! Tasks of several kinds as one type.

/// Makes an enum of tasks that hands each call to the task inside.
macro_rules! any_task {
    ($($Kind:ident($ConnectionTask:ty),)+) => {
        pub enum AnyTask {
            $($Kind($ConnectionTask),)+
        }

        impl ConnectionTask for AnyTask {
            async fn open(&mut self) -> Result<(), Failure> {
                match self {
                    $(Self::$Kind(task) => task.open().await,)+
                }
            }

            async fn prepare(&mut self, number: u64, notes: &mut Notes) -> Result<(), Failure> {
                match self {
                    $(Self::$Kind(task) => task.prepare(number, notes).await,)+
                }
            }

            async fn perform(&mut self, number: u64) -> Result<Done, Failure> {
                match self {
                    $(Self::$Kind(task) => task.perform(number).await,)+
                }
            }

            fn timed(&mut self, times: dbdyno_loadgen::OperationTimes) {
                match self {
                    $(Self::$Kind(task) => task.timed(times),)+
                }
            }

            fn skipped(&mut self, numbers: std::ops::Range<u64>) {
                match self {
                    $(Self::$Kind(task) => task.skipped(numbers),)+
                }
            }

            fn statements(&self) -> &[StatementDone] {
                match self {
                    $(Self::$Kind(task) => task.statements(),)+
                }
            }

            async fn close(self) {
                match self {
                    $(Self::$Kind(task) => task.close().await,)+
                }
            }
        }
    };
}

pub(crate) use any_task;
