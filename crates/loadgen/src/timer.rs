//! Waiting until a due time. tokio's timer wheel has a tick of 1 ms; a schedule needs better, so each paced lane
//! owns a kernel timer that wakes the runtime through its file descriptor.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::unix::AsyncFd;

/// A kernel timer, good to some tens of microseconds.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: AsyncFd<Kernel>,
}

/// The kernel's timer in the shape in which tokio takes file descriptors.
#[derive(Debug)]
struct Kernel(TimerFd);

impl AsFd for Kernel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Kernel {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Timer {
    /// A timer of the current runtime.
    ///
    /// # Errors
    /// The process is out of file descriptors.
    pub(crate) fn new() -> std::io::Result<Self> {
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        // `new` is deprecated because a type could lie about its descriptor; `Kernel` owns its descriptor for life.
        #[expect(
            deprecated,
            reason = "the replacement is an unsafe function, and this crate has no unsafe code"
        )]
        let fd = AsyncFd::new(Kernel(timer))?;
        Ok(Self { fd })
    }

    /// Returns at `until`, at once when that has passed.
    pub(crate) async fn wait_until(&self, until: Instant) -> std::io::Result<()> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.arm(left)?;
            let mut ready = self.fd.readable().await?;
            // The count of expirations is of no interest, but reading it makes the descriptor quiet again.
            let mut expirations = [0_u8; 8];
            match nix::unistd::read(self.fd.get_ref().as_fd(), &mut expirations) {
                Ok(_) | Err(nix::errno::Errno::EAGAIN) => ready.clear_ready(),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn arm(&self, left: Duration) -> std::io::Result<()> {
        self.fd
            .get_ref()
            .0
            .set(Expiration::OneShot(TimeSpec::from_duration(left)), TimerSetTimeFlags::empty())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_wait_ends_after_its_time_and_never_before() {
        let timer = Timer::new().expect("a file descriptor is free");
        for millis in [0, 1, 3, 10] {
            let until = Instant::now() + Duration::from_millis(millis);
            timer.wait_until(until).await.expect("the timer works");
            assert!(Instant::now() >= until);
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_wait_that_was_given_up_does_not_shorten_the_next() {
        let timer = Timer::new().expect("a file descriptor is free");
        let now = Instant::now();
        tokio::select! {
            _ = timer.wait_until(now + Duration::from_millis(5)) => panic!("the shorter wait must win"),
            _ = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
        let until = Instant::now() + Duration::from_millis(12);
        timer.wait_until(until).await.expect("the timer works");
        assert!(Instant::now() >= until);
    }
}
