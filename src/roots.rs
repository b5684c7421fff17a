//! The roots of one run: the tree the person named, and each folder outside it that holds its control files.
//!
//! A path in the tree is shown and stored relative to it, a path in another root by its absolute path. So one text names
//! one place, and the first byte tells which kind it is.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use platform::{Place, RelPath, Root, RootId};

use crate::text;

/// The open roots, by [`RootId`].
#[derive(Debug, Clone)]
pub struct Roots(Vec<Arc<Root>>);

impl Roots {
    /// Takes the tree first, then the others.
    pub fn new(roots: Vec<Arc<Root>>) -> Self {
        assert!(!roots.is_empty(), "there is always the tree");
        Self(roots)
    }

    /// The tree the person named.
    pub fn tree(&self) -> &Arc<Root> {
        &self.0[0]
    }

    /// The root with this id.
    pub fn get(&self, id: RootId) -> &Arc<Root> {
        &self.0[usize::from(id.0)]
    }

    /// All of them; the index is the [`RootId`].
    pub fn all(&self) -> &[Arc<Root>] {
        &self.0
    }

    /// The bytes that name the place: relative in the tree, absolute elsewhere.
    pub fn bytes(&self, place: &Place) -> Vec<u8> {
        if place.root == RootId::default() {
            return place.path.as_bytes().to_vec();
        }
        self.get(place.root).path().join(place.path.as_path()).as_os_str().as_bytes().to_vec()
    }

    /// The name of the place as people see it.
    pub fn shown(&self, place: &Place) -> String {
        text::escaped(&self.bytes(place))
    }

    /// The name of the place as the journal stores it.
    pub fn stored(&self, place: &Place) -> String {
        text::encode(&self.bytes(place))
    }

    /// The place a stored name means; `None` if it lies in no root of this run or is not a normal path.
    pub fn find(&self, stored: &str) -> Option<Place> {
        let bytes = text::decode(stored)?;
        if bytes.first() != Some(&b'/') {
            return RelPath::parse(&bytes).ok().map(Place::tree);
        }
        let path = Path::new(std::ffi::OsStr::from_bytes(&bytes));
        self.0.iter().enumerate().skip(1).find_map(|(index, root)| {
            let below = path.strip_prefix(root.path()).ok()?;
            let path = RelPath::parse(below.as_os_str().as_bytes()).ok()?;
            Some(Place { root: RootId(u16::try_from(index).ok()?), path })
        })
    }
}
