//! When the guardian answers in the place of a watch that lives: pure, time is a value.
//!
//! Promise: it answers only while the watch is stopped. An event waits unread for at most [`PATIENCE`] longer than the stop
//! lasts; one that the watch had read, for at most two [`LOOK`]s. While no event comes and none is held it sleeps, and it is
//! woken by events at most once in [`PATIENCE`].

use std::time::Duration;

use crate::clock::Moment;

/// How long an event may be unread before the watch is looked at.
pub const PATIENCE: Duration = Duration::from_millis(100);
/// How often the watch is looked at while it keeps opens waiting.
pub const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Woken by the next event.
    Resting,
    /// An event came; the watch has until then to read it. No further event wakes.
    Waiting(Moment),
    /// The watch was stopped at the last look: events are answered as they come.
    Relieving,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Duty {
    /// Answer what is unread.
    pub relieve: bool,
    /// Answer what the watch had read before it was stopped.
    pub settle: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Vigil {
    phase: Phase,
    /// When to look at a watch that keeps opens waiting, and whether it was stopped at the last look.
    look: Option<Moment>,
    was_stopped: bool,
}

impl Default for Vigil {
    fn default() -> Self {
        Self { phase: Phase::Resting, look: None, was_stopped: false }
    }
}

impl Vigil {
    /// Whether an event is to wake it.
    pub fn listens(&self) -> bool {
        !matches!(self.phase, Phase::Waiting(_))
    }

    /// When it wakes by itself.
    pub fn wakes_at(&self) -> Option<Moment> {
        let until = match self.phase {
            Phase::Waiting(until) => Some(until),
            Phase::Resting | Phase::Relieving => None,
        };
        [until, self.look].into_iter().flatten().min()
    }

    /// The watch says whether it keeps opens waiting.
    pub fn waits(&mut self, waits: bool, now: Moment) {
        if self.look.is_none() {
            self.was_stopped = false;
        }
        self.look = waits.then(|| self.look.unwrap_or(now + LOOK));
    }

    /// Goes on, woken by whatever it was. `stopped` looks at the watch.
    pub fn step(&mut self, is_unread: bool, mut stopped: impl FnMut() -> bool, now: Moment) -> Duty {
        let mut duty = Duty::default();
        let is_due = match self.phase {
            Phase::Resting => {
                if is_unread {
                    self.phase = Phase::Waiting(now + PATIENCE);
                }
                false
            }
            Phase::Waiting(until) => {
                if now >= until && !is_unread {
                    self.phase = Phase::Resting;
                }
                now >= until && is_unread
            }
            Phase::Relieving => is_unread,
        };
        if is_due {
            duty.relieve = stopped();
            self.phase = if duty.relieve { Phase::Relieving } else { Phase::Waiting(now + PATIENCE) };
        }
        if self.look.is_some_and(|look| now >= look) {
            let is_stopped = stopped();
            // Stopped twice in a row, and not for a moment twice: what is answered here cannot be answered otherwise. At
            // every further look again: it may have gone on in between, read others, and been stopped before the next look.
            duty.settle = is_stopped && self.was_stopped;
            self.was_stopped = is_stopped;
            self.look = Some(now + LOOK);
        }
        duty
    }
}

/// Whether the process is stopped or traced to a stop, by the line of its `/proc/PID/stat`.
pub fn is_stopped(line: &[u8]) -> bool {
    let after = line.iter().rposition(|&byte| byte == b')').and_then(|close| line.get(close + 2));
    matches!(after, Some(b'T' | b't'))
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    const RELIEVE: Duty = Duty { relieve: true, settle: false };
    const SETTLE: Duty = Duty { relieve: false, settle: true };

    #[test]
    fn without_events_nobody_wakes_it() {
        let vigil = Vigil::default();
        assert!(vigil.listens());
        assert_eq!(vigil.wakes_at(), None);
    }

    #[test]
    fn an_event_that_is_read_in_time_is_no_reason_to_look() {
        let mut vigil = Vigil::default();
        let never = || -> bool { panic!("there is no reason to look") };
        assert_eq!(vigil.step(true, never, at(0)), Duty::default());
        assert!(!vigil.listens());
        assert_eq!(vigil.wakes_at(), Some(at(100)));
        assert_eq!(vigil.step(false, never, at(100)), Duty::default());
        assert!(vigil.listens());
        assert_eq!(vigil.wakes_at(), None);
    }

    #[test]
    fn a_busy_watch_is_left_alone() {
        let mut vigil = Vigil::default();
        vigil.step(true, || false, at(0));
        assert_eq!(vigil.step(true, || false, at(100)), Duty::default());
        assert_eq!(vigil.wakes_at(), Some(at(200)));
    }

    #[test]
    fn a_stopped_watch_is_relieved_at_once_until_it_goes_on() {
        let mut vigil = Vigil::default();
        vigil.step(true, || true, at(0));
        assert_eq!(vigil.step(true, || true, at(100)), RELIEVE);
        assert_eq!(vigil.step(false, || true, at(101)), Duty::default());
        assert!(vigil.listens());
        assert_eq!(vigil.step(true, || true, at(150)), RELIEVE);
        assert_eq!(vigil.step(true, || false, at(160)), Duty::default());
        assert!(!vigil.listens());
    }

    #[test]
    fn what_a_stopped_watch_had_read_is_answered_from_the_second_look_on() {
        let mut vigil = Vigil::default();
        vigil.waits(true, at(0));
        assert_eq!(vigil.step(false, || true, at(500)), Duty::default());
        assert_eq!(vigil.step(false, || true, at(1000)), Duty::default());
        assert_eq!(vigil.step(false, || true, at(2000)), SETTLE);
        assert_eq!(vigil.step(false, || true, at(3000)), SETTLE, "it may have run in between");
        assert_eq!(vigil.step(false, || false, at(4000)), Duty::default());
        assert_eq!(vigil.step(false, || true, at(5000)), Duty::default());
        assert_eq!(vigil.step(false, || true, at(6000)), SETTLE, "stopped again, with others");
        vigil.waits(false, at(6000));
        assert_eq!(vigil.wakes_at(), None);
        vigil.waits(true, at(6100));
        assert_eq!(
            vigil.step(false, || true, at(7100)),
            Duty::default(),
            "others, and perhaps stopped for a moment only"
        );
        assert_eq!(vigil.step(false, || true, at(8100)), SETTLE);
    }

    #[test]
    fn a_name_is_no_state() {
        assert!(is_stopped(b"7 (a) S 1) T 1 7"));
        assert!(is_stopped(b"7 (a) t 1 7"));
        assert!(!is_stopped(b"7 (a) T 1) S 1 7"));
        assert!(!is_stopped(b"7 (a)"));
        assert!(!is_stopped(b""));
    }

    proptest! {
        /// Whatever happens: it acts only on a watch that is stopped at that moment, and is always woken for what waits.
        #[test]
        fn it_never_answers_for_a_watch_that_runs(
            steps in proptest::collection::vec((0..400u64, any::<bool>(), any::<bool>(), 0..3u8), 0..60),
        ) {
            let mut vigil = Vigil::default();
            let mut now = 0;
            for (later, is_unread, is_stopped, word) in steps {
                now += later;
                if word < 2 {
                    vigil.waits(word == 1, at(now));
                }
                let duty = vigil.step(is_unread, || is_stopped, at(now));
                prop_assert!(is_stopped || duty == Duty::default());
                prop_assert!(is_unread || !duty.relieve);
                prop_assert!(vigil.listens() || vigil.wakes_at().is_some_and(|wakes| wakes <= at(now) + PATIENCE));
            }
        }
    }
}
