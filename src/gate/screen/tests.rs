//! The gate's question, as a terminal shows it and as a recording of the terminal reads.

use std::sync::Arc;
use std::time::Duration;

use platform::{Clock, ManualClock, Moment};
use proptest::prelude::*;

use super::*;
use crate::ask::panel::window::Window;
use crate::digest::Digest;
use crate::gate::Tool;
use crate::gate::action::Action;
use crate::gate::host::Host;
use crate::gate::kind::Kind;
use crate::gate::machine::{Call, Caller, Choice, Offer, OfferId, Ticket};
use crate::gate::path::FilePath;
use crate::gate::pattern::{Grant, Pattern};
use crate::gate::recall::Recall;

/// A gate's screen, its terminal and the time.
struct Desk {
    screen: Screen,
    window: Window,
    clock: Arc<ManualClock>,
}

impl Desk {
    fn new(columns: u16, rows: u16) -> Self {
        let (window, clock) = (Window::new(columns, rows), Arc::new(ManualClock::default()));
        let screen = Screen::on(Box::new(window.clone()), false, Arc::<ManualClock>::clone(&clock));
        Self { screen, window, clock }
    }

    /// Time passes, and is noticed as often as it has to be.
    fn pass(&mut self, millis: u64) {
        let end = self.clock.now() + Duration::from_millis(millis);
        while let Some(wake) = self.screen.wake_at().filter(|wake| *wake <= end) {
            self.clock.advance(wake.since(self.clock.now()).max(Duration::from_millis(1)));
            self.screen.tick();
        }
        self.clock.advance(end.since(self.clock.now()));
        self.screen.tick();
    }

    fn press(&mut self, keys: &[u8]) -> Option<GateKey> {
        self.screen.key(keys, self.clock.now())
    }

    fn press_later(&mut self, keys: &[u8]) -> Option<GateKey> {
        self.pass(400);
        self.press(keys)
    }

    fn rows(&self) -> Vec<String> {
        self.window.glass().rows()
    }

    fn recording(&self) -> Vec<String> {
        self.window.glass().recording()
    }
}

fn path(text: &str) -> FilePath {
    FilePath::parse(text).expect(text)
}

fn offer(number: u8, choice: Choice, recall: Recall, grants: Vec<Grant>) -> Offer {
    Offer { id: OfferId([number; 16]), choice, grants, recall }
}

/// The question of a call that writes a file.
fn about(id: u64, file: &str, facts: &[&str]) -> Question {
    let action = Action::file(path(file));
    let exact = || vec![Grant { kind: Kind::File, pattern: Pattern::Exact(action.target().clone()) }];
    let mut offers = vec![offer(1, Choice::Once, Recall::Never, vec![])];
    if !file.contains(['*', '?', '[', '\\']) {
        offers.push(offer(2, Choice::Session, Recall::Session, exact()));
        offers.push(offer(3, Choice::Always, Recall::Always, exact()));
        if let Some(parent) = path(file).parent() {
            let children = || vec![Grant { kind: Kind::File, pattern: Pattern::Children(parent.clone()) }];
            offers.push(offer(4, Choice::WidenSession, Recall::Session, children()));
            offers.push(offer(5, Choice::WidenAlways, Recall::Always, children()));
        }
    }
    let caller = Caller { connection: 1, name: "some-agent".to_owned(), unattended: false };
    let call = Call {
        ticket: Ticket(id),
        caller,
        tool: Tool::FileWrite,
        digest: Digest::of(file.as_bytes()),
        actions: vec![action.clone()],
        facts: facts.iter().map(|&fact| fact.to_owned()).collect(),
        difference: vec!["+four-added".to_owned()],
    };
    let deadline = Moment::default() + Duration::from_secs(120);
    Question { id: QuestionId(id), call, action, offers, deadline }
}

fn todo() -> Question {
    about(1, "notes/todo.md", &["overwrite, 310 bytes, +2 -1"])
}

const ROWS: [&str; 10] = [
    "keep gate: file notes/todo.md",
    "  asked by some-agent through file_write",
    "  overwrite, 310 bytes, +2 -1",
    "  [o] once",
    "  [s] this session",
    "  [a] always",
    "  [w] notes/* this session",
    "  [W] notes/* always",
    "  [d] show the difference",
    "  [n] no (denied in 120 s)",
];

