//! `keep grants`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::thread::{self, JoinHandle};

use keepwatch::gate::control::SOCKET;
use keepwatch::gate::frame;
use keepwatch::gate::grants::GrantFile;
use keepwatch::gate::pattern::Grant;
use keepwatch::gate::wire::{FromClient, FromGate, GrantInfo, VERSION};
use serde_json::{Value, json};

use crate::lab::Lab;

fn grant(lab: &Lab, path: &str, grants: &[(&str, &str)]) {
    let grants: Vec<Grant> = grants.iter().map(|(kind, target)| Grant::parse(kind, target).expect(target)).collect();
    GrantFile::open(&lab.control(path)).and_then(|mut file| file.remember(&grants)).expect("stores");
}

fn stored(lab: &Lab, path: &str) -> Value {
    let text = fs::read(lab.control(path).path().join("grants.json")).expect("reads");
    serde_json::from_slice(&text).expect("is JSON")
}

/// A gate that answers so many connections, each with these grants; gives what it was asked.
fn gate(lab: &Lab, connections: usize, target: &'static str) -> JoinHandle<Vec<FromClient>> {
    let listener = UnixListener::bind(lab.control("").path().join(SOCKET)).expect("binds");
    thread::spawn(move || {
        let mut asked = Vec::new();
        for _ in 0..connections {
            let (mut stream, _) = listener.accept().expect("accepts");
            let hello: FromClient = frame::read(&mut stream).expect("reads");
            assert_eq!(hello, FromClient::Hello { version: VERSION, unattended: true });
            frame::write(&mut stream, &FromGate::Welcome { version: VERSION, tools: vec![] }).expect("writes");
            asked.push(frame::read(&mut stream).expect("reads"));
            let grants = if matches!(asked.last(), Some(FromClient::ForgetSession)) {
                vec![]
            } else {
                vec![GrantInfo { kind: "file".into(), target: target.into() }]
            };
            frame::write(&mut stream, &FromGate::SessionGrants { grants }).expect("writes");
        }
        asked
    })
}

