//! `keep doctor`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use platform::backends::backends;
use platform::confine::{Plan, support};
use rustix::process::geteuid;
use serde_json::Value;

use crate::lab::Lab;

fn names(path: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(path).expect("lists").map(|entry| entry.expect("lists").file_name());
    entries.map(|name| name.into_string().expect("is text")).collect()
}

fn rows<'r>(report: &'r Value, area: &str) -> Vec<&'r Value> {
    report["findings"].as_array().expect("is a list").iter().filter(|row| row["area"] == area).collect()
}

#[test]
fn every_backend_is_probed_and_the_first_that_works_is_named() {
    let lab = Lab::new();
    let ran = lab.keep(&["doctor", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report = ran.json();
    assert_eq!(report["schema"], "keepwatch.doctor.v1");
    let sources = backends();
    let told: Vec<_> = rows(&report, "backends").iter().map(|row| row["name"].as_str().expect("is text")).collect();
    assert_eq!(told, sources.iter().map(|source| source.name()).collect::<Vec<_>>());
    let first = rows(&report, "backends").into_iter().find(|row| row["works"] == true).expect("polling works anywhere");
    assert_eq!(report["backend"], first["name"]);
}

#[test]
fn trying_leaves_nothing_in_the_tree_nor_where_state_is_kept() {
    let lab = Lab::new();
    fs::create_dir_all(lab.at(".git/refs")).expect("makes");
    fs::create_dir_all(lab.at(".git/objects")).expect("makes");
    fs::write(lab.at(".git/HEAD"), "ref: refs/heads/main\n").expect("writes");
    let before = (names(&lab.at("")), names(&lab.at(".git")), names(lab.at("..").as_path()));
    let ran = lab.keep(&["doctor", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!((names(&lab.at("")), names(&lab.at(".git")), names(lab.at("..").as_path())), before);
    assert!(!lab.has_state());
    let report = ran.json();
    let lock = rows(&report, "state").into_iter().find(|row| row["name"] == "lock").expect("was tried");
    assert_eq!(lock["works"], true, "{lock}");
    let exchange = rows(&report, "tree").into_iter().find(|row| row["name"] == "exchange").expect("was tried");
    assert!(exchange["works"].is_boolean(), "{exchange}");
}

#[test]
fn a_files_worker_is_started_and_says_what_it_was_refused() {
    let lab = Lab::new();
    let ran = lab.keep(&["doctor", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report = ran.json();
    let of_worker = rows(&report, "worker");
    let confined = of_worker.iter().find(|row| row["name"] == "confined").expect("is told");
    let can_be = support().is_expected && Plan::new(support()).is_whole();
    assert_eq!(confined["works"], can_be, "{confined}");
    if can_be {
        let read = of_worker.iter().find(|row| row["name"] == "read").expect("was tried");
        assert_eq!(read["works"], true, "{read}");
        assert!(read["detail"].as_str().is_some_and(|detail| detail.contains("list /")), "{read}");
    }
}

#[test]
fn each_line_for_people_says_yes_no_or_neither() {
    let lab = Lab::new();
    let ran = lab.keep(&["doctor"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("keep doctor: /"), "{}", ran.out);
    assert!(ran.out.contains("\nyes  poll "), "{}", ran.out);
    // There is no terminal here, and that must not pass for one.
    assert!(ran.out.contains("\n no  terminal "), "{}", ran.out);
    assert!(!ran.out.contains('\x1b'), "{}", ran.out);
}

#[test]
fn a_state_folder_that_cannot_be_used_is_told_and_not_touched() {
    let lab = Lab::new();
    lab.begin(&[]);
    let state = lab.state();
    let moved = lab.at("moved");
    fs::rename(state.path(), &moved).expect("moves");
    std::os::unix::fs::symlink(&moved, state.path()).expect("links");
    let before = names(&moved);
    let ran = lab.keep(&["doctor", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report = ran.json();
    let folder = rows(&report, "state").into_iter().find(|row| row["name"] == "state_folder").expect("is told");
    assert_eq!(folder["works"], false);
    assert!(folder["detail"].as_str().is_some_and(|detail| detail.ends_with("is a symlink")), "{folder}");
    assert_eq!(names(&moved), before);
}

#[test]
fn a_git_directory_elsewhere_is_not_gone_into() {
    let lab = Lab::new();
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let git = elsewhere.path();
    for folder in ["refs", "objects"] {
        fs::create_dir(git.join(folder)).expect("makes");
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("writes");
    fs::write(lab.at(".git"), format!("gitdir: {}\n", git.display())).expect("writes");
    let before = fs::metadata(git).expect("stats").modified().expect("has a time");
    let ran = lab.keep(&["doctor", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(rows(&ran.json(), "tree").iter().any(|row| row["name"] == "exchange"), "nothing was tried in the tree");
    assert_eq!(fs::metadata(git).expect("stats").modified().expect("has a time"), before);
}

/// The rows about privilege, by name.
fn privilege(report: &Value) -> Vec<(String, Value)> {
    let row = |row: &&Value| (row["name"].as_str().expect("is text").to_owned(), row["works"].clone());
    rows(report, "privilege").iter().map(row).collect()
}

#[test]
fn what_privilege_would_add_is_told_row_by_row_with_what_gives_it() {
    let lab = Lab::new();
    let ran = lab.keep(&["doctor", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let report = ran.json();
    let told = privilege(&report);
    let is_linux = report["kernel"].as_str().is_some_and(|kernel| kernel.starts_with("Linux "));
    if is_linux {
        let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
        let all = ["privilege", "one_mark", "held_opens", "writer", "processes", "lock_flag", "guardian", "hold"];
        assert_eq!(names, all);
    }
    assert_eq!(told[0].1, geteuid().is_root() && is_linux);
    for row in rows(&report, "privilege") {
        assert!(row["works"] != false || row["raise"].is_string(), "{row}");
    }
}

const NOBODY: u32 = 65_534;

/// The tree and what lies above it in the home are an ordinary user's.
fn give_to_nobody(lab: &Lab) {
    for folder in ["", ".."] {
        std::os::unix::fs::chown(lab.at(folder), Some(NOBODY), Some(NOBODY)).expect("chowns");
    }
}

#[test]
fn privilege_is_tried_before_it_is_given_up_and_is_gone_for_everything_else() {
    let lab = Lab::new();
    if !geteuid().is_root() {
        return;
    }
    give_to_nobody(&lab);
    let output = lab.command(&["doctor", "--json"]).env("SUDO_UID", "65534").env("SUDO_GID", "65534").output();
    let output = output.expect("starts");
    let report: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    let told = privilege(&report);
    let works = |name: &str| told.iter().find(|(known, _)| known == name).expect("is told").1 == true;
    // Root of a container has less; what of it there is was tried after root was given up, or before.
    if works("held_opens") {
        assert!(works("privilege") && works("lock_flag"), "{told:?}");
        assert!(works("guardian") && works("hold"), "{told:?}");
        let of_user = rows(&report, "tree").into_iter().find(|row| row["name"] == "immutable").expect("was tried");
        assert_eq!(of_user["works"], false, "{of_user}");
    }
    assert!(!names(&lab.at("")).iter().any(|name| name.contains("keep")), "something was left");
}

#[test]
fn with_capabilities_on_the_program_they_are_tried_before_they_are_given_up() {
    use std::os::unix::process::CommandExt as _;
    let lab = Lab::new();
    if !geteuid().is_root() {
        return;
    }
    give_to_nobody(&lab);
    let usual = lab.command(&["doctor", "--json"]);
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("chmods");
    let program = folder.path().join("keep");
    fs::copy(usual.get_program(), &program).expect("copies");
    let set = std::process::Command::new("setcap").arg("cap_linux_immutable,cap_sys_admin=ep").arg(&program).output();
    if !set.is_ok_and(|set| set.status.success()) {
        // No such program here, or a file system without room for it.
        return;
    }
    let mut command = std::process::Command::new(&program);
    command.args(usual.get_args()).current_dir(lab.at("")).env_clear().uid(NOBODY).gid(NOBODY);
    for (name, value) in usual.get_envs() {
        value.map(|value| command.env(name, value));
    }
    // Where the capabilities are out of reach, nothing that has them may start.
    let Ok(output) = command.output() else { return };
    let report: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    let told = privilege(&report);
    assert_eq!(told[0], ("privilege".to_owned(), Value::Bool(true)), "{report}");
    let works = |name: &str| told.iter().find(|(known, _)| known == name).expect("is told").1 == true;
    assert!(works("lock_flag") || !works("held_opens"), "{told:?}");
}

#[test]
fn each_trusted_program_is_told_with_whether_it_is_still_that_one() {
    let lab = Lab::new();
    let config = tempfile::tempdir().expect("a folder");
    let folder = config.path().join("keepwatch");
    fs::create_dir(&folder).expect("makes");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("chmods");
    let [cat, shell] = ["/bin/cat", "/bin/sh"].map(|program| fs::canonicalize(program).expect("is there"));
    let digest = keepwatch::digest::Digest::of(&fs::read(&cat).expect("reads"));
    // The shell with the digest of another program.
    let entry = |program: &Path| {
        format!("[[trust]]\nprogram = \"{}\"\nsha256 = \"{digest}\"\nmay = [\"read\"]\n", program.display())
    };
    let file = folder.join("config.toml");
    fs::write(&file, entry(&cat) + &entry(&shell)).expect("writes");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("chmods");
    let doctor = || {
        let output = lab.command(&["doctor", "--json"]).env("XDG_CONFIG_HOME", config.path()).output().expect("starts");
        serde_json::from_slice::<Value>(&output.stdout).expect("is JSON")
    };
    let report = doctor();
    let told: Vec<_> = rows(&report, "trust").iter().map(|row| (row["name"].clone(), row["works"].clone())).collect();
    let named = |program: &Path| Value::from(program.to_str().expect("is text"));
    assert_eq!(told, [(named(&cat), true.into()), (named(&shell), false.into())]);
    fs::write(&file, "[[trust]]\nprogramme = 1\n").expect("writes");
    let report = doctor();
    let row = rows(&report, "trust")[0];
    assert_eq!((&row["name"], &row["works"]), (&"config.toml".into(), &false.into()));
    assert!(row["detail"].as_str().is_some_and(|detail| detail.contains("line 2, column 1")), "{row}");
}
