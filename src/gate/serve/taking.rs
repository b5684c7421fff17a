//! What the core does with each message.

use platform::signals::Signal;
use platform::terminal::InputEvent;
use serde_json::{Map, Value};

use crate::digest::Digest;
use crate::gate::Tool;
use crate::gate::files::{Answer, Change, Job};
use crate::gate::machine::{Call, Input, Ticket};
use crate::gate::pattern::Grant;
use crate::gate::services;
use crate::gate::tools::Request;
use crate::gate::wire::{FromClient, FromGate, GrantInfo, Outcome, VERSION};
use crate::text::escaped;

use super::board::GateKey;
use super::call::{Decided, Found, MOST_ROUNDS, OpenCall, Stage, Way, way};
use super::connection::{PARTING, Standing};
use super::hub::{End, Gate};
use super::lane::LaneName;
use super::message::Message;
use super::parts::Due;

/// Open calls of one client.
const MOST_CALLS: usize = 1024;
/// Open calls of all clients.
const MOST_IN_ALL: usize = 4096;
/// Bytes that all open calls may hold: sixteen of the longest writes.
const MOST_HELD: usize = 256 << 20;
/// Bytes that all questions may hold: a call of a few bytes can have a difference of a quarter megabyte.
const MOST_ASKED: usize = 64 << 20;

impl Gate {
    pub(super) fn take(&mut self, message: Message) {
        match message {
            Message::Connected(stream, place) => {
                // A client that cannot have its threads sees its connection end.
                let _ = self.admit(stream, Some(place));
            }
            Message::Frame { connection, frame, call } => self.heard(connection, frame, call),
            Message::Closed { connection, fault } => match fault {
                Some(fault) => self.refuse(connection, &fault),
                None => self.left(connection),
            },
            // Whose results were held back may have more now: the loop looks.
            Message::Drained => {}
            Message::Written { connection } => {
                self.parting.remove(&connection);
            }
            Message::Files { lane, ticket, job, result } => self.answered(lane, ticket, *job, result),
            Message::Chore { ticket, result } => {
                self.errands.done();
                let outcome = result.map_or_else(Outcome::Failed, Outcome::Ok);
                self.close(ticket, outcome);
            }
            Message::Due(due) => due.into_iter().for_each(|due| self.is_due(due)),
            Message::Input(InputEvent::Bytes { bytes, at }) => {
                if let Some(key) = self.board.key(&bytes, at) {
                    self.pressed(key);
                }
            }
            // Another question may have come meanwhile: this key was not for it.
            Message::Pressed { question, key } => {
                if self.shown.is_some_and(|(shown, _)| shown == question) {
                    self.pressed(key);
                }
            }
            Message::Input(InputEvent::Foreground) => self.board.resume(),
            Message::Input(InputEvent::HungUp) => {
                self.board.hang_up();
                self.end_with(End::Signal("SIGHUP"));
            }
            // An event of a later version tells nothing that could be an answer.
            Message::Input(_) => {}
            Message::Signal(signal) => match signal {
                Signal::Resized => self.board.resize(),
                Signal::Continued => self.board.go_on(),
                Signal::Suspend => self.board.suspend(),
                Signal::Interrupt | Signal::Terminate | Signal::HangUp | Signal::Quit => {
                    self.end_with(End::Signal(signal.name()));
                }
            },
        }
    }

    fn pressed(&mut self, key: GateKey) {
        let on_screen = self.shown.map(|(question, _)| question);
        match (key, on_screen) {
            (GateKey::Interrupt, _) => self.end_with(End::Signal("SIGINT")),
            (GateKey::Suspend, _) => self.board.suspend(),
            (GateKey::Details, _) => self.board.details(),
            (GateKey::Offer(offer), Some(question)) => self.step(Input::Answered { question, offer }),
            (GateKey::No, Some(question)) => self.step(Input::Declined { question }),
            (GateKey::Offer(_) | GateKey::No, None) => {}
        }
    }

