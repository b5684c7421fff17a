//! Calls from an agent to the person and back.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::agent::{Agent, control, gate, start};
use crate::support::{Content, Sandbox, until};

fn allowed(path: &str) -> String {
    format!("keep gate: file {path}: allowed once")
}

#[test]
fn a_file_is_written_when_the_person_says_so() {
    let lab = Sandbox::bare();
    let mut gate = gate(&lab, &[]);
    let mut agent = Agent::new(&lab, &[]);
    let call = agent.write("notes/todo.md", "milk\nbread\n");
    gate.says("keep gate: file notes/todo.md");
    gate.says("file_write");
    gate.answers(b"o", &allowed("notes/todo.md"));
    assert_eq!(agent.works(call)["bytesWritten"], 11);
    let read = agent.start("file_read", &json!({"path": "notes/todo.md"}));
    assert_eq!(agent.works(read)["content"], "milk\nbread\n");
    let call = agent.write("notes/todo.md", "no\n");
    gate.says("keep gate: file notes/todo.md");
    gate.answers(b"n", "keep gate: file notes/todo.md: denied (declined)");
    assert!(agent.fails(call).contains("declined"));
    let ended = gate.stop();
    assert_eq!((ended.code, &*ended.output), (0, ""), "{}", ended.text);
}

#[test]
fn only_the_tools_of_the_manifest_are_there() {
    let lab = Sandbox::bare();
    fs::write(lab.base.join("tools.json"), r#"{"name": "reader", "uses": ["time_now", "file_read"]}"#).expect("writes");
    let mut gate = start(&lab, &["--manifest", "../../tools.json"]);
    gate.says("keep gate: 2 tools below ");
    let mut agent = Agent::new(&lab, &[]);
    let mut tools = agent.tools();
    tools.sort();
    assert_eq!(tools, ["file_read", "time_now"]);
    let call = agent.write("a.txt", "x");
    assert_eq!(agent.knows_nothing_of(call), "unknown tool: file_write");
}

#[test]
fn the_end_of_the_gate_denies_what_waits_and_gives_the_terminal_back() {
    for end in ["term", "interrupt", "hangup", "kill"] {
        let lab = Sandbox::bare();
        let mut gate = gate(&lab, &[]);
        let mut agent = Agent::new(&lab, &[]);
        let call = agent.write("a.txt", "x");
        gate.says("keep gate: file a.txt");
        assert!(!gate.echoes(), "the terminal is raw while there is a question");
        match end {
            "term" => gate.signal(Signal::TERM),
            "interrupt" => gate.types(b"\x03"),
            "hangup" => gate.hangs_up(),
            _ => gate.signal(Signal::KILL),
        }
        assert!(agent.fails(call).contains("gone"), "{end}");
        assert_eq!(lab.content("a.txt"), Content::Absent);
        if matches!(end, "term" | "interrupt") {
            until("the terminal is as before", || gate.echoes());
        }
        if end == "kill" {
            // Until it has been taken apart somebody still listens.
            gate.killed();
        } else {
            let ended = gate.finish();
            assert_eq!(ended.code, 0, "{end}: {}", ended.text);
            assert!(!control(&lab).join("socket").exists(), "{end}: the socket stays");
        }
        // Nobody holds the gate now: what would be asked about is denied.
        let call = agent.write("b.txt", "x");
        assert!(agent.fails(call).contains("unattended"), "{end}");
    }
}

#[test]
fn a_gate_that_was_killed_is_no_obstacle_and_its_client_finds_the_next() {
    let lab = Sandbox::bare();
    let first = gate(&lab, &[]);
    let mut agent = Agent::new(&lab, &[]);
    let call = agent.start("file_list", &json!({}));
    agent.works(call);
    first.killed();
    let mut second = gate(&lab, &[]);
    let call = agent.write("a.txt", "x");
    second.says("keep gate: file a.txt");
    second.answers(b"o", &allowed("a.txt"));
    agent.works(call);
}

#[test]
fn without_a_gate_reads_work_and_what_would_be_asked_about_is_denied() {
    let lab = Sandbox::bare();
    lab.write("a.txt", b"here\n");
    let mut agent = Agent::new(&lab, &[]);
    let read = agent.start("file_read", &json!({"path": "a.txt"}));
    assert_eq!(agent.works(read)["content"], "here\n");
    let call = agent.write("a.txt", "x");
    assert!(agent.fails(call).contains("unattended"));
    let escape = agent.start("file_read", &json!({"path": "../state"}));
    agent.fails(escape);
}

#[test]
fn what_was_granted_for_good_holds_without_a_gate() {
    let lab = Sandbox::bare();
    let mut first = gate(&lab, &[]);
    let mut agent = Agent::new(&lab, &[]);
    let call = agent.write("a.txt", "1");
    first.says("keep gate: file a.txt");
    first.answers(b"a", "keep gate: file a.txt: allowed, from now on");
    agent.works(call);
    first.stop();
    let mut agent = Agent::new(&lab, &[]);
    let call = agent.write("a.txt", "2");
    agent.works(call);
    assert_eq!(lab.content("a.txt"), Content::File(0o644, b"2".to_vec()));
    let call = agent.write("b.txt", "x");
    assert!(agent.fails(call).contains("unattended"));
}

#[test]
fn what_is_revoked_beside_a_gate_stands_in_the_audit_once_and_is_asked_about_again() {
    let lab = Sandbox::bare();
    let mut gate = gate(&lab, &[]);
    let mut agent = Agent::new(&lab, &[]);
    let call = agent.write("a.md", "1\n");
    gate.says("keep gate: file a.md");
    gate.answers(b"a", "keep gate: file a.md: allowed, from now on");
    agent.works(call);
    let revoked = lab.keep(&["grants", "revoke", "a.md"]);
    assert!(revoked.status.success(), "{revoked:?}");
    let call = agent.write("a.md", "2\n");
    gate.says("keep gate: file a.md");
    gate.answers(b"n", "keep gate: file a.md: denied (declined)");
    assert!(agent.fails(call).contains("declined"));
    gate.stop();
    let audit = fs::read_to_string(control(&lab).join("audit.jsonl")).expect("reads");
    assert_eq!(audit.matches("\"event\":\"revoked\"").count(), 1, "{audit}");
    assert_eq!(audit.matches("\"event\":\"granted\"").count(), 1, "{audit}");
}
