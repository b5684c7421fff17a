//! The objects a backend has marked, by place and by identity.
//!
//! Promise: an id is found by (directory, name) and by key in constant time whatever the names are: the hashes are keyed,
//! so that nobody can choose names that collide. A [`NodeRef`] never means another node than the one it was taken of.
//! Limit: about a hundred bytes a directory; paths are put together when asked for.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use crate::event::RootId;
use crate::relpath::RelPath;

const NONE: u32 = u32::MAX;

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The slot is free.
    Free,
    /// A directory that is known and not marked yet.
    Pending,
    /// A directory that is marked, and listed or being listed.
    Covered,
    /// A directory that could not be read or marked.
    Unreadable,
    /// A covered path that is not a directory, marked.
    Entry,
}

/// A node of the table while it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeRef {
    id: u32,
    stamp: u32,
}

struct Node {
    /// Length of the key, the key, the name.
    bytes: Box<[u8]>,
    parent: u32,
    first: u32,
    next: u32,
    before: u32,
    stamp: u32,
    root: u16,
    depth: u16,
    kind: Kind,
    /// Further things to hear of about the children; see [`super::Extra`].
    extra: super::Extra,
}

fn pack(key: &[u8], name: &[u8]) -> Box<[u8]> {
    let mut bytes = Vec::with_capacity(1 + key.len() + name.len());
    bytes.push(u8::try_from(key.len()).expect("handles have at most 128 bytes and 16 of header"));
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(name);
    bytes.into_boxed_slice()
}

impl Node {
    fn key(&self) -> &[u8] {
        &self.bytes[1..=usize::from(self.bytes[0])]
    }

    fn name(&self) -> &[u8] {
        &self.bytes[usize::from(self.bytes[0]) + 1..]
    }
}

