//! Differences as a whole; above all, that no value gets out.

use proptest::prelude::*;

use super::*;

fn lines(format: Format, before: &str, after: &str) -> Vec<String> {
    difference(format, Some(before.as_bytes()), Some(after.as_bytes())).lines
}

#[test]
fn the_name_tells_the_format() {
    let of = |path: &str| Format::of(path.as_bytes(), Rule::Secrets);
    assert_eq!(of("svc/.env.local"), Format::Dotenv);
    assert_eq!(of(".env"), Format::Dotenv);
    assert_eq!(of(".envrc"), Format::Lines, "a shell script");
    assert_eq!(of(".github/workflows/ci.yml"), Format::Yaml);
    assert_eq!(of(".mcp.json"), Format::Json);
    assert_eq!(of("Cargo.lock"), Format::Toml);
    assert_eq!(of(".cargo/config.toml"), Format::Toml);
    assert_eq!(of("config"), Format::Lines);
    assert_eq!(Format::of(b".git/config", Rule::GitControl), Format::GitConfig);
    assert_eq!(Format::of(b"/r/.git/worktrees/w/config.worktree", Rule::GitControl), Format::GitConfig);
    assert_eq!(of(".gitmodules"), Format::GitConfig);
}

#[test]
fn a_long_difference_is_cut_with_what_matters_first() {
    let many: String = (0..60).map(|n| format!("[section{n}]\nkey = 1\n")).collect();
    let after = format!("{many}[core]\npager = x\n");
    let difference = difference(Format::GitConfig, Some(b""), Some(after.as_bytes()));
    assert_eq!(
        difference.lines,
        ["+ core.pager (runs a program)", "+ section0.key", "+ section1.key", "… and 58 more"]
    );
    assert_eq!(difference.details.len(), 40);
    assert_eq!(difference.details[38..], ["… and 23 more", "+122 -0 lines"]);
}

#[test]
fn what_is_not_the_format_is_counted() {
    assert_eq!(lines(Format::Json, "{}\n", "{\"a\": 1e999}\n"), ["+1 -1 lines; not valid JSON"]);
    assert_eq!(lines(Format::Yaml, "a: 1\n", "a: [\n"), ["+1 -1 lines; not valid YAML"]);
    assert_eq!(lines(Format::Toml, "a = 1\n", "a = \n"), ["+1 -1 lines; not valid TOML"]);
}

#[test]
fn a_file_that_is_gone_names_the_keys_it_had() {
    let gone = |format, before: &str| difference(format, Some(before.as_bytes()), None);
    assert_eq!(gone(Format::Dotenv, "A=1\nB=2\n").lines, ["- A", "- B"]);
    assert_eq!(gone(Format::Dotenv, "A=1\nB=2\n").details, ["- A", "- B", "all gone: 2 lines"]);
    assert_eq!(gone(Format::Json, "{\"a\": 1}\n").lines, ["- a"]);
    assert_eq!(gone(Format::Yaml, "a: [\n").lines, ["all gone: 1 line; not valid YAML"]);
    assert_eq!(gone(Format::Dotenv, "# nothing\n").lines, ["all gone: 1 line"]);
    assert_eq!(gone(Format::Lines, "a\nb\nc\n").lines, ["all gone: 3 lines"]);
}

#[test]
fn layout_and_comments_are_told_as_such() {
    let expected = ["+1 -1 lines; no key or value changed, only layout, order or comments"];
    assert_eq!(lines(Format::Json, "{\"a\": 1}", "{\"a\":1 }"), expected);
    assert_eq!(lines(Format::Yaml, "a: 1 # one\n", "a: 1 # two\n"), expected);
    assert_eq!(difference(Format::Json, Some(b"{}"), Some(b"{}")), Difference::default());
}

#[test]
fn json_with_comments_is_read_as_editors_do() {
    let before = "{\n // note: \"x\"\n \"a\": \"// no comment\", /* \" */\n \"b\": [1, 2,],\n}\n";
    assert_eq!(lines(Format::Json, before, &before.replace("2,", "3,")), ["~ b[1]"]);
    assert_eq!(lines(Format::Json, before, &before.replace("no comment", "other")), ["~ a"]);
}

#[test]
fn repeated_keys_are_seen_in_json_and_yaml() {
    assert_eq!(lines(Format::Json, "{\"a\":1,\"a\":2}", "{\"a\":9,\"a\":2}"), ["~ a (repeated)"]);
    assert_eq!(lines(Format::Yaml, "a: 2\n", "a: 1\na: 2\n").len(), 1);
}

