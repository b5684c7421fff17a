//! From the machine's question about held opens to the words on the screen.

use crate::ask::Wanted;
use crate::watch::console::{Asker, Picture, Words};
use crate::watch::session::Session;

use super::{Asking, Machine};

impl Machine {
    /// What is to be on the screen next.
    pub(in crate::watch) fn wanted(&self) -> Option<Wanted> {
        self.asked().map(|(id, _, deadline, waiting)| Wanted { id, deadline, waiting })
    }
}

impl Session {
    /// Puts the question about held opens on the screen.
    pub(in crate::watch) fn draw_held(&mut self, waiting: usize) {
        let Some(question) = self.held.question() else { return };
        let (asker, id, version) = (Asker::Hold, question.id, question.version);
        if self.parts.console.shows(asker, id, version, waiting) || self.parts.console.puts_off(asker, id) {
            return;
        }
        let shown = |item: &super::Item<'_>| (self.parts.roots.shown(item.place), item.class.rule);
        let words = Asking {
            items: question.items.iter().map(shown).collect(),
            access: question.access,
            by: question.by.clone(),
            several: question.several,
            waiting,
        };
        let deadline = question.deadline;
        let details = words.details();
        self.show(Picture {
            asker,
            id,
            version,
            deadline,
            waiting,
            members: Vec::new(),
            words: Words::Open(words),
            details,
        });
    }
}
