//! One entry of the journal as people read it.
//!
//! Promise: one line, nothing in it that a terminal would obey, no content. What a session begins with, path by path and
//! folder by folder, is not listed: the line of the sealed baseline says how many there were, `--json` has them all.

use crate::baseline::ChangeKind;
use crate::digest::Digest;
use crate::journal::{Asked, Entry, Event, HeldOutcome, Record, RecordType, RestoreOutcome, Seen, Writer};
use crate::rules::Rule;
use crate::text::{decode, escaped};

use super::paint::Paint;

/// The line of an entry; `None` for those that are not listed.
pub fn line(seen: &Seen<'_>, paint: Paint) -> Option<String> {
    match &seen.entry {
        Ok(entry) => entry_line(entry, paint),
        Err(error) => Some(paint.yellow(&format!("?  in {}: {error}", escaped(seen.file.as_bytes())))),
    }
}

/// What an entry says, without when and in which run; `None` for those that are not listed.
pub fn sentence(event: &Event) -> Option<String> {
    what(event, Paint { is_on: false })
}

fn entry_line(entry: &Entry, paint: Paint) -> Option<String> {
    let what = what(&entry.event, paint)?;
    // The process is the short name of a session: few share one.
    let session = entry.session.rsplit_once('-').map_or(entry.session.as_str(), |(_, pid)| pid);
    let stamp = format!("{}  {:>7}", escaped(entry.at.as_bytes()), escaped(session.as_bytes()));
    let name = entry.event.name();
    let column = format!("{name:<14}");
    let column = match entry.event {
        Event::Restored { .. } | Event::RestoreFailed { .. } | Event::Contested { .. } => paint.red(&column),
        Event::Accepted { .. } => paint.green(&column),
        Event::Held { decision: HeldOutcome::Allowed | HeldOutcome::Trusted, .. } => paint.green(&column),
        Event::Held { .. } => paint.yellow(&column),
        Event::Session { .. } => paint.bold(&column),
        Event::Transient { .. } | Event::Linked { .. } | Event::Lost { .. } => paint.yellow(&column),
        _ => column,
    };
    let line = format!("{}  {column}  {what}", paint.dim(&stamp));
    Some(line)
}

fn what(event: &Event, paint: Paint) -> Option<String> {
    let plain = |text: &str| escaped(text.as_bytes());
    let path = |stored: &str| paint.bold(&shown(stored));
    Some(match event {
        Event::Baseline { .. } | Event::Directory { .. } => return None,
        Event::Session { command, pid, root, backend, .. } => {
            // A recovery learns of no changes.
            let by = if backend == "none" { String::new() } else { format!(", {}", plain(backend)) };
            format!("keep {} began in {}: pid {pid}{by}", plain(command), shown(root))
        }
        Event::Sealed { files } => format!("the baseline is complete: {}", files_counted(*files)),
        Event::Accepted { path: at, rule, kind, snapshot, asked, writer } => {
            let how = match asked {
                None => "",
                Some(Asked::Gate) => ", as answered at the gate",
                Some(Asked::Held) => ", as answered when it was opened",
                Some(Asked::Trusted) => ", by a trusted program",
            };
            format!("{} ({}){how}{}", path(at), change(*rule, *kind, snapshot), by(writer.as_ref()))
        }
        Event::Kept { path: at, rule, kind, snapshot, writer } => {
            format!("{} ({}){}", path(at), change(*rule, *kind, snapshot), by(writer.as_ref()))
        }
        Event::Restoring { path: at, outcome, .. } => format!("{} ({})", path(at), why(*outcome)),
        Event::Restored { path: at, rule, kind, outcome, sha256_after, quarantine, attempts, writer } => {
            let mut line =
                format!("{} ({rule}, {}, {}), {}", path(at), kind.name(), short(*sha256_after), why(*outcome));
            if !quarantine.is_empty() {
                line.push_str(&format!("; in quarantine: {}", plain(&quarantine.join(", "))));
            }
            if *attempts > 1 {
                line.push_str(&format!("; it took {attempts} tries"));
            }
            line.push_str(&by(writer.as_ref()));
            line
        }
        Event::RestoreFailed { path: at, reason, .. } => format!("{} NOT restored: {}", path(at), plain(reason)),
        Event::Transient { path: at, rule, kind, sha256, writer } => format!(
            "{} ({rule}, {}, {}), gone again before it was decided{}",
            path(at),
            kind.name(),
            short(*sha256),
            by(writer.as_ref())
        ),
        Event::Held { path: at, rule, access, decision, opens, writer } => {
            let times = if *opens > 1 { format!(", {opens} times") } else { String::new() };
            format!("{} ({rule}), {}: {}{times}{}", path(at), access.name(), answered(*decision), by(Some(writer)))
        }
        Event::Linked { path: at, rule, links } => format!("{} ({rule}) has {links} names now", path(at)),
        Event::Lost { cause } => format!("everything was compared, since events were lost: {}", plain(cause)),
        Event::Unguarded { path: at, .. } => format!("{} cannot be read, so it has no accepted state", path(at)),
        Event::Contested { path: at } => format!("{}, restored or refused without asking from here on", path(at)),
        Event::Uncontested { path: at } => format!("{}, asked about again", path(at)),
        Event::Recovered { from_session, restored, kept } => format!(
            "the accepted state of session {}: {} restored{}",
            plain(from_session),
            paths(restored),
            if kept.is_empty() { String::new() } else { format!("; {} left as they are", paths(kept)) }
        ),
        Event::Flagged { path: at, .. } => format!("{} is locked: no process can change it", path(at)),
        Event::Unflagged { path: at, missing: false, .. } => format!("{} is unlocked", path(at)),
        Event::Unflagged { path: at, id, missing: true } => {
            format!("{} is not there any more to be unlocked (inode {})", path(at), id.ino)
        }
        Event::Changed { paths: changed } => format!("while nobody watched: {}", paths(changed)),
        Event::Ended { signal, exit_code } => match signal {
            Some(signal) => format!("by {}, exit code {exit_code}", plain(signal)),
            None => format!("exit code {exit_code}"),
        },
    })
}

