//! What a profile means, by a model of the kernel as its documentation by others has it: the last clause that names the
//! operation and fits, else the last one that names its family and fits, else the default.

use proptest::prelude::*;

use super::super::*;
use super::{a_path, path};

/// What a process asks for.
#[derive(Debug, Clone, Copy)]
struct Wish<'w> {
    operation: Operation,
    /// On what, if it has a path.
    at: Option<&'w [u8]>,
    /// Its type; `None` is one that has no name here: a device, a FIFO, a socket.
    of: Option<ObjectType>,
    /// Whether it is about the process itself.
    itself: bool,
}

fn wish(operation: Operation, at: &[u8]) -> Wish<'_> {
    Wish { operation, at: Some(at), of: Some(ObjectType::RegularFile), itself: false }
}

fn fits(filter: &Filter, wish: &Wish<'_>) -> bool {
    match filter {
        Filter::Exactly(path) => wish.at == Some(path.as_bytes()),
        Filter::Below(path) => wish.at.is_some_and(|at| {
            let rest = at.strip_prefix(path.as_bytes());
            path.as_bytes() == b"/" || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        }),
        Filter::OfType(object) => wish.of == Some(*object),
        Filter::Itself => wish.itself,
        // No wish of these tests is about one.
        Filter::Value(_) | Filter::Commands(_) => false,
        Filter::All(filters) => filters.iter().all(|one| fits(one, wish)),
        Filter::Any(filters) => filters.iter().any(|one| fits(one, wish)),
    }
}

fn decide(profile: &Profile, wish: &Wish<'_>) -> Effect {
    let last = |names: &dyn Fn(Operation) -> bool| {
        let named = profile.clauses.iter().rev().filter(|clause| clause.operations.iter().any(|&one| names(one)));
        named
            .filter(|clause| clause.filter.as_ref().is_none_or(|filter| fits(filter, wish)))
            .map(|one| one.effect)
            .next()
    };
    let is_family = |one: Operation| {
        one != wish.operation
            && one.name().strip_suffix('*').is_some_and(|start| wish.operation.name().starts_with(start))
    };
    last(&|one| one == wish.operation).or_else(|| last(&is_family)).unwrap_or(profile.default)
}

fn allows(profile: &Profile, wish: &Wish<'_>) -> bool {
    decide(profile, wish) == Effect::Allow
}

/// Operations on something that has a path.
fn on_files() -> impl Iterator<Item = Operation> {
    Operation::ALL.into_iter().filter(|operation| operation.name().starts_with("file-"))
}

/// Operations that change something.
fn changes() -> impl Iterator<Item = Operation> {
    on_files().filter(|operation| operation.name().starts_with("file-write") || *operation == Operation::FileLink)
}

fn is_below(at: &PlainPath, folder: &PlainPath) -> bool {
    let components = |path: &PlainPath| -> Vec<Vec<u8>> {
        path.as_bytes().split(|&byte| byte == b'/').filter(|part| !part.is_empty()).map(<[u8]>::to_vec).collect()
    };
    components(at).starts_with(&components(folder))
}

/// A path, and one that is it, lies in it, above it, beside it, or anywhere.
fn two_paths() -> impl Strategy<Value = (PlainPath, PlainPath)> {
    (a_path(), a_path(), 0..6_u8).prop_map(|(one, other, how)| {
        let bytes = one.as_bytes();
        let trimmed = if bytes == b"/" { &b""[..] } else { bytes };
        let above = trimmed.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at.max(1));
        let near = match how {
            0 => bytes.to_vec(),
            1 => [trimmed, other.as_bytes()].concat(),
            2 => [trimmed, b"/x"].concat(),
            3 => [bytes, b"x"].concat(),
            4 => b"/".iter().chain(&trimmed[..above]).skip(1).copied().collect(),
            _ => other.as_bytes().to_vec(),
        };
        let near = PlainPath::new(&near).unwrap_or(other);
        (one, near)
    })
}

