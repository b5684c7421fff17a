//! Disks that are full, workers that die.

use serde_json::json;

use super::lab::{Wish, lab, made};
use crate::gate::audit::AuditEvent;

#[test]
fn the_next_question_is_put_though_the_answer_to_the_last_could_not_be_stored() {
    let lab = lab();
    let mut client = lab.client();
    lab.paper.set(|paper| paper.no_room_for_grants = true);
    let first = client.write("a.txt", "1");
    lab.question_about("file a.txt");
    let second = client.write("b.txt", "1");
    lab.press(b"a");
    client.works(first);
    assert!(lab.settled().contains("a.txt"));
    lab.question_about("file b.txt");
    lab.press(b"n");
    assert_eq!(client.denied(second), "declined");
}

#[test]
fn a_grant_that_cannot_be_stored_is_told_and_does_not_hold() {
    let lab = lab();
    let mut client = lab.client();
    lab.paper.set(|paper| paper.no_room_for_grants = true);
    let call = client.write("a.txt", "1");
    lab.question_about("file a.txt");
    lab.press(b"a");
    client.works(call);
    let line = lab.line_with("not remembered");
    assert!(line.contains("a.txt") && line.contains("no space left"), "{line}");
    assert_eq!(lab.settled(), "keep gate: file a.txt: allowed, and not remembered");
    assert!(lab.paper.look().audit.iter().any(|event| matches!(event, AuditEvent::Fault { .. })));
    let call = client.write("a.txt", "2");
    lab.question_about("file a.txt");
    lab.press(b"n");
    assert_eq!(client.denied(call), "declined");
}

#[test]
fn what_cannot_be_written_down_is_not_done() {
    let lab = lab();
    let mut client = lab.client();
    let call = client.write("a.txt", "1");
    lab.question_about("file a.txt");
    lab.paper.set(|paper| paper.no_room_for_audit = true);
    lab.press(b"a");
    assert!(client.fails(call).contains("audit"));
    assert_eq!(lab.content("a.txt"), None);
    assert!(lab.paper.look().grants.is_empty(), "nothing is granted without an entry");
    lab.line_with("audit cannot be written");
    assert_eq!(lab.settled(), "keep gate: file a.txt: allowed, and not done");
    let read = client.start("file_read", json!({"path": "a.txt"}));
    assert!(client.fails(read).contains("does not exist"), "what is not gated goes on");
    let call = client.write("a.txt", "1");
    lab.question_about("file a.txt");
    lab.press(b"s");
    assert!(client.fails(call).contains("audit"));
    lab.paper.set(|paper| paper.no_room_for_audit = false);
    let call = client.write("a.txt", "2");
    lab.question_about("file a.txt");
    lab.press(b"o");
    client.works(call);
}

#[test]
fn grants_that_cannot_be_read_are_told_once_and_hold_nothing() {
    let lab = lab();
    let mut client = lab.client();
    lab.paper.set(|paper| paper.fault = Some("grants.json:1:1: no list".to_owned()));
    for content in ["1", "2"] {
        let call = client.write("a.txt", content);
        lab.question_about("file a.txt");
        lab.press(b"n");
        assert_eq!(client.denied(call), "declined");
    }
    let told: Vec<_> = {
        let paper = lab.paper.look();
        paper.audit.iter().filter(|event| matches!(event, AuditEvent::Fault { .. })).cloned().collect()
    };
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn a_worker_that_dies_is_an_error_of_its_call_and_the_next_one_works() {
    let lab = lab();
    lab.tree.set(|tree| tree.put("a.txt", "here"));
    let mut client = lab.client();
    let dies = client.start("file_read", json!({"path": "deadly"}));
    assert!(client.fails(dies).contains("the worker died"));
    let read = client.start("file_read", json!({"path": "a.txt"}));
    client.works(read);
}

#[test]
fn a_reminder_that_no_desktop_shows_is_a_line_at_the_terminal() {
    let lab = lab();
    let mut client = lab.client();
    let call = client.start("remind", json!({"when": "in 1s", "message": "look\nup\u{1b}[2J"}));
    client.works(call);
    let line = lab.line_with("reminder");
    assert!(line.starts_with("keep gate: ") && line.contains("look\\nup\\x1b[2J"), "{line}");
    let call = client.start("notify", json!({"message": "hello"}));
    assert!(client.fails(call).contains("no desktop"));
}

#[test]
fn a_question_that_nobody_answers_is_denied_in_time() {
    let lab = made(Wish { ask_timeout: std::time::Duration::from_millis(300), ..Wish::default() });
    let mut client = lab.client();
    let (first, second) = (client.write("a.txt", "x"), client.write("b.txt", "y"));
    lab.question_about("file a.txt");
    assert_eq!(client.denied(first), "timeout");
    assert_eq!(client.denied(second), "timeout");
    assert_eq!(lab.settled(), "keep gate: file a.txt: denied (timeout)");
    assert!(lab.content("a.txt").is_none() && lab.content("b.txt").is_none());
}
