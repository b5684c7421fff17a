//! Who may have changed which file: traces of processes, and what they come to. Pure.
//!
//! Promise: `certain` is said if every trace of a file or name since it was last settled is one of a single process that
//! runs a single program, each proven, and nobody else may have had the file open: not one who had before, not one whose
//! trace was lost. In every other case it is the last trace, `likely`.
//! Limit: whoever opened a file for writing is named for what is written through that opening, whoever holds it by then.

use std::collections::HashMap;

use crate::event::Place;
use crate::stat::FileId;
use crate::writer::{Certainty, Mark, Writer};

use super::lives::LifeId;

/// Traces kept of one file or name, at most.
const MOST_TRACES: usize = 16;
/// Files, and names, with traces at most: beyond it all are forgotten, which counts as a loss.
const MOST_TRACED: usize = 1 << 14;
/// Names of which it is remembered when they were settled, at most.
const MOST_SETTLED: usize = 1 << 18;

/// Which process, running which program: two traces of one are of the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) pid: u32,
    pub(super) started: Option<u64>,
    /// Its life in the feed, and after how many execs.
    pub(super) life: Option<(LifeId, u64)>,
}

impl Who {
    fn is(&self, other: &Who) -> bool {
        match (self.life, other.life) {
            (Some(one), Some(two)) => one == two,
            // Without the feed nobody tells whether another program was begun in between.
            _ => false,
        }
    }

    fn is_process(&self, other: &Who) -> bool {
        let by_life = self.life.zip(other.life).map(|((one, _), (two, _))| one == two);
        let by_start = || self.started.is_some() && self.started == other.started;
        self.pid == other.pid && by_life.unwrap_or_else(by_start)
    }
}

/// How a process came to be in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trace {
    /// It was stopped while it opened the file for writing.
    Opened,
    /// It had the file open, or mapped, when the watch began.
    Held,
    /// It caused an event, and was found by its number.
    Did {
        /// Whether no other process can have caused it.
        process: bool,
        /// Whether it ran that program then.
        program: bool,
    },
}

#[derive(Debug, Clone)]
struct Entry {
    who: Who,
    trace: Trace,
    writer: Writer,
    number: u64,
}

impl Entry {
    /// Whether it is the same trace of the same program. Without the feed two openings of one process are of one program only if
    /// nothing of it has changed: what it was begun as in between is not told, and what each of them ran was looked at.
    fn is_again(&self, other: &Entry) -> bool {
        let is_one_program = || self.who.life.is_some() || self.writer.program == other.writer.program;
        self.who == other.who && self.trace == other.trace && is_one_program()
    }
}

#[derive(Debug, Default)]
struct Traces {
    entries: Vec<Entry>,
    /// Somebody else may have the file open, or there were more traces than are kept.
    strangers: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    number: u64,
    files: HashMap<FileId, Traces>,
    names: HashMap<Place, Traces>,
    /// Traces were lost at this number; only what was settled since is whole again.
    lost: Option<u64>,
    /// When names were settled, where that matters: after a loss, or below a directory with a trace of its own.
    settled: HashMap<Place, u64>,
}

impl Traces {
    fn add(&mut self, entry: Entry) {
        // One program that does the same again and again takes one place.
        self.entries.retain(|known| !known.is_again(&entry));
        if self.entries.len() >= MOST_TRACES {
            self.entries.remove(0);
            self.strangers = true;
        }
        self.entries.push(entry);
    }

    /// Forgets what came before, unless the file may still be open. Whether nothing is left.
    fn settle(&mut self, before: Mark) -> bool {
        if before.is_closed {
            self.entries.retain(|entry| entry.number > before.number);
            self.strangers = false;
        } else {
            // Whoever opened it may write yet; who did something is done.
            let goes_on = |trace| matches!(trace, Trace::Opened | Trace::Held);
            self.entries.retain(|entry| entry.number > before.number || goes_on(entry.trace));
            self.strangers |= !self.entries.iter().any(|entry| goes_on(entry.trace));
        }
        self.entries.is_empty() && !self.strangers
    }
}

impl Ledger {
    /// A mark between what was noted and what will be.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Notes a trace of a file.
    pub(super) fn file(&mut self, object: FileId, who: Who, trace: Trace, writer: Writer) {
        if self.files.len() >= MOST_TRACED && !self.files.contains_key(&object) {
            self.files.clear();
            self.lose();
        }
        self.number += 1;
        self.files.entry(object).or_default().add(Entry { who, trace, writer, number: self.number });
    }

