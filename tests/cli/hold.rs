//! `keep watch --hold`: opens that wait in the kernel until they are answered.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Child, Stdio};

use platform::Certainty;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{ENV, Ended, Sandbox, Watch, eventually, is_root, skip, until};

/// A program that is under way.
struct Program(Child);

impl Program {
    /// Runs a shell command in the repository.
    fn start(lab: &Sandbox, script: &str) -> Self {
        let mut command = lab.command("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().expect("starts"))
    }

    /// Whether it succeeds, once it has ended.
    fn succeeds(mut self) -> bool {
        self.0.wait().expect("ends").success()
    }
}

/// A watch that holds opens, if this machine lets it.
fn holding(lab: &Sandbox, options: &[&str]) -> Option<Watch> {
    if !is_root() {
        skip("privileged");
        return None;
    }
    Some(lab.watch(&[&["--hold"][..], options].concat()))
}

/// The rows of the report.
fn held(ended: &Ended) -> Vec<(String, String, String)> {
    let report = ended.report();
    let text = |row: &Value, field: &str| row[field].as_str().expect("a text").to_owned();
    let rows = report["held"].as_array().expect("a list");
    rows.iter().map(|row| (text(row, "path"), text(row, "access"), text(row, "decision"))).collect()
}

/// Whether the accepted `.env` lies there, by its size: this process has many threads, so that its reading may be asked about.
fn is_untouched(lab: &Sandbox) -> bool {
    fs::metadata(lab.path(".env")).is_ok_and(|found| found.len() == ENV.len() as u64)
}

fn row(path: &str, access: &str, decision: &str) -> (String, String, String) {
    (path.to_owned(), access.to_owned(), decision.to_owned())
}

#[test]
fn an_open_for_writing_waits_for_the_answer_and_nothing_is_written_before() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab, &[]) else { return };
    watch.says("keep watch: opens for writing are held");
    watch.says("keep watch: other changes (renames, removals, bits, truncate) are undone");
    let program = Program::start(&lab, "echo B=2 >> .env");
    watch.says("wants to write .env (secrets). Let it? [a]llow / [r]efuse; refused in ");
    assert!(is_untouched(&lab), "it is written already");
    watch.answers(b"a", ".env opened for writing by ");
    assert!(program.succeeds());
    until("the change is there", || !is_untouched(&lab));
    watch.says("keep watch: .env accepted (as answered when it was opened)");
    let ended = watch.stop();
    ended.came_to(0, &[".env accepted"]);
    assert_eq!(held(&ended), [row(".env", "write", "allowed")]);
    let writer = &ended.report()["held"][0]["writer"];
    assert_eq!(writer["certainty"], Certainty::Certain.name());
    assert!(writer["exe"].as_str().is_some_and(|exe| exe.starts_with('/')), "{writer}");
    assert!(lab.journal().contains(r#""event":"held""#));
}

#[test]
fn a_refused_open_fails_and_leaves_the_file_and_the_exit_code_alone() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab, &[]) else { return };
    let before = fs::metadata(lab.path(".env")).expect("stats");
    let program = Program::start(&lab, "echo B=2 > .env");
    watch.says("wants to write .env (secrets). Let it?");
    watch.answers(b"r", ".env not opened for writing by ");
    assert!(!program.succeeds(), "EPERM");
    let after = fs::metadata(lab.path(".env")).expect("stats");
    assert_eq!(
        (after.ino(), after.mtime_nsec(), after.ctime_nsec()),
        (before.ino(), before.mtime_nsec(), before.ctime_nsec())
    );
    let ended = watch.stop();
    ended.came_to(0, &[]);
    assert_eq!(held(&ended), [row(".env", "write", "refused")]);
}

#[test]
fn no_answer_is_a_refusal_when_the_time_is_over() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab, &["--decision-timeout", "1"]) else { return };
    let program = Program::start(&lab, "echo B=2 >> .env");
    watch.says(" (no answer)");
    assert!(!program.succeeds());
    assert!(is_untouched(&lab));
    assert_eq!(held(&watch.stop()), [row(".env", "write", "timed_out")]);
}

#[test]
fn the_end_refuses_what_waits() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab, &[]) else { return };
    let program = Program::start(&lab, "echo B=2 >> .env");
    watch.says("wants to write .env");
    let ended = watch.stop();
    assert!(!program.succeeds());
    assert!(is_untouched(&lab));
    ended.came_to(0, &[]);
    assert_eq!(held(&ended), [row(".env", "write", "refused_at_exit")]);
    assert!(Program::start(&lab, "echo B=2 >> .env").succeeds(), "nothing is held any more");
}

