//! What the guardian tells of opens it answered in the place of a stopped watch: packets, and the book they are taken from.
//!
//! Promise: every open it answered so is told once, by itself or in a count; the book is bounded, whoever opens how often.
//! Any bytes are taken; what is no note is none. Limit: of an open that the watch had read only its descriptor's number is
//! known, which says to the watch which one it was.

use std::collections::BTreeMap;

use crate::clock::Moment;
use crate::stat::FileId;

/// The longest note in bytes.
pub const LONGEST: usize = 4096;
/// Rows in the book for what was refused, and as many for what was let through; what comes beyond them is counted.
const MOST_ROWS: usize = 1024;

const NUMBER: usize = 4;
const ROW: usize = 8 + 8 + 4 + 4 + 8 + 1;
const HEAD: usize = 1;

/// Opens of one object by one process that were answered while the watch was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relieved {
    /// The object.
    pub object: FileId,
    /// The process's number.
    pub pid: u32,
    /// How many.
    pub opens: u32,
    /// When it was the last time.
    pub at: Moment,
    /// Whether they went through, as they were for reading only.
    pub is_let: bool,
}

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// What the watch had read under these numbers was answered.
    Settled(Vec<i32>),
    /// What nobody had read was answered.
    Relieved(Vec<Relieved>),
    /// So many opens more were refused, and so many let through.
    More {
        /// Refused.
        refused: u64,
        /// Let through.
        let_through: u64,
    },
}

impl Note {
    /// As a packet.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Note::Settled(numbers) => {
                [b's'].into_iter().chain(numbers.iter().flat_map(|number| number.to_ne_bytes())).collect()
            }
            Note::Relieved(rows) => {
                let mut packet = vec![b'r'];
                for Relieved { object, pid, opens, at, is_let } in rows {
                    packet.extend(object.dev.to_ne_bytes());
                    packet.extend(object.ino.to_ne_bytes());
                    packet.extend(pid.to_ne_bytes());
                    packet.extend(opens.to_ne_bytes());
                    packet.extend(at.as_nanos().to_ne_bytes());
                    packet.push(u8::from(*is_let));
                }
                packet
            }
            Note::More { refused, let_through } => {
                [b'm'].into_iter().chain(refused.to_ne_bytes()).chain(let_through.to_ne_bytes()).collect()
            }
        }
    }

    /// From a packet.
    pub fn decode(packet: &[u8]) -> Option<Self> {
        let (&kind, rest) = packet.split_first()?;
        match kind {
            b's' => {
                let (numbers, []) = rest.as_chunks::<NUMBER>() else { return None };
                Some(Note::Settled(numbers.iter().map(|number| i32::from_ne_bytes(*number)).collect()))
            }
            b'r' => {
                let (rows, []) = rest.as_chunks::<ROW>() else { return None };
                Some(Note::Relieved(rows.iter().map(row).collect::<Option<_>>()?))
            }
            b'm' => {
                let ([refused, let_through], []) = rest.as_chunks() else { return None };
                Some(Note::More {
                    refused: u64::from_ne_bytes(*refused),
                    let_through: u64::from_ne_bytes(*let_through),
                })
            }
            _ => None,
        }
    }
}

fn row(bytes: &[u8; ROW]) -> Option<Relieved> {
    let (dev, rest) = bytes.split_first_chunk()?;
    let (ino, rest) = rest.split_first_chunk()?;
    let (pid, rest) = rest.split_first_chunk()?;
    let (opens, rest) = rest.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    Some(Relieved {
        object: FileId { dev: u64::from_ne_bytes(*dev), ino: u64::from_ne_bytes(*ino) },
        pid: u32::from_ne_bytes(*pid),
        opens: u32::from_ne_bytes(*opens),
        at: Moment::from_nanos(u64::from_ne_bytes(*at)),
        is_let: rest != [0],
    })
}

/// What is not told yet.
#[derive(Debug, Default)]
pub struct Book {
    settled: Vec<i32>,
    refused: Rows,
    let_through: Rows,
}

/// Answers of one kind.
#[derive(Debug, Default)]
struct Rows {
    rows: BTreeMap<(FileId, u32), (u32, Moment)>,
    more: u64,
}

impl Rows {
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.more == 0
    }

    fn note(&mut self, object: FileId, pid: u32, at: Moment) {
        let is_full = self.rows.len() >= MOST_ROWS;
        match self.rows.get_mut(&(object, pid)) {
            Some((opens, last)) => (*opens, *last) = (opens.saturating_add(1), at),
            None if is_full => self.more += 1,
            None => {
                self.rows.insert((object, pid), (1, at));
            }
        }
    }

    /// `false`: something was not taken.
    fn tell(&mut self, is_let: bool, send: &mut impl FnMut(&[u8]) -> bool) -> bool {
        while !self.rows.is_empty() {
            let some = self.rows.iter().take((LONGEST - HEAD) / ROW);
            let rows: Vec<Relieved> =
                some.map(|(&(object, pid), &(opens, at))| Relieved { object, pid, opens, at, is_let }).collect();
            if !send(&Note::Relieved(rows.clone()).encode()) {
                return false;
            }
            for Relieved { object, pid, .. } in rows {
                self.rows.remove(&(object, pid));
            }
        }
        true
    }
}

