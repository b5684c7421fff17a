//! Marks, and the queues of events about what is marked.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::dir::Dir;
use crate::stat::FileType;

use super::super::{Event, Extra, MarkError, Marks, Reading, Seat};

/// An event that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Entry { dir: u64, name: Vec<u8>, is_dir: bool, left: bool },
    Own(u64),
    Attributes(u64),
    Unmarked(u64),
    Overflow,
}

/// Marks by inode number. A mark has a number that is never given again, as inotify's watches have.
#[derive(Default)]
pub struct Kernel {
    pub marks: BTreeMap<u64, u64>,
    next: u64,
    pub queues: [VecDeque<Told>; 2],
    /// Whether events are dropped now.
    pub dropping: bool,
}

pub type Shared = Arc<Mutex<Kernel>>;

pub fn lock(kernel: &Shared) -> MutexGuard<'_, Kernel> {
    kernel.lock().expect("no panic while it is held")
}

impl Kernel {
    fn mark(&mut self, inode: u64, key: &mut Vec<u8>) {
        let next = &mut self.next;
        let mark = *self.marks.entry(inode).or_insert_with(|| {
            *next += 1;
            *next
        });
        *key = mark.to_ne_bytes().to_vec();
    }

    pub fn tell(&mut self, queue: usize, told: Told) {
        if self.dropping {
            if self.queues[queue].back() != Some(&Told::Overflow) {
                self.queues[queue].push_back(Told::Overflow);
            }
            return;
        }
        // An event about the same thing that was not read yet takes it in.
        if let Told::Entry { dir, name, is_dir, left } = &told {
            let same = |known: &&mut Told| matches!(known, Told::Entry { dir: d, name: n, is_dir: i, .. } if d == dir && n == name && i == is_dir);
            if let Some(Told::Entry { left: known, .. }) = self.queues[queue].iter_mut().find(same) {
                *known |= left;
                return;
            }
        }
        self.queues[queue].push_back(told);
    }

    /// A name came or went, or what has it changed.
    pub fn entry(&mut self, dir: u64, name: &str, is_dir: bool, left: bool) {
        if let Some(&mark) = self.marks.get(&dir) {
            self.tell(1, Told::Entry { dir: mark, name: name.as_bytes().to_vec(), is_dir, left });
        }
    }

    /// Something happened to the object itself; directories tell of themselves in the queue of names.
    pub fn own(&mut self, inode: u64, is_dir: bool) {
        if let Some(&mark) = self.marks.get(&inode) {
            self.tell(usize::from(is_dir), Told::Own(mark));
        }
    }

    pub fn gone(&mut self, inode: u64, is_dir: bool) {
        self.own(inode, is_dir);
        if let Some(mark) = self.marks.remove(&inode) {
            self.tell(usize::from(is_dir), Told::Unmarked(mark));
        }
    }
}

pub struct Simulated(pub Shared);

impl Marks for Simulated {
    fn mark_dir(&mut self, dir: &Dir, _extra: Extra, _seat: Seat<'_>, key: &mut Vec<u8>) -> Result<(), MarkError> {
        lock(&self.0).mark(dir.own_stat().map_err(|error| error.source)?.id.ino, key);
        Ok(())
    }

    fn is(&mut self, dir: &Dir, _extra: Extra, key: &[u8]) -> bool {
        let inode = dir.own_stat().expect("an open directory").id.ino;
        lock(&self.0).marks.get(&inode).is_some_and(|mark| mark.to_ne_bytes() == key)
    }

    fn mark_entry(&mut self, dir: &Dir, name: &[u8], _type: FileType, key: &mut Vec<u8>) -> Result<(), MarkError> {
        let stat = dir.stat(name).map_err(|error| error.source)?.ok_or(MarkError::Gone)?;
        lock(&self.0).mark(stat.id.ino, key);
        Ok(())
    }

    fn unmark(&mut self, key: &[u8]) {
        lock(&self.0).marks.retain(|_, mark| mark.to_ne_bytes() != key);
    }

    fn queues(&self) -> [BorrowedFd<'_>; 2] {
        unreachable!("no thread waits")
    }

    fn read(&mut self, queue: usize, see: &mut dyn FnMut(Event<'_>) -> bool) -> io::Result<Reading> {
        let events = std::mem::take(&mut lock(&self.0).queues[queue]);
        for told in &events {
            match told {
                Told::Entry { dir, name, is_dir, left } => {
                    let (is_dir, left) = (*is_dir, *left);
                    see(Event::Entry { dir: &dir.to_ne_bytes(), name, is_dir, left, moved: false, pid: 0 })
                }
                Told::Own(mark) => see(Event::Own { key: &mark.to_ne_bytes(), pid: 0 }),
                Told::Attributes(mark) => see(Event::Attributes(&mark.to_ne_bytes())),
                Told::Unmarked(mark) => see(Event::Unmarked(&mark.to_ne_bytes())),
                Told::Overflow => see(Event::Overflow),
            };
        }
        Ok(Reading { events: events.len(), drained: true })
    }
}
