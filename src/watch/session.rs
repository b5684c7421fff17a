//! The core thread of a watch: one channel in, one loop, one owner of everything that changes.
//!
//! Promise: the question is drawn before anything slow happens; whatever a hint says, only comparison decides. Limit: one
//! thread does all looking and restoring, so a restore of a huge file delays the next question by its own length.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use platform::event::Subscription;
use platform::lock::Lock;
use platform::notify::Notifier;
use platform::signals::Signal;
use platform::terminal::InputEvent;
use platform::{Clock, Hint, LostCause, Moment, Place};

use crate::ask::Key;
use crate::baseline::{Baseline, Snapshot};
use crate::cli::exit::Refusal;
use crate::journal::{Event, Journal, SessionLog, rfc3339};
use crate::roots::Roots;
use crate::rules::assemble::ScopeSource;
use crate::rules::set::RuleSet;
use crate::store::{Objects, Quarantine};

use super::console::Console;
use super::expected::Expected;
use super::inbox::{Inbox, Message};
use super::looking::Settling;
use super::machine::{Effect, Input, Machine};
use super::report::ReportPath;
use super::sweep::Sweep;
use super::tally::Tally;

/// Starts polling as a second backend, where the first cannot cover something.
pub type StartPolling = Box<dyn FnMut() -> Option<Box<dyn Subscription>>>;

/// Everything a watch is made of; put together once by `cli`.
pub struct Parts {
    /// The tree and the folders outside it.
    pub roots: Roots,
    /// What is protected.
    pub rules: Arc<RuleSet>,
    /// Accepted contents.
    pub objects: Objects,
    /// Rejected contents.
    pub quarantine: Quarantine,
    /// The journal, with this session begun.
    pub journal: Box<dyn Journal>,
    /// The log of this session.
    pub log: SessionLog,
    /// The terminal.
    pub console: Console,
    /// Desktop notifications, unless switched off.
    pub notifier: Option<Notifier>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Hints, input and signals.
    pub messages: Inbox,
    /// The running backend.
    pub backend: Box<dyn Subscription>,
    /// The lock of the root.
    pub lock: Lock,
    /// Polling, for what the backend cannot cover.
    pub start_polling: StartPolling,
}

/// How this watch was asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of this session.
    pub session: String,
    /// Name of the backend.
    pub backend: &'static str,
    /// Time to answer.
    pub decision_timeout: Duration,
    /// Refusals until a path is contested; 0 = never.
    pub contest_limit: u32,
    /// Interval of the verifying sweep.
    pub interval: Duration,
    /// Largest protected file in bytes.
    pub max_file_bytes: u64,
    /// Whether dependencies are frozen.
    pub frozen: bool,
    /// The allowed area.
    pub scope: Option<Vec<ScopeSource>>,
    /// Path of the session log.
    pub session_log: ReportPath,
    /// What this watch cannot see or hold.
    pub limits: Vec<String>,
}

/// Why a watch ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// A signal, or what counts as one.
    Signal(&'static str),
    /// The watch cannot go on; one line says why.
    Broke(String),
}

pub(super) enum Phase {
    /// The first walk: what is found becomes the baseline.
    Walking {
        expected: Box<Expected>,
        refused: Vec<Refusal>,
    },
    Watching,
}

/// The running watch.
pub struct Session {
    pub(super) parts: Parts,
    pub(super) options: Options,
    pub(super) machine: Machine,
    pub(super) baseline: Baseline,
    pub(super) phase: Phase,
    /// What the machine asked for and is not done yet.
    pub(super) to_do: VecDeque<Effect>,
    /// Whether it is being done.
    pub(super) acting: bool,
    /// Paths that were hinted at before the first walk had passed them.
    pub(super) deferred: BTreeMap<Place, Moment>,
    /// Paths to look at, and when their hint was read.
    pub(super) to_look: BTreeMap<Place, Moment>,
    /// Paths that look half-way through being replaced.
    pub(super) settling: BTreeMap<Place, Settling>,
    /// When which path was last given time to settle.
    pub(super) settled: BTreeMap<Place, Moment>,
    /// Directories that were not there at the start.
    pub(super) new_dirs: HashSet<Place>,
    /// Protected files that could not be read at the start.
    pub(super) unreadable: BTreeSet<Place>,
    /// Directories that could not be read at the start: what lies in them may have been there all the time.
    pub(super) closed: BTreeSet<Place>,
    /// Bytes of small files as last looked at, for the difference in the question.
    pub(super) after_bytes: BTreeMap<Place, Vec<u8>>,
    pub(super) tally: Tally,
    pub(super) sweep: Sweep,
    pub(super) sweep_at: Moment,
    pub(super) polling: Option<Box<dyn Subscription>>,
    /// When everything was last listed again after an overflow of ours, and when it has to be.
    listed: Option<Moment>,
    list_at: Option<Moment>,
    pub(super) previous: BTreeMap<Place, Snapshot>,
    pub(super) end: Option<End>,
    /// Why the watch cannot start after all.
    pub(super) failed_start: Option<Refusal>,
}