#[test]
fn a_neighbour_whose_name_begins_like_the_folder_is_outside() {
    let profile = files_worker(path(b"/a/b"));
    for at in [&b"/a/bc"[..], b"/a/b.swp/x", b"/a", b"/", b"/a/B", b"/b"] {
        for operation in on_files() {
            assert!(!allows(&profile, &wish(operation, at)), "{operation:?} {}", at.escape_ascii());
        }
    }
    assert!(allows(&profile, &wish(Operation::FileReadData, b"/a/b")));
    assert!(allows(&profile, &wish(Operation::FileWriteUnlink, b"/a/b/c")));
}

#[test]
fn a_worker_makes_files_directories_and_symlinks_below_its_folder_and_nothing_else_anywhere() {
    let profile = files_worker(path(b"/a"));
    let make = |of, at| allows(&profile, &Wish { of, ..wish(Operation::FileWriteCreate, at) });
    for object in ObjectType::ALL {
        assert!(make(Some(object), b"/a/x"), "{object:?}");
        assert!(!make(Some(object), b"/b"), "{object:?}");
    }
    assert!(!make(None, b"/a/x"), "a FIFO, a socket or a device");
}

#[test]
fn a_worker_and_a_computation_reach_neither_network_nor_program_nor_another_process() {
    for profile in [files_worker(path(b"/a")), files_worker(path(b"/")), pure_computation()] {
        for operation in [
            Operation::Network,
            Operation::ProcessExec,
            Operation::ProcessFork,
            Operation::ProcessInfo,
            Operation::Signal,
            Operation::Nvram,
            Operation::IoKitGetProperties,
            Operation::FileMapExecutable,
        ] {
            let wish = Wish { operation, at: None, of: None, itself: false };
            assert!(!allows(&profile, &wish), "{operation:?}");
        }
        let abort = Wish { operation: Operation::Signal, at: None, of: None, itself: true };
        assert!(allows(&profile, &abort));
    }
}

proptest! {
    #[test]
    fn a_worker_does_below_its_folder_what_files_need_and_nothing_beside_it((folder, at) in two_paths()) {
        let profile = files_worker(folder.clone());
        for operation in on_files().filter(|operation| *operation != Operation::FileMapExecutable) {
            // The family itself is asked for by nobody.
            if operation == Operation::FileWrite {
                continue;
            }
            let wish = wish(operation, at.as_bytes());
            prop_assert_eq!(allows(&profile, &wish), is_below(&at, &folder), "{:?}", operation);
        }
        prop_assert!(!allows(&profile, &wish(Operation::FileMapExecutable, at.as_bytes())));
    }

    #[test]
    fn a_computation_reaches_no_path(at in a_path()) {
        for operation in on_files() {
            prop_assert!(!allows(&pure_computation(), &wish(operation, at.as_bytes())), "{:?}", operation);
        }
    }

    #[test]
    fn a_command_changes_nothing_kept_moves_no_folder_above_it_and_may_do_all_else(
        (first, at) in two_paths(), second in a_path(), unread in a_path()
    ) {
        let kept = [first, second];
        let told = Command { kept: kept.to_vec(), unread: vec![unread.clone()], network: true };
        let profile = command(&told);
        let is_kept = kept.iter().any(|path| is_below(&at, path));
        let is_above = at.as_bytes() != b"/" && kept.iter().any(|path| is_below(path, &at) && *path != at);
        for operation in changes() {
            let refused = is_kept || (is_above && operation == Operation::FileWriteUnlink);
            prop_assert_eq!(allows(&profile, &wish(operation, at.as_bytes())), !refused, "{:?}", operation);
        }
        for operation in [Operation::FileRead, Operation::FileReadData, Operation::FileReadMetadata] {
            prop_assert_eq!(allows(&profile, &wish(operation, at.as_bytes())), !is_below(&at, &unread), "{:?}", operation);
        }
        let network = Wish { operation: Operation::Network, at: None, of: None, itself: false };
        prop_assert!(allows(&profile, &network));
        let without = command(&Command { network: false, ..told });
        prop_assert!(!allows(&without, &network));
    }
}
