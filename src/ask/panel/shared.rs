//! A panel that two draw on: a watch and the gate in its terminal.
//!
//! Limit: whose turn it is, is decided elsewhere ([`crate::ask::turns`]); here the two only do not get into each other's way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Panel;

/// A handle on a panel.
#[derive(Clone)]
pub struct SharedPanel(Arc<Mutex<Panel>>);

impl SharedPanel {
    /// The first handle.
    pub fn new(panel: Panel) -> Self {
        Self(Arc::new(Mutex::new(panel)))
    }

    /// The panel, for one statement.
    pub fn get(&self) -> MutexGuard<'_, Panel> {
        // One who panicked while he drew has left a picture that is drawn again, and no answer.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
