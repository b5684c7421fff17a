//! Who made the open changes, as far as anybody knows.
//!
//! Promise: the account is asked when a change is first seen, each time it becomes another one, and while nothing is known;
//! what it says is shown, journaled and reported with the certainty it has. Limit: only what can be said of a program goes
//! on from here, never what it wrote.

use platform::{Certainty, FileId, Mark, Place, Writer};

use crate::ask::By;
use crate::baseline::Change;
use crate::journal;
use crate::text::encode;

use super::machine::{self, Input};
use super::session::Session;

/// What was taken before a path was looked at: the object that had the name, and a mark.
pub(super) type Before = (Option<FileId>, Mark);

/// What is known of an open change.
#[derive(Debug)]
pub(super) struct Known {
    /// Who made it.
    writer: Option<Writer>,
    /// Taken before it was last looked at.
    before: Before,
}

impl Session {
    /// Asks who made the change of a path. `is_new` says whether the machine has not been told of it in this form.
    pub(super) fn ask_who(&mut self, place: &Place, change: &Change, is_new: bool, before: Before) {
        let known = self.writers.entry(place.clone()).or_insert(Known { writer: None, before });
        known.before = before;
        let certainty = known.writer.as_ref().map_or(Certainty::Unknown, |writer| writer.certainty);
        if !is_new && certainty > Certainty::Unknown {
            return;
        }
        let writer = self.parts.account.writer(place, change.after.id()).filter(is_somebody);
        if writer.is_some() && known.writer != writer {
            known.writer = writer;
            if !is_new {
                // It is on the screen, perhaps, without.
                self.step(Input::Named(place.clone()));
            }
        }
    }

    /// The change of a path was accepted as it was last looked at.
    pub(super) fn forget_accepted(&mut self, place: &Place, object: Option<FileId>) {
        if let Some(Known { before, .. }) = self.writers.remove(place) {
            self.tell_settled(place, object, before);
        }
    }

    fn writer_of(&self, place: &Place) -> Option<&Writer> {
        self.writers.get(place)?.writer.as_ref()
    }

    /// Which process the change of a path is by, for the machine.
    pub(super) fn is_by(&self, place: &Place) -> Option<machine::By> {
        let writer = self.writer_of(place).filter(|writer| writer.certainty > Certainty::Unknown)?;
        Some((writer.program.pid, writer.program.started))
    }

    /// What is written down of who changed a path.
    pub(super) fn told_of(&self, place: &Place) -> Option<journal::Writer> {
        self.writer_of(place).map(told)
    }

    /// The words about who made all of these changes; nothing if it is not the same for all.
    pub(super) fn by<'p>(&self, places: impl IntoIterator<Item = &'p Place>) -> Option<By> {
        let writers: Option<Vec<&Writer>> = places.into_iter().map(|place| self.writer_of(place)).collect();
        as_one(&writers?).map(|writer| words(&writer))
    }

    /// To be taken before a path is looked at.
    pub(super) fn mark(&self, place: &Place) -> Before {
        let root = self.parts.roots.get(place.root);
        let found = root.stat(&place.path).map(|stat| stat.map(|stat| stat.id));
        let object = found.as_ref().ok().copied().flatten();
        let is_closed = || match found {
            Ok(Some(_)) => {
                root.open_read(&place.path).is_ok_and(|file| platform::file::is_open_for_writing(&file) == Some(false))
            }
            Ok(None) => true,
            // What cannot be looked at is not absent.
            Err(_) => false,
        };
        (object, self.parts.account.mark(place, object, &is_closed))
    }

    /// A path that was looked at after this mark is as accepted.
    pub(super) fn settled(&mut self, place: &Place, now: Option<FileId>, before: Before) {
        self.tell_settled(place, now, before);
        if !self.machine.is_open(place) {
            self.writers.remove(place);
        }
    }

    fn tell_settled(&self, place: &Place, now: Option<FileId>, (object, mark): Before) {
        // Of another object it was not asked whether it is open.
        let before = Mark { is_closed: mark.is_closed && object == now, ..mark };
        self.parts.account.settled(place, now, before);
    }
}

