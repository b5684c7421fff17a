//! Git's configuration, in which many a value is a command.
//!
//! Source: git-config(1); the sections with commands were collected from its list of variables (Git 2.50), and are meant
//! to be too many rather than too few.

use std::collections::HashMap;

use gix_config::parse::{EventRef, Events};

use super::key;
use super::tree::{Changes, Entry, Sign};

/// The changed variables; `None` if this is no configuration.
pub(super) fn changes(before: &[u8], after: &[u8]) -> Option<Changes> {
    let (before, after) = (parse(before)?, parse(after)?);
    let mut changes = Changes::default();
    for variable in &after.order {
        let values = &after.values[variable];
        match before.values.get(variable) {
            Some(old) if old == values => {}
            old => {
                let sign = if old.is_some() { Sign::Changed } else { Sign::Added };
                changes.add(|| variable.entry(sign, values.last()));
            }
        }
    }
    for variable in before.order.iter().filter(|variable| !after.values.contains_key(variable)) {
        changes.add(|| variable.entry(Sign::Removed, None));
    }
    Some(changes)
}

/// Section and name in lower case, as git compares them; the subsection as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Variable {
    section: String,
    subsection: Option<String>,
    name: String,
}

#[derive(Default)]
struct Parsed {
    order: Vec<Variable>,
    values: HashMap<Variable, Vec<Vec<u8>>>,
}

fn parse(bytes: &[u8]) -> Option<Parsed> {
    let events = Events::from_bytes(bytes, None).ok()?;
    let mut parsed = Parsed::default();
    for section in events.sections() {
        let EventRef::SectionHeader { name, subsection_name, .. } = section.header() else { continue };
        let (section_name, subsection) = (lower(name), subsection_name.map(|name| name.to_string()));
        let mut open: Option<Variable> = None;
        for event in section.body() {
            match event {
                EventRef::SectionValueName(name) => {
                    let variable =
                        Variable { section: section_name.clone(), subsection: subsection.clone(), name: lower(name) };
                    let values = parsed.values.entry(variable.clone()).or_insert_with(|| {
                        parsed.order.push(variable.clone());
                        Vec::new()
                    });
                    values.push(Vec::new());
                    open = Some(variable);
                }
                EventRef::Value(part) | EventRef::ValueNotDone(part) | EventRef::ValueDone(part) => {
                    let values = open.as_ref().and_then(|variable| parsed.values.get_mut(variable));
                    if let Some(value) = values.and_then(|values| values.last_mut()) {
                        value.extend_from_slice(part);
                    }
                }
                // `name` alone means true, `name =` means empty.
                EventRef::KeyValueSeparator => {
                    let values = open.as_ref().and_then(|variable| parsed.values.get_mut(variable));
                    if let Some(value) = values.and_then(|values| values.last_mut()) {
                        value.push(b'=');
                    }
                }
                EventRef::Comment { .. }
                | EventRef::SectionHeader { .. }
                | EventRef::Newline(_)
                | EventRef::Whitespace(_) => {}
            }
        }
    }
    Some(parsed)
}

fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase()
}

impl Variable {
    fn entry(&self, sign: Sign, value: Option<&Vec<u8>>) -> Entry {
        let mut path = key::shown(&self.section);
        if let Some(subsection) = &self.subsection {
            // A URL may hold a password, and its query anything.
            let shown = if subsection.contains("://") || subsection.contains('@') {
                "(url)".to_owned()
            } else {
                key::shown(subsection)
            };
            path = format!("{path}.{shown}");
        }
        path = format!("{path}.{}", key::shown(&self.name));
        if (self.section.as_str(), self.name.as_str()) == ("core", "hookspath") {
            let place = value.map_or(&b""[..], |value| value.strip_prefix(b"=").unwrap_or(value));
            path = if value.is_some() {
                format!("core.hooksPath = {}", key::file_path(place))
            } else {
                "core.hooksPath".to_owned()
            };
        }
        let note = self.note();
        Entry { sign, path, matters: note.is_some(), note: note.map(str::to_owned) }
    }

