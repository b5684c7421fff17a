//! `keep watch --gate`: one terminal for the questions of both, and one question for one change.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agent::{Agent, control};
use crate::support::{Content, ENV, Sandbox, Watch, eventually, fresh, sha, until};

/// Starts a watch with a gate, and waits until both serve.
fn together(lab: &Sandbox, options: &[&str]) -> Watch {
    let mut watch = lab.watch(&[&["--gate"], options].concat());
    watch.says("agents reach them through keep mcp");
    watch
}

fn allowed(path: &str) -> String {
    format!("keep gate: file {path}: allowed once")
}

/// The entries of the watch's journal about a path that was accepted.
fn accepted(lab: &Sandbox) -> Vec<Value> {
    let log = lab.keep(&["log", "--json"]);
    let entries = String::from_utf8(log.stdout).expect("text");
    let entries = entries.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    entries.filter(|entry| entry["event"] == "accepted").collect()
}

/// The agent writes `.env` and is allowed to, and the watch takes that for its answer.
fn allows_its_write(watch: &mut Watch, agent: &mut Agent) {
    let call = agent.write(".env", "API_TOKEN=mine\n");
    watch.says("keep gate: file .env");
    watch.answers(b"o", &allowed(".env"));
    agent.works(call);
    watch.says("keep watch: .env accepted (as answered at the gate)");
}

#[test]
fn a_protected_file_that_an_agent_writes_is_one_question() {
    let lab = Sandbox::new();
    let mut watch = together(&lab, &[]);
    let mut agent = Agent::new(&lab, &[]);
    allows_its_write(&mut watch, &mut agent);
    assert_eq!(lab.content(".env"), Content::File(0o600, b"API_TOKEN=mine\n".to_vec()));
    let ended = watch.stop();
    ended.came_to(0, &[".env accepted"]);
    assert!(!ended.text.contains("Keep it?"), "asked twice: {}", ended.text);
    let entries = accepted(&lab);
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!((&entries[0]["path"], &entries[0]["asked"]), (&json!(".env"), &json!("gate")), "{entries:?}");
}

#[test]
fn a_protected_file_that_an_agent_makes_moves_or_removes_is_one_question_each() {
    let lab = Sandbox::new();
    let mut watch = together(&lab, &[]);
    let mut agent = Agent::new(&lab, &[]);
    let allow = |agent: &mut Agent, watch: &mut Watch, tool: &str, arguments: Value, accepted: &[&str]| {
        let call = agent.start(tool, &arguments);
        watch.says("keep gate: file ");
        watch.answers(b"o", ": allowed once");
        agent.works(call);
        for path in accepted {
            watch.shows(&format!("keep watch: {path} accepted (as answered at the gate)"));
        }
    };
    let new = json!({"path": "deep/.env", "content": "A=1\n"});
    allow(&mut agent, &mut watch, "file_write", new, &["deep/.env"]);
    let moved = json!({"from": "deep/.env", "to": ".env.local"});
    allow(&mut agent, &mut watch, "file_move", moved, &[".env.local"]);
    allow(&mut agent, &mut watch, "file_remove", json!({"path": ".env"}), &[".env"]);
    let ended = watch.stop();
    assert!(!ended.text.contains("Keep it?"), "asked twice: {}", ended.text);
    assert_eq!(ended.code, 0, "{}", ended.text);
    assert_eq!(lab.content(".env.local"), Content::File(0o644, b"A=1\n".to_vec()));
    assert_eq!((lab.content(".env"), lab.content("deep/.env")), (Content::Absent, Content::Absent));
    // Two places of the move.
    assert_eq!(accepted(&lab).len(), 4, "{}", ended.text);
}

#[test]
fn what_somebody_else_writes_there_is_asked_about() {
    let lab = Sandbox::new();
    let mut watch = together(&lab, &[]);
    let mut agent = Agent::new(&lab, &[]);
    allows_its_write(&mut watch, &mut agent);
    let other = fresh();
    lab.overwrite(".env", &other);
    watch.asks(".env", "secrets", "modified", &sha(&other));
    watch.accepts(".env");
    // The answer was for one time.
    lab.overwrite(".env", b"API_TOKEN=mine\n");
    watch.asks(".env", "secrets", "modified", &sha(b"API_TOKEN=mine\n"));
    watch.rejects(".env");
    assert_eq!(lab.content(".env"), Content::File(0o600, other));
    watch.stop();
}

#[test]
fn what_is_written_while_the_person_is_asked_is_no_part_of_the_answer() {
    let lab = Sandbox::new();
    let mut watch = together(&lab, &[]);
    let mut agent = Agent::new(&lab, &[]);
    let call = agent.write(".env", "API_TOKEN=mine\n");
    watch.says("keep gate: file .env");
    let other = fresh();
    lab.overwrite(".env", &other);
    watch.says("1 more");
    watch.answers(b"o", &allowed(".env"));
    // Nothing was done, for it is not the file any more that the answer was about.
    watch.asks(".env", "secrets", "modified", &sha(&other));
    watch.answers(b"r", "keep gate: file .env");
    watch.says("keep watch: .env restored (rejected)");
    assert!(lab.has_env());
    watch.stop().came_to(3, &[".env rejected"]);
    assert!(agent.fails(call).contains("gone"));
    assert!(lab.has_env());
}

