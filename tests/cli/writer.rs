//! Who wrote, as the question, the journal and the report say it: with privilege.

use std::process::Stdio;

use serde_json::Value;

use crate::support::{Sandbox, Watch, has_python, is_root, skip, until};

/// A watch that names writers; none, if this machine gives us no privilege.
fn watch(lab: &Sandbox) -> Option<Watch> {
    if !is_root() {
        skip("root");
        return None;
    }
    let watch = lab.watch(&[]);
    if !watch.has_said("names the writer") {
        skip("permission events");
        return None;
    }
    Some(watch)
}

fn shell(lab: &Sandbox, script: &str) -> std::process::Child {
    let mut command = lab.command("sh");
    command.args(["-c", script]).stdin(Stdio::piped()).spawn().expect("starts")
}

fn is_writer(writer: &Value, pid: u32, certainty: &str) {
    assert_eq!((writer["pid"].as_u64(), writer["certainty"].as_str()), (Some(pid.into()), Some(certainty)), "{writer}");
}

#[test]
fn the_program_that_wrote_is_named_in_question_journal_and_report() {
    let lab = Sandbox::new();
    let Some(mut watch) = watch(&lab) else { return };
    let mut writer = shell(&lab, "echo B=2 > .env");
    let pid = writer.id();
    watch.says(&format!("  by sh (pid {pid}, /"));
    assert!(writer.wait().expect("ends").success());
    watch.rejects(".env");
    let mut first = shell(&lab, "echo B=3 > .env; read line");
    // The file is a new one since it was put back; it may be opened before it is marked again, and is likely then.
    watch.says(&format!("by sh (pid {}, /", first.id()));
    watch.accepts(".env");
    drop(first.stdin.take());
    first.wait().expect("ends");
    let log = lab.keep(&["log"]);
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    assert!(log.contains(&format!("; by sh (pid {pid}, certain)")), "{log}");
    let report = watch.stop().report();
    let decisions = report["decisions"].as_array().expect("a list");
    assert_eq!(decisions.len(), 2, "{report}");
    is_writer(&decisions[0]["writer"], pid, "certain");
    let writer = &decisions[0]["writer"];
    assert!(writer["exe"].as_str().is_some_and(|exe| exe.starts_with('/')), "{writer}");
    assert!(writer["ancestors"].as_array().is_some_and(|above| !above.is_empty()), "{writer}");
    assert_eq!(writer["user"], 0);
    let writer = &decisions[1]["writer"];
    assert_eq!(writer["pid"], first.id(), "{writer}");
    assert!(matches!(writer["certainty"].as_str(), Some("likely" | "certain")), "{writer}");
    let limits = report["limits"].to_string();
    assert!(limits.contains("is named, not judged") && !limits.contains("is not known"), "{limits}");
}

#[test]
fn a_rename_by_a_process_that_is_gone_names_it_all_the_same() {
    let lab = Sandbox::new();
    let Some(mut watch) = watch(&lab) else { return };
    lab.write("new", b"B=2\n");
    let mut mover = lab.command("mv");
    let mut mover = mover.args(["new", ".env"]).spawn().expect("starts");
    let pid = mover.id();
    assert!(mover.wait().expect("ends").success());
    watch.says(&format!("(pid {pid}"));
    watch.rejects(".env");
    let report = watch.stop().report();
    let writer = &report["decisions"][0]["writer"];
    assert_eq!(writer["pid"], pid, "{report}");
    assert!(matches!(writer["certainty"].as_str(), Some("likely" | "certain")), "{writer}");
}

#[test]
fn who_moves_a_folder_away_is_named_for_what_lay_in_it() {
    if !has_python() {
        return skip("python3");
    }
    for folder in ["svc", ".claude"] {
        let lab = Sandbox::new();
        lab.write(format!("{folder}/.env"), b"S=1\n");
        lab.write(format!("{folder}/deep/.env.local"), b"S=2\n");
        let Some(mut watch) = watch(&lab) else { return };
        // It lives on, so that it can be looked at whenever the event is read.
        let mut mover = shell(
            &lab,
            &format!("exec python3 -c 'import os, sys; os.rename(\"{folder}\", \"other\"); sys.stdin.readline()'"),
        );
        let pid = mover.id();
        watch.shows(&format!("(pid {pid}"));
        watch.settle();
        drop(mover.stdin.take());
        mover.wait().expect("ends");
        let report = watch.stop().report();
        let decisions = report["decisions"].as_array().expect("a list");
        let gone: Vec<&Value> = decisions.iter().filter(|decision| decision["kind"] == "deleted").collect();
        assert_eq!(gone.len(), 2, "{report}");
        assert!(gone.iter().all(|decision| decision["writer"]["pid"] == pid), "{report}");
    }
}

#[test]
fn two_writers_of_one_change_are_not_certain_and_of_two_changes_are_not_named_as_one() {
    let lab = Sandbox::new();
    lab.write("sub/.env", b"A=1\n");
    let Some(mut watch) = watch(&lab) else { return };
    let mut first = shell(&lab, "exec 3>>.env; read line; echo C=3 >&3");
    watch.settle();
    let mut second = shell(&lab, "echo B=2 > .env");
    let pid = second.id();
    watch.says(&format!("  probably by sh (pid {pid}, /"));
    second.wait().expect("ends");
    drop(first.stdin.take());
    first.wait().expect("ends");
    watch.rejects(".env");
    let report = watch.stop().report();
    assert_eq!(report["decisions"][0]["writer"]["certainty"], "likely", "{report}");
}

#[test]
fn what_one_process_changes_in_one_burst_is_one_question() {
    let lab = Sandbox::new();
    let Some(mut watch) = watch(&lab) else { return };
    let mut writer = shell(&lab, "echo x > .env; echo x > CLAUDE.md; echo x > .npmrc");
    watch.says(&format!("by sh (pid {}, /", writer.id()));
    watch.says("3 protected files changed (secrets, agent_config, package_registry).");
    writer.wait().expect("ends");
    watch.stop().came_to(3, &[".env restored_at_exit", ".npmrc restored_at_exit", "CLAUDE.md restored_at_exit"]);
}

#[test]
fn who_has_a_protected_file_open_at_the_start_is_named_before_the_start_line() {
    let lab = Sandbox::new();
    let mut holder = shell(&lab, "exec 3>>.env; echo ready > ready; read line");
    until("the holder", || lab.path("ready").exists());
    let watch = lab.watch(&[]);
    let text = watch.text();
    let warning = format!("keep watch: warning: .env is held open for writing by sh (pid {})", holder.id());
    let (at, start) = (text.find(&warning), text.find("undecided changes are restored"));
    assert!(at.is_some() && at < start, "{text}");
    drop(holder.stdin.take());
    holder.wait().expect("ends");
    watch.stop();
}
