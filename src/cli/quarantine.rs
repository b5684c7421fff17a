//! `keep quarantine`: what was rejected, listed, shown and put back.
//!
//! Promise: content reaches a terminal only with everything escaped that a terminal would obey; what is put back lands
//! below the root, through no symlink, and on nothing that is there unless `--force` says so.
//! Limit: putting something back is a change like any other, and a running watch asks about it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use platform::environment::Environment;
use platform::{Dir, RelPath, RootError};
use serde_json::{Value, json};

use crate::store::{About, Held, IfTaken, Quarantine, QuarantineError, QuarantineId};
use crate::text::{decode, escaped, json_line};

use super::args::{Color, QuarantineArgs, QuarantineCommand};
use super::begin;
use super::exit::{Exit, Refusal, RefusalCode, causes};
use super::ground::Ground;
use super::paint::{Paint, wants_colour};

/// Name and version of what `list --json` prints.
const SCHEMA: &str = "keepwatch.quarantine.v1";

/// Runs the command and returns the exit code.
pub fn run(args: &QuarantineArgs, color: Color, environment: &Environment) -> u8 {
    let (done, json) = match &args.command {
        QuarantineCommand::List { path, json } => (list(path.as_deref(), *json, color, environment), *json),
        QuarantineCommand::Show { id, path, content: true, .. } => (content(id, path.as_deref(), environment), false),
        QuarantineCommand::Show { id, path, json, .. } => (show(id, path.as_deref(), *json, environment), *json),
        QuarantineCommand::Restore { id, path, to, force } => {
            (restore(id, path.as_deref(), to.as_deref(), *force, environment), false)
        }
    };
    match done {
        Ok(exit) => exit.code(),
        Err(refusal) => super::refuse(&refusal, json),
    }
}

/// The quarantine of a tree; `None` if no watch has run there.
fn open(ground: &Ground) -> Result<Option<Quarantine>, Refusal> {
    ground.existing_state()?.map(|state| begin::quarantine(&state)).transpose()
}

/// One rejected thing by the id the person gave.
fn find(ground: &Ground, id: &str) -> Result<(Quarantine, QuarantineId, About), Refusal> {
    let missing = || refusal(format!("nothing in quarantine is named {}", escaped(id.as_bytes())));
    let id = QuarantineId::parse(id).ok_or_else(missing)?;
    let quarantine = open(ground)?.ok_or_else(missing)?;
    let about = quarantine.about(&id).map_err(|error| failed(&error))?;
    Ok((quarantine, id, about))
}

fn list(path: Option<&Path>, json: bool, color: Color, environment: &Environment) -> Result<Exit, Refusal> {
    let ground = Ground::find(path, environment)?;
    let kept = match open(&ground)? {
        Some(quarantine) => quarantine.list().map_err(|error| failed(&error))?,
        None => Vec::new(),
    };
    if json {
        let entries: Vec<Value> = kept.iter().map(About::to_json).collect();
        super::print_line(&json_line(&json!({"schema": SCHEMA, "root": ground.text(), "entries": entries})));
        return Ok(Exit::Clean);
    }
    if kept.is_empty() {
        super::say(&format!("keep quarantine: nothing of {} is in quarantine", ground.shown()));
    }
    let paint = Paint { is_on: wants_colour(color, environment, super::is_terminal()) };
    for about in &kept {
        super::print_line(&row(about, paint));
    }
    Ok(Exit::Clean)
}

fn row(about: &About, paint: Paint) -> String {
    let why = &about.rejection;
    let size = if has_content(about) { format!("{} B", about.size) } else { "-".to_owned() };
    format!(
        "{}  {}  {} ({}, {}), {}, {size}",
        paint.bold(&escaped(about.id.as_bytes())),
        paint.dim(&escaped(why.rejected_at.as_bytes())),
        escaped(why.shown.as_bytes()),
        why.rule,
        why.kind.name(),
        escaped(about.file_type.as_bytes()),
    )
}

fn has_content(about: &About) -> bool {
    matches!(about.held, Held::Copied | Held::Moved) && matches!(about.file_type.as_str(), "regular" | "symlink")
}

fn show(id: &str, path: Option<&Path>, json: bool, environment: &Environment) -> Result<Exit, Refusal> {
    let ground = Ground::find(path, environment)?;
    let (_, _, about) = find(&ground, id)?;
    if json {
        super::print_line(&json_line(&about.to_json()));
    } else {
        facts(&about).iter().for_each(|line| super::print_line(line));
    }
    Ok(Exit::Clean)
}

