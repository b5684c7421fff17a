use super::*;
use std::fs;
use std::path::Path;

fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Arc<Root>) {
    let temp = tempfile::tempdir().expect("a folder");
    for (path, content) in files {
        let path = temp.path().join(path);
        fs::create_dir_all(path.parent().expect("has one")).expect("makes");
        fs::write(path, content).expect("writes");
    }
    let root = Arc::new(Root::open(temp.path()).expect("opens"));
    (temp, root)
}

fn asked(pattern: &str) -> FileSearch {
    FileSearch { pattern: pattern.into(), path: None, contains: None, regex: false, all: false }
}

fn paths(root: &Arc<Root>, request: &FileSearch) -> Vec<String> {
    let answer = search(root, request).expect("searches");
    let list = answer.get("paths").or_else(|| answer.get("hits")).and_then(Value::as_array).expect("a list");
    list.iter().map(|hit| hit.as_str().or_else(|| hit["path"].as_str()).expect("a path").to_owned()).collect()
}

#[test]
fn a_pattern_without_a_slash_is_for_names_and_one_with_a_slash_for_paths() {
    let (_temp, root) = tree(&[("a.rs", ""), ("src/b.rs", ""), ("src/deep/c.rs", ""), ("src/rs", "")]);
    let found =
        |pattern, path: Option<&str>| paths(&root, &FileSearch { path: path.map(Into::into), ..asked(pattern) });
    assert_eq!(found("*.rs", None), ["a.rs", "src/b.rs", "src/deep/c.rs"]);
    assert_eq!(found("src/*.rs", None), ["src/b.rs"]);
    assert_eq!(found("src/**/*.rs", None), ["src/b.rs", "src/deep/c.rs"]);
    assert_eq!(found("deep/*", Some("src")), ["src/deep/c.rs"]);
    assert_eq!(found("src", None), [""; 0], "a directory is no file");
    for pattern in ["", "../*", "/etc/*", "a\\b", "[", "{a"] {
        assert!(matches!(search(&root, &asked(pattern)), Err(FilesError::Pattern(_))), "{pattern:?}");
    }
}

#[test]
fn what_a_file_holds_is_found_with_its_lines() {
    let (_temp, root) = tree(&[("a.txt", "one\nthe needle\n"), ("b.txt", "need.e\n"), ("c.md", "needle\n")]);
    let request = FileSearch { contains: Some("need.e".into()), ..asked("*.txt") };
    assert_eq!(paths(&root, &request), ["b.txt"], "a literal is no expression");
    let request = FileSearch { regex: true, ..request };
    assert_eq!(paths(&root, &request), ["a.txt", "b.txt"]);
    let answer = search(&root, &request).expect("searches");
    assert_eq!(
        answer["hits"][0],
        json!({"path": "a.txt", "lines": [{"line": 2, "text": "the needle"}], "more": false})
    );
    for faulty in ["(", "a\\", "x{1000000}{1000000}"] {
        let request = FileSearch { contains: Some(faulty.into()), ..request.clone() };
        assert!(matches!(search(&root, &request), Err(FilesError::Expression { .. })), "{faulty}");
    }
}

#[test]
fn many_lines_of_one_file_are_cut_and_say_so() {
    let wide = format!("x{}\n", "y".repeat(5000));
    let (_temp, root) = tree(&[("many", &"x\n".repeat(50)), ("ten", &"x\n".repeat(10)), ("wide", &wide)]);
    let answer = search(&root, &FileSearch { contains: Some("x".into()), ..asked("*") }).expect("searches");
    let told = |at: usize| (answer["hits"][at]["lines"].as_array().expect("a list").len(), &answer["hits"][at]["more"]);
    assert_eq!((told(0), told(1)), ((10, &json!(true)), (10, &json!(false))));
    assert_eq!(answer["hits"][2]["lines"][0]["text"].as_str().expect("text").len(), 200);
}

