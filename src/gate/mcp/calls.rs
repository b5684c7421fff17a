//! The calls under way: which request of the client's is which call of the gate's.
//!
//! Promise: a call is withdrawn at most once, and only by the request that made it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use platform::Moment;
use rmcp::model::RequestId;
use tokio::sync::Notify;

/// How many calls of one client may be under way. One more is answered with an error.
pub const MAX_CALLS: usize = 1024;

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    id: u64,
    since: Moment,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Calls {
    under_way: Mutex<HashMap<RequestId, Call>>,
    fewer: Notify,
}

impl Calls {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<RequestId, Call>) -> T) -> T {
        act(&mut self.under_way.lock().expect("no holder of this lock panics"))
    }

    /// A call begins; `false` if there are too many.
    pub fn begin(&self, request: RequestId, id: u64, now: Moment) -> bool {
        self.with(|calls| {
            let fits = calls.len() < MAX_CALLS;
            if fits {
                // A client that gives two calls one id can withdraw only the later.
                calls.insert(request, Call { id, since: now });
            }
            fits
        })
    }

    /// A call has its result.
    pub fn end(&self, request: &RequestId, id: u64) {
        self.with(|calls| {
            if calls.get(request).is_some_and(|call| call.id == id) {
                calls.remove(request);
            }
        });
        self.fewer.notify_one();
    }

    /// The client withdraws a call; which, if it is under way.
    pub fn withdraw(&self, request: &RequestId) -> Option<u64> {
        let call = self.with(|calls| calls.remove(request));
        self.fewer.notify_one();
        call.map(|call| call.id)
    }

    /// Withdraws all that have been waiting for `age`; which those were.
    pub fn withdraw_older(&self, age: Duration, now: Moment) -> Vec<u64> {
        let mut withdrawn: Vec<u64> = self
            .with(|calls| calls.extract_if(|_, call| now.since(call.since) >= age).map(|(_, call)| call.id).collect());
        withdrawn.sort_unstable();
        self.fewer.notify_one();
        withdrawn
    }

    /// Waits until there are none. For one waiter.
    pub async fn none(&self) {
        while !self.with(|calls| calls.is_empty()) {
            self.fewer.notified().await;
        }
    }
}

/// Whether the reason of a cancellation says that the client only gave up waiting, so that its user may still want the
/// answer: the same call may come again.
///
/// SDKs put their error into words: "McpError: MCP error -32001: Request timed out" and "Maximum total timeout exceeded"
/// (TypeScript), "request timeout" (Rust), "context deadline exceeded" (Go), "TimeoutError: …" (abort signals). An
/// agent that says so falsely gains nothing: its question stays open, and the answer is for that very call alone.
pub fn says_timed_out(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    ["timed out", "timeout", "time-out", "time out", "deadline exceeded", "-32001"]
        .iter()
        .any(|words| reason.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::from_nanos(0);

    fn request(id: i64) -> RequestId {
        RequestId::Number(id)
    }

    #[test]
    fn a_time_out_is_told_from_a_change_of_mind() {
        for reason in [
            "McpError: MCP error -32001: Request timed out",
            "MCP error -32001: Maximum total timeout exceeded",
            "request timeout",
            "context deadline exceeded",
            "TimeoutError: The operation was aborted due to timeout",
            "Timed out while waiting for response to ClientRequest. Waited 5.0 seconds.",
        ] {
            assert!(says_timed_out(reason), "{reason}");
        }
        for reason in ["", "the user pressed escape", "AbortError: This operation was aborted", "no longer wanted"] {
            assert!(!says_timed_out(reason), "{reason}");
        }
    }

    #[test]
    fn a_call_is_withdrawn_once_and_by_its_own_request() {
        let calls = Calls::default();
        assert!(calls.begin(request(1), 10, START) && calls.begin(RequestId::String("1".into()), 11, START));
        assert_eq!(calls.withdraw(&request(2)), None);
        assert_eq!(calls.withdraw(&request(1)), Some(10));
        assert_eq!(calls.withdraw(&request(1)), None);
        assert_eq!(calls.withdraw(&RequestId::String("1".into())), Some(11));
    }

    #[test]
    fn the_end_of_an_earlier_call_leaves_a_later_one_of_the_same_id() {
        let calls = Calls::default();
        assert!(calls.begin(request(1), 10, START) && calls.begin(request(1), 11, START));
        calls.end(&request(1), 10);
        assert_eq!(calls.withdraw(&request(1)), Some(11));
    }

    #[test]
    fn there_are_at_most_so_many_and_those_that_wait_are_told_from_the_new() {
        let calls = Calls::default();
        for id in 0..MAX_CALLS {
            assert!(calls.begin(request(id as i64), id as u64, START));
        }
        assert!(!calls.begin(request(-1), 5000, START));
        calls.end(&request(0), 0);
        let later = START + Duration::from_secs(1);
        assert!(calls.begin(request(-1), 5000, later));
        let old: Vec<u64> = (1..MAX_CALLS as u64).collect();
        assert_eq!(calls.withdraw_older(Duration::from_secs(1), later), old);
        assert_eq!(calls.withdraw(&request(-1)), Some(5000));
    }
}
