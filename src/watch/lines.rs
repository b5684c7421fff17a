//! The sentences a watch says, one line each.

use std::time::Duration;

use platform::event::Powers;

use crate::journal::Asked;
use crate::rules::Rule;

use super::lock::Locked;
use super::machine::Outcome;

/// `1 protected file`, `2 protected files`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The backend, and what it can do besides.
pub fn backend(name: &str, powers: Powers) -> String {
    let Powers { whole_file_system, names_the_writer } = powers;
    let besides = [(whole_file_system, "whole filesystem"), (names_the_writer, "names the writer")];
    let besides: Vec<_> = besides.into_iter().filter_map(|(has, what)| has.then_some(what)).collect();
    if besides.is_empty() { name.to_owned() } else { format!("{name} ({})", besides.join(", ")) }
}

/// The start line.
pub fn started(
    files: usize,
    root: &str,
    backend: &str,
    timeout: Duration,
    frozen: bool,
    scope: Option<&str>,
) -> String {
    let mut line = format!(
        "keep watch: {} in {root}; {backend}; undecided changes are restored after {} s",
        counted(files, "protected file"),
        timeout.as_secs()
    );
    if frozen {
        line.push_str(" (dependencies frozen)");
    }
    if let Some(scope) = scope {
        line.push_str(&format!(" (scope: {scope})"));
    }
    line
}

/// What was decided about a path, once it is carried out.
pub fn decided(path: &str, outcome: Outcome) -> String {
    match outcome {
        Outcome::Accepted => format!("keep watch: {path} accepted"),
        Outcome::Rejected => format!("keep watch: {path} restored (rejected)"),
        Outcome::TimedOut => format!("keep watch: {path} restored (no answer)"),
        Outcome::AutoRestored => format!("keep watch: {path} restored (contested)"),
        Outcome::RestoredAtExit => format!("keep watch: {path} restored (the watch ended)"),
    }
}

/// A change was allowed at another question, or is a trusted program's.
pub fn approved(path: &str, asked: Asked) -> String {
    let how = match asked {
        Asked::Gate => "as answered at the gate",
        Asked::Held => "as answered when it was opened",
        Asked::Trusted => "written by a trusted program",
    };
    format!("keep watch: {path} accepted ({how})")
}

/// What was decided about something that has nothing to be put back: it was taken away.
pub fn taken_away(path: &str, outcome: Outcome) -> String {
    let why = match outcome {
        Outcome::Accepted => return decided(path, outcome),
        Outcome::Rejected => "rejected",
        Outcome::TimedOut => "no answer",
        Outcome::AutoRestored => "contested",
        Outcome::RestoredAtExit => "the watch ended",
    };
    format!("keep watch: {path} taken away ({why}); what it was at the start could not be read and cannot be put back")
}

/// A protected path has no accepted state.
pub fn unguarded(path: &str, reason: &str) -> String {
    format!("keep watch: {path} is not guarded: {reason}")
}

/// What had no accepted state has one now.
pub fn guarded_at_last(path: &str) -> String {
    format!("keep watch: {path} can be read now and is guarded from here on")
}

/// What has no accepted state is gone.
pub fn gone_unread(path: &str) -> String {
    format!("keep watch: {path} is gone; it could not be read at the start, so it cannot be put back")
}

/// What has no accepted state was perhaps written to, and cannot be asked about.
pub fn written_unread(path: &str) -> String {
    format!("keep watch: {path} may have been changed; it still cannot be read, so it is not guarded")
}

/// Said before the question about what came in the place of a file that could not be read.
pub fn nothing_to_put_back(path: &str) -> String {
    format!(
        "keep watch: {path} is not what could not be read at the start; if it is rejected it goes to quarantine, and there is nothing to put back"
    )
}

/// A restore that failed, with the system's reason.
pub fn not_restored(path: &str, reason: &str) -> String {
    format!("keep watch: {path} NOT restored: {reason}")
}

/// A root of which it cannot be told where it is.
pub fn not_looked_at(path: &str, reason: &str) -> String {
    format!("keep watch: {path} cannot be looked at just now: {reason}; it is tried again")
}

/// A report-mode change.
pub fn kept(path: &str, rule: Rule, kind: &str, digest: &str) -> String {
    format!("keep watch: {path} changed ({rule}, {kind}, {digest}); kept, reported only")
}

/// A protected file was open for writing when the watch began; by whom, if that is known.
pub fn held(path: &str, by: Option<(String, u32)>, is_mapped: bool) -> String {
    let how = if is_mapped { "mapped" } else { "held open" };
    let by =
        by.map_or_else(|| "a program that cannot be looked at".to_owned(), |(name, pid)| format!("{name} (pid {pid})"));
    format!("keep watch: warning: {path} is {how} for writing by {by}")
}

/// Another name was made for a protected file.
pub fn linked(path: &str, rule: Rule, names: u64) -> String {
    format!(
        "keep watch: {path} linked ({rule}): the file now has {names} names; a write through any of them is asked about"
    )
}

/// A path is contested from now on.
pub fn contested(path: &str, limit: u32) -> String {
    format!(
        "keep watch: {path} is contested: refused {limit} times, from now on restored without asking; c takes that back"
    )
}