/// See the module.
pub(super) struct Table {
    nodes: Vec<Node>,
    free: Vec<u32>,
    by_name: HashTable<u32>,
    by_key: HashTable<u32>,
    hasher: RandomState,
    stamps: u32,
    covered: usize,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            by_name: HashTable::new(),
            by_key: HashTable::new(),
            hasher: RandomState::new(),
            stamps: 0,
            covered: 0,
        }
    }

    /// How many directories are covered.
    pub(super) fn covered(&self) -> usize {
        self.covered
    }

    /// Adds a root's directory.
    pub(super) fn add_root(&mut self, root: RootId) -> NodeRef {
        self.insert(NONE, root.0, 0, b"", Kind::Pending)
    }

    /// Adds the entry `name` of `parent`, which must not be there yet.
    pub(super) fn add(&mut self, parent: NodeRef, name: &[u8], kind: Kind) -> NodeRef {
        let (root, depth) = (self.node(parent).root, self.node(parent).depth.saturating_add(1));
        self.insert(parent.id, root, depth, name, kind)
    }

    fn insert(&mut self, parent: u32, root: u16, depth: u16, name: &[u8], kind: Kind) -> NodeRef {
        self.stamps = self.stamps.wrapping_add(1);
        let next = if parent == NONE { NONE } else { self.nodes[parent as usize].first };
        let node = Node {
            bytes: pack(b"", name),
            parent,
            first: NONE,
            next,
            before: NONE,
            stamp: self.stamps,
            root,
            depth,
            kind,
            extra: super::Extra::default(),
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 directories fit into memory")
            }
        };
        if parent != NONE {
            if next != NONE {
                self.nodes[next as usize].before = id;
            }
            self.nodes[parent as usize].first = id;
        }
        let Self { by_name, nodes, hasher, .. } = self;
        by_name.insert_unique(hasher.hash_one((parent, name)), id, |&id| name_hash(hasher, &nodes[id as usize]));
        if kind == Kind::Covered {
            self.covered += 1;
        }
        NodeRef { id, stamp: self.stamps }
    }

    /// Whether the node is still the one it was.
    pub(super) fn lives(&self, node: NodeRef) -> bool {
        self.nodes.get(node.id as usize).is_some_and(|found| found.stamp == node.stamp && found.kind != Kind::Free)
    }

    fn node(&self, node: NodeRef) -> &Node {
        debug_assert!(self.lives(node), "the caller has asked whether it lives");
        &self.nodes[node.id as usize]
    }

    fn reference(&self, id: u32) -> Option<NodeRef> {
        (id != NONE).then(|| NodeRef { id, stamp: self.nodes[id as usize].stamp })
    }

    pub(super) fn kind(&self, node: NodeRef) -> Kind {
        self.node(node).kind
    }

    pub(super) fn set_kind(&mut self, node: NodeRef, kind: Kind) {
        let old = std::mem::replace(&mut self.nodes[node.id as usize].kind, kind);
        self.covered = self.covered + usize::from(kind == Kind::Covered) - usize::from(old == Kind::Covered);
    }

    pub(super) fn extra(&self, node: NodeRef) -> super::Extra {
        self.node(node).extra
    }

    pub(super) fn set_extra(&mut self, node: NodeRef, extra: super::Extra) {
        self.nodes[node.id as usize].extra = extra;
    }

    pub(super) fn depth(&self, node: NodeRef) -> u16 {
        self.node(node).depth
    }

    pub(super) fn root(&self, node: NodeRef) -> RootId {
        RootId(self.node(node).root)
    }

    pub(super) fn name(&self, node: NodeRef) -> &[u8] {
        self.node(node).name()
    }

    pub(super) fn key(&self, node: NodeRef) -> &[u8] {
        self.node(node).key()
    }

    pub(super) fn parent(&self, node: NodeRef) -> Option<NodeRef> {
        self.reference(self.node(node).parent)
    }

    /// The path below its root.
    pub(super) fn path(&self, node: NodeRef) -> RelPath {
        let mut names = Vec::new();
        let mut at = self.node(node);
        while at.parent != NONE {
            names.push(at.name());
            at = &self.nodes[at.parent as usize];
        }
        names.reverse();
        RelPath::parse(&names.join(&b'/')).expect("names come from directory listings and events, checked when added")
    }

    /// The entry `name` of `parent`.
    pub(super) fn child(&self, parent: NodeRef, name: &[u8]) -> Option<NodeRef> {
        let hash = self.hasher.hash_one((parent.id, name));
        let matches = |&id: &u32| {
            let node = &self.nodes[id as usize];
            node.parent == parent.id && node.name() == name
        };
        self.by_name.find(hash, matches).and_then(|&id| self.reference(id))
    }

    /// Whether anything below the node is in the table.
    pub(super) fn has_children(&self, node: NodeRef) -> bool {
        self.node(node).first != NONE
    }

    /// Every entry of `parent`.
    pub(super) fn children(&self, parent: NodeRef) -> Vec<NodeRef> {
        let mut children = Vec::new();
        let mut at = self.node(parent).first;
        while let Some(child) = self.reference(at) {
            children.push(child);
            at = self.nodes[at as usize].next;
        }
        children
    }

    /// Every covered directory.
    pub(super) fn directories(&self) -> Vec<NodeRef> {
        let covered = self.nodes.iter().enumerate().filter(|(_, node)| node.kind == Kind::Covered);
        covered.map(|(id, node)| NodeRef { id: id as u32, stamp: node.stamp }).collect()
    }

    /// Puts the nodes with this key into `found`: several names of one object, or one directory mounted twice.
    pub(super) fn with_key(&self, key: &[u8], found: &mut Vec<NodeRef>) {
        found.clear();
        for &id in self.by_key.iter_hash(self.hasher.hash_one(key)) {
            let node = &self.nodes[id as usize];
            if node.key() == key {
                found.push(NodeRef { id, stamp: node.stamp });
            }
        }
    }

    /// Gives the node a key, an empty one for none. Returns the old one if no node has it any more.
    pub(super) fn set_key(&mut self, node: NodeRef, key: &[u8]) -> Option<Vec<u8>> {
        let old = self.node(node).key().to_vec();
        if old == key {
            return None;
        }
        self.forget_key(node.id);
        let found = &mut self.nodes[node.id as usize];
        found.bytes = pack(key, found.name());
        if !key.is_empty() {
            let Self { by_key, nodes, hasher, .. } = self;
            by_key.insert_unique(hasher.hash_one(key), node.id, |&id| hasher.hash_one(nodes[id as usize].key()));
        }
        self.unused(old)
    }

    fn unused(&self, key: Vec<u8>) -> Option<Vec<u8>> {
        let used = |&id: &u32| self.nodes[id as usize].key() == key;
        (!key.is_empty() && self.by_key.find(self.hasher.hash_one(&key[..]), used).is_none()).then_some(key)
    }

    fn forget_key(&mut self, id: u32) {
        let key = self.nodes[id as usize].key();
        if !key.is_empty()
            && let Ok(entry) = self.by_key.find_entry(self.hasher.hash_one(key), |&found| found == id)
        {
            entry.remove();
        }
    }

    /// Removes the node and all below it, and tells of each key that no node has any more.
    pub(super) fn remove(&mut self, node: NodeRef, mut unused: impl FnMut(&[u8])) {
        let Node { parent, next, before, .. } = *self.node(node);
        if before != NONE {
            self.nodes[before as usize].next = next;
        } else if parent != NONE {
            self.nodes[parent as usize].first = next;
        }
        if next != NONE {
            self.nodes[next as usize].before = before;
        }
        let mut doomed = vec![node.id];
        while let Some(id) = doomed.pop() {
            let mut child = self.nodes[id as usize].first;
            while child != NONE {
                doomed.push(child);
                child = self.nodes[child as usize].next;
            }
            self.forget_key(id);
            let hash = name_hash(&self.hasher, &self.nodes[id as usize]);
            if let Ok(entry) = self.by_name.find_entry(hash, |&found| found == id) {
                entry.remove();
            }
            let reference = NodeRef { id, stamp: self.nodes[id as usize].stamp };
            self.set_kind(reference, Kind::Free);
            let key = self.nodes[id as usize].key().to_vec();
            self.nodes[id as usize].bytes = pack(b"", b"");
            if let Some(key) = self.unused(key) {
                unused(&key);
            }
            self.free.push(id);
        }
    }
}

