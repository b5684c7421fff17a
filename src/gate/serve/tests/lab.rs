//! A gate in a thread, and what stands around it.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use platform::terminal::InputEvent;
use platform::{Clock, LocalStream, Moment, SystemClock};
use serde_json::{Map, Value, json};

use super::super::parts::Due;
use super::super::*;
use crate::gate::Tool;
use crate::gate::audit::AuditEvent;
use crate::gate::files::{Answer, Change, Job, Prepared};
use crate::gate::frame;
use crate::gate::machine::{Choice, Machine, Question, Settings, Ticket};
use crate::gate::pattern::Grant;
use crate::gate::policy::Policy;
use crate::gate::tools::Request;
use crate::gate::wire::{FromClient, FromGate, Outcome, ToolInfo, VERSION};

/// Nothing here takes that long unless it never comes.
pub(super) const WITHIN: Duration = Duration::from_secs(20);

/// What the person saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    Question { target: String, facts: Vec<String>, waiting: usize },
    Settled(String),
    Line(String),
    Finished,
}

struct ScriptedBoard {
    seen: Sender<Seen>,
    question: Option<Question>,
}

impl Board for ScriptedBoard {
    fn show(&mut self, question: &Question, waiting: usize) {
        self.question = Some(question.clone());
        let (target, facts) = (question.action.to_string(), question.call.facts.clone());
        let _ = self.seen.send(Seen::Question { target, facts, waiting });
    }
    fn settled(&mut self, line: &str) {
        assert!(self.question.take().is_some(), "nothing was on the screen: {line}");
        let _ = self.seen.send(Seen::Settled(line.to_owned()));
    }
    fn line(&mut self, line: &str) {
        let _ = self.seen.send(Seen::Line(line.to_owned()));
    }
    fn key(&mut self, bytes: &[u8], _at: Moment) -> Option<GateKey> {
        let choice = match bytes {
            b"o" => Choice::Once,
            b"s" => Choice::Session,
            b"a" => Choice::Always,
            b"w" => Choice::WidenSession,
            b"n" => return Some(GateKey::No),
            b"\x03" => return Some(GateKey::Interrupt),
            _ => return None,
        };
        let offers = &self.question.as_ref()?.offers;
        offers.iter().find(|offer| offer.choice == choice).map(|offer| GateKey::Offer(offer.id))
    }
    fn finish(&mut self) {
        let _ = self.seen.send(Seen::Finished);
    }
}

/// Files that are a map; each change makes another version of its file.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: BTreeMap<String, (String, u64)>,
    versions: u64,
    /// Jobs in the order they were done.
    pub(super) done: Vec<String>,
    /// Searches wait while this is set.
    pub(super) searches_wait: bool,
    /// Changes wait while this is set.
    pub(super) changes_wait: bool,
    /// Chores wait while this is set.
    pub(super) chores_wait: bool,
    /// Whose chores have begun, in order.
    pub(super) chores: Vec<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Shared<T>(Arc<(Mutex<T>, Condvar)>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Shared<T> {
    pub(super) fn look(&self) -> MutexGuard<'_, T> {
        self.0.0.lock().expect("no holder panics")
    }
    pub(super) fn set(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.look());
        self.0.1.notify_all();
    }
    pub(super) fn wait_while(&self, condition: impl FnMut(&mut T) -> bool) -> MutexGuard<'_, T> {
        self.0.1.wait_timeout_while(self.look(), WITHIN, condition).expect("no holder panics").0
    }
}

impl Tree {
    pub(super) fn put(&mut self, path: &str, content: &str) {
        self.versions += 1;
        self.files.insert(path.to_owned(), (content.to_owned(), self.versions));
    }

    fn state(&self, path: &str) -> String {
        self.files.get(path).map_or_else(|| "nothing".to_owned(), |(_, version)| version.to_string())
    }
}

struct ScriptedHands(Shared<Tree>);

