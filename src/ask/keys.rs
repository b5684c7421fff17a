//! Bytes from the terminal become keys; most bytes become nothing.
//!
//! Promise: a key that answers is one byte that came alone, in the ground state, while a question had stood unchanged for
//! [`SETTLE`]; which byte answers what is the question's own affair. Pasted text (bracketed, or simply several bytes at
//! once), arrow and Alt keys, replies of the terminal to some other program's request, and whatever was typed ahead, answer
//! nothing. Interrupt and suspend are never held back, except inside a bracketed paste.
//! Limit: one pasted letter without brackets looks like one key, and a program that can write into the terminal's input
//! (TIOCSTI, a scriptable terminal) types like a person.
//! Source: ECMA-48 5.4 (control sequences); XTerm Control Sequences, "Bracketed Paste Mode"; the table
//! "The question" in `docs/attacks.md`.

use std::time::Duration;

use platform::Moment;

/// How long a question must have been on screen, unchanged, before a key counts.
pub const SETTLE: Duration = Duration::from_millis(300);

/// Bytes closer together than this were not typed by a hand. Key repeat of common keyboards is no faster than 30 ms.
const BY_HAND: Duration = Duration::from_millis(25);

/// After several bytes at once nothing answers for this long: a large paste may be cut anywhere, also before its last byte.
const AFTER_BURST: Duration = Duration::from_millis(300);

/// How long the rest of an escape sequence may take; a slow network can split one. Then the escape stands alone.
const SEQUENCE_LIMIT: Duration = Duration::from_millis(500);

/// How long a bracketed paste may be silent before we believe that its end got lost.
const PASTE_LIMIT: Duration = Duration::from_secs(5);

const PASTE_END: &[u8] = b"\x1b[201~";

/// What a person typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Typed {
    /// One byte that came alone, while a question could be read. What it answers, if anything, the question says.
    Byte(u8),
    /// One byte that came alone, after a while without a question. It answers none.
    Idle(u8),
    /// Escape that came alone, while a question could be read; it may be the beginning of another key.
    Escape,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
}

/// What a person says to the question of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// `a`: keep the change.
    Accept,
    /// `r`: put the file back.
    Reject,
    /// `e`: decide the list one by one.
    Each,
    /// `d`: show more.
    Details,
    /// `?`: show the keys.
    Help,
    /// `u`: choose what to unlock.
    Unlock,
    /// `c`: choose a contested path to be asked about again.
    AskAgain,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
}

impl Key {
    /// The key that was typed; most bytes are none.
    pub fn of(typed: Typed) -> Option<Self> {
        match typed {
            Typed::Interrupt => Some(Self::Interrupt),
            Typed::Suspend => Some(Self::Suspend),
            Typed::Byte(b'a') => Some(Self::Accept),
            Typed::Byte(b'r') => Some(Self::Reject),
            Typed::Byte(b'e') => Some(Self::Each),
            Typed::Byte(b'd') => Some(Self::Details),
            Typed::Byte(b'?') => Some(Self::Help),
            Typed::Byte(b'u') | Typed::Idle(b'u') => Some(Self::Unlock),
            Typed::Byte(b'c') | Typed::Idle(b'c') => Some(Self::AskAgain),
            Typed::Byte(_) | Typed::Idle(_) | Typed::Escape => None,
        }
    }
}

/// Where in the stream of bytes we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    /// After ESC.
    Escape,
    /// After ESC O: one more byte.
    Single,
    /// In a control sequence; the number in it so far, if it is only a number.
    Control(Option<u16>),
    /// In a string (OSC, DCS, SOS, PM, APC); whether the byte before was ESC.
    Text(bool),
    /// Inside a bracketed paste; how many bytes of its end have been seen.
    Paste(usize),
}

/// Turns bytes into keys.
#[derive(Debug)]
pub struct Keys {
    state: State,
    /// When the last bytes came.
    last: Option<Moment>,
    /// When several bytes came at once.
    burst: Option<Moment>,
    /// Since when the present question has stood unchanged; `None` without a question.
    shown: Option<Moment>,
    /// Since when there has been no question.
    idle: Option<Moment>,
}

impl Default for Keys {
    fn default() -> Self {
        Self::new()
    }
}

