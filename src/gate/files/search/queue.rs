//! Work for several threads, which makes more work while it is done.
//!
//! Promise: [`Queue::next`] gives everything that was put in, the last first, and `None` only once all of it is done; a
//! thread that panics in its turn does not leave the others waiting.

use std::sync::{Condvar, Mutex, MutexGuard};

/// Work to be done.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    waiting: Vec<T>,
    /// Turns that are not over.
    busy: usize,
}

/// One piece of work. Over when it is dropped.
pub(super) struct Turn<'q, T> {
    queue: &'q Queue<T>,
    more: Vec<T>,
}

impl<T> Queue<T> {
    pub(super) fn new(first: T) -> Self {
        Self { state: Mutex::new(State { waiting: vec![first], busy: 0 }), changed: Condvar::new() }
    }

    /// The next piece, waiting for one as long as somebody may make one.
    pub(super) fn next(&self) -> Option<(T, Turn<'_, T>)> {
        let mut state = self.state();
        loop {
            if let Some(work) = state.waiting.pop() {
                state.busy += 1;
                return Some((work, Turn { queue: self, more: Vec::new() }));
            }
            if state.busy == 0 {
                return None;
            }
            state = self.changed.wait(state).expect("no holder of this lock panics");
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("no holder of this lock panics")
    }
}

impl<T> Turn<'_, T> {
    /// Adds work; of what one turn adds, the last is done first.
    pub(super) fn add(&mut self, work: T) {
        self.more.push(work);
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        state.busy -= 1;
        let over = state.busy == 0;
        let more = self.more.len();
        state.waiting.append(&mut self.more);
        drop(state);
        if over || more > 1 {
            self.queue.changed.notify_all();
        } else if more == 1 {
            self.queue.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn all_work_is_done_once_and_then_everybody_stops() {
        let queue = Queue::new(1_u64);
        let (sum, count) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some((number, mut turn)) = queue.next() {
                        sum.fetch_add(number, Ordering::Relaxed);
                        count.fetch_add(1, Ordering::Relaxed);
                        // A tree: 1 has 2 and 3, 2 has 4 and 5, …
                        [2 * number, 2 * number + 1].into_iter().filter(|&n| n < 1000).for_each(|n| turn.add(n));
                    }
                });
            }
        });
        assert_eq!((sum.into_inner(), count.into_inner()), (999 * 1000 / 2, 999));
    }

    #[test]
    fn a_panic_leaves_nobody_waiting() {
        let queue = Queue::new(0);
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        if let Some((_, _turn)) = queue.next() {
                            panic!("in the middle of it");
                        }
                    });
                }
            });
        }));
        assert!(ended.is_err());
        assert!(queue.next().is_none());
    }
}