    fn is_due(&mut self, due: Due) {
        match due {
            Due::Notify { title, message } => {
                if !self.herald.tell(&title, &message) {
                    self.say_when_free(format!(
                        "keep gate: not shown, there is no desktop to show it: {}: {}",
                        escaped(title.as_bytes()),
                        escaped(message.as_bytes())
                    ));
                }
            }
            Due::Wake { connection, note } => {
                if let Some(on_wake) = &mut self.on_wake {
                    on_wake(&note);
                }
                self.send(connection, FromGate::Wake { note });
            }
            Due::Fault(line) => self.say_when_free(format!("keep gate: {line}")),
        }
    }

    fn heard(&mut self, id: u64, frame: FromClient, call: Option<(Digest, usize)>) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.taken();
        match (connection.standing, frame) {
            (Standing::Unknown, FromClient::Hello { version: VERSION, unattended }) => {
                // Whoever has a gate of its own has nobody who watches it.
                let unattended = unattended || self.only.is_some();
                connection.standing = Standing::Served { unattended };
                let tools = self.tools.iter().map(|(_, info)| info.clone()).collect();
                self.send(id, FromGate::Welcome { version: VERSION, tools });
            }
            (Standing::Unknown, FromClient::Hello { version, .. }) => {
                let why = format!(
                    "this gate speaks version {VERSION} and its client version {version}: start the older one anew"
                );
                self.refuse(id, &why);
            }
            (Standing::Unknown, _) | (Standing::Served { .. }, FromClient::Hello { .. }) => {
                self.refuse(id, "the first message is a hello, and no other is");
            }
            (Standing::Served { .. }, FromClient::Name { name }) => {
                if !connection.set_name(name) {
                    self.refuse(id, "a name is given once, before the first call");
                }
            }
            (Standing::Served { .. }, FromClient::Call { id: number, tool, arguments }) => {
                let (digest, bytes) = call.expect("the thread that reads gives each call's digest");
                if connection.begins(number) {
                    self.called(id, number, &tool, arguments, digest, bytes);
                } else {
                    self.refuse(id, "each call has a higher number than the one before");
                }
            }
            (Standing::Served { .. }, FromClient::Cancel { id: number, timed_out }) => {
                if let Some(ticket) = connection.calls.get(&number).copied() {
                    self.withdrawn(ticket, timed_out);
                }
            }
            (Standing::Served { .. }, FromClient::ListGrants) => {
                // Whoever asks may just have taken one back: it is in the audit when the answer comes.
                self.read_grants();
                self.tell_session_grants(id);
            }
            (Standing::Served { .. }, FromClient::ForgetSession) => {
                self.step(Input::ForgetSession);
                self.tell_session_grants(id);
            }
        }
    }

    fn tell_session_grants(&mut self, id: u64) {
        let mut grants: Vec<GrantInfo> = self.machine.session_grants().iter().map(Grant::info).collect();
        grants.sort();
        self.send(id, FromGate::SessionGrants { grants });
    }

    /// A call: the cage first, then its arguments, then its way.
    fn called(
        &mut self,
        id: u64,
        number: u64,
        name: &str,
        arguments: Map<String, Value>,
        digest: Digest,
        bytes: usize,
    ) {
        let tool = Tool::parse(name).filter(|tool| self.tools.iter().any(|(known, _)| known == tool));
        let Some((tool, request)) = tool.and_then(|tool| Some((tool, Request::parse(tool, arguments)?))) else {
            return self.send(id, FromGate::Done { id: number, outcome: Outcome::UnknownTool });
        };
        let way = request.map_err(|error| error.to_string()).and_then(way).and_then(|way| {
            let open = self.connections.get(&id).map_or(0, |connection| connection.calls.len());
            if open >= MOST_CALLS {
                return Err(format!("{open} calls of this client are open already; wait for some of them"));
            }
            if self.calls.len() >= MOST_IN_ALL || self.held + bytes > MOST_HELD {
                return Err(
                    "the calls that wait hold too much already; try again when some of them are done".to_owned()
                );
            }
            Ok(way)
        });
        let way = match way {
            Ok(way) => way,
            Err(why) => return self.send(id, FromGate::Done { id: number, outcome: Outcome::Failed(why) }),
        };
        let ticket = self.ticket();
        let call =
            OpenCall { connection: id, number, tool, bytes, asking: 0, digest, stage: Stage::Looking, rounds: 0 };
        self.held += bytes;
        self.calls.insert(ticket, call);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.calls.insert(number, ticket);
        }
        match way {
            Way::Look(job) => {
                let lane = if matches!(job, Job::Search(_)) { &mut self.search } else { &mut self.short };
                lane.look(id, ticket, job);
            }
            Way::Change(change) => self.prepare(ticket, change),
            Way::Chore(request) => self.chore(ticket, request),
            Way::Ask(asked, request) => {
                if let Err(why) = services::check(&request, self.clock.wall()) {
                    return self.close(ticket, Outcome::Failed(why));
                }
                if matches!(request, Request::Notify(_)) && !self.herald.is_there() {
                    return self
                        .close(ticket, Outcome::Failed("there is no desktop to show a notification".to_owned()));
                }
                self.set_stage(ticket, Stage::Deciding(Box::new(Decided::Chore(request))));
                self.decide(ticket, vec![asked.action], asked.facts, Vec::new(), digest);
            }
        }
    }

    /// Lets a process look what the change would do.
    pub(super) fn prepare(&mut self, ticket: Ticket, change: Change) {
        if let Some(call) = self.calls.get_mut(&ticket) {
            call.stage = Stage::Preparing;
            self.short.look(call.connection, ticket, Job::Prepare(change));
        }
    }

    /// Gives a call to the machine.
    pub(super) fn decide(
        &mut self,
        ticket: Ticket,
        actions: Vec<crate::gate::Action>,
        facts: Vec<String>,
        difference: Vec<String>,
        digest: Digest,
    ) {
        self.read_grants();
        let Some(call) = self.calls.get(&ticket) else { return };
        let Some(connection) = self.connections.get(&call.connection) else { return };
        let caller = connection.caller();
        let call = Call { ticket, caller, tool: call.tool, digest, actions, facts, difference };
        self.step(Input::Called(call));
    }

    fn chore(&mut self, ticket: Ticket, request: Request) {
        let Some(call) = self.calls.get_mut(&ticket) else { return };
        call.stage = Stage::Errand;
        self.errands.add(call.connection, ticket, request);
    }

    /// The machine says that a call is to be carried out.
    pub(super) fn run_call(&mut self, ticket: Ticket, answered: bool) {
        let Some(call) = self.calls.get_mut(&ticket) else { return };
        match std::mem::replace(&mut call.stage, Stage::Acting) {
            Stage::Deciding(decided) => match *decided {
                Decided::Change(change, found) => {
                    if answered && let Some(watch) = &mut self.watch {
                        watch.expect(ticket, found.coming(&change));
                    }
                    self.act(ticket, change, found.state);
                }
                Decided::Chore(request) => self.chore(ticket, request),
            },
            Stage::Refreshing { before, .. } => call.stage = Stage::Refreshing { before, runs: true },
            other => call.stage = other,
        }
    }

    fn act(&mut self, ticket: Ticket, change: Change, state: String) {
        self.changing += 1;
        self.short.first(ticket, Job::Act { change, state });
    }

    /// A process has done a job, or died of it.
    fn answered(&mut self, lane: LaneName, ticket: Ticket, job: Job, result: Result<Answer, String>) {
        match lane {
            LaneName::Search => self.search.done(),
            LaneName::Short => {
                self.short.done();
                self.answers += 1;
            }
        }
        if matches!(job, Job::Act { .. }) {
            self.changing -= 1;
            self.last_change = self.answers;
            if let Some(watch) = &mut self.watch {
                watch.is_over(ticket, matches!(result, Ok(Answer::Done(_))));
            }
        }
        let answer = result.unwrap_or_else(|why| Answer::Failed(format!("the gate could not do this: {why}")));
        match (job, answer) {
            (_, Answer::Failed(why)) => self.failed(ticket, why),
            (Job::Prepare(change), Answer::Prepared(prepared)) => {
                let Some(call) = self.calls.get(&ticket) else { return };
                match Found::new(call.digest, prepared, self.answers, self.turn) {
                    Ok(found) => self.prepared(ticket, change, found),
                    Err(why) => self.failed(ticket, why),
                }
            }
            (Job::Act { change, .. }, Answer::Stale) => self.again(ticket, change),
            (Job::Read(_) | Job::List(_) | Job::Stat(_) | Job::Search(_) | Job::Act { .. }, Answer::Done(result)) => {
                self.close(ticket, Outcome::Ok(result));
            }
            (_, Answer::Done(_) | Answer::Prepared(_) | Answer::Stale) => {
                self.failed(ticket, "the process that works with files answered something else".to_owned());
            }
        }
    }

    /// What a change would do is known.
    fn prepared(&mut self, ticket: Ticket, change: Change, mut found: Found) {
        let Some(call) = self.calls.get_mut(&ticket) else { return };
        match std::mem::replace(&mut call.stage, Stage::Preparing) {
            Stage::Preparing => self.propose(ticket, change, found),
            Stage::Refreshing { before, runs } => {
                if runs {
                    // A grant covers what the machine knew; only that is done, and only if it is still the same.
                    call.stage = Stage::Acting;
                    self.act(ticket, change, before.state);
                } else if before.asks_the_same(&found) {
                    // The machine has the texts.
                    found.take_texts();
                    call.stage = Stage::Deciding(Box::new(Decided::Change(change, found)));
                } else {
                    self.changed_while_waiting(ticket, change, &before, found);
                }
            }
            other => call.stage = other,
        }
    }

    fn propose(&mut self, ticket: Ticket, change: Change, mut found: Found) {
        let (facts, difference, bytes) = found.take_texts();
        let others = self.calls.iter().filter(|(other, _)| **other != ticket);
        if others.map(|(_, call)| call.asking).sum::<usize>() + bytes > MOST_ASKED {
            let why =
                "the questions that wait hold too much already; try again when some of them are answered".to_owned();
            return self.close(ticket, Outcome::Failed(why));
        }
        if let Some(call) = self.calls.get_mut(&ticket) {
            call.asking = bytes;
        }
        let (digest, actions) = (found.digest, found.actions.clone());
        self.set_stage(ticket, Stage::Deciding(Box::new(Decided::Change(change, found))));
        self.decide(ticket, actions, facts, difference, digest);
    }

    /// A question waited, and meanwhile something else is there: it is another question now, for everybody who shared it.
    fn changed_while_waiting(&mut self, ticket: Ticket, change: Change, before: &Found, found: Found) {
        let shared: Vec<Ticket> = self
            .calls
            .iter()
            .filter(|(_, call)| match &call.stage {
                Stage::Deciding(decided) => {
                    matches!(&**decided, Decided::Change(_, known) if known.digest == before.digest)
                }
                _ => false,
            })
            .map(|(ticket, _)| *ticket)
            .collect();
        if let Some(ticket) = self.renew(ticket) {
            self.propose(ticket, change, found);
        }
        for other in shared {
            let Some(ticket) = self.renew(other) else { continue };
            let Some(call) = self.calls.get_mut(&ticket) else { continue };
            if let Stage::Deciding(decided) = std::mem::replace(&mut call.stage, Stage::Preparing)
                && let Decided::Change(change, _) = *decided
            {
                self.prepare(ticket, change);
            }
        }
    }

    /// A change was decided, and something else was there when it was to be done: nothing was done, and it is decided anew.
    fn again(&mut self, ticket: Ticket, change: Change) {
        let Some(call) = self.calls.get_mut(&ticket) else { return };
        call.rounds += 1;
        if call.rounds >= MOST_ROUNDS {
            let why = "what is there keeps changing; nothing was done".to_owned();
            return self.close(ticket, Outcome::Failed(why));
        }
        if let Some(ticket) = self.renew(ticket) {
            self.prepare(ticket, change);
        }
    }

    /// Gives a call another number, under which it can be decided anew; the machine forgets the old one.
    fn renew(&mut self, old: Ticket) -> Option<Ticket> {
        let call = self.calls.remove(&old)?;
        let ticket = self.ticket();
        if let Some(connection) = self.connections.get_mut(&call.connection) {
            connection.calls.insert(call.number, ticket);
        }
        self.calls.insert(ticket, call);
        self.forget(old);
        Some(ticket)
    }

    /// A call failed before or while it was carried out.
    fn failed(&mut self, ticket: Ticket, why: String) {
        let was_deciding = self.calls.get(&ticket).is_some_and(|call| matches!(call.stage, Stage::Refreshing { .. }));
        self.close(ticket, Outcome::Failed(why));
        if was_deciding {
            self.forget(ticket);
        }
    }

    /// A client no longer waits for a call.
    fn withdrawn(&mut self, ticket: Ticket, timed_out: bool) {
        let Some(call) = self.calls.get(&ticket) else { return };
        let is_deciding = matches!(call.stage, Stage::Deciding(_) | Stage::Refreshing { .. });
        self.drop_call(ticket);
        if is_deciding {
            self.step(Input::Cancelled { ticket, timed_out });
        }
    }

    /// A client is gone.
    pub(super) fn left(&mut self, id: u64) {
        let Some(connection) = self.connections.remove(&id) else { return };
        for ticket in connection.calls.values() {
            self.drop_call(*ticket);
        }
        drop(connection);
        self.is_gone(id);
    }

    fn is_gone(&mut self, id: u64) {
        self.step(Input::Disconnected { connection: id });
        self.errands.gone(id);
        if self.only == Some(id) {
            self.end_with(End::Left);
        }
    }

    /// Ends a connection and says why.
    pub(super) fn refuse(&mut self, id: u64, why: &str) {
        let refused = FromGate::Refused { why: why.to_owned() };
        if !self.connections.get(&id).is_some_and(|connection| connection.send(refused)) {
            return self.left(id);
        }
        let Some(mut connection) = self.connections.remove(&id) else { return };
        for ticket in std::mem::take(&mut connection.calls).into_values() {
            self.drop_call(ticket);
        }
        connection.finish();
        self.parting.insert(id, (connection, self.now() + PARTING));
        self.is_gone(id);
    }

    /// Sends a message to a client; one that does not take what it is sent is cut off.
    pub(super) fn send(&mut self, id: u64, message: FromGate) {
        if self.connections.get(&id).is_some_and(|connection| !connection.send(message)) {
            self.left(id);
        }
    }

    /// Ends a call with its result.
    pub(super) fn close(&mut self, ticket: Ticket, outcome: Outcome) {
        if let Some((connection, id)) = self.drop_call(ticket) {
            self.send(connection, FromGate::Done { id, outcome });
        }
    }

    /// Forgets a call; returns whose it was, if its client still waits for it.
    fn drop_call(&mut self, ticket: Ticket) -> Option<(u64, u64)> {
        let call = self.calls.remove(&ticket)?;
        self.held -= call.bytes;
        let may_wait = matches!(call.stage, Stage::Looking | Stage::Preparing | Stage::Refreshing { .. });
        if may_wait && !self.short.is_busy_with(ticket) && !self.search.is_busy_with(ticket) {
            self.short.withdraw(ticket);
            self.search.withdraw(ticket);
        }
        if matches!(call.stage, Stage::Errand) && !self.errands.is_busy_with(ticket) {
            self.errands.withdraw(ticket);
        }
        if let Some(connection) = self.connections.get_mut(&call.connection) {
            connection.calls.remove(&call.number);
        }
        Some((call.connection, call.number))
    }

    fn set_stage(&mut self, ticket: Ticket, stage: Stage) {
        if let Some(call) = self.calls.get_mut(&ticket) {
            call.stage = stage;
        }
    }
}
