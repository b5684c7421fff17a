//! What the client is told without having asked: that a wake is due, and that the tools are others now.
//!
//! Promise: a client that set a level hears of nothing below it.
//! Source: Model Context Protocol 2025-11-25, "Logging" and "Tools". Logging is marked as going away in later revisions;
//! every revision that this server speaks has it.

#![allow(deprecated, reason = "logging is how a wake reaches the client in the revisions that this server speaks")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rmcp::model::{
    ClientRequest, LoggingLevel, LoggingMessageNotification, LoggingMessageNotificationParam, ServerNotification,
    SetLevelRequest, SetLevelRequestParams, ToolListChangedNotification,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A wake is due; its note.
    Wake(String),
    /// The tools are others now.
    ToolsChanged,
}

/// The lowest level that the client wants to hear of.
#[derive(Debug, Clone, Default)]
pub struct Threshold(Arc<AtomicU8>);

impl Threshold {
    /// Sets it.
    pub fn set(&self, level: LoggingLevel) {
        self.0.store(level as u8, Ordering::Relaxed);
    }

    fn lets_pass(&self, level: LoggingLevel) -> bool {
        level as u8 >= self.0.load(Ordering::Relaxed)
    }
}

/// The request that sets the level; `None` if it is none.
pub fn set_level(level: Value) -> Option<ClientRequest> {
    let level = serde_json::from_value(level).ok()?;
    Some(ClientRequest::SetLevelRequest(SetLevelRequest::new(SetLevelRequestParams::new(level))))
}

/// Passes on what there is to tell, until there is nothing more or nobody to tell it.
pub async fn pass_on(mut notices: UnboundedReceiver<Notice>, client: Peer<RoleServer>, threshold: Threshold) {
    while let Some(notice) = notices.recv().await {
        let notification = match notice {
            Notice::Wake(note) if threshold.lets_pass(LoggingLevel::Notice) => {
                let params = LoggingMessageNotificationParam::new(LoggingLevel::Notice, json!({"wake": note}))
                    .with_logger("keepwatch");
                ServerNotification::LoggingMessageNotification(LoggingMessageNotification::new(params))
            }
            Notice::Wake(_) => continue,
            Notice::ToolsChanged => {
                ServerNotification::ToolListChangedNotification(ToolListChangedNotification::default())
            }
        };
        if client.send_notification(notification).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_lets_itself_and_what_is_graver_pass() {
        let threshold = Threshold::default();
        assert!(threshold.lets_pass(LoggingLevel::Debug));
        threshold.set(LoggingLevel::Notice);
        assert!(!threshold.lets_pass(LoggingLevel::Info));
        assert!(threshold.lets_pass(LoggingLevel::Notice) && threshold.lets_pass(LoggingLevel::Emergency));
    }
}