/// A path is contested no longer.
pub fn asked_again(path: &str) -> String {
    format!("keep watch: {path} is asked about again")
}

/// How much is locked, and what can be done about it.
pub fn locked(locked: Locked) -> String {
    if locked == Locked::default() {
        return format!("keep watch: {locked}");
    }
    format!("keep watch: {locked}; u unlocks one path for {} s", super::lock::minutes::MINUTE.as_secs())
}

/// Another watch has locked some of what is protected here.
pub fn locked_by_another(count: usize) -> String {
    let (are, them) = if count == 1 { ("is", "it") } else { ("are", "them") };
    format!(
        "keep watch: {} {are} locked by another keep watch; this one locks {them} within two minutes after it has ended",
        counted(count, "path")
    )
}

/// A path can be changed for a while.
pub fn unlocked(path: &str) -> String {
    format!("keep watch: {path} is unlocked for {} s", super::lock::minutes::MINUTE.as_secs())
}

/// A path's minute is over.
pub fn locked_again(path: &str) -> String {
    format!("keep watch: {path} is locked again")
}

/// A path's minute is over, and there is nothing to be locked.
pub fn gone_unlocked(path: &str) -> String {
    format!("keep watch: the minute of {path} is over; there is nothing to be locked")
}

/// Somebody with privilege took our flag off.
pub fn taken_off(path: &str) -> String {
    format!("keep watch: somebody unlocked {path}; it is locked again")
}

/// A path could not be locked.
pub fn not_locked(path: &str, reason: &str) -> String {
    format!("keep watch: {path} is NOT locked: {reason}")
}

/// A path could not be unlocked.
pub fn not_unlocked(path: &str, reason: &str) -> String {
    format!("keep watch: {path} could not be unlocked: {reason}")
}

/// git is somewhere else than before, and locked files are not.
pub fn another_branch() -> &'static str {
    "keep watch: git is at another branch or commit; locked files were left as they were: git status names them, u unlocks"
}

/// Of a folder that vanished only protected files were put back; where it is `now`, if that is known.
pub fn put_back_in_part(folder: &str, now: Option<&str>) -> String {
    let (what, rest) = match now {
        Some(now) => (format!("{folder}/ was moved to {now}/"), "the rest of it is still there"),
        None => (format!("{folder}/ was removed or moved away"), "the rest of it was not"),
    };
    format!("keep watch: {what}; what is protected in it was put back, {rest}")
}

/// The watch ends, and these paths stay locked for one reason.
pub fn left_locked(paths: &[String], reason: &str) -> String {
    const SHOWN: usize = 5;
    let stay = match paths {
        [path] => format!("{path} stays"),
        paths => {
            let some = paths[..paths.len().min(SHOWN)].join(", ");
            let more = paths.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{} stay", counted(paths.len(), "path")) + &format!(" ({some}{more})")
        }
    };
    format!("keep watch: {stay} locked: {reason}; sudo keep recover unlocks what is there")
}

/// What differs from the last run.
pub fn changed_between(paths: &[String]) -> String {
    listed("changed while nobody watched", paths)
}

/// What the last run did not cover.
pub fn newly_covered(paths: &[String]) -> String {
    listed("newly covered since the last run", paths)
}

fn listed(what: &str, paths: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut line = format!("keep watch: {} {what}: ", counted(paths.len(), "protected file"));
    line.push_str(&paths[..paths.len().min(SHOWN)].join(", "));
    if paths.len() > SHOWN {
        line.push_str(&format!(" and {} more", paths.len() - SHOWN));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_line_says_what_is_special() {
        let plain = started(23, "/repo", "fanotify", Duration::from_secs(20), false, None);
        assert_eq!(
            plain,
            "keep watch: 23 protected files in /repo; fanotify; undecided changes are restored after 20 s"
        );
        let special = started(1, "/r", "poll", Duration::from_secs(7), true, Some("src/**, *.md"));
        assert!(special.starts_with("keep watch: 1 protected file in /r; poll;"), "{special}");
        assert!(special.ends_with("after 7 s (dependencies frozen) (scope: src/**, *.md)"), "{special}");
    }

    #[test]
    fn how_much_is_locked_is_said_with_the_key_that_unlocks() {
        let said = locked(Locked { files: 12, folders: 1 });
        assert_eq!(said, "keep watch: locked: 12 files, 1 folder; u unlocks one path for 60 s");
        assert_eq!(locked(Locked::default()), "keep watch: locked: nothing");
    }

    #[test]
    fn the_backend_is_said_with_what_it_can_do_besides() {
        let powers = |whole_file_system, names_the_writer| Powers { whole_file_system, names_the_writer };
        assert_eq!(backend("fanotify", powers(false, false)), "fanotify");
        assert_eq!(backend("fanotify", powers(false, true)), "fanotify (names the writer)");
        assert_eq!(backend("fanotify", powers(true, true)), "fanotify (whole filesystem, names the writer)");
    }

    #[test]
    fn a_long_list_is_cut_with_a_count() {
        let paths: Vec<String> = (0..25).map(|n| format!("{n}/.env")).collect();
        let line = changed_between(&paths);
        assert!(line.starts_with("keep watch: 25 protected files changed while nobody watched: 0/.env, "), "{line}");
        assert!(line.ends_with(" and 5 more"), "{line}");
    }
}
