//! What is said of measurements, as values.

use super::*;
use crate::gate::worker::Tried;
use crate::rules::Rule;

fn ground(kind: Kind) -> Ground {
    Ground {
        path: ("/repo".into(), "/repo".into()),
        file_system: Ok(FileSystem { name: "ext4".into(), kind }),
        trials: Ok(Facility::ALL.map(|facility| (facility, Trial::Works)).into()),
    }
}

fn tried(axis: &str, by: &str, what: &str, was_refused: bool) -> Tried {
    Tried { axis: axis.into(), by: by.into(), what: what.into(), was_refused }
}

fn confined() -> Confinement {
    let tried = vec![
        tried("read", "landlock", "list /", true),
        tried("read", "landlock", "list ..", true),
        tried("tcp", "filter", "open a TCP socket", true),
    ];
    Confinement { landlock: Some(7), filter: true, seatbelt: false, is_expected: true, tried }
}

fn measured() -> Measured {
    Measured {
        kernel: "Linux 6.12.0".into(),
        backends: vec![("fanotify", Ok(())), ("inotify", Ok(())), ("poll", Ok(()))],
        limits: vec![("inotify", Limit { name: "fs.inotify.max_user_watches", value: Some(8192), used: Some(12) })],
        settings: vec![(Setting::Tracing, Some(1)), (Setting::KeyPushing, Some(0))],
        standing: Standing::Root,
        powers: Power::ALL.map(|power| (power, Trial::Works)).into(),
        hold: Ok(()),
        guardian: Ok(()),
        means: Support { landlock: Some(7), filter: true, seatbelt: false, is_expected: true },
        trusted: Ok(vec![(direnv(), Fit::Same)]),
        tree: ground(Kind::Local),
        state: ground(Kind::Local),
        state_folder: Ok("it is there"),
        on_one_file_system: true,
        confinement: ("landlock", Ok("version 6 of its interface".into())),
        worker: Ok(confined()),
        notifier: Ok("/usr/bin/notify-send".into()),
        has_terminal: true,
        scriptable: None,
    }
}

fn direnv() -> Trusted {
    let program = b"/usr/bin/direnv".to_vec();
    let digest = crate::digest::Digest::of(b"direnv");
    Trusted { program, digest, may: vec![platform::Access::Read], rules: vec![Rule::Secrets], paths: Vec::new() }
}

fn row(measured: &Measured, area: &str, name: &str) -> Value {
    let json = measured.to_json();
    let rows = json["findings"].as_array().expect("is a list").clone();
    let mut rows = rows.into_iter().filter(|row| row["area"] == area && row["name"] == name);
    let row = rows.next().unwrap_or_else(|| panic!("no row {area} {name}"));
    assert!(rows.next().is_none(), "two rows {area} {name}");
    row
}

#[test]
fn the_strongest_backend_that_works_is_the_one_taken() {
    let mut all = measured();
    assert_eq!(all.to_json()["backend"], "fanotify");
    all.backends[0].1 = Err("this kernel lacks it".into());
    assert_eq!(all.to_json()["backend"], "inotify");
    let row = row(&all, "backends", "fanotify");
    assert_eq!((&row["works"], &row["detail"]), (&json!(false), &json!("this kernel lacks it")));
    assert!(row["raise"].as_str().is_some_and(|raise| raise.contains("5.13")), "{row}");
}

#[test]
fn what_works_needs_no_raising_and_what_does_not_says_what_would() {
    let mut all = measured();
    all.tree.trials = Ok(Facility::ALL.map(|facility| (facility, Trial::Fails("not here".into()))).into());
    all.state.trials = Ok(Facility::ALL.map(|facility| (facility, Trial::Fails("not here".into()))).into());
    all.tree.file_system = Ok(FileSystem { name: "nfs".into(), kind: Kind::Network });
    (all.on_one_file_system, all.has_terminal) = (false, true);
    (all.confinement.1, all.notifier, all.scriptable) = (Err("no".into()), Err("no".into()), Some("tmux"));
    all.worker = Err("no".into());
    all.powers = Power::ALL.map(|power| (power, Trial::Fails("not here".into()))).into();
    all.standing = Standing::None;
    (all.hold, all.guardian) = (Err("no".into()), Err("no".into()));
    all.means = Support { landlock: None, filter: false, seatbelt: false, is_expected: true };
    all.trusted = Ok(vec![(direnv(), Fit::TooLarge), (direnv(), Fit::Unreadable("gone".into()))]);
    all.settings = vec![(Setting::Tracing, None), (Setting::KeyPushing, Some(1))];
    all.state_folder = Err("is a symlink".into());
    for (measured, expected) in [(measured(), true), (all, false)] {
        for finding in measured.findings() {
            match finding.works {
                Some(true) => assert_eq!(finding.raise, None, "{}", finding.name),
                Some(false) => assert!(finding.raise.is_some(), "{}", finding.name),
                None => {}
            }
            let is_backend = finding.area == Area::Backends || finding.name == "terminal";
            assert!(is_backend || finding.works.is_none_or(|works| works == expected), "{}", finding.name);
        }
    }
}

