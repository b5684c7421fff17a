//! What reaches the core thread: one channel, whoever speaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use platform::LocalStream;
use platform::signals::Signal;
use platform::terminal::InputEvent;
use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::gate::files::{Answer, Job};
use crate::gate::machine::{QuestionId, Ticket};
use crate::gate::wire::FromClient;

use super::board::GateKey;
use super::lane::LaneName;
use super::parts::Due;

/// The most clients at a time.
pub const MOST_CONNECTIONS: usize = 256;

/// Something that happened outside the core.
#[derive(Debug)]
pub enum Message {
    /// Somebody connected, and has a place.
    Connected(LocalStream, Place),
    /// A client said something.
    Frame {
        /// Who.
        connection: u64,
        /// What.
        frame: FromClient,
        /// Of a call: the digest of tool and arguments, and about how many bytes they take.
        call: Option<(Digest, usize)>,
    },
    /// A client is gone, or said something that is no message.
    Closed {
        /// Who.
        connection: u64,
        /// What was wrong, if it did not just go.
        fault: Option<String>,
    },
    /// A client took so many results that more can be made for it.
    Drained,
    /// All that was to be said to a client has been written, or cannot be.
    Written {
        /// Who.
        connection: u64,
    },
    /// A process that touches files has done a job, or has died of it.
    Files {
        /// Which.
        lane: LaneName,
        /// For which call.
        ticket: Ticket,
        /// The job.
        job: Box<Job>,
        /// What came of it; why there is no answer.
        result: Result<Answer, String>,
    },
    /// A chore was done.
    Chore {
        /// For which call.
        ticket: Ticket,
        /// What came of it; why it failed, for the agent.
        result: Result<Map<String, Value>, String>,
    },
    /// Something is due that was asked for earlier.
    Due(Vec<Due>),
    /// Bytes from the terminal, or its end.
    Input(InputEvent),
    /// A key that was pressed at a terminal that is not ours alone.
    Pressed {
        /// The question that was on the screen.
        question: QuestionId,
        /// What the key means for it.
        key: GateKey,
    },
    /// A signal.
    Signal(Signal),
}

/// Lets clients in, as many as there are places.
#[derive(Debug, Clone)]
pub struct Doors {
    taken: Arc<AtomicUsize>,
    to_core: Sender<Message>,
}

/// A client's place; free again when dropped.
#[derive(Debug)]
pub struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Doors {
    /// The doors of the core that reads this channel.
    pub fn new(to_core: Sender<Message>) -> Self {
        Self { taken: Arc::default(), to_core }
    }

    /// Lets a client in, or tells it why not. `false` once the core is gone.
    pub fn enter(&self, stream: LocalStream) -> bool {
        if self.taken.fetch_add(1, Ordering::AcqRel) >= MOST_CONNECTIONS {
            self.taken.fetch_sub(1, Ordering::AcqRel);
            super::connection::turn_away(&stream, "as many clients as the gate serves are connected already");
            return true;
        }
        let place = Place(Arc::clone(&self.taken));
        self.to_core.send(Message::Connected(stream, place)).is_ok()
    }
}