#[test]
fn what_is_refused_while_the_watch_is_stopped_is_told_and_written_down() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab, &["--decision-timeout", "300"]) else { return };
    // One that is asked about and lives on when it is refused, and one that comes while nobody reads.
    let refused = lab.base.join("refused");
    let script = format!("(echo B=2 >> .env) || : > '{}'; exec sleep 300", refused.display());
    let mut asked = Program::start(&lab, &script);
    watch.says("wants to write .env (secrets). Let it?");
    watch.signal(Signal::STOP);
    assert!(!Program::start(&lab, "echo C=3 >> .env").succeeds());
    until("it is refused", || refused.exists());
    watch.signal(Signal::CONT);
    for _ in 0..2 {
        watch.says(".env not opened for writing by ");
        watch.says(" (the watch was stopped)");
    }
    let last = |watch: &Watch| watch.screen().lines().rfind(|line| !line.is_empty()).map(str::to_owned);
    watch.wait("a screen without the question", |watch| last(watch)?.contains("was stopped").then_some(()));
    asked.0.kill().expect("kills");
    asked.0.wait().expect("ends");
    assert!(is_untouched(&lab));
    let ended = watch.stop();
    ended.came_to(0, &[]);
    assert_eq!(held(&ended), [0; 2].map(|_| row(".env", "write", "refused_while_stopped")));
    assert!(!ended.text.contains(" is gone"), "{}", ended.text);
    let report = ended.report();
    let certain: Vec<_> = (0..2).map(|row| &report["held"][row]["writer"]["certainty"]).collect();
    assert!(certain.contains(&&Value::from("certain")), "it was read while it waited: {report}");
    assert_eq!(lab.journal().matches(r#""decision":"refused_while_stopped""#).count(), 2);
}

#[test]
fn a_question_that_died_while_the_watch_was_suspended_is_nowhere_on_the_screen() {
    let lab = Sandbox::new();
    if !is_root() {
        return skip("privileged");
    }
    let script = "set -m; \"$KEEP\" watch --json \"$@\" >\"$OUT\"; echo stopped; read go; fg";
    let mut watch = Watch::start(&lab, script, &["--hold", "--decision-timeout", "300"], 200, 50);
    watch.says("undecided changes");
    let program = Program::start(&lab, "echo B=2 >> .env");
    watch.says("wants to write .env (secrets). Let it?");
    watch.settle();
    watch.types(b"\x1a");
    watch.says("stopped");
    assert!(!watch.screen().contains("Let it?"), "{}", watch.screen());
    assert!(!program.succeeds());
    watch.types(b"go\n");
    watch.says(".env not opened for writing by ");
    watch.says(" (the watch was stopped)");
    watch.wait("a screen without the question", |watch| (!watch.screen().contains("Let it?")).then_some(()));
    watch.types(b"\x03");
    assert_eq!(held(&watch.finish()), [row(".env", "write", "refused_while_stopped")]);
}

#[test]
fn two_watches_on_one_file_system_end_without_waiting_for_each_other() {
    let (lab, other) = (Sandbox::new(), Sandbox::new());
    let Some(mut watch) = holding(&lab, &["--decision-timeout", "300"]) else { return };
    let second = holding(&other, &[]).expect("it is root");
    let program = Program::start(&lab, "echo B=2 >> .env");
    watch.says("wants to write .env");
    second.stop().came_to(0, &[]);
    assert!(watch.screen().contains("Let it?"), "the first one still asks");
    watch.answers(b"r", " (refused)");
    assert!(!program.succeeds());
    watch.stop().came_to(0, &[]);
}

#[test]
fn an_opener_that_is_killed_withdraws_its_question() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab, &[]) else { return };
    let mut program = Program::start(&lab, "exec 3>> .env");
    watch.says("wants to write .env");
    program.0.kill().expect("kills");
    watch.says(" is gone");
    program.0.wait().expect("ends");
    assert_eq!(held(&watch.stop()), [row(".env", "write", "gone")]);
}

#[test]
fn reads_pass_at_once_unless_they_are_asked_for() {
    let lab = Sandbox::new();
    let Some(watch) = holding(&lab, &[]) else { return };
    assert!(Program::start(&lab, "cat .env; cat CLAUDE.md || true").succeeds());
    assert_eq!(held(&watch.stop()), []);
}

