//! The words of a question.
//!
//! Promise: a path is never cut, and nothing shown here can hide or reorder what is beside it: besides what
//! [`text::escaped`] takes out, characters without a width of their own are written as escapes, too. They could pile up on
//! a neighbour, and terminals disagree on them, which would put the redrawn countdown in the wrong place.
//! Limit: contents do not come in here, only the lines of a masked [`crate::difference`].

use std::collections::BTreeSet;
use std::fmt::Write as _;

use platform::Notification;
use unicode_width::UnicodeWidthChar;

use crate::ask::screen::Block;
use crate::baseline::{Change, ChangeKind, Content, Snapshot};
use crate::rules::Rule;
use crate::text;

/// One change that is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The path as people see it, as [`crate::roots::Roots::shown`] gives it.
    pub path: String,
    /// The rule that names the change.
    pub rule: Rule,
    /// How the path differs from the baseline.
    pub kind: ChangeKind,
    /// What stands in the place of the digest, as [`shown_digest`] gives it.
    pub digest: String,
}

/// The program that wrote, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct By {
    /// Its name; empty if it is not known.
    pub name: Vec<u8>,
    /// Its process id.
    pub pid: u32,
    /// The file it runs.
    pub exe: Option<Vec<u8>>,
    /// Whether that path means something else where the program lives than here.
    pub is_elsewhere: bool,
    /// The names of its ancestors, nearest first.
    pub ancestors: Vec<Vec<u8>>,
    /// Whether it is certain; otherwise the line says `probably`.
    pub certain: bool,
}

/// Everything a question says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Question {
    /// The changes; one, or the list of a burst. Never empty.
    pub items: Vec<Item>,
    /// Who wrote, if known and the same for all.
    pub by: Option<By>,
    /// The short lines of the masked difference.
    pub difference: Vec<String>,
    /// How many other questions wait.
    pub waiting: usize,
}

impl Question {
    /// How it stands on the screen.
    pub fn block(&self) -> Block {
        let mut above = Vec::new();
        above.extend(self.by.as_ref().map(By::line));
        above.extend(self.difference.iter().map(|line| format!("  {}", certain(line))));
        if self.waiting > 0 {
            above.push(format!("  waiting: {} more", self.waiting));
        }
        let rule = self.rules();
        match &self.items[..] {
            [one] => Block {
                above,
                before: "keep watch: ".to_owned(),
                subject: certain(&one.path),
                after: format!(" changed ({rule}, {}, {}). ", one.kind.name(), certain(&one.digest)),
                ask: "Keep it? ".to_owned(),
                keys: "[a]ccept / [r]eject; rejected in ".to_owned(),
                unit: "s".to_owned(),
                ..Block::default()
            },
            many => Block {
                list: self.list(),
                above,
                before: "keep watch: ".to_owned(),
                subject: format!("{} protected files", many.len()),
                after: format!(" changed ({rule}). "),
                ask: "Keep them? ".to_owned(),
                keys: "[a]ccept / [r]eject / [e]ach; rejected in ".to_owned(),
                unit: "s".to_owned(),
                ..Block::default()
            },
        }
    }

    /// Every path of the list on a line of its own.
    pub fn list(&self) -> Vec<String> {
        // The rule is named once for all, unless there are several: then each line says its own.
        let mixed = self.items.iter().any(|item| item.rule != self.items[0].rule);
        self.items
            .iter()
            .map(|item| {
                let rule = if mixed { format!("{}, ", item.rule) } else { String::new() };
                format!("  {} ({rule}{}, {})", certain(&item.path), item.kind.name(), certain(&item.digest))
            })
            .collect()
    }

    /// What the desktop is told: path and rule, nothing else.
    pub fn notification(&self) -> Notification {
        let more = match self.items.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let path = certain(&self.items[0].path);
        Notification { title: "keep watch".to_owned(), body: format!("{path}{more} changed ({})", self.rules()) }
    }

    /// The keys, for `?`.
    pub fn help(&self) -> Vec<String> {
        let mut lines = vec![
            "  a  keep the change; it becomes the new baseline".to_owned(),
            "  r  reject it; what is there now goes to quarantine and the file is put back".to_owned(),
        ];
        if self.items.len() > 1 {
            lines.push("  e  decide one by one, under the same deadline".to_owned());
        }
        lines.push("  d  show more of what changed".to_owned());
        lines.push("  ?  show the keys".to_owned());
        lines.push("  Ctrl-C  reject everything and end the watch; no answer is a rejection".to_owned());
        lines
    }