fn shown(columns: u16, question: &Question, waiting: usize) -> String {
    let mut desk = Desk::new(columns, 60);
    desk.screen.show(question, waiting);
    desk.rows().join("\n")
}

#[test]
fn a_question_is_a_block_of_plain_lines() {
    let mut desk = Desk::new(80, 24);
    assert!(desk.screen.show(&todo(), 0));
    assert_eq!(desk.rows(), ROWS);
    assert_eq!(desk.recording(), ROWS);
    assert_eq!(desk.window.glass().bells(), 1, "bells");
}

#[test]
fn a_screen_may_be_moved_to_the_thread_that_asks() {
    fn may_be_moved<T: Send>(_: &T) {}
    may_be_moved(&Desk::new(80, 24).screen);
}

#[test]
fn only_the_target_stands_out() {
    let (window, clock) = (Window::new(80, 24), Arc::new(ManualClock::default()));
    let mut screen = Screen::on(Box::new(window.clone()), true, clock);
    screen.show(&todo(), 0);
    let stream = String::from_utf8(window.glass().stream.clone()).expect("UTF-8");
    assert!(stream.contains("keep gate: file \x1b[1mnotes/todo.md\x1b[22m\r\n"), "{stream:?}");
    assert_eq!(stream.matches("\x1b[1m").count(), 1);
}

#[test]
fn only_the_last_line_is_drawn_again() {
    let mut desk = Desk::new(200, 60);
    desk.screen.show(&todo(), 0);
    desk.pass(3000);
    assert!(!desk.screen.show(&todo(), 2));
    desk.pass(30_000);
    let recording = desk.recording();
    assert_eq!(recording[..10], ROWS);
    assert_eq!(recording[13], "  [n] no (denied in 117 s; 2 more waiting)");
    assert!(recording[10..].iter().all(|line| line.starts_with("  [n] no (denied in ")), "{recording:?}");
    let mut rows = ROWS.map(str::to_owned);
    rows[9] = "  [n] no (denied in 87 s; 2 more waiting)".to_owned();
    assert_eq!(desk.rows(), rows);
}

#[test]
fn a_settled_question_leaves_one_line_and_the_next_comes_below() {
    let mut desk = Desk::new(80, 40);
    desk.screen.show(&todo(), 1);
    desk.screen.settled("keep gate: file notes/todo.md: denied (declined)");
    assert_eq!(desk.screen.question(), None);
    assert_eq!(desk.press_later(b"o"), None);
    assert!(desk.screen.show(&about(2, "a.txt", &["create, 2 bytes"]), 0));
    let rows = desk.rows();
    assert_eq!(
        rows[9..13],
        [
            "  [n] no (denied in 120 s; 1 more waiting)",
            "keep gate: file notes/todo.md: denied (declined)",
            "keep gate: file a.txt",
            "  asked by some-agent through file_write",
        ]
    );
    assert_eq!(rows.last().map(String::as_str), Some("  [n] no (denied in 120 s)"));
}

#[test]
fn keys_mean_the_offers_of_the_question_on_the_screen() {
    let mut desk = Desk::new(80, 24);
    desk.screen.show(&todo(), 0);
    for (key, number) in [(b"o", 1), (b"s", 2), (b"a", 3), (b"w", 4), (b"W", 5)] {
        assert_eq!(desk.press_later(key), Some(GateKey::Offer(OfferId([number; 16]))));
    }
    assert_eq!(desk.press_later(b"n"), Some(GateKey::No));
    assert_eq!(desk.press_later(b"d"), Some(GateKey::Details));
    assert_eq!(desk.press_later(b"\x03"), Some(GateKey::Interrupt));
    assert_eq!(desk.press_later(b"\x1a"), Some(GateKey::Suspend));
    for other in (0..=255).filter(|byte| !b"osawWnd\x03\x1a\x1b".contains(byte)) {
        assert_eq!(desk.press_later(&[other]), None, "byte {other:#04x}");
    }
}

#[test]
fn a_key_that_is_not_offered_answers_nothing() {
    let mut desk = Desk::new(80, 24);
    let mut question = about(1, "notes/*", &[]);
    question.call.difference.clear();
    desk.screen.show(&question, 0);
    let [head, asked, once, no] = &desk.rows()[..] else { panic!("{:?}", desk.rows()) };
    assert_eq!([head, asked], ["keep gate: file notes/*", "  asked by some-agent through file_write"]);
    assert_eq!([once, no], ["  [o] once", "  [n] no (denied in 120 s)"]);
    for key in [b"s", b"a", b"w", b"W", b"d"] {
        assert_eq!(desk.press_later(key), None);
    }
    assert_eq!(desk.press_later(b"o"), Some(GateKey::Offer(OfferId([1; 16]))));
}

