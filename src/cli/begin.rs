//! How a command begins that may put something back: the lock, the stores, and what an interrupted run left.
//!
//! Promise: nothing below the state folder is written before the lock is held, and nothing in the tree before the journal
//! says so. Limit: whoever holds the lock is told by its file, which any process of the user can write.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use platform::holder::{Holder, Known};
use platform::lock::{Lock, LockError};
use platform::{Clock, Flags, Root};

use crate::digest::Digest;
use crate::journal::{Event, Journal, JournalError, Object, Replayed, SessionInfo, rfc3339};
use crate::roots::Roots;
use crate::state::StateFolder;
use crate::store::{Objects, Quarantine};
use crate::text::{encode, escaped};
use crate::watch::lock::JournalPen;
use crate::watch::lock::Pen as _;
use crate::watch::lock::left::{self, Left};
use crate::watch::recovery::{Recovered, Recovering};
use crate::watch::report::ReportPath;

use super::exit::{Refusal, RefusalCode, causes};
use super::ground::Ground;
use super::rules::{Asked, Assembled, assemble};

/// Bytes of a rejected file that are copied; a larger one is moved.
const MAX_COPIED: u64 = 64 << 20;

/// Opens the quarantine of a state folder.
pub fn quarantine(state: &StateFolder) -> Result<Quarantine, Refusal> {
    Quarantine::open(state.dir(), MAX_COPIED).map_err(|error| bad_store(&causes(&error)))
}

/// Opens the contents of a state folder.
pub fn objects(state: &StateFolder) -> Result<Objects, Refusal> {
    Objects::open(state.dir()).map_err(|error| bad_store(&causes(&error)))
}

/// The stored paths of the tree and of the folders outside it, for the first entry of a session.
pub fn stored_roots(roots: &Roots) -> (String, Vec<String>) {
    let stored = |root: &Root| encode(root.path().as_os_str().as_bytes());
    (stored(roots.tree()), roots.all()[1..].iter().map(|root| stored(root)).collect())
}

/// Writes the first entry of a session.
pub fn write_first(journal: &mut dyn Journal, clock: &dyn Clock, event: &Event) -> Result<(), Refusal> {
    let written = journal.append(&rfc3339(clock.wall()), event).and_then(|()| journal.commit());
    written.map_err(|error| bad_journal(&error))
}

/// Restores the last accepted state of the interrupted run `last`, by the rules it had ([`rules_of`]). Returns those, too.
///
/// Where hooks lie is told by git's own files, which may be among what was changed: if anything was put back, all is
/// compared once more by what they say then. What it had locked is unlocked before, as far as we may.
pub fn recover(
    ground: &mut Ground,
    last: &SessionInfo,
    replayed: &Replayed,
    journal: &mut dyn Journal,
    (objects, quarantine): (&Objects, &Quarantine),
    clock: &dyn Clock,
) -> Result<(Recovered, Assembled), Refusal> {
    let mut before: Vec<ReportPath> = Vec::new();
    let flags = ground.flags();
    let mut flagged = replayed.flagged.clone();
    let mut left = Left::default();
    let mut others = ground.others();
    loop {
        let earlier = rules_of(ground, last, objects)?;
        left.go_on(unlock(flags.as_deref(), &earlier.roots, &flagged, journal, clock)?);
        flagged.retain(|object, _| left.objects.contains(&object.id()));
        let recovering = Recovering {
            roots: &earlier.roots,
            rules: &earlier.rules,
            objects,
            quarantine,
            journal: &mut *journal,
            clock,
            replayed,
            max_file_bytes: last.options.max_file_bytes,
            left_locked: &left.objects,
            others: &mut others,
        };
        let mut recovered = recovering.run().map_err(|error| bad_journal(&error))?;
        let is_second = !before.is_empty();
        let mut restored = before.clone();
        restored.extend(recovered.recovery.restored.iter().filter(|path| !before.contains(path)).cloned());
        if is_second || restored.is_empty() {
            recovered.recovery.restored = restored;
            recovered.left = left;
            recovered.write(journal, clock).map_err(|error| bad_journal(&error))?;
            return Ok((recovered, earlier));
        }
        before = restored;
        ground.look_again()?;
    }
}

/// Takes off the flags that an earlier run left, as far as we may, and writes that down.
pub fn unlock(
    flags: Option<&dyn Flags>,
    roots: &Roots,
    flagged: &BTreeMap<Object, String>,
    journal: &mut dyn Journal,
    clock: &dyn Clock,
) -> Result<Left, Refusal> {
    let mut pen = JournalPen { journal, at: clock.wall() };
    let left = left::take_off(flags, roots, flagged, &mut pen);
    pen.now(&[]).map_err(|reason| bad_store(&reason))?;
    Ok(left)
}

/// The rules of an earlier session.
pub fn rules_of(ground: &Ground, session: &SessionInfo, objects: &Objects) -> Result<Assembled, Refusal> {
    let read = |digest: Digest| objects.read(digest, crate::rules::file::MAX_FILE_BYTES);
    let rule_file = session.rules.map(read).transpose().map_err(|error| bad_store(&causes(&error)))?;
    let asked = Asked { lock_deps: session.options.lock_deps, allow_only: session.options.allow_only.clone() };
    assemble(ground, rule_file.as_deref(), &asked)
}

/// What a recovery put back, for the person; `None` if nothing.
pub fn recovery_line(recovered: &Recovered, command: &str) -> Option<String> {
    let names: Vec<String> = recovered.recovery.restored.iter().map(|path| escaped(path.text().as_bytes())).collect();
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "{command}: the last run did not end properly; restored to what was accepted: {} (what was there is in quarantine)",
        names.join(", ")
    ))
}

/// Takes the lock of the root, or says who has it.
pub fn lock(state: &StateFolder, ground: &Ground, command: &str, clock: &dyn Clock) -> Result<Lock, Refusal> {
    let holder = Holder::this_process(command, &rfc3339(clock.wall()))
        .map_err(|error| bad_store(&format!("this process cannot be told: {error}")))?;
    Lock::try_acquire(state.dir(), b"lock", &holder).map_err(|error| match error {
        LockError::Held { holder } => active(&ground.shown(), &holder),
        error => Refusal::new(RefusalCode::Journal, causes(&error), "look at the lock file in the state folder"),
    })
}

fn active(tree: &str, holder: &Known) -> Refusal {
    let command = holder.command.as_deref().map_or_else(|| "another keep".to_owned(), |text| escaped(text.as_bytes()));
    let pid = holder.pid.map_or_else(|| "unknown pid".to_owned(), |pid| format!("pid {pid}"));
    let since =
        holder.since.as_deref().map_or_else(String::new, |text| format!(", since {}", escaped(text.as_bytes())));
    Refusal::new(
        RefusalCode::Active,
        format!("{command} runs in {tree} already ({pid}{since})"),
        "end that one first (Ctrl-C in its terminal), or work with it",
    )
}

/// The journal cannot be used.
pub fn bad_journal(error: &JournalError) -> Refusal {
    Refusal::new(
        RefusalCode::Journal,
        causes(error),
        "keep log --verify says where it breaks; move the state folder aside to start anew, which forgets the accepted state",
    )
}

/// Something else in the state folder cannot be used.
pub fn bad_store(reason: &str) -> Refusal {
    Refusal::new(
        RefusalCode::Journal,
        reason,
        "make room in the state folder, or choose another place with KEEP_STATE_DIR",
    )
}
