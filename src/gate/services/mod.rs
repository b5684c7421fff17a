//! The tools that are no file of the root: notifications, reminders, notes, skills, the time, wakes.
//!
//! Promise: they touch the control folder only, through its handle, and of it only their own files; whatever an agent gives
//! is bounded before it is kept. Nothing here asks or decides: a call that gets here is allowed.
//! Limit: what is to be told to the person or a client is handed out as [`Due`]; whoever runs this loop tells it.

mod file;
pub mod notes;
pub mod rate;
pub mod reminders;
pub mod skills;
mod time;
pub mod wakes;
pub mod when;
pub mod wording;

use std::time::SystemTime;

use platform::{Dir, FsError, Moment, Zone};
use serde_json::{Map, Value};

use self::notes::Notes;
use self::rate::Rate;
use self::reminders::{Reminder, Reminders};
use self::skills::Skills;
use self::time::LocalZone;
use self::wakes::Wakes;
use self::wording::Occasion;
use super::tools::Request;
use super::tools::request;

/// Why there are no services.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServicesError {
    /// The control folder's handle could not be duplicated.
    #[error("cannot use the control folder")]
    Control(#[source] FsError),
}

/// How the services behave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whether reminders are told: by the one process that holds the gate of this folder.
    pub fires: bool,
    /// Whether a wake outlives its client, since a program is started for it.
    pub keeps_wakes: bool,
    /// The person's time zone.
    pub zone: Zone,
}

/// Something to tell. Texts for the person are escaped already, and say first that an agent speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due {
    /// Tell the person.
    Notify {
        /// The headline.
        title: String,
        /// The text.
        message: String,
    },
    /// Call a client again, if it is still there, and start the program for wakes, if there is one.
    Wake {
        /// Which.
        connection: u64,
        /// Its note, as it gave it.
        note: String,
    },
    /// A line for the person at the gate: reminders cannot be read or written.
    Fault(String),
}

/// The services of one control folder.
#[derive(Debug)]
pub struct Services {
    settings: Settings,
    zone: LocalZone,
    rate: Rate,
    reminders: Reminders,
    notes: Notes,
    skills: Skills,
    wakes: Wakes,
    /// Notifications that were allowed and are not handed out yet.
    outbox: Vec<Due>,
}

impl Services {
    /// The services over the control folder `dir`.
    pub fn open(dir: &Dir, settings: Settings) -> Result<Self, ServicesError> {
        let handle = || dir.reopen().map_err(ServicesError::Control);
        Ok(Self {
            zone: LocalZone::new(settings.zone.clone()),
            settings,
            rate: Rate::default(),
            reminders: Reminders::of(handle()?),
            notes: Notes::of(handle()?),
            skills: Skills::of(handle()?),
            wakes: Wakes::default(),
            outbox: Vec::new(),
        })
    }

    /// Carries out a call of a client; the error is for the agent.
    pub fn run(
        &mut self,
        request: &Request,
        connection: u64,
        wall: SystemTime,
        now: Moment,
    ) -> Result<Map<String, Value>, String> {
        match request {
            Request::Notify(notify) => self.notify(notify, now),
            Request::Remind(remind) => self.remind(remind, wall),
            Request::RemindList(_) => self.list(),
            Request::RemindCancel(cancel) => {
                let cancelled = self.reminders.cancel(&cancel.id)?;
                Ok(object([("id", cancel.id.as_str().into()), ("cancelled", cancelled.into())]))
            }
            Request::MemoryRead(read) => self.notes.read(&read.path),
            Request::MemoryWrite(write) => self.notes.write(&write.path, &write.summary, &write.content),
            Request::SkillRead(read) => self.skills.read(&read.name, &read.path),
            Request::SkillLoad(load) => self.skills.load(&load.name),
            Request::TimeNow(_) => self.zone.now(wall),
            Request::Wake(wake) => {
                let wait = self.wakes.add(wake.seconds, &wake.note, connection, now)?;
                Ok(object([("wakeInSeconds", wait.as_secs().into())]))
            }
            Request::FileRead(_)
            | Request::FileList(_)
            | Request::FileStat(_)
            | Request::FileSearch(_)
            | Request::FileWrite(_)
            | Request::FileRemove(_)
            | Request::FileMove(_) => Err("files are another's work".to_owned()),
        }
    }

    /// When [`Services::due`] has something to hand out, by the clock on the wall. That clock can be set meanwhile: ask
    /// again from time to time.
    pub fn wake_at(&self, wall: SystemTime, now: Moment) -> Option<SystemTime> {
        if !self.outbox.is_empty() {
            return Some(wall);
        }
        let reminder = if self.settings.fires { self.reminders.next(wall, now) } else { None };
        let wake = self.wakes.next().map(|at| wall + at.since(now));
        reminder.into_iter().chain(wake).min()
    }

    /// What is to be told by now; it is never handed out again.
    pub fn due(&mut self, wall: SystemTime, now: Moment) -> Vec<Due> {
        let mut due = std::mem::take(&mut self.outbox);
        if self.settings.fires {
            let (reminders, fault) = self.reminders.due(wall, now);
            due.extend(reminders.iter().map(told));
            due.extend(fault.map(|fault| Due::Fault(crate::text::escaped(fault.as_bytes()))));
        }
        due.extend(
            self.wakes.due(now).into_iter().map(|wake| Due::Wake { connection: wake.connection, note: wake.note }),
        );
        due
    }

    /// A client is gone, and with it the wakes that only it waited for.
    pub fn gone(&mut self, connection: u64) {
        if !self.settings.keeps_wakes {
            self.wakes.forget(connection);
        }
    }

    fn notify(&mut self, notify: &request::Notify, now: Moment) -> Result<Map<String, Value>, String> {
        wording::message("message", &notify.message)?;
        wording::title(notify.title.as_deref())?;
        self.rate.take(now).map_err(|wait| {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            format!("at most {} notifications a minute; try again in {seconds} s", rate::MOST)
        })?;
        let title = wording::headline(Occasion::Message, notify.title.as_deref());
        self.outbox.push(Due::Notify { title, message: wording::body(&notify.message) });
        Ok(object([("sent", true.into())]))
    }

    fn remind(&mut self, remind: &request::Remind, wall: SystemTime) -> Result<Map<String, Value>, String> {
        let at = when::when(&remind.when, wall).map_err(|error| error.to_string())?;
        let added = self.reminders.add(at, remind.title.as_deref(), &remind.message)?;
        Ok(object([("id", added.id().into()), ("fireAt", added.fire_at().into())]))
    }

    fn list(&mut self) -> Result<Map<String, Value>, String> {
        let all = self.reminders.list()?;
        let shown = all.iter().map(|reminder| {
            let mut fields = object([
                ("id", reminder.id().into()),
                ("fireAt", reminder.fire_at().into()),
                ("message", reminder.message().into()),
            ]);
            if let Some(title) = reminder.title() {
                fields.insert("title".to_owned(), title.into());
            }
            Value::Object(fields)
        });
        Ok(object([("reminders", shown.collect())]))
    }
}

fn told(reminder: &Reminder) -> Due {
    Due::Notify {
        title: wording::headline(Occasion::Reminder, reminder.title()),
        message: wording::body(reminder.message()),
    }
}

/// A structured result.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[cfg(test)]
mod tests;
