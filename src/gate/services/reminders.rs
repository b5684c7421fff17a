//! Reminders: stored, told once when they are due.
//!
//! Promise: a reminder whose id the agent got survives every crash, and is told at most once: it is taken out of the file,
//! durably, before it is told. A file that cannot be read or written tells nothing, loses nothing, and is not overwritten.
//! Limit: one that was taken out in the moment the process died is lost; the other order could tell it again at each start.
//! After a disk that fails to sync the new file, and a power cut, one may be told again.
//! Several processes may add and cancel; only one, the gate, tells. A clock that is set changes what is due, as it should.

mod list;

use std::os::fd::AsFd as _;
use std::time::{Duration, SystemTime};

use platform::turn::Turn;
use platform::{Dir, FileId, Moment, random};

use super::file::{self, Text, why};
use super::wording;
pub use list::Reminder;

/// The file, in the control folder.
const FILE: &[u8] = b"reminders.json";
/// The same while it is being written.
const UNFINISHED: &[u8] = b"reminders.json.new";
/// Who changes the file has this.
const TURN: &[u8] = b"reminders.lock";
/// How long we wait for another process.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most that wait.
pub const MOST: usize = 100;
/// As many of the longest there can be, however JSON spells them, fit.
const MAX_BYTES: u64 = 2 << 20;
/// After a fault, how long until reminders that are due are tried again.
const AGAIN: Duration = Duration::from_secs(30);

/// What makes a file another one, or the same with another content.
type Stamp = (FileId, u64, (i64, u32));

/// The reminders of one control folder.
#[derive(Debug)]
pub struct Reminders {
    control: Dir,
    /// Which file `next` was read from, if any was there; `None` if that is not known.
    seen: Option<Option<Stamp>>,
    /// When the next of it is due; `None` if there is none, or if the file is not usable.
    next: Option<SystemTime>,
    /// After a fault.
    not_before: Option<Moment>,
    /// What was last said of the file, so that it is said once.
    fault: Option<String>,
}

impl Reminders {
    /// Those in this control folder. Nothing is read yet.
    pub fn of(control: Dir) -> Self {
        Self { control, seen: None, next: None, not_before: None, fault: None }
    }

    /// Stores one more.
    pub fn add(&mut self, at: SystemTime, title: Option<&str>, message: &str) -> Result<Reminder, String> {
        wording::message("message", message)?;
        wording::title(title)?;
        let id = random::hex12().map_err(|error| format!("the system gives no random bytes: {error}"))?;
        let new = Reminder::new(id, at, title, message);
        let stored = new.clone();
        self.change(move |all| {
            if all.len() >= MOST {
                return Err(format!("{MOST} reminders wait already; cancel one first"));
            }
            all.push(stored);
            Ok(true)
        })?;
        Ok(new)
    }

    /// All that wait, the soonest first.
    pub fn list(&mut self) -> Result<Vec<Reminder>, String> {
        self.load()
    }

    /// Takes one back; `false` if there is none with this id.
    pub fn cancel(&mut self, id: &str) -> Result<bool, String> {
        let mut found = false;
        self.change(|all| {
            let before = all.len();
            all.retain(|reminder| reminder.id() != id);
            found = all.len() != before;
            Ok(found)
        })?;
        Ok(found)
    }

    /// When something is due. After a fault, when it is tried again.
    pub fn next(&self, wall: SystemTime, now: Moment) -> Option<SystemTime> {
        let next = self.next?;
        match self.not_before {
            Some(moment) if moment > now => Some(next.max(wall + moment.since(now))),
            _ => Some(next),
        }
    }

    /// What is due by now, the earliest first: it is not in the file any more. An error is for the person, told once.
    pub fn due(&mut self, wall: SystemTime, now: Moment) -> (Vec<Reminder>, Option<String>) {
        if self.not_before.is_some_and(|moment| moment > now) {
            return (Vec::new(), None);
        }
        self.not_before = None;
        match self.take_due(wall) {
            Ok(due) => {
                self.fault = None;
                (due, None)
            }
            Err(fault) => {
                self.not_before = Some(now + AGAIN);
                let is_news = self.fault.as_ref() != Some(&fault);
                self.fault = Some(fault.clone());
                (Vec::new(), is_news.then_some(fault))
            }
        }
    }

    fn take_due(&mut self, wall: SystemTime) -> Result<Vec<Reminder>, String> {
        // Another process may have added one.
        if self.seen != Some(self.stamp()?) {
            self.load()?;
        }
        if self.next.is_none_or(|next| next > wall) {
            return Ok(Vec::new());
        }
        let mut due: Vec<Reminder> = Vec::new();
        let changed = self.change(|all| {
            due = all.extract_if(.., |reminder| reminder.at() <= wall).collect();
            Ok(!due.is_empty())
        });
        if let Err(fault) = changed {
            // The new file may be in its place, although the disk did not say that it keeps it. Who does not tell now, never
            // tells.
            let still = self.load()?;
            if due.is_empty() || still.iter().any(|kept| due.iter().any(|taken| taken.id() == kept.id())) {
                return Err(fault);
            }
        }
        Ok(due)
    }

    /// Changes the file in one's turn, if `change` says that it has.
    fn change(&mut self, change: impl FnOnce(&mut Vec<Reminder>) -> Result<bool, String>) -> Result<(), String> {
        let turn =
            Turn::named(&self.control, TURN, PATIENCE).map_err(|error| format!("reminders.json is locked: {error}"))?;
        let mut all = self.load()?;
        if change(&mut all)? {
            all.sort_by(|one, other| one.order().cmp(&other.order()));
            let written = file::replace(&self.control, UNFINISHED, &self.control, FILE, &list::write(&all));
            // Whether or not: what counts is what is there now.
            let reloaded = self.load();
            written.map_err(|error| format!("reminders.json cannot be written: {}", why(&error)))?;
            reloaded?;
        }
        drop(turn);
        Ok(())
    }

    fn stamp(&self) -> Result<Option<Stamp>, String> {
        let stat = self.control.stat(FILE).map_err(|error| why(&error))?;
        Ok(stat.map(|stat| (stat.id, stat.size, stat.ctime)))
    }

    fn load(&mut self) -> Result<Vec<Reminder>, String> {
        (self.next, self.seen) = (None, None);
        if self.stamp()?.is_none() {
            self.seen = Some(None);
            return Ok(Vec::new());
        }
        let unusable = |what: String| format!("reminders.json cannot be used until it is mended: {what}");
        let file = self.control.open_read(FILE).map_err(|error| unusable(why(&error)))?;
        // Of the file that was opened: a newer one is noticed at the next look.
        let stat = platform::dir::stat_of(file.as_fd()).map_err(|error| unusable(why(&error)))?;
        let all = match file::text(file, MAX_BYTES) {
            Ok(Text { content, truncated: false, .. }) => {
                list::read(&content).map_err(|error| unusable(error.to_string()))?
            }
            Ok(_) => return Err(unusable(format!("it has more than {MAX_BYTES} bytes"))),
            Err(error) => return Err(unusable(error.to_string())),
        };
        self.seen = Some(Some((stat.id, stat.size, stat.ctime)));
        self.next = all.first().map(Reminder::at);
        Ok(all)
    }
}

#[cfg(test)]
mod tests;
