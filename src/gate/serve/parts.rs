//! What the core is given: whoever does the work it decides about.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::SystemTime;

use platform::{Clock, Moment};
use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::gate::audit::AuditEvent;
use crate::gate::files::{Answer, Job};
use crate::gate::machine::{Machine, Ticket};
use crate::gate::path::FilePath;
use crate::gate::pattern::Grant;
pub use crate::gate::services::Due;
use crate::gate::tools::{Request, Tool};
use crate::gate::wire::ToolInfo;

use super::board::Board;
use super::herald::Herald;
use super::message::Message;

/// Does file jobs, in a process of its own.
pub trait Hands {
    /// Does one; an error if whoever did it died, or took too long.
    fn run(&mut self, job: &Job) -> Result<Answer, String>;
    /// What keeps it from touching anything else, a line each.
    fn confinement(&self) -> Vec<String>;
    /// What nothing keeps it from, a line each.
    fn missing(&self) -> Vec<String>;
}

/// Makes the hands of one lane, in the thread that will use them.
pub type MakeHands = Box<dyn FnOnce() -> Result<Box<dyn Hands>, String> + Send>;

/// Does what is no file of the root: notes, reminders, skills, the time.
pub trait Chores: Send {
    /// Does one for a client; an error is for the agent.
    fn run(
        &mut self,
        request: &Request,
        connection: u64,
        wall: SystemTime,
        now: Moment,
    ) -> Result<Map<String, Value>, String>;
    /// When something will be due, by the clock on the wall.
    fn wake_at(&self, wall: SystemTime, now: Moment) -> Option<SystemTime>;
    /// What is due by now; it is never told again.
    fn due(&mut self, wall: SystemTime, now: Moment) -> Vec<Due>;
    /// A client is gone, and what only it waited for.
    fn gone(&mut self, connection: u64);
}

/// Makes the chores' doer, in the thread that will use it.
pub type MakeChores = Box<dyn FnOnce() -> Result<Box<dyn Chores>, String> + Send>;

/// Starts a program of the person's with a wake's note.
pub type OnWake = Box<dyn FnMut(&str) + Send>;

/// What `grants.json` holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The grants; none if the file cannot be used.
    pub grants: Vec<Grant>,
    /// Why it cannot be used.
    pub fault: Option<String>,
}

/// The remembered grants and the audit.
pub trait Books: Send {
    /// Reads the grants, if anything about them is other than at the last reading; else this costs no more for many than
    /// for one.
    fn grants(&mut self) -> Option<Reading>;
    /// Stores more of them, durably.
    fn remember(&mut self, grants: &[Grant]) -> Result<(), String>;
    /// Writes an entry of the audit, durably.
    fn write(&mut self, event: &AuditEvent, at: SystemTime) -> Result<(), String>;
}

/// What a path will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coming {
    /// Which path.
    pub path: FilePath,
    /// The digest of its content; `None` if it will be absent.
    pub content: Option<Digest>,
}

/// A watch of the same root in this process: it is told what the person has answered, so that it need not ask again.
pub trait Watch: Send {
    /// A change is about to be done that the person was asked about and allowed.
    fn expect(&mut self, ticket: Ticket, coming: Vec<Coming>);
    /// It was done, or was not.
    fn is_over(&mut self, ticket: Ticket, was_done: bool);
}

/// What stands around a gate.
pub struct Surroundings {
    /// The terminal, or nobody's.
    pub board: Box<dyn Board + Send>,
    /// Desktop notifications.
    pub herald: Herald,
    /// Starts a program with a wake's note.
    pub on_wake: Option<OnWake>,
    /// The watch of the same root in this process.
    pub watch: Option<Box<dyn Watch>>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What the gate is told.
    pub messages: Receiver<Message>,
    /// For those that tell it.
    pub to_core: Sender<Message>,
}

/// Everything a gate is made of.
pub struct Parts {
    /// The tools there are: the cage, and of it what this version serves.
    pub tools: Vec<(Tool, ToolInfo)>,
    /// Decides.
    pub machine: Machine,
    /// Grants and audit.
    pub books: Box<dyn Books>,
    /// Makes the process that does everything with files but searching.
    pub hands: MakeHands,
    /// Makes the process that searches.
    pub searcher: MakeHands,
    /// Makes what does the rest.
    pub chores: MakeChores,
    /// What it is told, and whom it tells.
    pub around: Surroundings,
}
