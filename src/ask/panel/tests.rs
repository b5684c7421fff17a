//! The panel: which keys count, and what is written when.

use platform::ManualClock;

use super::window::Window;
use super::*;

struct Desk {
    panel: Panel,
    window: Window,
    clock: Arc<ManualClock>,
}

fn block(subject: &str) -> Block {
    Block {
        before: "changed: ".to_owned(),
        subject: subject.to_owned(),
        keys: "; ".to_owned(),
        unit: "s".to_owned(),
        ..Block::default()
    }
}

impl Desk {
    fn new() -> Self {
        let (window, clock) = (Window::new(60, 20), Arc::new(ManualClock::default()));
        let panel = Panel::on(Box::new(window.clone()), false, Arc::<ManualClock>::clone(&clock), "lines got lost");
        Self { panel, window, clock }
    }

    fn ask(&mut self, subject: &str, reading: Reading) {
        let deadline = Moment::default() + Duration::from_secs(20);
        self.panel.ask(block(subject), deadline, Bell::Silent, reading);
    }

    fn press_after(&mut self, millis: u64) -> Option<Typed> {
        self.clock.advance(Duration::from_millis(millis));
        self.panel.tick();
        self.panel.key(b"a", self.panel.now())
    }
}

#[test]
fn a_key_counts_once_the_question_has_been_there_long_enough() {
    let mut desk = Desk::new();
    assert_eq!(desk.press_after(1000), Some(Typed::Idle(b'a')), "nothing is asked");
    desk.ask(".env", Reading::Anew);
    assert_eq!(desk.press_after(299), None);
    assert_eq!(desk.press_after(30), Some(Typed::Byte(b'a')));
    desk.ask(".env", Reading::Known);
    assert_eq!(desk.press_after(30), Some(Typed::Byte(b'a')), "what was read stays read");
    desk.ask(".envrc", Reading::Anew);
    assert_eq!(desk.press_after(30), None);
}

#[test]
fn a_question_that_replaces_another_unwritten_inherits_no_time() {
    let mut desk = Desk::new();
    desk.ask(".env", Reading::Anew);
    assert_eq!(desk.press_after(400), Some(Typed::Byte(b'a')));
    desk.window.glass().takes = false;
    desk.ask(".envrc", Reading::Anew);
    assert_eq!(desk.press_after(400), None);
    desk.ask(".envrc", Reading::Known);
    assert_eq!(desk.press_after(400), None);
    desk.window.glass().takes = true;
    assert_eq!(desk.press_after(50), None, "only now it can be read");
    assert_eq!(desk.press_after(300), Some(Typed::Byte(b'a')));
}

#[test]
fn the_countdown_wakes_on_the_second_and_draws_each_once() {
    let mut desk = Desk::new();
    desk.ask(".env", Reading::Anew);
    for second in 1..=5 {
        let wake = desk.panel.wake_at().expect("a question is open");
        assert_eq!(wake, Moment::default() + Duration::from_secs(second));
        desk.clock.advance(wake.since(desk.clock.now()));
        desk.panel.tick();
        assert_eq!(desk.window.glass().rows(), [format!("changed: .env; {}s", 20 - second)]);
    }
    desk.clock.advance(Duration::from_secs(30));
    desk.panel.tick();
    assert_eq!(desk.window.glass().rows(), ["changed: .env; 0s"]);
    assert_eq!(desk.panel.wake_at(), None, "nothing is left to count");
    desk.panel.withdraw();
    assert!(desk.window.glass().rows().is_empty());
}

#[test]
fn what_got_lost_is_drawn_again_and_said() {
    let mut desk = Desk::new();
    desk.ask(".env", Reading::Anew);
    assert!(desk.press_after(400).is_some());
    {
        let mut glass = desk.window.glass();
        (glass.takes, glass.loses) = (false, true);
    }
    desk.panel.lines(&["a line".to_owned()]);
    assert!(desk.panel.wake_at().is_some_and(|wake| wake.since(desk.clock.now()) <= TRY_AGAIN));
    desk.window.glass().takes = true;
    assert_eq!(desk.press_after(50), None);
    assert_eq!(desk.window.glass().rows(), ["changed: .env; 20s", "lines got lost", "changed: .env; 20s"]);
    assert!(desk.press_after(300).is_some());
}

#[test]
fn a_stop_of_our_own_draws_once_and_one_by_others_draws_anew() {
    let mut desk = Desk::new();
    desk.ask(".env", Reading::Anew);
    desk.panel.suspend();
    desk.panel.go_on();
    let rows = ["", "[1]+  Stopped   keep", "$ fg", "keep", "changed: .env; 20s"];
    assert_eq!(desk.window.glass().rows(), rows);
    assert_eq!(desk.press_after(200), None);
    assert!(desk.press_after(100).is_some());
    desk.panel.go_on();
    assert_eq!(desk.window.glass().rows().len(), rows.len() + 1);
    assert_eq!(desk.press_after(200), None);
}
