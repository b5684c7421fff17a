//! Clients that are many, that go away, that do not listen, that say what they should not.

use serde_json::json;

use super::super::message::MOST_CONNECTIONS;
use super::lab::{Client, Wish, lab, made};
use crate::gate::Tool;
use crate::gate::frame;
use crate::gate::wire::{FromClient, FromGate, Outcome, VERSION};

#[test]
fn a_tool_outside_the_cage_is_as_unknown_as_one_that_never_was() {
    let lab = made(Wish { tools: vec![Tool::FileRead, Tool::CodeRun], ..Wish::default() });
    let mut client = lab.stranger();
    assert_eq!(client.hello(false).iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["file_read", "code_run"]);
    for tool in ["file_write", "no_such_tool", "FILE_READ", "", "code_run"] {
        assert_eq!(client.call(tool, json!({"path": "a", "content": "b"})), Outcome::UnknownTool, "{tool}");
    }
    let wrong = client.start("file_read", json!({"path": 7}));
    assert!(client.fails(wrong).contains("file_read"));
    lab.nothing_seen();
}

#[test]
fn a_thousand_calls_at_once_each_get_their_own_result() {
    let lab = lab();
    let mut client = lab.client();
    lab.tree.set(|tree| (0..500).for_each(|number| tree.put(&format!("r{number}"), &format!("{number}"))));
    let calls: Vec<_> = (0..500)
        .map(|number| {
            let read = client.start("file_read", json!({"path": format!("r{number}")}));
            (number, read, client.write(&format!("d/{number}"), "x"))
        })
        .collect();
    lab.question_about("file d/0");
    // Those behind it are settled by the widening, without a question of their own.
    lab.press(b"w");
    for (number, read, write) in calls {
        assert_eq!(client.works(read)["content"], number.to_string());
        client.works(write);
    }
    assert_eq!(lab.tree.look().done.len(), 500);
}

#[test]
fn too_many_open_calls_are_refused_and_the_others_are_not() {
    let lab = lab();
    let mut client = lab.client();
    let calls: Vec<_> = (0..1025).map(|number| client.write(&format!("{number}"), "x")).collect();
    assert!(client.fails(calls[1024]).contains("1024 calls"));
    lab.question_about("file 0");
    client.say(&FromClient::Cancel { id: calls[0], timed_out: false });
    let _one_more = client.write("more", "x");
    let read = client.start("file_read", json!({"path": "absent"}));
    assert!(client.fails(read).contains("1024 calls"), "the one that was withdrawn has been followed by another");
}

#[test]
fn short_calls_with_long_differences_are_refused_before_they_fill_the_memory() {
    let lab = lab();
    let mut client = lab.client();
    let calls: Vec<_> = (0..64).map(|number| client.write(&format!("wide/{number}"), "x")).collect();
    assert!(client.fails(calls[63]).contains("questions that wait"));
    lab.question_about("file wide/0");
    lab.press(b"n");
    lab.settled();
    client.denied(calls[0]);
    let again = client.write("wide/63", "x");
    lab.question_about("file wide/1");
    lab.press(b"w");
    client.works(again);
}

#[test]
fn chores_that_are_withdrawn_are_not_done_and_clients_take_turns() {
    let lab = lab();
    lab.tree.set(|tree| tree.chores_wait = true);
    let (mut busy, mut other) = (lab.client(), lab.client());
    let note = json!({"path": "MEMORY.md"});
    let first = busy.start("memory_read", note.clone());
    let (mut kept, mut last) = (0, 0);
    for number in 0..200 {
        let call = busy.start("memory_read", note.clone());
        if number % 2 == 0 {
            busy.say(&FromClient::Cancel { id: call, timed_out: false });
        } else {
            (kept, last) = (kept + 1, call);
        }
    }
    busy.say(&FromClient::ListGrants);
    assert!(matches!(busy.hear(), FromGate::SessionGrants { .. }), "so that all have been taken");
    let time = other.start("time_now", json!({}));
    other.say(&FromClient::ListGrants);
    assert!(matches!(other.hear(), FromGate::SessionGrants { .. }));
    lab.tree.set(|tree| tree.chores_wait = false);
    other.works(time);
    busy.works(first);
    busy.works(last);
    let chores = lab.tree.look().chores.clone();
    assert_eq!(chores.len(), 1 + kept + 1, "those that were withdrawn were not done");
    let turn = chores.iter().position(|connection| *connection != chores[0]);
    assert!(turn.is_some_and(|turn| turn <= 2), "the other client waited for {turn:?} chores");
}

#[test]
fn a_client_that_goes_takes_its_question_with_it() {
    let lab = lab();
    let (mut leaving, mut staying) = (lab.client(), lab.client());
    leaving.write("a.txt", "x");
    lab.question_about("file a.txt");
    let call = staying.write("b.txt", "y");
    leaving.leave();
    assert_eq!(lab.settled(), "keep gate: file a.txt: denied (cancelled)");
    lab.question_about("file b.txt");
    lab.press(b"o");
    staying.works(call);
    assert_eq!(lab.content("a.txt"), None);
}

#[test]
fn a_withdrawn_call_is_not_answered_and_cannot_be_approved() {
    let lab = lab();
    let mut client = lab.client();
    let call = client.write("a.txt", "x");
    lab.question_about("file a.txt");
    client.say(&FromClient::Cancel { id: call, timed_out: false });
    assert_eq!(lab.settled(), "keep gate: file a.txt: denied (cancelled)");
    lab.press(b"o");
    client.hears_nothing();
    assert_eq!(lab.content("a.txt"), None);
}