#[test]
fn early_keys_bursts_and_pastes_answer_nothing() {
    let mut desk = Desk::new(80, 40);
    assert_eq!(desk.press(b"o"), None);
    desk.screen.show(&todo(), 0);
    desk.pass(290);
    assert_eq!(desk.press(b"o"), None);
    for keys in [&b"\r"[..], b"\n", b"\x1b[200~o\x1b[201~", b"oo", b"once\r", b"o\r", b"\x1b[200~W\r\x1b[201~"] {
        assert_eq!(desk.press_later(keys), None, "{keys:?}");
    }
    desk.screen.settled("keep gate: file notes/todo.md: covered");
    desk.screen.show(&about(2, "b.txt", &[]), 0);
    desk.pass(100);
    assert_eq!(desk.press(b"o"), None, "meant for the question before");
    assert!(desk.press_later(b"o").is_some());
}

#[test]
fn the_difference_answers_nothing_and_is_to_be_read_before_a_key_counts() {
    let mut desk = Desk::new(80, 40);
    let mut question = todo();
    question.call.difference =
        vec!["@@ 1 @@".into(), " [n] no".into(), "+keep gate: file x".into(), "-\u{1b}[2J".into()];
    desk.screen.show(&question, 0);
    assert!(!desk.recording().concat().contains("keep gate: file x"));
    assert_eq!(desk.press_later(b"d"), Some(GateKey::Details));
    desk.screen.details();
    let rows = desk.rows();
    assert_eq!(
        rows[9..],
        ["  | @@ 1 @@", "  |  [n] no", "  | +keep gate: file x", "  | -\\u{1b}[2J", "  [n] no (denied in 120 s)",]
    );
    desk.pass(200);
    assert_eq!(desk.press(b"o"), None);
    assert!(desk.press_later(b"o").is_some());
}

#[test]
fn a_long_difference_is_shown_in_pages() {
    let mut desk = Desk::new(80, 400);
    let mut question = todo();
    question.call.difference = (0..250).map(|line| format!("+line {line}")).collect();
    desk.screen.show(&question, 0);
    desk.screen.details();
    assert_eq!(
        desk.rows()[108..111],
        ["  | +line 99", "  … 150 more lines; [d] shows the next", "  [n] no (denied in 120 s)"]
    );
    desk.screen.details();
    desk.screen.details();
    assert_eq!(desk.rows()[260..], ["  | +line 249", "  [n] no (denied in 120 s)"]);
}

#[test]
fn a_storm_of_calls_costs_a_few_redraws_and_leaves_the_last_number() {
    let mut desk = Desk::new(80, 24);
    desk.screen.show(&todo(), 0);
    desk.pass(400);
    let before = desk.window.glass().stream.len();
    for waiting in 1..=2000 {
        desk.screen.show(&todo(), waiting);
        desk.clock.advance(Duration::from_micros(100));
    }
    desk.pass(300);
    assert!(desk.window.glass().stream.len() - before < 500);
    assert_eq!(desk.rows()[9], "  [n] no (denied in 120 s; 2000 more waiting)");
    assert!(desk.press(b"o").is_some(), "the number of those that wait is no other question");
}

#[test]
fn lines_cannot_push_a_question_out_of_sight() {
    let mut desk = Desk::new(80, 400);
    desk.screen.show(&todo(), 0);
    for number in 0..200 {
        desk.screen.line(&format!("keep gate: line {number}"));
    }
    let rows = desk.rows();
    assert_eq!(rows[..9], ROWS[..9]);
    assert_eq!(rows[16..], ["keep gate: line 7", "  [n] no (denied in 120 s)"]);
    desk.screen.settled("keep gate: file notes/todo.md: denied (timeout)");
    let rows = desk.rows();
    assert_eq!(rows[18..20], ["keep gate: file notes/todo.md: denied (timeout)", "keep gate: line 8"]);
    assert_eq!(rows[118..], ["keep gate: line 107", "keep gate: and 92 more lines"]);
}

