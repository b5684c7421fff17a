//! The screen, as a terminal shows it.

use proptest::prelude::*;

use super::*;
use crate::ask::panel::window::{Bells, size, terminal};

/// A terminal of the size of a screen, which shows every frame of it.
struct Shown {
    screen: Screen,
    terminal: vt100::Parser<Bells>,
}

impl Shown {
    fn new(columns: u16, rows: u16) -> Self {
        Self { screen: Screen::new(columns, rows, false), terminal: terminal(columns, rows) }
    }

    fn feed(&mut self, frame: Option<Frame>) {
        if let Some(frame) = frame {
            self.terminal.process(frame.bytes());
        }
    }

    fn ask(&mut self, block: Block, seconds: u64, bell: Bell) {
        let frame = self.screen.question(block, seconds, bell);
        self.feed(Some(frame));
    }

    fn tick(&mut self, seconds: u64) {
        let frame = self.screen.tick(seconds);
        self.feed(frame);
    }

    fn line(&mut self, line: &str) {
        let frame = self.screen.line(line);
        self.feed(Some(frame));
    }

    /// What is on the terminal, without empty rows at the end.
    fn rows(&self) -> Vec<String> {
        let screen = self.terminal.screen();
        let mut rows: Vec<String> =
            screen.rows(0, screen.size().1.get()).map(|row| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// The whole of it, with the wraps taken out.
    fn text(&self) -> String {
        self.rows().concat().replace(' ', "")
    }
}

fn block(subject: &str) -> Block {
    Block {
        before: "keep watch: ".to_owned(),
        subject: subject.to_owned(),
        after: " changed (secrets, modified, sha256 3467a14afa0c). ".to_owned(),
        ask: "Keep it? ".to_owned(),
        keys: "[a]ccept / [r]eject; rejected in ".to_owned(),
        unit: "s".to_owned(),
        ..Block::default()
    }
}

fn asked(subject: &str, seconds: u64) -> String {
    let Block { before, subject, after, ask, keys, .. } = block(subject);
    format!("{before}{subject}{after}{ask}{keys}{seconds}s")
}

#[test]
fn the_countdown_stays_in_place() {
    let mut shown = Shown::new(200, 10);
    shown.line("start");
    shown.ask(block(".env"), 20, Bell::Ring);
    for seconds in (7..20).rev() {
        shown.tick(seconds);
        assert_eq!(shown.rows(), ["start".to_owned(), asked(".env", seconds)]);
    }
    assert_eq!(shown.terminal.callbacks().0, 1, "bells");
}

#[test]
fn the_countdown_stays_in_place_at_every_width() {
    for columns in 1..=130 {
        let mut shown = Shown::new(columns, 200);
        shown.line("start");
        shown.ask(block(".env"), 101, Bell::Ring);
        for seconds in [100, 99, 10, 9] {
            shown.tick(seconds);
            let expected = format!("start{}", asked(".env", seconds).replace(' ', ""));
            assert_eq!(shown.text(), expected, "{columns} columns, {seconds} s");
        }
    }
}

#[test]
fn a_tick_writes_only_the_row_of_the_countdown() {
    let mut screen = Screen::new(20, 24, false);
    let whole = screen.question(block(".env"), 20, Bell::Silent);
    let tick = screen.tick(19).expect("another second");
    assert!(tick.bytes().len() < 40 && whole.bytes().len() > 100, "{tick:?}");
    assert!(matches!(tick, Frame::Passing(_)));
    assert_eq!(screen.tick(19), None, "the same second again");
}

#[test]
fn another_count_of_those_that_wait_draws_only_the_rows_from_there_on() {
    let list: Vec<String> = (0..20).map(|n| format!("  services/{n}/.env (added, sha256 3467a14afa0c)")).collect();
    let waiting = |count: usize| Block {
        list: list.clone(),
        above: vec![format!("  waiting: {count} more")],
        ..block("20 protected files")
    };
    let mut shown = Shown::new(100, 40);
    shown.ask(waiting(0), 20, Bell::Ring);
    let written: usize = (1..=5000)
        .map(|count| {
            let frame = shown.screen.question(waiting(count), 20, Bell::Silent);
            let bytes = frame.bytes().len();
            shown.feed(Some(frame));
            bytes
        })
        .sum();
    assert!(written < 5000 * 200, "{written} bytes for 5000 counts");
    assert_eq!(shown.rows().len(), 20 + 1 + 2);
    assert_eq!(shown.rows()[0], list[0]);
    assert_eq!(shown.rows()[20], "  waiting: 5000 more");
}

#[test]
fn a_lost_tick_changes_nothing() {
    for columns in 1..=40 {
        let mut shown = Shown::new(columns, 150);
        shown.ask(block(".env"), 11, Bell::Ring);
        shown.screen.tick(10);
        shown.screen.tick(9);
        shown.tick(8);
        assert_eq!(shown.text(), asked(".env", 8).replace(' ', ""));
    }
}

#[test]
fn a_line_is_printed_above_the_open_question() {
    for columns in [20, 54, 55, 200] {
        let mut shown = Shown::new(columns, 40);
        shown.ask(Block { above: vec!["  + KEY".to_owned()], ..block(".env") }, 20, Bell::Ring);
        shown.tick(19);
        shown.line("Cargo.lock changed");
        shown.tick(18);
        let expected = format!("Cargo.lock changed  + KEY{}", asked(".env", 18)).replace(' ', "");
        assert_eq!(shown.text(), expected, "{columns} columns");
    }
}

#[test]
fn another_question_takes_the_place_of_the_open_one() {
    let mut shown = Shown::new(40, 40);
    shown.line("start");
    shown.ask(Block { above: vec!["  + KEY".to_owned(), "  - OTHER".to_owned()], ..block(".env") }, 20, Bell::Ring);
    shown.ask(block(".env.local"), 5, Bell::Silent);
    assert_eq!(shown.text(), format!("start{}", asked(".env.local", 5)).replace(' ', ""));
    assert_eq!(shown.terminal.callbacks().0, 1, "bells");
}

#[test]
fn withdrawing_leaves_no_trace_and_closing_leaves_the_question() {
    let mut shown = Shown::new(40, 40);
    shown.line("start");
    shown.ask(block(".env"), 20, Bell::Ring);
    let frame = shown.screen.withdraw();
    shown.feed(Some(frame));
    assert_eq!(shown.rows(), ["start"]);
    shown.ask(block(".env"), 20, Bell::Ring);
    let frame = shown.screen.close();
    shown.feed(Some(frame));
    shown.line("keep watch: .env accepted");
    assert!(shown.rows().last().is_some_and(|row| row == "keep watch: .env accepted"), "{:?}", shown.rows());
    assert!(shown.text().contains(&asked(".env", 20).replace(' ', "")));
    assert_eq!(shown.screen.tick(3), None);
}

#[test]
fn wide_characters_wrap_where_the_terminal_wraps_them() {
    for columns in 10..60 {
        let mut shown = Shown::new(columns, 60);
        shown.line("start");
        shown.ask(block("日本語/設定/環境.env"), 10, Bell::Ring);
        shown.tick(9);
        shown.ask(block("日本語/.env"), 8, Bell::Silent);
        let expected = format!("start{}", asked("日本語/.env", 8)).replace(' ', "");
        assert_eq!(shown.text(), expected, "{columns} columns");
    }
}

#[test]
fn a_long_list_is_cut_to_what_fits() {
    let list: Vec<String> = (0..50).map(|n| format!("  file{n} (added)")).collect();
    let mut shown = Shown::new(200, 12);
    shown.ask(Block { list: list.clone(), ..block("50 files") }, 10, Bell::Ring);
    assert_eq!(shown.rows().len(), 8 + 2);
    assert_eq!(shown.rows()[8], "  … and 42 more");
    let mut tall = Shown::new(200, 100);
    tall.ask(Block { list, ..block("50 files") }, 10, Bell::Ring);
    assert_eq!(tall.rows()[20], "  … and 30 more");
}

#[test]
fn a_list_whose_lines_wrap_is_cut_to_the_rows_it_takes() {
    let list: Vec<String> =
        (0..50).map(|n| format!("  services/number-{n}/.env (added, sha256 3467a14afa0c)")).collect();
    for columns in [40, 60, 80] {
        for rows in [12, 24] {
            let mut shown = Shown::new(columns, rows);
            shown.line("start");
            shown.ask(Block { list: list.clone(), ..block("50 files") }, 10, Bell::Ring);
            shown.tick(9);
            let (read, last) = (shown.rows(), format!("and {} more", 50 - shown.text().matches("/number-").count()));
            assert_eq!(read[0], "start", "{columns} columns: {read:?}");
            assert!(read.iter().any(|row| row.ends_with(&last)), "{columns} columns, {last:?}: {read:?}");
        }
    }
}

#[test]
fn a_resize_shows_the_whole_question_again() {
    for (columns, rows) in [(60, 20), (30, 5), (150, 50), (200, 10)] {
        let mut shown = Shown::new(100, 24);
        shown.line("start");
        shown.ask(block(".env"), 10, Bell::Ring);
        shown.terminal.screen_mut().set_size(size(rows), size(columns));
        let frame = shown.screen.resize(columns, rows);
        shown.feed(Some(frame));
        shown.tick(9);
        assert!(shown.text().contains(&asked(".env", 9).replace(' ', "")), "{:?}", shown.rows());
        assert!(rows < 10 || shown.rows()[0] == "start", "{:?}", shown.rows());
    }
}

#[test]
fn a_question_taller_than_the_terminal_still_counts_down() {
    let mut shown = Shown::new(20, 4);
    shown.ask(block(&"deep/".repeat(30)), 10, Bell::Ring);
    shown.tick(9);
    let rows = shown.rows();
    assert!(rows.concat().replace(' ', "").ends_with("rejectedin9s"), "{rows:?}");
}

#[test]
fn only_the_subject_stands_out_and_only_when_asked() {
    let mut plain = Screen::new(120, 24, false);
    assert!(!plain.question(block(".env"), 9, Bell::Silent).bytes().contains(&0x1b));
    for columns in [20, 120] {
        let mut bold = Screen::new(columns, 24, true);
        let drawn = String::from_utf8(bold.question(block(".env"), 9, Bell::Silent).bytes().to_vec()).expect("UTF-8");
        assert!(drawn.contains("keep watch: \x1b[1m.env\x1b[22m "), "{drawn:?}");
    }
    let mut bold = Screen::new(20, 24, true);
    let _ = bold.question(block(".env"), 9, Bell::Silent);
    let tick = bold.tick(8).expect("another second");
    assert!(!tick.bytes().windows(4).any(|window| window == b"\x1b[1m"), "{tick:?}");
}

/// The question about a path, with a writer, as it stands on a terminal of that many columns.
fn as_read(columns: u16, path: &str) -> Vec<String> {
    let mut shown = Shown::new(columns, 24);
    let by = "  by node (pid 4242, /usr/local/lib/nodejs/bin/node) < claude < zsh".to_owned();
    shown.ask(Block { above: vec![by], ..block(path) }, 20, Bell::Ring);
    shown.rows()
}

#[test]
fn the_question_reads_well_at_every_usual_width() {
    assert_eq!(
        as_read(40, ".env"),
        [
            "  by node (pid 4242,",
            "    /usr/local/lib/nodejs/bin/node) <",
            "    claude < zsh",
            "keep watch: .env changed (secrets,",
            "  modified, sha256 3467a14afa0c).",
            "  Keep it?",
            "  [a]ccept / [r]eject; rejected in 20s",
        ]
    );
    assert_eq!(
        as_read(60, ".env"),
        [
            "  by node (pid 4242, /usr/local/lib/nodejs/bin/node) <",
            "    claude < zsh",
            "keep watch: .env changed (secrets, modified, sha256",
            "  3467a14afa0c).",
            "  Keep it? [a]ccept / [r]eject; rejected in 20s",
        ]
    );
    for columns in [80, 100, 110] {
        assert_eq!(
            as_read(columns, ".env"),
            [
                "  by node (pid 4242, /usr/local/lib/nodejs/bin/node) < claude < zsh",
                "keep watch: .env changed (secrets, modified, sha256 3467a14afa0c).",
                "  Keep it? [a]ccept / [r]eject; rejected in 20s",
            ]
        );
    }
    assert_eq!(as_read(120, ".env")[1..], [asked(".env", 20)]);
}

#[test]
fn a_long_path_is_broken_after_a_folder() {
    let path = "services/payments/terraform/environments/production/eu-central-1/secrets/.env.production.local";
    assert_eq!(
        as_read(80, path)[1..],
        [
            "keep watch: services/payments/terraform/environments/production/eu-central-1/",
            "  secrets/.env.production.local changed (secrets, modified, sha256",
            "  3467a14afa0c).",
            "  Keep it? [a]ccept / [r]eject; rejected in 20s",
        ]
    );
    assert_eq!(
        as_read(120, path)[1..],
        [
            "keep watch: services/payments/terraform/environments/production/eu-central-1/secrets/.env.production.local changed",
            "  (secrets, modified, sha256 3467a14afa0c).",
            "  Keep it? [a]ccept / [r]eject; rejected in 20s",
        ]
    );
}

#[test]
fn a_wrapped_question_is_one_piece_in_the_stream() {
    for columns in [30, 80, 100] {
        let mut screen = Screen::new(columns, 24, false);
        let frame = screen.question(block("services/deep/.env"), 20, Bell::Ring);
        let stream = String::from_utf8(frame.bytes().to_vec()).expect("UTF-8");
        let mut pieces = stream.split('\x1b');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            text.push_str(piece.split_once(|letter: char| letter.is_ascii_alphabetic()).expect("a sequence ends").1);
        }
        assert!(text.contains(&asked("services/deep/.env", 20)), "{text:?}");
    }
}

proptest! {
    /// Whatever happens, finished lines stay as they are and the question is whole below them.
    #[test]
    fn lines_are_never_harmed(
        // Never scrolling, and at the bottom of a terminal that is taller than the block, but not much.
        (columns, rows) in prop_oneof![(8u16..90, Just(400u16)), (30u16..90, 12u16..15)],
        steps in proptest::collection::vec(0u8..5, 1..25),
    ) {
        let mut shown = Shown::new(columns, rows);
        let mut lines = String::new();
        let mut open = None;
        let mut seconds = 120;
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                0 => {
                    let line = format!("line{n}.");
                    shown.line(&line);
                    lines.push_str(&line);
                }
                1 => {
                    let subject = "x".repeat(n / 3 + 1);
                    let above: Vec<String> = (0..n % 4).map(|at| format!("above{}", at * n)).collect();
                    shown.ask(Block { above: above.clone(), ..block(&subject) }, seconds, Bell::Silent);
                    open = Some((above.concat(), subject));
                }
                2 => {
                    let frame = shown.screen.withdraw();
                    shown.feed(Some(frame));
                    open = None;
                }
                _ => {
                    seconds -= 3;
                    shown.tick(seconds);
                }
            }
            let question = open.as_ref().map(|(above, subject)| {
                let shown_seconds = shown.screen.open.as_ref().map_or(0, |open| open.seconds);
                format!("{above}{}", asked(subject, shown_seconds))
            });
            let expected = format!("{lines}{}", question.unwrap_or_default()).replace(' ', "");
            if rows == 400 {
                prop_assert_eq!(shown.text(), expected);
            } else {
                prop_assert!(expected.ends_with(&shown.text()), "{:?} is not the end of {expected:?}", shown.rows());
            }
        }
    }
}
