//! Unlocking one path for a minute: the key, the choice on the screen, and what comes of it.
//!
//! Promise: no key of a question chooses anything, and no key of the choice answers a question; a choice that is open gives
//! way soon when a question comes. Limit: what can be chosen is what was locked when the choice came up.

use std::iter::once;

use platform::{Moment, Place};

use crate::ask::{Typed, Wanted};

use super::lines;
use super::lock::choice::{Choice, Chosen, Lockable};
use super::locking::{Locking, pen};
use super::session::Session;

impl Locking {
    /// The choice that is open, for a turn on the screen.
    fn wanted(&self, questions: usize) -> Option<Wanted> {
        let choice = self.choice.as_ref()?;
        Some(Wanted { id: choice.id, deadline: choice.deadline(questions), waiting: 0 })
    }
}

impl Session {
    /// `u`: a choice of what to unlock, once no question is open.
    pub(super) fn wants_to_unlock(&mut self) {
        let is_asked = !self.parts.console.is_free();
        let Some(lock) = &mut self.lock else { return };
        if lock.choice.is_none() && !lock.is_wanted {
            lock.is_wanted = true;
            if is_asked {
                self.say("keep watch: what to unlock can be chosen once nothing is asked any more");
            }
        }
    }

    /// Closes a choice whose time is over, and opens one that is wanted.
    pub(super) fn tend_choice(&mut self, now: Moment) {
        let questions = self.questions();
        let Some(lock) = &mut self.lock else { return };
        if lock.choice.as_ref().is_some_and(|choice| choice.deadline(questions) <= now) {
            lock.choice = None;
        }
        if !lock.is_wanted || lock.choice.is_some() || questions > 0 {
            return;
        }
        lock.is_wanted = false;
        let roots = &self.parts.roots;
        let lockable = |(place, is_folder): (&Place, bool)| Lockable {
            place: place.clone(),
            shown: roots.shown(place),
            is_folder,
        };
        let all: Vec<Lockable> = lock.locks.places().map(lockable).collect();
        if all.is_empty() {
            return self.say("keep watch: nothing is locked");
        }
        lock.choices += 1;
        lock.choice = Some(Choice::new(lock.choices, all, now));
    }

    /// How many questions there are: about changes, about opens that are held, and of a gate.
    pub(super) fn questions(&self) -> usize {
        let own = self.machine.asked().map_or(0, |(.., waiting)| waiting + 1);
        let held = self.held.wanted().map_or(0, |held| held.waiting + 1);
        own + held + usize::from(self.parts.console.gate_asks())
    }

    /// The choice, if one wants to be on the screen.
    pub(super) fn wanted_choice(&self) -> Option<Wanted> {
        self.lock.as_ref().and_then(|lock| lock.wanted(self.questions()))
    }

    /// Puts the choice on the screen.
    pub(super) fn show_choice(&mut self, waiting: usize) {
        let Some(choice) = self.lock.as_ref().and_then(|lock| lock.choice.as_ref()) else { return };
        let version = (choice.id, choice.version(), waiting);
        self.parts.console.show_choice(version, || choice.block(waiting), choice.deadline(waiting));
    }

    /// A key of the choice.
    pub(super) fn chosen(&mut self, typed: Typed) {
        let now = self.now();
        let Some(lock) = &mut self.lock else { return };
        let Some(choice) = &mut lock.choice else { return };
        match choice.key(typed, now) {
            Chosen::NotYet => {}
            Chosen::Leave => lock.choice = None,
            Chosen::This(lockable) => {
                lock.choice = None;
                self.unlock_for_a_minute(&lockable, now);
            }
        }
        self.draw();
    }

    fn unlock_for_a_minute(&mut self, Lockable { place, shown, is_folder }: &Lockable, now: Moment) {
        let Some(lock) = &mut self.lock else { return };
        // A save makes a new file and renames it: that takes the folder as well.
        let folder = place.path.parent().map(|path| Place { root: place.root, path }).filter(|_| !is_folder);
        let places: Vec<Place> =
            folder.filter(|folder| lock.locks.is_locked(folder)).into_iter().chain(once(place.clone())).collect();
        let (unlocked, failed) = lock.locks.unlock(&self.parts.roots, places, &mut pen!(self));
        if unlocked.contains(place) {
            lock.minutes.open(place.clone(), now);
            self.say(&lines::unlocked(shown));
        } else {
            self.lock_again(&unlocked);
        }
        for (place, reason) in failed {
            let shown = self.parts.roots.shown(&place);
            self.say(&lines::not_unlocked(&shown, &reason));
        }
    }
}
