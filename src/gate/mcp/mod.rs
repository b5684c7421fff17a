//! `keep mcp`: the program that an agent's configuration names. It speaks the Model Context Protocol on standard input and
//! output, and passes calls on to the gate of its root.
//!
//! Promise: it decides nothing and answers nothing itself: what is allowed, the gate says. A gate that goes away denies
//! what waits, and the next call finds the next gate, or what serves in its place. A client that goes away takes its calls
//! with it, and this process ends.
//! Limit: whoever can write to this process's standard input is the agent; nothing here tells agents apart.

mod calls;
mod intake;
mod lines;
mod link;
mod notices;
mod results;
mod server;
mod transport;

#[cfg(test)]
mod tests;

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use platform::Clock;
use rmcp::service::{RoleServer, serve_directly};
use tokio::sync::mpsc;

use calls::Calls;
use link::Link;
use notices::Threshold;
use server::Server;
use transport::{Client, Stdio};

pub use link::{Connector, Streams};

/// How long a call waits between two messages about its progress.
pub const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// How long a call may still take when the client sends no more. One that has waited longer waits for a person, and is
/// withdrawn at once; a script that writes its calls and closes the pipe gets its results.
const LAST_CALLS: Duration = Duration::from_secs(1);
/// How long the last results may take to be written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How to serve.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Whether nobody watches this client.
    pub unattended: bool,
    /// How long a call waits between two messages about its progress; [`PROGRESS_EVERY`].
    pub progress_every: Duration,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The runtime that the SDK needs could not be made.
    #[error("cannot make an event loop")]
    Runtime(#[source] io::Error),
    /// A thread could not be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// Serves one client until it goes away.
pub fn run(
    input: Box<dyn Read + Send>,
    output: Box<dyn Write + Send>,
    connector: Box<dyn Connector>,
    clock: Arc<dyn Clock>,
    settings: Settings,
) -> Result<(), McpError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(McpError::Runtime)?;
    let served = runtime.block_on(serve(input, output, connector, clock, settings));
    // What is left is a call that nobody waits for.
    runtime.shutdown_background();
    served
}

async fn serve(
    input: Box<dyn Read + Send>,
    output: Box<dyn Write + Send>,
    connector: Box<dyn Connector>,
    clock: Arc<dyn Clock>,
    settings: Settings,
) -> Result<(), McpError> {
    let (notices, noticed) = mpsc::unbounded_channel();
    let link = Arc::new(Link::start(connector, settings.unattended, notices).map_err(McpError::Thread)?);
    let client = Arc::new(Client::default());
    let (stdio, all_written) = Stdio::start(input, output, Arc::clone(&client)).map_err(McpError::Thread)?;
    let (calls, threshold) = (Arc::new(Calls::default()), Threshold::default());
    let server = Server {
        link: Arc::clone(&link),
        calls: Arc::clone(&calls),
        threshold: threshold.clone(),
        clock: Arc::clone(&clock),
        progress_every: settings.progress_every,
    };
    // Not with the SDK's own opening: that ends the server when the first message is anything but `initialize`.
    let mut service = serve_directly::<RoleServer, _, _, _, _>(server, stdio, None);
    tokio::spawn(notices::pass_on(noticed, service.peer().clone(), threshold));

    client.gone().await;
    if !client.is_deaf() {
        // Tasks run in the order they were made in: with this one done, every call that was received has begun.
        let _ = tokio::spawn(async {}).await;
        for id in calls.withdraw_older(LAST_CALLS, clock.now()) {
            link.cancel(id, false);
        }
        // Over time or not: the end of this process ends its connection, and with it whatever is under way.
        let _ = tokio::time::timeout(LAST_CALLS, calls.none()).await;
    }
    let _ = service.close_with_timeout(LAST_WORDS).await;
    let _ = tokio::time::timeout(LAST_WORDS, all_written).await;
    Ok(())
}