#[test]
fn a_call_that_comes_again_takes_the_answer_that_came_too_late_once() {
    let lab = lab();
    let mut client = lab.client();
    let call = client.write("a.txt", "x");
    lab.question_about("file a.txt");
    client.say(&FromClient::Cancel { id: call, timed_out: true });
    client.call("file_read", json!({"path": "a.txt"}));
    lab.press(b"o");
    lab.settled();
    let again = client.write("a.txt", "x");
    client.works(again);
    lab.nothing_seen();
    let once_more = client.write("a.txt", "x");
    lab.question_about("file a.txt");
    lab.press(b"n");
    assert_eq!(client.denied(once_more), "declined");
}

#[test]
fn a_client_that_does_not_listen_holds_up_nobody() {
    let lab = lab();
    lab.tree.set(|tree| tree.put("big", &"x".repeat(1 << 20)));
    let deaf = Client::deaf(&lab);
    for id in 1..=200 {
        let arguments = super::lab::object(json!({"path": "big"}));
        frame::write(&mut &deaf, &FromClient::Call { id, tool: "file_read".into(), arguments }).expect("writes");
    }
    let mut client = lab.client();
    for _ in 0..20 {
        let read = client.start("file_read", json!({"path": "big"}));
        client.works(read);
    }
    let call = client.write("a.txt", "x");
    lab.question_about("file a.txt");
    lab.press(b"o");
    client.works(call);
    // It is still served once it listens.
    for _ in 0..201 {
        frame::read::<FromGate>(&mut &deaf).expect("reads");
    }
}

#[test]
fn a_long_search_holds_up_no_read_and_no_write() {
    let lab = lab();
    lab.tree.set(|tree| {
        tree.put("a.txt", "here");
        tree.searches_wait = true;
    });
    let mut client = lab.client();
    let search = client.start("file_search", json!({"pattern": "*"}));
    let read = client.start("file_read", json!({"path": "a.txt"}));
    client.works(read);
    let write = client.write("b.txt", "x");
    lab.question_about("file b.txt");
    lab.press(b"o");
    client.works(write);
    lab.tree.set(|tree| tree.searches_wait = false);
    client.works(search);
}

#[test]
fn whoever_speaks_out_of_turn_is_told_and_cut_off() {
    let lab = lab();
    let said: [(&str, Vec<FromClient>); 5] = [
        ("hello", vec![FromClient::ListGrants]),
        ("version 7", vec![FromClient::Hello { version: 7, unattended: false }]),
        ("hello", vec![hello(), hello()]),
        ("higher number", vec![hello(), call(3), call(3)]),
        ("name", vec![hello(), call(1), FromClient::Name { name: "late".into() }]),
    ];
    for (word, messages) in said {
        let mut client = lab.stranger();
        for message in &messages {
            client.say(message);
        }
        let heard = client.hears_the_end();
        match heard.last() {
            Some(FromGate::Refused { why }) => assert!(why.contains(word), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    let mut client = lab.client();
    assert!(matches!(client.call("time_now", json!({})), Outcome::Ok(_)), "the others are still served");
}

fn hello() -> FromClient {
    FromClient::Hello { version: VERSION, unattended: false }
}

fn call(id: u64) -> FromClient {
    FromClient::Call { id, tool: "time_now".into(), arguments: serde_json::Map::new() }
}

#[test]
fn as_many_clients_as_there_are_places_are_let_in() {
    let lab = lab();
    let mut clients: Vec<_> = (0..MOST_CONNECTIONS).map(|_| lab.stranger()).collect();
    let mut one_more = lab.stranger();
    match &one_more.hears_the_end()[..] {
        [FromGate::Refused { why }] => assert!(why.contains("as many clients"), "{why}"),
        other => panic!("{other:?}"),
    }
    clients.iter_mut().take(2).for_each(|client| drop(client.hello(false)));
    clients.pop().expect("many").leave();
    let deadline = std::time::Instant::now() + super::lab::WITHIN;
    loop {
        let mut next = lab.stranger();
        // Whoever is turned away may be so before it has said anything.
        let _ = frame::write(&mut next.stream.as_ref().expect("it is connected"), &hello());
        if matches!(next.hear(), FromGate::Welcome { .. }) {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the place of the one that left stays taken");
    }
}

#[test]
fn a_wake_reaches_its_client_and_the_program_of_the_person() {
    let lab = lab();
    let (mut client, mut other) = (lab.client(), lab.client());
    let call = client.start("wake", json!({"seconds": 1, "note": "back again"}));
    client.works(call);
    assert_eq!(client.hear(), FromGate::Wake { note: "back again".into() });
    assert_eq!(lab.woken.recv_timeout(super::lab::WITHIN).as_deref(), Ok("back again"));
    other.hears_nothing();
}

#[test]
fn an_unattended_client_is_denied_at_once_unless_it_is_guarded() {
    let strict = lab();
    let mut run = strict.stranger();
    run.hello(true);
    let call = run.write("a.txt", "x");
    assert_eq!(run.denied(call), "unattended");
    strict.nothing_seen();
    let guarded = made(Wish { guarded: true, ..Wish::default() });
    let mut run = guarded.stranger();
    run.hello(true);
    let call = run.write("a.txt", "x");
    guarded.question_about("file a.txt");
    guarded.press(b"o");
    run.works(call);
}
