//! What a watch cannot see, hold or lock, for its report: a sentence each.

use platform::flags;

use crate::cli::args::WatchArgs;
use crate::text::escaped;
use crate::watch::promises::Promises;

/// What a watch cannot see or hold, for the report.
pub(super) fn of_watch(backend: &str, names_the_writer: bool, promises: &Promises) -> Vec<String> {
    let writer = if names_the_writer {
        "The process that wrote is named, not judged: a writer called likely is a conclusion, and whoever handed its open file to another is named for it."
    } else {
        "The process that wrote is not known, so your own edits are asked about like an agent's."
    };
    let reads = if promises.reads_are_held {
        "Reads of secrets are asked about, no others; network side effects are not seen."
    } else {
        "Reads and network side effects are not seen."
    };
    let mut limits = vec![
        "A change is live until it is decided, for up to the decision timeout.".to_owned(),
        writer.to_owned(),
        reads.to_owned(),
        "Any process of your user can stop the watch; the next start then restores the last accepted state.".to_owned(),
    ];
    limits.extend(promises.limits());
    if backend == "poll" {
        limits.push("Changes are found by polling; one that is undone between two rounds is not seen.".to_owned());
    } else {
        limits.push(
            "A store through a memory mapping, a mount and a change of file flags raise no event; the sweep finds them.".to_owned(),
        );
    }
    limits
}

/// What is not locked although it was asked for, and what is although nobody asked.
pub(super) fn of_lock(args: &WatchArgs, may_lock: bool, left: &[(String, String)]) -> Vec<String> {
    let not = (args.lock && !may_lock).then(|| format!("Nothing is locked: {}.", flags::HINDRANCE));
    let still = left
        .iter()
        .map(|(stored, reason)| format!("Left locked by an earlier run: {}: {reason}.", escaped(stored.as_bytes())));
    not.into_iter().chain(still).collect()
}
