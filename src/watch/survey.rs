//! A look at everything: which covered paths exist now. For recovery, for the end, and for what a backend lost.
//!
//! Promise: follows no symlink, enters no directory twice on one way down, and stays in the roots. Limit: it tells what
//! was there while it passed; what appears behind it is the backend's to report.

use std::sync::Arc;

use platform::dir::Entry;
use platform::{Dir, FileId, FileType, Interest, Place, RelPath, RootError, RootId};

use crate::roots::Roots;

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
    let mut survey = Survey::default();
    for (index, root) in roots.all().iter().enumerate() {
        let id = RootId(u16::try_from(index).expect("a run has few roots"));
        let mut open = vec![Below { dir: Place { root: id, path: RelPath::root() }, above: Arc::new([]) }];
        while let Some(Below { dir, above }) = open.pop() {
            match root.open_dir(&dir.path) {
                Ok(handle) => list(&handle, &dir, &above, interest, &mut survey, &mut open),
                // Gone or replaced since it was listed: whoever did that is reported by the paths it touched.
                Err(RootError::NoParent { .. } | RootError::Mounted { .. }) => {}
                Err(error) => survey.unreadable.push((dir, error.to_string())),
            }
        }
    }
    survey
}

/// A directory to be listed, and those it lies in.
struct Below {
    dir: Place,
    above: Arc<[FileId]>,
}

fn list(
    handle: &Dir,
    dir: &Place,
    above: &[FileId],
    interest: &dyn Interest,
    survey: &mut Survey,
    open: &mut Vec<Below>,
) {
    let (own, entries) = match handle.own_stat().and_then(|own| Ok((own.id, handle.list()?))) {
        Ok(found) => found,
        Err(error) => return survey.unreadable.push((dir.clone(), error.source.to_string())),
    };
    // Mounted below itself. No backend enters it either: what it finds here again would be new to the baseline.
    if above.contains(&own) {
        return;
    }
    let above: Arc<[FileId]> = [above, &[own]].concat().into();
    for Entry { name, file_type } in entries {
        let file_type = match file_type {
            Some(file_type) => Some(file_type),
            None => handle.stat(&name).ok().flatten().map(|stat| stat.file_type),
        };
        match file_type {
            Some(FileType::Directory) => {
                let below = dir.join(&name);
                if below.path.components().count() <= MAX_DEPTH && interest.enters(dir.root, &below.path) {
                    open.push(Below { dir: below, above: Arc::clone(&above) });
                }
            }
            Some(_) if interest.covers(dir.root, &dir.path, &name) => survey.found.push(dir.join(&name)),
            _ => {}
        }
    }
}
