//! One client: a thread that reads, a thread that writes, and what the core knows of it.
//!
//! Promise: a client that sends faster than the core reads waits; one that does not read what it is sent holds up its own
//! results and nobody else's, and is cut off when too much waits for it. Limit: whatever a client sends is held once in
//! memory, up to the longest message, before the core sees it.

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use platform::LocalStream;

use crate::cli::exit::causes;
use crate::gate::frame::{self, FrameError};
use crate::gate::machine::{Caller, Ticket};
use crate::gate::wire::{FromClient, FromGate};

use super::canonical;
use super::message::{Message, Place};

/// Messages of one client that the core has not looked at yet.
const AHEAD: usize = 4;
/// Results of reads that may wait to be written; more are not made until the client takes some.
const HELD: usize = 4;
/// Messages that may wait to be written before the client is cut off. More than there can be open calls.
const MOST_WAITING: usize = 4096;
/// How long a client that is turned away has to take the reason.
pub(super) const PARTING: Duration = Duration::from_millis(200);
/// Bytes of a client's name that are kept.
const NAME: usize = 256;

/// Where a client stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has not said hello.
    Unknown,
    /// It is served.
    Served {
        /// Nobody watches it.
        unattended: bool,
    },
}

/// A client.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    stream: Arc<LocalStream>,
    to_client: Option<Sender<FromGate>>,
    /// Messages that are not written yet.
    waiting: Arc<AtomicUsize>,
    permits: Receiver<()>,
    _place: Option<Place>,
    pub(super) standing: Standing,
    name: Option<String>,
    /// The number of its last call.
    last_call: Option<u64>,
    /// Its open calls, by its own numbers.
    pub(super) calls: BTreeMap<u64, Ticket>,
}

impl Connection {
    /// Starts the two threads.
    pub(super) fn open(
        id: u64,
        stream: LocalStream,
        place: Option<Place>,
        to_core: &Sender<Message>,
    ) -> io::Result<Self> {
        let stream = Arc::new(stream);
        let (to_client, frames) = channel();
        let (permit, permits) = sync_channel(AHEAD);
        let waiting = Arc::new(AtomicUsize::new(0));
        let (theirs, out) = (Arc::clone(&stream), to_core.clone());
        thread::Builder::new().name("from-client".to_owned()).spawn(move || read_all(id, &theirs, &permit, &out))?;
        let (theirs, out, left) = (Arc::clone(&stream), to_core.clone(), Arc::clone(&waiting));
        let writer = thread::Builder::new()
            .name("to-client".to_owned())
            .spawn(move || write_all(id, &theirs, &frames, &left, &out));
        if let Err(error) = writer {
            stream.shut_down();
            return Err(error);
        }
        Ok(Self {
            id,
            stream,
            to_client: Some(to_client),
            waiting,
            permits,
            _place: place,
            standing: Standing::Unknown,
            name: None,
            last_call: None,
            calls: BTreeMap::new(),
        })
    }

    /// Notes that the core has a message of this client's in hand: the next may come.
    pub(super) fn taken(&self) {
        let _one_fewer = self.permits.try_recv();
    }

    /// Sends a message; `false` if too many wait already, or the client is gone.
    #[must_use]
    pub(super) fn send(&self, message: FromGate) -> bool {
        let Some(to_client) = &self.to_client else { return false };
        if self.waiting.fetch_add(1, Ordering::AcqRel) >= MOST_WAITING {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            return false;
        }
        to_client.send(message).is_ok()
    }

    /// Whether it takes its results, so that more can be made.
    pub(super) fn is_ready(&self) -> bool {
        self.waiting.load(Ordering::Acquire) < HELD
    }

    /// Lets what waits be written, and no more come. [`Message::Written`] tells when that is done.
    pub(super) fn finish(&mut self) {
        self.to_client = None;
    }

