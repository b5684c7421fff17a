//! Golden texts, what a text says to a reader that knows nothing of the writer, and what a profile means.

mod meaning;
mod reader;

use proptest::prelude::*;

use super::*;
use reader::read;

fn path(bytes: &[u8]) -> PlainPath {
    PlainPath::new(bytes).expect("a plain path")
}

fn text(profile: &Profile) -> String {
    String::from_utf8(profile.text()).expect("the paths of these tests are UTF-8")
}

#[test]
fn the_text_for_a_files_worker_is_the_golden_one() {
    assert_eq!(text(&files_worker(path(b"/Users/jo/pro \"ject\""))), include_str!("../golden/files_worker.sb"));
}

#[test]
fn the_text_for_a_pure_computation_is_the_golden_one() {
    assert_eq!(text(&pure_computation()), include_str!("../golden/pure_computation.sb"));
}

#[test]
fn the_text_for_a_command_is_the_golden_one() {
    let kept = vec![path(b"/Users/jo/project/.env"), path(b"/Users/jo/project/.git/hooks")];
    let told = Command { kept, unread: vec![path(b"/Users/jo/.ssh")], network: false };
    assert_eq!(text(&command(&told)), include_str!("../golden/command.sb"));
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

const KNOWN: [&str; 7] = [
    "hw.activecpu",
    "hw.logicalcpu",
    "hw.logicalcpu_max",
    "hw.ncpu",
    "hw.pagesize",
    "hw.pagesize_compat",
    "kern.usrstack64",
];

const COMMANDS: [&[u16]; 3] = [&[], &[0], &[80, 110]];
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
        1 => proptest::sample::select(COMMANDS.to_vec()).prop_map(Filter::Commands),
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
                Filter::OfType(_) | Filter::Itself | Filter::Value(_) | Filter::Commands(_) => {}
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