#[test]
fn a_question_that_was_not_written_takes_no_key() {
    let mut desk = Desk::new(80, 40);
    desk.screen.show(&todo(), 0);
    desk.pass(400);
    desk.screen.settled("keep gate: file notes/todo.md: allowed once");
    desk.window.glass().takes = false;
    desk.screen.show(&about(2, "b.txt", &[]), 0);
    assert_eq!(desk.press_later(b"a"), None);
    desk.window.glass().takes = true;
    desk.pass(20);
    assert_eq!(desk.press(b"a"), None);
    assert_eq!(desk.press_later(b"a"), Some(GateKey::Offer(OfferId([3; 16]))));
}

#[test]
fn a_question_that_got_lost_is_written_again_before_a_key_counts() {
    let mut desk = Desk::new(80, 40);
    desk.screen.show(&todo(), 0);
    desk.pass(400);
    (desk.window.glass().takes, desk.window.glass().loses) = (false, true);
    desk.pass(1000);
    desk.window.glass().takes = true;
    desk.pass(20);
    assert_eq!(desk.press(b"o"), None);
    let rows = desk.rows();
    assert_eq!(rows[10..19], ROWS[..9]);
    assert_eq!(rows[19..], [LOST, "  [n] no (denied in 119 s)"]);
    assert!(desk.press_later(b"o").is_some());
}

#[test]
fn a_window_that_became_too_narrow_shows_the_question_anew() {
    let mut desk = Desk::new(80, 40);
    desk.screen.show(&todo(), 0);
    for (columns, copies) in [(100, 1), (45, 1), (30, 2)] {
        desk.window.glass().becomes(columns, 40);
        desk.screen.resize();
        let heads = desk.recording().iter().filter(|line| line.starts_with("keep gate:")).count();
        assert_eq!(heads, copies, "{columns} columns");
    }
    assert_eq!(desk.press(b"o"), None);
    assert!(desk.press_later(b"o").is_some());
}

#[test]
fn after_a_stop_the_question_is_below_what_the_shell_wrote() {
    let mut desk = Desk::new(80, 40);
    desk.screen.show(&todo(), 0);
    desk.screen.suspend();
    desk.screen.go_on();
    let rows = desk.rows();
    assert_eq!(rows[13..], ROWS);
    assert_eq!(desk.press(b"o"), None);
    assert!(desk.press_later(b"o").is_some());
}

#[test]
fn a_terminal_that_hung_up_answers_nothing() {
    let mut desk = Desk::new(80, 40);
    desk.screen.show(&todo(), 0);
    desk.screen.hang_up();
    assert_eq!(desk.press_later(b"o"), None);
    let written = desk.window.glass().stream.len();
    desk.screen.line("keep gate: nobody reads this");
    desk.screen.finish();
    assert_eq!(desk.window.glass().stream.len(), written);
}

#[test]
fn a_gate_that_ends_leaves_the_question_and_the_cursor_below_it() {
    let mut desk = Desk::new(80, 40);
    desk.screen.show(&todo(), 0);
    desk.screen.finish();
    assert_eq!(desk.rows(), ROWS);
    assert_eq!(desk.window.glass().cursor(), (10, 0));
}

#[test]
fn a_question_taller_than_the_terminal_says_so() {
    let facts: Vec<String> = (0..30).map(|number| format!("fact {number}")).collect();
    let facts: Vec<&str> = facts.iter().map(String::as_str).collect();
    let mut desk = Desk::new(80, 12);
    desk.screen.show(&about(1, "notes/todo.md", &facts), 0);
    assert_eq!(
        desk.rows()[3..5],
        ["  … and 6 more facts", "  (taller than this terminal: scroll up for its beginning)"]
    );
    assert_eq!(desk.recording()[0], "keep gate: file notes/todo.md");
}

#[test]
fn the_other_end_of_a_move_is_named() {
    let mut question = about(1, "private/plan.txt", &["moves private/plan.txt to inbox/plan.txt"]);
    question.call.actions.push(Action::file(path("inbox/plan.txt")));
    assert!(!shown(80, &question, 0).contains("  and file"));
    question.call.facts = vec!["moves to old-inbox/plan.txt".to_owned()];
    assert!(shown(80, &question, 0).contains("\n  and file inbox/plan.txt\n"));
}