/// Hints taken before the paths they name are looked at.
const BATCH: usize = 8192;
/// Everything is listed again no more often than this: what is listed may overflow again.
const BETWEEN_LISTINGS: Duration = Duration::from_secs(10);
/// Waking later than this after the time asked for means that we, or the machine, did not run.
const OVERSLEPT: Duration = Duration::from_millis(1500);

impl Session {
    /// A watch whose backend has been started.
    pub fn new(
        parts: Parts,
        options: Options,
        machine: Machine,
        baseline: Baseline,
        expected: Expected,
        previous: BTreeMap<Place, Snapshot>,
        tally: Tally,
    ) -> Self {
        let now = parts.clock.now();
        Self {
            sweep_at: now + options.interval,
            parts,
            options,
            machine,
            baseline,
            phase: Phase::Walking { expected: Box::new(expected), refused: Vec::new() },
            to_do: VecDeque::new(),
            acting: false,
            deferred: BTreeMap::new(),
            to_look: BTreeMap::new(),
            settling: BTreeMap::new(),
            settled: BTreeMap::new(),
            new_dirs: HashSet::new(),
            unreadable: BTreeSet::new(),
            closed: BTreeSet::new(),
            after_bytes: BTreeMap::new(),
            tally,
            sweep: Sweep::default(),
            polling: None,
            listed: None,
            list_at: None,
            previous,
            end: None,
            failed_start: None,
        }
    }

    /// Watches until something ends it, and then ends it in order.
    pub fn run(mut self) -> Result<super::report::WatchReport, Refusal> {
        while self.end.is_none() {
            self.wait();
            let now = self.now();
            self.look_around();
            self.step(Input::Tick);
            self.draw();
            if now >= self.sweep_at {
                self.sweep_round(now);
            }
            if let Some(refusal) = self.failed_start.take() {
                self.parts.console.finish();
                return Err(refusal);
            }
            self.write_down();
        }
        Ok(self.finish())
    }

    pub(super) fn now(&self) -> Moment {
        self.parts.clock.now()
    }

    /// Wall time of a moment, as far as the clocks have not been set since.
    pub(super) fn wall(&self, moment: Moment) -> SystemTime {
        let now = self.parts.clock.now();
        self.parts.clock.wall() - now.since(moment)
    }

    /// The name of a place in reports.
    pub(super) fn report_path(&self, place: &Place) -> ReportPath {
        ReportPath::new(self.parts.roots.bytes(place))
    }

    /// Sleeps until there is something to do, and takes what has come.
    fn wait(&mut self) {
        let now = self.now();
        let settled = self.settling.values().map(|settling| settling.due).min();
        let wake = [Some(self.sweep_at), self.machine.wake_at(), self.parts.console.wake_at(), settled, self.list_at];
        let wake = wake.into_iter().flatten().min().expect("the sweep is always due some time");
        let messages = self.parts.messages.wait(wake.since(now), BATCH);
        // Taken now: what the messages lead to (a walk's contents stored, an answer carried out) is no sleep.
        let woken = self.now();
        for message in messages {
            self.take(message);
        }
        if self.list_at.is_some_and(|due| due <= woken) {
            self.list_again(woken);
        }
        // Woken much later than asked for: we were stopped, or the machine slept.
        if woken.since(wake.max(now)) > OVERSLEPT {
            self.lost(LostCause::Stopped);
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Hint(hint) => self.take_hint(hint),
            Message::Overflow => self.overflowed(),
            Message::Input(InputEvent::Bytes { bytes, at }) => {
                if let Some(key) = self.parts.console.key(&bytes, at) {
                    self.pressed(key);
                }
            }
            Message::Input(InputEvent::Foreground) => self.parts.console.resume(),
            Message::Input(InputEvent::HungUp) => {
                self.parts.console.hang_up();
                self.ended_by("SIGHUP");
            }
            // An event of a later version tells nothing that could be an answer.
            Message::Input(_) => {}
            Message::Signal(signal) => self.signalled(signal),
        }
    }

    fn ended_by(&mut self, signal: &'static str) {
        self.end.get_or_insert(End::Signal(signal));
    }

    fn signalled(&mut self, signal: Signal) {
        match signal {
            Signal::Interrupt => self.ended_by("SIGINT"),
            Signal::Terminate => self.ended_by("SIGTERM"),
            Signal::HangUp => self.ended_by("SIGHUP"),
            Signal::Quit => self.ended_by("SIGQUIT"),
            Signal::Resized => self.parts.console.resize(),
            Signal::Continued => {
                self.parts.console.go_on();
                self.lost(LostCause::Stopped);
            }
            Signal::Suspend => self.suspend(),
        }
    }

    fn suspend(&mut self) {
        self.parts.console.suspend();
        self.lost(LostCause::Stopped);
    }

