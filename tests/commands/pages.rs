//! Help, completions, manual pages, and what is called wrongly.

use std::process::Stdio;

use crate::lab::Lab;

#[test]
fn completions_are_a_script_for_the_shell_asked_for() {
    let lab = Lab::new();
    let bash = lab.keep(&["completions", "bash"]);
    assert_eq!(bash.code, 0);
    assert!(bash.out.contains("complete -F _keep") && bash.out.contains("--decision-timeout"), "{}", bash.out);
    assert!(lab.keep(&["completions", "fish"]).out.contains("complete -c keep"));
    assert_eq!(lab.keep(&["completions", "tea"]).code, 2);
}

#[test]
fn manual_pages_are_of_keep_and_of_its_commands() {
    let lab = Lab::new();
    assert!(lab.keep(&["man"]).out.contains(".TH keep 1"));
    let watch = lab.keep(&["man", "watch"]);
    assert!(watch.out.contains("keep\\-watch") && watch.out.contains("Example: keep watch"), "{}", watch.out);
    assert!(lab.keep(&["man", "quarantine", "restore"]).out.contains("\\-\\-force"));
    let none = lab.keep(&["man", "tea\u{1b}[2J"]);
    assert_eq!((none.code, none.out.as_str()), (2, ""));
    assert!(!none.err.contains('\x1b'), "{}", none.err);
}

#[test]
fn help_and_version_are_results_and_wrong_calls_are_refusals() {
    let lab = Lab::new();
    for arguments in [&["--help"][..], &["--version"], &["log", "--help"], &["quarantine", "restore", "-h"]] {
        let ran = lab.keep(arguments);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        assert!(!ran.out.is_empty());
    }
    let wrong: [&[&str]; 7] = [
        &[],
        &["tea"],
        &["log", "--tea"],
        &["log", "--color", "mauve"],
        &["quarantine"],
        &["quarantine", "show"],
        &["quarantine", "show", "20261130T094107123Z-00000", "--json", "--content"],
    ];
    for arguments in wrong {
        let ran = lab.keep(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}");
        assert!(!ran.err.is_empty());
    }
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let lab = Lab::new();
    for command in [&["log", "gone"][..], &["recover", "gone"], &["quarantine", "list", "gone"]] {
        let ran = lab.keep(command);
        assert_eq!(ran.code, 2);
        assert!(ran.err.starts_with("keep: [GXT_CAGE_ROOT] "), "{}", ran.err);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let lab = Lab::new();
    for arguments in [&["man"][..], &["completions", "bash"], &["--help"]] {
        let mut child = lab.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("ends");
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{arguments:?}");
    }
}
