//! Which process had a number when, and what it ran: made of the kernel's feed, pure.
//!
//! Promise: a number that several processes may have had in a span of time has no owner in it, and one that may have had
//! an unknown one neither: after a gap in the feed nothing from before it is believed. A program counts as what a process
//! ran only if it was read after the process's last exec and before the span began.
//! Limit: ended processes are kept for some seconds and in bounded number; a process whose first thread has ended counts as
//! ended.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::clock::Moment;

use super::ledger::{Trace, Who};

/// How long an ended process is kept.
const KEPT: Duration = Duration::from_secs(30);
/// Ended processes kept at most.
const MOST_ENDED: usize = 8192;
/// Numbers known at most: beyond it the feed counts as broken.
const MOST: usize = 1 << 17;
/// Processes above one, at most.
pub(super) const MOST_ANCESTORS: usize = 16;

/// What a process runs, as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Image {
    pub(super) name: Vec<u8>,
    pub(super) exe: Option<Vec<u8>>,
    pub(super) argv0: Option<Vec<u8>>,
    /// Whether the process leads a session that has a terminal.
    pub(super) is_top: bool,
    /// Whether it began that program in another mount namespace; `None` if it could not be told.
    pub(super) is_elsewhere: Option<bool>,
}

/// Which life of which number, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LifeId {
    pub(super) pid: u32,
    pub(super) serial: u64,
}

/// What is to be read of a process: its image after so many execs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) life: LifeId,
    pub(super) execs: u64,
}

/// A process.
#[derive(Debug, Clone)]
pub(super) struct Life {
    pub(super) id: LifeId,
    /// The process that made it, if the feed told, or the one it was found below.
    pub(super) parent: Option<LifeId>,
    /// When its end was read.
    ended: Option<Moment>,
    /// Its start time, once it was read.
    pub(super) started: Option<u64>,
    /// How often it began another program, as far as the feed told.
    pub(super) execs: u64,
    /// What it runs, and when that was read.
    image: Option<(Image, Moment)>,
    /// What it ran before, or its parent when it was made: for want of better.
    former: Option<Image>,
}

impl Life {
    /// What it runs, or ran at last, and whether that is read and not concluded.
    pub(super) fn image(&self) -> Option<(&Image, bool)> {
        self.image.as_ref().map(|(image, _)| (image, true)).or_else(|| self.former.as_ref().map(|image| (image, false)))
    }

    /// Whether its image was read before `moment`, and it began no other program since.
    pub(super) fn ran_since(&self, moment: Moment) -> bool {
        self.image.as_ref().is_some_and(|(_, read)| *read <= moment)
    }
}