#[test]
fn a_tree_that_never_had_a_gate_has_no_grants_and_gets_no_state() {
    let lab = Lab::new();
    let ran = lab.keep(&["grants"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert!(ran.err.contains("nothing is granted in "), "{}", ran.err);
    let json = lab.keep(&["grants", "list", "--json"]).json();
    assert_eq!((&json["remembered"], &json["session"], &json["fault"]), (&json!([]), &Value::Null, &Value::Null));
    assert_eq!(lab.keep(&["grants", "forget-session"]).code, 0);
    assert_eq!(lab.keep(&["grants", "revoke", "a.txt"]).code, 1);
    assert!(!lab.has_state());
}

#[test]
fn the_list_is_sorted_and_json_has_all_of_it() {
    let lab = Lab::new();
    grant(&lab, "", &[("net", "*.example.com"), ("file", "notes/*"), ("memory", "a.md"), ("file", "a b.txt")]);
    for arguments in [&["grants"][..], &["grants", "list"]] {
        let ran = lab.keep(arguments);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let rows = [
            "always   file    a b.txt\n",
            "always   file    notes/*\n",
            "always   memory  a.md\n",
            "always   net     *.example.com\n",
        ];
        assert_eq!(ran.out, rows.concat());
    }
    let json = lab.keep(&["grants", "--json"]).json();
    assert_eq!((&json["schema"], &json["remembered"]), (&json!("keepwatch.grants.v1"), &stored(&lab, "")));
    assert_eq!(json["root"], lab.at("").to_str().expect("is text").trim_end_matches('/'));
}

#[test]
fn what_is_revoked_is_gone_from_the_file_and_stands_in_the_audit() {
    let lab = Lab::new();
    grant(&lab, "", &[("file", "notes/*"), ("file", "a.md"), ("memory", "a.md")]);
    let ran = lab.keep(&["grants", "revoke", "notes/*"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert_eq!(ran.err, "keep grants: file notes/* is no longer granted\n");
    assert_eq!(lab.keep(&["grants", "revoke", "a.md", "--kind", "memory"]).code, 0);
    assert_eq!(stored(&lab, ""), json!([{"kind": "file", "target": "a.md"}]));
    let json = lab.keep(&["grants", "revoke", "a.md", "--json"]).json();
    assert_eq!(json["revoked"], json!([{"kind": "file", "target": "a.md"}]));
    let audit = fs::read_to_string(lab.control("").path().join("audit.jsonl")).expect("reads");
    let events: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect();
    let revoked: Vec<(&Value, &Value)> =
        events.iter().map(|event| (&event["event"], &event["grant"]["target"])).collect();
    let told = json!("revoked");
    assert_eq!(revoked, [(&told, &json!("notes/*")), (&told, &json!("a.md")), (&told, &json!("a.md"))]);
}

#[test]
fn revoking_what_is_not_granted_is_a_failure_and_changes_nothing() {
    let lab = Lab::new();
    grant(&lab, "", &[("file", "notes/*")]);
    for arguments in [&["never/granted"][..], &["notes/a.md"], &["notes/*", "--kind", "net"], &["x\u{1b}[2J"], &["*"]] {
        let ran = lab.keep(&[&["grants", "revoke"], arguments].concat());
        assert_eq!(ran.code, 1, "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains("is not among what is granted") && !ran.err.contains('\x1b'), "{}", ran.err);
    }
    assert_eq!(stored(&lab, ""), json!([{"kind": "file", "target": "notes/*"}]));
    assert_eq!(lab.keep(&["grants", "revoke"]).code, 2);
    assert_eq!(lab.keep(&["grants", "revoke", "a", "--kind", "files"]).code, 2);
}

#[test]
fn it_is_about_the_nearest_root_at_or_above_or_the_one_that_is_named() {
    let lab = Lab::new();
    fs::create_dir_all(lab.at("inner/deep")).expect("makes");
    fs::create_dir_all(lab.at("other/deep")).expect("makes");
    grant(&lab, "", &[("file", "outer.txt")]);
    grant(&lab, "inner", &[("file", "inner.txt")]);
    for (folder, named, wanted) in [
        ("inner/deep", None, "inner.txt"),
        ("inner", None, "inner.txt"),
        ("other/deep", None, "outer.txt"),
        ("", Some("inner"), "inner.txt"),
        ("inner", Some(".."), "outer.txt"),
    ] {
        let mut command = lab.command(&["grants", "list"]);
        command.current_dir(lab.at(folder)).args(named.map(|named| format!("--root={named}")));
        let out = String::from_utf8(command.output().expect("runs").stdout).expect("is text");
        assert_eq!(out, format!("always   file    {wanted}\n"), "{folder} {named:?}");
    }
    let ran = lab.keep(&["grants", "list", "--root", "other"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert_eq!(lab.keep(&["grants", "--root", "nothing"]).code, 2);
}

#[test]
fn a_broken_file_is_told_and_left_as_it_is() {
    let lab = Lab::new();
    grant(&lab, "", &[("file", "a.txt")]);
    let path = lab.control("").path().join("grants.json");
    for (text, mode) in [("[{\"kind\":\"file\",\"target\":\"a.txt\"},7]", 0o600), ("[]", 0o644)] {
        fs::write(&path, text).expect("writes");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmods");
        let ran = lab.keep(&["grants"]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
        assert!(ran.err.starts_with("keep grants: grants.json"), "{}", ran.err);
        let json = lab.keep(&["grants", "--json"]).json();
        assert!(json["fault"].as_str().is_some_and(|fault| fault.starts_with("grants.json")), "{json}");
        let ran = lab.keep(&["grants", "revoke", "a.txt"]);
        assert_eq!(ran.code, 1);
        assert!(ran.err.starts_with("keep grants: nothing was revoked: grants.json"), "{}", ran.err);
        assert_eq!(fs::read_to_string(&path).expect("reads"), text);
    }
}

#[test]
fn the_gate_tells_what_holds_for_the_session_and_forgets_it_when_asked() {
    let lab = Lab::new();
    grant(&lab, "", &[("file", "notes/*")]);
    let answering = gate(&lab, 4, "c\u{1b}[2J.txt");
    let ran = lab.keep(&["grants"]);
    assert_eq!(ran.out, "always   file    notes/*\nsession  file    c\\x1b[2J.txt\n", "{}", ran.err);
    let json = lab.keep(&["grants", "--json"]).json();
    assert_eq!(json["session"], json!([{"kind": "file", "target": "c\u{1b}[2J.txt"}]));
    let ran = lab.keep(&["grants", "revoke", "c\u{1b}[2J.txt"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("is granted for the session only"), "{}", ran.err);
    let ran = lab.keep(&["grants", "forget-session", "--json"]);
    assert_eq!((ran.code, &ran.json()["session"]), (0, &json!([])), "{}", ran.err);
    let list = FromClient::ListGrants;
    assert_eq!(answering.join().expect("ends"), [list.clone(), list.clone(), list, FromClient::ForgetSession]);
    // It ended; what it left behind is no gate.
    assert_eq!(lab.keep(&["grants"]).out, "always   file    notes/*\n");
}
