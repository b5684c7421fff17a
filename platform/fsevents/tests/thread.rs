//! The thread over a system that a test makes up.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::Moment;
use crate::event::{Hint, LostCause, Place, RootId, Subscription};
use crate::relpath::RelPath;

use super::super::vnodes::{Held, Token, Vnodes};
use super::super::work::{self, Stirred, System, Work};
use super::super::{Batch, Engine, Flags, Inbox, Row, Spelling};
use super::memory::Disk;
use crate::event_thread::Wake;
use crate::simulation::{Few, Step};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// What wakes the thread.
enum Signal {
    Wake,
    Stir(Stirred),
    Fail,
}

type Open = Arc<Mutex<BTreeMap<Token, Place>>>;

struct Scripted {
    signals: Receiver<Signal>,
    open: Open,
    /// What a restart says.
    leads_to: Option<&'static str>,
}

impl System for Scripted {
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Vec<Stirred>> {
        match self.signals.recv_timeout(timeout.unwrap_or(PATIENCE)) {
            Ok(Signal::Stir(stirred)) => Ok(vec![stirred]),
            Ok(Signal::Wake) | Err(RecvTimeoutError::Timeout) => Ok(vec![]),
            Ok(Signal::Fail) | Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the queue is gone")),
        }
    }

    fn flush(&mut self) {}

    fn restart(&mut self, _root: RootId, _last: u64) -> io::Result<Spelling> {
        let path = self.leads_to.ok_or_else(|| io::Error::other("no path leads to the root"))?;
        Ok(Spelling::new([path.as_bytes()]))
    }

    fn open(&mut self, place: &Place, token: Token, _held: Held) -> bool {
        self.open.lock().expect("no panic while it is held").insert(token, place.clone()).is_none()
    }

    fn close(&mut self, token: Token) {
        self.open.lock().expect("no panic while it is held").remove(&token);
    }
}

struct Watch {
    disk: Disk,
    inbox: Arc<Inbox>,
    signals: Sender<Signal>,
    hints: Receiver<Hint>,
    open: Open,
    subscription: Option<Box<dyn Subscription>>,
}

fn place(path: &str) -> Place {
    Place::tree(RelPath::parse(path.as_bytes()).expect("a relative path"))
}

fn watch(files: &[&str], leads_to: Option<&'static str>) -> Watch {
    let disk = Disk::new(true);
    for file in files {
        disk.act(&Step::Write((*file).to_owned()));
    }
    let (signals, received) = channel();
    let (sender, hints) = channel();
    let ring = Mutex::new(signals.clone());
    // A thread that has ended needs no waking.
    let wake: Wake = Arc::new(move || {
        let _ = ring.lock().expect("no panic while it is held").send(Signal::Wake);
    });
    let ring = Arc::clone(&wake);
    let inbox = Arc::new(Inbox::new(Box::new(move || ring())));
    let engine = Engine::new(disk.clone(), Arc::new(Few), Vec::new(), vec![Spelling::new(["/r".as_bytes()])]);
    let open = Open::default();
    let system = Scripted { signals: received, open: Arc::clone(&open), leads_to };
    let work = Work { engine, inbox: Arc::clone(&inbox), system, vnodes: Vnodes::new(8) };
    let sink = Box::new(move |hint| sender.send(hint).is_ok());
    let subscription = work::start("scripted", work, wake, sink).expect("a thread");
    Watch { disk, inbox, signals, hints, open, subscription: Some(subscription) }
}

