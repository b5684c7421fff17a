//! The connection to the gate: one thread owns it, makes it anew when it is lost, and knows which call waits for what.
//!
//! Promise: a call is sent to the gate at most once. If the connection is lost before the gate said what came of it, it is
//! denied (gone), whatever was meant to happen next; only a call that could not be sent whole is sent again over a new
//! connection. No answer reaches a call other than its own.
//! Limit: a call that was being carried out when the gate died may have been carried out; nobody is left who knows.

use std::collections::HashMap;
use std::io::{self, BufReader, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc as blocking;
use std::thread;

use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use crate::gate::frame::{self, FrameError};
use crate::gate::wire::{FromClient, FromGate, Outcome, ToolInfo, VERSION};
use crate::text::escaped;

use super::notices::Notice;

/// How many bytes of the client's name are passed on.
const LONGEST_NAME: usize = 256;

/// The two directions of a connection.
pub type Streams = (Box<dyn Read + Send>, Box<dyn Write + Send>);

/// Makes connections to the gate of a root, or to whatever serves in its place.
pub trait Connector: Send {
    /// Makes one. Called again whenever the last one was lost, or [`Connector::knows_better`].
    fn connect(&mut self) -> io::Result<Streams>;

    /// Whether a connection made now would lead to something better than the last: to a gate that was not running then.
    /// Asked before a call while no other is under way, so it has to be quick.
    fn knows_better(&mut self) -> bool {
        false
    }

    /// Ends the last connection, so that whoever reads from it gets its end.
    fn hang_up(&mut self) {}
}

/// What the server gets for a call.
#[derive(Debug)]
pub enum Reply {
    /// What the gate said.
    Outcome(Outcome),
    /// The gate went away first.
    Gone,
    /// The call was withdrawn.
    Withdrawn,
    /// It was not sent; why.
    Unsent(String),
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
enum LinkError {
    /// Nobody could be reached.
    #[error("cannot reach the gate: {0}")]
    Connect(io::Error),
    /// The first message could not be sent.
    #[error("cannot talk to the gate: {0}")]
    Hello(io::Error),
    /// The first answer could not be read.
    #[error("the gate does not answer as a gate does: {0}")]
    Welcome(FrameError),
    /// The first answer is something else.
    #[error("the gate does not answer as a gate does")]
    NoWelcome,
    /// The gate is of another version of this program.
    #[error("the gate that runs here speaks version {0}, this client version {VERSION}; start the gate anew")]
    Version(u32),
    /// The gate does not serve this client.
    #[error("the gate does not serve this client: {0}")]
    Refused(String),
    /// No thread to read with.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

enum Order {
    Name(String),
    Tools(oneshot::Sender<Result<Vec<ToolInfo>, String>>),
    Call { id: u64, tool: String, arguments: Map<String, Value>, reply: oneshot::Sender<Reply> },
    Cancel { id: u64, timed_out: bool },
    Heard { connection: u64, message: Box<FromGate> },
    Lost { connection: u64 },
    Stop,
}

/// The server's end of the link.
pub struct Link {
    orders: blocking::Sender<Order>,
    last_id: AtomicU64,
}

impl Link {
    /// Starts the thread. It connects when there is something to say.
    pub fn start(
        connector: Box<dyn Connector>,
        unattended: bool,
        notices: mpsc::UnboundedSender<Notice>,
    ) -> io::Result<Self> {
        let (orders, received) = blocking::channel();
        let keeper = Keeper {
            connector,
            unattended,
            notices,
            orders: orders.clone(),
            name: None,
            connections: 0,
            connection: None,
            tools: None,
        };
        thread::Builder::new().name("mcp link".to_owned()).spawn(move || keeper.run(&received))?;
        Ok(Self { orders, last_id: AtomicU64::new(0) })
    }

    /// Says who the client is, and connects. Only the first name counts.
    pub fn name(&self, name: &str) {
        let end = (0..=LONGEST_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
        self.order(Order::Name(name[..end].to_owned()));
    }

    /// The tools there are.
    pub async fn tools(&self) -> Result<Vec<ToolInfo>, String> {
        let (reply, tools) = oneshot::channel();
        self.order(Order::Tools(reply));
        tools.await.unwrap_or_else(|_| Err("the link to the gate broke".to_owned()))
    }

    /// A number for a call: higher than any before.
    pub fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Calls a tool, under a number that is used once. Returns where the reply comes.
    pub fn call(&self, id: u64, tool: String, arguments: Map<String, Value>) -> oneshot::Receiver<Reply> {
        let (reply, replied) = oneshot::channel();
        self.order(Order::Call { id, tool, arguments, reply });
        replied
    }

    /// Withdraws a call.
    pub fn cancel(&self, id: u64, timed_out: bool) {
        self.order(Order::Cancel { id, timed_out });
    }

    fn order(&self, order: Order) {
        // Without its thread the reply's other end is gone, too, and whoever waits for it is told.
        let _ = self.orders.send(order);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.order(Order::Stop);
    }
}

struct Connection {
    number: u64,
    writer: Box<dyn Write + Send>,
    waiting: HashMap<u64, oneshot::Sender<Reply>>,
    was_used: bool,
}

struct Keeper {
    connector: Box<dyn Connector>,
    unattended: bool,
    notices: mpsc::UnboundedSender<Notice>,
    orders: blocking::Sender<Order>,
    name: Option<String>,
    connections: u64,
    connection: Option<Connection>,
    /// The tools of the last connection.
    tools: Option<Vec<ToolInfo>>,
}

impl Keeper {
    fn run(mut self, orders: &blocking::Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            match order {
                Order::Name(name) => self.introduce(name),
                Order::Tools(reply) => {
                    let tools = self.connected().map(|_| ()).map_err(|error| told(&error));
                    let tools = tools.map(|()| self.tools.clone().unwrap_or_default());
                    // Whoever asked may no longer wait; so everywhere below.
                    let _ = reply.send(tools);
                }
                Order::Call { id, tool, arguments, reply } => self.call(id, tool, arguments, reply),
                Order::Cancel { id, timed_out } => self.cancel(id, timed_out),
                Order::Heard { connection, message } if self.is_current(connection) => self.heard(*message),
                Order::Lost { connection } if self.is_current(connection) => self.lose(),
                // From a connection that was given up meanwhile.
                Order::Heard { .. } | Order::Lost { .. } => {}
                Order::Stop => {
                    self.lose();
                    return;
                }
            }
        }
    }

    fn is_current(&self, connection: u64) -> bool {
        self.connection.as_ref().is_some_and(|current| current.number == connection)
    }

    fn introduce(&mut self, name: String) {
        if self.name.is_some() {
            return;
        }
        self.name = Some(name.clone());
        match &mut self.connection {
            Some(connection) if connection.was_used => {}
            Some(connection) => {
                if frame::write(&mut connection.writer, &FromClient::Name { name }).is_err() {
                    self.lose();
                }
            }
            // So that the first call need not wait for it. Why it fails, that call will be told.
            None => drop(self.connected()),
        }
    }

    /// The connection, made anew if there is none or a better one can be had.
    fn connected(&mut self) -> Result<&mut Connection, LinkError> {
        let is_idle = self.connection.as_ref().is_some_and(|connection| connection.waiting.is_empty());
        if is_idle && self.connector.knows_better() {
            self.lose();
        }
        if self.connection.is_none() {
            let connection = self.connect()?;
            self.connection = Some(connection);
        }
        Ok(self.connection.as_mut().expect("it was made just now"))
    }

    fn connect(&mut self) -> Result<Connection, LinkError> {
        let (reader, mut writer) = self.connector.connect().map_err(LinkError::Connect)?;
        let mut reader = BufReader::new(reader);
        let made = self.greet(&mut reader, &mut *writer);
        let tools = made.inspect_err(|_| self.connector.hang_up())?;
        self.connections += 1;
        let number = self.connections;
        let orders = self.orders.clone();
        let listen = move || listen(number, &mut reader, &orders);
        thread::Builder::new().name("mcp listener".to_owned()).spawn(listen).map_err(LinkError::Thread)?;
        if self.tools.as_ref().is_some_and(|known| *known != tools) {
            // Nobody who could be told is left only when the whole server ends.
            let _ = self.notices.send(Notice::ToolsChanged);
        }
        self.tools = Some(tools);
        Ok(Connection { number, writer, waiting: HashMap::new(), was_used: false })
    }

    fn greet(&self, reader: &mut impl Read, mut writer: &mut dyn Write) -> Result<Vec<ToolInfo>, LinkError> {
        let hello = FromClient::Hello { version: VERSION, unattended: self.unattended };
        frame::write(&mut writer, &hello).map_err(LinkError::Hello)?;
        let answer: FromGate = frame::read(reader).map_err(LinkError::Welcome)?;
        match answer {
            FromGate::Welcome { version: VERSION, tools } => {
                if let Some(name) = self.name.clone() {
                    frame::write(&mut writer, &FromClient::Name { name }).map_err(LinkError::Hello)?;
                }
                Ok(tools)
            }
            FromGate::Welcome { version, .. } => Err(LinkError::Version(version)),
            FromGate::Refused { why } => Err(LinkError::Refused(why)),
            _ => Err(LinkError::NoWelcome),
        }
    }

    fn call(&mut self, id: u64, tool: String, arguments: Map<String, Value>, reply: oneshot::Sender<Reply>) {
        let call = FromClient::Call { id, tool, arguments };
        let mut error = None;
        // Twice: the gate may have gone since the last call without our having heard of it. A gate gets nothing of a
        // message whose end it did not get, so that what failed to be sent was not carried out.
        for _attempt in 0..2 {
            let connection = match self.connected() {
                Ok(connection) => connection,
                Err(why) => {
                    error = Some(told(&why));
                    break;
                }
            };
            match frame::write(&mut connection.writer, &call) {
                Ok(()) => {
                    connection.was_used = true;
                    connection.waiting.insert(id, reply);
                    return;
                }
                Err(why) if why.kind() == io::ErrorKind::InvalidInput => {
                    error = Some("the arguments are longer than any may be".to_owned());
                    break;
                }
                Err(why) => {
                    error = Some(told(&LinkError::Hello(why)));
                    self.lose();
                }
            }
        }
        let _ = reply.send(Reply::Unsent(error.unwrap_or_default()));
    }

    fn cancel(&mut self, id: u64, timed_out: bool) {
        let Some(connection) = &mut self.connection else { return };
        // What has its result cannot be withdrawn.
        let Some(reply) = connection.waiting.remove(&id) else { return };
        let _ = reply.send(Reply::Withdrawn);
        if frame::write(&mut connection.writer, &FromClient::Cancel { id, timed_out }).is_err() {
            self.lose();
        }
    }

    fn heard(&mut self, message: FromGate) {
        match message {
            FromGate::Done { id, outcome } => {
                let waiting = self.connection.as_mut().and_then(|connection| connection.waiting.remove(&id));
                // A call that was withdrawn has nobody who waits for it.
                if let Some(reply) = waiting {
                    let _ = reply.send(Reply::Outcome(outcome));
                }
            }
            FromGate::Wake { note } => {
                let _ = self.notices.send(Notice::Wake(note));
            }
            // Nothing that a gate says to this client at this point.
            FromGate::Welcome { .. } | FromGate::Refused { .. } | FromGate::SessionGrants { .. } => self.lose(),
        }
    }

    /// Gives the connection up. Whatever waits is denied.
    fn lose(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.connector.hang_up();
            for reply in connection.waiting.into_values() {
                let _ = reply.send(Reply::Gone);
            }
        }
    }
}

fn listen(connection: u64, reader: &mut impl Read, orders: &blocking::Sender<Order>) {
    while let Ok(message) = frame::read(reader) {
        if orders.send(Order::Heard { connection, message: Box::new(message) }).is_err() {
            return;
        }
    }
    let _ = orders.send(Order::Lost { connection });
}

/// For the agent: what the gate and the system said is in it.
fn told(error: &LinkError) -> String {
    escaped(error.to_string().as_bytes())
}
