//! A terminal with a shell in it, and what it shows.

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::PATIENCE;

pub struct Terminal {
    master: Box<dyn MasterPty + Send>,
    keyboard: Box<dyn Write + Send>,
    shell: Box<dyn Child + Send + Sync>,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

fn size(columns: u16, rows: u16) -> PtySize {
    PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }
}

fn not_zero(value: u16) -> NonZeroU16 {
    NonZeroU16::new(value).expect("not zero")
}

impl Terminal {
    /// A shell that runs the script, in which `"$ASKER"` is the program that asks.
    pub fn start(columns: u16, rows: u16, script: &str) -> Self {
        let pair = native_pty_system().openpty(size(columns, rows)).expect("a pty");
        let this = std::env::current_exe().expect("our own path");
        let mut shell = CommandBuilder::new("/bin/sh");
        // The harness of the tests talks on standard output; the asker finds the terminal on standard input.
        let asker = format!("'{}' --exact asker --nocapture --test-threads=1 >/dev/null", this.display());
        shell.args(["-c", &script.replace("\"$ASKER\"", &asker)]);
        // Not the home directory, which another user may not enter.
        shell.cwd("/");
        shell.env("KEEP_TEST_ASKER", "1");
        let shell = pair.slave.spawn_command(shell).expect("a shell");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let keyboard = pair.master.take_writer().expect("a writer");
        let screen = vt100::Parser::new(not_zero(rows), not_zero(columns), 100);
        Self { master: pair.master, keyboard, shell, output, screen }
    }

    /// What is on the screen, without blanks and wraps.
    pub fn text(&mut self) -> String {
        while let Ok(bytes) = self.output.try_recv() {
            self.screen.process(&bytes);
        }
        let screen = self.screen.screen();
        screen.rows(0, screen.size().1.get()).collect::<String>().replace(' ', "")
    }

    /// Waits until what is on the screen is as wanted.
    pub fn wait(&mut self, what: &str, wanted: impl Fn(&str) -> bool) {
        self.wait_until(what, |terminal| wanted(&terminal.text()));
    }

    /// Waits for a condition.
    pub fn wait_until(&mut self, what: &str, mut wanted: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(self) {
            assert!(Instant::now() < deadline, "no {what}; the screen shows {:?}", self.text());
            match self.output.recv_timeout(Duration::from_millis(20)) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => thread::park_timeout(Duration::from_millis(20)),
            }
        }
    }

    /// Types, after the question has been on screen long enough.
    pub fn type_in(&mut self, bytes: &[u8]) {
        let settled = Instant::now() + keepwatch::ask::keys::SETTLE + Duration::from_millis(50);
        self.wait_until("time to read", |_| Instant::now() >= settled);
        self.keyboard.write_all(bytes).expect("typed");
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.master.resize(size(columns, rows)).expect("another size");
        self.screen.screen_mut().set_size(not_zero(rows), not_zero(columns));
    }

    /// Whether the terminal echoes what is typed; not while it is raw.
    pub fn echoes(&mut self) -> bool {
        const ECHO: u64 = 0x8;
        let modes = self.master.get_termios().expect("modes");
        let flags = u64::from(modes.local_flags.bits());
        flags & ECHO != 0
    }

    /// Sends a signal to the job in the foreground.
    pub fn signal_asker(&mut self, name: &str) {
        let group = self.master.process_group_leader().expect("a foreground job");
        let sent = Command::new("kill").args([&format!("-{name}"), "--", &format!("-{group}")]).status();
        assert!(sent.expect("kill runs").success());
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The hang-up of the terminal ends the asker; the shell might wait for it.
        let _may_have_ended = self.shell.kill();
        let _status = self.shell.wait();
    }
}
