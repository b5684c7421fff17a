//! The question on a real pseudo-terminal: a small program (this one, started once more) asks as the watch does.

// A test starts programs and has a clock of its own; the policy it tests has neither.
#![allow(clippy::disallowed_methods)]

mod asker;
mod terminal;

use std::time::Duration;

use terminal::Terminal;

/// The program on the terminal; does nothing in an ordinary run of the tests.
#[test]
fn asker() {
    if std::env::var_os("KEEP_TEST_ASKER").is_some() {
        asker::run();
    }
}

#[test]
fn the_question_counts_down_in_place_and_is_answered_by_a_key() {
    let mut terminal = Terminal::start(20, 24, "exec \"$ASKER\"");
    terminal.wait("the question", |text| text.contains("rejectedin30s"));
    terminal.wait("the countdown", |text| text.contains("rejectedin28s"));
    assert!(!terminal.text().contains("30s") && !terminal.text().contains("29s"), "{}", terminal.text());
    terminal.wait("the line above", |text| text.contains("alineabovekeepwatch:.envchanged"));
    terminal.type_in(b"a");
    terminal.wait("the answer", |text| text.contains("key:Accept"));
    assert!(!terminal.echoes());
    terminal.type_in(b"\x03");
    terminal.wait("the end", |text| text.contains("theend"));
    terminal.wait_until("the shell's modes", Terminal::echoes);
}

#[test]
fn a_resize_shows_the_question_again() {
    let mut terminal = Terminal::start(100, 24, "exec \"$ASKER\"");
    terminal.wait("the question", |text| text.contains("rejectedin30s"));
    terminal.resize(30, 10);
    terminal.wait("the question at the new width", |text| text.contains("size:30x10"));
    let whole = "keepwatch:.envchanged(secrets,modified,sha2563467a14afa0c).Keepit?[a]ccept/[r]eject;rejectedin";
    terminal.wait("all of it", |text| text.contains(whole));
}

#[test]
fn suspending_gives_the_terminal_back_and_takes_it_again() {
    let mut terminal = Terminal::start(120, 24, "set -m; \"$ASKER\"; echo stopped; read go; fg");
    terminal.wait("the question", |text| text.contains("rejectedin30s"));
    assert!(!terminal.echoes());
    terminal.type_in(b"\x1a");
    terminal.wait("the shell", |text| text.contains("stopped"));
    assert!(terminal.echoes(), "the shell got a raw terminal");
    terminal.type_in(b"go\n");
    terminal.wait("the question again", |text| {
        text.rsplit("stopped").next().is_some_and(|after| after.contains("[a]ccept"))
    });
    terminal.wait_until("raw mode", |terminal| !terminal.echoes());
    terminal.wait("the countdown", |text| text.contains("continued"));
    terminal.type_in(b"r");
    terminal.wait("the answer", |text| text.contains("key:Reject"));
}

#[test]
fn a_stop_by_signal_is_the_same_as_by_key() {
    let mut terminal = Terminal::start(120, 24, "set -m; \"$ASKER\"; echo stopped; read go; fg");
    terminal.wait("the question", |text| text.contains("rejectedin30s"));
    terminal.signal_asker("TSTP");
    terminal.wait("the shell", |text| text.contains("stopped"));
    assert!(terminal.echoes(), "the shell got a raw terminal");
    terminal.type_in(b"go\n");
    terminal.wait_until("raw mode", |terminal| !terminal.echoes());
}

#[test]
fn in_the_background_nothing_is_taken_from_the_shell_until_it_is_ours() {
    let mut terminal = Terminal::start(120, 24, "set -m; \"$ASKER\" & read go; echo got $go; fg");
    terminal.wait("the question", |text| text.contains("rejectedin30s"));
    assert!(terminal.echoes(), "the terminal of another job was made raw");
    terminal.type_in(b"a\n");
    terminal.wait("the shell", |text| text.contains("gota"));
    terminal.wait_until("raw mode", |terminal| !terminal.echoes());
    assert!(!terminal.text().contains("key:"), "{}", terminal.text());
    terminal.wait("the question again", |text| text.contains("continued"));
    terminal.type_in(b"r");
    terminal.wait("the answer", |text| text.contains("key:Reject"));
}

#[test]
fn without_a_shell_to_continue_us_nothing_stops() {
    let mut terminal = Terminal::start(120, 24, "exec \"$ASKER\"");
    terminal.wait("the question", |text| text.contains("rejectedin30s"));
    terminal.type_in(b"\x1a");
    terminal.wait("the question again", |text| text.contains("continued"));
    assert!(!terminal.echoes());
}

/// How long to wait for what the asker shows.
const PATIENCE: Duration = Duration::from_secs(15);