fn facts(about: &About) -> Vec<String> {
    let why = &about.rejection;
    let held = match &about.held {
        Held::Copied => "a copy; --content prints it".to_owned(),
        Held::Moved if has_content(about) => "the file itself; --content prints it".to_owned(),
        Held::Moved => "the thing itself".to_owned(),
        Held::Described => "this description only: there was no content".to_owned(),
        Held::Aside { name } => format!("in its own directory, as {}", escaped(name)),
    };
    let digest = about.sha256.map_or_else(|| "none".to_owned(), |digest| digest.to_string());
    [
        ("id", about.id.clone()),
        ("path", why.shown.clone()),
        ("rule", why.rule.name().to_owned()),
        ("kind", why.kind.name().to_owned()),
        ("outcome", why.outcome.clone().unwrap_or_else(|| "none".to_owned())),
        ("rejected at", why.rejected_at.clone()),
        ("session", why.session.clone()),
        ("type", about.file_type.clone()),
        ("mode", format!("{:04o}", about.mode)),
        ("owner", format!("{}:{}", about.uid, about.gid)),
        ("size", about.size.to_string()),
        ("sha256", digest),
        ("kept", held),
    ]
    .map(|(name, value)| format!("{name:<12} {}", escaped(value.as_bytes())))
    .into()
}

fn content(id: &str, path: Option<&Path>, environment: &Environment) -> Result<Exit, Refusal> {
    let ground = Ground::find(path, environment)?;
    let (quarantine, id, _) = find(&ground, id)?;
    let content = quarantine.content(&id).map_err(|error| failed(&error))?;
    let written = if super::is_terminal() {
        escape_to(&content, &mut io::stdout().lock())
    } else {
        io::copy(&mut &content, &mut io::stdout().lock()).and_then(|_| io::stdout().flush())
    };
    match written {
        Ok(()) => Ok(Exit::Clean),
        // A reader that has gone away wanted no more.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Clean),
        Err(error) => {
            super::say(&format!("keep quarantine: the content of {id} was not written to its end: {error}"));
            Ok(Exit::Broke)
        }
    }
}

/// Writes content for eyes: line by line, with everything escaped that a terminal would obey.
fn escape_to(content: &File, output: &mut impl Write) -> io::Result<()> {
    /// A line is escaped in portions; a longer one may be cut in the middle of a character, which is then shown as bytes.
    const PORTION: u64 = 1 << 16;
    let mut reader = BufReader::new(content);
    let mut output = BufWriter::new(output);
    let mut portion = Vec::new();
    loop {
        portion.clear();
        if io::Read::take(&mut reader, PORTION).read_until(b'\n', &mut portion)? == 0 {
            return output.flush();
        }
        let (text, end) = match portion.strip_suffix(b"\n") {
            Some(text) => (text, "\n"),
            None => (&portion[..], ""),
        };
        let tabs: Vec<String> = text.split(|&byte| byte == b'\t').map(escaped).collect();
        write!(output, "{}{end}", tabs.join("\t"))?;
    }
}

fn restore(
    id: &str,
    path: Option<&Path>,
    to: Option<&Path>,
    force: bool,
    environment: &Environment,
) -> Result<Exit, Refusal> {
    let ground = Ground::find(path, environment)?;
    let (quarantine, id, about) = find(&ground, id)?;
    let target = target(&about, to)?;
    let shown = escaped(target.as_bytes());
    let (dir, name) = parent(&ground, &target, 0o777 & !environment.umask)?;
    let if_taken = if force { IfTaken::Replace } else { IfTaken::Refuse };
    quarantine.put_back(&id, &dir, name, if_taken).map_err(|error| {
        let taken = matches!(&error, QuarantineError::Fs(error) if error.source.kind() == io::ErrorKind::AlreadyExists);
        match taken && !force {
            true => Refusal::new(
                RefusalCode::Quarantine,
                format!("{shown} is there already"),
                "--force replaces it, --to names another place",
            ),
            false => failed(&error),
        }
    })?;
    let stays = if about.held == Held::Moved { "it has left quarantine" } else { "a copy stays in quarantine" };
    super::say(&format!(
        "keep quarantine: {id} is at {shown} again ({stays}); if the path is protected, a running watch asks about it"
    ));
    Ok(Exit::Clean)
}

