//! Numbers and their processes, by the feed alone.

use std::time::Duration;

use super::ledger::Trace;
use super::lives::{Image, Lives, Owner};
use crate::clock::Moment;

fn at(second: u64) -> Moment {
    Moment::default() + Duration::from_secs(second)
}

fn image(name: &str) -> Image {
    Image { name: name.as_bytes().to_vec(), ..Image::default() }
}

fn names(lives: &Lives, pid: u32) -> Vec<String> {
    let id = lives.last(pid).expect("is known").id;
    lives
        .above(id)
        .iter()
        .map(|life| String::from_utf8_lossy(&life.image().expect("read").0.name).into_owned())
        .collect()
}

#[test]
fn a_number_that_two_had_in_the_span_has_no_owner() {
    let mut lives = Lives::default();
    lives.present(&[1, 7], at(1));
    lives.exit(7, at(10));
    lives.fork(1, 7, at(11));
    assert!(matches!(lives.owner(7, at(9)), Owner::Unclear));
    assert!(matches!(lives.owner(7, at(10)), Owner::Unclear), "its end may have been read in that very moment");
    assert!(matches!(lives.owner(7, at(11)), Owner::One(_)));
}

#[test]
fn a_number_given_again_before_its_end_was_told_has_no_owner_in_that_span() {
    let mut lives = Lives::default();
    lives.present(&[1, 7], at(1));
    lives.fork(1, 7, at(5));
    lives.exit(7, at(6));
    assert!(matches!(lives.owner(7, at(4)), Owner::Unclear));
}

#[test]
fn after_a_gap_nothing_from_before_is_believed() {
    let mut lives = Lives::default();
    lives.present(&[1, 7], at(1));
    lives.gap();
    assert!(matches!(lives.owner(7, at(2)), Owner::Unclear));
    lives.present(&[1, 7], at(5));
    assert!(matches!(lives.owner(7, at(4)), Owner::Unclear), "it may have been used again in the gap");
    assert!(matches!(lives.owner(7, at(5)), Owner::One(_)));
}

#[test]
fn one_that_ended_long_ago_still_counts_for_its_number() {
    let mut lives = Lives::default();
    lives.present(&[1, 7, 8], at(1));
    lives.exit(7, at(10));
    lives.fork(1, 7, at(11));
    lives.exit(8, at(100));
    assert!(matches!(lives.owner(7, at(9)), Owner::Unclear), "the first one is no longer kept, and not forgotten");
    assert!(matches!(lives.owner(7, at(50)), Owner::One(_)));
}

#[test]
fn a_program_is_proven_only_if_it_was_read_before_the_span_and_none_followed() {
    let mut lives = Lives::default();
    let wanted = lives.present(&[1, 7], at(1));
    lives.read(wanted[1], 70, image("sh"), at(2));
    let proven = |lives: &Lives, since| lives.trace(7, at(since)).map(|(_, trace, _)| trace);
    assert_eq!(proven(&lives, 2), Some(Trace::Did { process: true, program: true }));
    assert_eq!(proven(&lives, 1), Some(Trace::Did { process: true, program: false }));
    let again = lives.exec(7);
    assert_eq!(proven(&lives, 3), Some(Trace::Did { process: true, program: false }));
    lives.read(wanted[1], 70, image("late"), at(4));
    assert!(!lives.last(7).expect("is known").ran_since(at(5)), "a reading from before the exec does not count");
    lives.read(again, 71, image("another"), at(4));
    assert!(!lives.last(7).expect("is known").ran_since(at(5)), "a process that started later has the number");
    lives.read(again, 70, image("node"), at(4));
    assert_eq!(proven(&lives, 4), Some(Trace::Did { process: true, program: true }));
}

#[test]
fn who_made_a_process_is_known_when_it_has_gone() {
    let mut lives = Lives::default();
    let wanted = lives.present(&[1, 5], at(1));
    lives.read(wanted[0], 1, image("init"), at(2));
    lives.read(wanted[1], 5, Image { is_top: true, ..image("zsh") }, at(2));
    for (parent, child, name) in [(5, 6, "claude"), (6, 7, "node")] {
        lives.fork(parent, child, at(3));
        let wanted = lives.exec(child);
        lives.read(wanted, u64::from(child), image(name), at(4));
    }
    lives.fork(7, 8, at(5));
    lives.exit(7, at(6));
    assert_eq!(names(&lives, 8), ["node", "claude", "zsh"]);
    assert_eq!(lives.last(8).expect("is known").image().expect("its parent's").0.name, b"node");
}