fn name_hash(hasher: &RandomState, node: &Node) -> u64 {
    hasher.hash_one((node.parent, node.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::parse(text.as_bytes()).expect("a valid path")
    }

    #[test]
    fn a_node_is_found_by_place_and_by_key() {
        let mut table = Table::new();
        let root = table.add_root(RootId(0));
        let a = table.add(root, b"a", Kind::Covered);
        let b = table.add(a, b"\xff", Kind::Entry);
        table.set_key(b, b"inode");
        assert_eq!(table.child(root, b"a"), Some(a));
        assert_eq!(table.child(a, b"a"), None);
        assert_eq!(table.path(b).as_bytes(), b"a/\xff");
        assert_eq!(table.path(root), RelPath::root());
        let mut found = Vec::new();
        table.with_key(b"inode", &mut found);
        assert_eq!(found, [b]);
        assert_eq!(table.covered(), 1);
    }

    #[test]
    fn a_removed_subtree_is_gone_and_its_slots_are_not_mistaken_for_it() {
        let mut table = Table::new();
        let root = table.add_root(RootId(0));
        let a = table.add(root, b"a", Kind::Covered);
        let below = table.add(a, b"b", Kind::Covered);
        table.set_key(a, b"one");
        table.set_key(below, b"two");
        let mut unused = Vec::new();
        table.remove(a, |key| unused.push(key.to_vec()));
        unused.sort();
        assert_eq!(unused, [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!((table.covered(), table.child(root, b"a"), table.children(root)), (0, None, vec![]));
        let again = table.add(root, b"a", Kind::Pending);
        assert!(table.lives(again) && !table.lives(a) && !table.lives(below));
    }

    #[test]
    fn a_key_of_two_names_is_unused_only_when_both_are_gone() {
        let mut table = Table::new();
        let root = table.add_root(RootId(0));
        let (a, b) = (table.add(root, b"a", Kind::Entry), table.add(root, b"b", Kind::Entry));
        assert_eq!(table.set_key(a, b"same"), None);
        assert_eq!(table.set_key(b, b"same"), None);
        let mut found = Vec::new();
        table.with_key(b"same", &mut found);
        assert_eq!(found.len(), 2);
        assert_eq!(table.set_key(a, b"other"), None);
        assert_eq!(table.set_key(b, b""), Some(b"same".to_vec()));
    }

    proptest::proptest! {
        #[test]
        fn the_table_agrees_with_a_map_of_paths(steps in proptest::collection::vec((0u8..3, 0u8..4, 0u8..4), 0..60)) {
            let mut table = Table::new();
            let root = table.add_root(RootId(0));
            let mut model = std::collections::BTreeSet::new();
            for (what, outer, inner) in steps {
                let (outer, inner) = (format!("d{outer}"), format!("e{inner}"));
                let found = table.child(root, outer.as_bytes());
                match (what, found) {
                    (0, None) => {
                        table.add(root, outer.as_bytes(), Kind::Covered);
                        model.insert(path(&outer));
                    }
                    (1, Some(dir)) if table.child(dir, inner.as_bytes()).is_none() => {
                        let node = table.add(dir, inner.as_bytes(), Kind::Covered);
                        table.set_key(node, format!("{outer}{inner}").as_bytes());
                        model.insert(path(&format!("{outer}/{inner}")));
                    }
                    (2, Some(dir)) => {
                        table.remove(dir, |_| {});
                        let dir = path(&outer);
                        model.retain(|path| !path.is_below(&dir));
                    }
                    _ => {}
                }
                let mut listed: Vec<_> = table.directories().into_iter().map(|node| table.path(node)).collect();
                listed.sort();
                proptest::prop_assert_eq!(&listed, &model.iter().cloned().collect::<Vec<_>>());
                proptest::prop_assert_eq!(table.covered(), model.len());
            }
        }
    }
}
