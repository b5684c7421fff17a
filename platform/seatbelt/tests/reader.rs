//! Reads the text of a profile as Scheme does, and knows nothing of what wrote it. Whatever it does not know is a failure.

use super::{COMMANDS, KNOWN, path};
use crate::seatbelt::{Clause, Effect, Filter, ObjectType, Operation, Profile};

#[derive(Debug, PartialEq)]
enum Node {
    Word(Vec<u8>),
    Text(Vec<u8>),
    List(Vec<Node>),
}

/// Reads lists, words and strings as Scheme does, and anything else is a failure.
struct Reader<'t>(&'t [u8]);

impl Reader<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn nodes(&mut self, depth: usize) -> Vec<Node> {
        let mut nodes = Vec::new();
        while let Some(byte) = self.next() {
            match byte {
                b' ' | b'\n' => {}
                b'(' => nodes.push(Node::List(self.nodes(depth + 1))),
                b')' => {
                    assert!(depth > 0, "a list ends that did not begin");
                    return nodes;
                }
                b'"' => nodes.push(Node::Text(self.string())),
                _ => {
                    let mut word = vec![byte];
                    while let Some(&more) = self.0.first().filter(|byte| !b" \n()\"".contains(byte)) {
                        word.push(more);
                        self.next();
                    }
                    assert!(word.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-*".contains(&byte)), "{word:?}");
                    nodes.push(Node::Word(word));
                }
            }
        }
        assert_eq!(depth, 0, "a list does not end");
        nodes
    }

    fn string(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            match self.next().expect("a string ends") {
                b'"' => return bytes,
                b'\\' => match self.next().expect("something is escaped") {
                    b'x' => {
                        let digits = [self.next().expect("a digit"), self.next().expect("a digit")];
                        let digits = std::str::from_utf8(&digits).expect("digits");
                        bytes.push(u8::from_str_radix(digits, 16).expect("hexadecimal"));
                    }
                    other => bytes.push(other),
                },
                byte => bytes.push(byte),
            }
        }
    }
}

fn word(node: &Node) -> &str {
    match node {
        Node::Word(word) => std::str::from_utf8(word).expect("words are ASCII"),
        other => panic!("no word: {other:?}"),
    }
}

fn list(node: &Node) -> (&str, &[Node]) {
    match node {
        Node::List(nodes) => {
            let (first, rest) = nodes.split_first().expect("a list of nothing");
            (word(first), rest)
        }
        other => panic!("no list: {other:?}"),
    }
}

fn effect(name: &str) -> Effect {
    match name {
        "allow" => Effect::Allow,
        "deny" => Effect::Deny,
        other => panic!("no effect: {other}"),
    }
}

fn filter(node: &Node) -> Filter {
    let (name, rest) = list(node);
    match (name, rest) {
        ("literal", [Node::Text(bytes)]) => Filter::Exactly(path(bytes)),
        ("subpath", [Node::Text(bytes)]) => Filter::Below(path(bytes)),
        ("sysctl-name", [Node::Text(bytes)]) => {
            Filter::Value(KNOWN.iter().find(|known| known.as_bytes() == bytes).expect("a known value"))
        }
        ("vnode-type", [object]) => Filter::OfType(
            ObjectType::ALL.into_iter().find(|known| known.name() == word(object)).expect("a known type"),
        ),
        ("fcntl-command", numbers) => {
            let numbers: Vec<u16> = numbers.iter().map(|node| word(node).parse().expect("a number")).collect();
            Filter::Commands(COMMANDS.into_iter().find(|known| **known == numbers[..]).expect("known numbers"))
        }
        ("target", [target]) if word(target) == "self" => Filter::Itself,
        ("require-all", all) => Filter::All(all.iter().map(filter).collect()),
        ("require-any", any) => Filter::Any(any.iter().map(filter).collect()),
        other => panic!("no filter: {other:?}"),
    }
}

/// The profile that a text says.
pub(super) fn read(text: &[u8]) -> Profile {
    let nodes = Reader(text).nodes(0);
    let [version, default, clauses @ ..] = &nodes[..] else { panic!("too short") };
    assert_eq!(list(version), ("version", &[Node::Word(b"1".to_vec())][..]));
    let (name, of) = list(default);
    assert_eq!(of, [Node::Word(b"default".to_vec())]);
    let clauses = clauses.iter().map(|node| {
        let (name, rest) = list(node);
        let words = rest.iter().take_while(|node| matches!(node, Node::Word(_))).map(word);
        let operations: Vec<_> = words
            .map(|name| Operation::ALL.into_iter().find(|known| known.name() == name).expect("a known operation"))
            .collect();
        let filter = match &rest[operations.len()..] {
            [] => None,
            [one] => Some(filter(one)),
            more => panic!("more than one filter: {more:?}"),
        };
        Clause { effect: effect(name), operations, filter }
    });
    Profile { default: effect(name), clauses: clauses.collect() }
}
