//! What is ignored and tracked, against git's own answers.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use keepwatch::git::{Committed, Warning};
use keepwatch::rules::glob::Glob;
use keepwatch::rules::{Flags, Rule, assemble, file};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Lab, classify};

const PATHS: &[&str] = &[
    "a", "b", "a/b", "a/b/c", "b/a", "b/c/a", "c/b/a", "ab", "a/ab", "abc", "a/abc/b", ".a", "a.b", "a b", "c/c/c/c",
    "b/b", "c/[a]", "{a,b}", "b/a.b", "a*", "a/c/b/c",
];

/// The paths git ignores, given the ignore files alone.
fn ignored_by_git(lab: &Lab) -> Vec<String> {
    let mut child = lab
        .command(&["check-ignore", "--stdin", "-z", "--no-index"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git runs");
    let list = PATHS.join("\0");
    child.stdin.take().expect("a pipe").write_all(list.as_bytes()).expect("taken");
    let output = child.wait_with_output().expect("git ends");
    let text = String::from_utf8(output.stdout).expect("plain names");
    text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
}

/// Ignore files of a few lines over a few letters, so that they hit. `**` stands alone: what git makes of `a**/` follows
/// from an optimization, and we ignore less there.
fn ignore_file() -> impl Strategy<Value = String> {
    let word = "[abc]{1,2}|[abc?]{0,2}\\*[abc?]{0,2}|[abc?]{1,3}|\\*\\*|\\[[!^]?[abc-]{1,3}\\]|\\\\[abc*]|\\{a,b\\}|a\\\\ b|\\.[ab]|\\[\\[:alpha:\\]\\]";
    let line = ("!?/?", proptest::collection::vec(word, 1..4), "/?")
        .prop_map(|(start, words, end)| format!("{start}{}{end}\n", words.join("/")));
    proptest::collection::vec(line, 1..5).prop_map(|lines| lines.concat())
}

#[test]
fn ignoring_agrees_with_git() {
    let lab = Lab::new();
    for path in PATHS {
        // Some are directories of others; git looks at what is there.
        if !PATHS.iter().any(|other| other.starts_with(&format!("{path}/"))) {
            lab.write(path, "");
        }
    }
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(150) });
    runner
        .run(&(ignore_file(), ignore_file()), |(top, nested)| {
            lab.write(".gitignore", &top);
            lab.write("a/.gitignore", &nested);
            let wanted = ignored_by_git(&lab);
            let view = lab.view();
            for path in PATHS {
                let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
                let is_dir = lab.repo.join(path).is_dir();
                let ours = if is_dir {
                    view.ignored.ignores_dir(path.as_bytes())
                } else {
                    view.ignored.ignores_file(dir.as_bytes(), name.as_bytes())
                };
                // Of a folder whose own file ignores everything we say so; git says it of the things in it.
                let own = is_dir && *path == "a" && ours;
                prop_assert!(
                    own || ours == wanted.iter().any(|other| other == path),
                    "{path}: we say {ours} for {top:?} and {nested:?}"
                );
            }
            Ok(())
        })
        .expect("the same answers");
}

#[test]
fn tracked_paths_are_read_from_every_version_of_the_index() {
    for version in ["2", "3", "4"] {
        let lab = Lab::new();
        for path in ["a/one.txt", "a/two.txt", "b", ".gitignore", "z/z/z"] {
            lab.write(path, path);
        }
        lab.write(".gitignore", "*.log\n");
        lab.write("forced.log", "1");
        lab.git(&["add", "-A", "-f"]);
        if version == "3" {
            lab.write("intent", "");
            lab.git(&["add", "-N", "intent"]);
        }
        lab.git(&["update-index", &format!("--index-version={version}")]);
        let view = lab.view();
        assert_eq!(view.warnings, [], "version {version}");
        for path in ["a/one.txt", "a/two.txt", "b", "z/z/z", "forced.log"] {
            let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
            assert!(view.tracked.contains(dir.as_bytes(), name.as_bytes()), "version {version}: {path}");
        }
        assert!(!view.tracked.contains(b"a", b"three.txt"), "version {version}");
    }
}

