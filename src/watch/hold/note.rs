//! What the thread that reads opens leaves for the core thread.
//!
//! Promise: nothing held is lost. What waits is bounded: where more are held at once than there is room for, only their
//! numbers are kept, to be refused; and one whose opener goes away before it was taken out takes no more room than it had.

use std::collections::VecDeque;

use platform::guardian::note::TurnedAway;
use platform::{HeldId, Opening};

/// Opens that wait with all that is known of them; a person answers fewer.
const MOST: usize = 4096;

/// One piece of news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// It is held.
    Held(HeldId, Box<Opening>),
    /// Its opener is gone.
    Gone(HeldId),
    /// Its program was looked at: whether the person trusts it with this.
    Vetted(HeldId, bool),
    /// The guardian refused it while we were stopped.
    Relieved(HeldId),
    /// It refused these, which nobody had read.
    Away(Away),
    /// There was no room for these.
    Crowd(Box<Crowd>),
    /// Those who read opens are in trouble.
    Trouble(Trouble),
}

/// What can become of reading opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// There is no room for more: those that would be held are refused.
    Crowded,
    /// They are not read any more: nothing is held.
    Broken,
    /// The guardian is gone: while the watch runs it holds on, and nobody answers in its place.
    Alone,
}

/// What the guardian refused while we were stopped, and nobody had read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Away {
    /// By object and process.
    pub rows: Vec<TurnedAway>,
    /// How many more, of which nothing is known.
    pub more: u64,
}

impl Away {
    /// Takes in what it told later.
    fn add(&mut self, later: Away) {
        for row in later.rows {
            let is_same = |known: &&mut TurnedAway| (known.object, known.pid) == (row.object, row.pid);
            let has_room = self.rows.len() < MOST;
            match self.rows.iter_mut().find(is_same) {
                Some(known) => (known.opens, known.at) = (known.opens.saturating_add(row.opens), row.at),
                None if has_room => self.rows.push(row),
                None => self.more += u64::from(row.opens),
            }
        }
        self.more = self.more.saturating_add(later.more);
    }
}

/// Opens for which there was no room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crowd {
    /// Their numbers; never empty.
    pub ids: Vec<HeldId>,
    /// The first of them.
    pub one: Opening,
}

/// News in the order in which they came; see the module.
#[derive(Debug, Default)]
pub struct Notes {
    news: VecDeque<News>,
    /// How many of them are held opens.
    held: usize,
    away: Option<Away>,
    crowd: Option<Box<Crowd>>,
}

impl Notes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.news.is_empty() && self.away.is_none() && self.crowd.is_none()
    }

    /// An open is held.
    pub fn held(&mut self, id: HeldId, opening: Opening) {
        if self.held < MOST {
            self.held += 1;
            self.news.push_back(News::Held(id, Box::new(opening)));
            return;
        }
        self.crowd.get_or_insert_with(|| Box::new(Crowd { ids: Vec::new(), one: opening })).ids.push(id);
    }

    /// The opener of a held open is gone.
    pub fn gone(&mut self, id: HeldId) {
        if let Some(crowd) = &mut self.crowd
            && let Ok(at) = crowd.ids.binary_search(&id)
        {
            crowd.ids.remove(at);
            if crowd.ids.is_empty() {
                self.crowd = None;
            }
            return;
        }
        self.news.push_back(News::Gone(id));
    }

    /// The guardian has answered a held open. One for which there is no room is refused anyway, and counted there.
    pub fn relieved(&mut self, id: HeldId) {
        let is_crowded = self.crowd.as_ref().is_some_and(|crowd| crowd.ids.binary_search(&id).is_ok());
        if !is_crowded {
            self.news.push_back(News::Relieved(id));
        }
    }

    /// The guardian has refused what nobody had read.
    pub fn away(&mut self, away: Away) {
        self.away.get_or_insert_default().add(away);
    }

    /// A program was looked at.
    pub fn vetted(&mut self, id: HeldId, trusted: bool) {
        self.news.push_back(News::Vetted(id, trusted));
    }

    /// Those who read opens are in trouble. Said once while it waits.
    pub fn trouble(&mut self, trouble: Trouble) {
        if !self.news.contains(&News::Trouble(trouble)) {
            self.news.push_back(News::Trouble(trouble));
        }
    }

    /// Takes all out.
    pub fn take(&mut self) -> impl Iterator<Item = News> + use<> {
        self.held = 0;
        let (away, crowd) = (self.away.take().map(News::Away), self.crowd.take().map(News::Crowd));
        std::mem::take(&mut self.news).into_iter().chain(away).chain(crowd)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{node, opening};
    use super::*;

    #[test]
    fn however_many_are_held_at_once_what_waits_is_bounded_and_none_is_lost() {
        let mut notes = Notes::default();
        let many = MOST as u64 + 1000;
        (0..many).for_each(|id| notes.held(HeldId(id), opening(1, node(1))));
        let news: Vec<News> = notes.take().collect();
        let crowded = match news.last() {
            Some(News::Crowd(crowd)) => crowd.ids.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!((news.len() - 1, crowded), (MOST, 1000));
        assert!(notes.is_empty());
    }

    #[test]
    fn what_was_refused_meanwhile_is_one_row_for_each_object_and_process_and_bounded() {
        let row = |pid, opens, at| TurnedAway {
            object: platform::FileId { dev: 1, ino: 2 },
            pid,
            opens,
            at: platform::Moment::from_nanos(at),
        };
        let mut notes = Notes::default();
        notes.away(Away { rows: vec![row(7, 1, 10), row(8, 1, 11)], more: 0 });
        notes.away(Away { rows: vec![row(7, 2, 12)], more: 5 });
        notes.away(Away { rows: (100..100 + MOST as u32).map(|pid| row(pid, 1, 13)).collect(), more: 0 });
        let Some(News::Away(Away { rows, more })) = notes.take().next() else { panic!("nothing is told") };
        assert_eq!(rows[..2], [row(7, 3, 12), row(8, 1, 11)]);
        assert_eq!((rows.len(), more), (MOST, 5 + 2));
        assert!(notes.is_empty());
    }

    #[test]
    fn a_crowd_whose_openers_are_gone_is_none() {
        let mut notes = Notes::default();
        (0..MOST as u64 + 3).for_each(|id| notes.held(HeldId(id), opening(1, node(1))));
        (0..MOST as u64 + 3).for_each(|id| notes.gone(HeldId(id)));
        let news: Vec<News> = notes.take().collect();
        assert_eq!(news.len(), 2 * MOST);
        assert!(!news.iter().any(|news| matches!(news, News::Crowd(_))));
    }
}
