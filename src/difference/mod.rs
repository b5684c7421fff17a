//! What changed, told without telling the contents: keys and structure, or numbers of lines.
//!
//! Promise: no value, no part of one, no hash of one and no text of a line ever comes out, whatever the two sides hold;
//! the one exception is `core.hooksPath` of git's configuration, which is a path, and decides which programs git runs.
//! Inputs over [`MOST_BYTES`] are only counted; depth, number of lines and work are bounded, and nothing here panics on
//! any input.
//! Limit: keys are shown. A secret that somebody uses as a key is held back only if it looks like one ([`key`]).

mod dotenv;
mod git_config;
mod key;
mod lines;
mod structured;
mod tree;

use crate::rules::Rule;
use tree::Changes;

/// More than this is not looked into.
pub const MOST_BYTES: usize = 64 * 1024;

/// The most lines above a question.
const MOST_LINES: usize = 4;

/// The most lines behind `d`.
const MOST_DETAILS: usize = 40;

/// How the bytes of a file are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `KEY=value` lines.
    Dotenv,
    /// Git's configuration.
    GitConfig,
    /// JSON, comments and trailing commas allowed.
    Json,
    /// YAML, one document.
    Yaml,
    /// TOML.
    Toml,
    /// Anything else: lines.
    Lines,
}

impl Format {
    /// By the name of the file, and the rule, which tells git's `config` from others.
    pub fn of(path: &[u8], rule: Rule) -> Self {
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        let extension = name.rsplit(|&byte| byte == b'.').next().unwrap_or(name);
        match name {
            b".env" => return Self::Dotenv,
            _ if name.starts_with(b".env.") => return Self::Dotenv,
            b"config" | b"config.worktree" if rule == Rule::GitControl => return Self::GitConfig,
            b".gitmodules" | b".gitconfig" => return Self::GitConfig,
            b"Pipfile.lock" | b"composer.lock" | b"flake.lock" | b"deno.lock" | b"bun.lock" | b"Package.resolved" => {
                return Self::Json;
            }
            b"pubspec.lock" | b".clang-format" => return Self::Yaml,
            b"Pipfile" | b"Cargo.lock" | b"poetry.lock" | b"pdm.lock" | b"uv.lock" => return Self::Toml,
            _ => {}
        }
        match extension {
            b"json" | b"jsonc" | b"json5" => Self::Json,
            b"yml" | b"yaml" => Self::Yaml,
            b"toml" => Self::Toml,
            _ => Self::Lines,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Dotenv => "dotenv",
            Self::GitConfig => "git configuration",
            Self::Json => "JSON",
            Self::Yaml => "YAML",
            Self::Toml => "TOML",
            Self::Lines => "lines",
        }
    }
}

/// A difference that may be shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Difference {
    /// A few short lines for the question.
    pub lines: Vec<String>,
    /// More of them, for `d`.
    pub details: Vec<String>,
}

/// What changed from `before` to `after`; `None` where there is nothing or nothing that can be read.
pub fn difference(format: Format, before: Option<&[u8]>, after: Option<&[u8]>) -> Difference {
    if before == after {
        return Difference::default();
    }
    let counted = lines::counted(before, after);
    let one_sided = before.is_none() || after.is_none();
    // A file that is not there has no key, as an empty one.
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    if format == Format::Lines || before.len().max(after.len()) > MOST_BYTES {
        return Difference { lines: vec![counted.clone()], details: vec![counted] };
    }
    match changes(format, before, after) {
        // No layout to compare with.
        Some(changes) if one_sided && changes.entries.is_empty() => {
            Difference { lines: vec![counted.clone()], details: vec![counted] }
        }
        Some(changes) => changes.shown(&counted),
        None => {
            let unread = format!("{counted}; not valid {}", format.name());
            Difference { lines: vec![unread.clone()], details: vec![unread] }
        }
    }
}

fn changes(format: Format, before: &[u8], after: &[u8]) -> Option<Changes> {
    match format {
        Format::Dotenv => Some(dotenv::changes(before, after)),
        Format::GitConfig => git_config::changes(before, after),
        Format::Json => Some(tree::changes(&structured::json(before)?, &structured::json(after)?)),
        Format::Yaml => Some(tree::changes(&structured::yaml(before)?, &structured::yaml(after)?)),
        Format::Toml => Some(tree::changes(&structured::toml(before)?, &structured::toml(after)?)),
        Format::Lines => None,
    }
}

impl Changes {
    /// Those that matter most first, and as many as fit.
    fn shown(mut self, counted: &str) -> Difference {
        if self.entries.is_empty() {
            let nothing = format!("{counted}; no key or value changed, only layout, order or comments");
            return Difference { lines: vec![nothing.clone()], details: vec![nothing] };
        }
        // A key that makes git run a program must not drown among harmless ones.
        self.entries.sort_by_key(|entry| !entry.matters);
        let mut details = self.cut(MOST_DETAILS - 1);
        details.push(counted.to_owned());
        Difference { lines: self.cut(MOST_LINES), details }
    }

    fn cut(&self, most: usize) -> Vec<String> {
        let all = self.entries.len() + self.more;
        let shown = if all > most { most - 1 } else { all };
        let mut lines: Vec<String> = self.entries.iter().take(shown).map(ToString::to_string).collect();
        if all > shown {
            lines.push(format!("… and {} more", all - shown));
        }
        lines
    }
}

#[cfg(test)]
mod tests;
