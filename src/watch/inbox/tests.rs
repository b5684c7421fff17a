use super::*;

use platform::{Place, RelPath};
use proptest::prelude::*;

fn place(name: usize) -> Place {
    Place::tree(RelPath::parse(format!("{name}/.env").as_bytes()).expect("a path"))
}

fn at(nanos: u64) -> Moment {
    Moment::from_nanos(nanos)
}

fn touched(name: usize, nanos: u64) -> Hint {
    Hint::Touched { place: place(name), at: at(nanos) }
}

fn bytes(text: &[u8]) -> InputEvent {
    InputEvent::Bytes { bytes: text.to_vec(), at: at(0) }
}

fn all(inbox: &mut Inbox) -> Vec<Message> {
    inbox.wait(Duration::ZERO, usize::MAX)
}

/// Hints held anywhere.
fn held(inbox: &Inbox) -> usize {
    let waiting = inbox.shared.waiting();
    assert_eq!(waiting.hints.len(), waiting.known.len());
    waiting.hints.len() + inbox.taken.len()
}

#[test]
fn a_million_hints_while_the_core_is_busy_keep_memory_flat_and_nothing_is_lost() {
    let (post, mut inbox) = with_room(1000);
    for number in 0..1_000_000 {
        assert!(post.hint(touched(number % 100, number as u64)));
    }
    assert_eq!(held(&inbox), 100);
    let hints: Vec<Message> = (0..100).map(|name| Message::Hint(touched(name, name as u64))).collect();
    assert_eq!(all(&mut inbox), hints);
    for number in 0..1_000_000 {
        post.hint(touched(number, 0));
    }
    assert_eq!(held(&inbox), 1000);
    let taken = all(&mut inbox);
    assert_eq!((taken.len(), &taken[0]), (1001, &Message::Overflow));
    // What comes after that is taken again.
    post.hint(touched(7, 5));
    assert_eq!(all(&mut inbox), [Message::Hint(touched(7, 5))]);
}

#[test]
fn what_a_walk_found_before_its_end_stays_before_it_and_the_rest_behind() {
    let (post, mut inbox) = with_room(1);
    let hints = [
        Hint::Found(place(1)),
        Hint::Found(place(2)),
        Hint::Walked { directories: 2 },
        Hint::Found(place(3)),
        Hint::Walked { directories: 3 },
    ];
    hints.iter().cloned().for_each(|hint| assert!(post.hint(hint)));
    let expected: Vec<Message> = hints[..4].iter().cloned().map(Message::Hint).collect();
    assert_eq!(all(&mut inbox), expected);
}

#[test]
fn what_the_person_says_is_not_kept_waiting_by_hints() {
    let (post, mut inbox) = with_room(1000);
    (0..10).for_each(|name| assert!(post.hint(touched(name, 0))));
    assert_eq!(inbox.wait(Duration::ZERO, 4).len(), 4);
    post.signal(Signal::Interrupt);
    let next = inbox.wait(Duration::from_secs(60), 4);
    assert_eq!((next.len(), &next[0]), (5, &Message::Signal(Signal::Interrupt)));
    assert_eq!(inbox.wait(Duration::from_secs(60), 4), [Message::Hint(touched(8, 0)), Message::Hint(touched(9, 0))]);
}

#[test]
fn input_without_end_is_bounded_and_the_interrupt_behind_it_is_heard() {
    let (post, mut inbox) = inbox();
    for _ in 0..10 * MOST_INPUT {
        post.input(bytes(b"x"));
        post.signal(Signal::Resized);
        post.input(InputEvent::Foreground);
    }
    (0..10).for_each(|_| post.input(bytes(b"\x03")));
    post.input(InputEvent::HungUp);
    let taken = all(&mut inbox);
    assert!(taken.len() <= MOST_INPUT + 13, "{}", taken.len());
    assert_eq!(taken.iter().filter(|message| **message == Message::Signal(Signal::Resized)).count(), 1);
    assert!(taken.contains(&Message::Input(bytes(b"\x03"))));
    assert_eq!(taken.last(), Some(&Message::Input(InputEvent::HungUp)));
}

#[test]
fn a_post_wakes_the_one_who_waits_and_an_inbox_that_is_gone_takes_nothing() {
    let (post, mut inbox) = inbox();
    let other = post.clone();
    let thread = std::thread::spawn(move || other.hint(touched(1, 1)));
    assert_eq!(inbox.wait(Duration::from_secs(60), 10), [Message::Hint(touched(1, 1))]);
    assert!(thread.join().expect("posts"));
    drop(inbox);
    assert!(!post.hint(touched(1, 1)));
}

#[derive(Debug, Clone)]
enum Act {
    Post(usize, bool),
    Take(usize),
}

proptest! {
    /// Whoever posts a hint: a look at that place, or an overflow, comes out after it.
    #[test]
    fn every_hint_is_followed_by_a_look_or_an_overflow(
        acts in proptest::collection::vec(
            prop_oneof![
                3 => (0..12usize, any::<bool>()).prop_map(|(name, vanished)| Act::Post(name, vanished)),
                1 => (0..6usize).prop_map(Act::Take),
            ],
            0..200,
        )
    ) {
        let (post, mut inbox) = with_room(5);
        let mut owed = HashSet::new();
        let settle = |owed: &mut HashSet<Hint>, taken: Vec<Message>| {
            for message in taken {
                match message {
                    Message::Hint(hint) => drop(owed.remove(&timeless(&hint))),
                    Message::Overflow => owed.clear(),
                    other => panic!("{other:?}"),
                }
            }
        };
        for act in acts {
            match act {
                Act::Post(name, vanished) => {
                    let hint = if vanished {
                        Hint::Vanished { place: place(name), at: at(1) }
                    } else {
                        touched(name, 1)
                    };
                    owed.insert(timeless(&hint));
                    post.hint(hint);
                }
                Act::Take(most) => settle(&mut owed, inbox.wait(Duration::ZERO, most)),
            }
            prop_assert!(held(&inbox) <= 10);
        }
        for _ in 0..3 {
            settle(&mut owed, all(&mut inbox));
        }
        prop_assert!(owed.is_empty(), "{owed:?}");
    }
}

#[test]
fn what_the_gate_says_comes_after_the_person_and_before_the_hints() {
    let (post, mut inbox) = with_room(9);
    post.hint(touched(1, 1));
    post.gate(|slate| slate.more = 1);
    post.signal(Signal::Interrupt);
    post.gate(|slate| slate.more += 1);
    let slate = crate::watch::guest::Slate { more: 2, ..Default::default() };
    let expected = [Message::Signal(Signal::Interrupt), Message::Gate(Box::new(slate)), Message::Hint(touched(1, 1))];
    assert_eq!(all(&mut inbox), expected);
    assert_eq!(all(&mut inbox), [], "it is taken once");
}
