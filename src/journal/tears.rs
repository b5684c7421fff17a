//! What power cuts and edits leave, and what the scan makes of it.
//!
//! A torn batch is made as a disk does: the file as it was synced, then any 512-byte sectors of the last batch, the others
//! zero, and any length the file system may have recorded.

use proptest::prelude::*;
use proptest::sample::Index;

use super::conformance::{AT, numbered};
use super::line::{Head, START, link};
use super::scan::{Origin, ScanError, Scanned, scan};
use super::{Event, Journal, MemoryJournal};

const SECTOR: usize = 512;

/// A journal of batches with these numbers of entries, and where each batch ends.
fn journal(batches: &[usize]) -> (Vec<u8>, Vec<usize>) {
    let mut journal = MemoryJournal::new("20261130T094107123-4242");
    let mut number = 0;
    let ends = batches.iter().map(|&entries| {
        for _ in 0..entries {
            number += 1;
            // Lines of several lengths, some longer than a sector, some with what looks like the beginning of a line.
            let cause = "{\"seq\":1,".repeat((number * 7 % 90) as usize);
            let event = if number % 2 == 0 { Event::Lost { cause } } else { numbered(number) };
            journal.append(AT, &event).expect("fits");
        }
        journal.commit().expect("commits");
        journal.bytes().len()
    });
    let ends = ends.collect();
    (journal.bytes().to_vec(), ends)
}

fn look(mut bytes: &[u8]) -> Result<Scanned, ScanError<()>> {
    scan(&mut bytes, Origin::After(Head::default()), |_| Ok(()))
}

/// The ends of all lines.
fn line_ends(bytes: &[u8]) -> Vec<usize> {
    bytes.iter().enumerate().filter(|&(_, &byte)| byte == b'\n').map(|(at, _)| at + 1).collect()
}

/// The bytes with what is not in `kept` of the sectors after `synced` zero, cut to `length`.
fn torn(bytes: &[u8], synced: usize, kept: impl Fn(usize) -> bool, length: usize) -> Vec<u8> {
    let lost = |at: usize| at >= synced && !kept(at / SECTOR - synced / SECTOR);
    bytes[..length].iter().enumerate().map(|(at, &byte)| if lost(at) { 0 } else { byte }).collect()
}

fn batches() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(1..6usize, 1..6)
}

#[test]
fn every_prefix_is_cut_back_to_its_last_whole_line() {
    let (bytes, _) = journal(&[1, 3, 2, 1]);
    let ends = line_ends(&bytes);
    for length in 0..=bytes.len() {
        let scanned = look(&bytes[..length]).unwrap_or_else(|error| panic!("prefix of {length} bytes: {error}"));
        let good = ends.iter().copied().filter(|&end| end <= length).max().unwrap_or(0);
        assert_eq!((scanned.good_bytes, scanned.torn_bytes), (good as u64, (length - good) as u64), "{length} bytes");
    }
}

#[test]
fn every_altered_byte_of_an_earlier_batch_is_found() {
    let (bytes, ends) = journal(&[2, 1, 1, 2]);
    for at in 0..ends[2] {
        for flip in [1, 0x20, 0x80, bytes[at]] {
            let mut altered = bytes.clone();
            altered[at] ^= flip;
            assert!(matches!(look(&altered), Err(ScanError::Chain { .. })), "byte {at} ^ {flip:#x} went unseen");
        }
    }
}

#[test]
fn every_altered_byte_of_the_last_batch_costs_only_that_batch() {
    let (bytes, ends) = journal(&[2, 1, 3]);
    for at in ends[1]..ends[2] {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        let scanned = look(&altered).unwrap_or_else(|error| panic!("byte {at}: {error}"));
        assert!(scanned.good_bytes as usize >= ends[1] && scanned.torn_bytes > 0, "byte {at}: {scanned:?}");
    }
}

#[test]
fn an_entry_forged_with_its_own_sum_is_found_by_the_next_batch() {
    let (bytes, ends) = journal(&[1, 1, 1]);
    let (other, _) = {
        let mut journal = MemoryJournal::new("20261130T094107123-4242");
        journal.append(AT, &numbered(1)).expect("fits");
        journal.commit().expect("commits");
        journal.append(AT, &Event::Contested { path: "forged".into() }).expect("fits");
        journal.commit().expect("commits");
        (journal.bytes().to_vec(), ())
    };
    let forged = [&other[..], &bytes[ends[1]..]].concat();
    let error = look(&forged).expect_err("is found");
    assert!(matches!(error, ScanError::Chain { line: 2, .. }), "{error}");
}

