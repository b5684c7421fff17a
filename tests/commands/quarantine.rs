//! `keep quarantine`.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

use crate::lab::{AT, Lab, Ran};

/// A tree in which `a/.env` was rejected.
fn rejected() -> (Lab, String) {
    let lab = Lab::new();
    fs::create_dir(lab.at("a")).expect("makes");
    lab.write("a/.env", "KEY=\x1b[2Jx\n");
    fs::set_permissions(lab.at("a/.env"), fs::Permissions::from_mode(0o4750)).expect("chmods");
    let id = lab.reject("a/.env").to_string();
    (lab, id)
}

fn refused(ran: &Ran, with: &str) {
    assert_eq!(ran.code, 2, "{} {}", ran.out, ran.err);
    assert!(ran.err.starts_with("keep: [GXT_CAGE_QUARANTINE] "), "{}", ran.err);
    assert!(ran.err.contains(with), "{}", ran.err);
}

#[test]
fn a_tree_that_was_never_watched_has_nothing_and_gets_no_state() {
    let lab = Lab::new();
    let ran = lab.keep(&["quarantine", "list"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert_eq!(lab.keep(&["quarantine", "list", "--json"]).json()["entries"], serde_json::json!([]));
    refused(&lab.keep(&["quarantine", "show", "20261130T094107123Z-00000"]), "nothing in quarantine is named");
    assert!(!lab.has_state());
}

#[test]
fn the_list_has_a_line_for_each_and_json_has_all_of_it() {
    let (lab, id) = rejected();
    let ran = lab.keep(&["quarantine", "list"]);
    assert_eq!(ran.out, format!("{id}  {AT}  a/.env (secrets, added), regular, 10 B\n"));
    let json = lab.keep(&["quarantine", "list", "--json"]).json();
    assert_eq!(json["schema"], "keepwatch.quarantine.v1");
    let entry = &json["entries"][0];
    assert_eq!((&entry["id"], &entry["path"], &entry["mode"]), (&id.into(), &"a/.env".into(), &"4750".into()));
}

#[test]
fn what_is_known_is_shown_and_the_content_only_when_asked_for() {
    let (lab, id) = rejected();
    let shown = lab.keep(&["quarantine", "show", &id]);
    assert!(shown.out.contains("rule         secrets\n") && shown.out.contains("size         10\n"), "{}", shown.out);
    assert!(!shown.out.contains("KEY"), "{}", shown.out);
    assert_eq!(lab.keep(&["quarantine", "show", &id, "--json"]).json()["size"], 10);
    assert_eq!(
        lab.keep(&["quarantine", "show", &id, "--content"]).out,
        "KEY=\x1b[2Jx\n",
        "another program gets the bytes"
    );
}

#[test]
fn on_a_terminal_the_content_moves_no_cursor() {
    let (lab, id) = rejected();
    let pair = native_pty_system().openpty(PtySize::default()).expect("a terminal");
    let mut command = CommandBuilder::from_argv(vec![env!("CARGO_BIN_EXE_keep").into()]);
    command.args(["quarantine", "show", &id, "--content"]);
    command.cwd(lab.at(""));
    command.env_clear();
    lab.command(&[]).get_envs().for_each(|(name, value)| command.env(name, value.expect("is set")));
    let mut child = pair.slave.spawn_command(command).expect("starts");
    drop(pair.slave);
    let mut shown = Vec::new();
    // The end of a terminal nobody has open any more is an error on Linux.
    let _ = pair.master.try_clone_reader().expect("can be read").read_to_end(&mut shown);
    assert!(child.wait().expect("ends").success());
    assert_eq!(String::from_utf8_lossy(&shown), "KEY=\\x1b[2Jx\r\n");
}

#[test]
fn damaged_content_and_names_of_nothing_are_refused() {
    let (lab, id) = rejected();
    for name in ["20261130T094107123Z-99999", "../quarantine", "x\u{1b}[2J", ""] {
        let ran = lab.keep(&["quarantine", "show", name]);
        refused(&ran, "nothing in quarantine is named");
        assert!(!ran.err.contains('\x1b'), "{}", ran.err);
    }
    fs::write(lab.state().path().join("quarantine").join(&id).join("content"), "KEY=forged").expect("writes");
    refused(&lab.keep(&["quarantine", "show", &id, "--content"]), "is damaged");
    refused(&lab.keep(&["quarantine", "restore", &id]), "is damaged");
    assert_eq!(lab.read("a/.env"), None);
}

#[test]
fn it_goes_back_to_its_place_without_set_id_bits_and_makes_the_way_again() {
    let (lab, id) = rejected();
    fs::remove_dir(lab.at("a")).expect("removes");
    let ran = lab.keep(&["quarantine", "restore", &id]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("a running watch asks about it"), "{}", ran.err);
    assert_eq!(lab.read("a/.env").as_deref(), Some("KEY=\x1b[2Jx\n"));
    assert_eq!(fs::metadata(lab.at("a/.env")).expect("stats").permissions().mode() & 0o7777, 0o750);
}

#[test]
fn what_is_there_is_replaced_only_by_force() {
    let (lab, id) = rejected();
    lab.write("a/.env", "mine\n");
    refused(&lab.keep(&["quarantine", "restore", &id]), "a/.env is there already");
    assert_eq!(lab.read("a/.env").as_deref(), Some("mine\n"));
    assert_eq!(lab.keep(&["quarantine", "restore", &id, "--force"]).code, 0);
    assert_eq!(lab.read("a/.env").as_deref(), Some("KEY=\x1b[2Jx\n"));
}

#[test]
fn no_way_leads_out_of_the_tree() {
    let (lab, id) = rejected();
    let outside = tempfile::tempdir().expect("a temporary directory");
    symlink(outside.path(), lab.at("link")).expect("links");
    let absolute = outside.path().join("x");
    for to in ["../x", "a/../../x", "link/x", "link/deeper/x", absolute.to_str().expect("is text")] {
        refused(&lab.keep(&["quarantine", "restore", &id, "--to", to, "--force"]), "");
    }
    assert_eq!(fs::read_dir(outside.path()).expect("lists").count(), 0);
    assert_eq!(lab.keep(&["quarantine", "restore", &id, "--to", "b/c/found"]).code, 0);
    assert_eq!(lab.read("b/c/found").as_deref(), Some("KEY=\x1b[2Jx\n"));
}

#[test]
fn a_symlink_at_the_place_is_replaced_and_not_followed() {
    let (lab, id) = rejected();
    lab.write("victim", "mine\n");
    symlink("../victim", lab.at("a/.env")).expect("links");
    refused(&lab.keep(&["quarantine", "restore", &id]), "is there already");
    assert_eq!(lab.keep(&["quarantine", "restore", &id, "--force"]).code, 0);
    assert_eq!(lab.read("victim").as_deref(), Some("mine\n"));
    assert!(fs::symlink_metadata(lab.at("a/.env")).expect("stats").is_file());
}
