//! The control files inside a git directory: what makes git run programs, or look elsewhere for what does.
//!
//! Promise: everything in the table of git_control is covered, in this git directory and in those of its submodules, and
//! ordinary work (objects, references, logs, index) is not. Limit: a submodule whose name holds `refs/heads` or the like
//! is taken for references.
//! Source: gitrepository-layout(5), githooks(5); `commondir` there: any git directory that has this file takes its
//! configuration and hooks from where it points.

/// What a path inside a git directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A control file.
    File,
    /// A folder of control files, or something below one: a directory there is as it should be.
    Folder,
}

/// Names git runs as hooks.
pub const HOOK_NAMES: &[&[u8]] = &[
    b"applypatch-msg",
    b"commit-msg",
    b"fsmonitor-watchman",
    b"p4-changelist",
    b"p4-post-changelist",
    b"p4-pre-submit",
    b"p4-prepare-changelist",
    b"post-applypatch",
    b"post-checkout",
    b"post-commit",
    b"post-index-change",
    b"post-merge",
    b"post-receive",
    b"post-rewrite",
    b"post-update",
    b"pre-applypatch",
    b"pre-auto-gc",
    b"pre-commit",
    b"pre-merge-commit",
    b"pre-push",
    b"pre-rebase",
    b"pre-receive",
    b"prepare-commit-msg",
    b"proc-receive",
    b"push-to-checkout",
    b"reference-transaction",
    b"sendemail-validate",
    b"update",
];

/// What stands above a reference's own name, so that a branch named `config` is no control file.
const REFERENCES: [(&[u8], &[u8]); 7] = [
    (b"refs", b"heads"),
    (b"refs", b"tags"),
    (b"refs", b"remotes"),
    (b"refs", b"notes"),
    (b"refs", b"replace"),
    (b"refs", b"bisect"),
    (b"logs", b"refs"),
];

/// The first component and the rest.
pub(super) fn split_first(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().position(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (path, b""),
    }
}

/// What the entry `name` of `dir` is; `dir` is the path of a directory inside the git directory, empty for the top.
pub fn part(dir: &[u8], name: &[u8]) -> Option<Part> {
    let (first, rest) = split_first(dir);
    match first {
        b"" => match name {
            b"config" | b"config.worktree" | b"commondir" => Some(Part::File),
            b"hooks" | b"info" | b"modules" | b"worktrees" => Some(Part::Folder),
            _ => None,
        },
        b"hooks" => (!name.ends_with(b".sample")).then_some(Part::Folder),
        b"info" if rest.is_empty() => matches!(name, b"attributes" | b"exclude").then_some(Part::File),
        b"worktrees" if !rest.is_empty() && !rest.contains(&b'/') => (name == b"config.worktree").then_some(Part::File),
        b"modules" => in_modules(rest, name),
        _ => None,
    }
}

/// A submodule's name may hold slashes, so its git directory may begin after any component.
fn in_modules(rest: &[u8], name: &[u8]) -> Option<Part> {
    if rest.is_empty() || is_reference(rest) {
        return None;
    }
    let ends = rest.iter().enumerate().filter(|&(_, &byte)| byte == b'/').map(|(slash, _)| slash + 1);
    ends.chain([rest.len()]).find_map(|end| {
        let inside = &rest[end..];
        // `modules` inside a module is met again as a part of a longer name.
        if split_first(inside).0 == b"modules" { None } else { part(inside, name) }
    })
}

fn is_reference(dir: &[u8]) -> bool {
    let mut above: &[u8] = b"";
    dir.split(|&byte| byte == b'/').any(|component| {
        let found = REFERENCES.contains(&(above, component));
        above = component;
        found
    })
}

/// Whether a control file can lie in the directory `dir` of a git directory, or below.
pub fn enters(dir: &[u8]) -> bool {
    let (first, rest) = split_first(dir);
    match first {
        b"" | b"hooks" => true,
        b"info" => rest.is_empty(),
        b"worktrees" => !rest.contains(&b'/'),
        b"modules" => {
            let store = |component: &[u8]| matches!(component, b"objects" | b"lfs");
            !is_reference(rest) && !split_first(rest).1.split(|&byte| byte == b'/').any(store)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> Option<Part> {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        part(dir.as_bytes(), name.as_bytes())
    }

    #[test]
    fn control_files_are_covered_wherever_a_git_directory_has_them() {
        for path in [
            "config",
            "config.worktree",
            "commondir",
            "hooks/pre-commit",
            "hooks/sub/part",
            "info/attributes",
            "info/exclude",
            "modules/lib/config",
            "modules/a/b/config",
            "modules/lib/hooks/post-merge",
            "modules/lib/hooks/deep/er",
            "modules/a/modules/b/config",
            "modules/lib/info/attributes",
            "worktrees/side/config.worktree",
        ] {
            assert!(of(path).is_some(), "{path}");
            let (dir, _) = path.rsplit_once('/').unwrap_or(("", path));
            assert!(enters(dir.as_bytes()), "{dir} holds {path}");
        }
    }

    #[test]
    fn ordinary_files_of_git_are_free() {
        for path in [
            "HEAD",
            "index",
            "description",
            "config.lock",
            "hooks/pre-push.sample",
            "refs/heads/config",
            "logs/refs/heads/config",
            "objects/ab/cdef",
            "info/refs",
            "modules/lib/HEAD",
            "modules/lib/refs/heads/config",
            "modules/lib/refs/heads/hooks/x",
            "modules/lib/logs/refs/heads/hooks/x",
            "modules/lib/hooks/pre-push.sample",
            "worktrees/side/HEAD",
            "worktrees/side/commondir",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
        for dir in ["objects", "objects/ab", "refs", "logs", "lfs", "modules/lib/objects/ab", "modules/lib/refs/heads"]
        {
            assert!(!enters(dir.as_bytes()), "{dir}");
        }
    }
}
