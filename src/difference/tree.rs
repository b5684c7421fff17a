//! A document as a tree of keys, and where two of them differ.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use super::key;

/// A deeper document is not looked into.
pub(super) const MOST_DEPTH: usize = 64;

/// The most changes that are kept; the rest are counted.
const MOST_ENTRIES: usize = 200;

/// A document, or a part of one. Values are kept only to be compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    /// A value; the type is part of it, so that `1` and `"1"` differ.
    Value(&'static str, Vec<u8>),
    /// A list.
    List(Vec<Node>),
    /// Keys and what they name, as they come; a key may come again.
    Map(Vec<(String, Node)>),
}

/// What happened to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Added,
    Removed,
    Changed,
}

/// One change, fit to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) sign: Sign,
    /// The keys that lead to it, already fit to be shown.
    pub(super) path: String,
    /// What to know about it.
    pub(super) note: Option<String>,
    /// Whether it must be seen before others.
    pub(super) matters: bool,
}

/// All changes, or the first of them and the number of the others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) entries: Vec<Entry>,
    pub(super) more: usize,
}

impl Changes {
    pub(super) fn add(&mut self, entry: impl FnOnce() -> Entry) {
        if self.entries.len() < MOST_ENTRIES {
            self.entries.push(entry());
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.sign {
            Sign::Added => '+',
            Sign::Removed => '-',
            Sign::Changed => '~',
        };
        write!(formatter, "{sign} {}", self.path)?;
        self.note.as_ref().map_or(Ok(()), |note| write!(formatter, " ({note})"))
    }
}

/// Where the two differ, as deep as both have the same structure.
pub(super) fn changes(before: &Node, after: &Node) -> Changes {
    let mut walk = Walk { path: Vec::new(), changes: Changes::default() };
    walk.compare(before, after);
    walk.changes
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

struct Walk<'a> {
    path: Vec<Step<'a>>,
    changes: Changes,
}

impl<'a> Walk<'a> {
    fn compare(&mut self, before: &'a Node, after: &'a Node) {
        if before == after {
            return;
        }
        match (before, after) {
            (Node::Map(before), Node::Map(after)) => self.compare_maps(before, after),
            (Node::List(before), Node::List(after)) => self.compare_lists(before, after),
            _ => self.add(Sign::Changed, None),
        }
    }

    fn compare_maps(&mut self, before: &'a [(String, Node)], after: &'a [(String, Node)]) {
        let (before, after) = (ByKey::new(before), ByKey::new(after));
        for (key, after) in &after.order {
            self.path.push(Step::Key(key));
            match (before.get(key), after.as_slice()) {
                (None, after) => self.add(Sign::Added, size(after)),
                (Some([before]), [after]) => self.compare(before, after),
                // A key that comes more than once: which of them counts is up to whoever reads the file.
                (Some(before), after) if before != after => self.add(Sign::Changed, Some("repeated".to_owned())),
                (Some(_), _) => {}
            }
            self.path.pop();
        }
        for (key, before) in &before.order {
            if after.get(key).is_none() {
                self.path.push(Step::Key(key));
                self.add(Sign::Removed, size(before));
                self.path.pop();
            }
        }
    }

    fn compare_lists(&mut self, before: &'a [Node], after: &'a [Node]) {
        let head = before.iter().zip(after).take_while(|(one, other)| one == other).count();
        let (before, after) = (&before[head..], &after[head..]);
        let tail = before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
        let (before, after) = (&before[..before.len() - tail], &after[..after.len() - tail]);
        let both = before.len().min(after.len());
        for index in 0..before.len().max(after.len()) {
            self.path.push(Step::Index(head + index));
            match (before.get(index), after.get(index)) {
                (Some(before), Some(after)) if index < both => self.compare(before, after),
                (None, Some(added)) => self.add(Sign::Added, size(&[added])),
                (Some(removed), _) => self.add(Sign::Removed, size(&[removed])),
                (None, None) => {}
            }
            self.path.pop();
        }
    }

