//! A folder, or file, that is covered because of where git is told to look, not because of its name.

use platform::RelPath;

use super::gitdir::{self, HOOK_NAMES, Part};

/// What lies there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A git directory: its control files.
    GitDir,
    /// A folder of hooks: all of it, samples excepted.
    Hooks,
    /// A folder that holds hooks beside everything else: the names git runs.
    HookNames,
    /// A configuration file that another one includes.
    Included,
}

/// A covered place below a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// The folder or file, below the root.
    pub path: RelPath,
    /// What is there.
    pub what: What,
}

impl Zone {
    /// What the entry `name` of `dir` is to this zone. A component on the way counts as a folder: a link in its place
    /// would move the whole zone.
    pub(super) fn part(&self, dir: &[u8], name: &[u8]) -> Option<Part> {
        let own = self.path.as_bytes();
        if let Some(inside) = below(dir, own) {
            return match self.what {
                What::GitDir => gitdir::part(inside, name),
                What::Hooks => (!name.ends_with(b".sample")).then_some(Part::Folder),
                What::HookNames => (inside.is_empty() && HOOK_NAMES.contains(&name)).then_some(Part::File),
                What::Included => None,
            };
        }
        // `dir/name` is the zone itself or stands above it.
        let rest = below(own, dir)?;
        let rest = rest.strip_prefix(name)?;
        match rest {
            b"" if self.what == What::Included => Some(Part::File),
            b"" | [b'/', ..] => Some(Part::Folder),
            _ => None,
        }
    }

    /// Whether something of the zone can lie in `dir` or below.
    pub(super) fn enters(&self, dir: &[u8]) -> bool {
        let own = self.path.as_bytes();
        if let Some(inside) = below(dir, own) {
            return match self.what {
                What::GitDir => gitdir::enters(inside),
                What::Hooks => true,
                What::HookNames => inside.is_empty(),
                What::Included => false,
            };
        }
        below(own, dir).is_some()
    }
}

/// What remains of `path` below `dir`.
fn below<'a>(path: &'a [u8], dir: &[u8]) -> Option<&'a [u8]> {
    if dir.is_empty() {
        return Some(path);
    }
    match path.strip_prefix(dir)? {
        b"" => Some(b""),
        [b'/', rest @ ..] => Some(rest),
        _ => None,
    }
}
