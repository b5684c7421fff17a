//! Which entries git's ignore files in the tree leave out.
//!
//! Promise: what gitignore(5) says of `.gitignore` files from the root down to the entry, the nearest first, and of
//! `.git/info/exclude`. Limit: files of the person's account and of repositories around the root are not looked at, and a
//! file over a mebibyte leaves nothing out.

use std::sync::Arc;

use platform::{Dir, RelPath, Root};

use crate::git::files::{Content, read_below, read_in};
use crate::git::ignore::IgnoreFile;

/// What such a file is called.
pub(super) const NAME: &[u8] = b".gitignore";
/// Where git keeps those of one repository.
const EXCLUDE: &[u8] = b".git/info/exclude";
/// Bytes such a file may have.
const MOST: u64 = 1 << 20;

/// The ignore files from a directory upwards.
pub(super) type Chain = Option<Arc<Level>>;

/// One of them.
pub(super) struct Level {
    above: Chain,
    /// How many names stand before what the file speaks of.
    depth: usize,
    file: IgnoreFile,
}

/// The chain above `base`, its own file not yet in it.
pub(super) fn above(root: &Root, base: &RelPath) -> Chain {
    let path = RelPath::parse(EXCLUDE).expect("a literal path");
    let mut chain = with(None, 0, read_below(root, &path, MOST).ok());
    if base.is_root() {
        return chain;
    }
    for (depth, dir) in std::iter::once(RelPath::root()).chain(base.ancestors()).enumerate() {
        chain = with(chain, depth, read_below(root, &dir.join(NAME), MOST).ok());
    }
    chain
}

/// The chain with the file of `dir`, which has so many names above what is in it.
pub(super) fn entered(chain: Chain, depth: usize, dir: &Dir) -> Chain {
    with(chain, depth, read_in(dir, NAME, MOST).ok())
}

fn with(chain: Chain, depth: usize, content: Option<Content>) -> Chain {
    match content {
        Some(Content::Bytes(bytes)) => Some(Arc::new(Level { above: chain, depth, file: IgnoreFile::parse(&bytes) })),
        _ => chain,
    }
}

/// Whether the entry with these names from the root on is left out. Whoever asks has not entered a directory that is.
pub(super) fn is_ignored(chain: &Chain, names: &[&[u8]], is_directory: bool) -> bool {
    let mut level = chain.as_ref();
    while let Some(at) = level {
        if let Some(verdict) = at.file.verdict(&names[at.depth..], is_directory) {
            return verdict;
        }
        level = at.above.as_ref();
    }
    false
}
