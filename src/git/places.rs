//! Where git's control files lie: in the tree, or in folders of their own outside.
//!
//! Promise: a folder is covered both where it is named and where the name leads, so that neither a link on the way nor
//! what it points to can be changed unseen. Limit: where a name leads is settled at the start.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use platform::{FileType, RelPath, ambient};

use super::discover::Repository;
use super::settings::Settings;
use crate::rules::set::ExternalRoot;
use crate::rules::zone::{What, Zone};

/// The covered places of one repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// In the tree.
    pub zones: Vec<Zone>,
    /// Outside of it.
    pub external: Vec<ExternalRoot>,
}

/// All places that repository and settings name.
pub fn of(repository: &Repository, settings: &Settings) -> Places {
    let mut places = Places::default();
    let top = &repository.top;
    if repository.common_dir != top.join(".git") {
        places.add(top, &repository.common_dir, What::GitDir);
    }
    if repository.git_dir != repository.common_dir {
        places.add(top, &repository.git_dir, What::GitDir);
    }
    for included in &settings.included {
        for path in both_ways(included) {
            if let Some(path) = in_tree(top, &path).filter(|path| !path.is_root()) {
                places.add_zone(Zone { path, what: What::Included });
            }
        }
    }
    // The usual folder is covered by its name; if it is a link, where it leads is not.
    let usual = repository.common_dir.join("hooks");
    if ambient::kind(&usual).ok().flatten() == Some(FileType::Symlink) {
        places.add_hooks(top, &usual);
    }
    for hooks in &settings.hooks {
        places.add_hooks(top, hooks);
    }
    places
}

impl Places {
    fn add_hooks(&mut self, top: &Path, hooks: &Path) {
        for path in both_ways(hooks) {
            let is_other = !matches!(ambient::kind_following(&path), Ok(None | Some(FileType::Directory)));
            if top.starts_with(&path) {
                // The tree lies in it: not all of that can be hooks.
                self.add_names(top, &path);
            } else if !is_other || path.starts_with(top) {
                self.add(top, &path, What::Hooks);
            }
        }
    }

    fn add_names(&mut self, top: &Path, path: &Path) {
        let zone = Zone { path: RelPath::root(), what: What::HookNames };
        if path == top { self.add_zone(zone) } else { self.add_external(path, zone) }
    }

    fn add(&mut self, top: &Path, path: &Path, what: What) {
        if let Some(path) = in_tree(top, path) {
            return self.add_zone(Zone { path, what });
        }
        // The nearest directory above that exists, so that the folder can appear, vanish and be swapped in sight.
        let exists = |dir: &&Path| ambient::kind_following(dir).ok().flatten() == Some(FileType::Directory);
        let Some(parent) = path.ancestors().skip(1).find(exists) else { return };
        if let Some(path) = in_tree(parent, path) {
            self.add_external(parent, Zone { path, what });
        }
    }

    fn add_zone(&mut self, zone: Zone) {
        if !self.zones.contains(&zone) {
            self.zones.push(zone);
        }
    }

    /// Adds a zone to the root that holds it, so that no file is covered under two names.
    fn add_external(&mut self, path: &Path, zone: Zone) {
        let holder = self.external.iter_mut().find_map(|root| Some((in_tree(&root.path, path)?, root)));
        if let Some((below, root)) = holder {
            let zone = Zone { path: below.join_path(&zone.path), ..zone };
            if !root.zones.contains(&zone) {
                root.zones.push(zone);
            }
            return;
        }
        // Roots that the new one holds become zones of it.
        let (held, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.external).into_iter().partition(|root| root.path.starts_with(path));
        self.external = others;
        let mut zones = vec![zone];
        for root in held {
            let Some(below) = in_tree(path, &root.path) else { continue };
            zones.extend(root.zones.into_iter().map(|zone| Zone { path: below.join_path(&zone.path), ..zone }));
        }
        self.external.push(ExternalRoot { path: path.to_path_buf(), zones });
    }
}

fn in_tree(top: &Path, path: &Path) -> Option<RelPath> {
    RelPath::parse(path.strip_prefix(top).ok()?.as_os_str().as_bytes()).ok()
}

/// The path as it is named, without `.` and `..`, and where it leads; once if that is the same.
fn both_ways(path: &Path) -> Vec<PathBuf> {
    let mut ways = vec![resolved(path)];
    let named = lexical(path);
    if !ways.contains(&named) {
        ways.push(named);
    }
    ways
}

fn lexical(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}

/// Where the path leads: what exists of it resolved, the rest as named.
fn resolved(path: &Path) -> PathBuf {
    for existing in path.ancestors() {
        if let Ok(real) = ambient::resolve(existing) {
            let rest = path.strip_prefix(existing).unwrap_or(Path::new(OsStr::new("")));
            return lexical(&real.join(rest));
        }
    }
    lexical(path)
}
