//! The report, field by field.

use serde_json::Value;

use crate::support::{Sandbox, sha, until};

/// Times, ids, digests of nothing that matters here and paths of this home are given names of their own.
fn normalised(value: &mut Value, home: &str) {
    match value {
        Value::String(text) => {
            let is_time = text.len() == 24 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
            if is_time {
                *text = "TIME".to_owned();
            } else {
                *text = text.replace(home, "HOME");
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| normalised(value, home)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), &value) {
                    ("quarantine" | "journal_session" | "session_log", Value::String(_)) => *value = "ID".into(),
                    ("lost", Value::Object(_)) => *value = Value::Object(serde_json::Map::new()),
                    _ => normalised(value, home),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn the_report_has_these_fields_and_no_others() {
    let lab = Sandbox::new();
    lab.write(".cage.yaml", b"contest_limit: 2\nallow_only: [\"**\"]\n");
    lab.git(&["add", "README.md", ".cage.yaml", ".gitignore", "package-lock.json"]);
    lab.git(&["commit", "-q", "-m", "start"]);
    // A first run is killed with a change open, so that there is something to recover.
    let mut first = lab.watch(&[]);
    lab.write("CLAUDE.md", b"killed\n");
    first.asks("CLAUDE.md", "agent_config", "added", &sha(b"killed\n"));
    first.killed();
    let mut watch = lab.watch(&["--backend", "poll", "--watch-interval-ms", "50", "--decision-timeout", "300"]);
    let reject = |watch: &mut crate::support::Watch, content: &[u8]| {
        lab.write(".env", content);
        watch.asks(".env", "secrets", "modified", &sha(content));
        watch.rejects(".env");
    };
    reject(&mut watch, b"A=1\n");
    reject(&mut watch, b"A=2\n");
    lab.write(".env", b"A=3\n");
    watch.says("restored (contested)");
    std::fs::remove_file(lab.path(".git/info/exclude")).expect("removes");
    watch.asks(".git/info/exclude", "git_control", "deleted", "gone");
    watch.accepts(".git/info/exclude");
    lab.write("package-lock.json", b"{}");
    watch.says("kept, reported only");
    std::fs::hard_link(lab.path(".env"), lab.base.join("twin")).expect("links");
    watch.says(".env linked");
    lab.write("AGENTS.md", b"last\n");
    watch.asks("AGENTS.md", "agent_config", "added", &sha(b"last\n"));
    let ended = watch.stop();
    let mut report = ended.report();
    normalised(&mut report, lab.base.to_str().expect("is text"));
    let limits = report["limits"].as_array_mut().expect("a list");
    assert!(limits.iter().all(|limit| limit.as_str().is_some_and(|limit| limit.ends_with('.'))));
    limits.truncate(1);
    let digits = |content: &[u8]| keepwatch::digest::Digest::of(content).to_string();
    let text = serde_json::to_string_pretty(&report).expect("is JSON");
    let text = [
        (&b"A=1\n"[..], "SHA-1"),
        (b"A=2\n", "SHA-2"),
        (b"A=3\n", "SHA-3"),
        (b"{}", "SHA-LOCK"),
        (b"last\n", "SHA-LAST"),
    ]
    .iter()
    .fold(text, |text, (content, name)| text.replace(&digits(content), name));
    insta::assert_snapshot!(text, @r#"
{
  "schema": "gantry.cage-watch.v1",
  "root": "HOME/home/repo",
  "exit_code": 3,
  "protected_files": 5,
  "backend": "poll",
  "started_at": "TIME",
  "ended_at": "TIME",
  "decisions": [
    {
      "path": ".env",
      "rule": "secrets",
      "kind": "modified",
      "outcome": "rejected",
      "sha256_after": "SHA-1",
      "detected_at": "TIME",
      "decided_at": "TIME",
      "writer": null,
      "quarantine": "ID"
    },
    {
      "path": ".env",
      "rule": "secrets",
      "kind": "modified",
      "outcome": "rejected",
      "sha256_after": "SHA-2",
      "detected_at": "TIME",
      "decided_at": "TIME",
      "writer": null,
      "quarantine": "ID"
    },
    {
      "path": ".env",
      "rule": "secrets",
      "kind": "modified",
      "outcome": "auto_restored",
      "sha256_after": "SHA-3",
      "detected_at": "TIME",
      "decided_at": "TIME",
      "writer": null,
      "quarantine": "ID"
    },
    {
      "path": ".git/info/exclude",
      "rule": "git_control",
      "kind": "deleted",
      "outcome": "accepted",
      "sha256_after": null,
      "detected_at": "TIME",
      "decided_at": "TIME",
      "writer": null,
      "quarantine": null
    },
    {
      "path": "AGENTS.md",
      "rule": "agent_config",
      "kind": "added",
      "outcome": "restored_at_exit",
      "sha256_after": "SHA-LAST",
      "detected_at": "TIME",
      "decided_at": "TIME",
      "writer": null,
      "quarantine": "ID"
    }
  ],
  "kept": [
    {
      "path": "package-lock.json",
      "rule": "lockfile",
      "kind": "modified",
      "sha256_after": "SHA-LOCK",
      "detected_at": "TIME",
      "writer": null
    }
  ],
  "dependencies": "report",
  "scope": [
    "**"
  ],
  "scope_sources": [
    {
      "glob": "**",
      "source": ".cage.yaml"
    }
  ],
  "contested": [
    ".env"
  ],
  "held": [],
  "linked": [
    ".env"
  ],
  "locked": null,
  "lost": {},
  "trapped_signal": "SIGTERM",
  "session_log": "ID",
  "recovery": {
    "journal_session": "ID",
    "restored": [
      "CLAUDE.md"
    ],
    "kept": [],
    "failed": []
  },
  "limits": [
    "A change is live until it is decided, for up to the decision timeout."
  ]
}
"#);
}

#[test]
fn every_field_of_the_report_is_explained() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reports.md")).expect("the page");
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    lab.write(".env", b"A=1\n");
    watch.says("keep watch: .env changed");
    let report = watch.stop().report();
    let fields = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    for field in fields(&report).into_iter().chain(fields(&report["decisions"][0])) {
        assert!(page.contains(&format!("`{field}`")) || page.contains(&format!("`{field}[]`")), "{field}");
    }
}

#[test]
fn every_refusal_code_is_in_the_table() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/exit-codes.md")).expect("the page");
    for code in keepwatch::cli::exit::RefusalCode::ALL {
        assert!(page.contains(&format!("| `{}` |", code.name())), "{} is not explained", code.name());
    }
}

#[test]
fn a_report_is_one_line_that_can_be_looked_at_safely() {
    let lab = Sandbox::new();
    let mut watch = lab.watch(&[]);
    lab.write(".env.\x1b[31m\u{202e}\n", b"A=1\n");
    watch.says("keep watch: .env.");
    until("the entry", || lab.journal().contains("session"));
    let ended = watch.stop();
    let line = ended.output.trim_end_matches('\n');
    assert!(!line.chars().any(|character| character.is_control() || character == '\u{202e}'), "{line:?}");
}
