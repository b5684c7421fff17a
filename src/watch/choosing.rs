//! Choosing a path with the keyboard: the keys that begin it, the list on the screen, and what comes of it.
//!
//! Promise: no key of a question chooses anything, and no key of the list answers a question; a list that is open gives way
//! soon when a question comes. Limit: what can be chosen is what there was when the list came up.

use std::collections::BTreeSet;
use std::iter::once;

use platform::{Moment, Place};

use crate::ask::{Typed, Wanted};
use crate::journal::Event;

use super::choice::{Candidate, Choice, Chosen, Purpose};
use super::locking::pen;
use super::session::Session;
use super::{hold, lines, machine};

/// The list that is open, or wanted.
#[derive(Debug, Default)]
pub(super) struct Choosing {
    open: Option<Choice>,
    /// How many there were.
    count: u64,
    wanted: Option<Purpose>,
}

impl Session {
    /// A key that begins a choice: it comes up once no question is open.
    pub(super) fn wants_to_choose(&mut self, purpose: Purpose) {
        let is_asked = !self.parts.console.is_free();
        if purpose == Purpose::Unlock && self.lock.is_none() {
            return;
        }
        if self.choosing.open.is_none() && self.choosing.wanted.is_none() {
            self.choosing.wanted = Some(purpose);
            if is_asked {
                self.say(match purpose {
                    Purpose::Unlock => "keep watch: what to unlock can be chosen once nothing is asked any more",
                    Purpose::AskAgain => "keep watch: a contested path can be chosen once nothing is asked any more",
                });
            }
        }
    }

    /// Closes a choice whose time is over, and opens one that is wanted.
    pub(super) fn tend_choice(&mut self) {
        let (now, questions) = (self.now(), self.questions());
        if self.choosing.open.as_ref().is_some_and(|choice| choice.deadline(questions) <= now) {
            self.choosing.open = None;
        }
        if self.choosing.open.is_some() || questions > 0 {
            return;
        }
        let Some(purpose) = self.choosing.wanted.take() else { return };
        let all = self.candidates(purpose);
        if all.is_empty() {
            return self.say(match purpose {
                Purpose::Unlock => "keep watch: nothing is locked",
                Purpose::AskAgain => "keep watch: nothing is contested",
            });
        }
        self.choosing.count += 1;
        self.choosing.open = Some(Choice::new(self.choosing.count, purpose, all, now));
    }

    fn candidates(&self, purpose: Purpose) -> Vec<Candidate> {
        let roots = &self.parts.roots;
        let candidate =
            |place: &Place, is_folder| Candidate { place: place.clone(), shown: roots.shown(place), is_folder };
        match purpose {
            Purpose::Unlock => {
                let locked = self.lock.iter().flat_map(|lock| lock.locks.places());
                locked.map(|(place, is_folder)| candidate(place, is_folder)).collect()
            }
            Purpose::AskAgain => self.contested().into_iter().map(|place| candidate(place, false)).collect(),
        }
    }

    /// The paths about which nobody is asked any more: changes of them, or opens.
    pub(super) fn contested(&self) -> BTreeSet<&Place> {
        self.machine.contested().chain(self.held.contested()).collect()
    }

    /// How many questions there are: about changes, about opens that are held, and of a gate.
    pub(super) fn questions(&self) -> usize {
        let own = self.machine.asked().map_or(0, |(.., waiting)| waiting + 1);
        let held = self.held.wanted().map_or(0, |held| held.waiting + 1);
        own + held + usize::from(self.parts.console.gate_asks())
    }

    /// The choice, if one wants to be on the screen.
    pub(super) fn wanted_choice(&self) -> Option<Wanted> {
        let choice = self.choosing.open.as_ref()?;
        Some(Wanted { id: choice.id, deadline: choice.deadline(self.questions()), waiting: 0 })
    }

    /// When the choice closes by itself.
    pub(super) fn choice_wake_at(&self) -> Option<Moment> {
        self.choosing.open.as_ref().map(|choice| choice.deadline(self.questions()))
    }

    /// Puts the choice on the screen.
    pub(super) fn show_choice(&mut self, waiting: usize) {
        let Some(choice) = &self.choosing.open else { return };
        let version = (choice.id, choice.version(), waiting);
        self.parts.console.show_choice(version, || choice.block(waiting), choice.deadline(waiting));
    }

    /// A key of the choice.
    pub(super) fn chosen(&mut self, typed: Typed) {
        let now = self.now();
        let Some(choice) = &mut self.choosing.open else { return };
        let purpose = choice.purpose;
        match choice.key(typed, now) {
            Chosen::NotYet => {}
            Chosen::Leave => self.choosing.open = None,
            Chosen::This(candidate) => {
                self.choosing.open = None;
                match purpose {
                    Purpose::Unlock => self.unlock_for_a_minute(&candidate, now),
                    Purpose::AskAgain => self.ask_again_about(&candidate),
                }
            }
        }
        self.draw();
    }

    /// Takes back that a path is contested, for changes and for opens.
    fn ask_again_about(&mut self, Candidate { place, shown, .. }: &Candidate) {
        self.step(machine::Input::AskAgain(place.clone()));
        self.step_held(hold::Input::AskAgain(place.clone()));
        self.tally.note(Event::Uncontested { path: self.parts.roots.stored(place) });
        self.log("uncontested", place, &[]);
        self.say(&lines::asked_again(shown));
    }

    fn unlock_for_a_minute(&mut self, Candidate { place, shown, is_folder }: &Candidate, now: Moment) {
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