/// Where to put it: the place the person named, or the one it came from.
fn target(about: &About, to: Option<&Path>) -> Result<RelPath, Refusal> {
    let (bytes, hint) = match to {
        Some(to) => (to.as_os_str().as_bytes().to_vec(), "--to takes a path relative to the top of the tree"),
        None => {
            let stored =
                decode(&about.rejection.stored).ok_or_else(|| refusal("its path is not a whole one".to_owned()))?;
            (stored, "it came from outside the tree; --to names a place in it")
        }
    };
    let bytes = bytes.strip_prefix(b"./").unwrap_or(&bytes);
    match RelPath::parse(bytes) {
        Ok(path) if !path.is_root() => Ok(path),
        Ok(_) => Err(Refusal::new(RefusalCode::Quarantine, "the root itself cannot be put back", hint)),
        Err(error) => Err(Refusal::new(RefusalCode::Quarantine, format!("{}: {error}", escaped(bytes)), hint)),
    }
}

/// The directory of the target, made with those above it where they are missing, and the target's name in it.
fn parent<'p>(ground: &Ground, target: &'p RelPath, mode: u32) -> Result<(Dir, &'p [u8]), Refusal> {
    let unreachable = |error: &dyn std::error::Error| {
        Refusal::new(RefusalCode::Quarantine, causes(error), "--to names another place in the tree")
    };
    for above in target.ancestors() {
        match ground.tree.open_dir(&above) {
            Ok(_) => {}
            Err(RootError::NoParent { .. }) => {
                let (dir, name) = ground.tree.parent(&above).map_err(|error| unreachable(&error))?;
                match dir.make_dir(name, mode) {
                    Ok(_) => {}
                    Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {
                        let at = escaped(above.as_bytes());
                        return Err(refusal(format!("{at} is no directory, and nothing is put through it")));
                    }
                    Err(error) => return Err(unreachable(&error)),
                }
            }
            Err(error) => return Err(unreachable(&error)),
        }
    }
    ground.tree.parent(target).map_err(|error| unreachable(&error))
}

fn refusal(message: String) -> Refusal {
    Refusal::new(RefusalCode::Quarantine, message, "keep quarantine list names what there is")
}

fn failed(error: &QuarantineError) -> Refusal {
    refusal(causes(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::baseline::ChangeKind;
    use crate::rules::Rule;
    use crate::store::Rejection;

    fn about(stored: &str) -> About {
        About {
            id: "20261130T094107123Z-00000".into(),
            rejection: Rejection {
                shown: "a\u{1b}[2J".into(),
                stored: stored.into(),
                rule: Rule::Secrets,
                kind: ChangeKind::Added,
                outcome: Some("rejected".into()),
                session: "s".into(),
                rejected_at: "2026-11-30T09:41:07.123Z".into(),
            },
            file_type: "regular".into(),
            mode: 0o644,
            uid: 0,
            gid: 0,
            size: 3,
            sha256: None,
            held: Held::Copied,
        }
    }

    #[test]
    fn a_description_that_was_forged_draws_nothing() {
        let forged = about(".env");
        let lines = [facts(&forged), vec![row(&forged, Paint { is_on: false })]].concat();
        assert!(!lines.iter().any(|line| line.chars().any(crate::text::is_hidden)), "{lines:?}");
    }

    #[test]
    fn a_target_is_a_place_in_the_tree() {
        let at = |stored: &str, to: Option<&str>| target(&about(stored), to.map(Path::new));
        assert_eq!(at("a/.env", None).expect("is one").as_bytes(), b"a/.env");
        assert_eq!(at("/etc/x", Some("./b")).expect("is one").as_bytes(), b"b");
        for (stored, to) in
            [("/etc/x", None), ("\\q", None), (".env", Some("../x")), (".env", Some("/x")), ("a", Some(""))]
        {
            assert_eq!(at(stored, to).expect_err("no place").code, RefusalCode::Quarantine, "{stored} {to:?}");
        }
    }

    #[test]
    fn content_for_eyes_keeps_lines_and_tabs_and_nothing_else_that_a_terminal_obeys() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(b"a\tb\r\n\x1b[2Jc\xff\nno end").expect("writes");
        io::Seek::rewind(&mut file).expect("rewinds");
        let mut shown = Vec::new();
        escape_to(&file, &mut shown).expect("writes");
        assert_eq!(String::from_utf8(shown).expect("is text"), "a\tb\\r\n\\x1b[2Jc\\xff\nno end");
    }
}
