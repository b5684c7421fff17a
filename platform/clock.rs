//! Time as a value: a monotonic moment for decisions, wall time for reports only.
//!
//! Source: clock_gettime(2). On Linux `CLOCK_BOOTTIME`, on macOS `CLOCK_MONOTONIC`: both go on while the machine sleeps,
//! so that closing a laptop's lid does not stretch a deadline.

use std::ops::Add;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

use crate::host;

/// A point in monotonic time: nanoseconds since boot, sleep included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(u64);

impl Moment {
    /// A moment that many nanoseconds after boot.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since boot.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this moment; zero if `earlier` is later.
    pub const fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, rhs: Duration) -> Moment {
        Moment(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Where moments and wall time come from.
pub trait Clock: Send + Sync {
    /// The present moment; never goes back.
    fn now(&self) -> Moment;
    /// Wall time, for reports; may jump.
    fn wall(&self) -> SystemTime;
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let time = clock_gettime(host::MOMENT_CLOCK);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
        Moment(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    fn wall(&self) -> SystemTime {
        let time = clock_gettime(ClockId::Realtime);
        SystemTime::UNIX_EPOCH
            + Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
    }
}

/// A clock that moves only when told to, for tests.
#[derive(Debug, Default)]
pub struct ManualClock(Mutex<Moment>);

impl ManualClock {
    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let mut now = self.0.lock().expect("no holder of this lock panics");
        *now = *now + by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        *self.0.lock().expect("no holder of this lock panics")
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.now().0)
    }
}