#[test]
fn reading_a_secret_is_asked_about_with_hold_read_and_other_files_are_not() {
    let lab = Sandbox::new();
    lab.write("CLAUDE.md", b"# rules\n");
    if !is_root() {
        return skip("privileged");
    }
    let mut watch = lab.watch(&["--hold=read"]);
    watch.says("opens for writing and of secrets for reading are held");
    assert!(Program::start(&lab, "cat CLAUDE.md").succeeds());
    let program = Program::start(&lab, "cat .env");
    watch.says("wants to read .env (secrets). Let it?");
    watch.answers(b"r", ".env not opened for reading by ");
    assert!(!program.succeeds());
    let program = Program::start(&lab, "cat .env");
    watch.says("wants to read .env (secrets). Let it?");
    watch.answers(b"a", ".env opened for reading by ");
    assert!(program.succeeds());
    assert_eq!(held(&watch.stop()), [row(".env", "read", "refused"), row(".env", "read", "allowed")]);
}

#[test]
fn a_path_refused_three_times_is_refused_without_asking() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab, &[]) else { return };
    for _ in 0..3 {
        let program = Program::start(&lab, "echo B=2 >> .env");
        watch.says("wants to write .env");
        watch.answers(b"r", " (refused)");
        assert!(!program.succeeds());
    }
    watch.says(".env is contested");
    assert!(!Program::start(&lab, "echo B=2 >> .env").succeeds());
    watch.says(" (contested)");
    assert!(is_untouched(&lab));
    let ended = watch.stop();
    assert_eq!(held(&ended).last(), Some(&row(".env", "write", "auto_refused")));
    assert_eq!(ended.report()["contested"], serde_json::json!([".env"]));
    assert!(ended.text.contains("0 changes restored, 0 accepted; 0 opens allowed, 4 refused"), "{}", ended.text);
    assert!(lab.journal().contains(r#""event":"contested""#));
}

#[test]
fn a_contested_path_whose_refusals_are_taken_back_is_asked_about_again() {
    let lab = Sandbox::new();
    lab.write(".cage.yaml", b"contest_limit: 1\n");
    let Some(mut watch) = holding(&lab, &[]) else { return };
    let program = Program::start(&lab, "echo B=2 >> .env");
    watch.says("wants to write .env");
    watch.answers(b"r", ".env is contested");
    assert!(!program.succeeds());
    watch.answers(b"c", "ask about .env again?");
    watch.answers(b"\r", "keep watch: .env is asked about again");
    let program = Program::start(&lab, "echo B=2 >> .env");
    watch.says("wants to write .env");
    watch.answers(b"a", ".env opened for writing by ");
    assert!(program.succeeds());
    watch.says(".env accepted");
    let ended = watch.stop();
    assert_eq!(ended.report()["contested"], serde_json::json!([]));
    assert!(ended.text.contains("; 1 open allowed, 1 refused"), "{}", ended.text);
    assert!(lab.journal().contains(r#""event":"uncontested""#));
}

#[test]
fn the_watch_restores_a_held_file_itself_without_asking_itself() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab, &[]) else { return };
    // Renaming over needs no open of the file: it is undone.
    lab.save_by_rename(".env", b"A=stolen\n");
    watch.says("keep watch: .env changed (secrets, modified");
    watch.rejects(".env");
    assert!(is_untouched(&lab));
    // What was put back is another object, and is held as well.
    let program = Program::start(&lab, "echo B=2 >> .env");
    watch.says("wants to write .env");
    watch.answers(b"r", " (refused)");
    assert!(!program.succeeds());
    watch.stop().came_to(3, &[".env rejected"]);
}

#[test]
fn another_name_of_the_file_is_held_as_the_file() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab, &[]) else { return };
    fs::hard_link(lab.path(".env"), lab.base.join("twin")).expect("links");
    watch.says(".env linked");
    let twin = lab.base.join("twin");
    let program = Program::start(&lab, &format!("echo B=2 >> '{}'", twin.display()));
    watch.says("wants to write .env (secrets)");
    watch.answers(b"r", " (refused)");
    assert!(!program.succeeds());
    assert!(is_untouched(&lab));
    assert_eq!(held(&watch.stop()), [row(".env", "write", "refused")]);
}

#[test]
fn several_files_of_one_program_are_one_question() {
    let lab = Sandbox::new();
    lab.write("svc/.env", b"S=1\n");
    let Some(mut watch) = holding(&lab, &[]) else { return };
    let program = Program::start(&lab, "(echo 1 >> .env) & (echo 2 >> svc/.env) & wait");
    eventually("a question with both", || watch.text().contains("2 protected files (secrets). Let it?").then_some(()));
    watch.answers(b"r", " (refused)");
    program.succeeds();
    let rows = held(&watch.stop());
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(is_untouched(&lab));
}