    fn take_hint(&mut self, hint: Hint) {
        match hint {
            Hint::Found(place) => self.adopt(&place),
            Hint::Touched { place, at } => {
                // Until the walk has been everywhere, a path that is not known yet may be one it has not come to.
                let walking = matches!(self.phase, Phase::Walking { .. });
                let unknown = walking && self.baseline.get(&place).is_none();
                let list = if unknown { &mut self.deferred } else { &mut self.to_look };
                list.entry(place).or_insert(at);
            }
            Hint::Appeared(place) => {
                self.new_dirs.insert(place);
            }
            Hint::Vanished { place, at } => {
                if place.path.is_root() {
                    return self.root_vanished(&place);
                }
                self.look_below(&place, at);
            }
            Hint::Walked { .. } => self.walked(),
            Hint::Lost(cause) => self.lost(cause),
            Hint::Broken(reason) => {
                self.say(&format!("keep watch: the {} backend broke: {reason}; polling instead", self.options.backend));
                self.lost(LostCause::Gap);
                self.poll_too();
            }
            _ => self.lost(LostCause::Gap),
        }
    }

    /// Every known path below the directory has to be looked at.
    pub(super) fn look_below(&mut self, dir: &Place, at: Moment) {
        let rows = self.baseline.below(dir).map(|(place, _)| place);
        let open = self.machine.open_below(dir);
        for place in rows.chain(open).cloned().collect::<Vec<_>>() {
            self.to_look.entry(place).or_insert(at);
        }
    }

    /// A root of its own was renamed or removed: nothing can be put back into a void.
    fn root_vanished(&mut self, place: &Place) {
        let root = self.parts.roots.get(place.root);
        if root.is_in_place() {
            return;
        }
        let path = crate::text::escaped(std::os::unix::ffi::OsStrExt::as_bytes(root.path().as_os_str()));
        self.end.get_or_insert(End::Broke(format!("{path} was moved or deleted")));
    }

    /// Everything must be compared: the known paths now; the backend lists the rest again by itself.
    pub(super) fn lost(&mut self, cause: LostCause) {
        let at = self.now();
        let name = self.tally.lost(&cause);
        if let (LostCause::Unreadable(dir), Phase::Walking { .. }) = (&cause, &self.phase) {
            self.tally.note(Event::Unguarded { path: self.parts.roots.stored(dir) });
            self.closed.insert(dir.clone());
        }
        let detail = match &cause {
            LostCause::Limit(place) | LostCause::Unreadable(place) => Some(self.parts.roots.shown(place)),
            _ => None,
        };
        match (&cause, detail) {
            (LostCause::Limit(_), Some(dir)) if self.polling.is_none() => {
                self.say(&format!(
                    "keep watch: the system's limit on watches is reached at {dir}; what is not covered is polled (keep doctor says how to raise it)"
                ));
                self.poll_too();
            }
            (LostCause::Unreadable(_), Some(dir)) => {
                self.say(&format!("keep watch: {dir} cannot be read; what lies in it is not guarded"));
            }
            _ => {}
        }
        if matches!(cause, LostCause::Stopped) {
            // The kernel's queue may have overflowed meanwhile or not: the backend says so itself.
            self.parts.backend.rescan();
        }
        self.tally.note(Event::Lost { cause: name.to_owned() });
        if matches!(self.phase, Phase::Watching) {
            let places = self.known_places();
            self.compare_stamps(&places, at);
        }
    }

    /// There were more hints than there was room for. What is known is compared now, what is not has to be listed again.
    fn overflowed(&mut self) {
        let now = self.now();
        if matches!(self.phase, Phase::Walking { .. }) {
            for place in self.known_places() {
                self.deferred.entry(place).or_insert(now);
            }
        }
        self.list_at = Some(self.listed.map_or(now, |listed| now.max(listed + BETWEEN_LISTINGS)));
        self.lost(LostCause::Overflow);
    }

    fn list_again(&mut self, now: Moment) {
        (self.listed, self.list_at) = (Some(now), None);
        self.parts.backend.rescan();
        if let Some(polling) = &self.polling {
            polling.rescan();
        }
    }

    fn poll_too(&mut self) {
        if self.polling.is_none() {
            self.polling = (self.parts.start_polling)();
        }
    }

    fn pressed(&mut self, key: Key) {
        match key {
            Key::Interrupt => self.ended_by("SIGINT"),
            Key::Suspend => self.suspend(),
            Key::Accept | Key::Reject | Key::Each => self.answer(key),
            Key::Details => self.show_details(),
            Key::Help => self.parts.console.help(),
        }
    }

    /// A line in the session log. One that cannot be written is no reason to stop.
    pub(super) fn log(&mut self, event: &str, place: &Place, fields: &[(&str, serde_json::Value)]) {
        let mut object = serde_json::Map::new();
        object.insert("path".into(), self.parts.roots.stored(place).into());
        object.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let at = rfc3339(self.parts.clock.wall());
        let _written_or_not = self.parts.log.write(&at, event, object);
    }

    /// A line above the question.
    pub(super) fn say(&mut self, line: &str) {
        self.parts.console.line(line);
    }
}
