//! Rows on their way from whoever receives them to the thread that looks.
//!
//! Promise: receiving never waits for looking, and what finds no room is lost as a whole and said to be.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use crate::clock::Moment;
use crate::event::RootId;

use super::row::Row;

/// Rows kept at most: some tens of megabytes.
const ROOM: usize = 200_000;

/// Rows received at once, of one root's stream.
#[derive(Debug)]
pub struct Batch {
    /// Whose stream.
    pub root: RootId,
    /// The rows.
    pub rows: Vec<Row>,
    /// When they came.
    pub at: Moment,
}

#[derive(Debug, Default)]
struct Queue {
    batches: VecDeque<Batch>,
    rows: usize,
    overflowed: bool,
}

/// See the module.
pub struct Inbox {
    queue: Mutex<Queue>,
    room: usize,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Inbox").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl Inbox {
    /// Empty; `wake` is called after each batch.
    pub fn new(wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self { queue: Mutex::default(), room: ROOM, wake }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no holder of this lock panics")
    }

    /// Takes a batch in.
    pub fn put(&self, batch: Batch) {
        let mut queue = self.queue();
        if queue.rows + batch.rows.len() > self.room {
            *queue = Queue { overflowed: true, ..Queue::default() };
        } else {
            queue.rows += batch.rows.len();
            queue.batches.push_back(batch);
        }
        drop(queue);
        (self.wake)();
    }

    /// Everything in it, and whether something was lost before that.
    pub fn take(&self) -> (VecDeque<Batch>, bool) {
        let queue = std::mem::take(&mut *self.queue());
        (queue.batches, queue.overflowed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::fsevents::Flags;

    fn batch(rows: usize) -> Batch {
        let row = Row { path: None, flags: Flags::default(), id: 1, file: None };
        Batch { root: RootId(0), rows: vec![row; rows], at: Moment::default() }
    }

    #[test]
    fn each_batch_wakes_and_is_had_once() {
        let woken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&woken);
        let inbox = Inbox::new(Box::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
        }));
        inbox.put(batch(1));
        inbox.put(batch(2));
        assert_eq!(woken.load(Ordering::Relaxed), 2);
        let (batches, lost) = inbox.take();
        assert_eq!((batches.len(), lost), (2, false));
        assert!(inbox.take().0.is_empty());
    }

    #[test]
    fn what_finds_no_room_is_said_to_be_lost_and_what_comes_later_is_not() {
        let inbox = Inbox { room: 3, ..Inbox::new(Box::new(|| {})) };
        inbox.put(batch(2));
        inbox.put(batch(2));
        inbox.put(batch(3));
        let (batches, lost) = inbox.take();
        assert_eq!((batches.len(), lost), (1, true));
        assert!(!inbox.take().1, "it is said once");
    }
}
