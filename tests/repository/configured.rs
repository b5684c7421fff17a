//! Hooks in other places, and includes.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use keepwatch::git::Warning;
use keepwatch::rules::{Mode, Rule};

use crate::support::{Lab, classify, covered_outside};

fn hooks(lab: &Lab, path: &str) {
    lab.git(&["config", "core.hooksPath", path]);
}

#[test]
fn configured_hooks_in_the_tree_are_covered_whether_they_exist_or_not() {
    let lab = Lab::new();
    hooks(&lab, "later/hooks");
    let rules = lab.rules();
    let class = classify(&rules, "later/hooks/pre-push").expect("covered");
    assert_eq!((class.rule, class.mode), (Rule::GitControl, Mode::Restore));
    assert!(classify(&rules, "later/other").is_none());
}

#[test]
fn configured_hooks_elsewhere_are_a_root_of_their_own() {
    for exists in [true, false] {
        let lab = Lab::new();
        if exists {
            fs::create_dir_all(lab.home.join("shared/hooks")).expect("a directory");
        }
        hooks(&lab, "~/shared/hooks");
        let rules = lab.rules();
        let parent = if exists { lab.home.join("shared") } else { lab.home.clone() };
        assert_eq!(rules.set.external_roots(), [parent]);
        assert!(covered_outside(&rules, &lab.home.join("shared/hooks/pre-commit")));
        assert!(covered_outside(&rules, &lab.home.join("shared/hooks")));
        assert!(!covered_outside(&rules, &lab.home.join("shared/other")));
    }
}

#[test]
fn hooks_behind_a_link_are_covered_at_both_ends() {
    let lab = Lab::new();
    fs::create_dir(lab.home.join("real")).expect("a directory");
    symlink(lab.home.join("real"), lab.repo.join("hooks")).expect("a link");
    hooks(&lab, "hooks");
    let rules = lab.rules();
    assert!(classify(&rules, "hooks").is_some());
    assert!(covered_outside(&rules, &lab.home.join("real/pre-commit")));

    let lab = Lab::new();
    fs::create_dir(lab.home.join("real")).expect("a directory");
    fs::remove_dir_all(lab.repo.join(".git/hooks")).expect("removed");
    symlink(lab.home.join("real"), lab.repo.join(".git/hooks")).expect("a link");
    assert!(covered_outside(&lab.rules(), &lab.home.join("real/pre-commit")));
}

#[test]
fn no_hooks_path_covers_the_whole_tree() {
    for path in [".", "..", "/"] {
        let lab = Lab::new();
        hooks(&lab, path);
        let rules = lab.rules();
        assert!(classify(&rules, "src/app.py").is_none(), "{path}");
        assert_eq!(classify(&rules, "pre-commit").is_some(), path == ".", "{path}");
        if path == ".." {
            assert!(covered_outside(&rules, &lab.home.join("pre-commit")));
            assert!(!covered_outside(&rules, &lab.home.join("other")));
        }
    }
    let lab = Lab::new();
    hooks(&lab, "/dev/null");
    assert_eq!(lab.view().places, Default::default());
}

#[test]
fn every_hooks_path_that_could_hold_is_found() {
    let lab = Lab::new();
    fs::write(lab.home.join(".gitconfig"), "[core]\nhooksPath = from/home\n").expect("written");
    lab.write(".git/config.worktree", "[core]\nhooksPath = from/worktree\n");
    lab.write("part.gitconfig", "[core]\nhooksPath = from/include\n[include]\npath = part.gitconfig\n");
    let include = "[includeIf \"onbranch:never\"]\npath = ../part.gitconfig\n[core]\nhooksPath = from/config\n";
    let config = fs::read_to_string(lab.repo.join(".git/config")).expect("read");
    lab.write(".git/config", format!("{config}{include}"));
    let rules = lab.rules();
    for place in ["home", "worktree", "include", "config"] {
        assert!(classify(&rules, &format!("from/{place}/pre-push")).is_some(), "{place}");
    }
    assert_eq!(classify(&rules, "part.gitconfig").map(|class| class.rule), Some(Rule::GitControl));
}

#[test]
fn ten_thousand_includes_end_in_a_moment_and_a_warning() {
    let lab = Lab::new();
    let mut config = "[include]\n".to_owned();
    for number in 0..10_000 {
        config.push_str(&format!("path = ../parts/{number}\n"));
    }
    config.push_str("path = config\n[core]\nhooksPath = last\n");
    lab.write(".git/config", config);
    for number in 0..300 {
        lab.write(&format!("parts/{number}"), format!("[include]\npath = {}\npath = {number}\n", number + 1));
    }
    let start = Instant::now();
    let view = lab.view();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(view.warnings.contains(&Warning::TooManyIncludes), "{:?}", view.warnings);
    assert!(view.places.zones.iter().any(|zone| zone.path.as_bytes() == b"last"));
}

#[test]
fn faulty_and_unusual_settings_are_warned_about() {
    let lab = Lab::new();
    lab.write(".git/config", "[core\n[core]\nhooksPath = ~someone/hooks\n");
    let warnings = lab.view().warnings;
    let path = lab.repo.join(".git/config");
    assert!(warnings.contains(&Warning::ConfigFaulty { path, line: 1 }), "{warnings:?}");
    assert!(warnings.contains(&Warning::HomeUnknown { value: b"~someone/hooks".to_vec() }), "{warnings:?}");
}
