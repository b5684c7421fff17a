//! The server that a client talks to.
//!
//! Promise: a call waits as long as the gate does; a client that sent a progress token hears of it while it waits, and
//! nothing after its result. Which tools there are and what a call may do, the gate says: nothing is decided here.
//! Source: Model Context Protocol 2025-11-25, "Lifecycle", "Progress", "Cancellation".

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use platform::Clock;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, ErrorData, Implementation,
    InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams, ProgressNotification,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, ServerCapabilities, ServerNotification,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer};

use super::calls::{Calls, says_timed_out};
use super::link::{Link, Reply};
use super::notices::Threshold;
use super::results;

/// The newest revision of the protocol that is spoken. Later ones do without a session, which a question needs.
const NEWEST: ProtocolVersion = ProtocolVersion::V_2025_11_25;

const INSTRUCTIONS: &str = "\
Tools for the files below one folder, notes, reminders and messages. Whatever changes something may first be put to the \
person who runs the gate; such a call waits, up to two minutes, for the answer. A result that begins with \"denied\" says \
why in its brackets: policy, unattended, declined, timeout, cancelled or gone. Do not repeat what was declined. Paths are \
relative to the folder; an absolute path or one with `..` is refused.";

/// The server.
pub struct Server {
    /// The gate.
    pub link: Arc<Link>,
    /// What is under way.
    pub calls: Arc<Calls>,
    /// What the client wants to hear of.
    pub threshold: Threshold,
    /// Where the age of a call is taken from.
    pub clock: Arc<dyn Clock>,
    /// How long a call waits between two messages about its progress.
    pub progress_every: Duration,
}

impl ServerHandler for Server {
    fn get_info(&self) -> InitializeResult {
        #[allow(deprecated, reason = "a wake is a logging notification in the revisions that are spoken")]
        let capabilities =
            ServerCapabilities::builder().enable_logging().enable_tools().enable_tool_list_changed().build();
        InitializeResult::new(capabilities)
            .with_protocol_version(NEWEST)
            .with_server_info(Implementation::new("keepwatch", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&NEWEST))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.link.name(&request.client_info.name);
        let mut info = self.get_info();
        if self.supported_protocol_versions().contains(&request.protocol_version) {
            info.protocol_version = request.protocol_version.clone();
        }
        context.peer.set_peer_info(request);
        Ok(info)
    }

    #[allow(deprecated, reason = "a wake is a logging notification in the revisions that are spoken")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.threshold.set(request.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|request| request.cursor.is_some()) {
            return Err(ErrorData::invalid_params("there is one page only, and no cursor leads to it", None));
        }
        match self.link.tools().await {
            Ok(tools) => Ok(ListToolsResult::with_all_items(tools.into_iter().map(results::listed).collect())),
            Err(why) => Err(ErrorData::internal_error(why, None)),
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if context.ct.is_cancelled() {
            // It was withdrawn before it began, so nothing begins.
            return Ok(results::cancelled().into());
        }
        let tool = request.name.into_owned();
        let id = self.link.next_id();
        if !self.calls.begin(context.id.clone(), id, self.clock.now()) {
            return Ok(results::too_many().into());
        }
        let mut replied = self.link.call(id, tool.clone(), request.arguments.unwrap_or_default());
        let token = context.meta.get_progress_token();
        let mut told = 0_u32;
        loop {
            tokio::select! {
                biased;
                reply = &mut replied => {
                    self.calls.end(&context.id, id);
                    return results::result(&tool, reply.unwrap_or(Reply::Gone)).map(Into::into);
                }
                // The gate hears of it by the notification itself, which has the reason; see `on_cancelled`.
                () = context.ct.cancelled() => return Ok(results::cancelled().into()),
                () = tokio::time::sleep(self.progress_every), if token.is_some() => {
                    told += 1;
                    if let Some(token) = &token {
                        tell_progress(&context.peer, token.clone(), self.progress_every * told).await;
                    }
                }
            }
        }
    }

    async fn on_cancelled(&self, notification: CancelledNotificationParam, _context: NotificationContext<RoleServer>) {
        let Some(request) = notification.request_id else { return };
        if let Some(id) = self.calls.withdraw(&request) {
            self.link.cancel(id, notification.reason.as_deref().is_some_and(says_timed_out));
        }
    }
}

async fn tell_progress(client: &Peer<RoleServer>, token: ProgressToken, waited: Duration) {
    let params = ProgressNotificationParam::new(token, waited.as_secs_f64())
        .with_message(format!("still waiting after {} s", waited.as_secs()));
    let notification = ServerNotification::ProgressNotification(ProgressNotification::new(params));
    // A client that cannot be told has gone; then the whole server ends.
    let _ = client.send_notification(notification).await;
}