impl Watch {
    /// Waits for a hint.
    fn until(&self, what: &str, wanted: impl Fn(&Hint) -> bool) -> Hint {
        loop {
            let hint = self.hints.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("no {what}: {error}"));
            if wanted(&hint) {
                return hint;
            }
        }
    }

    fn walked(&self) {
        self.until("walk", |hint| matches!(hint, Hint::Walked { .. }));
    }

    fn row(&self, path: &str, flags: Flags) {
        let row = Row { path: Some(path.as_bytes().to_vec()), flags, id: 9, file: None };
        self.inbox.put(Batch { root: RootId(0), rows: vec![row], at: Moment::from_nanos(5) });
    }

    fn touched(&self, path: &str) {
        let wanted = place(path);
        self.until(path, |hint| matches!(hint, Hint::Touched { place, .. } if *place == wanted));
    }

    fn broken(&self) -> String {
        match self.until("end", |hint| matches!(hint, Hint::Broken(_))) {
            Hint::Broken(why) => why,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_found_and_what_rows_tell_reaches_the_sink() {
    let watch = watch(&[".env"], None);
    assert_eq!(watch.hints.recv_timeout(PATIENCE), Ok(Hint::Found(place(".env"))));
    watch.walked();
    watch.row("/r/.env", Flags::MODIFIED.with(Flags::IS_FILE));
    watch.touched(".env");
}

#[test]
fn a_rescan_hints_everything_and_says_when_it_is_over() {
    let watch = watch(&[".env"], None);
    watch.walked();
    watch.subscription.as_ref().expect("it runs").rescan();
    watch.touched(".env");
    watch.walked();
}

#[test]
fn no_hint_comes_after_the_subscription_was_dropped() {
    let mut watch = watch(&[".env"], None);
    watch.walked();
    watch.subscription = None;
    while watch.hints.try_recv().is_ok() {}
    watch.row("/r/.env", Flags::MODIFIED);
    assert!(watch.hints.recv().is_err(), "the thread and its sink are gone");
}

#[test]
fn a_covered_entry_is_held_open_and_hinted_when_it_stirs() {
    let watch = watch(&[".env"], None);
    watch.walked();
    let held = || watch.open.lock().expect("no panic while it is held").clone();
    // The walk's hints leave before what it found is opened.
    watch.row("/r/.env", Flags::MODIFIED);
    watch.touched(".env");
    watch.row("/r/.env", Flags::MODIFIED);
    watch.touched(".env");
    let (token, _) = held().into_iter().find(|(_, found)| *found == place(".env")).expect("it is held open");
    watch.signals.send(Signal::Stir(Stirred { token, dead: false })).expect("the thread runs");
    watch.touched(".env");
    // One that is gone is let go, and what is there is opened under another token.
    watch.signals.send(Signal::Stir(Stirred { token, dead: true })).expect("the thread runs");
    watch.touched(".env");
    watch.row("/r/.env", Flags::MODIFIED);
    watch.touched(".env");
    assert!(!held().contains_key(&token));
    assert!(held().values().any(|found| *found == place(".env")));
}

#[test]
fn a_link_without_a_row_is_found_when_its_folder_stirs() {
    let watch = watch(&[".env", "other"], None);
    watch.walked();
    watch.row("/r/.env", Flags::MODIFIED);
    watch.touched(".env");
    watch.row("/r/.env", Flags::MODIFIED);
    watch.touched(".env");
    let held = watch.open.lock().expect("no panic while it is held").clone();
    let (token, _) = held.into_iter().find(|(_, found)| found.path.is_root()).expect("the folder is held open");
    watch.disk.act(&Step::Link("other".to_owned(), "config".to_owned()));
    watch.signals.send(Signal::Stir(Stirred { token, dead: false })).expect("the thread runs");
    watch.touched("config");
}

#[test]
fn a_root_that_moved_is_watched_under_its_new_path() {
    let watch = watch(&[".env"], Some("/elsewhere"));
    watch.walked();
    watch.row("/r", Flags::ROOT_CHANGED);
    watch.until("loss", |hint| *hint == Hint::Lost(LostCause::Gap));
    watch.row("/elsewhere/.env", Flags::MODIFIED.with(Flags::IS_FILE));
    watch.touched(".env");
}

#[test]
fn a_root_no_path_leads_to_breaks_the_backend() {
    let watch = watch(&[".env"], None);
    watch.walked();
    watch.row("/r", Flags::ROOT_CHANGED);
    assert_eq!(watch.broken(), "no path leads to the root");
}

#[test]
fn a_queue_that_fails_breaks_the_backend() {
    let watch = watch(&[], None);
    watch.walked();
    watch.signals.send(Signal::Fail).expect("the thread runs");
    assert_eq!(watch.broken(), "the queue is gone");
}
