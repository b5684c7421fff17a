//! What can be remembered: patterns, which are never made from an action's text by reading it.
//!
//! Promise: a grant made for an action covers that action's target or its one widening, and nothing else; a target that
//! could be read as a pattern is covered by no grant at all. [`Grant::parse`] takes the very spellings that
//! [`Grant::target`] writes, and no other.
//! Limit: a domain's names and a directory's children are what they are at the time of a call, not of the grant.

use std::fmt;

use super::action::{Action, Target};
use super::host::{self, Host, HostError, HostName};
use super::kind::Kind;
use super::path::{FilePath, NotePath, PathError};
use super::wire::GrantInfo;

/// What a grant covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pattern {
    /// This very target.
    Exact(Target),
    /// Every name below this domain, at any depth, on the default port; not the domain itself.
    Subdomains(String),
    /// What lies directly in this directory (for notes, below the folder of notes), and not the directory itself.
    Children(FilePath),
}

/// A kind and a pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    pub(super) kind: Kind,
    pub(super) pattern: Pattern,
}

/// Why a spelling is no grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// There is no such kind.
    #[error("there is no such kind")]
    Kind,
    /// A wildcard that is neither `*.DOMAIN` nor `DIR/*`.
    #[error("a wildcard is `*.DOMAIN` for hosts or `DIR/*` for paths, and stands nowhere else")]
    Wildcard,
    /// All names of a public suffix, or of several.
    #[error("nobody owns all names below this domain")]
    PublicSuffix,
    /// The only target of its kind is the person.
    #[error("the only target of this kind is `user`")]
    User,
    /// No host, or not in its canonical form.
    #[error(transparent)]
    Host(#[from] HostError),
    /// No path, or not in its canonical form.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Whether a text could be read as a pattern by somebody.
fn holds_wildcard(text: &str) -> bool {
    text.contains(['*', '?', '[', '\\'])
}

/// Whether an action can be remembered at all. A host never holds a wildcard character; the brackets of an address are
/// only how it is shown.
fn is_literal(action: &Action) -> bool {
    match action.target() {
        Target::Host(_) | Target::User => true,
        Target::Path(path) => !holds_wildcard(path.as_str()),
        Target::Note(path) => !holds_wildcard(path.as_str()),
    }
}

/// The directory whose children an action's target is one of.
fn directory(action: &Action) -> Option<FilePath> {
    match action.target() {
        Target::Path(path) => path.parent(),
        // A part of a canonical path is one.
        Target::Note(path) => path.parent().and_then(|parent| FilePath::parse(parent).ok()),
        Target::Host(_) | Target::User => None,
    }
}

impl Grant {
    /// The grant that covers this very action and no other; `None` if nothing about it may be remembered.
    pub fn exact(action: &Action) -> Option<Self> {
        is_literal(action).then(|| Self { kind: action.kind(), pattern: Pattern::Exact(action.target().clone()) })
    }

    /// The one wider grant that may be offered: names below the host's parent domain, or what lies in the path's
    /// directory. `None` where that would be too much, or nothing may be remembered.
    pub fn widened(action: &Action) -> Option<Self> {
        if !is_literal(action) {
            return None;
        }
        let pattern = match action.target() {
            Target::Host(host) if host.port().is_some() => return None,
            Target::Host(host) => Pattern::Subdomains(host.name().widening()?.to_owned()),
            Target::Path(_) | Target::Note(_) => Pattern::Children(directory(action)?),
            Target::User => return None,
        };
        Some(Self { kind: action.kind(), pattern })
    }

    /// Whether it covers an action.
    pub fn covers(&self, action: &Action) -> bool {
        if self.kind != action.kind() || !is_literal(action) {
            return false;
        }
        match &self.pattern {
            Pattern::Exact(target) => target == action.target(),
            Pattern::Subdomains(domain) => match action.target() {
                Target::Host(Host { name: HostName::Name(name), port: None }) => {
                    name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
                }
                _ => false,
            },
            Pattern::Children(parent) => directory(action).as_ref() == Some(parent),
        }
    }

    /// Every grant that covers an action, for looking them up in an ordered set instead of asking each one.
    pub(super) fn covering(action: &Action) -> Vec<Self> {
        let Some(exact) = Self::exact(action) else { return Vec::new() };
        let kind = action.kind();
        let mut grants = vec![exact];
        if let Target::Host(Host { name: HostName::Name(name), port: None }) = action.target() {
            let above = name.match_indices('.').map(|(at, _)| name[at + 1..].to_owned());
            grants.extend(above.map(|domain| Self { kind, pattern: Pattern::Subdomains(domain) }));
        }
        grants.extend(directory(action).map(|parent| Self { kind, pattern: Pattern::Children(parent) }));
        grants
    }

    /// Takes a grant as `grants.json` spells it.
    pub fn parse(kind: &str, target: &str) -> Result<Self, GrantError> {
        let kind = Kind::parse(kind).ok_or(GrantError::Kind)?;
        let pattern = match kind {
            Kind::Net => match target.strip_prefix("*.") {
                Some(domain) => Pattern::Subdomains(parse_domain(domain)?),
                None if target.contains(['*', '?', '\\']) => return Err(GrantError::Wildcard),
                None => Pattern::Exact(Target::Host(Host::canonical(target)?)),
            },
            Kind::File | Kind::Memory => match target.strip_suffix("/*") {
                Some(parent) if !holds_wildcard(parent) => Pattern::Children(FilePath::parse(parent)?),
                _ if holds_wildcard(target) => return Err(GrantError::Wildcard),
                _ if kind == Kind::File => Pattern::Exact(Target::Path(FilePath::parse(target)?)),
                _ => Pattern::Exact(Target::Note(NotePath::parse(target)?)),
            },
            Kind::Notify | Kind::Remind if target == "user" => Pattern::Exact(Target::User),
            Kind::Notify | Kind::Remind => return Err(GrantError::User),
        };
        Ok(Self { kind, pattern })
    }

    /// The kind of action it is about.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// What it covers.
    pub const fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// What it covers, as `grants.json` and questions spell it.
    pub fn target(&self) -> String {
        match &self.pattern {
            Pattern::Exact(target) => target.to_string(),
            Pattern::Subdomains(domain) => format!("*.{domain}"),
            Pattern::Children(parent) => format!("{parent}/*"),
        }
    }

    /// As messages and the audit spell it.
    pub fn info(&self) -> GrantInfo {
        GrantInfo { kind: self.kind.name().to_owned(), target: self.target() }
    }
}

fn parse_domain(domain: &str) -> Result<String, GrantError> {
    if domain.contains(['*', '?', '[', '\\']) {
        return Err(GrantError::Wildcard);
    }
    let host = Host::canonical(domain)?;
    match host {
        Host { name: HostName::Name(name), port: None } if host::may_widen(&name) => Ok(name),
        Host { name: HostName::Name(_), port: None } => Err(GrantError::PublicSuffix),
        _ => Err(GrantError::Wildcard),
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind, self.target())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(path: &str) -> Action {
        Action::file(FilePath::parse(path).expect(path))
    }

    fn net(host: &str) -> Action {
        Action::net(Host::parse(host, Some(80)).expect(host))
    }

    fn note(path: &str) -> Action {
        Action::memory(NotePath::parse(path).expect(path))
    }

    fn widened(action: &Action) -> Option<String> {
        Grant::widened(action).map(|grant| grant.target())
    }

    #[test]
    fn one_widening_is_offered_where_there_is_one() {
        for (action, widening) in [
            (file("notes/todo.md"), Some("notes/*")),
            (file("a/b/c.md"), Some("a/b/*")),
            (file("todo.md"), None),
            (note("plans/next.md"), Some("plans/*")),
            (note("next.md"), None),
            (net("api.example.com"), Some("*.example.com")),
            (net("a.b.c.example.com"), Some("*.b.c.example.com")),
            (net("api.example.com:8080"), None),
            (net("example.com"), None),
            (net("someone.github.io"), None),
            (net("203.0.113.7"), None),
            (net("[2001:db8::7]"), None),
            (net("intranet"), None),
            (Action::notify(), None),
            (Action::remind(), None),
        ] {
            assert_eq!(widened(&action).as_deref(), widening, "{action}");
            assert!(Grant::exact(&action).is_some_and(|grant| grant.covers(&action)), "{action}");
            assert!(Grant::widened(&action).is_none_or(|grant| grant.covers(&action)), "{action}");
        }
    }

    #[test]
    fn nothing_is_granted_about_a_target_that_looks_like_a_pattern() {
        let children = Grant::parse("file", "notes/*").expect("a grant");
        for path in ["*", "notes/*", "[a]", "what?.md", "notes[1]/x.md", "back\\slash.txt", "notes/?"] {
            let action = file(path);
            assert_eq!((Grant::exact(&action), Grant::widened(&action)), (None, None), "{path}");
            assert!(!children.covers(&action) && Grant::covering(&action).is_empty(), "{path}");
        }
        assert_eq!(Grant::exact(&note("notes/*.md")), None);
    }

    #[test]
    fn a_directory_covers_its_children_only() {
        let grant = Grant::parse("file", "notes/*").expect("a grant");
        assert!(grant.covers(&file("notes/a.md")) && grant.covers(&file("notes/.env")));
        for path in ["notes", "notes/x/a.md", "notes.md", "Notes/a.md", "notesx/a.md", "other/a.md", "x/notes/a.md"] {
            assert!(!grant.covers(&file(path)), "{path}");
        }
        assert!(!grant.covers(&note("notes/a.md")));
        assert!(Grant::parse("memory", "plans/*").expect("a grant").covers(&note("plans/next.md")));
    }

    #[test]
    fn a_domain_covers_the_names_below_it_on_the_default_port() {
        let grant = Grant::parse("net", "*.example.test").expect("a grant");
        assert!(grant.covers(&net("a.example.test")) && grant.covers(&net("a.b.example.test")));
        for host in
            ["example.test", "badexample.test", "a.example.test.evil.test", "a.example.test:8080", "test", "10.0.0.1"]
        {
            assert!(!grant.covers(&net(host)), "{host}");
        }
    }

    #[test]
    fn only_what_is_written_is_read() {
        for (kind, target) in [
            ("file", "a.txt"),
            ("file", "notes/*"),
            ("file", "a b/c"),
            ("memory", "plans/next.md"),
            ("memory", "plans/*"),
            ("net", "example.com"),
            ("net", "example.com:8080"),
            ("net", "*.example.com"),
            ("net", "[2001:db8::7]"),
            ("net", "10.0.0.1"),
            ("notify", "user"),
            ("remind", "user"),
        ] {
            let grant = Grant::parse(kind, target).expect(target);
            assert_eq!((grant.kind().name(), grant.target().as_str()), (kind, target));
        }
        for (kind, target) in [
            ("files", "x"),
            ("*", "x"),
            ("", "x"),
            ("file", ""),
            ("file", "*"),
            ("file", "/*"),
            ("file", "**"),
            ("file", "**/x"),
            ("file", "a/**"),
            ("file", "a/*/b"),
            ("file", "a*/b"),
            ("file", "*/*"),
            ("file", "a?"),
            ("file", "[a]"),
            ("file", "a\\b"),
            ("file", "../x"),
            ("file", "../*"),
            ("file", "a/../*"),
            ("file", "./*"),
            ("file", "a//b"),
            ("file", "/etc/passwd"),
            ("file", "a\u{202e}b"),
            ("memory", "*"),
            ("memory", "note"),
            ("memory", "../*"),
            ("net", ""),
            ("net", "*"),
            ("net", "*."),
            ("net", "*.*.com"),
            ("net", "*.com"),
            ("net", "*.co.uk"),
            ("net", "*.github.io"),
            ("net", "*.test"),
            ("net", "api.*.test"),
            ("net", "*.example.com:8080"),
            ("net", "*.0.0.1"),
            ("net", "*.10.0.0.1"),
            ("net", "*.[::1]"),
            ("net", "*.Example.com"),
            ("net", "*.example.com."),
            ("net", "example.com."),
            ("net", "Example.com"),
            ("net", "bücher.de"),
            ("net", "127.1"),
            ("net", "**.example.com"),
            ("notify", "*"),
            ("notify", "root"),
            ("remind", ""),
        ] {
            assert!(Grant::parse(kind, target).is_err(), "{kind} {target}");
        }
    }

    fn action() -> impl Strategy<Value = Action> {
        let segment = proptest::sample::select(vec!["a", "b", "notes", "*", "x?", "[a]", "c.md", "\\", "n.md"]);
        let path = proptest::collection::vec(segment, 1..4).prop_map(|segments| segments.join("/"));
        let label = proptest::sample::select(vec!["a", "b", "example", "com", "co.uk", "github.io", "test", "_x"]);
        let host = (proptest::collection::vec(label, 1..5), proptest::option::of(1..3u16));
        prop_oneof![
            path.clone().prop_map(|path| file(&path)),
            path.prop_filter_map("a note", |path| NotePath::parse(&path).ok()).prop_map(Action::memory),
            host.prop_filter_map("a host", |(labels, port)| {
                let port = port.map_or_else(String::new, |port| format!(":{port}"));
                Host::canonical(&format!("{}{port}", labels.join("."))).ok()
            })
            .prop_map(Action::net),
            Just(Action::notify()),
            Just(Action::remind()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_grant_is_read_back_as_it_was_written(action in action()) {
            for grant in [Grant::exact(&action), Grant::widened(&action)].into_iter().flatten() {
                prop_assert_eq!(Grant::parse(grant.kind().name(), &grant.target()), Ok(grant));
            }
        }

        #[test]
        fn looking_up_finds_what_asking_each_finds(one in action(), other in action()) {
            for grant in [Grant::exact(&one), Grant::widened(&one)].into_iter().flatten() {
                prop_assert_eq!(Grant::covering(&other).contains(&grant), grant.covers(&other), "{} {}", grant, other);
            }
        }

        #[test]
        fn an_exact_grant_covers_nothing_else(one in action(), other in action()) {
            if let Some(grant) = Grant::exact(&one) {
                prop_assert_eq!(grant.covers(&other), one == other);
            }
        }

        #[test]
        fn no_text_makes_reading_fall(kind in "net|file|memory|notify", target in any::<String>()) {
            if let Ok(grant) = Grant::parse(&kind, &target) {
                prop_assert_eq!(grant.target(), target);
            }
        }
    }
}
