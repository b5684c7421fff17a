//! What a gate does not start with.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::agent::{Agent, control, gate, start};
use crate::support::{Sandbox, goes_on_as_an_ordinary_user};

fn refused(lab: &Sandbox, code: &str, options: &[&str]) -> String {
    let ended = start(lab, options).finish();
    assert_eq!(ended.code, 2, "{}", ended.text);
    assert!(ended.text.contains(&format!("keep: [{code}] ")), "{}", ended.text);
    assert!(!ended.text.contains(" tools below "), "{}", ended.text);
    ended.text
}

#[test]
fn a_second_gate_of_a_root_by_any_name() {
    let lab = Sandbox::bare();
    let mut first = gate(&lab, &[]);
    lab.link(&lab.repo, "../other-name");
    for options in [&[][..], &["--root", "."], &["--root", "../other-name"]] {
        let text = refused(&lab, "GXT_CAGE_ACTIVE", options);
        assert!(text.contains("pid "), "{text}");
    }
    let mut agent = Agent::new(&lab, &[]);
    let call = agent.write("a.txt", "x");
    first.says("keep gate: file a.txt");
    first.answers(b"o", "keep gate: file a.txt: allowed once");
    agent.works(call);
}

#[test]
fn a_root_that_holds_its_own_control_folder() {
    let lab = Sandbox::bare();
    lab.link(&lab.base, "../up");
    for root in ["../..", "../up", "/"] {
        refused(&lab, "GXT_CAGE_ROOT", &["--root", root]);
    }
    refused(&lab, "GXT_CAGE_ROOT", &["--root", "absent"]);
    lab.write("file", b"");
    refused(&lab, "GXT_CAGE_ROOT", &["--root", "file"]);
}

#[test]
fn a_manifest_or_a_policy_that_is_not_understood_with_the_place() {
    let lab = Sandbox::bare();
    gate(&lab, &[]).stop();
    let manifest = lab.base.join("tools.json");
    fs::write(&manifest, "{\"name\": \"m\",\n \"uses\": [\"file_raed\"]}").expect("writes");
    let text = refused(&lab, "GXT_CAGE_CONFIG_INVALID", &["--manifest", "../../tools.json"]);
    assert!(text.contains("tools.json:2:") && text.contains("file_raed"), "{text}");
    refused(&lab, "GXT_CAGE_CONFIG_INVALID", &["--manifest", "absent.json"]);
    let policy = control(&lab).join("policy.toml");
    fs::write(&policy, "\n[file]\nruling = \"allow\"\n").expect("writes");
    let text = refused(&lab, "GXT_CAGE_CONFIG_INVALID", &[]);
    assert!(text.contains("policy.toml:"), "{text}");
    fs::write(&policy, "autonomy = \"guarded\"\n").expect("writes");
    fs::set_permissions(&policy, fs::Permissions::from_mode(0o666)).expect("chmods");
    assert!(refused(&lab, "GXT_CAGE_CONFIG_INVALID", &[]).contains("others can write"));
}

#[test]
fn no_terminal_to_ask_at() {
    let lab = Sandbox::bare();
    let output = lab.keep(&["gate"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("[GXT_CAGE_WATCH_NO_TTY]") && said.contains("keep gate"), "{said}");
}

#[test]
fn a_place_to_listen_that_is_taken() {
    let lab = Sandbox::bare();
    lab.write("taken", b"notes");
    refused(&lab, "GXT_CAGE_SOCKET", &["--listen", "taken"]);
    assert_eq!(fs::read(lab.path("taken")).expect("reads"), b"notes");
    let gate = gate(&lab, &["--listen", "../socket"]);
    assert!(lab.path("../socket").exists());
    gate.stop();
    assert!(!lab.path("../socket").exists());
}

#[test]
fn all_of_it_as_an_ordinary_user() {
    if goes_on_as_an_ordinary_user!() {
        let lab = Sandbox::bare();
        let mut gate = gate(&lab, &[]);
        let mut agent = Agent::new(&lab, &[]);
        let call = agent.write("a.txt", "x");
        gate.says("keep gate: file a.txt");
        gate.answers(b"o", "keep gate: file a.txt: allowed once");
        agent.works(call);
    }
}
