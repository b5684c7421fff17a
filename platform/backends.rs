//! The ways to learn of changes that this system may have.

use std::sync::Arc;

use crate::event::{EventSource, Names};
use crate::host;
use crate::opening::Marker;
use crate::poll::Poll;
use crate::privileged::MarkGroups;

/// All of them, strongest first; whether one works here is for [`EventSource::probe`] to find out. The last one always does.
pub fn backends() -> Vec<Box<dyn EventSource>> {
    and_polling(host::event_sources())
}

/// What a backend works with that was opened with privilege.
pub struct Equipment {
    /// Its groups.
    pub groups: MarkGroups,
    /// Who marks covered files for opens.
    pub marker: Option<Arc<dyn Marker>>,
    /// Who hears which process did something.
    pub names: Option<Arc<dyn Names>>,
}

/// The same, where the strongest has been given privilege.
pub fn with_privilege(equipment: Equipment) -> Vec<Box<dyn EventSource>> {
    and_polling(host::privileged_event_sources(equipment))
}

fn and_polling(mut sources: Vec<Box<dyn EventSource>>) -> Vec<Box<dyn EventSource>> {
    sources.push(Box::new(Poll));
    sources
}
