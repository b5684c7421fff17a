//! A thread for each collector, which takes notices from the watch and hands them over.
//!
//! Promise: [`Couriers::send`] never waits. A collector that is slow or gone costs memory for [`MOST_WAITING`] notices and
//! nothing else; the others do not notice.
//! Limit: which notices were missed, their numbers tell; that some were is told with the next one that is taken, which may
//! have been made before them.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use platform::datagram::Outlet;

use super::format::Format;
use super::notice::Notice;
use crate::text::escaped;

/// Notices that wait for one collector.
pub const MOST_WAITING: usize = 1024;
/// How long the end waits for each collector that has not taken everything.
const AT_THE_END: Duration = Duration::from_secs(2);

/// A collector.
pub struct Destination {
    /// How people call it.
    pub name: String,
    /// What it takes.
    pub format: Format,
    /// The way to it.
    pub outlet: Box<dyn Outlet>,
}

/// All collectors of one watch.
#[derive(Debug, Default)]
pub struct Couriers {
    all: Vec<Courier>,
}

#[derive(Debug)]
struct Courier {
    ledger: Arc<Ledger>,
    /// `None` once nothing more is sent.
    waiting: Mutex<Option<SyncSender<Arc<Notice>>>>,
    /// Disconnected when the thread has ended.
    over: Mutex<Receiver<()>>,
}

/// What a courier has to say.
#[derive(Debug)]
struct Ledger {
    name: String,
    /// Not taken, and not yet told to the collector.
    missed: AtomicU64,
    /// A line for the person that was not shown yet.
    news: Mutex<Option<String>>,
}

impl Couriers {
    /// Starts a thread for each. To be called once privileges are given up.
    pub fn start(destinations: Vec<Destination>) -> io::Result<Self> {
        Ok(Self { all: destinations.into_iter().map(Courier::start).collect::<io::Result<_>>()? })
    }

    /// Whether there is nobody to send to.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Hands a notice to every courier.
    pub fn send(&self, notice: Notice) {
        let notice = Arc::new(notice);
        self.all.iter().for_each(|courier| courier.send(&notice));
    }

    /// Lines about collectors that do not take what is sent; each is returned once.
    pub fn news(&self) -> Vec<String> {
        let taken = |courier: &Courier| locked(&courier.ledger.news).take();
        self.all.iter().filter_map(taken).collect()
    }

    /// Sends nothing more, waits a bounded time for what is on its way, and says what did not arrive.
    pub fn finish(&self) -> Vec<String> {
        self.all.iter().for_each(|courier| drop(locked(&courier.waiting).take()));
        self.all.iter().flat_map(Courier::finish).collect()
    }
}

impl Drop for Couriers {
    fn drop(&mut self) {
        // Where a watch does not start after all, too, what was sent arrives.
        let _told_already = self.finish();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Courier {
    fn start(destination: Destination) -> io::Result<Self> {
        let Destination { name, format, outlet } = destination;
        let ledger = Arc::new(Ledger { name, missed: AtomicU64::new(0), news: Mutex::new(None) });
        let (waiting, notices) = sync_channel(MOST_WAITING);
        let (ends, over) = channel();
        let theirs = Arc::clone(&ledger);
        thread::Builder::new()
            .name("courier".to_owned())
            .spawn(move || carry(outlet, format, &notices, &theirs, ends))?;
        Ok(Self { ledger, waiting: Mutex::new(Some(waiting)), over: Mutex::new(over) })
    }

    fn send(&self, notice: &Arc<Notice>) {
        if let Some(waiting) = &*locked(&self.waiting)
            && waiting.try_send(Arc::clone(notice)).is_err()
        {
            self.ledger.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn finish(&self) -> Vec<String> {
        let Ledger { name, missed, news } = &*self.ledger;
        // It never sends: the end of its thread is what is waited for.
        let stuck = locked(&self.over).recv_timeout(AT_THE_END) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        let mut lines: Vec<String> = locked(news).take().into_iter().collect();
        match missed.swap(0, Ordering::Relaxed) {
            0 if stuck => {
                lines.push(format!("keep watch: {name} has not taken everything yet; the journal has it all"))
            }
            0 => {}
            missed => {
                let notices = if missed == 1 { "1 notice".to_owned() } else { format!("{missed} notices") };
                lines.push(format!("keep watch: {notices} did not reach {name}; the journal has it all"));
            }
        }
        lines
    }
}

/// The thread: hands over until nothing more comes.
fn carry(
    mut outlet: Box<dyn Outlet>,
    format: Format,
    notices: &Receiver<Arc<Notice>>,
    ledger: &Ledger,
    _ends_with_us: Sender<()>,
) {
    let mut is_taken = true;
    for notice in notices {
        let missed = ledger.missed.swap(0, Ordering::Relaxed);
        match outlet.send(&format.bytes(&notice, missed)) {
            Ok(()) => is_taken = true,
            Err(error) => {
                ledger.missed.fetch_add(missed + 1, Ordering::Relaxed);
                if std::mem::replace(&mut is_taken, false) {
                    let name = &ledger.name;
                    let why = escaped(error.to_string().as_bytes());
                    let line = format!("keep watch: {name} takes no notice: {why}; what it misses is counted");
                    *locked(&ledger.news) = Some(line);
                }
            }
        }
    }
}
