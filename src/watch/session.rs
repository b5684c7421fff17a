//! The core thread of a watch: one channel in, one loop, one owner of everything that changes.
//!
//! Promise: the question is drawn before anything slow happens; whatever a hint says, only comparison decides. Limit: one
//! thread does all looking and restoring, so a restore of a huge file delays the next question by its own length.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use platform::event::{Powers, Subscription};
use platform::lock::Lock;
use platform::notify::Notifier;
use platform::{Account, Clock, FileId, Flags, LostCause, Moment, Place, Stat};

use crate::baseline::Baseline;
use crate::cli::exit::Refusal;
use crate::digest::Digest;
use crate::journal::forward::Couriers;
use crate::journal::{Journal, SessionLog, rfc3339};
use crate::roots::Roots;
use crate::rules::assemble::ScopeSource;
use crate::rules::set::RuleSet;
use crate::store::{Objects, Quarantine};

use super::already_open::AlreadyOpen;
use super::approvals::{Approvals, NewFile};
use super::choosing::Choosing;
use super::console::Console;
use super::expected::Expected;
use super::guest::{Guest, Opening};
use super::hold::{self, Hold, Passes};
use super::inbox::Inbox;
use super::lock::others::Others;
use super::locking::Locking;
use super::looking::Settling;
use super::machine::{Effect, Input, Machine};
use super::moved::Remade;
use super::new_dirs::NewDirs;
use super::previous::Previous;
use super::promises::Promises;
use super::report::ReportPath;
use super::rereading::Rereading;
use super::sweep::Sweep;
use super::tally::Tally;
use super::writers::Known;

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
    /// Those who are told of what the journal says.
    pub couriers: Arc<Couriers>,
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
    /// Who knows who changed something.
    pub account: Arc<dyn Account>,
    /// The lock of the root.
    pub lock: Lock,
    /// Polling, for what the backend cannot cover.
    pub start_polling: StartPolling,
    /// A gate for this terminal, unless there is none; it serves once the watch does.
    pub gate: Option<Opening>,
    /// What the person has allowed at its questions.
    pub approvals: Approvals,
    /// Opens that are held, if they are.
    pub hold: Option<Hold>,
    /// What makes files immutable, if they are to be locked.
    pub flags: Option<Arc<dyn Flags>>,
    /// What an earlier run left immutable and this one cannot release: that is no change.
    pub left_locked: BTreeSet<FileId>,
    /// The journals of other watches: what they have made immutable is no change either.
    pub others: Others,
}

/// How this watch was asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of this session.
    pub session: String,
    /// Name of the backend.
    pub backend: &'static str,
    /// What it can do besides.
    pub powers: Powers,
    /// Time to answer.
    pub decision_timeout: Duration,
    /// Refusals until a path is contested; 0 = never.
    pub contest_limit: u32,
    /// Interval of the verifying sweep.
    pub interval: Duration,
    /// Largest protected file in bytes.
    pub max_file_bytes: u64,
    /// What a file has that is made by the person's own programs.
    pub new_file: NewFile,
    /// The rule file's content, which the next start compares its own with.
    pub rule_file: Option<Digest>,
    /// Whether dependencies are frozen.
    pub frozen: bool,
    /// The allowed area.
    pub scope: Option<Vec<ScopeSource>>,
    /// Whether to go on without what this machine cannot do.
    pub best_effort: bool,
    /// Path of the session log.
    pub session_log: ReportPath,
    /// What becomes of which operation.
    pub promises: Promises,
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
    /// The decisions about held opens.
    pub(super) held: hold::Machine,
    /// What openers that were let may write.
    pub(super) passes: Passes,
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
    pub(super) new_dirs: NewDirs,
    /// Protected files that could not be read at the start, and what was known of them then.
    pub(super) unreadable: BTreeMap<Place, Option<Stat>>,
    /// Directories that could not be read at the start, and which ones they were: what lies in them may have been there
    /// all the time.
    pub(super) closed: BTreeMap<Place, Option<FileId>>,
    /// Wall time before the first walk.
    pub(super) begun: SystemTime,
    /// Bytes of small files as last looked at, for the difference in the question.
    pub(super) after_bytes: BTreeMap<Place, Vec<u8>>,
    /// Protected files that were open for writing at the start.
    pub(super) already_open: AlreadyOpen,
    /// Who made the changes that are not settled, as far as it is known.
    pub(super) writers: BTreeMap<Place, Known>,
    pub(super) tally: Tally,
    pub(super) sweep: Sweep,
    pub(super) rereading: Rereading,
    pub(super) sweep_at: Moment,
    /// What is locked, if anything is to be.
    pub(super) lock: Option<Locking>,
    /// The folder that was put back last of those that vanished.
    pub(super) remade: Remade,
    /// What the person chooses from, if anything.
    pub(super) choosing: Choosing,
    /// The gate in this terminal, once it serves.
    pub(super) guest: Option<Guest>,
    pub(super) polling: Option<Box<dyn Subscription>>,
    /// When everything was last listed again after an overflow of ours, and when it has to be.
    pub(super) listed: Option<Moment>,
    pub(super) list_at: Option<Moment>,
    pub(super) previous: Previous,
    pub(super) end: Option<End>,
    /// Whether something that was asked for and had begun was not kept up to the end.
    pub(super) is_short: bool,
    /// Why the watch cannot start after all.
    pub(super) failed_start: Option<Refusal>,
}

/// Hints taken before the paths they name are looked at.
const BATCH: usize = 8192;
/// Everything is listed again no more often than this: what is listed may overflow again.
pub(super) const BETWEEN_LISTINGS: Duration = Duration::from_secs(10);
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
        previous: Previous,
        tally: Tally,
    ) -> Self {
        let (now, begun) = (parts.clock.now(), parts.clock.wall());
        let rereading = Rereading::new(options.powers.names_the_writer);
        Self {
            sweep_at: now + options.interval,
            held: hold::Machine::new(hold::Settings {
                decision_timeout: options.decision_timeout,
                contest_limit: options.contest_limit,
            }),
            passes: Passes::default(),
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
            new_dirs: NewDirs::default(),
            unreadable: BTreeMap::new(),
            closed: BTreeMap::new(),
            begun,
            after_bytes: BTreeMap::new(),
            already_open: AlreadyOpen::default(),
            writers: BTreeMap::new(),
            tally,
            sweep: Sweep::default(),
            rereading,
            lock: None,
            remade: None,
            choosing: Choosing::default(),
            guest: None,
            polling: None,
            listed: None,
            list_at: None,
            previous,
            end: None,
            is_short: false,
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
            self.step_held(hold::Input::Tick);
            self.tend_lock();
            self.tend_choice();
            self.draw();
            if now >= self.sweep_at {
                self.sweep_round(now);
            }
            if let Some(refusal) = self.failed_start.take() {
                self.end_hold();
                self.unlock_everything();
                self.write_down();
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
        let further = [self.held.wake_at(), self.passes.wake_at(), self.lock_wake_at(now), self.choice_wake_at()];
        let wake = [Some(self.sweep_at), self.machine.wake_at(), self.parts.console.wake_at(), settled, self.list_at];
        let wake = wake.into_iter().chain(further).flatten().min().expect("the sweep is always due some time");
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