#[test]
fn git_commits_and_checks_out_without_a_question_and_its_settings_are_undone() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab, &[]) else { return };
    lab.write("src.txt", b"one\n");
    lab.git(&["add", "src.txt"]);
    lab.git(&["commit", "-q", "-m", "one"]);
    lab.git(&["checkout", "-q", "-b", "other"]);
    lab.git(&["checkout", "-q", "-"]);
    assert!(!watch.has_said("Let it?"));
    // git writes its settings beside the file and renames: there is nothing to hold.
    lab.git(&["config", "core.pager", "evil"]);
    watch.says("keep watch: .git/config changed (git_control, modified");
    watch.rejects(".git/config");
    assert_eq!(held(&watch.stop()), []);
}

#[test]
fn an_editor_that_saves_in_place_is_asked_about_once() {
    let lab = Sandbox::new();
    let Some(mut watch) = holding(&lab, &[]) else { return };
    // As vim with backupcopy=yes: a copy aside, then the file is cut and written through one open.
    let program = Program::start(&lab, "cp .env copy~ && printf 'A=1\\nC=3\\n' > .env && rm copy~");
    watch.says("wants to write .env (secrets)");
    watch.answers(b"a", ".env opened for writing by ");
    assert!(program.succeeds());
    watch.says("keep watch: .env accepted (as answered when it was opened)");
    let ended = watch.stop();
    assert_eq!(held(&ended), [row(".env", "write", "allowed")]);
}

#[test]
fn a_trusted_program_passes_and_is_written_down() {
    let mut lab = Sandbox::new();
    if !is_root() {
        return skip("privileged");
    }
    let config = lab.base.join("config");
    fs::create_dir_all(config.join("keepwatch")).expect("makes");
    lab.set("XDG_CONFIG_HOME", config.to_str().expect("a text"));
    let program = fs::canonicalize("/bin/cat").expect("resolves");
    let digest = keepwatch::digest::Digest::of(&fs::read(&program).expect("reads"));
    let text = format!("[[trust]]\nprogram = \"{}\"\nsha256 = \"{digest}\"\nmay = [\"read\"]\n", program.display());
    fs::write(config.join("keepwatch/config.toml"), text).expect("writes");
    let mut watch = lab.watch(&["--hold=read"]);
    assert!(Program::start(&lab, "unset LD_LIBRARY_PATH; cat .env").succeeds(), "it is asked about");
    // The same program, told by the loader to take other code along.
    let loaded = Program::start(&lab, "LD_PRELOAD=/nonexistent.so cat .env");
    watch.says("wants to read .env");
    watch.answers(b"r", " (refused)");
    assert!(!loaded.succeeds());
    // Another program.
    let other = Program::start(&lab, "head -1 .env");
    watch.says("wants to read .env");
    watch.answers(b"r", " (refused)");
    assert!(!other.succeeds());
    let rows = held(&watch.stop());
    assert_eq!(rows[0], row(".env", "read", "trusted"));
    assert_eq!(rows.len(), 3, "{rows:?}");
}

#[test]
fn a_list_of_trusted_programs_that_others_can_write_refuses_the_start() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut lab = Sandbox::new();
    if !is_root() {
        return skip("privileged");
    }
    let config = lab.base.join("config");
    fs::create_dir_all(config.join("keepwatch")).expect("makes");
    lab.set("XDG_CONFIG_HOME", config.to_str().expect("a text"));
    let file = config.join("keepwatch/config.toml");
    fs::write(&file, "").expect("writes");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("sets");
    let said = lab.refuses("GXT_CAGE_CONFIG_INVALID", &["--hold"]);
    assert!(said.contains("others can write it"), "{said}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("sets");
    fs::write(&file, "[[trust]]\nprogramme = 1\n").expect("writes");
    let said = lab.refuses("GXT_CAGE_CONFIG_INVALID", &["--hold"]);
    assert!(said.contains("line 2, column 1"), "{said}");
}

#[test]
fn where_nothing_can_be_held_the_start_is_refused_or_it_is_said() {
    let lab = Sandbox::new();
    let said = lab.refuses("GXT_CAGE_BACKEND_UNAVAILABLE", &["--hold", "--backend", "inotify"]);
    assert!(said.contains("opens cannot be held"), "{said}");
    let watch = lab.watch(&["--hold", "--backend", "inotify", "--best-effort"]);
    assert!(watch.has_said("Opens are not held, although --hold was asked for"));
    let ended = watch.stop();
    let limits = ended.report()["limits"].to_string();
    assert!(limits.contains("Opens are not held, although --hold was asked for"), "{limits}");
}
