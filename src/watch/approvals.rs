//! What the person has allowed at the gate's question, and the watch therefore need not ask about.
//!
//! The gate writes it down here before it lets a change be done, and takes it back if the change is not done.
//!
//! Promise: a change counts as allowed only if the path is now exactly as was said: absent, or a regular file of that very
//! content, with the bits, owner and attributes it had when it was accepted, or those of a new file; and only once, and
//! for a short time after it was done. Anything else is asked about.
//! Limit: only a gate in this process can write here. That is on purpose: what could be told from outside would be an
//! answer that is not given at the terminal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::{Moment, Place, RelPath};

use crate::baseline::{Content, Snapshot};
use crate::digest::Digest;
use crate::gate::files::is_unfinished;

/// How long after it was done a change may be seen: the watch is told to look at once, but may be busy.
const SEEN_WITHIN: Duration = Duration::from_secs(10);

/// What is allowed; each handle is for the same list.
#[derive(Debug, Clone, Default)]
pub struct Approvals(Arc<Mutex<Vec<Approval>>>);

/// One path of a change that was allowed.
#[derive(Debug)]
struct Approval {
    /// The gate's number for the change.
    change: u64,
    place: Place,
    /// The digest of its content; `None` if it will be absent.
    content: Option<Digest>,
    /// `None` until it is done.
    until: Option<Moment>,
}

/// What a file that is made here has.
#[derive(Debug, Clone, Copy)]
pub struct NewFile {
    /// The permission bits that the umask leaves.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
}

impl Approvals {
    /// A change is about to be done that makes these paths so.
    pub fn add(&self, change: u64, coming: impl IntoIterator<Item = (Place, Option<Digest>)>) {
        let coming = coming.into_iter().map(|(place, content)| Approval { change, place, content, until: None });
        self.list().extend(coming);
    }

    /// The change was done. Returns the paths that are to be looked at.
    pub fn was_done(&self, change: u64, now: Moment) -> Vec<Place> {
        let mut list = self.list();
        list.retain(|approval| approval.until.is_none_or(|until| until > now));
        let done = list.iter_mut().filter(|approval| approval.change == change);
        done.map(|approval| {
            approval.until = Some(now + SEEN_WITHIN);
            approval.place.clone()
        })
        .collect()
    }

    /// The change was not done.
    pub fn take_back(&self, change: u64) {
        self.list().retain(|approval| approval.change != change);
    }

    /// No change is under way any more; what was done may still be seen.
    pub fn nothing_is_coming(&self) {
        self.list().retain(|approval| approval.until.is_some());
    }

    /// Whether a change of this path is allowed.
    pub fn has(&self, place: &Place) -> bool {
        self.list().iter().any(|approval| approval.place == *place)
    }

    /// Whether a change that is being done may have a file of this name for a moment.
    pub fn may_pass_by(&self, place: &Place) -> bool {
        let beside = |approval: &Approval| {
            let is_open = approval.until.is_none() && approval.place.root == place.root;
            is_open && approval.place.path.parent() == place.path.parent()
        };
        place.path.name().is_some_and(is_unfinished) && self.list().iter().any(beside)
    }

    /// Whether the path, which was accepted as `accepted`, may be as it is now. A yes counts once.
    pub fn take(&self, place: &Place, accepted: &Snapshot, now: &Snapshot, new: NewFile, at: Moment) -> bool {
        let mut list = self.list();
        list.retain(|approval| approval.until.is_none_or(|until| until > at));
        let is_as_said = |approval: &Approval| match (&now.content, approval.content) {
            (Content::Absent, None) => true,
            (Content::Regular { digest, .. }, Some(content)) => *digest == content && is_usual(accepted, now, new),
            _ => false,
        };
        let found = list.iter().rposition(|approval| approval.place == *place && is_as_said(approval));
        let Some(found) = found else { return false };
        // What was allowed before it has come and gone.
        let mut index = 0;
        list.retain(|approval| {
            index += 1;
            approval.place != *place || index > found + 1
        });
        true
    }

