//! The ways to learn of changes that this system may have.

use crate::event::EventSource;
use crate::host;
use crate::poll::Poll;

/// All of them, strongest first; whether one works here is for [`EventSource::probe`] to find out. The last one always does.
pub fn backends() -> Vec<Box<dyn EventSource>> {
    let mut sources = host::event_sources();
    sources.push(Box::new(Poll));
    sources
}