    /// Takes the client's name: once, and before its first call.
    pub(super) fn set_name(&mut self, name: String) -> bool {
        let is_first = self.name.is_none() && self.last_call.is_none();
        if is_first {
            let end = (0..=NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
            self.name = Some(name[..end].to_owned());
        }
        is_first
    }

    /// Notes a call by the client's number, which has to be higher than any before.
    pub(super) fn begins(&mut self, id: u64) -> bool {
        let is_next = self.last_call.is_none_or(|last| id > last);
        if is_next {
            self.last_call = Some(id);
        }
        is_next
    }

    /// Who calls, for the machine.
    pub(super) fn caller(&self) -> Caller {
        let unattended = self.standing != Standing::Served { unattended: false };
        let name = self.name.clone().unwrap_or_else(|| "an unnamed client".to_owned());
        Caller { connection: self.id, name, unattended }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stream.shut_down();
    }
}

/// Tells somebody who is not let in why.
pub(super) fn turn_away(stream: &LocalStream, why: &str) {
    let refused = FromGate::Refused { why: why.to_owned() };
    // Somebody who does not take it learns it from the end of the connection.
    let _ = stream.limit_writes(PARTING).and_then(|()| frame::write(&mut &*stream, &refused));
    stream.shut_down();
}

fn read_all(connection: u64, stream: &LocalStream, permit: &SyncSender<()>, to_core: &Sender<Message>) {
    let mut stream = BufReader::new(stream);
    loop {
        let message = match frame::read::<FromClient>(&mut stream) {
            Ok(frame) => {
                let call = match &frame {
                    FromClient::Call { tool, arguments, .. } => Some(canonical::digest(tool, arguments)),
                    _ => None,
                };
                Message::Frame { connection, frame, call }
            }
            Err(FrameError::Closed) => Message::Closed { connection, fault: None },
            Err(error) => Message::Closed { connection, fault: Some(causes(&error)) },
        };
        let is_last = matches!(message, Message::Closed { .. });
        // A core that has ended the connection takes no permits any more.
        if (!is_last && permit.send(()).is_err()) || to_core.send(message).is_err() || is_last {
            return;
        }
    }
}

fn write_all(
    connection: u64,
    stream: &LocalStream,
    frames: &Receiver<FromGate>,
    waiting: &AtomicUsize,
    to_core: &Sender<Message>,
) {
    for message in frames {
        if frame::write(&mut &*stream, &message).is_err() {
            // The thread that reads tells the core.
            stream.shut_down();
            break;
        }
        if waiting.fetch_sub(1, Ordering::AcqRel) == HELD && to_core.send(Message::Drained).is_err() {
            break;
        }
    }
    // Nobody asks any more if the core has ended.
    let _ = to_core.send(Message::Written { connection });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::wire::VERSION;

    const WITHIN: Duration = Duration::from_secs(10);

    fn opened() -> (Connection, LocalStream, Receiver<Message>) {
        let (to_core, messages) = channel();
        let (ours, theirs) = LocalStream::pair().expect("a pair");
        (Connection::open(7, ours, None, &to_core).expect("threads"), theirs, messages)
    }

    #[test]
    fn a_client_that_sends_faster_than_the_core_looks_waits() {
        let (connection, client, messages) = opened();
        let hello = FromClient::Hello { version: VERSION, unattended: false };
        for _ in 0..20 {
            frame::write(&mut &client, &hello).expect("writes");
        }
        for _ in 0..AHEAD {
            assert!(matches!(messages.recv_timeout(WITHIN), Ok(Message::Frame { connection: 7, .. })));
        }
        assert!(messages.recv_timeout(Duration::from_millis(100)).is_err(), "more came than the core had looked at");
        connection.taken();
        assert!(matches!(messages.recv_timeout(WITHIN), Ok(Message::Frame { .. })));
        drop(connection);
        drop(client);
    }

    #[test]
    fn a_client_that_reads_nothing_is_held_back_and_then_cut_off() {
        let (connection, client, messages) = opened();
        let long = || FromGate::Wake { note: "x".repeat(1 << 20) };
        let mut sent = 0;
        while connection.is_ready() {
            assert!(connection.send(long()));
            sent += 1;
            assert!(sent < 100, "it is never held back");
        }
        let mut more = 0;
        while connection.send(FromGate::Wake { note: String::new() }) {
            more += 1;
        }
        assert!(more < MOST_WAITING);
        for _ in 0..sent {
            frame::read::<FromGate>(&mut &client).expect("reads");
        }
        frame::read::<FromGate>(&mut &client).expect("reads");
        assert!(connection.send(long()), "there is room again");
        drop(connection);
        drop(client);
        assert!(messages.iter().any(|message| matches!(message, Message::Closed { .. })));
    }

    #[test]
    fn what_is_no_message_ends_the_connection_with_the_reason() {
        let (_connection, client, messages) = opened();
        frame::write(&mut &client, &serde_json::json!({"message": "answer", "question": 1, "offer": "yes"}))
            .expect("writes");
        match messages.recv_timeout(WITHIN) {
            Ok(Message::Closed { connection: 7, fault: Some(fault) }) => assert!(fault.contains("answer"), "{fault}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_is_taken_once_and_before_the_first_call() {
        let (mut connection, _client, _messages) = opened();
        assert!(connection.set_name("é".repeat(300)));
        assert_eq!(connection.caller().name.len(), NAME);
        assert!(!connection.set_name("another".into()));
        assert!(connection.begins(3) && !connection.begins(3) && !connection.begins(2) && connection.begins(4));
        assert!(connection.caller().unattended, "whoever has not said hello is not taken for a chat");
    }

    #[test]
    fn what_waits_is_still_written_after_the_end() {
        let (mut connection, client, messages) = opened();
        assert!(connection.send(FromGate::Wake { note: "last".into() }));
        connection.finish();
        assert!(matches!(messages.recv_timeout(WITHIN), Ok(Message::Written { connection: 7 })));
        assert_eq!(frame::read::<FromGate>(&mut &client).expect("reads"), FromGate::Wake { note: "last".into() });
        assert!(!connection.send(FromGate::Wake { note: "later".into() }));
    }
}