#[test]
fn what_runs_is_known_until_another_program_begins_or_another_process_has_the_number() {
    let node = || Image { exe: Some(b"/usr/bin/node".to_vec()), ..image("node") };
    let mut lives = Lives::default();
    let wanted = lives.present(&[1, 7], at(1));
    assert_eq!(lives.runs(7, 70), None, "nobody has looked");
    lives.read(wanted[1], 70, node(), at(2));
    assert_eq!(lives.runs(7, 70), Some(&node()));
    assert_eq!(lives.runs(7, 71), None, "a process that started later has the number");
    let again = lives.exec(7);
    assert_eq!(lives.runs(7, 70), None, "it runs another program");
    lives.read(wanted[1], 70, node(), at(3));
    assert_eq!(lives.runs(7, 70), None, "that was read before");
    lives.read(again, 70, Image { exe: None, ..node() }, at(3));
    assert_eq!(lives.runs(7, 70), None, "its file could not be read then");
    lives.read(again, 70, node(), at(3));
    lives.fork(7, 8, at(4));
    assert_eq!(lives.runs(8, 80), None, "of a child it is a conclusion");
    lives.exit(7, at(5));
    lives.fork(1, 7, at(6));
    assert_eq!(lives.runs(7, 70), None);
    lives.gap();
    assert_eq!(lives.runs(8, 80), None);
}

#[test]
fn what_was_read_of_a_number_that_was_given_again_is_not_put_to_who_had_it_before() {
    let mut lives = Lives::default();
    lives.present(&[1], at(1));
    lives.fork(1, 7, at(2));
    let wanted = lives.exec(7);
    lives.fork(7, 8, at(3));
    assert_eq!(lives.unread_above(lives.last(8).expect("is known").id).len(), 2);
    lives.exit(7, at(4));
    let unread = lives.unread_above(lives.last(8).expect("is known").id);
    assert_eq!(unread.iter().map(|wanted| wanted.life.pid).collect::<Vec<_>>(), [1], "it has ended");
    lives.fork(1, 7, at(5));
    lives.read(wanted, 70, image("another"), at(6));
    let above = lives.above(lives.last(8).expect("is known").id);
    assert!(above[0].image().is_none() && above[0].started.is_none(), "nothing was read of who made it: {above:?}");
}

#[test]
fn one_that_was_there_before_stands_below_the_process_it_was_found_below() {
    let mut lives = Lives::default();
    let wanted = lives.present(&[1, 5, 6, 7], at(1));
    let known = lives.serial();
    for (wanted, name) in wanted.iter().zip(["init", "zsh", "claude", "node"]) {
        lives.read(*wanted, u64::from(wanted.life.pid), image(name), at(2));
    }
    lives.found_below(wanted[3].life, 6, known);
    lives.found_below(wanted[2].life, 5, known);
    assert_eq!(names(&lives, 7), ["claude", "zsh"]);
    lives.found_below(wanted[3].life, 1, known);
    assert_eq!(names(&lives, 7), ["claude", "zsh"], "who made it stays");
    lives.exit(1, at(3));
    lives.fork(6, 1, at(4));
    lives.found_below(wanted[1].life, 1, known);
    assert_eq!(names(&lives, 5), [""; 0], "another process has the number that was read");
    lives.found_below(wanted[1].life, 5, known);
    assert_eq!(names(&lives, 5), [""; 0], "nobody is above itself");
}

#[test]
fn a_crowd_of_processes_takes_bounded_room() {
    let mut lives = Lives::default();
    lives.present(&[1], at(1));
    for number in 0..100_000 {
        let pid = 2 + number % 30_000;
        lives.fork(1, pid, at(2));
        lives.exit(pid, at(2));
    }
    assert!(matches!(lives.owner(5, at(1)), Owner::Unclear));
    assert!((2..30_002).filter(|&pid| lives.last(pid).is_some()).count() <= 8192);
}
