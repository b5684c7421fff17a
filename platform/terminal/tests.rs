//! The terminal, with a pseudo-terminal in its place.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OutputModes, SpecialCodeIndex, Termios, Winsize, tcgetattr, tcsetwinsize};

use super::*;
use crate::clock::{Clock, SystemClock};

/// A panic puts every terminal of the process back, also that of a test beside it.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

struct Pty {
    _alone: MutexGuard<'static, ()>,
    master: Option<OwnedFd>,
    slave: OwnedFd,
}

impl Pty {
    fn new() -> Self {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pty");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(OsStr::from_bytes(name.as_bytes()), flags, Mode::empty()).expect("the other end");
        Self { _alone: alone, master: Some(master), slave }
    }

    fn terminal(&self) -> Terminal {
        Terminal::on(self.slave.try_clone().expect("a duplicate")).expect("a terminal")
    }

    fn modes(&self) -> Termios {
        tcgetattr(&self.slave).expect("modes")
    }

    fn master(&self) -> &OwnedFd {
        self.master.as_ref().expect("not hung up yet")
    }

    fn type_in(&self, bytes: &[u8]) {
        assert_eq!(rustix::io::write(self.master(), bytes).expect("typed"), bytes.len());
    }

    /// Takes what the terminal got until it is quiet.
    fn read(&self) -> Vec<u8> {
        let mut seen = Vec::new();
        let mut buffer = [0; 4096];
        let quiet = Timespec::try_from(Duration::from_millis(20)).expect("fits");
        while poll(&mut [PollFd::new(self.master(), PollFlags::IN)], Some(&quiet)).expect("polled") > 0 {
            let count = rustix::io::read(self.master(), &mut buffer).expect("read");
            seen.extend_from_slice(&buffer[..count]);
        }
        seen
    }
}

fn next(events: &Receiver<InputEvent>) -> InputEvent {
    events.recv_timeout(Duration::from_secs(5)).expect("an event within 5 s")
}

fn events(terminal: &Terminal) -> Receiver<InputEvent> {
    let (sender, events) = channel();
    terminal
        .spawn_input(Box::new(move |event| {
            let _the_test_may_be_over = sender.send(event);
        }))
        .expect("a thread");
    events
}

fn bytes_of(event: InputEvent) -> Vec<u8> {
    match event {
        InputEvent::Bytes { bytes, .. } => bytes,
        other => panic!("not bytes: {other:?}"),
    }
}

fn comparable(modes: &Termios) -> (u64, u64, u64, u64, u8, u8) {
    let code = |index| modes.special_codes[index];
    (
        u64::from(modes.input_modes.bits()),
        u64::from(modes.output_modes.bits()),
        u64::from(modes.control_modes.bits()),
        u64::from(modes.local_modes.bits()),
        code(SpecialCodeIndex::VMIN),
        code(SpecialCodeIndex::VTIME),
    )
}

#[test]
fn something_else_is_no_terminal() {
    let null = std::fs::File::open("/dev/null").expect("opens");
    assert!(matches!(Terminal::on(null.into()), Err(TerminalError::NotATerminal)));
}

#[test]
fn the_shells_descriptor_stays_blocking() {
    let pty = Pty::new();
    let terminal = pty.terminal();
    assert!(matches!(*terminal.output, Output::Own(_)));
    assert!(!rustix::fs::fcntl_getfl(&pty.slave).expect("flags").contains(OFlags::NONBLOCK));
}

#[test]
fn a_terminal_that_takes_nothing_never_blocks_us() {
    let pty = Pty::new();
    let terminal = pty.terminal();
    let started = Instant::now();
    let mut states: Vec<WriteState> = (0..300).map(|_| terminal.write(&[b'x'; 1000])).collect();
    assert_eq!(states.last(), Some(&WriteState::Pending));
    assert!(!terminal.is_clear());
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let mut seen = 0;
    let deadline = Instant::now() + Duration::from_secs(5);
    while states.last() == Some(&WriteState::Pending) {
        seen += pty.read().len();
        states.push(terminal.flush_pending());
        assert!(Instant::now() < deadline, "still pending");
    }
    assert!(states.contains(&WriteState::Lost), "300 kB were kept");
    seen += pty.read().len();
    assert!((1000..300_000).contains(&seen) && seen.is_multiple_of(1000), "{seen} bytes");
    assert_eq!(terminal.write(b"anew"), WriteState::Written);
    assert_eq!(pty.read(), b"anew");
}

