//! `keep watch` on a pseudo-terminal: what it shows, what is typed, how it ends.

use std::fs;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::sandbox::{Sandbox, keep};
use super::transcript::{plain, squeezed};
use super::{PATIENCE, pause};

/// A question has to stand for the product's own 300 ms, and some more for what we see later than it does.
const SETTLED: Duration = Duration::from_millis(400);

struct Seen {
    raw: Vec<u8>,
    /// When the last bytes came.
    last: Instant,
    /// Nothing is read while this is so.
    paused: bool,
    closing: bool,
    ended: bool,
}

struct Shared {
    seen: Mutex<Seen>,
    news: Condvar,
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().expect("the reader does not panic")
    }
}

/// A running watch.
pub struct Watch {
    master: Option<Box<dyn MasterPty + Send>>,
    keyboard: Option<Box<dyn Write + Send>>,
    child: Box<dyn Child + Send + Sync>,
    reader: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    /// How far what is shown has been read.
    position: usize,
    output: PathBuf,
    columns: u16,
    rows: u16,
}

/// What a watch left.
#[derive(Debug)]
pub struct Ended {
    /// The exit code.
    pub code: u32,
    /// Standard output.
    pub output: String,
    /// All that was on the terminal, without escape sequences.
    pub text: String,
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

impl Watch {
    /// A shell that runs the script as leader of a session on its own terminal; `$KEEP` is the program and `$OUT` the file for
    /// its standard output.
    pub fn start(sandbox: &Sandbox, script: &str, options: &[&str], columns: u16, rows: u16) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).expect("a pty");
        let output = tempfile::Builder::new().prefix("out-").tempfile_in(&sandbox.base).expect("a file");
        let output = output.into_temp_path().keep().expect("a path");
        let mut shell = CommandBuilder::new("/bin/sh");
        shell.args(["-c", script, "sh"]);
        shell.args(options);
        shell.cwd(&sandbox.repo);
        shell.env_clear();
        for (name, value) in sandbox.environment() {
            shell.env(name, value);
        }
        shell.env("KEEP", keep());
        shell.env("OUT", &output);
        let child = pair.slave.spawn_command(shell).expect("a shell");
        drop(pair.slave);
        let reader = pair.master.try_clone_reader().expect("a reader");
        let seen = Seen { raw: Vec::new(), last: Instant::now(), paused: false, closing: false, ended: false };
        let shared = Arc::new(Shared { seen: Mutex::new(seen), news: Condvar::new() });
        let theirs = Arc::clone(&shared);
        let reader = thread::spawn(move || read(reader, &theirs));
        let keyboard = pair.master.take_writer().expect("a writer");
        Self {
            master: Some(pair.master),
            keyboard: Some(keyboard),
            child,
            reader: Some(reader),
            shared,
            position: 0,
            output,
            columns,
            rows,
        }
    }

    // What it shows.

    /// All that was shown, without escape sequences.
    pub fn text(&self) -> String {
        plain(&self.shared.seen().raw)
    }

    /// All bytes that were shown.
    pub fn raw(&self) -> Vec<u8> {
        self.shared.seen().raw.clone()
    }

    /// The rows on the glass, and those that have scrolled off it.
    pub fn screen(&self) -> String {
        let not_zero = |value| NonZeroU16::new(value).expect("not zero");
        let mut parser = vt100::Parser::new(not_zero(self.rows), not_zero(self.columns), 0);
        parser.process(&self.shared.seen().raw);
        parser.screen().rows(0, self.columns).collect::<Vec<_>>().join("\n")
    }

    /// Waits for a condition.
    pub fn wait<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let over = self.shared.seen().ended;
            if let Some(found) = look(self) {
                return found;
            }
            let text = self.text();
            let tail: String = text.chars().skip(text.chars().count().saturating_sub(1500)).collect();
            assert!(!over, "no {what} before the end; the terminal shows {tail:?}");
            assert!(Instant::now() < deadline, "no {what}; the terminal shows {tail:?}");
            let seen = self.shared.seen();
            drop(self.shared.news.wait_timeout(seen, Duration::from_millis(20)).expect("the reader does not panic"));
        }
    }

    /// Waits for these words after those that were waited for last.
    pub fn says(&mut self, words: &str) {
        let end = self.wait(&format!("{words:?}"), |watch| {
            let text = watch.text();
            text[watch.position..].find(words).map(|at| watch.position + at + words.len())
        });
        self.position = end;
    }

    /// Waits for these words wherever they stand, and however they are wrapped.
    pub fn shows(&mut self, words: &str) {
        let wanted = squeezed(words);
        self.wait(&format!("{words:?}"), |watch| squeezed(&watch.text()).contains(&wanted).then_some(()));
    }

    /// Waits for one of these, wherever it stands.
    pub fn shows_one_of(&mut self, words: &[&str]) {
        self.wait(&format!("one of {words:?}"), |watch| {
            let text = watch.text();
            words.iter().any(|words| text.contains(words)).then_some(())
        });
    }

    /// Whether these words have been shown by now.
    pub fn has_said(&self, words: &str) -> bool {
        self.text().contains(words)
    }

    /// Waits for the question about one path, exactly as it has to be. Returns the seconds that are left.
    pub fn asks(&mut self, path: &str, rule: &str, kind: &str, shown: &str) -> u64 {
        self.says(&format!(
            "keep watch: {path} changed ({rule}, {kind}, {shown}). Keep it? [a]ccept / [r]eject; rejected in "
        ));
        self.wait("the seconds", |watch| {
            let text = watch.text();
            let rest = &text[watch.position..];
            rest.split_once('s').map(|(seconds, _)| seconds.trim().parse().expect("a number of seconds"))
        })
    }

    // What is typed.

    /// Types at once.
    pub fn types(&mut self, bytes: &[u8]) {
        self.keyboard.as_mut().expect("there is a keyboard").write_all(bytes).expect("typed");
    }

    /// Lets the time pass after which keys count for what is on the screen.
    pub fn settle(&self) {
        pause(SETTLED);
    }

    /// Types one key after the question has stood long enough, and again as long as the words do not come: what the
    /// program sees later than we do may have started the time anew.
    pub fn answers(&mut self, key: &[u8], words: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.settle();
            self.types(key);
            let again = Instant::now() + Duration::from_millis(1500);
            while Instant::now() < again {
                if let Some(at) = self.text()[self.position..].find(words) {
                    self.position += at + words.len();
                    return;
                }
                let seen = self.shared.seen();
                drop(self.shared.news.wait_timeout(seen, Duration::from_millis(20)).expect("no panic"));
            }
            assert!(Instant::now() < deadline, "no {words:?}; the terminal shows {:?}", self.text());
        }
    }

    /// Keeps the change on screen.
    pub fn accepts(&mut self, path: &str) {
        self.answers(b"a", &format!("keep watch: {path} accepted"));
    }

    /// Refuses the change on screen.
    pub fn rejects(&mut self, path: &str) {
        self.answers(b"r", &format!("keep watch: {path} restored (rejected)"));
    }

    // The process and its terminal.

    /// The process id; that of the shell, where that has not become the program.
    pub fn pid(&self) -> Pid {
        let pid = self.child.process_id().expect("it runs");
        Pid::from_raw(i32::try_from(pid).expect("a process id")).expect("not zero")
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    /// Reads nothing of what is shown any more.
    pub fn stops_reading(&self) {
        self.shared.seen().paused = true;
    }

    /// Reads again.
    pub fn reads_again(&self) {
        self.shared.seen().paused = false;
        self.shared.news.notify_all();
    }

    /// Another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        (self.columns, self.rows) = (columns, rows);
        self.master.as_ref().expect("there is a terminal").resize(size(columns, rows)).expect("another size");
    }

    /// Whether the terminal echoes what is typed; not while it is raw.
    pub fn echoes(&self) -> bool {
        const ECHO: u64 = 0x8;
        let modes = self.master.as_ref().expect("there is a terminal").get_termios().expect("modes");
        let flags = u64::from(modes.local_flags.bits());
        flags & ECHO != 0
    }

    /// The device.
    pub fn device(&self) -> PathBuf {
        self.master.as_ref().expect("there is a terminal").tty_name().expect("it has a name")
    }

    /// The terminal goes away, as when its window is closed.
    pub fn hangs_up(&mut self) {
        self.shared.seen().closing = true;
        // The reader waits for bytes, and has to let go of the terminal.
        let mut device = fs::File::options()
            .write(true)
            .custom_flags(i32::try_from(OFlags::NOCTTY.bits()).expect("a small number"))
            .open(self.device())
            .expect("opens");
        device.write_all(b"\n").expect("writes");
        drop(device);
        self.reader.take().expect("has a reader").join().expect("ends");
        self.keyboard = None;
        self.master = None;
    }

    // The end.

    /// Ends it by SIGTERM and returns what it left.
    pub fn stop(self) -> Ended {
        self.signal(Signal::TERM);
        self.finish()
    }

    /// Ends it without giving it a chance.
    pub fn killed(mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    /// Waits until it ends by itself, and returns what it left.
    pub fn finish(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                break status;
            }
            assert!(Instant::now() < deadline, "still running; the terminal shows {:?}", self.text());
            pause(Duration::from_millis(5));
        };
        if let Some(reader) = self.reader.take() {
            self.reads_again();
            reader.join().expect("ends");
        }
        let output = fs::read_to_string(&self.output).expect("standard output is text");
        Ended { code: status.exit_code(), output, text: self.text() }
    }
}

