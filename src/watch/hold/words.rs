//! The words of a question about held opens, and the line after it.
//!
//! Promise: what a process may have chosen (its names, its files) cannot draw, hide or reorder anything; a path is never cut.

use platform::{Access, Notification, Program, Writer};

use crate::ask::{Block, By, certain};
use crate::rules::Rule;
use crate::text::escaped;
use crate::watch::lock::Locked;
use crate::watch::writers;

use super::Decision;

/// Everything a question about held opens says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    /// The paths as people see them, each with its rule. Never empty.
    pub items: Vec<(String, Rule)>,
    /// What for.
    pub access: Access,
    /// Who.
    pub by: Writer,
    /// Whether other processes of the same program wait, too.
    pub several: bool,
    /// How many other questions wait.
    pub waiting: usize,
}

impl Asking {
    /// How it stands on the screen.
    pub fn block(&self) -> Block {
        // The kernel keeps it where it is while we ask.
        let mut above = vec![By { certain: true, ..writers::words(&self.by) }.line()];
        if self.several {
            above.push("  and other processes of this program".to_owned());
        }
        if self.waiting > 0 {
            above.push(format!("  waiting: {} more", self.waiting));
        }
        let rules = self.rules();
        let before = format!("keep watch: {} wants to {} ", name_of(&self.by.program), verb(self.access));
        let ask = "Let it? ".to_owned();
        match &self.items[..] {
            [(path, _)] => Block {
                above,
                before,
                subject: certain(path),
                after: format!(" ({rules}). "),
                ask,
                keys: "[a]llow / [r]efuse; refused in ".to_owned(),
                unit: "s".to_owned(),
                ..Block::default()
            },
            many => Block {
                list: self.list(),
                above,
                before,
                subject: format!("{} protected files", many.len()),
                after: format!(" ({rules}). "),
                ask,
                keys: "[a]llow / [r]efuse / [e]ach; refused in ".to_owned(),
                unit: "s".to_owned(),
                ..Block::default()
            },
        }
    }

    /// Every path of the list on a line of its own.
    pub fn list(&self) -> Vec<String> {
        let mixed = self.items.iter().any(|(_, rule)| *rule != self.items[0].1);
        let rule = |rule: &Rule| if mixed { format!(" ({rule})") } else { String::new() };
        self.items.iter().map(|(path, of)| format!("  {}{}", certain(path), rule(of))).collect()
    }

    /// What the desktop is told: paths and rules, nothing that a process chose.
    pub fn notification(&self) -> Notification {
        let more = match self.items.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let path = certain(&self.items[0].0);
        let to = match self.access {
            Access::Read => "read",
            Access::Write => "written",
        };
        Notification { title: "keep watch".to_owned(), body: format!("{path}{more} is to be {to} ({})", self.rules()) }
    }

    /// The keys, for `?`.
    pub fn help(&self) -> Vec<String> {
        let mut lines = vec![match self.access {
            Access::Write => "  a  let it open the file; what it writes is kept without another question".to_owned(),
            Access::Read => "  a  let it read the file".to_owned(),
        }];
        lines.push("  r  refuse: the program is told that it may not; nothing on disk changes".to_owned());
        if self.items.len() > 1 {
            lines.push("  e  decide one by one, under the same deadline".to_owned());
        }
        lines.push("  d  show more of who asks".to_owned());
        lines.push("  ?  show the keys".to_owned());
        lines.push("  Ctrl-C  refuse everything and end the watch; no answer is a refusal".to_owned());
        lines
    }

    /// What `d` shows: every process up to the leader of the session.
    pub fn details(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (depth, program) in std::iter::once(&self.by.program).chain(&self.by.ancestors).enumerate() {
            let shown = |bytes: &[u8]| certain(&escaped(bytes));
            let mut line = format!("  {}{} (pid {}", "  ".repeat(depth.min(8)), shown(&program.name), program.pid);
            for (what, value) in [("", &program.exe), ("started as ", &program.argv0), ("in ", &program.cgroup)] {
                if let Some(value) = value {
                    line.push_str(&format!(", {what}{}", shown(value)));
                }
            }
            if program.is_elsewhere {
                line.push_str(", in another mount namespace");
            }
            if let Some(uid) = program.uid {
                line.push_str(&format!(", user {uid}"));
            }
            line.push(')');
            lines.push(line);
        }
        lines
    }