/// A stored path as people see it everywhere else.
fn shown(stored: &str) -> String {
    decode(stored).map_or_else(|| escaped(stored.as_bytes()), |bytes| escaped(&bytes))
}

fn paths(stored: &[String]) -> String {
    /// A list on one line that somebody can still read.
    const MOST: usize = 10;
    let mut names: Vec<String> = stored.iter().take(MOST).map(|path| shown(path)).collect();
    match stored.len() {
        0 => return "nothing".to_owned(),
        count if count > MOST => names.push(format!("and {} more", count - MOST)),
        _ => {}
    }
    names.join(", ")
}

fn files_counted(files: u64) -> String {
    if files == 1 { "1 protected file".to_owned() } else { format!("{files} protected files") }
}

fn change(rule: Rule, kind: ChangeKind, now: &Record) -> String {
    let what = match now.file_type {
        RecordType::Absent => "gone".to_owned(),
        _ if kind == ChangeKind::Mode => format!("mode {:04o}", now.mode),
        RecordType::Regular | RecordType::Symlink => short(now.sha256),
        RecordType::Unread => "content not read".to_owned(),
        RecordType::Directory => "directory".to_owned(),
        RecordType::Fifo => "fifo".to_owned(),
        RecordType::Socket => "socket".to_owned(),
        RecordType::Device => "device".to_owned(),
    };
    format!("{rule}, {}, {what}", kind.name())
}

fn short(digest: Option<Digest>) -> String {
    digest.map_or_else(|| "no content".to_owned(), |digest| format!("sha256 {}", digest.short()))
}

const fn why(outcome: RestoreOutcome) -> &'static str {
    match outcome {
        RestoreOutcome::Rejected => "rejected",
        RestoreOutcome::TimedOut => "no answer",
        RestoreOutcome::AutoRestored => "contested",
        RestoreOutcome::RestoredAtExit => "the watch ended",
        RestoreOutcome::Recovered => "the run before did not end properly",
    }
}

