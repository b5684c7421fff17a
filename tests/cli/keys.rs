//! Which keys answer, and which never do.

use crate::support::{Sandbox, Watch, sha};

/// A watch with a question on screen that has stood long enough.
fn asked(lab: &Sandbox) -> Watch {
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    lab.write(".env", b"A=1\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch
}

/// What was typed has not answered: the question can still be rejected.
fn is_still_open(lab: &Sandbox, mut watch: Watch) {
    watch.rejects(".env");
    assert!(lab.has_env());
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn keys_typed_before_the_question_do_not_answer_it() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--decision-timeout", "300"]);
    watch.types(b"a");
    lab.write(".env", b"A=1\n");
    watch.types(b"a");
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch.types(b"a");
    is_still_open(&lab, watch);
}

#[test]
fn keys_do_not_count_again_when_the_question_changes() {
    let lab = Sandbox::new();
    let mut watch = asked(&lab);
    watch.settle();
    lab.write(".env", b"A=2\n");
    watch.asks(".env", "secrets", "modified", &sha(b"A=2\n"));
    watch.types(b"a");
    is_still_open(&lab, watch);
}

#[test]
fn a_paste_answers_nothing() {
    let lab = Sandbox::new();
    let mut watch = asked(&lab);
    watch.settle();
    for paste in [&b"\x1b[200~a\x1b[201~"[..], b"aaaa", b"yes, accept\ra", b"a\n"] {
        watch.types(paste);
        watch.settle();
    }
    is_still_open(&lab, watch);
}

#[test]
fn enter_and_other_keys_answer_nothing() {
    let lab = Sandbox::new();
    let mut watch = asked(&lab);
    for key in [&b"\r"[..], b"\n", b" ", b"A", b"y", b"\x1b[A", b"\x1ba", b"\x04", b"\0"] {
        watch.settle();
        watch.types(key);
    }
    watch.settle();
    watch.settle();
    is_still_open(&lab, watch);
}

#[test]
fn the_keys_are_told_on_request_and_the_question_stays() {
    let lab = Sandbox::new();
    let mut watch = asked(&lab);
    watch.answers(b"?", "  a  keep the change; it becomes the new baseline");
    watch.says("keep watch: .env changed (secrets, modified");
    is_still_open(&lab, watch);
}

#[test]
fn the_terminal_is_raw_while_watching_and_as_it_was_afterwards() {
    let lab = Sandbox::new();
    let script = "\"$KEEP\" watch --json \"$@\" >\"$OUT\"; echo ended $?; read line; echo got \"$line\"";
    let mut watch = Watch::start(&lab, script, &[], 200, 50);
    watch.says("undecided changes");
    watch.wait("raw mode", |watch| (!watch.echoes()).then_some(()));
    watch.types(b"\x03");
    watch.says("ended 0");
    watch.wait("the modes from before", |watch| watch.echoes().then_some(()));
    watch.types(b"words\n");
    watch.says("got words");
}