    fn list(&self) -> MutexGuard<'_, Vec<Approval>> {
        // Every state of it is sound: nobody panics half-way through a change of it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether nothing but the content of a file is another than was accepted, or it is a new file like any other.
fn is_usual(accepted: &Snapshot, now: &Snapshot, new: NewFile) -> bool {
    match accepted.content {
        Content::Regular { .. } => accepted.same_attributes(now),
        Content::Absent => {
            let is_plain = now.xattrs.is_empty() && !now.immutable && !now.append_only;
            is_plain && now.uid == new.uid && now.mode & !new.mode == 0
        }
        _ => false,
    }
}

/// The place of one of the gate's paths, which are those of the tree.
pub fn place_of(path: &str) -> Option<Place> {
    RelPath::parse(path.as_bytes()).ok().map(Place::tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: NewFile = NewFile { mode: 0o644, uid: 7 };

    fn env() -> Place {
        place_of(".env").expect("a path")
    }

    fn file(content: &str, mode: u32) -> Snapshot {
        let content = Content::Regular { digest: Digest::of(content.as_bytes()), size: content.len() as u64 };
        Snapshot { content, mode, uid: 7, ..Snapshot::absent() }
    }

    fn second(second: u64) -> Moment {
        Moment::default() + Duration::from_secs(second)
    }

    fn content(text: &str) -> Option<Digest> {
        Some(Digest::of(text.as_bytes()))
    }

    fn takes(approvals: &Approvals, accepted: &Snapshot, now: &Snapshot) -> bool {
        approvals.take(&env(), accepted, now, NEW, second(0))
    }

    #[test]
    fn what_was_said_is_allowed_once() {
        let approvals = Approvals::default();
        let (before, after) = (file("old", 0o600), file("new", 0o600));
        assert!(!takes(&approvals, &before, &after), "nobody has said anything");
        approvals.add(1, [(env(), content("new"))]);
        assert!(approvals.has(&env()) && !approvals.has(&place_of(".env.local").expect("a path")));
        assert!(takes(&approvals, &before, &after));
        assert!(!takes(&approvals, &before, &after), "a second time");
        assert!(!approvals.has(&env()));
    }

    #[test]
    fn nothing_else_at_the_path_is_allowed() {
        let approvals = Approvals::default();
        approvals.add(1, [(env(), content("new"))]);
        let before = file("old", 0o600);
        let link = Snapshot { content: Content::Symlink { text: b"new".to_vec() }, ..file("", 0o600) };
        let attributes = [(b"user.a".to_vec(), Vec::new())].into();
        for (what, now) in [
            ("other content", file("other", 0o600)),
            ("other bits", file("new", 0o644)),
            ("another owner", Snapshot { uid: 8, ..file("new", 0o600) }),
            ("an attribute", Snapshot { xattrs: attributes, ..file("new", 0o600) }),
            ("a flag", Snapshot { immutable: true, ..file("new", 0o600) }),
            ("a link", link),
            ("nothing", Snapshot::absent()),
        ] {
            assert!(!takes(&approvals, &before, &now), "{what}");
        }
        assert!(takes(&approvals, &before, &file("new", 0o600)), "what is not allowed uses nothing up");
    }

    #[test]
    fn a_new_file_has_the_bits_of_a_new_file_or_fewer() {
        for (mode, allowed) in [(0o644, true), (0o600, true), (0o755, false), (0o664, false), (0o4644, false)] {
            let approvals = Approvals::default();
            approvals.add(1, [(env(), content("new"))]);
            assert_eq!(takes(&approvals, &Snapshot::absent(), &file("new", mode)), allowed, "{mode:o}");
        }
        let approvals = Approvals::default();
        approvals.add(1, [(env(), content("new"))]);
        assert!(!takes(&approvals, &Snapshot::absent(), &Snapshot { uid: 0, ..file("new", 0o644) }));
    }

    #[test]
    fn a_path_that_is_to_go_may_be_gone_and_nothing_else() {
        let approvals = Approvals::default();
        approvals.add(1, [(env(), None)]);
        assert!(!takes(&approvals, &file("old", 0o600), &file("new", 0o600)));
        assert!(takes(&approvals, &file("old", 0o600), &Snapshot::absent()));
    }

    #[test]
    fn what_was_not_done_is_taken_back() {
        let approvals = Approvals::default();
        approvals.add(1, [(env(), content("one"))]);
        approvals.add(2, [(env(), content("two"))]);
        approvals.take_back(2);
        assert!(!takes(&approvals, &file("old", 0o600), &file("two", 0o600)));
        assert!(takes(&approvals, &file("old", 0o600), &file("one", 0o600)));
    }

    #[test]
    fn it_is_over_some_seconds_after_it_was_done_and_not_before_that() {
        let (before, after) = (file("old", 0o600), file("new", 0o600));
        for (seen, allowed) in [(1009, true), (1010, false)] {
            let approvals = Approvals::default();
            approvals.add(1, [(env(), content("new"))]);
            assert_eq!(approvals.was_done(1, second(1000)), [env()]);
            assert_eq!(approvals.take(&env(), &before, &after, NEW, second(seen)), allowed, "{seen}");
        }
    }

    #[test]
    fn a_gate_that_ends_leaves_only_what_it_has_done() {
        let approvals = Approvals::default();
        approvals.add(1, [(env(), content("done"))]);
        approvals.was_done(1, second(0));
        approvals.add(2, [(env(), content("never begun"))]);
        approvals.nothing_is_coming();
        assert!(!takes(&approvals, &file("old", 0o600), &file("never begun", 0o600)));
        assert!(takes(&approvals, &file("old", 0o600), &file("done", 0o600)));
    }

    #[test]
    fn the_later_of_two_changes_ends_the_earlier_one() {
        let approvals = Approvals::default();
        approvals.add(1, [(env(), content("one"))]);
        approvals.add(2, [(env(), content("two"))]);
        assert!(takes(&approvals, &file("old", 0o600), &file("two", 0o600)));
        assert!(!takes(&approvals, &file("two", 0o600), &file("one", 0o600)), "that one came before");
    }

    #[test]
    fn only_the_name_of_a_change_in_progress_beside_it_may_pass_by() {
        let approvals = Approvals::default();
        approvals.add(1, [(place_of("a/.env").expect("a path"), content("new"))]);
        let may = |path: &str| approvals.may_pass_by(&place_of(path).expect("a path"));
        assert!(may("a/.keep-write-0123456789ab"));
        assert!(!may("b/.keep-write-0123456789ab") && !may("a/.keep-write-x") && !may("a/.env"));
        approvals.was_done(1, second(1));
        assert!(!may("a/.keep-write-0123456789ab"));
    }
}