impl Keys {
    /// Without a question.
    pub fn new() -> Self {
        Self { state: State::Ground, last: None, burst: None, shown: None, idle: None }
    }

    /// The present content of the question got on the screen at this moment: keys count [`SETTLE`] later. To be called for
    /// every change of the content, and not for the countdown.
    pub fn shown(&mut self, at: Moment) {
        (self.shown, self.idle) = (Some(at), None);
    }

    /// No question can be read on the screen: no key answers.
    pub fn withdrawn(&mut self) {
        (self.shown, self.idle) = (None, None);
    }

    /// No question is on the screen from this moment on: keys that answer none count [`SETTLE`] later, so that none that was
    /// meant for the question is among them.
    pub fn idle(&mut self, at: Moment) {
        (self.shown, self.idle) = (None, Some(at));
    }

    /// Takes what was read in one piece, and when its first byte came. At most one key comes of it.
    pub fn take(&mut self, bytes: &[u8], at: Moment) -> Option<Typed> {
        let (&first, &last) = (bytes.first()?, bytes.last()?);
        self.forget_what_got_lost(at);
        let began = self.state;
        let alone = bytes.len() == 1 && self.came_by_hand(at);
        let pasting = bytes.iter().fold(matches!(began, State::Paste(_)), |pasting, &byte| {
            self.step(byte);
            pasting || matches!(self.state, State::Paste(_))
        });
        self.last = Some(at);
        if bytes.len() > 1 {
            self.burst = Some(at);
        }
        // Impatient Ctrl-C arrives as one piece, too. Inside a paste it is text, and the paste's end was not reached.
        if !pasting && (first == CTRL_C || last == CTRL_C) {
            self.state = State::Ground;
            return Some(Typed::Interrupt);
        }
        if began != State::Ground || !alone {
            return None;
        }
        match first {
            CTRL_Z => Some(Typed::Suspend),
            ESC => self.may_answer(at).then_some(Typed::Escape),
            byte if self.may_answer(at) => Some(Typed::Byte(byte)),
            byte => self.idle.is_some_and(|since| at >= since + SETTLE).then_some(Typed::Idle(byte)),
        }
    }

    fn may_answer(&self, at: Moment) -> bool {
        self.shown.is_some_and(|shown| at >= shown + SETTLE)
    }

    fn came_by_hand(&self, at: Moment) -> bool {
        let quiet = |since: Option<Moment>, long: Duration| since.is_none_or(|since| at >= since + long);
        quiet(self.last, BY_HAND) && quiet(self.burst, AFTER_BURST)
    }

    fn forget_what_got_lost(&mut self, at: Moment) {
        let limit = match self.state {
            State::Ground => return,
            State::Paste(_) => PASTE_LIMIT,
            State::Escape | State::Single | State::Control(_) | State::Text(_) => SEQUENCE_LIMIT,
        };
        if self.last.is_none_or(|last| at >= last + limit) {
            self.state = State::Ground;
        }
    }

    fn step(&mut self, byte: u8) {
        self.state = match (self.state, byte) {
            (State::Paste(seen), _) if byte == PASTE_END[seen] => match seen + 1 {
                all if all == PASTE_END.len() => State::Ground,
                more => State::Paste(more),
            },
            // The end starts with ESC and has no other, so a broken match can only begin anew with this byte.
            (State::Paste(_), _) => State::Paste(usize::from(byte == ESC)),
            (State::Text(_), ESC) => State::Text(true),
            (State::Text(_), BELL) | (State::Text(true), b'\\') => State::Ground,
            (State::Text(_), _) => State::Text(false),
            // ESC begins anew wherever it comes, and CAN and SUB end any sequence (ECMA-48, ISO 2022).
            (_, ESC) => State::Escape,
            (_, CAN | CTRL_Z) => State::Ground,
            (State::Ground, _) => State::Ground,
            (State::Escape, b'[') => State::Control(Some(0)),
            (State::Escape, b'O') => State::Single,
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => State::Text(false),
            (State::Escape | State::Single, _) => State::Ground,
            (State::Control(Some(200)), b'~') => State::Paste(0),
            (State::Control(_), 0x40..=0x7e) => State::Ground,
            (State::Control(Some(number)), b'0'..=b'9') => {
                State::Control(number.checked_mul(10).and_then(|tens| tens.checked_add(u16::from(byte - b'0'))))
            }
            (State::Control(_), _) => State::Control(None),
        };
    }
}