#[test]
fn structure_is_told_for_every_tree_format() {
    assert_eq!(
        lines(
            Format::Json,
            r#"{"s":{"a":{"command":"x"}}}"#,
            r#"{"s":{"a":{"command":"y"},"b":{"command":"z","args":[]}}}"#
        ),
        ["~ s.a.command", "+ s.b (2 keys)"]
    );
    assert_eq!(
        lines(
            Format::Yaml,
            "on: push\njobs:\n  a:\n    steps:\n    - run: x\n",
            "on: push\njobs:\n  a:\n    steps:\n    - run: y\n    - uses: z\n"
        ),
        ["~ jobs.a.steps[0].run", "+ jobs.a.steps[1] (1 key)"]
    );
    assert_eq!(
        lines(Format::Toml, "[a]\nb = 1\n[[c]]\nd = 1\n", "[a]\nb = 1.5\n[[c]]\nd = 1\n[[c]]\nd = {e = 1}\n"),
        ["~ a.b", "+ c[1] (1 key)"]
    );
    assert_eq!(lines(Format::Yaml, "", "a: 1\n"), ["+ a"]);
    assert_eq!(lines(Format::Yaml, "on: push\n", "on: [push]\ny: no\n"), ["~ on", "+ y"]);
}

#[test]
fn bombs_are_counted_and_do_not_take_long() {
    let deep = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
    assert_eq!(lines(Format::Json, "[]", &deep), ["+1 -1 lines; not valid JSON"]);
    assert_eq!(lines(Format::Toml, "", &format!("a = {deep}")), ["+1 -0 lines; not valid TOML"]);
    assert_eq!(lines(Format::Yaml, "[]", &deep), ["+1 -1 lines; not valid YAML"]);
    let objects = format!("{}1{}", "{\"a\":".repeat(65), "}".repeat(65));
    assert_eq!(lines(Format::Json, "{}", &objects), ["+1 -1 lines; not valid JSON"]);
    let laughs: String =
        (1..12).map(|n| format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 9].join(","))).collect();
    assert_eq!(lines(Format::Yaml, "", &format!("a0: &a0 [x]\n{laughs}")).len(), 1);
    let replayed = format!("a: &a [{}1]\nb: [{}*a]\n", "1,".repeat(8000), "*a,".repeat(10_000));
    assert_eq!(lines(Format::Yaml, "", &replayed), ["+2 -0 lines; not valid YAML"]);
    let open = "KEY='\n".repeat(16_000);
    assert_eq!(lines(Format::Dotenv, "", &open[..MOST_BYTES]), ["+ KEY (repeated)"]);
    let too_large = "A=1\n".repeat(MOST_BYTES / 4 + 1);
    assert_eq!(lines(Format::Dotenv, "", &too_large), [format!("+{} -0 lines", MOST_BYTES / 4 + 1)]);
}

#[test]
fn keys_cannot_draw() {
    let after = "{\"a\\u001b[2J\\u202e\\n\": 1}";
    assert_eq!(lines(Format::Json, "{}", after), ["+ a\\x1b[2J\\u{202e}\\n"]);
}

/// Values use letters no key and no word of ours uses, so that any four of them in a line are a leak.
fn value() -> impl Strategy<Value = String> {
    "[QXZJKV0-9]{4,24}"
}

fn key_name() -> impl Strategy<Value = String> {
    "[a-z_]{1,12}"
}

fn entries() -> impl Strategy<Value = Vec<(String, String)>> {
    proptest::collection::vec((key_name(), value()), 0..8)
}

fn assert_masked(difference: &Difference, values: &[String]) -> Result<(), TestCaseError> {
    for line in difference.lines.iter().chain(&difference.details) {
        for value in values {
            for part in value.as_bytes().windows(4) {
                let part = std::str::from_utf8(part).expect("ASCII");
                prop_assert!(!line.contains(part), "{part:?} of {value:?} in {line:?}");
            }
        }
    }
    Ok(())
}

