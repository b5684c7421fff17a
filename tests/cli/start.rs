//! The start line, and every reason not to start.

use std::fs;
use std::process::Stdio;

use crate::support::{Sandbox, is_root, skip};

#[test]
fn the_start_line_says_what_is_guarded_how_and_how_long() {
    let lab = Sandbox::new();
    let watch = lab.watch(&["--backend", "poll", "--decision-timeout", "7"]);
    let line = format!(
        "keep watch: 4 protected files in {}; poll; undecided changes are restored after 7 s",
        lab.repo.display()
    );
    assert_eq!(watch.text().trim_end(), line);
    watch.stop().came_to(0, &[]);
}

#[test]
fn the_start_line_says_what_is_special() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&["--lock-deps", "--allow-only", "src/**", "--allow-only", "docs/*.md"]);
    watch.says(" 20 s (dependencies frozen) (scope: src/**, docs/*.md)");
    let report = watch.stop().report();
    assert_eq!(report["dependencies"], "revert");
    assert_eq!(report["scope"], serde_json::json!(["src/**", "docs/*.md"]));
    assert_eq!(report["scope_sources"][0], serde_json::json!({"glob": "src/**", "source": "--allow-only"}));
}

#[test]
fn the_root_is_the_top_of_the_working_tree_from_anywhere_below() {
    let lab = Sandbox::new();
    lab.write("a/b/c.txt", b"");
    let ended = lab.watch(&["a/b"]).stop();
    assert_eq!(ended.report()["root"], lab.repo.to_str().expect("is text"));
}

#[test]
fn outside_git_the_directory_itself_is_the_root() {
    let lab = Sandbox::bare();
    lab.write("sub/.env", b"A=1\n");
    let mut watch = lab.spawn(&["sub"]);
    watch.says(&format!("keep watch: 1 protected file in {}/sub; ", lab.repo.display()));
    watch.stop().came_to(0, &[]);
}

#[test]
fn without_json_standard_output_stays_empty() {
    let lab = Sandbox::new();
    let mut watch = crate::support::Watch::start(&lab, "exec \"$KEEP\" watch >\"$OUT\"", &[], 200, 50);
    watch.says("undecided changes");
    let ended = watch.stop();
    assert_eq!((ended.code, ended.output.as_str()), (0, ""));
    assert!(ended.text.contains("keep watch: ended by SIGTERM; 0 changes restored, 0 accepted"), "{}", ended.text);
}

