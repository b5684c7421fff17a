//! The thread of a backend: told to stop or to look at everything again, and never silent about its end.
//!
//! Promise: no hint leaves after the subscription was dropped; a thread that ends by an error or a panic says that the
//! backend is broken, since silence would look like peace.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::event::{Hint, Sink, StartError, Subscription};

/// What makes a thread look at its [`Orders`] when it waits.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// What the thread is told. Read by it between two steps.
#[derive(Debug, Default, Clone)]
pub struct Orders(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    stop: AtomicBool,
    rescan: AtomicBool,
}

impl Orders {
    /// Whether to end, and to say nothing more.
    pub fn is_over(&self) -> bool {
        self.0.stop.load(Ordering::Acquire)
    }

    /// Whether hints about everything are wanted, or the end.
    pub fn is_any(&self) -> bool {
        self.is_over() || self.0.rescan.load(Ordering::Acquire)
    }

    /// Whether hints about everything are wanted. Asked for once, it is told once.
    pub fn take_rescan(&self) -> bool {
        self.0.rescan.swap(false, Ordering::AcqRel)
    }
}

/// Where the thread's hints go.
pub struct Voice {
    orders: Orders,
    sink: Sink,
}

/// What to do after hints were sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Somebody listens.
    On,
    /// Nobody does any more, or the end was asked for.
    Stop,
}

impl Voice {
    /// What the thread is told.
    pub fn orders(&self) -> &Orders {
        &self.orders
    }

    /// Sends them in their order, as long as they are wanted.
    pub fn say(&self, hints: impl IntoIterator<Item = Hint>) -> Flow {
        for hint in hints {
            if self.orders.is_over() || !(self.sink)(hint) {
                return Flow::Stop;
            }
        }
        Flow::On
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = (self.sink)(Hint::Broken("the event thread panicked".to_owned()));
        }
    }
}

struct Running {
    orders: Orders,
    wake: Wake,
    thread: Option<JoinHandle<()>>,
}

impl Subscription for Running {
    fn rescan(&self) {
        self.orders.0.rescan.store(true, Ordering::Release);
        (self.wake)();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.orders.0.stop.store(true, Ordering::Release);
        (self.wake)();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts a thread of this name, which runs until it is told to end or cannot go on.
pub fn start(
    name: &str,
    wake: Wake,
    sink: Sink,
    run: impl FnOnce(&Voice) -> io::Result<()> + Send + 'static,
) -> Result<Box<dyn Subscription>, StartError> {
    let orders = Orders::default();
    let voice = Voice { orders: orders.clone(), sink };
    let work = move || {
        if let Err(error) = run(&voice) {
            let _ = (voice.sink)(Hint::Broken(error.to_string()));
        }
    };
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(StartError::Thread)?;
    Ok(Box::new(Running { orders, wake, thread: Some(thread) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    const SOON: Duration = Duration::from_secs(20);

    fn started(run: impl FnOnce(&Voice) -> io::Result<()> + Send + 'static) -> (Box<dyn Subscription>, Receiver<Hint>) {
        let (hints, heard) = channel();
        let sink: Sink = Box::new(move |hint| hints.send(hint).is_ok());
        (start("test", Arc::new(|| {}), sink, run).expect("starts"), heard)
    }

    fn broken(heard: &Receiver<Hint>) -> String {
        match heard.recv_timeout(SOON).expect("it is said") {
            Hint::Broken(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_thread_that_ends_by_an_error_or_a_panic_says_so() {
        let (_running, heard) = started(|_| Err(io::Error::other("the queue is gone")));
        assert_eq!(broken(&heard), "the queue is gone");
        let (_running, heard) = started(|_| panic!("in the middle of it"));
        assert_eq!(broken(&heard), "the event thread panicked");
    }

    #[test]
    fn a_rescan_is_told_once_and_after_the_end_nothing_is_said() {
        let (told, tells) = channel();
        let (running, heard) = started(move |voice| {
            while !voice.orders().is_over() {
                if voice.orders().is_any() && voice.orders().take_rescan() {
                    told.send(()).expect("it is heard");
                }
                std::thread::yield_now();
            }
            assert_eq!(voice.say([Hint::Walked { directories: 1 }]), Flow::Stop);
            Ok(())
        });
        running.rescan();
        tells.recv_timeout(SOON).expect("it is told");
        drop(running);
        assert!(tells.try_recv().is_err() && heard.try_recv().is_err());
    }
}