fn written(format: Format, style: u8, entries: &[(String, String)]) -> String {
    let pairs = entries.iter().enumerate();
    match format {
        Format::Dotenv => pairs
            .map(|(n, (key, value))| match (n + usize::from(style)) % 6 {
                0 => format!("{key}={value}\n"),
                1 => format!("export {key} = '{value}\n{value}={value}'\n"),
                2 => format!("{key}=\"{value}\\\"\n{value} = {value}\" {value}\n"),
                3 => format!("{value}\n# {value}\n"),
                4 => format!("{key}={value} \\\n{value}={value}\n"),
                _ => format!("{key}: {value}\n=={value}\n"),
            })
            .collect(),
        Format::GitConfig => pairs
            .map(|(n, (key, value))| {
                let key = key.replace('_', "");
                match (n + usize::from(style)) % 4 {
                    0 => format!("[core]\n\tk{key} = {value}\n"),
                    1 => format!("[url \"https://{value}@host/{value}\"]\n\tinsteadOf = \"{value}\"\n"),
                    2 => format!("[alias]\n\tk{key} = !{value} \\\n{value}\n# {value}\n"),
                    _ => format!("[a \"{key}\"] ; {value}\n\tk = {value}\n"),
                }
            })
            .collect(),
        Format::Json => {
            let all: Vec<String> = pairs
                .map(|(n, (key, value))| match (n + usize::from(style)) % 3 {
                    0 => format!("\"{key}\": \"{value}\""),
                    1 => format!("\"{key}\": [\"{value}\", {{\"{key}\": \"{value}\"}}]"),
                    _ => format!("/* {value} */ \"{key}\": {{\"{key}\": \"{value}\"}}"),
                })
                .collect();
            format!("{{{}}}", all.join(", "))
        }
        Format::Yaml => pairs
            .map(|(n, (key, value))| match (n + usize::from(style)) % 4 {
                0 => format!("{key}_{n}: {value} # {value}\n"),
                1 => format!("{key}_{n}:\n  - {value}\n  - {key}: {value}\n"),
                2 => format!("{key}_{n}: |\n  {value}\n  {value}: {value}\n"),
                _ => format!("{key}_{n}: \"{value}\n  {value}\"\n"),
            })
            .collect(),
        Format::Toml => pairs
            .map(|(n, (key, value))| match (n + usize::from(style)) % 3 {
                0 => format!("{key}_{n} = \"{value}\" # {value}\n"),
                1 => format!("{key}_{n} = ['{value}', {{ {key} = '{value}' }}]\n"),
                _ => format!("{key}_{n} = \"\"\"{value}\n{value} = {value}\"\"\"\n"),
            })
            .collect(),
        Format::Lines => pairs.map(|(n, (key, value))| format!("{n} {key} {value}\n")).collect(),
    }
}

const ALL: [Format; 6] = [Format::Dotenv, Format::GitConfig, Format::Json, Format::Yaml, Format::Toml, Format::Lines];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn no_part_of_a_value_gets_out(before in entries(), after in entries(), style in 0u8..6, cut in 0usize..400) {
        let values: Vec<String> = before.iter().chain(&after).map(|(_, value)| value.clone()).collect();
        for format in ALL {
            let (old, new) = (written(format, style, &before), written(format, style, &after));
            assert_masked(&difference(format, Some(old.as_bytes()), Some(new.as_bytes())), &values)?;
            assert_masked(&difference(format, None, Some(new.as_bytes())), &values)?;
            assert_masked(&difference(format, Some(old.as_bytes()), None), &values)?;
            // A file caught half written.
            let half = &new.as_bytes()[..cut.min(new.len())];
            assert_masked(&difference(format, Some(old.as_bytes()), Some(half)), &values)?;
        }
    }

    #[test]
    fn any_bytes_in_any_format_are_told_in_a_few_plain_lines(
        before in proptest::collection::vec(any::<u8>(), 0..200),
        after in "[\\[\\]{}\":,=#'a-c \\n\\\\\\t&*!|>-]{0,120}",
    ) {
        for format in ALL {
            for difference in [
                difference(format, Some(&before), Some(after.as_bytes())),
                difference(format, Some(after.as_bytes()), Some(&before)),
                difference(format, None, Some(&before)),
            ] {
                prop_assert!(difference.lines.len() <= MOST_LINES && difference.details.len() <= MOST_DETAILS);
                for line in difference.lines.iter().chain(&difference.details) {
                    prop_assert!(!line.chars().any(crate::text::is_hidden), "{line:?}");
                }
            }
        }
    }

    /// What is generated for the formats is valid in them, or the property above would show nothing.
    #[test]
    fn the_generated_documents_are_read(entries in entries(), style in 0u8..6) {
        prop_assume!(!entries.is_empty());
        for format in [Format::GitConfig, Format::Json, Format::Yaml, Format::Toml] {
            let text = written(format, style, &entries);
            prop_assert!(changes(format, b"", text.as_bytes()).is_some(), "{text}");
        }
    }
}