/// Who had a number in a span of time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owner<'l> {
    /// This one and no other.
    One(&'l Life),
    /// More than one, or one that is not known.
    Unclear,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Lives {
    by_pid: HashMap<u32, Vec<Life>>,
    /// Ended ones, oldest first.
    ended: VecDeque<(Moment, LifeId)>,
    /// When the last one with a number ended that is no longer kept.
    dropped: HashMap<u32, Moment>,
    serial: u64,
    /// Since when every process is known; `None` while it is not.
    whole: Option<Moment>,
}

impl Lives {
    /// Every process that was there at the moment `at`, before which the feed had begun.
    pub(super) fn present(&mut self, pids: &[u32], at: Moment) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for &pid in pids {
            if self.last(pid).is_none_or(|life| life.ended.is_some()) {
                let life = self.add(pid, None);
                wanted.push(Wanted { life, execs: 0 });
            }
        }
        self.whole = Some(at);
        wanted
    }

    /// Whether every process since `moment` is known.
    pub(super) fn is_whole_since(&self, moment: Moment) -> bool {
        self.whole.is_some_and(|whole| whole <= moment)
    }

    fn add(&mut self, pid: u32, parent: Option<LifeId>) -> LifeId {
        self.serial += 1;
        let id = LifeId { pid, serial: self.serial };
        let former = parent
            .and_then(|parent| self.get(parent))
            .and_then(|parent| parent.image())
            .map(|(image, _)| Image { is_top: false, ..image.clone() });
        let life = Life { id, parent, ended: None, started: None, execs: 0, image: None, former };
        self.by_pid.entry(pid).or_default().push(life);
        id
    }

    /// A process was made.
    pub(super) fn fork(&mut self, parent: u32, child: u32, at: Moment) {
        // The number was free: whoever had it is gone, though the message that says so may come later.
        if self.last(child).is_some_and(|life| life.ended.is_none()) {
            self.exit(child, at);
        }
        let parent = self.last(parent).map(|life| life.id);
        self.add(child, parent);
        if self.by_pid.len() > MOST {
            self.gap();
        }
    }

    /// A process began another program. What is to be read of it.
    pub(super) fn exec(&mut self, pid: u32) -> Wanted {
        if self.last(pid).is_none() {
            self.add(pid, None);
        }
        let life = self.last_mut(pid).expect("just looked up or added");
        life.execs += 1;
        if let Some((image, _)) = life.image.take() {
            life.former = Some(image);
        }
        Wanted { life: life.id, execs: life.execs }
    }

    /// A process ended.
    pub(super) fn exit(&mut self, pid: u32, at: Moment) {
        if self.last(pid).is_none() {
            self.add(pid, None);
        }
        let life = self.last_mut(pid).expect("just looked up or added");
        if life.ended.is_none() {
            life.ended = Some(at);
            let id = life.id;
            self.ended.push_back((at, id));
        }
        self.tidy(at);
    }

    /// Messages were lost: nothing is known any more.
    pub(super) fn gap(&mut self) {
        self.by_pid.clear();
        self.ended.clear();
        self.dropped.clear();
        self.whole = None;
    }

    /// What was read of a process, if it is still what was wanted. `at` is when the reading was over; every message sent until
    /// then has been taken, so that a number that was given again before it was read is seen to be another's.
    pub(super) fn read(&mut self, wanted: Wanted, started: u64, image: Image, at: Moment) {
        let Some(life) = self.last_mut(wanted.life.pid).filter(|life| life.id == wanted.life) else { return };
        if life.execs == wanted.execs && life.started.is_none_or(|known| known == started) {
            life.started = Some(started);
            let argv0 = life.image.take().and_then(|(known, _)| known.argv0);
            life.image = Some((Image { argv0, ..image }, at));
        }
    }

    /// The processes above one that run and were not read since they began what they run.
    pub(super) fn unread_above(&self, id: LifeId) -> Vec<Wanted> {
        let is_unread = |life: &&Life| life.image.is_none() && life.ended.is_none();
        let unread = self.above(id).into_iter().filter(is_unread);
        unread.map(|life| Wanted { life: life.id, execs: life.execs }).collect()
    }

    /// How many lives have been told of.
    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    /// A process was found below another one when it was read; `known` lives had been told of before, and every message sent
    /// until now has been taken. One that was not known by then may not be the one whose number was read.
    pub(super) fn found_below(&mut self, life: LifeId, parent: u32, known: u64) {
        let above = self.last(parent).map(|above| above.id).filter(|above| above.serial <= known && *above != life);
        if let Some(life) = self.get_mut(life)
            && life.parent.is_none()
        {
            life.parent = above;
        }
    }

    /// What the process runs that has the number now and started then, if that need not be looked at again: it was read, and
    /// no other program was begun since. Every message sent until now must have been taken.
    pub(super) fn runs(&self, pid: u32, started: u64) -> Option<&Image> {
        let life = self.last(pid).filter(|life| life.started == Some(started))?;
        let (image, is_read) = life.image()?;
        (is_read && image.exe.is_some()).then_some(image)
    }

    /// The first word of its arguments.
    pub(super) fn named(&mut self, wanted: Wanted, word: Vec<u8>) {
        if let Some(life) = self.get_mut(wanted.life)
            && life.execs == wanted.execs
            && let Some((image, _)) = &mut life.image
        {
            image.argv0 = Some(word);
        }
    }

    /// The process that has the number now, as far as the feed told.
    pub(super) fn last(&self, pid: u32) -> Option<&Life> {
        self.by_pid.get(&pid)?.last()
    }

    fn last_mut(&mut self, pid: u32) -> Option<&mut Life> {
        self.by_pid.get_mut(&pid)?.last_mut()
    }

    /// One that is still kept.
    pub(super) fn get(&self, id: LifeId) -> Option<&Life> {
        self.by_pid.get(&id.pid)?.iter().find(|life| life.id == id)
    }

    fn get_mut(&mut self, id: LifeId) -> Option<&mut Life> {
        self.by_pid.get_mut(&id.pid)?.iter_mut().find(|life| life.id == id)
    }

    /// Who had the number at some moment after `since`. Every message sent until now must have been taken.
    pub(super) fn owner(&self, pid: u32, since: Moment) -> Owner<'_> {
        if !self.is_whole_since(since) || self.dropped.get(&pid).is_some_and(|ended| *ended >= since) {
            return Owner::Unclear;
        }
        // One that ended before the span is out of it; its end may have been read late, never early.
        let mut had =
            self.by_pid.get(&pid).into_iter().flatten().filter(|life| life.ended.is_none_or(|end| end >= since));
        match (had.next(), had.next()) {
            (Some(life), None) => Owner::One(life),
            _ => Owner::Unclear,
        }
    }

    /// What an event is a trace of, that a process with this number caused after `since`; `None` if it may have been one or
    /// another.
    pub(super) fn trace(&self, pid: u32, since: Moment) -> Option<(Who, Trace, &Life)> {
        let Owner::One(life) = self.owner(pid, since) else { return None };
        let who = Who { pid, started: life.started, life: Some((life.id, life.execs)) };
        Some((who, Trace::Did { process: true, program: life.ran_since(since) }, life))
    }

    /// The processes above one, nearest first, as far as they are known by their making; the first of them that is not
    /// ends the list.
    pub(super) fn above(&self, id: LifeId) -> Vec<&Life> {
        let mut found = Vec::new();
        let mut next = self.get(id).and_then(|life| life.parent);
        while let Some(life) = next.and_then(|id| self.get(id)) {
            found.push(life);
            if found.len() == MOST_ANCESTORS || life.image().is_some_and(|(image, _)| image.is_top) {
                break;
            }
            next = life.parent;
        }
        found
    }

    fn tidy(&mut self, now: Moment) {
        while let Some((ended, id)) = self.ended.front().copied() {
            if self.ended.len() <= MOST_ENDED && now.since(ended) <= KEPT {
                break;
            }
            self.ended.pop_front();
            // What is no longer kept cannot be ruled out as the owner of its number at the time.
            if self.dropped.len() >= MOST {
                self.dropped.clear();
                self.whole = self.whole.map(|whole| whole.max(ended));
            }
            self.dropped.insert(id.pid, ended);
            if let Some(lives) = self.by_pid.get_mut(&id.pid) {
                lives.retain(|life| life.id != id);
                if lives.is_empty() {
                    self.by_pid.remove(&id.pid);
                }
            }
        }
    }
}
