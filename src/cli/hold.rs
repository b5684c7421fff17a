//! `--hold`: what is needed for it, and what is said where it cannot be had.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use platform::guardian::Guardian;
use platform::openings::trial::{self, Tried};
use platform::openings::{Identify, Openings, Relief};
use platform::{Answered, Dir, Doorkeeper, HeldId, Marker, Verdict, Witness};

use crate::baseline::Index;
use crate::roots::Roots;
use crate::rules::set::RuleSet;
use crate::trust::{self, Examiner, Trusted, Vetting};
use crate::watch::hold::{Answers, Door, Hold, Manner, Sight};
use crate::watch::inbox::Post;
use crate::watch::promises::{Kept, Promises};

use super::args::{HoldChoice, WatchArgs};
use super::exit::{Refusal, RefusalCode, causes};
use super::ground::Ground;

/// What `--hold` asks for.
pub struct HoldPlan {
    /// Which opens.
    pub manner: Manner,
    /// The programs that pass.
    trusted: Vec<Trusted>,
    /// Whether the watch goes on where nothing can be held.
    best_effort: bool,
}

impl HoldPlan {
    /// What the person asked for; `None` without `--hold`. Reads the programs that are trusted.
    pub fn of(args: &WatchArgs, ground: &Ground) -> Result<Option<Self>, Refusal> {
        let manner = match args.hold {
            None => return Ok(None),
            Some(HoldChoice::Write) => Manner::Writes,
            Some(HoldChoice::Read) => Manner::ReadsToo,
        };
        let trusted = match config_folder(ground) {
            Some(folder) => trust::read(&folder, ground.owner).map_err(|error| {
                Refusal::new(
                    RefusalCode::ConfigInvalid,
                    error.of(&folder),
                    "mend it, or take it away to trust no program; docs/hold.md has an example",
                )
            })?,
            None => Vec::new(),
        };
        Ok(Some(Self { manner, trusted, best_effort: args.best_effort }))
    }

    /// Takes what can hold opens. Nothing is a refusal, or with `--best-effort` one thing more that is missing.
    pub fn with(self, answers: Result<Box<dyn Answers>, String>) -> Result<Ready, Refusal> {
        match answers {
            Ok(answers) => {
                let reads_are_held = self.manner == Manner::ReadsToo;
                let promises = Promises { writes: Kept::Held, reads_are_held, ..Promises::default() };
                Ok(Ready { plan: self, answers: Some(answers), promises })
            }
            Err(reason) if self.best_effort => {
                let missing = vec![format!("Opens are not held, although --hold was asked for: {reason}.")];
                Ok(Ready { plan: self, answers: None, promises: Promises { missing, ..Promises::default() } })
            }
            Err(reason) => Err(cannot_hold(&reason)),
        }
    }
}

/// `--hold`, and what it can be done with.
pub struct Ready {
    plan: HoldPlan,
    answers: Option<Box<dyn Answers>>,
    /// What is promised.
    pub promises: Promises,
}

impl Ready {
    /// Closes the door.
    pub fn start(
        self,
        door: &Door,
        index: &Index,
        roots: &Roots,
        rules: &Arc<RuleSet>,
        post: &Post,
    ) -> Result<Option<Hold>, Refusal> {
        let Self { plan, answers: Some(answers), .. } = self else { return Ok(None) };
        let sight = Sight { index: index.clone(), roots: roots.clone(), rules: Arc::clone(rules), manner: plan.manner };
        let report = {
            let post = post.clone();
            Box::new(move |id, trusted| post.held_is_vetted(id, trusted))
        };
        let mut examiner = Examiner::default();
        // What cannot be looked at is not trusted.
        let examine = Box::new(move |pid, started| examiner.examine(pid, started).ok().flatten());
        let vetting = Vetting::start(plan.trusted, examine, report).map_err(|error| cannot_hold(&causes(&error)))?;
        door.close(sight.clone());
        Ok(Some(Hold { answers, sight, vetting }))
    }
}

/// What privilege gave for opens, as it is used: who marks files, and where answers go.
pub struct Equipped {
    /// Where answers go, or why opens cannot be held here.
    pub answers: Result<Box<dyn Answers>, String>,
    /// Who marks covered files.
    pub marker: Option<Arc<dyn Marker>>,
    /// Who takes the numbers of what the guardian answered.
    pub relief: Option<Relief>,
}

