//! A look at everything: which covered paths exist now, which folders are covered whole, where an object lies.
//!
//! Promise: follows no symlink, enters no directory twice on one way down, and stays in the roots. Limit: it tells what
//! was there while it passed; what appears behind it is the backend's to report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use platform::dir::Entry;
use platform::{Dir, FileId, FileType, Interest, Place, RelPath, RootError, RootId};

use crate::roots::Roots;
use crate::rules::set::RuleSet;

/// Directories deeper than this are not entered: no build makes them.
const MAX_DEPTH: usize = 512;

/// What a survey found.
#[derive(Debug, Default)]
pub struct Survey {
    /// Every covered path that exists and is no directory.
    pub found: Vec<Place>,
    /// Directories that could not be read, with the reason.
    pub unreadable: Vec<(Place, String)>,
}

/// Lists every covered path below all roots.
pub fn survey(roots: &Roots, interest: &dyn Interest) -> Survey {
    let mut found = Vec::new();
    let unreadable = walk(
        roots,
        |dir| interest.enters(dir.root, &dir.path),
        |_, dir, entries| {
            for (name, file_type) in entries {
                let is_file = file_type.is_some_and(|file_type| file_type != FileType::Directory);
                if is_file && interest.covers(dir.root, &dir.path, name) {
                    found.push(dir.join(name));
                }
            }
        },
    );
    Survey { found, unreadable }
}

/// Lists every folder below all roots in which nothing free can be made.
pub fn whole_folders(roots: &Roots, rules: &RuleSet) -> Vec<Place> {
    let mut found = Vec::new();
    let _unreadable = walk(
        roots,
        |dir| rules.enters(dir.root, &dir.path),
        |_, dir, _| {
            if rules.covers_whole(dir) {
                found.push(dir.clone());
            }
        },
    );
    found
}

/// Looks for these objects everywhere below the roots, whatever they are called by now.
pub fn whereabouts(roots: &Roots, wanted: &BTreeSet<FileId>) -> BTreeMap<FileId, Place> {
    let mut found = BTreeMap::new();
    let _unreadable = walk(
        roots,
        |_| true,
        |handle, dir, entries| {
            for (name, file_type) in entries {
                if !matches!(file_type, Some(FileType::Regular | FileType::Directory)) {
                    continue;
                }
                if let Ok(Some(stat)) = handle.stat(name)
                    && wanted.contains(&stat.id)
                {
                    found.entry(stat.id).or_insert_with(|| dir.join(name));
                }
            }
        },
    );
    found
}

/// An entry whose type is known, unless it was gone before that could be told.
type Typed = (Vec<u8>, Option<FileType>);

/// Visits every directory that is to be entered. Returns those that could not be read, with the reason.
fn walk(
    roots: &Roots,
    enters: impl Fn(&Place) -> bool,
    mut visit: impl FnMut(&Dir, &Place, &[Typed]),
) -> Vec<(Place, String)> {
    let mut unreadable = Vec::new();
    for (index, root) in roots.all().iter().enumerate() {
        let id = RootId(u16::try_from(index).expect("a run has few roots"));
        let mut open = vec![Below { dir: Place { root: id, path: RelPath::root() }, above: Arc::new([]) }];
        while let Some(below) = open.pop() {
            let handle = match root.open_dir(&below.dir.path) {
                Ok(handle) => handle,
                // Gone or replaced since it was listed: whoever did that is reported by the paths it touched.
                Err(RootError::NoParent { .. } | RootError::Mounted { .. }) => continue,
                Err(error) => {
                    unreadable.push((below.dir, error.to_string()));
                    continue;
                }
            };
            match list(&handle, &below, &enters, &mut open) {
                Ok(Some(entries)) => visit(&handle, &below.dir, &entries),
                Ok(None) => {}
                Err(error) => unreadable.push((below.dir, error.source.to_string())),
            }
        }
    }
    unreadable
}

/// A directory to be listed, and those it lies in.
struct Below {
    dir: Place,
    above: Arc<[FileId]>,
}

/// What is in a directory; `None` if it was listed on the way to it. What is to be entered of it goes to `open`.
fn list(
    handle: &Dir,
    Below { dir, above }: &Below,
    enters: impl Fn(&Place) -> bool,
    open: &mut Vec<Below>,
) -> Result<Option<Vec<Typed>>, platform::FsError> {
    let own = handle.own_stat()?.id;
    // Mounted below itself. No backend enters it either: what it finds here again would be new to the baseline.
    if above.contains(&own) {
        return Ok(None);
    }
    let above: Arc<[FileId]> = [above, &[own][..]].concat().into();
    let with_type = |Entry { name, file_type }| {
        let file_type = file_type.or_else(|| handle.stat(&name).ok().flatten().map(|stat| stat.file_type));
        (name, file_type)
    };
    let entries: Vec<Typed> = handle.list()?.into_iter().map(with_type).collect();
    for (name, file_type) in &entries {
        let below = dir.join(name);
        if *file_type == Some(FileType::Directory) && below.path.components().count() <= MAX_DEPTH && enters(&below) {
            open.push(Below { dir: below, above: Arc::clone(&above) });
        }
    }
    Ok(Some(entries))
}