#[test]
fn a_shared_description_does_not_block_us_either() {
    let pty = Pty::new();
    let mut terminal = pty.terminal();
    terminal.output = Arc::new(Output::Shared(pty.slave.try_clone().expect("a duplicate")));
    assert_eq!(terminal.write(b"hello"), WriteState::Written);
    assert_eq!(pty.read(), b"hello");
    for _ in 0..60 {
        let _pending = terminal.write(&[b'x'; 1000]);
    }
    assert_eq!(terminal.flush_pending(), WriteState::Pending);
}

#[test]
fn raw_mode_reads_single_keys_and_is_undone() {
    let pty = Pty::new();
    let terminal = pty.terminal();
    let before = comparable(&pty.modes());
    let guard = terminal.raw().expect("raw");
    let local = pty.modes().local_modes;
    assert!(!local.intersects(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG));
    assert!(pty.modes().output_modes.contains(OutputModes::OPOST), "others still end their lines");
    assert_eq!(pty.read(), b"\x1b[?2004h");
    drop(guard);
    assert_eq!(comparable(&pty.modes()), before);
    assert_eq!(pty.read(), b"\x1b[?2004l");
}

#[test]
fn raw_mode_is_undone_in_a_panic_before_its_message() {
    let pty = Pty::new();
    let terminal = pty.terminal();
    let before = comparable(&pty.modes());
    let guard = terminal.raw().expect("raw");
    let panicked = std::panic::catch_unwind(|| panic!("on purpose"));
    assert!(panicked.is_err());
    assert_eq!(comparable(&pty.modes()), before);
    terminal.resume();
    assert_ne!(comparable(&pty.modes()), before, "raw again");
    drop(guard);
    assert_eq!(comparable(&pty.modes()), before);
}

#[test]
fn what_was_typed_before_is_thrown_away() {
    let pty = Pty::new();
    let terminal = pty.terminal();
    pty.type_in(b"a\na\n");
    let _guard = terminal.raw().expect("raw");
    let events = events(&terminal);
    pty.type_in(b"r");
    assert_eq!(bytes_of(next(&events)), b"r");
}

#[test]
fn bytes_that_come_together_are_one_piece() {
    let pty = Pty::new();
    let terminal = pty.terminal();
    let _guard = terminal.raw().expect("raw");
    let events = events(&terminal);
    pty.type_in(b"acc");
    pty.type_in(b"ept");
    assert_eq!(bytes_of(next(&events)), b"accept");
    let before = SystemClock.now();
    pty.type_in(b"a");
    match next(&events) {
        InputEvent::Bytes { bytes, at } => {
            assert_eq!(bytes, b"a");
            assert!(at >= before && at <= SystemClock.now());
        }
        other => panic!("not bytes: {other:?}"),
    }
}

#[test]
fn an_interrupt_does_not_wait_for_what_follows() {
    let pty = Pty::new();
    let terminal = pty.terminal();
    let _guard = terminal.raw().expect("raw");
    let events = events(&terminal);
    pty.type_in(b"\x03");
    assert_eq!(bytes_of(next(&events)), b"\x03");
}

#[test]
fn a_hang_up_is_told_once_and_writing_says_so_too() {
    let mut pty = Pty::new();
    let terminal = pty.terminal();
    let guard = terminal.raw().expect("raw");
    let events = events(&terminal);
    pty.master = None;
    assert_eq!(next(&events), InputEvent::HungUp);
    assert!(events.recv_timeout(Duration::from_secs(5)).is_err(), "the thread has ended");
    assert_eq!(terminal.write(b"x"), WriteState::HungUp);
    drop(guard);
}

#[test]
fn the_size_is_the_terminals_or_a_usual_one() {
    let pty = Pty::new();
    let terminal = pty.terminal();
    assert_eq!(terminal.size(), (80, 24));
    let size = Winsize { ws_row: 5, ws_col: 30, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&pty.slave, size).expect("a size");
    assert_eq!(terminal.size(), (30, 5));
}
