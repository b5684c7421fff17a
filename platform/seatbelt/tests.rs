//! Golden texts, and a reader of the language that knows nothing of the writer.

use proptest::prelude::*;

use super::*;

fn path(bytes: &[u8]) -> PlainPath {
    PlainPath::new(bytes).expect("a plain path")
}

fn text(profile: &Profile) -> String {
    String::from_utf8(profile.text()).expect("the paths of these tests are UTF-8")
}

#[test]
fn the_text_for_a_files_worker_is_the_golden_one() {
    assert_eq!(text(&files_worker(path(b"/Users/jo/pro \"ject\""))), include_str!("golden/files_worker.sb"));
}

#[test]
fn the_text_for_a_pure_computation_is_the_golden_one() {
    assert_eq!(text(&pure_computation()), include_str!("golden/pure_computation.sb"));
}

#[test]
fn the_text_for_a_command_is_the_golden_one() {
    let kept = vec![path(b"/Users/jo/project/.env"), path(b"/Users/jo/project/.git/hooks")];
    let told = Command { kept, unread: vec![path(b"/Users/jo/.ssh")], network: false };
    assert_eq!(text(&command(&told)), include_str!("golden/command.sb"));
}

#[test]
fn a_pure_computation_is_given_no_file_no_network_and_no_other_process() {
    let profile = pure_computation();
    assert_eq!(profile.default, Effect::Deny);
    for clause in profile.clauses.iter().filter(|clause| clause.effect == Effect::Allow) {
        for operation in &clause.operations {
            assert!(!operation.name().starts_with("file") && !operation.name().starts_with("network"), "{clause:?}");
        }
        assert!(clause.filter.is_some(), "{clause:?} is allowed everywhere");
    }
}

#[test]
fn a_files_worker_is_given_nothing_outside_its_folder_that_a_computation_is_not() {
    let folder = path(b"/a/b");
    let (worker, pure) = (files_worker(folder.clone()), pure_computation());
    assert_eq!(worker.clauses[..pure.clauses.len()], pure.clauses);
    let more = &worker.clauses[pure.clauses.len()..];
    assert!(more.iter().all(|clause| clause.effect == Effect::Allow));
    for clause in more {
        let below = Filter::Below(folder.clone());
        match clause.filter.as_ref().expect("only below the folder") {
            Filter::All(filters) => assert!(filters.contains(&below), "{clause:?}"),
            filter => assert_eq!(*filter, below, "{clause:?}"),
        }
    }
}

#[test]
fn what_a_command_is_kept_from_stands_behind_everything_it_is_given() {
    let told = Command { kept: vec![path(b"/a/b/c")], unread: vec![path(b"/s")], network: true };
    let profile = command(&told);
    assert!(profile.clauses.iter().all(|clause| clause.effect == Effect::Deny));
    let unlinked: Vec<_> = profile
        .clauses
        .iter()
        .filter(|clause| clause.operations == [Operation::FileWriteUnlink])
        .map(|clause| clause.filter.clone().expect("of one folder"))
        .collect();
    assert_eq!(unlinked, [Filter::Exactly(path(b"/a/b")), Filter::Exactly(path(b"/a"))]);
}

// ---- a reader -----------------------------------------------------------------------------------------------------

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
        ("target", [target]) if word(target) == "self" => Filter::Itself,
        ("require-all", all) => Filter::All(all.iter().map(filter).collect()),
        ("require-any", any) => Filter::Any(any.iter().map(filter).collect()),
        other => panic!("no filter: {other:?}"),
    }
}

fn read(text: &[u8]) -> Profile {
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

const KNOWN: [&str; 7] = [
    "hw.activecpu",
    "hw.logicalcpu",
    "hw.logicalcpu_max",
    "hw.ncpu",
    "hw.pagesize",
    "hw.pagesize_compat",
    "kern.usrstack64",
];

fn a_path() -> impl Strategy<Value = PlainPath> {
    // Bytes that mean something to the language, or to nobody, come often.
    let byte = prop_oneof![
        3 => proptest::sample::select(b"\"\\()\n\t ;#x0nu.-*\x7f\x80\xc3\xa9\xff".to_vec()),
        1 => 1_u8..=255,
    ];
    let component = proptest::collection::vec(byte, 1..12);
    proptest::collection::vec(component, 0..5)
        .prop_filter_map("plain", |components| PlainPath::new(&[b"/", &components.join(&b'/')[..]].concat()).ok())
}

fn a_filter() -> impl Strategy<Value = Filter> {
    let leaf = prop_oneof![
        4 => a_path().prop_map(Filter::Exactly),
        4 => a_path().prop_map(Filter::Below),
        1 => proptest::sample::select(ObjectType::ALL.to_vec()).prop_map(Filter::OfType),
        1 => Just(Filter::Itself),
        1 => proptest::sample::select(KNOWN.to_vec()).prop_map(Filter::Value),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Filter::All),
            proptest::collection::vec(inner, 0..4).prop_map(Filter::Any),
        ]
    })
}

fn a_profile() -> impl Strategy<Value = Profile> {
    let effect = || prop_oneof![Just(Effect::Allow), Just(Effect::Deny)];
    let operations = proptest::collection::vec(proptest::sample::select(Operation::ALL.to_vec()), 1..4);
    let clause = (effect(), operations, proptest::option::of(a_filter()))
        .prop_map(|(effect, operations, filter)| Clause { effect, operations, filter });
    (effect(), proptest::collection::vec(clause, 0..6)).prop_map(|(default, clauses)| Profile { default, clauses })
}

proptest! {
    #[test]
    fn a_text_is_read_back_as_exactly_the_profile_it_was_made_of(profile in a_profile()) {
        let text = profile.text();
        prop_assert!(!text.contains(&0));
        prop_assert_eq!(read(&text), profile);
    }

    #[test]
    fn a_worker_s_text_names_its_folder_and_no_other_path(folder in a_path()) {
        fn paths(filter: &Filter, found: &mut Vec<PlainPath>) {
            match filter {
                Filter::Exactly(path) | Filter::Below(path) => found.push(path.clone()),
                Filter::All(filters) | Filter::Any(filters) => filters.iter().for_each(|one| paths(one, found)),
                Filter::OfType(_) | Filter::Itself | Filter::Value(_) => {}
            }
        }
        let mut found = Vec::new();
        for clause in read(&files_worker(folder.clone()).text()).clauses {
            clause.filter.iter().for_each(|filter| paths(filter, &mut found));
        }
        prop_assert_eq!(found, vec![folder; 3]);
    }
}

#[test]
fn every_byte_of_a_path_comes_back_and_none_of_the_text_is_a_control_character() {
    let all: Vec<u8> = (1..=255).filter(|&byte| byte != b'/').collect();
    let folder = path(&[b"/", &all[..]].concat());
    let text = files_worker(folder.clone()).text();
    assert!(text.iter().all(|&byte| byte == b'\n' || (byte >= b' ' && byte != 0x7f)));
    assert_eq!(read(&text), files_worker(folder));
}
