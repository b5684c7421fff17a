//! From the machine's question to the words on the screen.

use crate::ask::{self, Item, Turn, Wanted, attributes, shown_digest};
use crate::baseline::Content;
use crate::difference::{self, Format};

use super::console::{Asker, Picture, Words};
use super::question::Question;
use super::session::Session;

/// Differences are shown for so many members with `d`.
const DETAILED: usize = 8;
/// Bytes of a file that is compared for showing.
const SHOWN_BYTES: u64 = 64 * 1024;

impl Session {
    /// Puts the question whose turn it is on the screen, ours or the gate's, or takes it off.
    pub(super) fn draw(&mut self) {
        self.parts.console.tick();
        let asked = self.machine.asked();
        let wanted =
            asked.and_then(|(id, _, waiting)| Some(Wanted { id, deadline: self.machine.next_deadline()?, waiting }));
        let held = self.held.wanted();
        let turn = self.parts.console.turn(wanted, held, self.wanted_choice());
        let (id, version, waiting) = match (turn, asked) {
            (Some(Turn { asker: Asker::Watch, waiting, .. }), Some((id, version, _))) => (id, version, waiting),
            (Some(Turn { asker: Asker::Gate, waiting, .. }), _) => return self.parts.console.show_gate(waiting),
            (Some(Turn { asker: Asker::Hold, waiting, .. }), _) => return self.draw_held(waiting),
            (Some(Turn { asker: Asker::Choice, waiting, .. }), _) => return self.show_choice(waiting),
            _ => {
                if !self.parts.console.is_free() {
                    self.parts.console.clear();
                }
                return;
            }
        };
        let asker = Asker::Watch;
        if self.parts.console.shows(asker, id, version, waiting) || self.parts.console.puts_off(asker, id) {
            return;
        }
        let question = self.machine.question().expect("it has an id");
        let picture = self.picture(&question, waiting);
        self.show(picture);
    }

    /// Draws a question of ours, and tells the desktop of a new one.
    pub(super) fn show(&mut self, picture: Picture) {
        let notification = picture.words.notification();
        if self.parts.console.show(picture)
            && let Some(notifier) = &self.parts.notifier
        {
            notifier.notify(notification);
        }
    }

    /// `d`: more of what changed.
    pub(super) fn show_details(&mut self) {
        self.parts.console.details();
    }

    fn picture(&self, question: &Question<'_>, waiting: usize) -> Picture {
        let items: Vec<Item> = question
            .members
            .iter()
            .map(|member| Item {
                path: self.parts.roots.shown(member.place),
                rule: member.class.rule,
                kind: member.change.kind,
                digest: shown_digest(member.change),
            })
            .collect();
        let mut lines = Vec::new();
        let mut details = Vec::new();
        for (member, item) in question.members.iter().zip(&items).take(DETAILED) {
            // Whoever accepts the content accepts these, too.
            let mut shown = match self.baseline.get(member.place) {
                Some(row) => attributes(&row.snapshot, &member.change.after),
                None => Vec::new(),
            };
            let mut more = shown.clone();
            if let Some(found) = self.difference(member) {
                shown.extend(found.lines);
                more.extend(found.details);
            }
            if question.members.len() == 1 {
                lines = shown;
            }
            if !more.is_empty() {
                details.push(format!("  {}:", item.path));
            }
            details.extend(more.into_iter().map(|line| format!("  {line}")));
        }
        if details.is_empty() {
            details.push("  nothing more can be shown".to_owned());
        }
        Picture {
            asker: Asker::Watch,
            id: question.id,
            version: question.version,
            deadline: question.deadline,
            waiting,
            members: question.members.iter().map(|member| member.place.clone()).collect(),
            words: Words::Change(ask::Question {
                items,
                by: self.by(question.members.iter().map(|member| member.place)),
                difference: lines,
                waiting,
            }),
            details,
        }
    }

    fn difference(&self, member: &super::question::Member<'_>) -> Option<difference::Difference> {
        let before = match self.baseline.get(member.place).map(|row| &row.snapshot.content) {
            Some(Content::Regular { digest, size }) if *size <= SHOWN_BYTES => {
                Some(self.parts.objects.read(*digest, SHOWN_BYTES).ok()?)
            }
            Some(Content::Regular { .. }) => return None,
            _ => None,
        };
        let after = match &member.change.after.content {
            Content::Regular { .. } => Some(self.after_bytes.get(member.place)?.as_slice()),
            _ => None,
        };
        if before.is_none() && after.is_none() {
            return None;
        }
        let format = Format::of(member.place.path.as_bytes(), member.class.rule);
        Some(difference::difference(format, before.as_deref(), after))
    }
}
