//! What the core thread hears: hints, keys and signals, and what each of them starts.
//!
//! Promise: a hint only puts a path on the list of those to look at, or ends the watch; nothing is believed of it.
//! Limit: a hint this version does not know counts as a gap, after which everything is compared.

use platform::signals::Signal;
use platform::terminal::InputEvent;
use platform::{Hint, LostCause, Moment, Place, RootId};

use crate::ask::Key;
use crate::cli::exit::causes;
use crate::gate::machine::QuestionId;
use crate::gate::serve::GateKey;
use crate::journal::Event;

use super::choice::Purpose;
use super::console::Pressed;
use super::inbox::Message;
use super::lines;
use super::session::{BETWEEN_LISTINGS, End, Phase, Session};

impl Session {
    /// Takes one message.
    pub(super) fn take(&mut self, message: Message) {
        match message {
            Message::Hint(hint) => self.take_hint(hint),
            Message::Overflow => self.overflowed(),
            Message::Input(InputEvent::Bytes { bytes, at }) => match self.parts.console.key(&bytes, at) {
                Some(Pressed::Watch(key)) => self.pressed(key),
                Some(Pressed::Gate(question, key)) => self.pressed_for_gate(question, key),
                Some(Pressed::Choice(typed)) => self.chosen(typed),
                None => {}
            },
            Message::Input(InputEvent::Foreground) => self.parts.console.resume(),
            Message::Input(InputEvent::HungUp) => {
                self.parts.console.hang_up();
                self.ended_by("SIGHUP");
            }
            // An event of a later version tells nothing that could be an answer.
            Message::Input(_) => {}
            Message::Signal(signal) => self.signalled(signal),
            Message::Gate(slate) => self.parts.console.gate_says(*slate),
            Message::Held(news) => self.take_held(news),
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
                self.new_dirs.add(place);
            }
            Hint::Vanished { place, at } => {
                if place.path.is_root() {
                    return self.root_vanished(place.root);
                }
                self.new_dirs.gone(&place);
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

    /// If the root is no longer where it was, the watch ends: nothing can be put back into a void. If that cannot be told,
    /// it is said, and the next sweep tries again.
    pub(super) fn root_vanished(&mut self, id: RootId) {
        let root = self.parts.roots.get(id);
        let found = root.is_in_place();
        let path = crate::text::escaped(std::os::unix::ffi::OsStrExt::as_bytes(root.path().as_os_str()));
        match found {
            Ok(true) => {}
            Ok(false) => {
                self.end.get_or_insert(End::Broke(format!("{path} was moved or deleted")));
            }
            Err(error) => {
                let now = self.now();
                self.parts.console.line_if_new(&path, &lines::not_looked_at(&path, &causes(&error)), now);
            }
        }
    }

    /// Everything must be compared: the known paths now; the backend lists the rest again by itself.
    pub(super) fn lost(&mut self, cause: LostCause) {
        let at = self.now();
        self.parts.account.missed();
        let name = self.tally.lost(&cause);
        if let (LostCause::Unreadable(dir), Phase::Walking { .. }) = (&cause, &self.phase) {
            self.tally.note(Event::Unguarded { path: self.parts.roots.stored(dir), stamps: None });
            let id = self.parts.roots.get(dir.root).stat(&dir.path).ok().flatten().map(|stat| stat.id);
            self.closed.insert(dir.clone(), id);
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

    pub(super) fn list_again(&mut self, now: Moment) {
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
            Key::Unlock => self.wants_to_choose(Purpose::Unlock),
            Key::AskAgain => self.wants_to_choose(Purpose::AskAgain),
        }
    }

    fn pressed_for_gate(&mut self, question: QuestionId, key: GateKey) {
        match (key, &self.guest) {
            (GateKey::Details, _) => self.parts.console.gate_details(),
            (key, Some(guest)) => guest.press(question, key),
            (_, None) => {}
        }
    }
}
