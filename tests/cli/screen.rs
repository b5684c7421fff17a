//! What is drawn: narrow and changing terminals, names that would draw themselves, terminals that do not listen.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Instant;

use rustix::process::Signal;

use crate::support::{Content, Sandbox, Watch, fresh, has_python, python, sha, skip, squeezed, until};

const JSON: &str = "exec \"$KEEP\" watch --json \"$@\" >\"$OUT\"";

#[test]
fn on_a_narrow_terminal_the_question_wraps_and_is_answered() {
    let lab = Sandbox::new();
    let mut watch = Watch::start(&lab, JSON, &["--decision-timeout", "300"], 20, 24);
    watch.shows("undecided changes are restored after 300 s");
    let content = fresh();
    lab.write(".env", &content);
    let question = format!(
        "keep watch: .env changed (secrets, modified, {}). Keep it? [a]ccept / [r]eject; rejected in 29",
        sha(&content)
    );
    watch.wait("the question in rows", |watch| squeezed(&watch.screen()).contains(&squeezed(&question)).then_some(()));
    watch.settle();
    watch.types(b"r");
    watch.shows(".env restored (rejected)");
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn on_an_ordinary_terminal_no_word_is_torn_and_the_keys_have_a_row_of_their_own() {
    for columns in [60, 80, 100] {
        let lab = Sandbox::new();
        let mut watch = Watch::start(&lab, JSON, &["--decision-timeout", "300"], columns, 24);
        watch.shows("undecided changes are restored after 300 s");
        lab.write("services/payments/.env", b"A=1\n");
        let row = "  Keep it? [a]ccept / [r]eject; rejected in ";
        watch.wait("the keys", |watch| watch.screen().lines().any(|line| line.starts_with(row)).then_some(()));
        let screen = watch.screen();
        for word in ["services/payments/.env", "secrets,", "added,", "sha256"] {
            assert!(screen.contains(word), "{columns} columns: {word:?} is torn in\n{screen}");
        }
        watch.stop().came_to(3, &["services/payments/.env restored_at_exit"]);
    }
}

#[test]
fn a_resize_draws_the_question_again_and_it_can_be_answered() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write(".env", b"A=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    let whole = squeezed(&format!(".env changed (secrets, modified, {}). Keep it?", sha(b"A=1\n")));
    for columns in [30, 9, 1, 120] {
        let before = watch.text().len();
        watch.resize(columns, 12);
        watch.wait("the question again", |watch| squeezed(&watch.text()[before..]).contains(&whole).then_some(()));
    }
    watch.rejects(".env");
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn a_name_can_neither_draw_nor_ring_nor_reorder() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    let name = ".env.\x1b]0;owned\x07\x1b[2J\r\nkeep watch: all is well\u{202e}\u{200b}";
    lab.write(name, b"A=1\n");
    watch.says("keep watch: .env.\\x1b]0;owned\\x07\\x1b[2J\\r\\nkeep watch: all is well");
    let raw = watch.raw();
    for hidden in [&b"\x1b]0;"[..], b"\x1b[2J", "\u{202e}".as_bytes(), "\u{200b}".as_bytes()] {
        assert!(!raw.windows(hidden.len()).any(|bytes| bytes == hidden), "{hidden:?}");
    }
    watch.settle();
    watch.types(b"r");
    until("the removal", || lab.content(name) == Content::Absent);
    let ended = watch.stop();
    assert!(!ended.output.contains('\u{202e}') && !ended.output.contains('\u{200b}'), "{}", ended.output);
    assert_eq!(ended.report()["decisions"][0]["path"], name, "the name is lost in the report");
}

#[test]
fn a_name_that_is_not_text_is_told_by_its_bytes() {
    let lab = Sandbox::new();
    let name = OsStr::from_bytes(b".env.\xff\\x");
    if fs::write(lab.path(name), b"A=1\n").is_err() {
        return skip("any names");
    }
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write(name, b"A=2\n");
    watch.says("keep watch: .env.\\xff\\x changed (secrets, modified");
    watch.settle();
    watch.types(b"r");
    until("the old content", || lab.content(name) == Content::File(0o644, b"A=1\n".to_vec()));
    let report = watch.stop().report();
    let row = &report["decisions"][0];
    assert_eq!((&row["path"], &row["path_hex"]), (&".env.\\xff\\\\x".into(), &"2e656e762eff5c78".into()));
}

#[test]
fn a_terminal_that_takes_nothing_does_not_keep_a_deadline_from_passing() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "2"]);
    watch.stops_reading();
    // Enough to fill the terminal: each change is a line of its own.
    for number in 0..400 {
        lab.write(format!("d{number}/{}/package-lock.json", "x".repeat(200)), b"{}");
    }
    lab.write(".env", b"A=1\n");
    until("the restore", || lab.has_env());
    watch.reads_again();
    watch.says("keep watch: the terminal took nothing for a while; some lines were not shown, keep log has them");
    watch.stop().came_to(3, &[".env timed_out"]);
}

