//! Flags that an earlier run left on files, taken off by a later one.
//!
//! Promise: only objects that the journal names, by identity. Limit: the journal is the user's, who can write into it what
//! never was; so a flag somebody else set on a file of the user's, in the root, can be taken off by that. Without privilege
//! nothing is taken off; it is named, and the flag is no change of the file.

use std::collections::{BTreeMap, BTreeSet};

use platform::{FileId, Flags};

use super::Pen;
use super::objects::{Hands, Held, Released, gone_words, release};
use crate::journal::Object;
use crate::roots::Roots;
use crate::text::{decode, escaped};

/// Names in one line.
const NAMED: usize = 10;

/// What came of it.
#[derive(Debug, Default)]
pub struct Left {
    /// Unlocked, by stored name.
    pub off: Vec<String>,
    /// Nowhere below the roots any more, and what is known of each.
    pub missing: Vec<(String, String)>,
    /// Still immutable, and why.
    pub still: Vec<(String, String)>,
    /// The objects that are.
    pub objects: BTreeSet<FileId>,
}

/// Takes off what the journal says was left; without `flags`, finds out what is.
pub fn take_off(
    flags: Option<&dyn Flags>,
    roots: &Roots,
    flagged: &BTreeMap<Object, String>,
    pen: &mut dyn Pen,
) -> Left {
    let objects = flagged.iter().map(|(object, stored)| Held::of_journal(roots, *object, stored)).collect();
    let hands = flags.map_or(Hands::None, Hands::Earlier);
    let Released { off, missing, left } = release(hands, roots, objects, pen);
    Left {
        off: off.into_iter().map(|held| held.stored).collect(),
        missing: missing.into_iter().map(|held| (held.stored, gone_words(&held.object))).collect(),
        objects: left.iter().map(|left| left.held.object.id()).collect(),
        still: left.into_iter().map(|left| (left.held.stored, left.reason)).collect(),
    }
}

impl Left {
    /// Adds what came of trying again with what was left.
    pub fn go_on(&mut self, next: Self) {
        self.off.extend(next.off);
        self.missing.extend(next.missing);
        (self.still, self.objects) = (next.still, next.objects);
    }

    /// What a person is told of it, a line each.
    pub fn lines(&self, command: &str) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.off.is_empty() {
            let names = list(self.off.iter());
            lines.push(format!("{command}: unlocked what the last run had left locked: {names}"));
        }
        for (stored, why) in self.missing.iter().take(NAMED) {
            lines.push(format!("{command}: {} was left locked and is not there any more: {why}", shown(stored)));
        }
        if let Some((_, why)) = self.still.first() {
            let names = list(self.still.iter().map(|(stored, _)| stored));
            lines.push(format!(
                "{command}: warning: still locked since the last run: {names} ({why}); sudo keep recover unlocks"
            ));
        }
        lines
    }
}

fn list<'s>(stored: impl ExactSizeIterator<Item = &'s String>) -> String {
    let more = stored.len().saturating_sub(NAMED);
    let mut names: Vec<String> = stored.take(NAMED).map(|stored| shown(stored)).collect();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

fn shown(stored: &str) -> String {
    decode(stored).map_or_else(|| escaped(stored.as_bytes()), |bytes| escaped(&bytes))
}