#[test]
fn a_limit_has_its_value_its_use_and_the_command_that_raises_it() {
    let row = row(&measured(), "limits", "fs.inotify.max_user_watches");
    assert_eq!((&row["value"], &row["used"], &row["works"]), (&json!(8192), &json!(12), &Value::Null));
    assert_eq!(row["raise"], "sudo sysctl fs.inotify.max_user_watches=16384");
}

#[test]
fn a_terminal_nobody_is_seen_to_type_into_is_not_proven_safe() {
    assert_eq!(row(&measured(), "system", "typing")["works"], Value::Null);
    let tmux = Measured { scriptable: Some("tmux"), ..measured() };
    assert_eq!(row(&tmux, "system", "typing")["works"], false);
}

#[test]
fn what_a_worker_was_refused_is_told_by_what_it_is_kept_from() {
    let all = measured();
    assert_eq!(row(&all, "worker", "confined")["works"], true);
    assert_eq!(row(&all, "worker", "read")["detail"], "tried: list /, list ..");
    assert_eq!(row(&all, "worker", "tcp")["works"], true);
}

#[test]
fn what_nothing_keeps_a_worker_from_is_no_yes() {
    let weak = Confinement { landlock: None, ..confined() };
    let all = Measured { worker: Ok(weak), ..measured() };
    for name in ["confined", "read", "write"] {
        let row = row(&all, "worker", name);
        assert_eq!(row["works"], false, "{name}");
        assert!(row["raise"].as_str().is_some_and(|raise| raise.contains("landlock")), "{row}");
    }
    assert_eq!(row(&all, "worker", "tcp")["works"], true, "the filter holds that");
    let none = Confinement { landlock: None, filter: false, seatbelt: false, is_expected: false, tried: Vec::new() };
    let all = Measured { worker: Ok(none), ..measured() };
    assert_eq!(row(&all, "worker", "confined")["works"], false);
    assert_eq!(all.findings().iter().filter(|finding| finding.area == Area::Worker).count(), 1);
}

#[test]
fn a_worker_in_a_sandbox_is_confined_and_what_the_sandbox_does_not_hold_is_no_yes() {
    let refused =
        vec![tried("read", "seatbelt", "list /", true), tried("signals", "seatbelt", "signal its parent", true)];
    let worker = Confinement { landlock: None, filter: false, seatbelt: true, is_expected: true, tried: refused };
    let found = ("seatbelt", Ok("this process is in no sandbox yet".to_owned()));
    let all = Measured { confinement: found, worker: Ok(worker), ..measured() };
    assert_eq!(row(&all, "worker", "confined")["works"], true);
    assert_eq!(row(&all, "worker", "confined")["detail"], "Seatbelt");
    assert_eq!(row(&all, "worker", "signals")["detail"], "tried: signal its parent");
    let code = row(&all, "worker", "code");
    assert_eq!((&code["works"], &code["raise"]), (&json!(false), &json!("Linux: Seatbelt has nothing for it")));
    assert_eq!(row(&all, "system", "seatbelt")["works"], true);
}

#[test]
fn a_worker_that_could_not_enter_a_sandbox_is_told_what_would_let_it() {
    let found = ("seatbelt", Err("this process is in a sandbox already".to_owned()));
    let all = Measured { confinement: found, worker: Err("no".into()), ..measured() };
    for (area, name) in [("worker", "confined"), ("system", "seatbelt")] {
        let row = row(&all, area, name);
        assert_eq!((&row["works"], &row["raise"]), (&json!(false), &json!("start keep outside of any other sandbox")));
    }
}

#[test]
fn a_volume_that_ignores_case_is_named_with_what_that_does_to_rules() {
    let mut all = measured();
    all.tree.trials = Ok(vec![(Facility::CaseSensitive, Trial::Fails("the call succeeds and does not do it".into()))]);
    let row = row(&all, "tree", "case_sensitive");
    assert_eq!(row["works"], false);
    assert!(row["detail"].as_str().is_some_and(|detail| detail.contains(".ENV")), "{row}");
}

#[test]
fn where_nothing_could_be_tried_that_is_said_once() {
    let mut all = measured();
    all.tree.trials = Err("read-only file system".into());
    assert_eq!(row(&all, "tree", "scratch")["detail"], "read-only file system");
    assert!(!all.findings().iter().any(|finding| finding.area == Area::Tree && finding.name == "exchange"));
}