#[test]
fn a_grant_does_not_answer_for_the_watch() {
    let lab = Sandbox::new();
    let mut watch = together(&lab, &[]);
    let mut agent = Agent::new(&lab, &[]);
    let call = agent.write(".env", "A=1\n");
    watch.says("keep gate: file .env");
    watch.answers(b"s", "keep gate: file .env: allowed, and for this session");
    agent.works(call);
    watch.says("keep watch: .env accepted (as answered at the gate)");
    let call = agent.write(".env", "A=2\n");
    agent.works(call);
    watch.asks(".env", "secrets", "modified", &sha(b"A=2\n"));
    watch.rejects(".env");
    assert_eq!(lab.content(".env"), Content::File(0o600, b"A=1\n".to_vec()));
    watch.stop();
}

#[test]
fn questions_of_both_come_one_after_the_other_and_a_key_is_for_the_one_that_is_shown() {
    let lab = Sandbox::new();
    let mut watch = together(&lab, &["--decision-timeout", "3600"]);
    let mut agent = Agent::new(&lab, &[]);
    let call = agent.write("notes.md", "x");
    watch.says("keep gate: file notes.md");
    let content = fresh();
    lab.overwrite(".env", &content);
    watch.says("1 more");
    // These are the watch's keys, and its question is not on the screen.
    watch.settle();
    watch.types(b"r");
    watch.settle();
    watch.types(b"e");
    watch.settle();
    assert_eq!(lab.content(".env"), Content::File(0o600, content.clone()));
    assert!(!watch.has_said("Keep it?"), "{}", watch.text());
    watch.answers(b"o", &allowed("notes.md"));
    agent.works(call);
    watch.asks(".env", "secrets", "modified", &sha(&content));
    // These are the gate's.
    let call = agent.write("more.md", "x");
    watch.says("1 more");
    watch.settle();
    watch.types(b"o");
    watch.settle();
    watch.types(b"n");
    watch.settle();
    assert!(lab.content("more.md") == Content::Absent && !watch.has_said("(declined)"), "{}", watch.text());
    // The next question is there before the file is touched.
    watch.answers(b"r", "keep gate: file more.md");
    watch.says("keep watch: .env restored (rejected)");
    watch.answers(b"n", "keep gate: file more.md: denied (declined)");
    assert!(agent.fails(call).contains("declined"));
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn the_end_of_the_watch_denies_what_waits_at_the_gate() {
    for end in ["term", "interrupt", "hangup"] {
        let lab = Sandbox::new();
        let mut watch = together(&lab, &[]);
        let mut agent = Agent::new(&lab, &[]);
        let call = agent.write("a.txt", "x");
        watch.says("keep gate: file a.txt");
        match end {
            "term" => watch.signal(Signal::TERM),
            "interrupt" => watch.types(b"\x03"),
            _ => watch.hangs_up(),
        }
        assert!(agent.fails(call).contains("gone"), "{end}");
        if end != "hangup" {
            until("the terminal is as before", || watch.echoes());
        }
        let ended = watch.finish();
        assert_eq!(ended.code, 0, "{end}: {}", ended.text);
        assert_eq!(lab.content("a.txt"), Content::Absent);
        assert!(lab.has_env() && lab.content(".env") == Content::File(0o600, ENV.to_vec()));
        assert!(!control(&lab).join("socket").exists(), "{end}: the socket stays");
    }
}

#[test]
fn what_was_allowed_just_before_the_end_is_accepted() {
    let lab = Sandbox::new();
    let mut watch = together(&lab, &[]);
    let mut agent = Agent::new(&lab, &[]);
    agent.write(".env", "A=1\n");
    watch.says("keep gate: file .env");
    watch.answers(b"o", &allowed(".env"));
    watch.types(b"\x03");
    let ended = watch.finish();
    match lab.content(".env") {
        // It was begun: then it was allowed.
        Content::File(0o600, content) if content == b"A=1\n" => {
            ended.came_to(0, &[".env accepted"]);
        }
        // It was not.
        content => {
            assert_eq!(content, Content::File(0o600, ENV.to_vec()));
            ended.came_to(0, &[]);
        }
    }
}

#[test]
fn a_gate_in_another_terminal_does_not_answer_for_the_watch() {
    let lab = Sandbox::new();
    let mut gate = crate::agent::gate(&lab, &[]);
    let mut watch = lab.watch(&[]);
    let mut agent = Agent::new(&lab, &[]);
    let call = agent.write(".env", "A=1\n");
    gate.says("keep gate: file .env");
    gate.answers(b"o", &allowed(".env"));
    agent.works(call);
    watch.asks(".env", "secrets", "modified", &sha(b"A=1\n"));
    watch.accepts(".env");
    watch.stop();
    assert_eq!(accepted(&lab)[0]["asked"], Value::Null);
}

#[test]
fn two_gates_of_a_root_are_one_too_many_wherever_they_ask() {
    let lab = Sandbox::new();
    let gate = crate::agent::gate(&lab, &[]);
    let why = lab.refuses("GXT_CAGE_ACTIVE", &["--gate"]);
    assert!(why.starts_with("keep gate holds the gate of "), "{why}");
    gate.stop();
    let watch = together(&lab, &[]);
    let folder = fs::read_dir(lab.state.join("gate")).expect("there is one").count();
    let found = eventually("a refusal", || {
        let second = crate::agent::start(&lab, &[]).finish();
        second.text.contains("GXT_CAGE_ACTIVE] keep watch --gate holds the gate of ").then_some(second.code)
    });
    assert_eq!((found, fs::read_dir(lab.state.join("gate")).expect("there is one").count()), (2, folder));
    watch.stop();
}