#[test]
fn input_that_is_no_terminal_is_refused() {
    let lab = Sandbox::new();
    let mut command = lab.command(env!("CARGO_BIN_EXE_keep"));
    let mut child = command
        .args(["watch", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    std::io::Write::write_all(child.stdin.as_mut().expect("a pipe"), b"aaaa").ok();
    let output = child.wait_with_output().expect("ends");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("is text");
    let ended = crate::support::Ended {
        code: output.status.code().and_then(|code| u32::try_from(code).ok()).expect("a code"),
        output: text(&output.stdout),
        text: text(&output.stderr),
    };
    ended.refused("GXT_CAGE_WATCH_NO_TTY");
    assert!(!lab.state.exists(), "a refused start made state");
}

#[test]
fn a_second_watch_in_the_same_root_is_refused_with_the_process_of_the_first() {
    let lab = Sandbox::new();
    let first = lab.watch(&[]);
    let message = lab.refuses("GXT_CAGE_ACTIVE", &[]);
    assert!(message.contains(&format!("pid {}", first.pid().as_raw_nonzero())), "{message}");
    assert!(message.contains(", since 20"), "{message}");
    first.stop().came_to(0, &[]);
    lab.watch(&[]).stop().came_to(0, &[]);
}

#[test]
fn two_roots_are_watched_at_once() {
    let lab = Sandbox::bare();
    for name in ["one", "two"] {
        lab.make_repository(name);
        lab.write(format!("{name}/.env"), b"A=1\n");
    }
    let (mut one, mut two) = (lab.watch(&["one"]), lab.watch(&["two"]));
    lab.write("two/.env", b"A=2\n");
    two.asks(".env", "secrets", "modified", &crate::support::sha(b"A=2\n"));
    lab.write("one/.env", b"A=3\n");
    one.asks(".env", "secrets", "modified", &crate::support::sha(b"A=3\n"));
    two.stop().came_to(3, &[".env restored_at_exit"]);
    one.stop().came_to(3, &[".env restored_at_exit"]);
}

#[test]
fn an_invalid_rule_file_is_refused_with_line_and_column() {
    let lab = Sandbox::new();
    for (text, line, reason) in [
        ("protect: [\n", "line ", ""),
        ("protect:\n  - path: /etc/passwd\n", "line 2", "absolute"),
        ("mode: report\nmode: revert\n", "line 2", ""),
        ("allow: [x]\n", "line 1", "allow"),
        ("protect:\n  - path: .env\n    mode: report\n", "line ", "secrets"),
    ] {
        lab.write(".cage.yaml", text.as_bytes());
        let message = lab.refuses("GXT_CAGE_CONFIG_INVALID", &[]);
        assert!(message.contains(line) && message.contains("column "), "{text:?}: {message}");
        assert!(message.contains(reason), "{text:?}: {message}");
    }
}

#[test]
fn a_protected_file_over_the_cap_is_refused_by_name() {
    let lab = Sandbox::new();
    lab.write("svc/.env", &[b'a'; 2000]);
    let message = lab.refuses("GXT_CAGE_LIMITS_EXCEEDED", &["--max-file-bytes", "1999"]);
    assert!(message.contains("svc/.env has 2000 bytes"), "{message}");
    lab.watch(&["--max-file-bytes", "2000"]).stop().came_to(0, &[]);
}

#[test]
fn a_sparse_file_of_five_gigabytes_is_refused_without_being_read() {
    let lab = Sandbox::new();
    let file = fs::File::create(lab.path(".env.big")).expect("creates");
    file.set_len(5 << 30).expect("is sparse");
    let message = lab.refuses("GXT_CAGE_LIMITS_EXCEEDED", &[]);
    assert!(message.contains(".env.big has 5368709120 bytes"), "{message}");
}

#[test]
fn a_backend_this_machine_does_not_have_is_refused() {
    let lab = Sandbox::new();
    let here: Vec<_> = platform::backends::backends().iter().map(|backend| backend.name()).collect();
    let other = ["fsevents", "fanotify"].into_iter().find(|name| !here.contains(name)).expect("no machine has both");
    let message = lab.refuses("GXT_CAGE_BACKEND_UNAVAILABLE", &["--backend", other]);
    assert!(message.contains(other), "{message}");
}

#[test]
fn a_wrong_option_ends_with_2_and_says_how_it_goes() {
    let lab = Sandbox::new();
    let output = lab.keep(&["watch", "--decision-timeout", "0"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("0 is not in 1..="), "{output:?}");
}

#[test]
fn git_files_that_lead_nowhere_or_in_a_circle_are_refused_and_not_taken_for_no_repository() {
    type Make = fn(&Sandbox);
    let broken: [(&str, Make); 5] = [
        ("a link to nothing", |lab| lab.link("nowhere", ".git")),
        ("a link to itself", |lab| lab.link(".git", ".git")),
        ("a pointer to nothing", |lab| lab.write(".git", b"gitdir: /nowhere/at/all\n")),
        ("a pointer to itself", |lab| lab.write(".git", b"gitdir: .git\n")),
        ("no pointer", |lab| lab.write(".git", b"hello\n")),
    ];
    for (what, make) in broken {
        let lab = Sandbox::bare();
        lab.write(".env", b"A=1\n");
        make(&lab);
        let message = lab.refuses("GXT_CAGE_ROOT", &[]);
        assert!(message.contains(".git"), "{what}: {message}");
    }
}

#[test]
fn a_directory_that_does_not_exist_is_refused() {
    let lab = Sandbox::new();
    let message = lab.refuses("GXT_CAGE_ROOT", &["nowhere"]);
    assert!(message.contains("nowhere"), "{message}");
}

#[test]
fn thousands_of_includes_and_a_circle_of_them_do_not_delay_the_start() {
    let lab = Sandbox::new();
    let mut config = String::from("[core]\n\trepositoryformatversion = 0\n");
    for number in 0..10_000 {
        config.push_str(&format!("[include]\n\tpath = more-{number}\n"));
    }
    config.push_str("[include]\n\tpath = config\n");
    lab.write(".git/config", config.as_bytes());
    lab.write(".git/more-1", b"[include]\n\tpath = more-2\n");
    lab.write(".git/more-2", b"[include]\n\tpath = more-1\n");
    let started = std::time::Instant::now();
    let mut watch = lab.spawn(&[]);
    // A chain without end is an error of the configuration, for git as well; either is an answer, and a quick one.
    watch.wait("an answer", |watch| (watch.has_said("undecided changes") || watch.has_said("hint:")).then_some(()));
    assert!(started.elapsed().as_secs() < 10, "{:?}", started.elapsed());
}

#[test]
fn a_root_named_through_a_symlink_is_watched_where_it_lies() {
    let lab = Sandbox::new();
    std::os::unix::fs::symlink(&lab.repo, lab.base.join("alias")).expect("links");
    let alias = lab.base.join("alias");
    let mut watch = lab.watch(&[alias.to_str().expect("is text")]);
    let content = crate::support::fresh();
    fs::write(alias.join(".env"), &content).expect("writes");
    watch.asks(".env", "secrets", "modified", &crate::support::sha(&content));
    watch.rejects(".env");
    assert!(lab.has_env());
    assert_eq!(watch.stop().report()["root"], lab.repo.to_str().expect("is text"));
}

#[test]
fn edits_between_two_runs_are_named_and_are_the_new_baseline() {
    let lab = Sandbox::new();
    lab.watch(&[]).stop().came_to(0, &[]);
    lab.write(".env", b"A=mine\n");
    lab.write(".env.new", b"B=mine\n");
    let watch = lab.watch(&[]);
    let line = "keep watch: 2 protected files changed while nobody watched: .env, .env.new";
    assert!(watch.has_said(line), "{}", watch.text());
    let ended = watch.stop();
    ended.came_to(0, &[]);
    assert_eq!(ended.report()["recovery"], serde_json::Value::Null);
    assert_eq!(fs::read(lab.path(".env")).expect("reads"), b"A=mine\n");
}

#[test]
fn what_an_option_or_a_rule_newly_covers_is_not_called_changed() {
    let lab = Sandbox::new();
    lab.write("package.json", b"{}\n");
    lab.write("notes/plan.md", b"# Plan\n");
    lab.watch(&[]).stop().came_to(0, &[]);
    let watch = lab.watch(&["--lock-deps"]);
    let line = "keep watch: 1 protected file newly covered since the last run: package.json";
    assert!(watch.has_said(line), "{}", watch.text());
    assert!(!watch.has_said("while nobody watched"), "{}", watch.text());
    watch.stop().came_to(0, &[]);
    // Without the option it is covered no more; what the rule file brings is another matter than the file itself.
    lab.write(".cage.yaml", b"protect:\n  - glob: notes/**\n");
    let mut watch = lab.watch(&[]);
    assert!(watch.has_said("1 protected file newly covered since the last run: notes/plan.md"), "{}", watch.text());
    assert!(watch.has_said("1 protected file changed while nobody watched: .cage.yaml"), "{}", watch.text());
    // A rule file that was accepted during a run is not the one that run went by.
    lab.write(".cage.yaml", b"protect:\n  - glob: docs/**\n");
    watch.accepts(".cage.yaml");
    watch.stop().came_to(0, &[".cage.yaml accepted"]);
    lab.write("docs/new.md", b"# New\n");
    lab.write("notes/new.md", b"# New\n");
    let watch = lab.watch(&[]);
    assert!(watch.has_said("1 protected file newly covered since the last run: docs/new.md"), "{}", watch.text());
    assert!(!watch.has_said("while nobody watched"), "{}", watch.text());
    watch.stop().came_to(0, &[]);
    // What is covered and new was made meanwhile.
    lab.write("docs/newer.md", b"# Newer\n");
    let watch = lab.watch(&["--lock-deps"]);
    assert!(watch.has_said("1 protected file changed while nobody watched: docs/newer.md"), "{}", watch.text());
    watch.stop().came_to(0, &[]);
}

#[test]
fn a_terminal_that_programs_can_type_into_is_warned_about() {
    let mut lab = Sandbox::new();
    lab.set("TMUX", "/tmp/tmux-0/default,1,0");
    let watch = lab.watch(&[]);
    assert!(watch.has_said("warning: this terminal can be typed into by a program (tmux)"), "{}", watch.text());
    watch.stop().came_to(0, &[]);
}

#[test]
fn root_in_somebody_elses_tree_becomes_that_somebody() {
    if !is_root() {
        return skip("root");
    }
    let mut lab = Sandbox::new();
    let chowned = std::process::Command::new("chown").args(["-R", "65534:65534"]).arg(&lab.base).status();
    assert!(chowned.expect("runs").success());
    lab.set("SUDO_UID", "");
    let mut watch = lab.watch(&[]);
    let status = fs::read_to_string(format!("/proc/{}/status", watch.pid().as_raw_nonzero())).expect("it runs");
    assert!(status.contains("Uid:\t65534\t65534\t65534\t65534"), "{status}");
    lab.write(".env", b"A=2\n");
    watch.says("keep watch: .env changed");
    watch.rejects(".env");
    assert!(lab.has_env());
}
