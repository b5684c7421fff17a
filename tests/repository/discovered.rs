//! Finding the repository.

use std::fs;
use std::os::unix::fs::symlink;

use keepwatch::git::{GitError, discover};

use crate::support::{Lab, classify, covered_outside};

#[test]
fn an_ordinary_repository_is_found_from_below() {
    let lab = Lab::new();
    lab.write("a/b/c", "");
    let found = discover(&lab.repo.join("a/b")).expect("no error").expect("a repository");
    assert_eq!(found.top, lab.repo);
    assert_eq!((&found.git_dir, &found.common_dir), (&lab.repo.join(".git"), &lab.repo.join(".git")));
    assert_eq!(lab.view().places, Default::default());
}

#[test]
fn outside_of_git_there_is_none() {
    let lab = Lab::bare();
    assert_eq!(discover(&lab.repo).expect("no error"), None);
}

#[test]
fn a_linked_worktree_has_its_control_files_outside() {
    let mut lab = Lab::new();
    lab.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    lab.git(&["worktree", "add", "-q", "../side", "-b", "side"]);
    let main = std::mem::replace(&mut lab.repo, lab.home.join("side"));
    let rules = lab.rules();
    assert!(classify(&rules, ".git").is_some());
    for path in [".git/config", ".git/hooks/post-commit", ".git/worktrees/side/config.worktree", ".git/info/attributes"]
    {
        assert!(covered_outside(&rules, &main.join(path)), "{path}");
    }
    assert!(covered_outside(&rules, &main.join(".git/worktrees/side/commondir")));
    assert!(covered_outside(&rules, &main.join(".git")), "a swap of the folder must be seen");
    assert!(!covered_outside(&rules, &main.join(".env")));
}

#[test]
fn a_submodule_has_its_control_files_in_the_outer_repository() {
    let mut lab = Lab::new();
    lab.git(&["init", "-q", "../lib"]);
    let inner = lab.home.join("lib");
    lab.git(&["-C", "../lib", "commit", "-q", "--allow-empty", "-m", "first"]);
    lab.git(&["-c", "protocol.file.allow=always", "submodule", "-q", "add", inner.to_str().expect("plain"), "lib"]);
    let rules = lab.rules();
    for path in [".git/modules/lib/config", ".git/modules/lib/hooks/pre-commit", "lib/.git", ".gitmodules"] {
        assert!(classify(&rules, path).is_some(), "{path}");
    }
    let outer = std::mem::replace(&mut lab.repo, lab.home.join("repo/lib"));
    assert!(covered_outside(&lab.rules(), &outer.join(".git/modules/lib/config")));
}

#[test]
fn a_git_directory_that_is_a_link_is_covered_where_it_leads() {
    let lab = Lab::new();
    fs::rename(lab.repo.join(".git"), lab.home.join("real.git")).expect("moved");
    symlink(lab.home.join("real.git"), lab.repo.join(".git")).expect("a link");
    let rules = lab.rules();
    assert!(classify(&rules, ".git").is_some());
    assert!(covered_outside(&rules, &lab.home.join("real.git/config")));
}

#[test]
fn a_repository_that_is_none_is_an_error_and_not_its_absence() {
    let refused = |lab: &Lab| discover(&lab.repo).expect_err("refused");
    let lab = Lab::bare();
    symlink(".git", lab.repo.join(".git")).expect("a link to itself");
    assert!(matches!(refused(&lab), GitError::Broken { .. }));
    for text in ["gitdir: ../nowhere\n", "gitdir:../repo\n", "", "gitdir: \0\n", "gitdir: .\n"] {
        let lab = Lab::bare();
        lab.write(".git", text);
        assert!(matches!(refused(&lab), GitError::Broken { .. }), "{text:?}");
    }
    let lab = Lab::bare();
    lab.write(".git", "gitdir: ".to_owned() + &"a".repeat(1 << 20));
    assert!(matches!(refused(&lab), GitError::Broken { reason: "the file is too long", .. }));
    let lab = Lab::new();
    fs::remove_file(lab.repo.join(".git/HEAD")).expect("removed");
    assert!(matches!(refused(&lab), GitError::Broken { .. }));
    let lab = Lab::new();
    lab.write(".git/commondir", "../nowhere\n");
    assert!(matches!(refused(&lab), GitError::Broken { .. }));
}

#[test]
fn bare_repositories_and_git_directories_have_no_tree() {
    let lab = Lab::bare();
    lab.git(&["init", "-q", "--bare"]);
    assert!(matches!(discover(&lab.repo), Err(GitError::Bare { path }) if path == lab.repo));
    let lab = Lab::new();
    let inside = lab.repo.join(".git/hooks");
    assert!(matches!(discover(&inside), Err(GitError::InsideGitDir { path }) if path == lab.repo.join(".git")));
}