#[test]
fn what_git_ignores_is_left_out_unless_all_is_asked_for() {
    let (_temp, root) = tree(&[
        (".gitignore", "build/\n*.log\n!keep.log\n"),
        (".git/config", ""),
        (".git/info/exclude", "private\n"),
        (".github/x", ""),
        ("a.log", ""),
        ("build/out", ""),
        ("keep.log", ""),
        ("private/x", ""),
        ("sub/.gitignore", "/here\n"),
        ("sub/here", ""),
        ("sub/deep/here", ""),
    ]);
    let most = [".github/x", ".gitignore", "keep.log", "sub/.gitignore", "sub/deep/here"];
    assert_eq!(paths(&root, &asked("*")), most);
    assert_eq!(paths(&root, &FileSearch { path: Some("sub".into()), ..asked("*") }), most[3..]);
    assert_eq!(paths(&root, &FileSearch { path: Some("sub".into()), ..asked("here") }), ["sub/deep/here"]);
    assert_eq!(paths(&root, &FileSearch { all: true, ..asked("*") }).len(), 11);
}

#[test]
fn the_first_hits_come_out_whatever_the_number_of_threads_makes_of_the_order() {
    let names: Vec<String> = (0..1400).map(|n| format!("d{}/{:04}.txt", n % 7, n)).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "needle\n")).collect();
    let (_temp, root) = tree(&files);
    let mut wanted = names.clone();
    wanted.sort();
    for contains in [None, Some("needle".to_owned())] {
        let request = FileSearch { contains, ..asked("*.txt") };
        assert_eq!(search(&root, &request).expect("searches")["truncated"], true);
        for _ in 0..5 {
            assert_eq!(paths(&root, &request), wanted[..500]);
        }
    }
    let exact = FileSearch { path: Some("d1".into()), ..asked("*") };
    assert_eq!(search(&root, &exact).expect("searches")["truncated"], false);
}

#[test]
fn binary_files_special_files_and_links_are_not_looked_into() {
    let (temp, root) = tree(&[("plain", "needle\n"), ("binary", "needle\0needle\n")]);
    let late = [b"needle\n".repeat(50_000), b"\0".to_vec()].concat();
    fs::write(temp.path().join("late"), late).expect("writes");
    std::os::unix::fs::symlink("plain", temp.path().join("link")).expect("links");
    std::os::unix::fs::symlink("/", temp.path().join("away")).expect("links");
    let made = std::process::Command::new("mkfifo").arg(temp.path().join("fifo")).status();
    assert!(made.is_ok_and(|status| status.success()));
    let found = paths(&root, &FileSearch { contains: Some("needle".into()), ..asked("*") });
    // `late` has enough lines before the NUL to stop there, as ripgrep does with its output closed.
    assert_eq!(found, ["late", "plain"]);
    assert_eq!(paths(&root, &asked("*")), ["away", "binary", "late", "link", "plain"]);
}

#[test]
fn an_endless_line_takes_no_endless_memory() {
    let (temp, root) = tree(&[("plain", "needle\n")]);
    fs::write(temp.path().join("endless"), vec![b'x'; 40 << 20]).expect("writes");
    let answer = search(&root, &FileSearch { contains: Some("needle".into()), ..asked("*") }).expect("searches");
    assert_eq!((&answer["hits"][0]["path"], &answer["unreadable"]), (&json!("plain"), &json!(1)));
}

#[test]
fn a_folder_that_cannot_be_read_is_counted_and_passed_over() {
    use std::os::unix::fs::PermissionsExt as _;
    let (temp, root) = tree(&[("open/a", ""), ("shut/b", "")]);
    let shut = temp.path().join("shut");
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).expect("chmods");
    let answer = search(&root, &asked("*")).expect("searches");
    let listed = fs::read_dir(Path::new(&shut)).is_ok();
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o700)).expect("chmods");
    // To root nothing is shut.
    let expected = if listed { (2, None) } else { (1, Some(&json!(1))) };
    assert_eq!((answer["paths"].as_array().expect("a list").len(), answer.get("unreadable")), expected);
}