/// Whether there is anything to say: a process that has no number here is none that anybody could look for.
fn is_somebody(writer: &Writer) -> bool {
    writer.program.pid != 0
}

/// The one process that all of these are, with what is known of it, as sure as the least sure of them.
fn as_one(writers: &[&Writer]) -> Option<Writer> {
    // One whose start is not known was gone before it could be looked at: it is told by its number alone.
    let best = writers.iter().max_by_key(|writer| (writer.program.started.is_some(), writer.program.exe.is_some()))?;
    let is_it = |writer: &&Writer| {
        let started = writer.program.started;
        writer.program.pid == best.program.pid && (started.is_none() || started == best.program.started)
    };
    if !writers.iter().all(is_it) {
        return None;
    }
    let certainty = writers.iter().map(|writer| writer.certainty).min()?;
    Some(Writer { certainty, ..(*best).clone() })
}

/// A writer as the journal and reports have it.
pub fn told(writer: &Writer) -> journal::Writer {
    let program = &writer.program;
    let stored = |bytes: &Vec<u8>| encode(bytes);
    let name = |bytes: &Vec<u8>| (!bytes.is_empty()).then(|| encode(bytes));
    journal::Writer {
        pid: program.pid,
        name: name(&program.name),
        exe: program.exe.as_ref().map(stored),
        argv0: program.argv0.as_ref().map(stored),
        other_mounts: program.is_elsewhere,
        ancestors: writer.ancestors.iter().map(|above| encode(&above.name)).collect(),
        user: program.uid,
        cgroup: program.cgroup.as_ref().map(stored),
        certainty: writer.certainty.name().to_owned(),
    }
}

/// A writer as a question says it.
pub fn words(writer: &Writer) -> By {
    By {
        name: writer.program.name.clone(),
        pid: writer.program.pid,
        exe: writer.program.exe.clone(),
        is_elsewhere: writer.program.is_elsewhere,
        ancestors: writer.ancestors.iter().map(|above| above.name.clone()).collect(),
        certain: writer.certainty == Certainty::Certain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::Program;

    fn program(pid: u32, name: &[u8]) -> Program {
        let exe = Some(b"/usr/bin/no\\de\xff".to_vec());
        Program { started: Some(1), name: name.to_vec(), exe, uid: Some(7), ..Program::unknown(pid) }
    }

    #[test]
    fn what_is_written_down_is_stored_names_and_how_sure_it_is() {
        let ancestors = vec![program(2, b"cla\x1bude")];
        let mut writer = Writer { program: program(4242, b"node"), ancestors, certainty: Certainty::Likely };
        let told = told(&writer);
        assert_eq!((told.pid, told.user, told.certainty.as_str()), (4242, Some(7), "likely"));
        assert_eq!(told.exe.as_deref(), Some("/usr/bin/no\\\\de\\xff"));
        assert_eq!((told.name.as_deref(), told.ancestors), (Some("node"), vec!["cla\u{1b}ude".to_owned()]));
        assert!(!words(&writer).certain);
        assert!(!told.other_mounts && !words(&writer).is_elsewhere);
        writer.program.is_elsewhere = true;
        assert!(super::told(&writer).other_mounts && words(&writer).is_elsewhere);
    }

    #[test]
    fn one_process_that_was_gone_for_some_of_its_changes_is_one_and_as_sure_as_the_least() {
        let writer = |program, certainty| Writer { program, ancestors: Vec::new(), certainty };
        let known = writer(program(4242, b"mv"), Certainty::Certain);
        let gone = Program { started: None, exe: None, ..program(4242, b"") };
        let gone = writer(gone, Certainty::Likely);
        let one = as_one(&[&gone, &known]).expect("is one");
        assert_eq!((one.program, one.certainty), (known.program.clone(), Certainty::Likely));
        let other = writer(Program { started: Some(2), ..known.program.clone() }, Certainty::Certain);
        assert_eq!(as_one(&[&known, &other, &gone]), None, "the number was given to another process");
        assert_eq!(as_one(&[&known, &writer(program(1, b"mv"), Certainty::Likely)]), None);
        assert_eq!(as_one(&[]), None);
    }
}