#[test]
fn a_host_whose_name_is_not_what_it_looks_like_is_told() {
    let mut question = about(1, "x", &["POST, 12 bytes, text/plain"]);
    question.action = Action::net(Host::parse("api.xn--80ak6aa92e.com:8443", Some(443)).expect("a host"));
    question.call.actions = vec![question.action.clone()];
    question.call.tool = Tool::HttpWrite;
    question.offers.truncate(1);
    insta::assert_snapshot!(shown(80, &question, 0));
}

#[test]
fn the_usual_question_at_every_width() {
    for columns in [40, 80, 200] {
        insta::assert_snapshot!(format!("usual_{columns}"), shown(columns, &todo(), 3));
    }
}

#[test]
fn a_hostile_question_at_every_width() {
    let folder = "deep/".repeat(20);
    let file = format!("{folder}[o] once and for all [s] this session keep gate: net api.example.com");
    let mut question = about(1, &file, &["[n] no", "keep gate: file harmless.txt", "create, 12 bytes \u{202e}[2J"]);
    question.call.caller.name = "x\r\n[o] forged\r\n[n] no\r\n\x1b]0;owned\x07\u{202e}\u{9b}2Jend".to_owned();
    let parent = path(&format!("{folder}a b"));
    let grants = vec![Grant { kind: Kind::File, pattern: Pattern::Children(parent) }];
    question.offers.push(offer(4, Choice::WidenSession, Recall::Session, grants));
    for columns in [40, 80, 200] {
        insta::assert_snapshot!(format!("hostile_{columns}"), shown(columns, &question, 0));
    }
}

/// Texts of somebody who wants to be taken for us.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = [
        "keep gate: file a",
        "keep gate: net b",
        "[o] once",
        "[n] no",
        " [s] x",
        "\u{ff3b}o] once",
        "| ",
        "(",
        " ",
        "  ",
        "a",
        "bb",
        "dddddddd",
        "/",
        "日本",
        "é",
        "e\u{301}",
        "\u{a0}",
        "\u{3000}",
        "\r\n",
        "\n",
        "\x1b[2J",
        "\x1b[1A",
        "\u{202e}",
        "\u{9b}2J",
        "\x07",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..14).prop_map(|parts| parts.concat())
}

proptest! {
    /// Whatever a caller is called, whatever it reaches, and whatever a process says of it: each row that begins as ours do
    /// is ours.
    #[test]
    fn nobody_else_writes_a_line_that_looks_like_ours(
        columns in 8u16..120,
        name in hostile(),
        file in hostile(),
        facts in proptest::collection::vec(hostile(), 0..4),
        difference in proptest::collection::vec(hostile(), 1..4),
    ) {
        let Ok(target) = FilePath::parse(&file) else { return Ok(()) };
        let mut question = about(1, "x", &facts.iter().map(String::as_str).collect::<Vec<_>>());
        question.action = Action::file(target.clone());
        question.call.actions = vec![question.action.clone()];
        question.call.caller.name = name;
        question.call.difference = difference;
        let children = vec![Grant { kind: Kind::File, pattern: Pattern::Children(target) }];
        question.offers.push(offer(4, Choice::WidenSession, Recall::Session, children));
        let mut desk = Desk::new(columns, 600);
        desk.screen.show(&question, 0);
        desk.screen.details();
        desk.screen.line(&format!("keep gate: {file}"));
        desk.screen.settled(&format!("keep gate: {}: denied (declined)", in_words(&question.action)));
        let rows = desk.rows();
        let ours = |row: &&String| row.starts_with("keep");
        prop_assert_eq!(rows.iter().filter(ours).count(), 3, "{:#?}", rows);
        prop_assert!(rows[0].starts_with("keep"));
        let mut keys: Vec<char> = Vec::new();
        for row in &rows {
            let row = row.trim_start();
            prop_assert!(!row.starts_with('\u{ff3b}'), "{:#?}", rows);
            if let Some(rest) = row.strip_prefix('[') {
                keys.extend(rest.chars().next());
            }
        }
        prop_assert_eq!(keys, ['o', 's', 'a', 'w', 'd', 'n'], "{:#?}", rows);
        let recording = desk.recording();
        let heads = recording.iter().filter(|line| line.starts_with("keep gate:")).count();
        prop_assert_eq!(heads, 3, "{:#?}", recording);
    }
}
