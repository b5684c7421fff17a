//! Where `keep mcp` gets its connection: the gate of the root if one runs, else a strict one in this process.
//!
//! Promise: only where nobody listens is a strict gate taken; a gate that cannot be reached for another reason is an error,
//! and so is a policy that cannot be read.

use std::io;

use platform::environment::Environment;
use platform::{LocalStream, local_socket};

use crate::gate::mcp::{Connector, Streams};

use super::exit::{Refusal, causes};
use super::gate_site::{SOCKET, Site, strict};

/// Connects to the gate of a root.
pub struct GateConnector {
    site: Site,
    environment: Environment,
    /// A gate that was found to be there, for the next connection.
    found: Option<LocalStream>,
    last: Option<Last>,
}

struct Last {
    stream: LocalStream,
    is_gate: bool,
}

impl GateConnector {
    /// For the root of a site.
    pub fn new(site: Site, environment: Environment) -> Self {
        Self { site, environment, found: None, last: None }
    }

    fn gate(&self) -> io::Result<Option<LocalStream>> {
        let control = &self.site.control;
        local_socket::connect(control.dir(), control.path(), SOCKET).map_err(|error| io::Error::other(causes(&error)))
    }
}

impl Connector for GateConnector {
    fn connect(&mut self) -> io::Result<Streams> {
        let (stream, is_gate) = match self.found.take() {
            Some(stream) => (stream, true),
            None => match self.gate()? {
                Some(stream) => (stream, true),
                None => (strict(&mut self.site, &self.environment).map_err(refused)?, false),
            },
        };
        let (reader, writer) = (stream.try_clone()?, stream.try_clone()?);
        self.last = Some(Last { stream, is_gate });
        Ok((Box::new(reader), Box::new(writer)))
    }

    fn knows_better(&mut self) -> bool {
        if self.found.is_none() && self.last.as_ref().is_some_and(|last| !last.is_gate) {
            self.found = self.gate().ok().flatten();
        }
        self.found.is_some()
    }

    fn hang_up(&mut self) {
        if let Some(last) = self.last.take() {
            last.stream.shut_down();
        }
    }
}

fn refused(refusal: Refusal) -> io::Error {
    io::Error::other(refusal.message)
}