#[test]
fn a_split_index_makes_every_path_count_as_tracked() {
    let lab = Lab::new();
    lab.write("a", "");
    lab.git(&["add", "-A"]);
    lab.git(&["update-index", "--split-index"]);
    let view = lab.view();
    assert!(view.tracked.contains(b"no", b"such"));
    assert!(matches!(view.warnings[..], [Warning::Index(_)]), "{:?}", view.warnings);
}

#[test]
fn the_rule_file_is_compared_with_the_index() {
    for format in ["sha1", "sha256"] {
        let lab = Lab::bare();
        lab.git(&["init", "-q", &format!("--object-format={format}")]);
        assert_eq!(lab.view().committed, None);
        lab.write(".cage.yaml", "protect: []\n");
        assert_eq!(lab.view().committed, Some(Committed::Untracked));
        lab.git(&["add", ".cage.yaml"]);
        assert_eq!(lab.view().committed, Some(Committed::Same));
        lab.write(".cage.yaml", "protect: [] # more\n");
        assert_eq!(lab.view().committed, Some(Committed::Modified));
        fs::write(lab.repo.join(".git/index"), "garbage").expect("written");
        assert_eq!(lab.view().committed, Some(Committed::Unknown));
    }
}

#[test]
fn ignore_files_written_after_the_start_change_nothing() {
    let lab = Lab::new();
    lab.write("vendor/lib/x", "");
    let rules = lab.rules();
    rules.set.freeze();
    lab.write(".gitignore", "vendor/\n");
    lab.write("vendor/.gitignore", "*\n");
    assert_eq!(classify(&rules, "vendor/lib/.env").map(|class| class.rule), Some(Rule::Secrets));
    assert!(classify(&lab.rules(), "vendor/lib/.env").is_none(), "a later run takes it as it is");
}

#[test]
fn untracked_ignore_files_of_environments_count() {
    let lab = Lab::new();
    lab.write(".venv/.gitignore", "*\n");
    lab.write(".venv/lib/.env", "");
    assert!(classify(&lab.rules(), ".venv/lib/.env").is_none());
}

#[test]
fn the_persons_own_ignore_file_counts_unless_a_condition_set_it() {
    let lab = Lab::new();
    fs::create_dir_all(lab.home.join(".config/git")).expect("a directory");
    fs::write(lab.home.join(".config/git/ignore"), "vendor\n").expect("written");
    assert!(lab.view().ignored.ignores_dir(b"vendor"));
    fs::write(lab.home.join("mine"), "dist\n").expect("written");
    fs::write(lab.home.join(".gitconfig"), "[core]\nexcludesFile = ~/mine\n").expect("written");
    let view = lab.view();
    assert!(view.ignored.ignores_dir(b"dist") && !view.ignored.ignores_dir(b"vendor"));
    fs::write(lab.home.join("conditional"), "[core]\nexcludesFile = ~/other\n").expect("written");
    let included = "[core]\nexcludesFile = ~/mine\n[includeIf \"gitdir:/x\"]\npath = conditional\n";
    fs::write(lab.home.join(".gitconfig"), included).expect("written");
    assert!(!lab.view().ignored.ignores_dir(b"dist"));
}

#[test]
fn flags_and_file_name_the_allowed_area_together() {
    let lab = Lab::new();
    lab.write(".gitignore", "*.log\n");
    let file = file::parse(b"allow_only: ['docs/**']\n").expect("valid");
    let flags = Flags { lock_deps: true, allow_only: vec![Glob::compile("src/**").expect("a glob")] };
    let rules = assemble(file, flags, Some(lab.view()));
    assert_eq!(rules.set.scope(), Some(vec!["src/**", "docs/**"]));
    let sources: Vec<_> = rules.scope_sources.iter().map(|source| (source.glob.as_str(), source.source)).collect();
    assert_eq!(sources, [("src/**", "--allow-only"), ("docs/**", ".cage.yaml")]);
    assert!(rules.frozen);
    for free in ["src/a", "docs/b", "x.log"] {
        assert_eq!(classify(&rules, free), None, "{free}");
    }
    assert_eq!(classify(&rules, "notes.txt").map(|class| class.rule), Some(Rule::OutOfScope));
}
