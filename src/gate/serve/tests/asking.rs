//! Questions, from the call to the result.

use serde_json::json;

use super::super::{GateKey, Message};
use super::lab::{Seen, lab};
use crate::gate::audit::AuditEvent;
use crate::gate::machine::QuestionId;
use crate::gate::wire::{FromClient, FromGate, Outcome};

#[test]
fn a_read_is_answered_without_a_question() {
    let lab = lab();
    lab.tree.set(|tree| tree.put("a.txt", "here"));
    let mut client = lab.client();
    let read = client.start("file_read", json!({"path": "a.txt"}));
    assert_eq!(client.works(read)["content"], "here");
    let absent = client.start("file_read", json!({"path": "b.txt"}));
    assert_eq!(client.fails(absent), "b.txt does not exist");
    lab.nothing_seen();
}

#[test]
fn a_write_runs_when_the_person_says_so_and_the_audit_says_it_first() {
    let lab = lab();
    let mut client = lab.client();
    client.say(&FromClient::Name { name: "some-agent".into() });
    let call = client.write("notes/a.md", "alpha");
    assert_eq!(lab.question_about("file notes/a.md"), ["create, 5 bytes"]);
    assert_eq!(lab.content("notes/a.md"), None);
    lab.press(b"o");
    client.works(call);
    assert_eq!(lab.settled(), "keep gate: file notes/a.md: allowed once");
    assert_eq!(lab.content("notes/a.md").as_deref(), Some("alpha"));
    let audit = lab.paper.look().audit.clone();
    assert!(matches!(&audit[0], AuditEvent::Started { command, .. } if command == "gate"), "{audit:?}");
    assert!(
        matches!(&audit[1], AuditEvent::Asked { caller, tool, .. } if (&**caller, &**tool) == ("some-agent", "file_write"))
    );
    assert!(matches!(&audit[2], AuditEvent::Answered { answer, .. } if answer == "once"), "{audit:?}");
}

#[test]
fn a_no_leaves_everything_as_it_was() {
    let lab = lab();
    let mut client = lab.client();
    let call = client.write("a.txt", "x");
    lab.question_about("file a.txt");
    lab.press(b"n");
    assert_eq!(client.denied(call), "declined");
    assert_eq!(lab.settled(), "keep gate: file a.txt: denied (declined)");
    assert_eq!(lab.content("a.txt"), None);
}

#[test]
fn questions_come_in_order_and_none_takes_anothers_place() {
    let lab = lab();
    let mut client = lab.client();
    let calls: Vec<_> = (0..3).map(|number| client.write(&format!("{number}.txt"), "x")).collect();
    lab.question_about("file 0.txt");
    for (number, call) in calls.iter().enumerate() {
        let next = number + 1;
        lab.press(b"o");
        client.works(*call);
        assert_eq!(lab.settled(), format!("keep gate: file {number}.txt: allowed once"));
        if next < calls.len() {
            lab.question_about(&format!("file {next}.txt"));
            assert_eq!(lab.content(&format!("{next}.txt")), None);
        }
    }
}

#[test]
fn identical_calls_share_a_question_and_its_answer() {
    let lab = lab();
    let mut client = lab.client();
    let (one, other) = (client.write("a.txt", "same"), client.write("a.txt", "same"));
    lab.question_about("file a.txt");
    // A read that comes back shows that both calls have been looked at.
    client.call("file_read", json!({"path": "a.txt"}));
    lab.press(b"o");
    client.works(one);
    client.works(other);
    lab.settled();
    lab.nothing_seen();
}

#[test]
fn a_question_that_waited_shows_what_is_there_when_it_is_asked() {
    let lab = lab();
    let mut client = lab.client();
    let first = client.write("a.txt", "first");
    assert_eq!(lab.question_about("file a.txt"), ["create, 5 bytes"]);
    let second = client.write("a.txt", "the second");
    assert!(matches!(lab.seen(), Seen::Question { waiting: 1, .. }), "another number waits");
    lab.press(b"o");
    client.works(first);
    lab.settled();
    assert_eq!(lab.question_about("file a.txt"), ["overwrite, 10 bytes"]);
    lab.press(b"o");
    client.works(second);
    assert_eq!(lab.content("a.txt").as_deref(), Some("the second"));
    lab.settled();
    lab.nothing_seen();
}

#[test]
fn what_a_grant_covers_runs_whatever_was_done_meanwhile() {
    let lab = lab();
    let mut client = lab.client();
    let calls: Vec<_> = (0..4).map(|number| client.write("a.txt", &format!("content {number}"))).collect();
    lab.question_about("file a.txt");
    client.call("file_read", json!({"path": "a.txt"}));
    lab.press(b"s");
    for call in calls {
        client.works(call);
    }
    assert_eq!(lab.tree.look().done.len(), 4);
    let later = client.write("a.txt", "later");
    client.works(later);
    assert_eq!(lab.settled(), "keep gate: file a.txt: allowed, and for this session");
    assert!(lab.line_with("a.txt").contains("granted meanwhile"));
}

#[test]
fn what_changed_after_the_answer_is_asked_about_again() {
    let lab = lab();
    let mut client = lab.client();
    lab.tree.set(|tree| tree.changes_wait = true);
    let call = client.write("a.txt", "mine");
    assert_eq!(lab.question_about("file a.txt"), ["create, 4 bytes"]);
    lab.press(b"o");
    lab.settled();
    lab.tree.set(|tree| {
        tree.put("a.txt", "somebody else's");
        tree.changes_wait = false;
    });
    assert_eq!(lab.question_about("file a.txt"), ["overwrite, 4 bytes"]);
    assert_eq!(lab.content("a.txt").as_deref(), Some("somebody else's"));
    lab.press(b"n");
    assert_eq!(client.denied(call), "declined");
}

