//! Standard input and output as a transport of the SDK's.
//!
//! A thread reads and understands lines, another one writes them; between them and the server there is a queue each, so
//! that neither a client that sends 128 MiB nor one that does not read holds up anything else.
//!
//! Promise: what is written is one JSON-RPC message a line, in the order it was sent, and nothing else. While much is
//! unread, no further line is taken, so that a client that does not read cannot make this process grow without end.
//! Limit: what is under way by then may still add its results.

use std::future::{Future, pending, ready};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc as blocking;
use std::thread;

use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use serde::Serialize;
use tokio::sync::{Notify, mpsc, oneshot};

use super::intake::{self, Taken};
use super::lines::{Line, Lines, MAX_LINE};

/// How much may be unread before no further line is taken.
const MAX_UNREAD: usize = 64 << 20;
/// How many messages are understood ahead of the server.
const AHEAD: usize = 16;

/// Whether the client is there.
#[derive(Debug, Default)]
pub struct Client {
    gone: Notify,
    is_deaf: AtomicBool,
}

impl Client {
    /// Waits until it sends no more, or cannot be written to. For one waiter.
    pub async fn gone(&self) {
        self.gone.notified().await;
    }

    /// Whether nothing can be written to it.
    pub fn is_deaf(&self) -> bool {
        self.is_deaf.load(Ordering::Relaxed)
    }

    fn went_deaf(&self) {
        self.is_deaf.store(true, Ordering::Relaxed);
        self.gone.notify_one();
    }
}

/// What is written and not yet taken by the client.
#[derive(Debug, Default)]
struct Unread {
    bytes: AtomicUsize,
    shrank: Notify,
}

impl Unread {
    /// Waits until there is little enough of it. For one waiter.
    async fn is_little(&self) {
        while self.bytes.load(Ordering::Relaxed) > MAX_UNREAD {
            self.shrank.notified().await;
        }
    }
}

/// The client, as the SDK sees it.
pub struct Stdio {
    incoming: mpsc::Receiver<Taken>,
    outgoing: Option<blocking::Sender<Vec<u8>>>,
    unread: Arc<Unread>,
    client: Arc<Client>,
}

impl Stdio {
    /// Starts the two threads. What is returned beside it says that everything was written, once the transport is gone.
    pub fn start(
        input: Box<dyn Read + Send>,
        output: Box<dyn Write + Send>,
        client: Arc<Client>,
    ) -> io::Result<(Self, oneshot::Receiver<()>)> {
        let (taken, incoming) = mpsc::channel(AHEAD);
        thread::Builder::new().name("mcp input".to_owned()).spawn(move || read(input, &taken))?;
        let (outgoing, lines) = blocking::channel();
        let (all_written, written) = oneshot::channel();
        let unread = Arc::new(Unread::default());
        let (writing, listener) = (Arc::clone(&unread), Arc::clone(&client));
        thread::Builder::new().name("mcp output".to_owned()).spawn(move || {
            write(output, &lines, &writing, &listener);
            // Whoever waited for it may have given up.
            let _ = all_written.send(());
        })?;
        Ok((Self { incoming, outgoing: Some(outgoing), unread, client }, written))
    }

    fn write(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let bytes = line.len();
        let outgoing = self.outgoing.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        self.unread.bytes.fetch_add(bytes, Ordering::Relaxed);
        outgoing.send(line).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

impl Transport<RoleServer> for Stdio {
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        // Queued before the future is polled: whoever polls, and when, does not change the order.
        ready(self.write(&message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            // Nothing is lost if this is dropped at any of its waits: what was received is returned or answered at once.
            self.unread.is_little().await;
            match self.incoming.recv().await {
                Some(Taken::Message(message)) => return Some(*message),
                Some(Taken::Reply(reply)) => {
                    // One that cannot be written to is told apart where it is written.
                    let _ = self.write(&reply);
                }
                None => {
                    self.client.gone.notify_one();
                    // The SDK would wait for every call by itself. What becomes of them is decided where they are kept.
                    pending::<()>().await;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.outgoing = None;
        Ok(())
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        // Whatever ended the server: nobody serves this client any more.
        self.client.gone.notify_one();
    }
}

/// Reads lines until the end; dropping `taken` says so.
fn read(mut input: Box<dyn Read + Send>, taken: &mpsc::Sender<Taken>) {
    let mut lines = Lines::new(MAX_LINE);
    let mut chunk = vec![0; 64 << 10];
    loop {
        let read = match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // One that cannot be read is one that has gone.
            Err(_) => return,
        };
        let mut is_wanted = true;
        lines.push(&chunk[..read], |line| {
            let found = match line {
                Line::Whole(line) => intake::take(&line),
                Line::TooLong => vec![intake::too_long()],
            };
            is_wanted = is_wanted && found.into_iter().all(|found| taken.blocking_send(found).is_ok());
        });
        if !is_wanted {
            return;
        }
    }
    // A last line without its end is a line all the same: `printf` writes such.
    for found in lines.rest().map(|line| intake::take(&line)).unwrap_or_default() {
        if taken.blocking_send(found).is_err() {
            return;
        }
    }
}

/// Writes lines until there is nothing more to come, or nobody who reads.
fn write(mut output: Box<dyn Write + Send>, lines: &blocking::Receiver<Vec<u8>>, unread: &Unread, client: &Client) {
    for line in lines {
        if output.write_all(&line).and_then(|()| output.flush()).is_err() {
            client.went_deaf();
            return;
        }
        unread.bytes.fetch_sub(line.len(), Ordering::Relaxed);
        unread.shrank.notify_one();
    }
}