fn read(mut reader: Box<dyn Read + Send>, shared: &Shared) {
    let mut buffer = [0; 4096];
    loop {
        let mut seen = shared.seen();
        while seen.paused && !seen.closing {
            seen = shared.news.wait(seen).expect("nobody panics");
        }
        drop(seen);
        // The end of the last program on the terminal is an error here.
        let count = reader.read(&mut buffer).unwrap_or(0);
        let mut seen = shared.seen();
        seen.raw.extend_from_slice(&buffer[..count]);
        seen.last = Instant::now();
        seen.ended = count == 0;
        let over = seen.ended || seen.closing;
        drop(seen);
        shared.news.notify_all();
        if over {
            return;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut seen = self.shared.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        (seen.paused, seen.closing) = (false, true);
        drop(seen);
        self.shared.news.notify_all();
        let _may_have_ended = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Ended {
    /// The report.
    pub fn report(&self) -> Value {
        let lines: Vec<&str> = self.output.lines().collect();
        assert_eq!(lines.len(), 1, "standard output is not one line: {:?}; {}", self.output, self.text);
        serde_json::from_str(lines[0]).expect("standard output is one JSON object")
    }

    /// Path and outcome of each decision.
    pub fn outcomes(&self) -> Vec<(String, String)> {
        let report = self.report();
        let rows = report["decisions"].as_array().expect("a list").iter();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        rows.map(|row| (text(&row["path"]), text(&row["outcome"]))).collect()
    }

    /// Checks exit code and decisions, each as `path outcome`.
    pub fn came_to(&self, code: u32, decisions: &[&str]) -> &Self {
        let found: Vec<String> =
            self.outcomes().into_iter().map(|(path, outcome)| format!("{path} {outcome}")).collect();
        assert_eq!(found, decisions, "{}", self.text);
        assert_eq!(self.code, code, "{}", self.text);
        self
    }

    /// Checks that it was a refusal with this code, on both outputs, and returns the message.
    pub fn refused(&self, code: &str) -> String {
        assert_eq!(self.code, 2, "{}", self.text);
        assert!(self.text.contains(&format!("[{code}]")), "{}", self.text);
        assert!(!self.text.contains("undecided changes are restored"), "{}", self.text);
        let object = self.report();
        assert_eq!((&object["status"], &object["exit_code"]), (&"failed".into(), &2.into()));
        assert_eq!(object["error_code"], code, "{object}");
        let hints = object["fix_hints"].as_array().expect("a list");
        assert!(!hints.is_empty() && hints.iter().all(|hint| hint.as_str().is_some_and(|hint| !hint.is_empty())));
        assert_eq!(object.as_object().expect("an object").len(), 5, "{object}");
        object["message"].as_str().expect("a text").to_owned()
    }
}
