//! Asks one question and prints which keys it got, as the core of a watch would.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use keepwatch::ask::{Bell, Frame, Item, Key, Keys, Question, Screen};
use keepwatch::baseline::ChangeKind;
use keepwatch::rules::Rule;
use platform::{Clock, InputEvent, Moment, Signal, Signals, SystemClock, Terminal, WriteState};

enum Input {
    Terminal(InputEvent),
    Signal(Signal),
}

pub fn run() {
    let terminal = Terminal::open().expect("a terminal");
    let raw = terminal.raw().expect("raw mode");
    let (sender, inputs) = channel();
    let keys_sender = sender.clone();
    terminal.spawn_input(Box::new(move |event| drop(keys_sender.send(Input::Terminal(event))))).expect("a thread");
    let _signals = Signals::start(Box::new(move |signal| drop(sender.send(Input::Signal(signal))))).expect("handlers");

    let (columns, rows) = terminal.size();
    let mut screen = Screen::new(columns, rows, false);
    let mut keys = Keys::new();
    let started = SystemClock.now();
    let show = |frame: &Frame| match frame {
        Frame::Lasting(bytes) => terminal.write(bytes),
        Frame::Passing(bytes) => terminal.write_passing(bytes),
    };
    let print = |screen: &mut Screen, text: &str| assert_eq!(show(&screen.line(text)), WriteState::Written);
    print(&mut screen, "");
    let item = Item {
        path: ".env".to_owned(),
        rule: Rule::Secrets,
        kind: ChangeKind::Modified,
        digest: "sha256 3467a14afa0c".to_owned(),
    };
    let question = Question { items: vec![item], ..Question::default() };
    let _ = show(&screen.question(question.block(), 30, Bell::Ring));
    keys.shown(SystemClock.now());

    let mut lined = false;
    loop {
        let passed = SystemClock.now().since(started);
        if let Some(frame) = screen.tick(30 - passed.as_secs()) {
            let _ = show(&frame);
        }
        if passed > Duration::from_millis(2100) && !std::mem::replace(&mut lined, true) {
            print(&mut screen, "a line above");
        }
        assert!(passed < Duration::from_secs(25), "nobody ended the asker");
        let again = |screen: &mut Screen, keys: &mut Keys, text: &str| {
            let _ = show(&screen.redraw());
            print(screen, text);
            keys.shown(SystemClock.now());
        };
        match inputs.recv_timeout(Duration::from_millis(50)) {
            Ok(Input::Terminal(InputEvent::Bytes { bytes, at })) => match keys.take(&bytes, at).and_then(Key::of) {
                Some(Key::Interrupt) => break,
                Some(Key::Suspend) => {
                    terminal.suspend().expect("stopped and continued");
                    again(&mut screen, &mut keys, "continued");
                }
                Some(key) => print(&mut screen, &format!("key: {key:?}")),
                None => {}
            },
            Ok(Input::Terminal(InputEvent::HungUp)) => break,
            Ok(Input::Terminal(_)) => {
                terminal.resume();
                again(&mut screen, &mut keys, "continued");
            }
            Ok(Input::Signal(Signal::Resized)) => {
                let (columns, rows) = terminal.size();
                let _ = show(&screen.resize(columns, rows));
                print(&mut screen, &format!("size: {columns}x{rows}"));
            }
            Ok(Input::Signal(Signal::Suspend)) => terminal.suspend().expect("stopped and continued"),
            Ok(Input::Signal(Signal::Continued)) => {
                terminal.resume();
                again(&mut screen, &mut keys, "continued");
            }
            Ok(Input::Signal(_)) => break,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let _ = show(&screen.close());
    print(&mut screen, "the end");
    drop(raw);
    let _: Moment = started;
}
