//! Desktop notifications, one after the other.
//!
//! Promise: each is handed on, in order, although the notifier shows at most one a second and forgets one that waits when
//! the next comes. Limit: as many as [`MOST`] wait; a question's own goes first, since somebody waits for its answer.

use std::collections::VecDeque;
use std::time::Duration;

use platform::Moment;
use platform::notify::{Notification, Notifier};

use crate::text::escaped;

/// The most that wait. More than all reminders there can be.
const MOST: usize = 256;
/// A little more than what the notifier keeps between two.
const PACE: Duration = Duration::from_millis(1100);
/// Characters of a text that are shown.
const LENGTH: usize = 1000;

/// Hands notifications to the notifier.
#[derive(Debug, Default)]
pub struct Herald {
    notifier: Option<Notifier>,
    waiting: VecDeque<(Option<u64>, Notification)>,
    free_at: Moment,
}

impl Herald {
    /// With a notifier, if there is one.
    pub fn new(notifier: Option<Notifier>) -> Self {
        Self { notifier, waiting: VecDeque::new(), free_at: Moment::default() }
    }

    /// Whether anything will be shown.
    pub fn is_there(&self) -> bool {
        self.notifier.is_some()
    }

    /// Tells the person what an agent wants told; `false` if too much waits, or nobody shows it.
    pub fn tell(&mut self, title: &str, body: &str) -> bool {
        let has_room = self.is_there() && self.waiting.len() < MOST;
        if has_room {
            self.waiting.push_back((None, notification(title, body)));
        }
        has_room
    }

    /// Tells the person that a question waits at the terminal.
    pub fn question(&mut self, id: u64, body: &str) {
        if self.is_there() && self.waiting.len() < MOST {
            self.waiting.push_front((Some(id), notification("keep gate", body)));
        }
    }

    /// A question was answered before anybody was told of it.
    pub fn answered(&mut self, id: u64) {
        self.waiting.retain(|(question, _)| *question != Some(id));
    }

    /// When the next one can be handed on.
    pub fn wake_at(&self) -> Option<Moment> {
        (!self.waiting.is_empty()).then_some(self.free_at)
    }

    /// Hands one on, if it is time.
    pub fn tick(&mut self, now: Moment) {
        if now < self.free_at {
            return;
        }
        if let (Some(notifier), Some((_, next))) = (&self.notifier, self.waiting.pop_front()) {
            notifier.notify(next);
            self.free_at = now + PACE;
        }
    }
}

fn notification(title: &str, body: &str) -> Notification {
    let short = |text: &str| escaped(text.chars().take(LENGTH).collect::<String>().as_bytes());
    Notification { title: short(title), body: short(body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Moment {
        Moment::from_nanos(number * 1_000_000_000)
    }

    #[test]
    fn one_at_a_time_and_a_question_first() {
        // A notifier without a program: what it is given, nobody sees; how many are left shows what was handed on.
        let mut herald = Herald::new(Notifier::start(None).ok());
        assert!(herald.tell("a", "1") && herald.tell("b", "2"));
        herald.tick(second(10));
        assert_eq!(herald.waiting.len(), 1);
        assert_eq!(herald.wake_at(), Some(second(10) + PACE));
        herald.tick(second(11));
        assert_eq!(herald.waiting.len(), 1, "it is too early for the next");
        herald.question(7, "file a.txt");
        herald.tick(second(12));
        assert_eq!(herald.waiting[0].1.title, "b", "the question went before it");
        herald.question(8, "file b.txt");
        herald.answered(8);
        assert_eq!(herald.waiting.len(), 1);
        herald.tick(second(14));
        assert_eq!(herald.wake_at(), None);
    }

    #[test]
    fn a_text_cannot_draw_and_has_an_end() {
        let told = notification("t\x1b]0;x\x07", &"é".repeat(5000));
        assert_eq!(told.title, "t\\x1b]0;x\\x07");
        assert_eq!(told.body.chars().count(), LENGTH);
    }

    #[test]
    fn without_a_notifier_nothing_is_taken() {
        let mut herald = Herald::default();
        assert!(!herald.tell("a", "b"));
        herald.question(1, "x");
        assert_eq!(herald.wake_at(), None);
    }
}