    /// Notes a trace of a name: of a file, or of a directory with all below it.
    pub(super) fn name(&mut self, place: &Place, who: Who, trace: Trace, writer: Writer) {
        if self.names.len() >= MOST_TRACED && !self.names.contains_key(place) {
            self.names.clear();
            self.lose();
        }
        self.number += 1;
        self.names.entry(place.clone()).or_default().add(Entry { who, trace, writer, number: self.number });
    }

    /// Somebody who is not known may have the file open for writing.
    pub(super) fn stranger(&mut self, object: FileId) {
        self.files.entry(object).or_default().strangers = true;
    }

    /// Traces were lost.
    pub(super) fn lose(&mut self) {
        self.number += 1;
        self.lost = Some(self.number);
        self.settled.clear();
    }

    fn is_whole(&self, place: &Place) -> bool {
        self.lost.is_none() || self.settled.contains_key(place)
    }

    /// Whether anything is known, or may have been lost, that [`Ledger::settle`] would have to weigh.
    pub(super) fn knows(&self, place: &Place, object: Option<FileId>) -> bool {
        self.names.contains_key(place)
            || object.is_some_and(|object| self.files.contains_key(&object))
            || !self.is_whole(place)
    }

    /// The name was looked at after `before`, and is as accepted.
    pub(super) fn settle(&mut self, place: &Place, object: Option<FileId>, before: Mark) {
        // Whoever put the file in its place may have it open still.
        if let Some(object) = object
            && !before.is_closed
            && self.names.contains_key(place)
        {
            self.files.entry(object).or_default();
        }
        let by_name = Mark { is_closed: true, ..before };
        if self.names.get_mut(place).is_some_and(|traces| traces.settle(by_name)) {
            self.names.remove(place);
        }
        if let Some(object) = object
            && self.files.get_mut(&object).is_some_and(|traces| traces.settle(before))
        {
            self.files.remove(&object);
        }
        let after_loss = self.lost.is_some_and(|lost| lost <= before.number) && before.is_closed;
        let below_a_trace = self.lost.is_none() && self.above(place).next().is_some();
        if after_loss || below_a_trace {
            if self.settled.len() >= MOST_SETTLED {
                self.settled.clear();
            }
            self.settled.insert(place.clone(), before.number);
        }
    }

    /// The traces of directories above a name.
    fn above<'l>(&'l self, place: &Place) -> impl Iterator<Item = &'l Traces> {
        let none = self.names.is_empty();
        let above = place
            .path
            .ancestors()
            .take_while(move |_| !none)
            .filter_map(|path| self.names.get(&Place { root: place.root, path }));
        above.collect::<Vec<_>>().into_iter()
    }

    /// Who changed it.
    pub(super) fn writer(&self, place: &Place, object: Option<FileId>) -> Option<Writer> {
        let of_file = object.and_then(|object| self.files.get(&object));
        let all = || of_file.into_iter().chain(self.names.get(place));
        // What happened to a directory above stays until it is too much: the path below it has moved on if it was settled.
        let settled = self.settled.get(place).copied().unwrap_or_default();
        let above: Vec<&Traces> = self.above(place).collect();
        let above = || above.iter().flat_map(|traces| &traces.entries).filter(|entry| entry.number > settled);
        let entries = || all().flat_map(|traces| &traces.entries).chain(above());
        let last = entries().max_by_key(|entry| entry.number)?;
        // What is known best of the process that came last: its opening, at which it was stopped, or else the event.
        let same = entries().filter(|entry| entry.number == last.number || entry.who.is_process(&last.who));
        let told =
            same.max_by_key(|entry| (entry.trace == Trace::Opened, entry.number)).expect("the last is among them");
        let opened = entries().any(|entry| entry.trace == Trace::Opened);
        let proven = |entry: &Entry| match entry.trace {
            Trace::Opened => true,
            Trace::Held => false,
            // What it does to a file that it has opened itself it did by that.
            Trace::Did { process, program } => process && (program || opened),
        };
        let alone = || match entries().count() {
            1 => true,
            _ => entries().all(|entry| entry.who.is(&told.who)),
        };
        let certain = self.is_whole(place) && !all().any(|traces| traces.strangers) && alone() && entries().all(proven);
        let mut writer = told.writer.clone();
        writer.certainty = match writer.certainty {
            Certainty::Unknown => Certainty::Unknown,
            _ if certain => Certainty::Certain,
            _ => Certainty::Likely,
        };
        Some(writer)
    }

    /// When nothing is known of a file or name, nothing is kept of it.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.names.is_empty()
    }
}