    fn rules(&self) -> String {
        let mut rules: Vec<Rule> = self.items.iter().map(|item| item.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(", ")
    }
}

impl By {
    /// How it is said: `by node (pid 4242, /usr/bin/node) < claude < zsh`. A name that no file stands behind is only what the
    /// program calls itself.
    pub fn line(&self) -> String {
        let name = |bytes: &[u8]| certain(&text::escaped(bytes));
        let probably = if self.certain { "" } else { "probably " };
        let mut line = match (&self.name[..], self.ancestors.first()) {
            ([], None) => format!("  by an unknown program (pid {}", self.pid),
            // It was gone before it could be looked at.
            ([], Some(parent)) => format!("  {probably}by a child of {} (pid {}", name(parent), self.pid),
            (own, _) if self.exe.is_none() => {
                format!("  {probably}by a program that calls itself {} (pid {}", name(own), self.pid)
            }
            (own, _) => format!("  {probably}by {} (pid {}", name(own), self.pid),
        };
        if let Some(exe) = &self.exe {
            write!(line, ", {}", name(exe)).expect("a String takes everything");
        }
        if self.is_elsewhere {
            line.push_str(" in another mount namespace");
        }
        line.push(')');
        let named = usize::from(self.name.is_empty());
        for ancestor in self.ancestors.iter().skip(named) {
            write!(line, " < {}", name(ancestor)).expect("a String takes everything");
        }
        line
    }
}

/// What stands in the place of the digest.
pub fn shown_digest(change: &Change) -> String {
    if change.kind == ChangeKind::Mode {
        return format!("mode {:04o}", change.after.mode);
    }
    match &change.after.content {
        Content::Absent => "gone".to_owned(),
        Content::Directory => "directory".to_owned(),
        Content::Fifo => "fifo".to_owned(),
        Content::Socket => "socket".to_owned(),
        Content::Device => "device".to_owned(),
        Content::Unread { size } => format!("{size} bytes, not read"),
        Content::Regular { .. } | Content::Symlink { .. } => {
            let digest = change.after.digest().expect("files and links have one");
            format!("sha256 {}", digest.short())
        }
    }
}

/// What else than the content changed, one short line each: bits, owner, attributes and flags. Nothing if either is absent,
/// or another type: then the kind of the change says it.
pub fn attributes(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    if std::mem::discriminant(&before.content) != std::mem::discriminant(&after.content) {
        return lines;
    }
    if before.mode != after.mode {
        lines.push(format!("mode {:04o} -> {:04o}", before.mode, after.mode));
    }
    if (before.uid, before.gid) != (after.uid, after.gid) {
        lines.push(format!("owner {}:{} -> {}:{}", before.uid, before.gid, after.uid, after.gid));
    }
    let names: BTreeSet<&Vec<u8>> = before.xattrs.keys().chain(after.xattrs.keys()).collect();
    for name in names {
        let sign = match (before.xattrs.get(name), after.xattrs.get(name)) {
            (old, new) if old == new => continue,
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        lines.push(format!("{sign} attribute {}", text::escaped(name)));
    }
    for (flag, old, new) in
        [("immutable", before.immutable, after.immutable), ("append-only", before.append_only, after.append_only)]
    {
        if old != new {
            lines.push(format!("{} {flag}", if new { "now" } else { "no longer" }));
        }
    }
    lines
}

/// A line, with characters that have no width of their own as escapes, and hidden ones as well, should there still be any.
pub fn certain(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    for character in line.chars() {
        if text::is_hidden(character) || !matches!(character.width(), Some(1 | 2)) {
            write!(shown, "\\u{{{:x}}}", u32::from(character)).expect("a String takes everything");
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    fn item(path: &str, rule: Rule) -> Item {
        Item { path: path.to_owned(), rule, kind: ChangeKind::Added, digest: "sha256 3467a14afa0c".to_owned() }
    }

    fn asked(block: &Block) -> String {
        let Block { before, subject, after, ask, keys, .. } = block;
        format!("{before}{subject}{after}{ask}{keys}20s")
    }

    #[test]
    fn one_change_is_one_line() {
        let question = Question {
            items: vec![Item { kind: ChangeKind::Modified, ..item(".env", Rule::Secrets) }],
            ..Question::default()
        };
        let block = question.block();
        assert_eq!(
            asked(&block),
            "keep watch: .env changed (secrets, modified, sha256 3467a14afa0c). Keep it? [a]ccept / [r]eject; rejected in 20s"
        );
        assert_eq!((block.above, block.list), (vec![], vec![]));
    }

    #[test]
    fn a_burst_is_a_list_and_a_question() {
        let question = Question {
            items: vec![item(".env.alpha", Rule::Secrets), item("svc/.env", Rule::Secrets)],
            ..Question::default()
        };
        let block = question.block();
        assert_eq!(block.list[0], "  .env.alpha (added, sha256 3467a14afa0c)");
        assert_eq!(
            asked(&block),
            "keep watch: 2 protected files changed (secrets). Keep them? [a]ccept / [r]eject / [e]ach; rejected in 20s"
        );
    }

    #[test]
    fn the_desktop_is_told_path_and_rule() {
        let one = Question { items: vec![item(".env", Rule::Secrets)], ..Question::default() };
        assert_eq!(one.notification().body, ".env changed (secrets)");
        let items = vec![item(".env", Rule::Secrets), item("CLAUDE.md", Rule::AgentConfig)];
        let many = Question { items, difference: vec!["+ KEY".to_owned()], ..Question::default() };
        assert_eq!(many.notification().body, ".env and 1 more changed (secrets, agent_config)");
    }

    #[test]
    fn a_list_of_several_rules_names_the_rule_of_each() {
        let question = Question {
            items: vec![item("CLAUDE.md", Rule::AgentConfig), item(".env", Rule::Secrets)],
            ..Question::default()
        };
        let block = question.block();
        assert_eq!(block.list[0], "  CLAUDE.md (agent_config, added, sha256 3467a14afa0c)");
        assert_eq!(block.after, " changed (secrets, agent_config). ");
    }

    #[test]
    fn the_writer_the_difference_and_the_queue_stand_above() {
        let question = Question {
            items: vec![item(".env", Rule::Secrets)],
            by: Some(By {
                name: b"node".to_vec(),
                pid: 4242,
                exe: Some(b"/usr/bin/node".to_vec()),
                ancestors: vec![b"claude".to_vec(), b"zs\x1bh".to_vec()],
                certain: true,
                ..By::default()
            }),
            difference: vec!["+ KEY".to_owned()],
            waiting: 2,
        };
        let expected = ["  by node (pid 4242, /usr/bin/node) < claude < zs\\x1bh", "  + KEY", "  waiting: 2 more"];
        assert_eq!(question.block().above, expected);
    }

    #[test]
    fn a_writer_that_is_not_known_is_not_made_up() {
        let by = By { pid: 7, ..By::default() };
        assert_eq!(by.line(), "  by an unknown program (pid 7)");
        let by = By { ancestors: vec![b"bash".to_vec(), b"claude".to_vec()], ..by };
        assert_eq!(by.line(), "  probably by a child of bash (pid 7) < claude");
        let by = By { name: b"mv".to_vec(), ..by };
        assert_eq!(by.line(), "  probably by a program that calls itself mv (pid 7) < bash < claude");
        let by = By { exe: Some(b"/usr/bin/mv".to_vec()), ..by };
        assert_eq!(by.line(), "  probably by mv (pid 7, /usr/bin/mv) < bash < claude");
        let by = By { is_elsewhere: true, ..by };
        assert_eq!(by.line(), "  probably by mv (pid 7, /usr/bin/mv in another mount namespace) < bash < claude");
    }

    #[test]
    fn what_stands_for_the_digest_follows_what_is_there() {
        let digest = |kind, content, mode| {
            shown_digest(&Change { kind, after: Snapshot { content, mode, ..Snapshot::absent() } })
        };
        let text = Content::Symlink { text: b"/etc/passwd".to_vec() };
        assert_eq!(digest(ChangeKind::Deleted, Content::Absent, 0), "gone");
        assert_eq!(digest(ChangeKind::Replaced, Content::Directory, 0o755), "directory");
        assert_eq!(digest(ChangeKind::Replaced, Content::Fifo, 0), "fifo");
        assert_eq!(digest(ChangeKind::Replaced, Content::Socket, 0), "socket");
        assert_eq!(digest(ChangeKind::Added, Content::Device, 0), "device");
        assert_eq!(digest(ChangeKind::Replaced, text, 0), format!("sha256 {}", Digest::of(b"/etc/passwd").short()));
        let file = Content::Regular { digest: Digest::of(b""), size: 0 };
        assert_eq!(digest(ChangeKind::Mode, file.clone(), 0o4755), "mode 4755");
        assert_eq!(digest(ChangeKind::Mode, file, 0o755), "mode 0755");
    }

    #[test]
    fn attributes_that_changed_have_a_line_each() {
        let file = |mode| Snapshot {
            content: Content::Regular { digest: Digest::of(b""), size: 0 },
            mode,
            ..Snapshot::absent()
        };
        let mut after = Snapshot { uid: 1000, append_only: true, ..file(0o4755) };
        after.xattrs.insert(b"user.\x1b".to_vec(), b"value".to_vec());
        let expected = ["mode 0644 -> 4755", "owner 0:0 -> 1000:0", "+ attribute user.\\x1b", "now append-only"];
        assert_eq!(attributes(&file(0o644), &after), expected);
        assert_eq!(attributes(&after, &after), [] as [&str; 0]);
        assert_eq!(attributes(&Snapshot::absent(), &after), [] as [&str; 0]);
    }

    #[test]
    fn marks_without_a_width_are_written_out() {
        assert_eq!(certain("e\u{301} 日 é"), "e\\u{301} 日 é");
        assert_eq!(certain("a\u{202e}b"), "a\\u{202e}b");
    }
}