#[test]
fn an_a_typed_for_a_question_the_terminal_never_took_does_not_count() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    watch.stops_reading();
    for number in 0..400 {
        lab.write(format!("d{number}/{}/package-lock.json", "x".repeat(200)), b"{}");
    }
    until("the entries", || lab.journal().matches("\"kept\"").count() == 400);
    lab.write(".env", b"A=1\n");
    watch.settle();
    watch.settle();
    watch.types(b"a");
    watch.settle();
    watch.reads_again();
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch.rejects(".env");
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn suspended_under_a_shell_it_gives_the_terminal_back_and_goes_on_with_fg() {
    let lab = Sandbox::new();
    let script = "set -m; \"$KEEP\" watch --json \"$@\" >\"$OUT\"; echo stopped; read go; fg";
    let mut watch = Watch::start(&lab, script, &["--decision-timeout", "300"], 200, 50);
    watch.says("undecided changes");
    lab.write(".env", b"A=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch.wait("raw mode", |watch| (!watch.echoes()).then_some(()));
    watch.settle();
    watch.types(b"\x1a");
    watch.says("stopped");
    watch.wait("the shell's modes", |watch| watch.echoes().then_some(()));
    lab.write("CLAUDE.md", b"unseen\n");
    watch.types(b"go\n");
    watch.says("keep watch: .env changed");
    watch.rejects(".env");
    watch.asks("CLAUDE.md", "agent_config", "added", &sha(b"unseen\n"));
    watch.rejects("CLAUDE.md");
    watch.types(b"\x03");
    watch.finish().came_to(3, &[".env rejected", "CLAUDE.md rejected"]);
}

#[test]
fn where_nobody_could_continue_it_ctrl_z_draws_the_question_once_in_its_place() {
    let lab = Sandbox::new();
    // It leads its session: the kernel stops no group that no shell looks after.
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write(".env", b"A=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch.settle();
    let count = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches("\x1b[?2004h").count();
    let before = count(&watch.raw());
    watch.types(b"\x1a");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch.rejects(".env");
    assert_eq!(count(&watch.raw()), before + 1, "raw mode is taken back once");
    assert!(!watch.screen().contains("Keep it?"), "{}", watch.screen());
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn stopped_for_two_seconds_it_catches_up_with_what_it_missed() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    watch.signal(Signal::STOP);
    lab.write(".env", b"A=1\n");
    lab.write("new/.env", b"A=1\n");
    crate::support::pause(std::time::Duration::from_secs(2));
    watch.signal(Signal::CONT);
    // One burst or two, as the kernel tells of them.
    watch.shows_one_of(&["2 protected files changed", "waiting: 1 more"]);
    let ended = watch.stop();
    assert_eq!(ended.code, 3);
    assert!(ended.report()["lost"]["stopped"].as_u64() >= Some(1), "{}", ended.output);
    assert!(lab.has_env());
}

#[test]
fn a_child_of_the_watchs_terminal_can_push_keys_only_as_root_or_where_the_system_lets_it() {
    if !has_python() {
        return skip("python3");
    }
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write(".env", b"A=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch.settle();
    // An agent of the same user, in a session of its own: the terminal is not its own.
    let script = "import fcntl, os, sys, termios\n\
                  fd = os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY)\n\
                  try: fcntl.ioctl(fd, termios.TIOCSTI, b'a')\n\
                  except OSError as why: sys.exit(why.errno)\n";
    let device = watch.device();
    let pushed = python(script, &[device.as_path()]).status().expect("runs");
    if crate::support::is_root() {
        // Nothing can be kept from root; `docs/limits.md` says so.
        assert!(pushed.success() || pushed.code().is_some());
        return;
    }
    assert!(!pushed.success(), "an ordinary user pushed a key into another session's terminal");
    watch.rejects(".env");
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn a_burst_of_five_thousand_changes_is_drawn_a_few_times_a_second() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    for number in 0..12 {
        lab.write(format!("s{number}/.env"), b"A=0\n");
    }
    watch.shows_one_of(&["12 protected files changed", "waiting: "]);
    watch.settle();
    let (before, began) = (watch.raw().len(), Instant::now());
    for number in 1..=4000 {
        lab.write(format!("s{}/.env", number % 12), format!("A={number}\n").as_bytes());
        if number % 4 == 0 {
            lab.write(format!("p{number}/package-lock.json"), b"{}");
        }
    }
    until("the entries", || lab.journal().matches("\"kept\"").count() == 1000);
    watch.says("p4000/package-lock.json changed (lockfile, added");
    let written = watch.raw().len() - before;
    // A block of 12 rows and a question has less than 1500 bytes.
    let draws = usize::try_from(began.elapsed().as_millis()).expect("not long") / 50 + 25;
    assert!(written < 1000 * 150 + draws * 1500, "{written} bytes in {:?}", began.elapsed());
    watch.stop();
}
