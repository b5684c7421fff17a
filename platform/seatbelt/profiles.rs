//! The profiles this program has a use for.
//!
//! Promise: [`files_worker`] and [`pure_computation`] deny by default and give back only what is named here.
//! Limit: a process keeps what it has open; who confines it closes the rest first. Nothing here keeps it from running code
//! that it wrote into its own memory. [`command`] allows by default, since programs of others need what nobody can list:
//! it guards paths against changes and can close the network, and is no prison.

use super::{Clause, Effect, Filter, ObjectType, Operation, PlainPath, Profile};

/// What `(deny default)` leaves open.
/// Source: WebKit's profiles, which close these by name after it.
const STRAGGLERS: [Operation; 4] =
    [Operation::ProcessInfo, Operation::Nvram, Operation::IoKitGetProperties, Operation::FileMapExecutable];

/// Every change of a file or of its name but the making of one.
const CHANGES: [Operation; 9] = [
    Operation::FileWriteAcl,
    Operation::FileWriteData,
    Operation::FileWriteFlags,
    Operation::FileWriteMode,
    Operation::FileWriteOwner,
    Operation::FileWriteSetId,
    Operation::FileWriteTimes,
    Operation::FileWriteUnlink,
    Operation::FileWriteXattr,
];

/// Every way to look at a file; and a clone, which reads without being called so.
const LOOKS: [Operation; 5] = [
    Operation::FileRead,
    Operation::FileReadData,
    Operation::FileReadMetadata,
    Operation::FileReadXattr,
    Operation::FileClone,
];

/// Commands of fcntl(2) that change a file through a descriptor that is open for reading only.
const CHANGES_BY_COMMAND: &[u16] = &[80, 110];

/// Values that the C library and the Rust runtime ask the kernel for after the start: how many processors there are, and
/// what a page is.
const VALUES: [&str; 7] = [
    "hw.activecpu",
    "hw.logicalcpu",
    "hw.logicalcpu_max",
    "hw.ncpu",
    "hw.pagesize",
    "hw.pagesize_compat",
    "kern.usrstack64",
];

/// For the process that works on the files below one folder: all of these it may read, write, move and remove, and nothing
/// else; it makes files, directories and symlinks, and no devices, FIFOs and sockets.
pub fn files_worker(folder: PlainPath) -> Profile {
    let below = Filter::Below(folder);
    // Where a volume cannot rename without replacing, a second name is made and the first one removed.
    let change = [&CHANGES[..], &[Operation::FileLink, Operation::FileClone]].concat();
    let types = Filter::Any(ObjectType::ALL.map(Filter::OfType).into());
    let mut profile = pure_computation();
    profile.clauses.extend([
        clause(Effect::Allow, &[Operation::FileRead], Some(below.clone())),
        clause(Effect::Allow, &change, Some(below.clone())),
        clause(Effect::Allow, &[Operation::FileWriteCreate], Some(Filter::All(vec![below, types]))),
    ]);
    profile
}

/// For a process that computes and answers over what it has open: no files, no network, no other process.
pub fn pure_computation() -> Profile {
    let values = Filter::Any(VALUES.map(Filter::Value).into());
    let clauses = vec![
        clause(Effect::Deny, &STRAGGLERS, None),
        // abort(3) is a signal to oneself.
        clause(Effect::Allow, &[Operation::Signal, Operation::ProcessInfo], Some(Filter::Itself)),
        clause(Effect::Allow, &[Operation::SysctlRead], Some(values)),
    ];
    Profile { default: Effect::Deny, clauses }
}

/// What a command of somebody else's is kept from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// Files and folders it may not change, their names included.
    pub kept: Vec<PlainPath>,
    /// Paths that it may not read either.
    pub unread: Vec<PlainPath>,
    /// Whether it has a network.
    pub network: bool,
}

/// For a command that may do everything else. Every process it starts is held by the same profile.
pub fn command(command: &Command) -> Profile {
    let below = |path: &PlainPath| Filter::Below(path.clone());
    let mut clauses = vec![clause(Effect::Deny, &[Operation::SystemFcntl], Some(Filter::Commands(CHANGES_BY_COMMAND)))];
    if !command.network {
        clauses.push(clause(Effect::Deny, &[Operation::Network], None));
    }
    for path in &command.kept {
        // A hard link is a second name, under which no clause would fit it.
        let more = [Operation::FileWrite, Operation::FileWriteCreate, Operation::FileLink];
        clauses.push(clause(Effect::Deny, &[&CHANGES[..], &more].concat(), Some(below(path))));
        // Moving a folder above takes the path along; its own entry can then be made anew.
        for above in above(path) {
            clauses.push(clause(Effect::Deny, &[Operation::FileWriteUnlink], Some(Filter::Exactly(above))));
        }
    }
    for path in &command.unread {
        clauses.push(clause(Effect::Deny, &LOOKS, Some(below(path))));
    }
    Profile { default: Effect::Allow, clauses }
}

/// The folders above a path, without `/`, the nearest first.
fn above(path: &PlainPath) -> Vec<PlainPath> {
    let bytes = path.as_bytes();
    let ends = (1..bytes.len()).rev().filter(|&at| bytes[at] == b'/');
    ends.map(|at| PlainPath::new(&bytes[..at]).expect("a plain path, cut at a slash that is not its first")).collect()
}

fn clause(effect: Effect, operations: &[Operation], filter: Option<Filter>) -> Clause {
    Clause { effect, operations: operations.to_vec(), filter }
}