impl Equipped {
    /// Reads opens of this group from now on. If they are to be held, it is tried in the directory first whether they can, and
    /// none is held for longer than this.
    pub fn start(
        group: Option<OwnedFd>,
        to_hold_in: Option<(&Dir, Duration)>,
        door: &Arc<Door>,
        witness: &Arc<Witness>,
        guardian: Option<Arc<Guardian>>,
    ) -> Self {
        let Some(group) = group else {
            let needs = "that takes root, or CAP_SYS_ADMIN on the program, and the fanotify backend";
            return Self { answers: Err(needs.to_owned()), marker: None, relief: None };
        };
        let trouble = to_hold_in.and_then(|(dir, _)| cannot_be_held(&group, dir));
        let door = Arc::clone(door) as Arc<dyn Doorkeeper>;
        match Openings::start(group, door, Arc::clone(witness) as Arc<dyn Identify>) {
            Ok(openings) => {
                if let Some((_, longest)) = to_hold_in {
                    openings.answer_within(longest);
                }
                if let Some(guardian) = guardian {
                    openings.notice(Box::new(move |waits| guardian.waits(waits)));
                }
                let (marker, relief) = (Some(openings.marker()), Some(openings.relief()));
                let answers = Box::new(Kernel(openings)) as Box<dyn Answers>;
                Self { answers: trouble.map_or(Ok(answers), Err), marker, relief }
            }
            Err(error) => Self { answers: Err(causes(&error)), marker: None, relief: None },
        }
    }
}

/// Why opens of files on the directory's file system cannot be held; `None` if they were.
pub fn cannot_be_held(group: &OwnedFd, dir: &Dir) -> Option<String> {
    match trial::try_in(group.as_fd(), dir) {
        Ok(Tried { writes_are_held: true, reads_are_told: true }) => None,
        Ok(Tried { writes_are_held: true, reads_are_told: false }) => {
            Some("it was tried, and opens for reading cannot be told from those for writing".to_owned())
        }
        Ok(Tried { writes_are_held: false, .. }) => {
            Some("it was tried, and an open for writing was not held".to_owned())
        }
        Err(error) => Some(format!("it cannot be tried on this file system: {error}")),
    }
}

/// The kernel's opens.
struct Kernel(Openings);

impl Answers for Kernel {
    fn answer(&self, id: HeldId, verdict: Verdict) -> Answered {
        self.0.answer(id, verdict)
    }
}

/// Where the person's settings lie.
pub fn config_folder(ground: &Ground) -> Option<PathBuf> {
    let sources = &ground.sources;
    let config = sources.xdg_config_home.clone().or_else(|| Some(sources.home.as_ref()?.join(".config")))?;
    Some(config.join("keepwatch"))
}

/// Opens cannot be held here.
pub fn cannot_hold(reason: &str) -> Refusal {
    Refusal::new(
        RefusalCode::BackendUnavailable,
        format!("opens cannot be held: {reason}"),
        "sudo keep watch --hold; with --best-effort the watch goes on and says what is missing",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::set::Parts;
    use crate::watch::inbox::inbox;
    use platform::Root;

    struct Nobody;

    impl Answers for Nobody {
        fn answer(&self, _id: HeldId, _verdict: Verdict) -> Answered {
            Answered::Gone
        }
    }

    fn ready(best_effort: bool, answers: Result<Box<dyn Answers>, String>) -> Result<Ready, Refusal> {
        HoldPlan { manner: Manner::ReadsToo, trusted: Vec::new(), best_effort }.with(answers)
    }

    fn started(ready: Ready) -> Option<Hold> {
        let folder = tempfile::tempdir().expect("a folder");
        let roots = Roots::new(vec![Arc::new(Root::open(folder.path()).expect("opens"))]);
        let rules = Arc::new(RuleSet::new(Parts::default()));
        let (post, _inbox) = inbox();
        ready.start(&Door::new(post.clone()), &Index::default(), &roots, &rules, &post).expect("starts")
    }

    #[test]
    fn what_cannot_be_held_is_a_refusal_or_named() {
        let refusal = ready(false, Err("no privilege".to_owned())).err().expect("refused");
        assert_eq!(refusal.code, RefusalCode::BackendUnavailable);
        assert_eq!(refusal.message, "opens cannot be held: no privilege");
        assert!(refusal.hints[0].contains("sudo keep watch --hold"));
        let ready = ready(true, Err("no privilege".to_owned())).expect("goes on");
        assert!(ready.promises.sentences().is_empty());
        assert_eq!(ready.promises.limits(), ["Opens are not held, although --hold was asked for: no privilege."]);
        assert!(started(ready).is_none());
    }

    #[test]
    fn what_is_held_is_promised() {
        let ready = ready(false, Ok(Box::new(Nobody))).expect("can be held");
        assert!(ready.promises.sentences()[0].ends_with("and of secrets for reading are held"));
        assert!(started(ready).is_some());
    }
}