#[test]
fn an_answer_for_good_is_stored_and_holds_until_it_is_taken_away() {
    let lab = lab();
    let mut client = lab.client();
    let call = client.write("a.txt", "1");
    lab.question_about("file a.txt");
    lab.press(b"a");
    client.works(call);
    assert_eq!(lab.paper.look().grants.len(), 1);
    let call = client.write("a.txt", "2");
    client.works(call);
    lab.settled();
    lab.nothing_seen();
    lab.paper.set(|paper| {
        paper.grants.clear();
        paper.changed = true;
    });
    let call = client.write("a.txt", "3");
    lab.question_about("file a.txt");
    lab.press(b"n");
    assert_eq!(client.denied(call), "declined");
}

#[test]
fn a_session_ends_when_it_is_told_to() {
    let lab = lab();
    let mut client = lab.client();
    let call = client.write("notes/a.md", "1");
    lab.question_about("file notes/a.md");
    lab.press(b"w");
    client.works(call);
    let mut person = lab.client();
    person.say(&FromClient::ListGrants);
    match person.hear() {
        FromGate::SessionGrants { grants } => {
            assert_eq!((&*grants[0].kind, &*grants[0].target), ("file", "notes/*"));
        }
        other => panic!("{other:?}"),
    }
    person.say(&FromClient::ForgetSession);
    assert_eq!(person.hear(), FromGate::SessionGrants { grants: Vec::new() });
    lab.settled();
    let call = client.write("notes/b.md", "2");
    lab.question_about("file notes/b.md");
    lab.press(b"n");
    assert_eq!(client.denied(call), "declined");
}

#[test]
fn what_is_no_file_is_asked_about_only_when_nobody_watches() {
    let lab = super::lab::made(super::lab::Wish { guarded: true, ..Default::default() });
    let note = json!({"path": "plans/next.md", "summary": "next", "content": "milk\n"});
    let mut chat = lab.client();
    assert!(matches!(chat.call("memory_write", note.clone()), Outcome::Ok(_)));
    let mut run = lab.stranger();
    run.hello(true);
    let call = run.start("memory_write", note);
    assert_eq!(lab.question_about("memory plans/next.md"), ["a note of 5 bytes, 1 line"]);
    lab.press(b"o");
    run.works(call);
    let refused = run.call("memory_write", json!({"path": "../x.md", "summary": "s", "content": "c"}));
    assert!(matches!(refused, Outcome::Failed(_)), "{refused:?}");
    assert_eq!(run.call("skill_load", json!({"name": "brewing"})), Outcome::Failed("no such skill".into()));
}

/// How the watch is told of this content.
fn digest(content: &str) -> String {
    crate::digest::Digest::of(content.as_bytes()).short()
}

#[test]
fn a_watch_is_told_what_the_person_has_allowed_before_it_is_done() {
    let lab = lab();
    let mut client = lab.client();
    lab.tree.set(|tree| tree.changes_wait = true);
    let call = client.write(".env", "new");
    lab.question_about("file .env");
    assert!(lab.paper.look().told.is_empty(), "nothing is allowed yet");
    lab.press(b"o");
    lab.settled();
    let expected = format!(".env {}", digest("new"));
    drop(lab.paper.wait_while(|paper| paper.told.is_empty()));
    assert_eq!(lab.paper.look().told, std::slice::from_ref(&expected));
    lab.tree.set(|tree| tree.changes_wait = false);
    client.works(call);
    assert_eq!(lab.paper.look().told, [expected, "done".to_owned()]);
}

#[test]
fn a_grant_is_no_answer_that_a_watch_would_be_told() {
    let lab = lab();
    let mut client = lab.client();
    let call = client.write(".env", "first");
    lab.question_about("file .env");
    lab.press(b"s");
    client.works(call);
    let call = client.write(".env", "second");
    client.works(call);
    let told = lab.paper.look().told.clone();
    assert_eq!(told, [format!(".env {}", digest("first")), "done".to_owned(), "done".to_owned()]);
}

#[test]
fn what_was_allowed_and_not_done_is_taken_back() {
    let lab = lab();
    let mut client = lab.client();
    lab.tree.set(|tree| tree.changes_wait = true);
    let call = client.write(".env", "new");
    lab.question_about("file .env");
    lab.press(b"o");
    lab.settled();
    lab.tree.set(|tree| {
        tree.put(".env", "somebody else's");
        tree.changes_wait = false;
    });
    // It is decided anew, and the person says no.
    lab.question_about("file .env");
    assert_eq!(lab.paper.look().told, [format!(".env {}", digest("new")), "not done".to_owned()]);
    lab.press(b"n");
    assert_eq!(client.denied(call), "declined");
}

#[test]
fn a_key_for_a_question_that_is_gone_is_for_no_other() {
    let lab = lab();
    let mut client = lab.client();
    let (one, two) = (client.write("1.txt", "x"), client.write("2.txt", "x"));
    lab.question_about("file 1.txt");
    let press = |question| {
        let pressed = Message::Pressed { question: QuestionId(question), key: GateKey::No };
        lab.to_core.send(pressed).expect("the gate runs");
    };
    press(0);
    assert_eq!(client.denied(one), "declined");
    lab.settled();
    lab.question_about("file 2.txt");
    press(0);
    press(7);
    lab.press(b"o");
    client.works(two);
}