impl Hands for ScriptedHands {
    fn run(&mut self, job: &Job) -> Result<Answer, String> {
        let mut tree = match job {
            Job::Search(_) => self.0.wait_while(|tree| tree.searches_wait),
            Job::Act { .. } => self.0.wait_while(|tree| tree.changes_wait),
            _ => self.0.look(),
        };
        let answer = match job {
            Job::Read(read) if read.path == "deadly" => return Err("the worker died".to_owned()),
            Job::Read(read) => match tree.files.get(&read.path) {
                Some((content, _)) => Answer::Done(object(json!({"content": content}))),
                None => Answer::Failed(format!("{} does not exist", read.path)),
            },
            Job::Search(_) => Answer::Done(object(json!({"hits": []}))),
            Job::Prepare(Change::Write(write)) => {
                let fact = if tree.files.contains_key(&write.path) { "overwrite" } else { "create" };
                Answer::Prepared(Prepared {
                    paths: vec![write.path.clone()],
                    facts: vec![format!("{fact}, {} bytes", write.content.len())],
                    difference: vec!["x".repeat(if write.path.starts_with("wide/") { 1 << 20 } else { 1 })],
                    state: tree.state(&write.path),
                    after: Vec::new(),
                })
            }
            Job::Act { change: Change::Write(write), state } => {
                let is_there = tree.files.get(&write.path).is_some_and(|(content, _)| *content == write.content);
                if !is_there && tree.state(&write.path) != *state {
                    Answer::Stale
                } else {
                    tree.put(&write.path, &write.content);
                    tree.done.push(format!("{} = {}", write.path, write.content));
                    Answer::Done(object(json!({"path": write.path})))
                }
            }
            other => Answer::Failed(format!("not in this script: {other:?}")),
        };
        drop(tree);
        self.0.0.1.notify_all();
        Ok(answer)
    }
    fn confinement(&self) -> Vec<String> {
        vec!["scripted".to_owned()]
    }
    fn missing(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The books, on a disk that can be full.
#[derive(Debug, Default)]
pub(super) struct Paper {
    pub(super) grants: Vec<Grant>,
    pub(super) changed: bool,
    pub(super) fault: Option<String>,
    pub(super) no_room_for_grants: bool,
    pub(super) no_room_for_audit: bool,
    pub(super) audit: Vec<AuditEvent>,
    /// What the watch beside it was told.
    pub(super) told: Vec<String>,
}

struct ScriptedBooks(Shared<Paper>);

impl Books for ScriptedBooks {
    fn grants(&mut self) -> Option<Reading> {
        let mut paper = self.0.look();
        let changed = std::mem::take(&mut paper.changed) || paper.fault.is_some();
        changed.then(|| Reading { grants: paper.grants.clone(), fault: paper.fault.clone() })
    }
    fn remember(&mut self, grants: &[Grant]) -> Result<(), String> {
        let mut paper = self.0.look();
        if paper.no_room_for_grants {
            return Err("no space left on device".to_owned());
        }
        paper.grants.extend_from_slice(grants);
        paper.changed = true;
        Ok(())
    }
    fn write(&mut self, event: &AuditEvent, _at: SystemTime) -> Result<(), String> {
        let mut paper = self.0.look();
        if paper.no_room_for_audit {
            return Err("no space left on device".to_owned());
        }
        paper.audit.push(event.clone());
        drop(paper);
        self.0.0.1.notify_all();
        Ok(())
    }
}

/// A watch that notes what it is told.
struct ScriptedWatch(Shared<Paper>);

impl Watch for ScriptedWatch {
    fn expect(&mut self, _ticket: Ticket, coming: Vec<Coming>) {
        self.0.set(|paper| {
            for Coming { path, content } in coming {
                let content = content.map_or_else(|| "absent".to_owned(), |digest| digest.short());
                paper.told.push(format!("{} {content}", path.as_str()));
            }
        });
    }
    fn is_over(&mut self, _ticket: Ticket, was_done: bool) {
        self.0.set(|paper| paper.told.push(if was_done { "done" } else { "not done" }.to_owned()));
    }
}

struct ScriptedChores(Vec<Due>, Shared<Tree>);

impl Chores for ScriptedChores {
    fn run(
        &mut self,
        request: &Request,
        connection: u64,
        _: SystemTime,
        _: Moment,
    ) -> Result<Map<String, Value>, String> {
        self.1.set(|tree| tree.chores.push(connection));
        drop(self.1.wait_while(|tree| tree.chores_wait));
        match request {
            Request::Wake(wake) => self.0.push(Due::Wake { connection, note: wake.note.clone() }),
            Request::Remind(remind) => {
                let (title, message) = ("reminder".to_owned(), remind.message.clone());
                self.0.push(Due::Notify { title, message });
            }
            Request::SkillLoad(_) => return Err("no such skill".to_owned()),
            _ => {}
        }
        Ok(object(json!({"done": true})))
    }
    fn wake_at(&self, _: SystemTime, _: Moment) -> Option<SystemTime> {
        None
    }
    fn due(&mut self, _: SystemTime, _: Moment) -> Vec<Due> {
        std::mem::take(&mut self.0)
    }
    fn gone(&mut self, _: u64) {}
}

/// How a gate of these tests is made.
pub(super) struct Wish {
    pub(super) guarded: bool,
    pub(super) has_terminal: bool,
    pub(super) tools: Vec<Tool>,
    pub(super) ask_timeout: Duration,
    /// The gate serves one client, which is returned with it.
    pub(super) only: bool,
}

impl Default for Wish {
    fn default() -> Self {
        let tools = Tool::all().collect();
        Self { guarded: false, has_terminal: true, tools, ask_timeout: Duration::from_secs(60), only: false }
    }
}

/// A running gate.
pub(super) struct Lab {
    pub(super) tree: Shared<Tree>,
    pub(super) paper: Shared<Paper>,
    pub(super) to_core: Sender<Message>,
    pub(super) doors: Doors,
    pub(super) woken: Receiver<String>,
    pub(super) first: Option<Client>,
    seen: Receiver<Seen>,
    thread: Option<JoinHandle<End>>,
}

pub(super) fn lab() -> Lab {
    made(Wish::default())
}

pub(super) fn made(wish: Wish) -> Lab {
    let (to_core, messages) = channel();
    let (see, seen) = channel();
    let (wake, woken) = channel();
    let (tree, paper): (Shared<Tree>, Shared<Paper>) = Default::default();
    let hands = |tree: &Shared<Tree>| -> super::super::parts::MakeHands {
        let tree = tree.clone();
        Box::new(move || Ok(Box::new(ScriptedHands(tree)) as Box<dyn Hands>))
    };
    let chores = tree.clone();
    let mut next = 0_u128;
    let ids = move || {
        next += 1;
        next.to_le_bytes()
    };
    let settings = Settings { ask_timeout: wish.ask_timeout, guarded: wish.guarded, has_terminal: wish.has_terminal };
    let parts = Parts {
        tools: wish.tools.into_iter().map(|tool| (tool, tool_info(tool))).collect(),
        machine: Machine::new(Policy::default(), settings, Box::new(ids)),
        books: Box::new(ScriptedBooks(paper.clone())),
        hands: hands(&tree),
        searcher: hands(&tree),
        chores: Box::new(move || Ok(Box::new(ScriptedChores(Vec::new(), chores)))),
        around: Surroundings {
            board: Box::new(ScriptedBoard { seen: see, question: None }),
            herald: Herald::default(),
            on_wake: Some(Box::new(move |note| {
                let _ = wake.send(note.to_owned());
            })),
            watch: Some(Box::new(ScriptedWatch(paper.clone()))),
            clock: Arc::new(SystemClock),
            messages,
            to_core: to_core.clone(),
        },
    };
    let mut gate = Gate::start(parts, "gate").expect("starts");
    assert_eq!(gate.confinement(), ["scripted"]);
    let first = wish.only.then(|| {
        let (ours, theirs) = LocalStream::pair().expect("a pair");
        gate.serve_only(ours).expect("a thread");
        Client::new(theirs)
    });
    let thread = std::thread::spawn(move || gate.run());
    let doors = Doors::new(to_core.clone());
    Lab { tree, paper, to_core, doors, woken, first, seen, thread: Some(thread) }
}

fn tool_info(tool: Tool) -> ToolInfo {
    ToolInfo {
        name: tool.name().to_owned(),
        description: "scripted".to_owned(),
        input_schema: Map::new(),
        read_only: tool.is_read_only(),
        destructive: tool.is_destructive(),
    }
}

impl Lab {
    /// A client that has said hello.
    pub(super) fn client(&self) -> Client {
        let mut client = self.stranger();
        client.hello(false);
        client
    }

    /// A client that has said nothing yet.
    pub(super) fn stranger(&self) -> Client {
        let (ours, theirs) = LocalStream::pair().expect("a pair");
        assert!(self.doors.enter(ours));
        Client::new(theirs)
    }

    pub(super) fn press(&self, key: &[u8]) {
        let event = InputEvent::Bytes { bytes: key.to_vec(), at: SystemClock.now() };
        self.to_core.send(Message::Input(event)).expect("the gate runs");
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen.recv_timeout(WITHIN).expect("something is seen")
    }

    /// The next question, whatever was said before it.
    pub(super) fn question(&self) -> (String, Vec<String>) {
        loop {
            if let Seen::Question { target, facts, .. } = self.seen() {
                return (target, facts);
            }
        }
    }

    /// The next question about something else than another number of waiting ones.
    pub(super) fn question_about(&self, wanted: &str) -> Vec<String> {
        let (target, facts) = self.question();
        assert_eq!(target, wanted);
        facts
    }

    /// How the question on the screen ended.
    pub(super) fn settled(&self) -> String {
        loop {
            match self.seen() {
                Seen::Settled(line) => return line,
                Seen::Question { waiting, .. } => assert!(waiting > 0, "another question came first"),
                _ => {}
            }
        }
    }

    pub(super) fn line_with(&self, word: &str) -> String {
        loop {
            match self.seen() {
                Seen::Line(line) if line.contains(word) => return line,
                _ => {}
            }
        }
    }

    /// Nothing is on the screen that was not looked at.
    pub(super) fn nothing_seen(&self) {
        if let Ok(seen) = self.seen.recv_timeout(Duration::from_millis(100)) {
            panic!("{seen:?}");
        }
    }

    pub(super) fn content(&self, path: &str) -> Option<String> {
        self.tree.look().files.get(path).map(|(content, _)| content.clone())
    }

    pub(super) fn ended(&mut self) -> End {
        self.thread.take().expect("it is waited for once").join().expect("no panic")
    }

    pub(super) fn end(&self) {
        self.to_core.send(Message::Signal(platform::Signal::Terminate)).expect("the gate runs");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.to_core.send(Message::Signal(platform::Signal::Terminate));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(std::thread::panicking() || ended.is_ok(), "the gate panicked");
        }
    }
}

/// A client.
pub(super) struct Client {
    pub(super) stream: Option<LocalStream>,
    heard: Receiver<FromGate>,
    kept: Vec<FromGate>,
    last: u64,
}

impl Client {
    fn new(stream: LocalStream) -> Self {
        let (sender, heard) = channel();
        let reading = stream.try_clone().expect("a descriptor");
        std::thread::spawn(move || {
            let mut reading = std::io::BufReader::new(&reading);
            while let Ok(message) = frame::read::<FromGate>(&mut reading) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self { stream: Some(stream), heard, kept: Vec::new(), last: 0 }
    }

    /// A client that never reads.
    pub(super) fn deaf(lab: &Lab) -> LocalStream {
        let (ours, theirs) = LocalStream::pair().expect("a pair");
        assert!(lab.doors.enter(ours));
        frame::write(&mut &theirs, &FromClient::Hello { version: VERSION, unattended: false }).expect("writes");
        theirs
    }

    pub(super) fn say(&mut self, message: &FromClient) {
        let stream = self.stream.as_ref().expect("it is connected");
        frame::write(&mut &*stream, message).expect("writes");
    }

    pub(super) fn hello(&mut self, unattended: bool) -> Vec<ToolInfo> {
        self.say(&FromClient::Hello { version: VERSION, unattended });
        match self.hear() {
            FromGate::Welcome { version: VERSION, tools } => tools,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn hear(&mut self) -> FromGate {
        self.heard.recv_timeout(WITHIN).expect("the gate says something")
    }

    /// Whether the gate ends the connection, after what it had to say.
    pub(super) fn hears_the_end(&mut self) -> Vec<FromGate> {
        let mut last = Vec::new();
        loop {
            match self.heard.recv_timeout(WITHIN) {
                Ok(message) => last.push(message),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return last,
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(super) fn start(&mut self, tool: &str, arguments: Value) -> u64 {
        self.last += 1;
        let call = FromClient::Call { id: self.last, tool: tool.to_owned(), arguments: object(arguments) };
        self.say(&call);
        self.last
    }

    pub(super) fn write(&mut self, path: &str, content: &str) -> u64 {
        self.start("file_write", json!({"path": path, "content": content}))
    }

    pub(super) fn outcome(&mut self, wanted: u64) -> Outcome {
        let is_it = |message: &FromGate| matches!(message, FromGate::Done { id, .. } if *id == wanted);
        if let Some(at) = self.kept.iter().position(is_it)
            && let FromGate::Done { outcome, .. } = self.kept.remove(at)
        {
            return outcome;
        }
        loop {
            match self.hear() {
                FromGate::Done { id, outcome } if id == wanted => return outcome,
                other => self.kept.push(other),
            }
        }
    }

    pub(super) fn works(&mut self, call: u64) -> Map<String, Value> {
        match self.outcome(call) {
            Outcome::Ok(result) => result,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn fails(&mut self, call: u64) -> String {
        match self.outcome(call) {
            Outcome::Failed(why) => why,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn denied(&mut self, call: u64) -> &'static str {
        match self.outcome(call) {
            Outcome::Denied { denial, .. } => denial.name(),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Outcome {
        let call = self.start(tool, arguments);
        self.outcome(call)
    }

    /// Nothing comes for a call.
    pub(super) fn hears_nothing(&mut self) {
        assert!(self.kept.is_empty(), "{:?}", self.kept);
        if let Ok(message) = self.heard.recv_timeout(Duration::from_millis(100)) {
            panic!("{message:?}");
        }
    }

    /// Goes away.
    pub(super) fn leave(mut self) {
        self.stream.take().expect("it is connected").shut_down();
    }
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("an object: {other}"),
    }
}