#[test]
fn lines_taken_out_doubled_or_swapped_are_found() {
    let (bytes, _) = journal(&[1, 1, 1, 1]);
    let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
    for order in [&[0, 2, 3][..], &[1, 2, 3], &[0, 1, 1, 2, 3], &[0, 2, 1, 3], &[0, 1, 2, 0], &[3, 2, 1, 0]] {
        let edited: Vec<u8> = order.iter().flat_map(|&line| lines[line].iter().copied()).collect();
        assert!(matches!(look(&edited), Err(ScanError::Chain { .. })), "lines {order:?} went unseen");
    }
}

#[test]
fn a_file_that_is_no_journal_is_not_taken_for_a_torn_one() {
    for bytes in [&b"# notes\n\nbuy milk\n"[..], b"{}\n{}\n", b"\n"] {
        assert!(matches!(look(bytes), Err(ScanError::Chain { line: 1, .. })), "{:?}", bytes.escape_ascii());
    }
    assert_eq!(look(b"").expect("is empty").lines, 0);
    assert_eq!(look(&[0; 3000]).expect("is a first batch of which nothing was written").torn_bytes, 3000);
}

#[test]
fn a_line_without_end_is_read_with_bounded_memory() {
    let (mut bytes, ends) = journal(&[1, 1]);
    bytes.extend(START.repeat(1 << 19));
    let scanned = look(&bytes).expect("is torn");
    assert_eq!(scanned.good_bytes as usize, ends[1]);
    assert_eq!(scanned.torn_bytes as usize, bytes.len() - ends[1]);
}

#[test]
fn a_journal_may_begin_after_files_that_were_taken_away() {
    let (bytes, ends) = journal(&[2, 3, 1]);
    let look_from = |at: usize| scan(&mut &bytes[at..], Origin::Anywhere, |_| Ok::<(), ()>(()));
    let scanned = look_from(ends[0]).expect("begins with a batch");
    assert_eq!((scanned.first, scanned.lines, scanned.torn_bytes), (3, 4, 0));
    let inside = ends[0] + line_ends(&bytes[ends[0]..])[0];
    assert!(look_from(inside).is_err(), "began inside a batch");
    assert!(look(&bytes[ends[0]..]).is_err(), "did not begin where it must");
}

proptest! {
    #[test]
    fn whatever_sectors_of_the_last_batch_are_lost_the_ones_before_stand(
        batches in batches(), mask in any::<u64>(), length in any::<Index>()
    ) {
        let (bytes, ends) = journal(&batches);
        let synced = if ends.len() > 1 { ends[ends.len() - 2] } else { 0 };
        let length = synced + length.index(bytes.len() - synced + 1);
        let torn = torn(&bytes, synced, |sector| mask >> (sector % 64) & 1 == 1, length);
        let scanned = look(&torn).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let good = scanned.good_bytes as usize;
        prop_assert!(good >= synced, "an entry that was synced is lost");
        // What stays of the last batch is what was written.
        prop_assert_eq!(&torn[..good], &bytes[..good]);
        // Cut and gone on with, it is a journal again.
        prop_assert_eq!(look(&torn[..good]).expect("is whole").torn_bytes, 0);
    }

    #[test]
    fn sectors_of_the_last_batch_in_any_order_never_make_an_entry(
        batches in proptest::collection::vec(1..6usize, 2..5), seed in proptest::collection::vec(any::<Index>(), 40)
    ) {
        let (bytes, ends) = journal(&batches);
        let synced = ends[ends.len() - 2];
        let aligned = synced.next_multiple_of(SECTOR).min(bytes.len());
        let sectors: Vec<&[u8]> = bytes[aligned..].chunks(SECTOR).collect();
        let mut shuffled = bytes[..aligned].to_vec();
        for (at, _) in sectors.iter().enumerate() {
            shuffled.extend_from_slice(sectors[seed[at % seed.len()].index(sectors.len())]);
        }
        // Copied sectors can repeat a whole line, which no disk does: then it may be refused, never taken.
        if let Ok(scanned) = look(&shuffled) {
            let good = scanned.good_bytes as usize;
            prop_assert!(good >= synced);
            prop_assert_eq!(&shuffled[..good], &bytes[..good]);
        }
    }

    #[test]
    fn any_edit_of_earlier_batches_is_refused(
        batches in proptest::collection::vec(1..5usize, 2..5), at in any::<Index>(), length in 0..80usize,
        with in proptest::collection::vec(any::<u8>(), 0..80)
    ) {
        let (bytes, ends) = journal(&batches);
        let synced = ends[ends.len() - 2];
        let start = at.index(synced);
        let end = (start + length).min(synced);
        let edited = [&bytes[..start], &with[..], &bytes[end..]].concat();
        prop_assume!(edited != bytes);
        prop_assert!(look(&edited).is_err(), "went unseen");
    }

    #[test]
    fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in any::<Index>()) {
        let _ = look(&bytes);
        let _ = link(&bytes);
        let (whole, _) = journal(&[2, 2]);
        let mut mixed = whole.clone();
        mixed.splice(at.index(whole.len())..at.index(whole.len()), bytes);
        let _ = look(&mixed);
    }
}
