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
/// Rows in the book; what is refused beyond them is counted.
const MOST_ROWS: usize = 1024;

const NUMBER: usize = 4;
const ROW: usize = 8 + 8 + 4 + 4 + 8;
const HEAD: usize = 1;

/// Opens of one object by one process that were refused while the watch was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnedAway {
    /// The object.
    pub object: FileId,
    /// The process's number.
    pub pid: u32,
    /// How many.
    pub opens: u32,
    /// When it was the last time.
    pub at: Moment,
}

/// One packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// What the watch had read under these numbers was answered.
    Settled(Vec<i32>),
    /// What nobody had read was refused.
    TurnedAway(Vec<TurnedAway>),
    /// So many opens more were refused.
    More(u64),
}

impl Note {
    /// As a packet.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Note::Settled(numbers) => {
                [b's'].into_iter().chain(numbers.iter().flat_map(|number| number.to_ne_bytes())).collect()
            }
            Note::TurnedAway(rows) => {
                let mut packet = vec![b'r'];
                for TurnedAway { object, pid, opens, at } in rows {
                    packet.extend(object.dev.to_ne_bytes());
                    packet.extend(object.ino.to_ne_bytes());
                    packet.extend(pid.to_ne_bytes());
                    packet.extend(opens.to_ne_bytes());
                    packet.extend(at.as_nanos().to_ne_bytes());
                }
                packet
            }
            Note::More(opens) => [b'm'].into_iter().chain(opens.to_ne_bytes()).collect(),
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
                Some(Note::TurnedAway(rows.iter().map(row).collect::<Option<_>>()?))
            }
            b'm' => Some(Note::More(u64::from_ne_bytes(rest.try_into().ok()?))),
            _ => None,
        }
    }
}

fn row(bytes: &[u8; ROW]) -> Option<TurnedAway> {
    let (dev, rest) = bytes.split_first_chunk()?;
    let (ino, rest) = rest.split_first_chunk()?;
    let (pid, rest) = rest.split_first_chunk()?;
    let (opens, rest) = rest.split_first_chunk()?;
    let (at, _) = rest.split_first_chunk()?;
    Some(TurnedAway {
        object: FileId { dev: u64::from_ne_bytes(*dev), ino: u64::from_ne_bytes(*ino) },
        pid: u32::from_ne_bytes(*pid),
        opens: u32::from_ne_bytes(*opens),
        at: Moment::from_nanos(u64::from_ne_bytes(*at)),
    })
}

/// What is not told yet.
#[derive(Debug, Default)]
pub struct Book {
    settled: Vec<i32>,
    turned_away: BTreeMap<(FileId, u32), (u32, Moment)>,
    more: u64,
}

impl Book {
    /// Whether all is told.
    pub fn is_empty(&self) -> bool {
        self.settled.is_empty() && self.turned_away.is_empty() && self.more == 0
    }

    /// What the watch had read under this number is answered. There are no more of these than the watch has descriptors.
    pub fn settled(&mut self, number: i32) {
        self.settled.push(number);
    }

    /// An open that nobody had read is refused.
    pub fn turned_away(&mut self, object: FileId, pid: u32, at: Moment) {
        let is_full = self.turned_away.len() >= MOST_ROWS;
        match self.turned_away.get_mut(&(object, pid)) {
            Some((opens, last)) => (*opens, *last) = (opens.saturating_add(1), at),
            None if is_full => self.more += 1,
            None => {
                self.turned_away.insert((object, pid), (1, at));
            }
        }
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
        while !self.turned_away.is_empty() {
            let some = self.turned_away.iter().take((LONGEST - HEAD) / ROW);
            let rows: Vec<TurnedAway> =
                some.map(|(&(object, pid), &(opens, at))| TurnedAway { object, pid, opens, at }).collect();
            if !send(&Note::TurnedAway(rows.clone()).encode()) {
                return;
            }
            for TurnedAway { object, pid, .. } in rows {
                self.turned_away.remove(&(object, pid));
            }
        }
        if self.more > 0 && send(&Note::More(self.more).encode()) {
            self.more = 0;
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
        let row = TurnedAway { object: object(9), pid: 4242, opens: 3, at: Moment::from_nanos(5) };
        for note in [Note::Settled(vec![7, -1]), Note::TurnedAway(vec![row, row]), Note::More(u64::MAX)] {
            assert_eq!(Note::decode(&note.encode()), Some(note));
        }
    }

    #[test]
    fn repeats_are_one_row_with_a_count_and_the_last_time() {
        let mut book = Book::default();
        for at in [1, 2, 3] {
            book.turned_away(object(9), 4242, Moment::from_nanos(at));
        }
        let row = TurnedAway { object: object(9), pid: 4242, opens: 3, at: Moment::from_nanos(3) };
        assert_eq!(told(&mut book, 9), [Note::TurnedAway(vec![row])]);
        assert!(book.is_empty());
    }

    #[test]
    fn what_is_not_taken_is_told_later_and_what_has_no_room_is_counted() {
        let mut book = Book::default();
        (0..3000).for_each(|number| book.settled(number));
        (0..MOST_ROWS as u64 + 10).for_each(|ino| book.turned_away(object(ino), 1, Moment::default()));
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
        let rows =
            notes.iter().map(|note| if let Note::TurnedAway(rows) = note { rows.len() } else { 0 }).sum::<usize>();
        assert_eq!(rows, MOST_ROWS);
        assert_eq!(notes.last(), Some(&Note::More(10)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(packet in proptest::collection::vec(any::<u8>(), 0..80)) {
            Note::decode(&packet);
        }
    }
}