const CTRL_C: u8 = 0x03;
const BELL: u8 = 0x07;
const CAN: u8 = 0x18;
const CTRL_Z: u8 = 0x1a;
const ESC: u8 = 0x1b;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn key(keys: &mut Keys, bytes: &[u8], at: Moment) -> Option<Key> {
        keys.take(bytes, at).and_then(Key::of)
    }

    /// Keys of pieces that come at these milliseconds, with a question on screen since 0.
    fn keys(pieces: &[(u64, &[u8])]) -> Vec<Key> {
        let mut keys = Keys::new();
        keys.shown(at(0));
        pieces.iter().filter_map(|(millis, bytes)| key(&mut keys, bytes, at(*millis))).collect()
    }

    #[test]
    fn single_letters_answer_and_others_do_not() {
        assert_eq!(keys(&[(400, b"a")]), [Key::Accept]);
        assert_eq!(
            keys(&[(400, b"r"), (500, b"e"), (600, b"d"), (700, b"?")]),
            [Key::Reject, Key::Each, Key::Details, Key::Help]
        );
        assert_eq!(keys(&[(400, b"u")]), [Key::Unlock]);
        assert_eq!(keys(&[(400, b"c")]), [Key::AskAgain]);
        for byte in (0..=255).filter(|byte| !b"ared?uc\x03\x1a".contains(byte)) {
            assert_eq!(keys(&[(400, &[byte])]), [], "byte {byte:#04x}");
        }
    }

    #[test]
    fn without_a_question_a_letter_answers_nothing_and_u_counts_300_ms_after_the_last_one() {
        let mut keys = Keys::new();
        assert_eq!(keys.take(b"u", at(1000)), None, "before it is known that nothing is asked");
        keys.idle(at(1000));
        assert_eq!(keys.take(b"u", at(1299)), None);
        assert_eq!(key(&mut keys, b"a", at(1400)), None);
        assert_eq!(key(&mut keys, b"u", at(1500)), Some(Key::Unlock));
        assert_eq!(key(&mut keys, b"uu", at(2000)), None);
        keys.shown(at(3000));
        assert_eq!(keys.take(b"u", at(3100)), None);
        keys.withdrawn();
        assert_eq!(keys.take(b"u", at(9000)), None, "a question that is not all on the screen yet");
    }

    #[test]
    fn escape_alone_is_told_and_answers_no_question() {
        let mut keys = Keys::new();
        keys.shown(at(0));
        assert_eq!(keys.take(b"\x1b", at(400)), Some(Typed::Escape));
        assert_eq!(keys.take(b"[", at(450)), None);
        assert_eq!(keys.take(b"A", at(500)), None);
        assert_eq!(keys.take(b"\x1b[A", at(900)), None, "an arrow");
        assert_eq!(Key::of(Typed::Escape), None);
    }

    #[test]
    fn keys_count_300_ms_after_the_last_change_of_the_question() {
        let mut keys = Keys::new();
        assert_eq!(key(&mut keys, b"a", at(100)), None);
        keys.shown(at(1000));
        assert_eq!(key(&mut keys, b"a", at(1299)), None);
        keys.shown(at(1300));
        assert_eq!(key(&mut keys, b"a", at(1599)), None);
        assert_eq!(key(&mut keys, b"a", at(1650)), Some(Key::Accept));
        keys.withdrawn();
        assert_eq!(key(&mut keys, b"a", at(9000)), None);
    }

    #[test]
    fn typed_ahead_bytes_are_not_remembered() {
        let mut keys = Keys::new();
        keys.shown(at(1000));
        assert_eq!(key(&mut keys, b"a", at(1290)), None);
        assert_eq!(key(&mut keys, b"\n", at(1400)), None);
    }

    #[test]
    fn several_bytes_at_once_never_answer() {
        for burst in [&b"aa"[..], b"ar", b"accept\n", b"a\n", b"\ra", b"a\xc3\xa9"] {
            assert_eq!(keys(&[(400, burst)]), [], "{burst:?}");
        }
    }

    #[test]
    fn the_last_byte_of_a_cut_paste_does_not_answer() {
        assert_eq!(keys(&[(400, b"paste without brackets"), (650, b"a")]), []);
        assert_eq!(keys(&[(400, b"x"), (420, b"a")]), [], "faster than a hand");
        assert_eq!(keys(&[(400, b"xx"), (701, b"a")]), [Key::Accept]);
    }

    #[test]
    fn a_bracketed_paste_answers_nothing_however_it_is_cut() {
        let paste = b"\x1b[200~a\x1b[20\x1b[201~";
        for cut in 1..paste.len() {
            let (head, tail) = paste.split_at(cut);
            assert_eq!(keys(&[(400, head), (750, tail)]), [], "cut at {cut}");
        }
        let slowly: Vec<_> =
            paste.iter().enumerate().map(|(n, byte)| (400 + 100 * n as u64, std::slice::from_ref(byte))).collect();
        assert_eq!(keys(&slowly), []);
        assert_eq!(keys(&[(400, b"\x1b[200~"), (900, b"a"), (3000, b"a"), (7000, b"a")]), [], "an open paste");
        assert_eq!(keys(&[(400, b"\x1b[200~a\x1b[201~"), (800, b"a")]), [Key::Accept], "after its end");
        assert_eq!(keys(&[(400, b"\x1b[200~"), (5400, b"a")]), [Key::Accept], "an end that got lost");
    }

    #[test]
    fn arrows_and_alt_keys_answer_nothing_also_when_split() {
        assert_eq!(keys(&[(400, b"\x1b[A"), (800, b"\x1ba"), (1200, b"\x1bOa"), (1600, b"\x1b[1;3a")]), []);
        assert_eq!(keys(&[(400, b"\x1b"), (500, b"a")]), [], "Alt-a in two pieces");
        assert_eq!(keys(&[(400, b"\x1b"), (600, b"["), (800, b"1"), (1000, b"a")]), []);
        assert_eq!(keys(&[(400, b"\x1b"), (600, b"O"), (800, b"a"), (1000, b"a")]), [Key::Accept]);
        assert_eq!(keys(&[(400, b"\x1b"), (901, b"a")]), [Key::Accept], "ESC alone, then a key");
        assert_eq!(
            keys(&[(400, b"\x1b]11;rgb:"), (800, b"a"), (1200, b"\x1b"), (1300, b"\\"), (1400, b"r")]),
            [Key::Reject]
        );
    }

    #[test]
    fn interrupts_pass_without_a_question_and_in_a_burst() {
        let mut keys = Keys::new();
        assert_eq!(key(&mut keys, b"\x03", at(0)), Some(Key::Interrupt));
        assert_eq!(key(&mut keys, b"\x03\x03\x03", at(1)), Some(Key::Interrupt));
        assert_eq!(key(&mut keys, b"a\x03", at(2)), Some(Key::Interrupt));
        assert_eq!(key(&mut keys, b"\x1b\x03", at(3)), Some(Key::Interrupt));
        assert_eq!(key(&mut keys, b"a\x03a", at(1000)), None);
        assert_eq!(key(&mut keys, b"\x1b[200~\x03", at(2000)), None);
        assert_eq!(key(&mut keys, b"\x03", at(2500)), None, "still inside the paste");
        assert_eq!(key(&mut keys, b"\x1b[201~", at(3000)), None);
        assert_eq!(key(&mut keys, b"\x1a", at(4000)), Some(Key::Suspend));
    }

    proptest! {
        #[test]
        fn only_a_lone_byte_answers(pieces in proptest::collection::vec(
            (0u64..700, proptest::collection::vec(prop_oneof![any::<u8>(), proptest::sample::select(&b"ar\x1b[20~O1\x03"[..])], 1..5)), 0..30))
        {
            let mut keys = Keys::new();
            keys.shown(at(0));
            let mut now = 0;
            for (wait, bytes) in pieces {
                now += wait;
                let key = keys.take(&bytes, at(now));
                let answers = matches!(key, Some(Typed::Byte(_)));
                prop_assert!(!answers || (bytes.len() == 1 && now >= 300), "{bytes:?} at {now} gave {key:?}");
            }
        }
    }
}