impl Book {
    /// Whether all is told.
    pub fn is_empty(&self) -> bool {
        self.settled.is_empty() && self.refused.is_empty() && self.let_through.is_empty()
    }

    /// What the watch had read under this number is answered. There are no more of these than the watch has descriptors.
    pub fn settled(&mut self, number: i32) {
        self.settled.push(number);
    }

    /// An open that nobody had read is answered.
    pub fn relieved(&mut self, object: FileId, pid: u32, is_let: bool, at: Moment) {
        let rows = if is_let { &mut self.let_through } else { &mut self.refused };
        rows.note(object, pid, at);
    }

    /// Tells what `send` takes; the rest stays for later.
    pub fn tell(&mut self, mut send: impl FnMut(&[u8]) -> bool) {
        while !self.settled.is_empty() {
            let count = self.settled.len().min((LONGEST - HEAD) / NUMBER);
            if !send(&Note::Settled(self.settled[..count].to_vec()).encode()) {
                return;
            }
            self.settled.drain(..count);
        }
        if !self.refused.tell(false, &mut send) || !self.let_through.tell(true, &mut send) {
            return;
        }
        let (refused, let_through) = (self.refused.more, self.let_through.more);
        if refused + let_through > 0 && send(&Note::More { refused, let_through }.encode()) {
            (self.refused.more, self.let_through.more) = (0, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn object(ino: u64) -> FileId {
        FileId { dev: 7, ino }
    }

    /// What is told until `room` packets were sent.
    fn told(book: &mut Book, room: usize) -> Vec<Note> {
        let mut notes = Vec::new();
        book.tell(|packet| {
            assert!(packet.len() <= LONGEST);
            let takes = notes.len() < room;
            if takes {
                notes.push(Note::decode(packet).expect("it is one"));
            }
            takes
        });
        notes
    }

    #[test]
    fn every_note_comes_out_as_it_went_in() {
        let row = Relieved { object: object(9), pid: 4242, opens: 3, at: Moment::from_nanos(5), is_let: false };
        let rows = vec![row, Relieved { is_let: true, ..row }];
        let more = Note::More { refused: u64::MAX, let_through: 7 };
        for note in [Note::Settled(vec![7, -1]), Note::Relieved(rows), more] {
            assert_eq!(Note::decode(&note.encode()), Some(note));
        }
    }

    #[test]
    fn repeats_are_one_row_with_a_count_and_the_last_time() {
        let mut book = Book::default();
        for at in [1, 2, 3] {
            book.relieved(object(9), 4242, false, Moment::from_nanos(at));
        }
        book.relieved(object(9), 4242, true, Moment::from_nanos(4));
        let row = Relieved { object: object(9), pid: 4242, opens: 3, at: Moment::from_nanos(3), is_let: false };
        let other = Relieved { opens: 1, at: Moment::from_nanos(4), is_let: true, ..row };
        assert_eq!(told(&mut book, 9), [Note::Relieved(vec![row]), Note::Relieved(vec![other])]);
        assert!(book.is_empty());
    }

    #[test]
    fn what_is_not_taken_is_told_later_and_what_has_no_room_is_counted() {
        let mut book = Book::default();
        (0..3000).for_each(|number| book.settled(number));
        // Whoever reads often takes no room of what is refused.
        (0..MOST_ROWS as u64 + 20).for_each(|ino| book.relieved(object(ino), 1, true, Moment::default()));
        (0..MOST_ROWS as u64 + 10).for_each(|ino| book.relieved(object(ino), 1, false, Moment::default()));
        let mut notes = told(&mut book, 2);
        assert_eq!(notes.len(), 2);
        assert!(!book.is_empty());
        notes.extend(told(&mut book, usize::MAX));
        assert!(book.is_empty());
        let numbers: Vec<i32> = notes
            .iter()
            .filter_map(|note| if let Note::Settled(some) = note { Some(some) } else { None })
            .flatten()
            .copied()
            .collect();
        assert_eq!(numbers, (0..3000).collect::<Vec<_>>());
        let rows = notes.iter().map(|note| if let Note::Relieved(rows) = note { rows.len() } else { 0 }).sum::<usize>();
        assert_eq!(rows, 2 * MOST_ROWS);
        assert_eq!(notes.last(), Some(&Note::More { refused: 10, let_through: 20 }));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(packet in proptest::collection::vec(any::<u8>(), 0..80)) {
            Note::decode(&packet);
        }
    }
}
