//! `keep mcp`: this process's standard input and output become an MCP server.
//!
//! Promise: nothing but JSON-RPC comes out on standard output; what there is to say to people goes to standard error.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use platform::SystemClock;

use crate::gate::mcp::{self, Connector, PROGRESS_EVERY, Settings};

use super::exit::{Exit, causes};

/// Serves the client on standard input and output until it goes away, over the gate that `connector` finds. Returns the
/// exit code.
pub fn serve(connector: Box<dyn Connector>, unattended: bool) -> u8 {
    if io::stdin().is_terminal() {
        super::say("keep mcp: waiting for JSON-RPC; this is for an agent's configuration, see docs/clients.md");
    }
    let settings = Settings { unattended, progress_every: PROGRESS_EVERY };
    let served = mcp::run(Box::new(io::stdin()), Box::new(io::stdout()), connector, Arc::new(SystemClock), settings);
    match served {
        Ok(()) => Exit::Clean.code(),
        Err(error) => {
            super::say(&format!("keep mcp: {}", causes(&error)));
            Exit::Broke.code()
        }
    }
}