#[test]
fn people_read_a_line_for_each_with_the_headings_of_what_there_is() {
    let lines = measured().lines(Paint { is_on: false });
    assert_eq!(lines[0], "keep doctor: /repo on Linux 6.12.0");
    assert!(lines.contains(&"In the tree: /repo (ext4)".to_owned()), "{lines:#?}");
    let fanotify = lines.iter().find(|line| line.starts_with("yes  fanotify")).expect("is listed");
    assert!(fanotify.contains("the kernel tells of each change"), "{fanotify}");
    let bare = Measured { limits: Vec::new(), ..measured() }.lines(Paint { is_on: false });
    assert!(!bare.iter().any(|line| line.starts_with("Limits")), "{bare:#?}");
}

#[test]
fn with_privilege_each_promise_has_a_row_and_without_it_says_how_to_get_it() {
    let with = measured();
    for name in ["privilege", "one_mark", "held_opens", "writer", "processes", "lock_flag"] {
        assert_eq!(row(&with, "privilege", name)["works"], true, "{name}");
    }
    assert_eq!(row(&with, "privilege", "privilege")["detail"], "by root");
    for name in ["guardian", "hold"] {
        assert_eq!(row(&with, "privilege", name)["works"], true, "{name}");
    }
    let alone = Measured { guardian: Err("it is not confined".into()), ..measured() };
    for name in ["guardian", "hold"] {
        assert_eq!(row(&alone, "privilege", name)["works"], false, "nothing is held without a guardian: {name}");
    }
    let refused = Power::ALL.map(|power| (power, Trial::Fails("Operation not permitted".into())));
    let without = Measured { standing: Standing::None, powers: refused.into(), ..measured() };
    for name in ["privilege", "one_mark", "held_opens", "writer", "processes", "lock_flag"] {
        let row = row(&without, "privilege", name);
        assert_eq!(row["works"], false, "{name}");
        assert!(row["raise"].as_str().is_some_and(|raise| raise.contains("sudo keep ")), "{row}");
    }
    let elsewhere = Measured { standing: Standing::Absent, powers: Vec::new(), ..measured() };
    assert_eq!(elsewhere.findings().iter().filter(|finding| finding.area == Area::Privilege).count(), 1);
}

#[test]
fn each_trusted_program_has_a_row_with_what_it_may_and_whether_it_is_still_that_one() {
    let all = measured();
    let same = row(&all, "trust", "/usr/bin/direnv");
    assert_eq!((&same["works"], &same["raise"]), (&json!(true), &Value::Null));
    assert_eq!(same["promise"], "it may open files for reading without a question");
    assert_eq!(same["detail"], "only under secrets");
    let digest = crate::digest::Digest::of(b"updated");
    let all = Measured { trusted: Ok(vec![(direnv(), Fit::Other(digest))]), ..measured() };
    let other = row(&all, "trust", "/usr/bin/direnv");
    assert_eq!(other["works"], false);
    assert!(other["detail"].as_str().is_some_and(|detail| detail.contains(&digest.to_string())), "{other}");
    let all = Measured { trusted: Err("config.toml: line 1, column 1: no".into()), ..measured() };
    assert_eq!(row(&all, "trust", "config.toml")["works"], false);
    let all = Measured { trusted: Ok(Vec::new()), ..measured() };
    assert!(!all.lines(Paint { is_on: false }).iter().any(|line| line.contains("Programs you trust")));
}

#[test]
fn what_privilege_cannot_do_on_this_file_system_says_what_happens_without() {
    let mut all = measured();
    all.powers[0].1 = Trial::Fails("Operation not supported".into());
    let row = row(&all, "privilege", "one_mark");
    assert_eq!(row["works"], false);
    assert!(row["detail"].as_str().is_some_and(|detail| detail.starts_with("Operation not supported; ")), "{row}");
    assert!(!row["raise"].as_str().expect("says what would raise it").contains("sudo"), "{row}");
}

#[test]
fn a_setting_that_lets_programs_at_each_other_says_the_command_that_changes_it() {
    let open = Measured { settings: vec![(Setting::Tracing, Some(0)), (Setting::KeyPushing, None)], ..measured() };
    let tracing = row(&open, "system", "tracing");
    assert_eq!(
        (&tracing["works"], &tracing["raise"]),
        (&json!(false), &json!("sudo sysctl kernel.yama.ptrace_scope=1"))
    );
    assert_eq!(row(&open, "system", "key_pushing")["works"], false, "a kernel without the setting lets everybody");
    assert_eq!(row(&measured(), "system", "key_pushing")["detail"], "dev.tty.legacy_tiocsti is 0");
}