const fn answered(outcome: HeldOutcome) -> &'static str {
    match outcome {
        HeldOutcome::Allowed => "allowed",
        HeldOutcome::Refused => "refused",
        HeldOutcome::TimedOut => "refused, no answer",
        HeldOutcome::AutoRefused => "refused without asking",
        HeldOutcome::RefusedAtExit => "refused, the watch ended",
        HeldOutcome::Trusted => "allowed, a trusted program",
        HeldOutcome::Gone => "the opener went away",
        HeldOutcome::RefusedWhileStopped => "refused, the watch was stopped",
    }
}

fn by(writer: Option<&Writer>) -> String {
    let Some(writer) = writer else { return String::new() };
    let name = [&writer.name, &writer.argv0, &writer.exe].into_iter().flatten().next();
    let name = match (name, writer.ancestors.first()) {
        (Some(name), _) => shown(name),
        (None, Some(parent)) => format!("a child of {}", shown(parent)),
        (None, None) => "an unknown program".to_owned(),
    };
    let elsewhere = if writer.other_mounts { ", in another mount namespace" } else { "" };
    format!("; by {name} (pid {}, {}{elsewhere})", writer.pid, escaped(writer.certainty.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint { is_on: false };

    fn lined(event: Event) -> Option<String> {
        let (at, session) = ("2026-11-30T09:41:07.123Z".into(), "20261130T094100004-4242".into());
        entry_line(&Entry { seq: 7, batch: 7, at, session, event }, PLAIN)
    }

    fn restored(path: &str) -> Event {
        Event::Restored {
            path: path.into(),
            rule: Rule::Secrets,
            kind: ChangeKind::Modified,
            outcome: RestoreOutcome::TimedOut,
            sha256_after: Some(Digest::of(b"")),
            quarantine: vec!["20261130T094107123Z-00000".into()],
            attempts: 2,
            writer: None,
        }
    }

    #[test]
    fn a_line_says_when_who_what_where_and_how_it_ended() {
        assert_eq!(
            lined(restored(".env")).expect("is listed"),
            "2026-11-30T09:41:07.123Z     4242  restored        .env (secrets, modified, sha256 e3b0c44298fc), no answer; \
             in quarantine: 20261130T094107123Z-00000; it took 2 tries"
        );
    }

    #[test]
    fn names_cannot_draw_and_read_as_everywhere_else() {
        let line = lined(restored("a\u{1b}[2J\\\\b\\xff")).expect("is listed");
        assert!(line.contains("  a\\x1b[2J\\b\\xff ("), "{line}");
        let forged = lined(Event::RestoreFailed { path: "\\q\u{202e}".into(), errno: None, reason: "\u{1b}c".into() });
        assert!(!forged.expect("is listed").chars().any(crate::text::is_hidden));
    }

    #[test]
    fn a_held_open_says_what_for_by_whom_and_how_it_ended() {
        let writer = Writer {
            pid: 42,
            name: Some("no\u{1b}de".into()),
            exe: Some("/usr/bin/node".into()),
            argv0: None,
            ancestors: vec![],
            user: None,
            cgroup: None,
            other_mounts: false,
            certainty: "certain".into(),
        };
        let event = |writer| Event::Held {
            path: ".env".into(),
            rule: Rule::Secrets,
            access: platform::Access::Write,
            decision: HeldOutcome::TimedOut,
            opens: 2,
            writer,
        };
        let line = lined(event(writer.clone())).expect("is listed");
        assert!(
            line.ends_with(".env (secrets), write: refused, no answer, 2 times; by no\\x1bde (pid 42, certain)"),
            "{line}"
        );
        let line = lined(event(Writer { other_mounts: true, ..writer })).expect("is listed");
        assert!(line.ends_with("(pid 42, certain, in another mount namespace)"), "{line}");
    }

    #[test]
    fn long_lists_are_cut_and_counted() {
        let names: Vec<String> = (0..12).map(|number| number.to_string()).collect();
        let line = lined(Event::Changed { paths: names }).expect("is listed");
        assert!(line.ends_with("while nobody watched: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more"), "{line}");
    }

    #[test]
    fn what_a_session_begins_with_is_counted_instead_of_listed() {
        assert_eq!(lined(Event::Directory { path: "a".into(), mode: 0o755, uid: 0, gid: 0, xattrs: None }), None);
        assert!(lined(Event::Sealed { files: 1 }).expect("is listed").ends_with("complete: 1 protected file"));
    }
}