    fn rules(&self) -> String {
        let mut rules: Vec<Rule> = self.items.iter().map(|(_, rule)| *rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(", ")
    }
}

/// The line about what opens of a path came to.
pub fn decided(path: &str, access: Access, by: &Writer, decision: Decision, opens: u32) -> String {
    let program = name_of(&by.program);
    let times = if opens > 1 { format!(", {opens} times") } else { String::new() };
    let to = match access {
        Access::Read => "reading",
        Access::Write => "writing",
    };
    let why = match decision {
        Decision::Allowed => return format!("keep watch: {path} opened for {to} by {program} (allowed{times})"),
        Decision::Trusted => return format!("keep watch: {path} opened for {to} by {program} (trusted{times})"),
        Decision::Gone => return format!("keep watch: {path} no longer asked for: {program} is gone{times}"),
        Decision::Refused => "refused",
        Decision::TimedOut => "no answer",
        Decision::AutoRefused => "contested",
        Decision::NoRoom => "too many at once",
        Decision::RefusedAtExit => "the watch ended",
        Decision::WhileStopped => "the watch was stopped",
    };
    format!("keep watch: {path} not opened for {to} by {program} ({why}{times})")
}

/// The guardian is gone, and what that means for a watch that holds opens, or has locked so much, or does neither.
pub fn alone(holds: bool, locked: Option<Locked>) -> String {
    let mut line =
        "keep watch: the guardian is gone; if the watch is stopped, opens of protected files wait".to_owned();
    if holds {
        line.push_str("; if it is killed, held opens go through");
    }
    if let Some(locked) = locked {
        line.push_str(&format!(
            "; {locked}: that stays until sudo keep recover, or the next start with privilege, and nothing can be unlocked before"
        ));
    }
    line
}

/// Opens of a path are refused without asking from now on.
pub fn contested(path: &str, access: Access, limit: u32) -> String {
    let to = verb(access);
    format!(
        "keep watch: {path} is contested: refused {limit} times, whoever wants to {to} it is refused without asking; c takes that back"
    )
}

/// A program by the name of its file, which is less its own choice than its name; where paths mean something else than here,
/// the file is its own choice, too.
fn name_of(program: &Program) -> String {
    let file =
        program.exe.as_deref().and_then(|exe| exe.rsplit(|byte| *byte == b'/').next()).filter(|name| !name.is_empty());
    let name = match (file, &program.name[..]) {
        (Some(file), _) => certain(&escaped(file)),
        (None, []) => format!("process {}", program.pid),
        (None, name) => format!("a program that calls itself {}", certain(&escaped(name))),
    };
    if program.is_elsewhere { format!("{name} in another mount namespace") } else { name }
}

const fn verb(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::node;
    use super::*;

    fn asking(paths: &[&str], access: Access) -> Asking {
        let items = paths.iter().map(|path| ((*path).to_owned(), Rule::Secrets)).collect();
        Asking { items, access, by: node(4242), several: false, waiting: 0 }
    }

    fn asked(block: &Block) -> String {
        let Block { before, subject, after, ask, keys, .. } = block;
        format!("{before}{subject}{after}{ask}{keys}20s")
    }

    #[test]
    fn one_open_is_one_line_below_who_asks() {
        let block = asking(&[".env"], Access::Write).block();
        assert_eq!(
            asked(&block),
            "keep watch: node wants to write .env (secrets). Let it? [a]llow / [r]efuse; refused in 20s"
        );
        assert_eq!(block.above, ["  by node (pid 4242, /usr/bin/node) < claude < zsh"]);
        let block = asking(&[".env"], Access::Read).block();
        assert!(asked(&block).starts_with("keep watch: node wants to read .env (secrets)."));
    }

    #[test]
    fn several_files_are_a_list() {
        let mut asking = asking(&[".env", "svc/.env"], Access::Write);
        (asking.several, asking.waiting) = (true, 2);
        let block = asking.block();
        assert_eq!(block.list, ["  .env", "  svc/.env"]);
        assert_eq!(
            asked(&block),
            "keep watch: node wants to write 2 protected files (secrets). Let it? [a]llow / [r]efuse / [e]ach; refused in 20s"
        );
        assert_eq!(block.above[1..], ["  and other processes of this program", "  waiting: 2 more"]);
        asking.items[1].1 = Rule::GitControl;
        assert_eq!(asking.list()[1], "  svc/.env (git_control)");
    }

    #[test]
    fn a_program_cannot_draw_with_its_names() {
        let mut asking = asking(&[".env"], Access::Write);
        asking.by.program.name = b"a\x1b[2J\n".to_vec();
        asking.by.program.exe = Some("/tmp/\u{202e}x\r".as_bytes().to_vec());
        asking.by.program.argv0 = Some(b"\x07".to_vec());
        let block = asking.block();
        let all = [asked(&block), block.above.join(" "), asking.details().join(" "), asking.help().join(" ")].concat();
        assert!(!all.chars().any(crate::text::is_hidden), "{all:?}");
        let line = decided(".env", Access::Write, &asking.by, Decision::Refused, 1);
        assert!(!line.chars().any(crate::text::is_hidden), "{line:?}");
    }

    #[test]
    fn the_desktop_is_told_nothing_that_a_program_chose() {
        let mut asking = asking(&[".env", "svc/.env"], Access::Read);
        asking.by.program.name = b"evil".to_vec();
        assert_eq!(asking.notification().body, ".env and 1 more is to be read (secrets)");
    }

    #[test]
    fn every_decision_has_its_line() {
        let line = |decision, opens| decided(".env", Access::Write, &node(1), decision, opens);
        assert_eq!(line(Decision::Allowed, 1), "keep watch: .env opened for writing by node (allowed)");
        assert_eq!(line(Decision::Refused, 1), "keep watch: .env not opened for writing by node (refused)");
        assert_eq!(line(Decision::TimedOut, 3), "keep watch: .env not opened for writing by node (no answer, 3 times)");
        assert_eq!(line(Decision::Gone, 1), "keep watch: .env no longer asked for: node is gone");
        assert_eq!(
            line(Decision::WhileStopped, 2),
            "keep watch: .env not opened for writing by node (the watch was stopped, 2 times)"
        );
    }

    #[test]
    fn without_a_guardian_it_is_said_what_is_lost_and_nothing_else() {
        let locked = Some(Locked { files: 11, folders: 1 });
        let plain = "keep watch: the guardian is gone; if the watch is stopped, opens of protected files wait";
        assert_eq!(alone(false, None), plain);
        assert!(alone(true, None).ends_with("; if it is killed, held opens go through"));
        let line = alone(false, locked);
        assert!(!line.contains("held opens"), "{line}");
        assert!(line.contains("; locked: 11 files, 1 folder: that stays until sudo keep recover"), "{line}");
        assert!(alone(true, locked).starts_with(&alone(true, None)));
    }

    #[test]
    fn a_program_without_a_file_is_what_it_calls_itself_or_a_number() {
        let mut by = node(7);
        by.program.exe = None;
        assert_eq!(name_of(&by.program), "a program that calls itself node");
        by.program.name.clear();
        assert_eq!(name_of(&by.program), "process 7");
    }

    #[test]
    fn a_program_whose_paths_mean_something_else_is_said_to_be_one() {
        let mut asking = asking(&[".env"], Access::Write);
        asking.by.program.is_elsewhere = true;
        let block = asking.block();
        assert!(
            asked(&block).starts_with("keep watch: node in another mount namespace wants to write .env (secrets).")
        );
        assert_eq!(block.above, ["  by node (pid 4242, /usr/bin/node in another mount namespace) < claude < zsh"]);
        assert!(asking.details()[0].contains(", in another mount namespace"), "{:?}", asking.details());
    }
}
