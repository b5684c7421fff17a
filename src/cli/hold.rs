//! `--hold`: what is needed for it, and what is said where it cannot be had.

use std::path::PathBuf;
use std::sync::Arc;

use platform::Doorkeeper;

use crate::trust::{self, Examiner, Trusted, Vetting};
use crate::watch::hold::{Answers, Door, Hold, Manner, Sight};
use crate::watch::inbox::Post;
use crate::watch::promises::{Kept, Promises};

use super::args::{HoldChoice, WatchArgs};
use super::exit::{Refusal, RefusalCode, causes};
use super::ground::Ground;

/// Begins to hold opens: gives the doorkeeper to whatever reads them.
pub type StartHolding = Box<dyn FnOnce(Arc<dyn Doorkeeper>) -> Result<Box<dyn Answers>, String>>;

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

    /// Begins to hold. Without a way to do that it is a refusal, or with `--best-effort` one thing more that is missing.
    pub fn start(
        self,
        holding: Result<StartHolding, String>,
        sight: Sight,
        post: &Post,
    ) -> Result<(Option<Hold>, Promises), Refusal> {
        let door = Arc::new(Door::new(sight.clone(), post.clone()));
        let answers = match holding.and_then(|start| start(door)) {
            Ok(answers) => answers,
            Err(reason) if self.best_effort => {
                let missing = vec![format!("Opens are not held, although --hold was asked for: {reason}.")];
                return Ok((None, Promises { missing, ..Promises::default() }));
            }
            Err(reason) => return Err(cannot_hold(&reason)),
        };
        let reads_are_held = self.manner == Manner::ReadsToo;
        let report = {
            let post = post.clone();
            Box::new(move |id, trusted| post.held_is_vetted(id, trusted))
        };
        let mut examiner = Examiner::default();
        // What cannot be looked at is not trusted.
        let examine = Box::new(move |pid, started| examiner.examine(pid, started).ok().flatten());
        let vetting = Vetting::start(self.trusted, examine, report).map_err(|error| cannot_hold(&causes(&error)))?;
        let hold = Hold { answers, sight, vetting };
        Ok((Some(hold), Promises { writes: Kept::Held, reads_are_held, ..Promises::default() }))
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
    use crate::baseline::Index;
    use crate::roots::Roots;
    use crate::rules::set::{Parts, RuleSet};
    use crate::watch::inbox::inbox;
    use platform::{HeldId, Root, Verdict};

    struct Nobody;

    impl Answers for Nobody {
        fn answer(&self, _id: HeldId, _verdict: Verdict) {}
    }

    fn start(best_effort: bool, holding: Result<StartHolding, String>) -> Result<(Option<Hold>, Promises), Refusal> {
        let folder = tempfile::tempdir().expect("a folder");
        let roots = Roots::new(vec![Arc::new(Root::open(folder.path()).expect("opens"))]);
        let rules = Arc::new(RuleSet::new(Parts::default()));
        let sight = Sight { index: Index::default(), roots, rules, manner: Manner::Writes };
        let (post, _inbox) = inbox();
        HoldPlan { manner: Manner::ReadsToo, trusted: Vec::new(), best_effort }.start(holding, sight, &post)
    }

    #[test]
    fn what_cannot_be_held_is_a_refusal_or_named() {
        let refusal = start(false, Err("no privilege".to_owned())).err().expect("refused");
        assert_eq!(refusal.code, RefusalCode::BackendUnavailable);
        assert_eq!(refusal.message, "opens cannot be held: no privilege");
        assert!(refusal.hints[0].contains("sudo keep watch --hold"));
        let (hold, promises) = start(true, Err("no privilege".to_owned())).expect("goes on");
        assert!(hold.is_none() && promises.clause().is_none());
        assert_eq!(promises.limits(), ["Opens are not held, although --hold was asked for: no privilege."]);
    }

    #[test]
    fn what_is_held_is_promised() {
        let (hold, promises) = start(false, Ok(Box::new(|_| Ok(Box::new(Nobody))))).expect("starts");
        assert!(hold.is_some());
        assert!(promises.clause().expect("is special").contains("and of secrets for reading are held"));
        let failed = start(false, Ok(Box::new(|_| Err("it broke".to_owned())))).err().expect("refused");
        assert!(failed.message.ends_with("it broke"));
    }
}