    fn add(&mut self, sign: Sign, note: Option<String>) {
        let path = &self.path;
        self.changes.add(|| Entry { sign, path: shown(path), note, matters: false });
    }
}

/// What each key names, in the order in which the keys first come.
struct ByKey<'a> {
    order: Vec<(&'a str, Vec<&'a Node>)>,
    index: HashMap<&'a str, usize>,
}

impl<'a> ByKey<'a> {
    fn new(map: &'a [(String, Node)]) -> Self {
        let mut by_key = Self { order: Vec::with_capacity(map.len()), index: HashMap::with_capacity(map.len()) };
        for (key, node) in map {
            let place = *by_key.index.entry(key).or_insert_with(|| {
                by_key.order.push((key, Vec::new()));
                by_key.order.len() - 1
            });
            by_key.order[place].1.push(node);
        }
        by_key
    }

    fn get(&self, key: &str) -> Option<&[&'a Node]> {
        self.index.get(key).map(|&place| self.order[place].1.as_slice())
    }
}

/// How much came or went with a key, if it is more than a value.
fn size(nodes: &[&Node]) -> Option<String> {
    let count = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    match nodes {
        [Node::Map(map)] => Some(count(map.len(), "key")),
        [Node::List(list)] => Some(count(list.len(), "item")),
        [Node::Value(..)] => None,
        _ => Some("repeated".to_owned()),
    }
}

fn shown(path: &[Step<'_>]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(&key::shown(name));
            }
            Step::Index(index) => write!(text, "[{index}]").expect("a String takes everything"),
        }
    }
    if text.is_empty() { "(the whole document)".to_owned() } else { key::path(&text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Node {
        Node::Value("text", text.into())
    }

    fn map(entries: &[(&str, Node)]) -> Node {
        Node::Map(entries.iter().map(|(key, node)| ((*key).to_owned(), node.clone())).collect())
    }

    fn told(before: &Node, after: &Node) -> Vec<String> {
        changes(before, after).entries.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn changes_are_told_where_the_structure_ends_to_be_the_same() {
        let before =
            map(&[("a", map(&[("b", Node::List(vec![value("1"), map(&[("c", value("2"))])]))])), ("d", value("3"))]);
        let after = map(&[
            ("a", map(&[("b", Node::List(vec![value("1"), map(&[("c", value("9"))])]))])),
            ("e", map(&[("f", value("3"))])),
        ]);
        assert_eq!(told(&before, &after), ["~ a.b[1].c", "+ e (1 key)", "- d"]);
        assert_eq!(told(&before, &value("x")), ["~ (the whole document)"]);
    }

    #[test]
    fn an_item_in_the_middle_of_a_list_is_the_only_change() {
        let list = |items: &[&str]| Node::List(items.iter().map(|item| value(item)).collect());
        assert_eq!(told(&list(&["a", "b", "c"]), &list(&["a", "x", "b", "c"])), ["+ [1]"]);
        assert_eq!(told(&list(&["a", "b", "c"]), &list(&["a", "c"])), ["- [1]"]);
        assert_eq!(told(&list(&["a", "b", "c"]), &list(&["a", "x", "y", "c"])), ["~ [1]", "+ [2]"]);
    }

    #[test]
    fn repeated_keys_are_not_overlooked() {
        let before = map(&[("a", value("1")), ("a", value("2"))]);
        let after = map(&[("a", value("9")), ("a", value("2"))]);
        assert_eq!(told(&before, &after), ["~ a (repeated)"]);
        assert_eq!(told(&before, &before), [] as [&str; 0]);
    }

    #[test]
    fn a_type_is_part_of_a_value() {
        let number = map(&[("a", Node::Value("number", b"1".to_vec()))]);
        assert_eq!(told(&number, &map(&[("a", value("1"))])), ["~ a"]);
    }

    #[test]
    fn very_many_changes_are_counted() {
        let wide = Node::Map((0..1000).map(|n| (format!("k{n}"), value("1"))).collect());
        let changes = changes(&map(&[]), &wide);
        assert_eq!((changes.entries.len(), changes.more), (MOST_ENTRIES, 1000 - MOST_ENTRIES));
    }
}
