//! A call that has no result yet.

use crate::digest::Digest;
use crate::gate::action::{Action, Target};
use crate::gate::files::{Change, Job, Prepared};
use crate::gate::path::FilePath;
use crate::gate::tools::{Request, Tool};

use super::facts::Asked;
use super::parts::Coming;

/// How often a decided change is decided anew because something else was there when it was to be done.
pub(super) const MOST_ROUNDS: u8 = 3;

/// A call under way.
#[derive(Debug)]
pub(super) struct OpenCall {
    /// Whose.
    pub(super) connection: u64,
    /// The client's number for it.
    pub(super) number: u64,
    /// The tool.
    pub(super) tool: Tool,
    /// About how many bytes it holds.
    pub(super) bytes: usize,
    /// How many bytes its question holds.
    pub(super) asking: usize,
    /// Over the tool and its arguments.
    pub(super) digest: Digest,
    /// Where it stands.
    pub(super) stage: Stage,
    /// How often it was decided.
    pub(super) rounds: u8,
}

/// Where a call stands.
#[derive(Debug)]
pub(super) enum Stage {
    /// A process looks something up for it; nothing is decided about that.
    Looking,
    /// A process looks what the change would do.
    Preparing,
    /// The machine has it.
    Deciding(Box<Decided>),
    /// The machine has it, and a process looks again before the question is shown.
    Refreshing {
        /// What was found before.
        before: Box<Found>,
        /// The machine has decided meanwhile: it is to be done.
        runs: bool,
    },
    /// A process does the change.
    Acting,
    /// A chore is done.
    Errand,
}

/// What the machine decides about.
#[derive(Debug)]
pub(super) enum Decided {
    /// A change of files, and what it would do.
    Change(Change, Found),
    /// Something else.
    Chore(Request),
}

/// What a process found a change would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Over the call and what it changes: what the machine knows it by.
    pub(super) digest: Digest,
    /// What it reaches.
    pub(super) actions: Vec<Action>,
    /// What is there now.
    pub(super) state: String,
    /// Of a move: the digest of what arrives.
    pub(super) arrives: Option<Digest>,
    /// Facts for the question.
    pub(super) facts: Vec<String>,
    /// What `d` shows.
    pub(super) difference: Vec<String>,
    /// When that was: the number of the answer.
    pub(super) looked: u64,
    /// In which turn of the core.
    pub(super) turn: u64,
}

impl Found {
    /// From what a process answered to a call's `Prepare`.
    pub(super) fn new(call: Digest, prepared: Prepared, looked: u64, turn: u64) -> Result<Self, String> {
        // The process is confined, and may be somebody else's by now: what it says is parsed like what a client says.
        let paths = prepared.paths.iter().map(|path| FilePath::parse(path)).collect::<Result<Vec<_>, _>>();
        let actions: Vec<Action> = paths.map_err(|why| why.to_string())?.into_iter().map(Action::file).collect();
        if actions.is_empty() {
            return Err("the change has no target".to_owned());
        }
        let digest = super::canonical::with_state(call, &prepared.state);
        let Prepared { paths: _, facts, difference, state, after } = prepared;
        let arrives = after.last().and_then(|after| Digest::parse(after.digest.as_deref()?));
        Ok(Self { digest, actions, state, arrives, facts, difference, looked, turn })
    }

    /// What the paths will be once it is done. As far as it can be known here it does not come from the process.
    pub(super) fn coming(&self, change: &Change) -> Vec<Coming> {
        let contents = match change {
            Change::Write(write) => vec![Some(Digest::of(write.content.as_bytes()))],
            Change::Remove(_) => vec![None],
            // What is no regular file is not expected where it arrives.
            Change::Move(_) => std::iter::once(None).chain(self.arrives.map(Some)).collect(),
        };
        let paths = self.actions.iter().filter_map(|action| match action.target() {
            Target::Path(path) => Some(path.clone()),
            Target::Host(_) | Target::User | Target::Note(_) => None,
        });
        paths.zip(contents).map(|(path, content)| Coming { path, content }).collect()
    }

    /// Takes out what only the question needs; returns it, and how many bytes that is.
    pub(super) fn take_texts(&mut self) -> (Vec<String>, Vec<String>, usize) {
        // The facts stay, too: they are what another look is compared with.
        let (facts, difference) = (self.facts.clone(), std::mem::take(&mut self.difference));
        let size = |texts: &[String]| texts.iter().map(|text| size_of::<String>() + text.len()).sum::<usize>();
        let bytes = 2 * size(&facts) + size(&difference);
        (facts, difference, bytes)
    }

    /// Whether the question would be the same: it reaches the same, and what is there is the same.
    pub(super) fn asks_the_same(&self, other: &Self) -> bool {
        (self.digest, &self.actions, &self.facts) == (other.digest, &other.actions, &other.facts)
    }
}

/// What has to be done about a call's arguments.
#[derive(Debug)]
pub(super) enum Way {
    /// A process looks, and that is it.
    Look(Job),
    /// A process looks what the change would do; then it is decided about.
    Change(Change),
    /// It is decided about, and then a chore.
    Ask(Asked, Request),
    /// A chore.
    Chore(Request),
}

/// Which way a call goes; an error is for the agent.
pub(super) fn way(request: Request) -> Result<Way, String> {
    if let Some(asked) = super::facts::asked(&request) {
        return asked.map(|asked| Way::Ask(asked, request));
    }
    Ok(match request {
        Request::FileRead(read) => Way::Look(Job::Read(read)),
        Request::FileList(list) => Way::Look(Job::List(list)),
        Request::FileStat(stat) => Way::Look(Job::Stat(stat)),
        Request::FileSearch(search) => Way::Look(Job::Search(search)),
        Request::FileWrite(write) => Way::Change(Change::Write(write)),
        Request::FileRemove(remove) => Way::Change(Change::Remove(remove)),
        Request::FileMove(change) => Way::Change(Change::Move(change)),
        chore => Way::Chore(chore),
    })
}
