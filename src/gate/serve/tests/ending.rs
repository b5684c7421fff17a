//! The end.

use platform::terminal::InputEvent;
use serde_json::json;

use super::super::{End, Message};
use super::lab::{Seen, Wish, lab, made};
use crate::gate::audit::AuditEvent;
use crate::gate::wire::{FromClient, FromGate};

#[test]
fn what_waits_is_denied_and_everybody_is_told_before_the_end() {
    let mut lab = lab();
    let mut clients: Vec<_> = (0..3).map(|_| lab.client()).collect();
    let calls: Vec<_> =
        clients.iter_mut().enumerate().map(|(number, client)| client.write(&format!("{number}"), "x")).collect();
    for client in &mut clients {
        client.call("file_read", json!({"path": "absent"}));
    }
    lab.end();
    for (client, call) in clients.iter_mut().zip(calls) {
        assert_eq!(client.denied(call), "gone");
        assert!(client.hears_the_end().is_empty());
    }
    assert_eq!(lab.ended(), End::Signal("SIGTERM"));
    while lab.seen() != Seen::Finished {}
    assert!(lab.tree.look().done.is_empty());
    let audit = lab.paper.look().audit.clone();
    assert!(matches!(audit.last(), Some(AuditEvent::Ended { why }) if why == "signal"), "{audit:?}");
}

#[test]
fn a_terminal_that_hangs_up_or_an_interrupt_ends_it_too() {
    for (message, end, why) in [
        (Message::Input(InputEvent::HungUp), End::Signal("SIGHUP"), "hangup"),
        (
            Message::Input(InputEvent::Bytes { bytes: b"\x03".to_vec(), at: Default::default() }),
            End::Signal("SIGINT"),
            "interrupt",
        ),
    ] {
        let mut lab = lab();
        let mut client = lab.client();
        let call = client.write("a.txt", "x");
        lab.question_about("file a.txt");
        lab.to_core.send(message).expect("the gate runs");
        assert_eq!(client.denied(call), "gone");
        assert_eq!(lab.ended(), end);
        let audit = lab.paper.look().audit.clone();
        assert_eq!(audit.last(), Some(&AuditEvent::Ended { why: why.to_owned() }));
    }
}

#[test]
fn a_change_that_was_begun_is_finished_and_its_client_learns_it() {
    let mut lab = lab();
    let mut client = lab.client();
    lab.tree.set(|tree| tree.changes_wait = true);
    let begun = client.write("a.txt", "x");
    lab.question_about("file a.txt");
    lab.press(b"o");
    lab.settled();
    let read = client.start("file_read", json!({"path": "b.txt"}));
    client.say(&FromClient::ListGrants);
    assert!(matches!(client.hear(), FromGate::SessionGrants { .. }), "so that the read has been taken");
    lab.end();
    lab.tree.set(|tree| tree.changes_wait = false);
    assert_eq!(client.fails(read), "the gate has ended before this was done");
    client.works(begun);
    lab.ended();
    assert_eq!(lab.content("a.txt").as_deref(), Some("x"));
}

#[test]
fn a_client_that_does_not_listen_delays_the_end_by_a_second_at_most() {
    let mut lab = lab();
    lab.tree.set(|tree| tree.put("big", &"x".repeat(1 << 20)));
    let deaf = super::lab::Client::deaf(&lab);
    for id in 1..=20 {
        let call =
            FromClient::Call { id, tool: "file_read".into(), arguments: super::lab::object(json!({"path": "big"})) };
        crate::gate::frame::write(&mut &deaf, &call).expect("writes");
    }
    let mut client = lab.client();
    client.call("file_read", json!({"path": "big"}));
    let began = std::time::Instant::now();
    lab.end();
    lab.ended();
    assert!(began.elapsed() < std::time::Duration::from_secs(4), "{:?}", began.elapsed());
    drop(deaf);
}

#[test]
fn a_gate_for_one_client_is_strict_and_ends_with_it() {
    let mut lab = made(Wish { only: true, has_terminal: false, guarded: true, ..Wish::default() });
    let mut client = lab.first.take().expect("it has one");
    client.hello(false);
    lab.tree.set(|tree| tree.put("a.txt", "here"));
    let read = client.start("file_read", json!({"path": "a.txt"}));
    client.works(read);
    let call = client.write("b.txt", "x");
    assert_eq!(client.denied(call), "unattended");
    let note = client.start("memory_write", json!({"path": "a.md", "summary": "s", "content": "c"}));
    assert_eq!(client.denied(note), "unattended");
    lab.paper.set(|paper| {
        paper.grants.push(crate::gate::pattern::Grant::parse("file", "b.txt").expect("a grant"));
        paper.changed = true;
    });
    let call = client.write("b.txt", "x");
    client.works(call);
    client.leave();
    assert_eq!(lab.ended(), End::Left);
}

#[test]
fn what_waits_for_a_client_is_written_before_it_is_cut_off() {
    let mut lab = lab();
    let mut client = lab.client();
    let calls: Vec<_> = (0..50).map(|number| client.write(&format!("{number}"), "x")).collect();
    lab.question_about("file 0");
    // A read that comes back shows that all of them have been taken.
    client.call("file_read", json!({"path": "absent"}));
    lab.end();
    let heard = client.hears_the_end();
    let denied = heard.iter().filter(|message| matches!(message, FromGate::Done { .. })).count();
    assert_eq!(denied, calls.len());
    lab.ended();
}