    /// What a change of the variable can lead to, if it is more than a setting.
    fn note(&self) -> Option<&'static str> {
        const RUNS: Option<&str> = Some("runs a program");
        let under = self.subsection.is_some();
        match (self.section.as_str(), self.name.as_str()) {
            ("core", "hookspath") => Some("runs the programs in it"),
            (
                "core",
                "pager" | "fsmonitor" | "sshcommand" | "editor" | "askpass" | "gitproxy" | "alternaterefscommand",
            )
            | ("alias" | "pager", _)
            | ("sequence", "editor")
            | ("diff", "external" | "command" | "textconv")
            | ("difftool" | "mergetool" | "guitool" | "man" | "browser", "cmd" | "path")
            | ("merge", "driver")
            | ("filter", "clean" | "smudge" | "process")
            | ("credential", "helper")
            | ("gpg", "program" | "defaultkeycommand")
            | ("interactive", "difffilter")
            | ("remote", "uploadpack" | "receivepack" | "vcs")
            | ("uploadpack", "packobjectshook")
            | ("receive", "procreceiverefs")
            | ("submodule", "update")
            | ("trailer", "command" | "cmd")
            | ("tar" | "hook", "command")
            | ("sendemail", "tocmd" | "cccmd" | "headercmd" | "sendmailcmd" | "smtpserver")
            | ("instaweb", "httpd" | "browser")
            | ("web" | "help", "browser")
            | ("imap", "tunnel")
            | ("init", "templatedir")
            | ("maintenance", "command")
            | ("bisect", "run") => RUNS,
            ("include" | "includeif", "path") => Some("reads another configuration, which can run programs"),
            ("protocol", "allow") => Some("can let a URL run a program"),
            ("url", "insteadof" | "pushinsteadof") => Some("changes where git connects to"),
            ("remote", "url" | "pushurl" | "proxy") | ("submodule", "url") if under => {
                Some("changes where git connects to")
            }
            ("http" | "https", "proxy" | "sslverify" | "sslcainfo" | "sslcapath") => Some("changes whom git trusts"),
            ("core", "worktree" | "attributesfile" | "excludesfile") => Some("reads another place"),
            ("extensions", "worktreeconfig") => Some("reads another configuration"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &str, after: &str) -> Vec<String> {
        let changes = changes(before.as_bytes(), after.as_bytes()).expect("a configuration");
        changes.entries.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn variables_are_told_and_values_are_not() {
        let before = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://u:pass@host/r\n";
        let after = "[core]\n\tbare = true\n[user]\n\tname = Some Body\n";
        assert_eq!(
            told(before, after),
            ["~ core.bare", "+ user.name", "- remote.origin.url (changes where git connects to)"]
        );
        assert_eq!(told("[a]\nb\n", "[A]\nB=\n"), ["~ a.b"]);
        assert_eq!(told("[a]\nb = 1\nb = 2\n", "[a]\nb = 1\n[A]\nB = 2\n"), [] as [&str; 0]);
    }

    #[test]
    fn variables_that_run_programs_are_marked() {
        let commands = [
            ("[core]\npager = less; x", "core.pager"),
            ("[core]\nfsmonitor = ./x", "core.fsmonitor"),
            ("[core]\nsshCommand = x", "core.sshcommand"),
            ("[core]\neditor = x", "core.editor"),
            ("[alias]\nst = !x", "alias.st"),
            ("[filter \"lfs\"]\nsmudge = x", "filter.lfs.smudge"),
            ("[filter \"lfs\"]\nclean = x", "filter.lfs.clean"),
            ("[filter \"lfs\"]\nprocess = x", "filter.lfs.process"),
            ("[diff]\nexternal = x", "diff.external"),
            ("[diff \"a\"]\ntextconv = x", "diff.a.textconv"),
            ("[credential]\nhelper = x", "credential.helper"),
            ("[gpg]\nprogram = x", "gpg.program"),
            ("[gpg \"ssh\"]\ndefaultKeyCommand = x", "gpg.ssh.defaultkeycommand"),
            ("[merge \"a\"]\ndriver = x", "merge.a.driver"),
        ];
        for (text, name) in commands {
            assert_eq!(told("", text), [format!("+ {name} (runs a program)")]);
        }
        assert_eq!(
            told("", "[include]\npath = x"),
            ["+ include.path (reads another configuration, which can run programs)"]
        );
        assert_eq!(told("", "[includeIf \"gitdir:/x\"]\npath = x").len(), 1);
    }

    #[test]
    fn the_path_of_hooks_is_shown_and_cannot_draw() {
        let after = "[core]\n\thooksPath = .husky/\u{1b}[2J_\n";
        assert_eq!(told("", after), ["+ core.hooksPath = .husky/\\x1b[2J_ (runs the programs in it)"]);
        assert_eq!(told(after, ""), ["- core.hooksPath (runs the programs in it)"]);
    }

    #[test]
    fn a_subsection_that_is_a_url_is_not_shown() {
        let text = "[url \"https://user:token@host/\"]\n\tinsteadOf = https://host/\n";
        assert_eq!(told("", text), ["+ url.(url).insteadof (changes where git connects to)"]);
    }

    #[test]
    fn something_else_is_no_configuration() {
        assert!(changes(b"", b"[core\n").is_none());
        assert!(changes(b"", b"just text = \n\"").is_none());
    }
}
